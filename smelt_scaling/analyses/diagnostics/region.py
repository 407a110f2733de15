r"""The joint region of two exponents, with a random effect per cell: which pairs the data do not contradict.

The likelihood is that of ln L = ln m(theta) + u[cell] + e with normal u and e. With the residuals of a cell added up,

.. math:: -2\ell(\theta, \lambda) = n \ln(q / n) + \sum_g \ln(1 + \lambda W_g), \quad
   q = \sum_i w_i r_i^2 - \sum_g \frac{\lambda}{1 + \lambda W_g} \Big(\sum_{i \in g} w_i r_i\Big)^2.

At two given exponents everything else is fitted: Gauss-Newton steps in the coefficients, lambda by a search in one
dimension. The contour is traced ray by ray from the optimum, each point starting at the last one: started anew at
every point, general optimisers stop at other optima here and there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.linear_problem import Linearised
from smelt_scaling.analyses.variance import GRID
from smelt_scaling.engine.design import log_jacobian

__all__ = ["Region", "ellipse", "region_of"]

Array = NDArray[np.float64]

DIRECTIONS = 48
#: How far out a ray goes, in units of the radius that a parabola would have; beyond, the region is open.
FARTHEST = 8.0
#: A contour lies within this share of its level.
CLOSE = 1e-4
STEPS = 60
#: A fall of the deviance that moves no digit of a contour.
ENOUGH = 1e-7


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """A contour of the profile likelihood.

    Parameters
    ----------
    centre : array (2,)
        The pair of highest likelihood.
    contour : array (K, 2)
        Points of the contour, counter-clockwise in the metric of the information; where a ray meets none, its end.
    closed : bool array (K,)
        Whether each point lies on the contour.
    """

    centre: Array
    contour: Array
    closed: NDArray[np.bool_]


class _Profile:
    """The likelihood of one architecture."""

    def __init__(self, model: Linearised) -> None:
        self.model, self.problem = model, model.problem
        self.observed = np.log(model.own.loss)
        self.n, self.cells = len(self.observed), len(model.cells)
        self.total = np.bincount(model.cell, model.weight)
        self.ratios = np.concatenate([[0.0], np.exp(GRID)])
        self.penalty = np.log1p(np.outer(self.ratios, self.total)).sum(axis=1)
        self.shrink = self.ratios[:, None] / (1 + np.outer(self.ratios, self.total))

    def residual(self, theta: Array) -> Array:
        with np.errstate(over="ignore", divide="ignore"):
            return np.asarray(np.log(self.problem.predicted(theta)) - self.observed)

    def deviance(self, residual: Array, ratio: float) -> float:
        sums = np.bincount(self.model.cell, self.model.weight * residual, self.cells)
        q = self.model.weight @ residual**2 - (ratio / (1 + ratio * self.total)) @ sums**2
        return float(self.n * np.log(q / self.n) + np.log1p(ratio * self.total).sum())

    def best_ratio(self, residual: Array) -> float:
        """Return lambda at given residuals: the best of a grid, then Newton steps in its logarithm."""
        sums = np.bincount(self.model.cell, self.model.weight * residual, self.cells)
        total = float(self.model.weight @ residual**2)
        i = int(np.argmin(self.n * np.log((total - self.shrink @ sums**2) / self.n) + self.penalty))
        if i == 0:
            return 0.0
        low, high = GRID[max(i - 2, 0)], GRID[min(i, len(GRID) - 1)]
        x = GRID[i - 1]
        for _ in range(20):
            ratio = np.exp(x)
            weighted = 1 / (1 + ratio * self.total)
            q = total - float(np.sum(ratio * weighted * sums**2))
            first = -float(np.sum(ratio * weighted**2 * sums**2))  # dq/dx, and its derivative
            second = first + 2 * float(np.sum(ratio**2 * weighted**3 * self.total * sums**2))
            slope = self.n * first / q + float(np.sum(1 - weighted))
            bend = self.n * (second / q - (first / q) ** 2) + float(np.sum(weighted * (1 - weighted)))
            low, high = (low, x) if slope > 0 else (x, high)
            new = x - slope / bend if bend > 0 else 0.5 * (low + high)
            new = new if low <= new <= high else 0.5 * (low + high)
            if abs(new - x) < 1e-7:
                break
            x = new
        return float(np.exp(x))

    def fitted(self, start: Array, free: NDArray[np.bool_]) -> tuple[float, Array]:
        """Return the lowest deviance over the free coordinates, and where it is."""
        theta, free = start.copy(), free.copy()
        residual = self.residual(theta)
        ratio = self.best_ratio(residual)
        value = self.deviance(residual, ratio)
        for _ in range(STEPS):
            before = value
            step = self._step(theta, residual, ratio, free)
            for halving in range(30):
                trial = theta + step * 0.5**halving
                trial[0] = max(trial[0], 0.0)  # the floor is not below 0
                new = self.residual(trial)
                lower = self.deviance(new, ratio) if np.isfinite(new).all() else np.inf
                if lower < value:
                    theta, residual, value = trial, new, lower
                    break
            ratio = self.best_ratio(residual)
            value = min(value, self.deviance(residual, ratio))
            if before - value < ENOUGH:
                break
        return value, theta

    def information(self, theta: Array, ratio: float, free: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return J'V^-1 J of the free coordinates (sd_within = 1), and the matrix J'V^-1."""
        J = log_jacobian(self.problem, theta)[:, free[self.problem.free]]
        WJ = self.model.weight[:, None] * J
        sums = np.stack([np.bincount(self.model.cell, column, self.cells) for column in WJ.T], axis=1)
        shrink = (ratio / (1 + ratio * self.total))[:, None] * sums
        VJ = WJ - self.model.weight[:, None] * shrink[self.model.cell]
        return J.T @ VJ, VJ.T

    def _step(self, theta: Array, residual: Array, ratio: float, free: NDArray[np.bool_]) -> Array:
        matrix, project = self.information(theta, ratio, free)
        gradient = project @ residual
        step = np.zeros(len(theta))
        if not free.any():
            return step
        scale = np.sqrt(np.maximum(matrix.diagonal(), 1e-300))
        step[free] = (
            -np.linalg.lstsq(matrix / np.outer(scale, scale), gradient / scale, rcond=1e-13)[0] / scale
        )
        if (
            theta[0] + step[0] < 0 and free[0] and free.sum() > 1
        ):  # on to the bound, and the others without it
            without = free & (np.arange(len(free)) > 0)
            step = self._step(theta, residual, ratio, without)
            step[0] = -theta[0]
        return step


