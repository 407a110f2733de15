"""The compute-optimal point of a law without a closed form: a vectorised search along the iso-FLOP curve."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import FrontierError

__all__ = ["invert_loss", "minimise_loss"]

Array = NDArray[np.float64]
LossAt = Callable[[Array, Array], Array]  # (ln F, ln C) -> loss, elementwise

GRID = 33
NEWTON_STEPS = 10
STEP = (
    5e-3  # of the five-point differences in ln F: their error, STEP^4, is far below a power law's curvature
)
LOWEST, HIGHEST = 1.0, 650.0  # ln C
BISECTIONS, ROOT_STEPS = 12, 60


def minimise_loss(loss_at: LossAt, log_budget: Array, *, interior: bool = True) -> tuple[Array, Array]:
    """Return ln F* and L* for every element of ``log_budget``.

    A scan over F in [1, C] brackets the minimum; Newton steps on five-point differences, kept inside the shrinking
    bracket, find it. Differences rather than values, because values are flat to the square root of epsilon there.

    Raises
    ------
    FrontierError
        With ``interior``, if the loss falls all the way to one end.
    """
    fractions = np.linspace(0.0, 1.0, GRID)
    scan = np.stack([loss_at(fraction * log_budget, log_budget) for fraction in fractions])
    best = np.argmin(scan, axis=0)
    if interior and np.any((best == 0) | (best == GRID - 1)):
        raise FrontierError("no interior optimum: the loss falls towards one end of the iso-FLOP curve")
    width = log_budget / (GRID - 1)
    u = fractions[best] * log_budget
    lower, upper = np.maximum(u - width, 0.0), np.minimum(u + width, log_budget)
    for _ in range(NEWTON_STEPS):
        values = [loss_at(u + k * STEP, log_budget) for k in (-2, -1, 0, 1, 2)]
        slope = (values[0] - 8 * values[1] + 8 * values[3] - values[4]) / (12 * STEP)
        curvature = (-values[0] + 16 * values[1] - 30 * values[2] + 16 * values[3] - values[4]) / (
            12 * STEP**2
        )
        lower, upper = np.where(slope < 0, u, lower), np.where(slope < 0, upper, u)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = u - slope / curvature
        inside = (curvature > 0) & (newton >= lower) & (newton <= upper)
        u = np.where(inside, newton, 0.5 * (lower + upper))
    return u, loss_at(u, log_budget)


def invert_loss(loss_at: LossAt, loss: Array) -> Array:
    """Return the budget whose optimum has the given loss; infinite beyond 1e280 FLOPs.

    The optimal loss falls with ln C. It is nearly exponential there, so a few bisections come before the bracketing
    secant (Illinois), which would crawl from a wide bracket.
    """

    def excess(log_budget: Array) -> Array:
        return minimise_loss(loss_at, log_budget, interior=False)[1] - loss

    lower, upper = np.full(loss.shape, LOWEST), np.full(loss.shape, HIGHEST)
    at_lower, at_upper = excess(lower), excess(upper)
    reachable = at_upper < 0
    x = upper
    for step in range(ROOT_STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            secant = upper - at_upper * (upper - lower) / (at_upper - at_lower)
        use = (step >= BISECTIONS) & (secant > lower) & (secant < upper)
        x = np.where(use, secant, 0.5 * (lower + upper))
        value = excess(x)
        left = value > 0
        at_lower, at_upper = (
            np.where(left, value, np.where(use, 0.5 * at_lower, at_lower)),
            np.where(left, np.where(use, 0.5 * at_upper, at_upper), value),
        )
        lower, upper = np.where(left, x, lower), np.where(left, upper, x)
        if np.all((np.abs(value) <= 4e-16 * np.abs(loss)) | ~reachable | (upper - lower < 1e-13 * upper)):
            break
    with np.errstate(over="ignore"):
        return np.where(reachable, np.exp(x), np.inf)
