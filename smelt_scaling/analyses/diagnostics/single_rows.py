r"""What a single endpoint does to the fit: leave-one-out influence on coefficients, on its own loss and on the gain.

.. math:: DFFITS_i = (\hat y_i - \hat y_{i(-i)}) / (s \sqrt{h_{ii}})

with y the log loss (or the loss, where residuals are of it), s the robust scatter of the residuals and h the leverage
in the weighted Jacobian at the optimum: how many standard errors of its fitted value the row moves it. Belsley, Kuh
and Welsch, "Regression Diagnostics", 1980, section 2.1, where s is the standard deviation.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.diagnostics.deletion import Arm, arms_of
from smelt_scaling.analyses.diagnostics.headline import Headline
from smelt_scaling.analyses.diagnostics.held_out import settings_of, settled
from smelt_scaling.analyses.frames import finish_frame
from smelt_scaling.analyses.gain import gain_of
from smelt_scaling.analyses.view import view_of
from smelt_scaling.engine.design import log_jacobian
from smelt_scaling.errors import Note, SmeltScalingError, info
from smelt_scaling.fitting.outliers import LEAST_SCATTER, OUTLYING, distances, robust_scatter
from smelt_scaling.formatting import format_quantity
from smelt_scaling.laws import Surface
from smelt_scaling.resampling import refit
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DFFITS", "EXACT", "MEDIANS", "POINTS", "row_influence", "row_influence_rows"]

Array = NDArray[np.float64]
Row = dict[str, Any]

#: A row that moves its own fitted loss by over one standard error of it is influential (the rule for small tables), and
#: one that moves the gain by over 5 points is, if that is also four times what the median row does: where there are few
#: rows to a parameter every one moves the fit, and naming half of them says nothing.
DFFITS, POINTS, MEDIANS = 1.0, 0.05, 4.0
#: Up to so many endpoints of an architecture every one is left out of a fit of its own.
EXACT = 400


def row_influence(
    study: Study,
    *,
    target: str | None = None,
    reference: str | None = None,
    budget: float | None = None,
    sparsity: float | None = None,
) -> pd.DataFrame:
    """Tabulate what leaving out each endpoint alone does.

    Parameters
    ----------
    study : Study
        Fitted architectures.
    target, reference, budget, sparsity : optional
        The headline gain; see `headline_of`.

    Returns
    -------
    DataFrame
        One row per endpoint, the most influential first: ``arch, endpoint`` (its cell and tokens), the law's columns,
        ``loss, fitted, distance`` (robust standard deviations of the log residual), ``leverage, dffits`` (standard
        errors by which the row moves its own fitted loss), ``change_NAME`` of the floor and of every exponent, and
        ``change`` of the headline gain (a fraction), when it is left out; ``flag``: "outlying" over 5 standard
        deviations off, "influential" where dffits is over 1 in size, and "moves the gain" where that changes by over 5
        points, each only where it is over 4 times its median too; or None.

    Raises
    ------
    UsageError
        As `influence`.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> rows = row_influence(fit(example_endpoints(), bootstrap=0))
    >>> rows.loc[0, ["arch", "endpoint", "flag"]].tolist()
    ['smelt', '1.6B/97% at D = 216B', None]
    """
    own, headline, notes = settled(study, target, reference, budget, sparsity)
    rows, said = row_influence_rows(own, arms_of(own), headline)
    return finish_frame(
        rows, view_of(own), [*notes, *said], level=0.95, interval="percentile", **settings_of(headline)
    )


def row_influence_rows(
    study: Study, arms: dict[str, Arm], headline: Headline | None
) -> tuple[list[Row], list[Note]]:
    """Return the rows of `row_influence`."""
    notes, found = [], []
    for arm in arms.values():
        exact = len(arm.loss) <= EXACT
        if not exact:
            message = (
                f"{arm.arch}: {len(arm.loss)} endpoints, so leaving out each is one Newton step from the fit"
            )
            notes.append(info("one_step_influence", message, len(arm.loss)))
        theta, lost = _exact(arm) if exact else _one_step(arm)
        found += _rows(study, arms, arm, theta, lost, headline)
    found.sort(key=lambda row: -abs(row["dffits"] or 0.0))
    changes = [abs(row["change"]) for row in found if row["change"] is not None]
    limit = max(POINTS, MEDIANS * float(np.median(changes))) if changes else np.inf
    for row in found:
        if row["change"] is not None and abs(row["change"]) > limit:
            row["flag"] = ", ".join(filter(None, (row["flag"], "moves the gain")))
    return found, notes


def _exact(arm: Arm) -> tuple[Array, NDArray[np.bool_]]:
    """Return the optimum without each row, and where the rest does not identify it."""
    from threadpoolctl import threadpool_limits

    n = len(arm.loss)
    counts = (~np.eye(n, dtype=bool)).astype(np.int16)
    with threadpool_limits(limits=1):
        draws = refit(arm.fitted, np.arange(n), counts, tuple(map(str, range(n))), arm.study.settings)
    return arm.fitted.problem.centred(draws.surface.coef), draws.degenerate | ~draws.certified


def _one_step(arm: Arm) -> tuple[Array, NDArray[np.bool_]]:
    """Return the same to first order: one Newton step of the objective without the row, at the optimum with it.

    The inverse of the Hessian without the row's own curvature is that of Sherman and Morrison.
    """
    problem, theta, delta = arm.fitted.problem, arm.fitted.theta, arm.fitted.delta
    _, _, hessian = arm.fitted.objective.derivatives(
        theta[None], problem.weight[None], problem.observed, np.array([delta])
    )
    rates, residual, moving = _rates(arm)
    inverse = np.linalg.pinv(hessian[0][np.ix_(moving, moving)], hermitian=True)
    towards = rates @ inverse
    inside = np.abs(residual) <= delta
    own = problem.weight * np.einsum("ij,ij->i", towards, rates)
    pull = problem.weight * np.clip(residual, -delta, delta) / np.where(inside, 1 - own, 1.0)
    found = np.repeat(theta[None], len(residual), axis=0)
    found[:, moving] += pull[:, None] * towards
    return found, inside & (own >= 1)


def _rates(arm: Arm) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return the Jacobian (n, moving), residuals (n,) on the problem's scale, and which coordinates can move."""
    problem, theta = arm.fitted.problem, arm.fitted.theta
    free = np.flatnonzero(problem.free)
    at_bound = (theta <= problem.lower) | (theta >= problem.upper)
    predicted = problem.predicted(theta) / problem.scale
    rates = log_jacobian(problem, theta)[:, ~at_bound[free]]
    if problem.log_residual:
        return rates, np.log(predicted) - problem.observed, free[~at_bound[free]]
    return rates * predicted[:, None], predicted - problem.observed, free[~at_bound[free]]


