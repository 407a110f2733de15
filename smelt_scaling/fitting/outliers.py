"""Endpoints far off the fit: kept and flagged with what they change, or left out on request, once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import FitError, Note, merge_notes, warning
from smelt_scaling.fitting.estimate import Fitted, fit_architecture
from smelt_scaling.fitting.settings import FitSettings
from smelt_scaling.formatting import format_number
from smelt_scaling.laws import AdditiveLaw

__all__ = ["OUTLYING", "distances", "fit_screened", "outlying", "robust_scatter"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Robust standard deviations of the log residual beyond which an endpoint is outlying.
OUTLYING = 5.0
#: The scatter never counts as smaller: no loss is measured to a hundredth of a percent.
LEAST_SCATTER = 1e-4
#: Fewer residual degrees of freedom say little of a scatter.
FEWEST_FREE = 5
#: Outlying endpoints that a note names, the farthest first: of those that are kept, and of those that are not.
NAMED, NAMED_DROPPED = 3, 12


def distances(loss: Array, predicted: Array, fitted: int = 0) -> Array:
    """Return how far each loss lies from its prediction, in robust standard deviations of the log residual.

    Residuals are taken from their median, and their scatter is 1.4826 times the median of their sizes, the smallest
    of which do not count: a robust fit passes through about as many endpoints as it has parameters, and their zeros
    would make few endpoints look precise (Maronna, Martin and Yohai, "Robust Statistics", 2006, section 4.4).

    Parameters
    ----------
    loss, predicted : (n,) array
        What was measured, and what was fitted.
    fitted : int
        Number of parameters that were fitted, fewer than n.

    Examples
    --------
    >>> distances(np.exp([-0.01, 0.0, 0.01, 0.5]), np.ones(4)).round(1).tolist()
    [-1.0, -0.3, 0.3, 33.4]
    """
    residual = np.log(loss) - np.log(predicted)
    scatter = max(robust_scatter(residual, fitted), LEAST_SCATTER)
    return np.asarray((residual - np.median(residual)) / scatter)


def robust_scatter(residual: Array, fitted: int = 0) -> float:
    """Return the robust standard deviation of residuals about their median, as `distances` takes it.

    Examples
    --------
    >>> round(robust_scatter(np.array([-0.01, 0.0, 0.01, 0.5])), 5)
    0.01483
    """
    sizes = np.sort(np.abs(residual - np.median(residual)))[fitted:]
    # the normal's 75 % quantile turns a median of sizes into a standard deviation
    return float(np.median(sizes)) / 0.6744897501960817


def fit_screened(
    arch: str, endpoints: Endpoints, law: AdditiveLaw, settings: FitSettings, *, resample: str | None = None
) -> tuple[Fitted, Mask]:
    """Fit one architecture, and once more without its outlying endpoints if it has any.

    One pass only: what lies off the second fit is flagged and kept, since trimming again and again would shrink the
    scatter until good runs look bad.

    Parameters
    ----------
    arch, endpoints, law, settings
        As for `fit_architecture`; ``settings.drop_outliers`` says which of the two fits is returned.
    resample : str, optional
        The unit to be resampled.

    Returns
    -------
    fitted : Fitted
        The fit to all endpoints with the note `outlier`, or to those that are left with the note `dropped_outliers`.
    kept : (n,) array of bool
        The endpoints that were fitted.

    Raises
    ------
    DataError, FitError, UsageError
        As `fit_architecture`; also if too few endpoints would be left.
    """
    every = _fit(arch, endpoints, law, settings, resample)
    out = outlying(every, endpoints)
    if not out.any():
        return every, ~out
    try:
        rest = _fit(arch, endpoints.select(~out), law, settings, resample)
    except FitError as error:
        if settings.drop_outliers:
            raise FitError(f"{error} (after --drop-outliers left out {int(out.sum())})") from error
        few = _flagged(arch, endpoints, every, out, "too few would be left without them")
        return _noted(every, few), np.ones_like(out)
    changed = _influence(every, rest, ~out)
    if not settings.drop_outliers:
        flagged = _flagged(arch, endpoints, every, out, f"without them {changed}")
        return _noted(every, flagged), np.ones_like(out)
    notes = [_dropped(arch, endpoints, every, out, changed)]
    kept = endpoints.select(~out)
    if (again := outlying(rest, kept)).any():
        notes.append(_flagged(arch, kept, rest, again, "the second fit is the last"))
    return _noted(rest, *notes), ~out


def _fit(
    arch: str, endpoints: Endpoints, law: AdditiveLaw, settings: FitSettings, resample: str | None
) -> Fitted:
    labels = endpoints.cells(resample)[0]
    return fit_architecture(arch, endpoints, law, settings, n_cells=len(np.unique(labels)), labels=labels)


def outlying(fitted: Fitted, endpoints: Endpoints) -> Mask:
    """Return which endpoints lie over `OUTLYING` robust standard deviations off a fit; none of too few."""
    if len(endpoints) - int(fitted.problem.free.sum()) < FEWEST_FREE:
        return np.zeros(len(endpoints), dtype=bool)
    return np.abs(_distances(endpoints, fitted)) > OUTLYING


def _distances(endpoints: Endpoints, fitted: Fitted) -> Array:
    problem = fitted.problem
    return distances(endpoints.loss, problem.predicted(fitted.theta), int(problem.free.sum()))


def _influence(every: Fitted, rest: Fitted, kept: Mask) -> str:
    """Say how the fit changes when the outlying endpoints are left out."""
    moved = rest.problem.predicted(rest.theta) - every.problem.predicted(every.theta)[kept]
    before, after = every.result.surface.coefficients, rest.result.surface.coefficients
    fixed = {*every.result.pinned, *every.result.unidentified}
    fitted = [name for name in before if name not in fixed]
    shown = ", ".join(
        f"{name} {format_number(before[name])} -> {format_number(after[name])}" for name in fitted
    )
    return f"{shown}; the fitted losses of the others move by up to {np.abs(moved).max():.2g} {every.result.loss_unit}"


def _named(endpoints: Endpoints, fitted: Fitted, out: Mask, most: int) -> str:
    """Name outlying endpoints, the farthest first: cell, D, loss, residual."""
    predicted = fitted.problem.predicted(fitted.theta)
    far = _distances(endpoints, fitted)
    labels, unit = endpoints.cells()
    rows = np.flatnonzero(out)
    rows = rows[np.argsort(-np.abs(far[rows]), kind="stable")]
    shown = [
        f"{labels[i]}{f' at D = {endpoints.D[i]:.4g}' if 'D' in endpoints else ''}: loss {endpoints.loss[i]:.4g} "
        f"where the fit has {predicted[i]:.4g}, {far[i]:+.3g} sd"
        for i in rows[:most].tolist()
    ]
    return f"{unit} {'; '.join(shown)}" + (f"; and {len(rows) - most} more" if len(rows) > most else "")


def _flagged(arch: str, endpoints: Endpoints, fitted: Fitted, out: Mask, effect: str) -> Note:
    count = int(out.sum())
    message = (
        f"{arch}: {counted(count, 'endpoint')} over {OUTLYING:g} robust standard deviations off the fit "
        f"({_named(endpoints, fitted, out, NAMED)}); kept: check these runs; {effect} (--drop-outliers)"
    )
    return warning("outlier", message, count)


def _dropped(arch: str, endpoints: Endpoints, fitted: Fitted, out: Mask, changed: str) -> Note:
    count, named = int(out.sum()), _named(endpoints, fitted, out, NAMED_DROPPED)
    message = (
        f"{arch}: {counted(count, 'endpoint')} over {OUTLYING:g} robust standard deviations off a first fit left out "
        f"({named}), and the rest fitted again, once (--drop-outliers): {changed}"
    )
    return warning("dropped_outliers", message, count)


def _noted(fitted: Fitted, *notes: Note) -> Fitted:
    result = fitted.result
    return replace(fitted, result=replace(result, notes=merge_notes(result.notes, notes)))
