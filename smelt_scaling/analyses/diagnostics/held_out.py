"""What is common to fits without some rows: the gain they are about, and their errors on what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.diagnostics.deletion import Arm, Without, put
from smelt_scaling.analyses.diagnostics.headline import Headline, headline_of
from smelt_scaling.analyses.diagnostics.parts import only
from smelt_scaling.analyses.view import view_of
from smelt_scaling.errors import Note, SmeltScalingError, UsageError, info
from smelt_scaling.papers import Paper
from smelt_scaling.study import Study

__all__ = ["BOTH", "errors_on", "multiplier_of", "settings_of", "settled"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: The architecture of a row about all of them.
BOTH = "both"


def settled(
    study: Study,
    target: str | None,
    reference: str | None,
    budget: float | None,
    sparsity: float | None,
) -> tuple[Study, Headline | None, list[Note]]:
    """Return the study of the pair, its headline gain, and notes; no headline where there is no gain to follow.

    Raises
    ------
    UsageError
        If an argument is invalid, or which of several architectures is left open.
    """
    if isinstance(study, Paper):
        raise UsageError("published coefficients come without rows: leaving some out needs a study")
    named = any(value is not None for value in (target, reference, budget, sparsity))
    if len(study.archs) == 1 and not named:
        message = f"one architecture ({study.archs[0]}): coefficients and predictions alone"
        return only(study, study.archs), None, [info("no_headline", message)]
    try:
        headline, notes = headline_of(
            study, target=target, reference=reference, budget=budget, sparsity=sparsity
        )
    except UsageError as error:
        if named or len(study.archs) > 2:
            raise
        return study, None, [info("no_headline", f"no gain to follow ({error})")]
    archs = (headline.target, headline.reference)
    own = only(study, archs)
    try:
        view = view_of(study)
        view.require_comparable((view.side(archs[0]), view.side(archs[1])))
        headline.of(study)
    except SmeltScalingError as error:
        return own, None, [*notes, info("no_headline", f"no gain to follow ({error})")]
    return own, headline, notes


def settings_of(headline: Headline | None) -> dict[str, Any]:
    """Return the settings of a frame about a headline gain."""
    if headline is None:
        return dict.fromkeys(("target", "reference", "budget", "sparsity"))
    return dict(vars(headline))


def multiplier_of(
    study: Study, headline: Headline | None, fits: Mapping[str, Without]
) -> tuple[float | None, str]:
    """Return ln(C_ref / C_tgt) with some fits in the place of the study's, or why there is none."""
    if headline is None:
        return None, ""
    try:
        return headline.of(put(study, fits)), ""
    except SmeltScalingError as error:
        return None, str(error)


def errors_on(
    arms: Mapping[str, Arm], fits: Mapping[str, Without], scored: Mapping[str, Mask]
) -> tuple[dict[str, Any], str]:
    """Return how well fits predict rows, of all architectures named together.

    Parameters
    ----------
    arms, fits : mapping
        Architecture -> what was fitted.
    scored : mapping
        Architecture -> its rows to be predicted, all of them left out.

    Returns
    -------
    dict
        ``mean_error, rms_error`` of ln(predicted) - ln(observed) on these rows, weighted as in the fit; ``rms_in``,
        the same root mean square over the rows that were fitted; and the ``ratio`` of the two.
    str
        Why there is none.
    """
    absent: dict[str, Any] = dict.fromkeys(("mean_error", "rms_error", "rms_in", "ratio"))
    if not any(scored[arch].any() for arch in fits):
        return absent, f"no row of {' or '.join(fits)} is in it"
    reasons = [one.reason for arch, one in fits.items() if one.reason and scored[arch].any()]
    if reasons:
        return absent, reasons[0]
    out, weight_out, inside, weight_in = ([], [], [], [])
    for arch, one in fits.items():
        if not scored[arch].any():
            continue
        weight = arms[arch].weight
        out.append(one.error[scored[arch]])
        weight_out.append(weight[scored[arch]])
        inside.append(one.error[~one.out])
        weight_in.append(weight[~one.out])
    error, weight = np.concatenate(out), np.concatenate(weight_out)
    rms_error = _rms(error, weight)
    rms_in = _rms(np.concatenate(inside), np.concatenate(weight_in))
    return {
        "mean_error": float(np.average(error, weights=weight)),
        "rms_error": rms_error,
        "rms_in": rms_in,
        "ratio": rms_error / rms_in if rms_in > 0 else None,
    }, ""


def _rms(error: Array, weight: Array) -> float:
    return float(np.sqrt(np.average(error**2, weights=weight)))