def _rows(
    study: Study,
    arms: dict[str, Arm],
    arm: Arm,
    theta: Array,
    lost: NDArray[np.bool_],
    headline: Headline | None,
) -> list[Row]:
    problem, fit = arm.fitted.problem, arm.fitted.result
    rates, residual, _ = _rates(arm)
    free = int(problem.free.sum())
    root = np.sqrt(problem.weight)[:, None] * rates
    leverage = np.einsum("ij,ji->i", root, np.linalg.pinv(root))
    scatter = max(robust_scatter(residual, free), LEAST_SCATTER)
    fitted = problem.predicted(arm.fitted.theta)
    coef = problem.natural(theta)
    without = study.law.loss_by_draw(coef, arm.fitted.columns, 0)  # of each row the fit without it
    scale = np.log if problem.log_residual else partial(np.multiply, 1 / problem.scale)
    moved = scale(fitted) - scale(without)
    with np.errstate(divide="ignore", invalid="ignore"):
        # of a row of weight w the fitted value has the variance s^2 h / w
        dffits = moved * np.sqrt(problem.weight) / (scatter * np.sqrt(leverage))
    change = _changes(study, arm, coef, headline)
    usual = float(np.median(np.abs(dffits[np.isfinite(dffits)]))) if np.isfinite(dffits).any() else 0.0
    limit = max(DFFITS, MEDIANS * usual)
    distance = distances(arm.loss, fitted, free)
    own = study.endpoints.select(arm.rows)
    labels, _ = own.cells(study.bootstrap.unit)
    names = (study.law.floor, *study.law.exponents)
    found = []
    for i in range(len(fitted)):
        usable = not lost[i] and bool(np.isfinite(dffits[i]))
        flags = [
            name
            for name, flagged in (
                ("outlying", abs(distance[i]) > OUTLYING),
                ("influential", usable and abs(dffits[i]) > limit),
            )
            if flagged
        ]
        tokens = f" at D = {format_quantity(float(own.D[i]), suffix=True)}" if "D" in own else ""
        found.append(
            {
                "arch": arm.arch,
                "endpoint": f"{labels[i].removeprefix(f'{arm.arch} / ')}{tokens}",
                **{name: float(values[i]) for name, values in arm.fitted.columns.items()},
                "loss": float(arm.loss[i]),
                "fitted": float(fitted[i]),
                "distance": float(distance[i]),
                "leverage": float(leverage[i]),
                "dffits": float(dffits[i]) if usable else None,
                **{
                    f"change_{name}": float(coef[i, k] - fit.surface.coef[k]) if usable else None
                    for name in names
                    for k in [study.law.parameters.index(name)]
                },
                "change": change[i] if usable else None,
                "flag": ", ".join(flags) or None,
            }
        )
    return found


def _changes(study: Study, arm: Arm, coef: Array, headline: Headline | None) -> list[float | None]:
    """Return the change of the headline gain for each set of coefficients of one architecture."""
    nothing: list[float | None] = [None] * len(coef)
    if headline is None:
        return nothing
    surfaces = {arch: fit.surface for arch, fit in study.fits.items()}
    ratio = study.settings.flops_per_param
    before = gain_of(float(headline.of_surfaces(surfaces, ratio)))
    try:
        m = headline.of_surfaces({**surfaces, arm.arch: Surface(law=study.law, coef=coef)}, ratio)
    except SmeltScalingError:
        return nothing
    gains = [gain_of(float(value)) for value in m]
    return [None if gain is None or before is None else gain - before for gain in gains]
