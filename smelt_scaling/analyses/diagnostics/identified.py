"""Which coefficients a design tells apart: correlations, the joint region of the exponents, and what would mend it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.anova import analysis_of_variance
from smelt_scaling.analyses.conditioning import assess
from smelt_scaling.analyses.diagnostics.headline import headline_settings
from smelt_scaling.analyses.diagnostics.region import ellipse, region_of
from smelt_scaling.analyses.frames import Carried, finish_frame, with_nones
from smelt_scaling.analyses.linear_problem import Linearised, linearised
from smelt_scaling.analyses.view import view_of
from smelt_scaling.engine.design import identify
from smelt_scaling.errors import UsageError
from smelt_scaling.fitting.conventions import size_and_token_exponents
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["coefficient_correlations", "identifiability"]

Array = NDArray[np.float64]

#: Coefficients that correlate more than this are one number and a trade-off.
RIDGE = 0.95


def identifiability(
    study: Study,
    *,
    target: str | None = None,
    reference: str | None = None,
    budget: float | None = None,
    sparsity: float | None = None,
    level: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Say what the runs of every architecture determine, and what they leave to a trade-off.

    Parameters
    ----------
    study : Study
        Fitted architectures.
    target, reference, budget, sparsity
        The gain that the diagnosis is about; carried into the settings.
    level : float
        Of the joint regions.
    progress : callable, optional
        Called with (architectures done, architectures in all).

    Returns
    -------
    DataFrame
        One row per architecture: ``arch, endpoints, cells, parameters, condition, verdict, unidentified, collinear,
        at_bounds, pinned``; the strongest trade-off ``ridge`` (a sentence) with ``ridge_correlation`` in centred and
        ``ridge_natural`` in natural coordinates; the exponents of size and of tokens (``size_exponent,
        token_exponent`` name them) at the optimum of the likelihood with cell effects, ``size, tokens``, with the ends
        of their joint region (``size_lo, size_hi, tokens_lo, tokens_hi``; None where it is open) and of the ellipse of
        the draws (``size_draws_lo, ...``), ``region_reason`` if there is none; and ``fixes``, one sentence each.

        ``.attrs`` holds ``notes``, ``settings`` and further rows: ``correlations`` of the coefficients (``coordinates``
        "centred" or "natural": logarithms of the amplitudes, as for least squares), ``regions`` (points of the
        contours) and ``issues`` (what is wrong, and the fix).

    Raises
    ------
    UsageError
        If ``study`` is none, or a name is unknown.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> found = identifiability(fit(example_endpoints(), bootstrap=0))
    >>> found[["arch", "ridge_correlation", "ridge_natural"]].round(3).values.tolist()
    [['baseline', -0.99, 0.999], ['smelt', -0.99, 0.999]]
    """
    if not isinstance(study, Study):
        raise UsageError(
            f"source of type {type(study).__name__}: a design needs runs; fit(endpoints) makes a study of them"
        )
    if not 0 < level < 1:
        raise UsageError(f"level {level}: must lie between 0 and 1, such as 0.95")
    settings, notes = headline_settings(study, target, reference, budget, sparsity)
    rows: list[dict[str, Any]] = []
    carried: dict[str, list[dict[str, Any]]] = {"correlations": [], "regions": [], "issues": []}
    for arch in study.archs:
        model = linearised(study, arch)
        correlations = coefficient_correlations(model)
        region = _region(study, model, level, carried["regions"])
        issues = _issues(study, model)
        rows.append(_row(study, model, correlations, issues) | region)
        for coordinates, matrix in correlations.items():
            for i, j in combinations_with_replacement(range(len(model.names)), 2):
                pair = {"first": model.names[i], "second": model.names[j], "correlation": float(matrix[i, j])}
                carried["correlations"].append({"arch": arch, "coordinates": coordinates, **pair})
        carried["issues"] += issues
        if progress is not None:
            progress(len(rows), len(study.archs))
    frame = finish_frame(rows, view_of(study), notes, level=level, interval="percentile", **settings)
    frame = with_nones(frame)
    frame.attrs |= {name: Carried(own) for name, own in carried.items()}
    return frame


