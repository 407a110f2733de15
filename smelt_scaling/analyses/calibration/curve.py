"""The calibration of one metric: a sigmoid through the reference's endpoints, and how well they determine it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.calibration.cells import clusters
from smelt_scaling.analyses.calibration.sigmoid import Fitted, fit_sigmoid, refit_sigmoid
from smelt_scaling.errors import DataError

__all__ = ["Calibration", "Ends", "calibrate"]

Array = NDArray[np.float64]
Labels = NDArray[np.str_]
Ends = tuple[float | None, float | None]

#: A curve of four parameters needs more losses than that.
FEWEST = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """One metric as a function of the loss of the reference.

    Parameters
    ----------
    loss, score : array (n,)
        The reference's endpoints.
    fitted : Fitted
        The curve, a batch of one.
    draws : Fitted or None
        The curve of each resample.
    starts_agreeing : int
        Of 12.
    r2, r2_isotonic : float
        Variance of the scores that the curve explains, and the most any monotone curve could.
    covered : float
        Share of the span that the reference's losses cover.
    floor_profile, ceiling_profile : (float or None, float or None)
        Ends within which an asymptote may lie; None where nothing bounds it on that side.
    """

    loss: Array
    score: Array
    fitted: Fitted
    draws: Fitted | None
    starts_agreeing: int
    r2: float
    r2_isotonic: float
    covered: float
    floor_profile: Ends
    ceiling_profile: Ends

    @property
    def window(self) -> tuple[float, float]:
        """Lowest and highest loss of the reference."""
        return float(self.loss.min()), float(self.loss.max())

    def residual(self, loss: Array, score: Array) -> Array:
        """Return how much better than the curve scores are, in the direction of better."""
        sigmoid = self.fitted.sigmoid
        return np.asarray(sigmoid.sign * (score - sigmoid.score(loss)[0]))


def calibrate(
    loss: Array,
    score: Array,
    cell: Labels,
    *,
    sign: int,
    where: str,
    level: float,
    weight: Array | None = None,
    asymptotes: tuple[float, float] | None = None,
) -> Calibration:
    """Calibrate one metric on the reference's endpoints.

    Parameters
    ----------
    loss, score : array (n,)
        Endpoints.
    cell : (n,) array of str
        Their cells.
    sign : int
        1 where higher scores are better.
    where : str
        How to name the metric in messages.
    level : float
        Of the profiles of the asymptotes.
    weight : array (R, n), optional
        How often each endpoint counts in each resample.
    asymptotes : (float, float), optional
        Hold floor and ceiling.

    Raises
    ------
    DataError
        If the scores or losses are constant, or there are too few losses.
    """
    if np.ptp(score) == 0:
        raise DataError(
            f"{where}: all {len(score)} scores are {score[0]:g}: a constant says nothing about the loss; leave the "
            "metric out with --exclude-metric"
        )
    if len(np.unique(loss)) < FEWEST:
        raise DataError(
            f"{where}: {len(np.unique(loss))} distinct losses: a curve of four parameters needs {FEWEST} or more; add "
            "endpoints of the reference"
        )
    fitted, agreeing = fit_sigmoid(loss, score, sign, asymptotes)
    total = float(np.sum((score - score.mean()) ** 2))
    value = fitted.sigmoid.score(np.array([loss.min(), loss.max()]))[0]
    draws = None if weight is None else refit_sigmoid(loss, score, sign, weight, fitted.theta[0], asymptotes)
    residual = score - fitted.sigmoid.score(loss)[0]
    floor: Ends = (None, None)
    ceiling: Ends = (None, None)
    if asymptotes is None:
        design_effect = clusters(residual, cell).design_effect
        floor = _profile(loss, score, sign, fitted, design_effect, level)
        low, high = _profile(loss, -score, -sign, _mirrored(fitted, score), design_effect, level)
        ceiling = (None if high is None else -high, None if low is None else -low)
    return Calibration(
        loss=loss,
        score=score,
        fitted=fitted,
        draws=draws,
        starts_agreeing=agreeing,
        r2=1 - float(fitted.cost[0]) / total,
        r2_isotonic=1 - _isotonic_cost(loss, score, sign) / total,
        covered=float(abs(value[0] - value[1]) / np.asarray(fitted.sigmoid.span)[0]),
        floor_profile=floor,
        ceiling_profile=ceiling,
    )


def _isotonic_cost(loss: Array, score: Array, sign: int) -> float:
    """Return what the best monotone curve leaves; equal losses have one value."""
    from scipy.optimize import isotonic_regression

    order = np.lexsort((sign * score, loss))  # against the direction, so that ties are pooled
    fitted = isotonic_regression(score[order], increasing=sign < 0).x
    return float(np.sum((fitted - score[order]) ** 2))


def _mirrored(fitted: Fitted, score: Array) -> Fitted:
    """Return the curve of the negative scores: its floor is the ceiling."""
    theta = np.array(fitted.theta)
    theta[:, 0] = 1 - theta[:, 0] - np.exp(theta[:, 1])  # the unit square of the mirrored scores
    floor, ceiling = fitted.sigmoid.asymptotes
    mirrored = type(fitted.sigmoid)(
        floor=-ceiling,
        span=ceiling - floor,
        slope=fitted.sigmoid.slope,
        midpoint=fitted.sigmoid.midpoint,
        sign=-fitted.sigmoid.sign,
    )
    return Fitted(
        sigmoid=mirrored,
        theta=theta,
        cost=fitted.cost,
        converged=fitted.converged,
        at_bound=fitted.at_bound,
    )


def _profile(
    loss: Array, score: Array, sign: int, fitted: Fitted, design_effect: float, level: float
) -> Ends:
    """Return the floors at which the best curve is not significantly worse, by an F test on effective endpoints."""
    from scipy.stats import f

    spare = len(loss) - 4
    if spare < 1:
        return None, None
    best = float(np.asarray(fitted.sigmoid.floor)[0])
    away = np.ptp(score) * np.geomspace(1e-3, 10.0, 30)
    floors = np.concatenate([best - away, best + away])
    ceiling = fitted.theta[0, 0] + np.exp(fitted.theta[0, 1])
    start = np.repeat(fitted.theta, len(floors), axis=0)
    start[:, 1] = np.log(np.maximum(ceiling - (floors - score.min()) / np.ptp(score), 0.4))
    found = [
        refit_sigmoid(loss, score, sign, np.ones((len(floors), len(loss))), begin, floors=floors)
        for begin in (start, np.repeat(fitted.theta, len(floors), axis=0))
    ]
    cost = np.minimum(found[0].cost, found[1].cost) - fitted.cost[0]
    # a curve held back by a bound of another parameter is no evidence against its floor
    cost[found[0].at_bound.any(axis=1) & found[1].at_bound.any(axis=1)] = 0.0
    limit = float(fitted.cost[0] * design_effect * f.ppf(level, 1, spare) / spare)

    def end(floor: Array, excess: Array) -> float | None:
        beyond = np.flatnonzero(excess > limit)
        if not len(beyond):
            return None
        j = int(beyond[0])
        before = (best, 0.0) if j == 0 else (float(floor[j - 1]), float(excess[j - 1]))
        share = (limit - before[1]) / (float(excess[j]) - before[1])
        return before[0] + share * (float(floor[j]) - before[0])

    half = len(away)
    return end(floors[:half], cost[:half]), end(floors[half:], cost[half:])
