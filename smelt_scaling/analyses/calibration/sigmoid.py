"""A score as a sigmoid of the loss, monotone by construction, fitted to many resamples at once.

Bounded Levenberg-Marquardt (a trust region with the metric of the problem's own diagonal) with the analytic Jacobian,
on data scaled to the unit square; starts and resamples are rows of one batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["PARAMETERS", "Fitted", "Sigmoid", "fit_sigmoid", "refit_sigmoid"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Of the batch: the asymptote reached at infinite loss, and logarithms of what is positive.
PARAMETERS = ("floor", "ln span", "ln slope", "midpoint")
#: Bounds on the unit square: a span of .3 to 20 times the scores', a slope of .2 to 60 over the losses', a midpoint at
#: most two ranges of the losses away from them.
LOWER = np.array([-np.inf, np.log(0.3), np.log(0.2), -2.0])
UPPER = np.array([np.inf, np.log(20.0), np.log(60.0), 3.0])

#: A fit that creeps along a flat direction to its bound takes hundreds; what has converged leaves the batch.
ITERATIONS = 1000
#: A row of the batch has converged when a step can lower its sum of squares by this share of it at most.
TOLERANCE = 1e-11
#: What a fit leaves of noise-free data, relative to the sum of the squared scores.
EXACT = 1e-24


@dataclass(frozen=True, kw_only=True, eq=False)
class Sigmoid:
    """``floor + span * expit(-sign * slope * (loss - midpoint))``, in any number of draws.

    Parameters
    ----------
    floor, span, slope, midpoint : array (...)
        In units of score and loss; leading axes are draws.
    sign : int
        1 where higher scores are better (they fall with the loss), -1 where lower ones are.

    Examples
    --------
    >>> Sigmoid(floor=0.25, span=0.5, slope=4.0, midpoint=2.0, sign=1).score([1.5, 2.0, 9.0]).round(4).tolist()
    [0.6904, 0.5, 0.25]
    """

    floor: ArrayLike
    span: ArrayLike
    slope: ArrayLike
    midpoint: ArrayLike
    sign: int

    def score(self, loss: ArrayLike) -> Array:
        """Return the score at losses (n,): an array (..., n)."""
        x = np.asarray(loss, dtype=np.float64)
        floor, span, slope, midpoint = (
            np.asarray(value, dtype=np.float64)[..., None]
            for value in (self.floor, self.span, self.slope, self.midpoint)
        )
        return np.asarray(floor + span * _expit(-self.sign * slope * (x - midpoint)))

    @property
    def asymptotes(self) -> tuple[Array, Array]:
        """Scores at infinite and at no loss (of lower-better metrics: at no and at infinite loss)."""
        return np.asarray(self.floor), np.asarray(self.floor) + np.asarray(self.span)


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """A batch of fits.

    Parameters
    ----------
    sigmoid : Sigmoid
        Parameters as arrays (B,).
    theta : array (B, 4)
        The same on the unit square, as `PARAMETERS`.
    cost : array (B,)
        Weighted sums of squared residuals of the scores.
    converged : array (B,) of bool
        Whether no step lowers the cost any more.
    at_bound : array (B, 4) of bool
        Free parameters on a bound.
    """

    sigmoid: Sigmoid
    theta: Array
    cost: Array
    converged: Mask
    at_bound: Mask


def fit_sigmoid(
    loss: Array, score: Array, sign: int, asymptotes: tuple[float, float] | None = None
) -> tuple[Fitted, int]:
    """Fit one sigmoid from several starts.

    Parameters
    ----------
    loss, score : array (n,)
        The data; at least two losses and two scores.
    sign : int
        As of `Sigmoid`.
    asymptotes : (float, float), optional
        Hold floor and ceiling at these scores.

    Returns
    -------
    fitted : Fitted
        The best start, as a batch of one.
    agreeing : int
        Starts of 12 that end within 1e-6 of the lowest cost.

    Examples
    --------
    >>> x = np.linspace(1.6, 2.6, 40)
    >>> truth = Sigmoid(floor=0.25, span=0.5, slope=6.0, midpoint=2.0, sign=1)
    >>> fitted, _ = fit_sigmoid(x, truth.score(x), 1)
    >>> [round(float(v[0]), 6) for v in (fitted.sigmoid.floor, fitted.sigmoid.span, fitted.sigmoid.midpoint)]
    [0.25, 0.5, 2.0]
    """
    grid = [
        (-0.1, np.log(1.2), np.log(slope), middle)
        for middle in (-0.5, 0.2, 0.8, 1.5)
        for slope in (2.0, 6.0, 20.0)
    ]
    ones, starts = np.ones((len(grid), len(loss))), np.array(grid)
    found = refit_sigmoid(loss, score, sign, ones, starts, asymptotes)
    best = int(np.argmin(found.cost))
    scale = TOLERANCE * float(np.sum(score**2))
    agreeing = int(np.sum(found.cost <= found.cost[best] * (1 + 1e-6) + scale))
    return _chosen(found, best), agreeing


def refit_sigmoid(
    loss: Array,
    score: Array,
    sign: int,
    weight: Array,
    start: Array,
    asymptotes: tuple[float, float] | None = None,
    floors: Array | None = None,
) -> Fitted:
    """Fit a batch: the same data under other weights, from other starts, or with the floor held at several values.

    Parameters
    ----------
    loss, score : array (n,) or (B, n)
        The data. Their ranges define the unit square (of all rows together).
    sign : int
        As of `Sigmoid`.
    weight : array (B, n)
        Of the squared residuals: how often an endpoint counts.
    start : array (B, 4) or (4,)
        On the unit square.
    asymptotes : (float, float), optional
        Hold floor and ceiling.
    floors : array (B,), optional
        Hold the floor of each row alone.
    """
    x0, xs = float(loss.min()), float(np.ptp(loss))
    y0, ys = float(score.min()), float(np.ptp(score))
    x, y = (loss - x0) / xs, (score - y0) / ys
    theta = np.array(np.broadcast_to(start, (len(weight), 4)), dtype=np.float64)
    free = np.ones(4, dtype=np.bool_)
    if asymptotes is not None:
        theta[:, 0], theta[:, 1] = (asymptotes[0] - y0) / ys, np.log((asymptotes[1] - asymptotes[0]) / ys)
        free[:2] = False
    if floors is not None:
        theta[:, 0] = (floors - y0) / ys
        free[0] = False
    lower, upper = np.where(free, LOWER, -np.inf), np.where(free, UPPER, np.inf)
    theta, cost, converged = _descend(
        np.broadcast_to(x, weight.shape),
        np.broadcast_to(y, weight.shape),
        weight,
        np.clip(theta, lower, upper),
        sign,
        (lower, upper),
        free,
    )
    on_bound = free & ((theta <= lower + 1e-9) | (theta >= upper - 1e-9))
    return Fitted(
        sigmoid=Sigmoid(
            floor=y0 + ys * theta[:, 0],
            span=ys * np.exp(theta[:, 1]),
            slope=np.exp(theta[:, 2]) / xs,
            midpoint=x0 + xs * theta[:, 3],
            sign=sign,
        ),
        theta=theta,
        cost=cost * ys**2,
        converged=converged,
        at_bound=on_bound,
    )


def _descend(
    x: Array,
    y: Array,
    weight: Array,
    theta: Array,
    sign: int,
    bounds: tuple[Array, Array],
    free: Mask,
) -> tuple[Array, Array, Mask]:
    lower, upper = bounds
    damping = np.full(len(theta), 1e-3)
    cost = _cost(x, y, weight, theta, sign)
    exact = EXACT * np.sum(weight * np.maximum(y, 1.0) ** 2, axis=1)
    done = np.zeros(len(theta), dtype=np.bool_)
    for _ in range(ITERATIONS):
        rows = np.flatnonzero(~done)
        if not len(rows):
            break
        at, w = theta[rows], weight[rows]
        value, jacobian = _value_and_jacobian(x[rows], at, sign)
        weighted = (jacobian * w[:, :, None]).transpose(0, 2, 1)
        gradient = np.matmul(weighted, (value - y[rows])[:, :, None])[:, :, 0]
        hessian = np.matmul(weighted, jacobian)
        held = ~free | ((at <= lower) & (gradient > 0)) | ((at >= upper) & (gradient < 0))
        gradient[held] = 0.0
        hessian[held[:, :, None] | held[:, None, :]] = 0.0
        diagonal = np.einsum("bkk->bk", hessian)
        diagonal[held] = 1.0
        damped = hessian + np.eye(4) * (damping[rows, None] * (diagonal + 1e-12) + 1e-300)[:, None, :]
        step = np.linalg.solve(damped, -gradient[:, :, None])[:, :, 0]
        moved = np.clip(at + np.clip(step, -2.0, 2.0), lower, upper)
        moved[:, ~free] = at[:, ~free]
        trial = _cost(x[rows], y[rows], w, moved, sign)
        better = trial < cost[rows]
        promised = -np.einsum("bk,bk->b", step, gradient)
        stuck = (promised <= TOLERANCE * cost[rows]) | (cost[rows] <= exact[rows]) | (damping[rows] > 1e10)
        theta[rows[better]], cost[rows[better]] = moved[better], trial[better]
        damping[rows] = np.where(better, np.maximum(damping[rows] * 0.2, 1e-12), damping[rows] * 5.0)
        done[rows[stuck]] = True
    return theta, cost, done


def _value_and_jacobian(x: Array, theta: Array, sign: int) -> tuple[Array, Array]:
    floor, span, slope, midpoint = theta[:, :1], np.exp(theta[:, 1:2]), np.exp(theta[:, 2:3]), theta[:, 3:]
    share = _expit(-sign * slope * (x - midpoint))
    steep = span * share * (1 - share) * slope * sign
    columns = (np.ones_like(x), span * share, -steep * (x - midpoint), steep)
    return floor + span * share, np.stack(columns, axis=-1)


def _cost(x: Array, y: Array, weight: Array, theta: Array, sign: int) -> Array:
    floor, span, slope, midpoint = theta[:, :1], np.exp(theta[:, 1:2]), np.exp(theta[:, 2:3]), theta[:, 3:]
    return np.asarray(
        np.sum(weight * (floor + span * _expit(-sign * slope * (x - midpoint)) - y) ** 2, axis=1)
    )


def _expit(z: Array) -> Array:
    """Logistic function; tanh neither overflows nor loses digits where it matters."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))


def _chosen(found: Fitted, row: int) -> Fitted:
    one = slice(row, row + 1)
    parts = (found.sigmoid.floor, found.sigmoid.span, found.sigmoid.slope, found.sigmoid.midpoint)
    floor, span, slope, midpoint = (np.asarray(part)[one] for part in parts)
    return Fitted(
        sigmoid=Sigmoid(floor=floor, span=span, slope=slope, midpoint=midpoint, sign=found.sigmoid.sign),
        theta=found.theta[one],
        cost=found.cost[one],
        converged=found.converged[one],
        at_bound=found.at_bound[one],
    )