def coefficient_correlations(model: Linearised) -> Mapping[str, Array]:
    """Return the correlation matrix of the coefficients, centred and natural, as for least squares.

    In natural coordinates an amplitude is the size of its term at F = 1 or D = 1, an extrapolation by ten orders of
    magnitude along its exponent; centred, it is that at the middle of the runs. Empty without full rank.
    """
    J = np.sqrt(model.weight)[:, None] * model.jacobian
    norms = np.linalg.norm(J, axis=0)
    if J.shape[0] < J.shape[1] or not J.shape[1] or not np.all(norms > 0):
        return {}
    scaled = J / norms
    if np.linalg.cond(scaled) > 1e8:
        return {}
    covariance = np.linalg.inv(scaled.T @ scaled) / np.outer(norms, norms)
    size = len(model.theta)
    natural = np.eye(size)
    for term in model.problem.terms:
        natural[term.columns[0], term.columns[1:]] -= term.means[1:]
    natural = natural[np.ix_(model.free, model.free)]
    return {
        name: _correlation(move @ covariance @ move.T)
        for name, move in (("centred", np.eye(len(norms))), ("natural", natural))
    }


def _correlation(covariance: Array) -> Array:
    sd = np.sqrt(covariance.diagonal())
    return np.asarray(np.clip(covariance / np.outer(sd, sd), -1.0, 1.0))


def _row(
    study: Study, model: Linearised, correlations: Mapping[str, Array], issues: list[dict[str, Any]]
) -> dict[str, Any]:
    fit, law = model.fit, model.problem.law
    row: dict[str, Any] = {
        "arch": fit.arch,
        "endpoints": len(model.residual),
        "cells": len(model.cells),
        "parameters": len(model.names),
        "condition": fit.certificate.condition if np.isfinite(fit.certificate.condition) else None,
        "verdict": _verdict(study, model),
        "unidentified": list(fit.unidentified),
        "collinear": list(fit.collinear),
        "at_bounds": list(fit.certificate.at_bounds),
        "pinned": list(fit.pinned),
        "ridge": "",
        "ridge_correlation": None,
        "ridge_natural": None,
    }
    if correlations:
        strongest = max(
            (
                (abs(correlations["centred"][i, j]), i, j)
                for i, name in enumerate(model.names)
                for j, other in enumerate(model.names)
                if name in law.amplitudes and other in law.exponents and _share_a_term(model, name, other)
            ),
            default=None,
        )
        if strongest is not None:
            _, i, j = strongest
            centred, natural = (float(correlations[name][i, j]) for name in ("centred", "natural"))
            sentence = _ridge(model.names[i], model.names[j], natural)
            row |= {
                "ridge": sentence if abs(natural) > RIDGE else "",
                "ridge_correlation": centred,
                "ridge_natural": natural,
            }
    return row | {"fixes": [issue["fix"] for issue in issues]}


def _share_a_term(model: Linearised, amplitude: str, exponent: str) -> bool:
    return any(
        term.amplitude == amplitude and power.exponent == exponent
        for term in model.problem.law.parsed.terms
        for power in term.powers
    )


def _ridge(amplitude: str, exponent: str, natural: float) -> str:
    return (
        f"{amplitude} and {exponent} are one number and a trade-off (correlation {natural:.3f} in natural "
        f"coordinates): report losses and gains with intervals, never {amplitude} or {exponent} alone with one"
    )


def _verdict(study: Study, model: Linearised) -> str:
    found = identify(study.law, model.columns, study.settings.pins_of(model.fit.arch), model.own.tiers)
    return assess(study.law, model.own, model.columns, found).verdict