def region_of(model: Linearised, pair: tuple[str, str], level: float) -> Region:
    """Trace the contour at which -2 ln(likelihood ratio) is the chi2(2) quantile.

    The Huber objective is no likelihood: the centre is that of this likelihood, not the fit.

    Parameters
    ----------
    model : Linearised
        The fit.
    pair : (str, str)
        Two exponents that were fitted.
    level : float
        Nominal coverage; the contour of chi2(2) is at 5.99 for 0.95.
    """
    from scipy.stats import chi2

    profile = _Profile(model)
    where = [model.problem.law.parameters.index(name) for name in pair]
    lowest, best = profile.fitted(model.theta, model.free)
    rest = model.free.copy()
    rest[where] = False
    residual = profile.residual(best)
    ratio = profile.best_ratio(residual)
    matrix, _ = profile.information(best, ratio, model.free)
    sums = np.bincount(model.cell, model.weight * residual, profile.cells)
    q = model.weight @ residual**2 - (ratio / (1 + ratio * profile.total)) @ sums**2
    among = [int(model.free[:k].sum()) for k in where]
    covariance = np.linalg.pinv(matrix, rcond=1e-14, hermitian=True)[np.ix_(among, among)] * q / profile.n
    metric = np.linalg.cholesky(covariance)
    limit = float(chi2.ppf(level, 2))
    lower, upper = model.problem.lower[where], model.problem.upper[where]
    angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    points, closed = [], []
    radius, theta = float(np.sqrt(limit)), best
    for angle in angles:
        direction = metric @ np.array([np.cos(angle), np.sin(angle)])
        with np.errstate(divide="ignore"):
            room = np.where(direction > 0, upper - best[where], lower - best[where]) / direction
        far = min(FARTHEST * float(np.sqrt(limit)), float(np.min(room[np.isfinite(room)], initial=np.inf)))
        radius, theta, met = _along(
            profile, best, theta, where, direction, rest, lowest, limit, min(radius, far), far
        )
        points.append(best[where] + radius * direction)
        closed.append(met)
    return Region(centre=best[where], contour=np.array(points), closed=np.array(closed))


def _along(
    profile: _Profile,
    best: Array,
    start: Array,
    where: list[int],
    direction: Array,
    rest: NDArray[np.bool_],
    lowest: float,
    limit: float,
    guess: float,
    far: float,
) -> tuple[float, Array, bool]:
    """Return where a ray crosses the contour, the coefficients there, and whether it does."""
    theta = start

    def excess(t: float) -> float:
        nonlocal theta
        begin = theta.copy()
        begin[where] = best[where] + t * direction
        value, theta = profile.fitted(begin, rest)
        return value - lowest

    inside, outside, t = 0.0, np.inf, guess
    for _ in range(STEPS):
        value = excess(t)
        if abs(value - limit) <= CLOSE * limit:
            return t, theta, True
        if value < limit:
            inside = t
            if t >= far:
                return far, theta, False
        else:
            outside = t
        t *= float(np.sqrt(limit / max(value, 0.05 * limit)))  # the deviance is about a parabola
        if np.isfinite(outside) and not inside + 0.02 * (outside - inside) < t < outside - 0.02 * (
            outside - inside
        ):
            t = 0.5 * (inside + outside)
        t = min(t, far)
    return t, theta, True


def ellipse(draws: Array, level: float) -> Array | None:
    """Return the Mahalanobis ellipse that holds a share of draws of two coefficients, shape (K, 2).

    Its radius is the order statistic of the draws' own distances, not a chi2 quantile; None with too few draws.

    Parameters
    ----------
    draws : array (B, 2)
        Replicates.
    level : float
        Share of the draws inside.
    """
    rank = int(np.ceil(level * len(draws)))
    if len(draws) < 20 or rank >= len(draws) or not np.all(np.ptp(draws, axis=0) > 0):
        return None
    centre = draws.mean(axis=0)
    metric = np.linalg.cholesky(np.cov(draws.T))
    distance = np.sum(np.linalg.solve(metric, (draws - centre).T) ** 2, axis=0)
    radius = np.sqrt(np.sort(distance)[rank - 1])
    angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    return np.asarray(centre + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1) @ metric.T)
