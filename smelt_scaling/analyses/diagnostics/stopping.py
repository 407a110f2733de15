"""Had the runs stopped at a smaller size: what the gain and the losses of the next would have been taken to be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.analyses.diagnostics.deletion import Arm, arms_of
from smelt_scaling.analyses.diagnostics.headline import Headline
from smelt_scaling.analyses.diagnostics.held_out import (
    BOTH,
    errors_on,
    multiplier_of,
    settings_of,
    settled,
)
from smelt_scaling.analyses.diagnostics.parts import Part, parts_of
from smelt_scaling.analyses.frames import finish_frame
from smelt_scaling.analyses.gain import gain_of
from smelt_scaling.analyses.view import view_of
from smelt_scaling.errors import FrontierError
from smelt_scaling.fitting import frontier_columns
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["rollout", "rollout_rows"]

Row = dict[str, Any]


def rollout(
    study: Study,
    *,
    target: str | None = None,
    reference: str | None = None,
    sparsity: float | None = None,
) -> pd.DataFrame:
    """Stop at each size of model and predict the next: its losses, and the gain at a budget that only it reaches.

    Parameters
    ----------
    study : Study
        Fitted architectures.
    target, reference, sparsity : optional
        Of the gain; see `headline_of`.

    Returns
    -------
    DataFrame
        One row per size but the last and architecture, and one for ``both``: ``stop`` (the largest size that was
        fitted), ``predicted`` (the next), ``arch, rows`` (predicted), ``mean_error, rms_error`` (ln(predicted) -
        ln(observed), negative where the prediction is too low), ``rms_in`` (on the rows fitted), ``ratio``; for both,
        ``budget`` (geometric middle of those of the next size), ``gain_predicted`` and ``gain_fitted`` (with all
        rows) there, and ``gain_error``, their difference; ``certified`` and ``reason`` (why there is no number).

    Raises
    ------
    UsageError
        As `influence`.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> steps = rollout(fit(example_endpoints(), bootstrap=0)).query("arch == 'both'")
    >>> steps[["stop", "predicted"]].values.tolist()
    [['100M', '200M'], ['200M', '600M'], ['600M', '1.6B']]
    >>> steps["gain_error"].round(3).tolist()[1:]
    [0.147, 0.082]
    """
    own, headline, notes = settled(study, target, reference, None, sparsity)
    parts, said = parts_of(own)
    rows = rollout_rows(own, arms_of(own), parts["size"], headline)
    return finish_frame(
        rows, view_of(own), [*notes, *said], level=0.95, interval="percentile", **settings_of(headline)
    )


def rollout_rows(
    study: Study, arms: dict[str, Arm], sizes: list[Part], headline: Headline | None
) -> list[Row]:
    """Return the rows of `rollout`."""
    stops = list(range(len(sizes) - 1))
    masks = [np.any([part.rows for part in sizes[k + 1 :]], axis=0) for k in stops]
    without = {arch: arm.without(masks) for arch, arm in arms.items()}
    found = []
    for k in stops:
        after = sizes[k + 1]
        scored = {arch: after.rows[arm.rows] for arch, arm in arms.items()}
        fits = {arch: without[arch][k] for arch in arms}
        for arch in [*arms, *([BOTH] if len(arms) > 1 else [])]:
            some = {name: one for name, one in fits.items() if arch in (BOTH, name)}
            errors, why = errors_on(arms, some, scored)
            gains, why_no_gain = _gains(study, headline if arch == BOTH else None, fits, after)
            found.append(
                {
                    "stop": sizes[k].name,
                    "predicted": after.name,
                    "arch": arch,
                    "rows": int(sum(scored[name].sum() for name in some)),
                    **errors,
                    **gains,
                    "certified": all(
                        one.result is not None and one.result.certificate.certified for one in some.values()
                    ),
                    "reason": why or why_no_gain or None,
                }
            )
    return found


def _gains(study: Study, headline: Headline | None, fits: dict[str, Any], after: Part) -> tuple[Row, str]:
    """Return the gain at a budget of the next size, predicted and fitted."""
    absent: Row = dict.fromkeys(("budget", "gain_predicted", "gain_fitted", "gain_error"))
    if headline is None:
        return absent, ""
    columns = frontier_columns(study.law, study.endpoints, study.settings.flops_per_param)
    if "C" not in columns:
        return absent, "the table has no compute"
    spent = columns["C"][after.rows]
    there = replace(headline, budget=float(np.sqrt(spent.min()) * np.sqrt(spent.max())))
    try:
        fitted = gain_of(there.of(study))
    except FrontierError as error:
        return absent | {"budget": there.budget}, str(error)
    m, why = multiplier_of(study, there, fits)
    predicted = gain_of(m)
    if m is not None and predicted is None:
        why = "the reference never reaches the loss of the target"
    known = predicted is not None and fitted is not None
    return {
        "budget": there.budget,
        "gain_predicted": predicted,
        "gain_fitted": fitted,
        "gain_error": predicted - fitted if known else None,  # type: ignore[operator]
    }, why