def _issues(study: Study, model: Linearised) -> list[dict[str, Any]]:
    """Return what the design leaves open, with what would fix it, one row each."""
    fit, law = model.fit, model.problem.law
    found = identify(study.law, model.columns, study.settings.pins_of(fit.arch), model.own.tiers)
    rows = [
        {"arch": fit.arch, "issue": "design", "what": remedy.partition(":")[0], "fix": remedy}
        for remedy in assess(study.law, model.own, model.columns, found).remedies
    ]
    for name in fit.certificate.at_bounds:
        floor = name == law.floor
        fix = (
            f"{name} ended at 0: add longer or larger runs, where the loss levels off, or hold it (--pin {name}=VALUE)"
            if floor
            else f"{name} ended on its bound: add runs over a wider range, or fit a law without its term"
        )
        rows.append({"arch": fit.arch, "issue": "bound", "what": f"{name} on its bound", "fix": fix})
    said = " ".join(row["fix"] for row in rows)
    for name, why in fit.unidentified.items():
        if found.collinear or name in said or name in found.reasons:
            continue  # the design says what would mend it
        fix = f"{name}: {why}; add runs that vary it alone, or hold it with --pin {name}=VALUE"
        rows.append({"arch": fit.arch, "issue": "unidentified", "what": f"{name} not identified", "fix": fix})
    return rows


def _region(study: Study, model: Linearised, level: float, points: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the ends of the joint region of the two exponents, adding its points to a list."""
    arch, law = model.fit.arch, study.law
    row: dict[str, Any] = {"size_exponent": None, "token_exponent": None, "region_reason": ""}
    row |= dict.fromkeys(("size", "size_lo", "size_hi", "tokens", "tokens_lo", "tokens_hi"))
    row |= dict.fromkeys(("size_draws_lo", "size_draws_hi", "tokens_draws_lo", "tokens_draws_hi"))
    pair = size_and_token_exponents(law)
    if pair is None:
        return row | {
            "region_reason": f"law {law.name} has no exponent of size and one of tokens, each in its own term"
        }
    row |= {"size_exponent": pair[0], "token_exponent": pair[1]}
    if reason := _no_region(model, pair):
        return row | {"region_reason": reason}
    found = region_of(model, pair, level)
    contours = [("profile likelihood", found.contour, found.closed)]
    row |= {"size": float(found.centre[0]), "tokens": float(found.centre[1])}
    for k, name in enumerate(("size", "tokens")):
        low, high = np.argmin(found.contour[:, k]), np.argmax(found.contour[:, k])
        row[f"{name}_lo"] = float(found.contour[low, k]) if found.closed[low] else None
        row[f"{name}_hi"] = float(found.contour[high, k]) if found.closed[high] else None
    if study.draws is not None:
        draws = study.draws[arch].surface
        around = ellipse(np.stack([draws[name] for name in pair], axis=1), level)
        if around is not None:
            contours.append(("draws", around, np.ones(len(around), dtype=bool)))
            for k, name in enumerate(("size", "tokens")):
                row |= {
                    f"{name}_draws_lo": float(around[:, k].min()),
                    f"{name}_draws_hi": float(around[:, k].max()),
                }
    for source, contour, closed in contours:
        points += [
            {
                "arch": arch,
                "contour": source,
                "point": i,
                "size": float(contour[i, 0]),
                "tokens": float(contour[i, 1]),
                "closed": bool(closed[i]),
            }
            for i in range(len(contour))
        ]
    return row


def _no_region(model: Linearised, pair: tuple[str, str]) -> str:
    absent = [name for name in pair if name not in model.names]
    if absent:
        return f"{' and '.join(absent)} not fitted, or on a bound"
    if model.fit.why_no_interval:
        return model.fit.why_no_interval
    table = analysis_of_variance(model.residual, model.basis, model.cell, model.weight)
    if table.df_between + table.df_within < 1:
        return "the fit leaves no residual degree of freedom"
    if not table.sd_total or table.sd_total < 1e-10:
        return "the losses hold no noise"
    return ""
