"""The compute-optimal point of a law without a closed form: a vectorised search along the iso-FLOP curve."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import FrontierError

__all__ = ["invert_loss", "minimise_loss"]

Array = NDArray[np.float64]
LossAt = Callable[[Array, Array], Array]  # (ln F, ln C) -> loss, elementwise

GRID = 65
GOLDEN_STEPS = 40
BISECTIONS = 52
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def minimise_loss(loss_at: LossAt, log_budget: Array, *, interior: bool = True) -> tuple[Array, Array]:
    """Return ln F* and L* for every element of ``log_budget``.

    A scan over F in [1, C] brackets the minimum, golden sections narrow it, and two Newton steps on five-point
    differences remove the square-root-of-epsilon flatness that function values leave.

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
    lower = np.maximum(fractions[best] * log_budget - width, 0.0)
    upper = np.minimum(fractions[best] * log_budget + width, log_budget)
    for _ in range(GOLDEN_STEPS):
        left, right = upper - GOLDEN * (upper - lower), lower + GOLDEN * (upper - lower)
        keep_left = loss_at(left, log_budget) < loss_at(right, log_budget)
        lower, upper = np.where(keep_left, lower, left), np.where(keep_left, right, upper)
    u = 0.5 * (lower + upper)
    h = 5e-3
    for _ in range(2):
        values = [loss_at(u + k * h, log_budget) for k in (-2, -1, 0, 1, 2)]
        slope = (values[0] - 8 * values[1] + 8 * values[3] - values[4]) / (12 * h)
        curvature = (-values[0] + 16 * values[1] - 30 * values[2] + 16 * values[3] - values[4]) / (12 * h * h)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(curvature > 0, -slope / curvature, 0.0)
        u = u + np.clip(step, -h, h)
    return u, loss_at(u, log_budget)


def invert_loss(loss_at: LossAt, loss: Array) -> Array:
    """Return the budget whose optimum has the given loss, by bisection on ln C; infinite beyond 1e280 FLOPs."""
    lower, upper = np.full(loss.shape, 1.0), np.full(loss.shape, 650.0)
    reachable = minimise_loss(loss_at, upper, interior=False)[1] < loss
    for _ in range(BISECTIONS):
        middle = 0.5 * (lower + upper)
        too_little = minimise_loss(loss_at, middle, interior=False)[1] > loss
        lower, upper = np.where(too_little, middle, lower), np.where(too_little, upper, middle)
    with np.errstate(over="ignore"):
        return np.where(reachable, np.exp(0.5 * (lower + upper)), np.inf)
