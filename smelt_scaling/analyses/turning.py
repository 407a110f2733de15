"""Where a gain peaks, and where it changes sign.

If the target's irreducible loss is the higher one, its gain cannot grow for ever: it peaks and turns. A table of gains
without these budgets invites an extrapolation the surfaces themselves contradict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.frontier import Frontier, log_multiplier

__all__ = ["turnover"]

#: The search range, in FLOPs: far beyond anything trained or planned.
LOWEST, HIGHEST, POINTS = 1e12, 1e34, 4001


def turnover(target: Frontier, reference: Frontier, sparsity: float | None) -> dict[str, Any]:
    """Return the peak and the zero crossings of a gain between 1e12 and 1e34 FLOPs.

    Returns
    -------
    dict
        ``sparsity``; ``peak_budget`` and ``peak_gain`` (None if the gain has no interior peak); ``zero_crossings``
        (budgets, ascending); ``unreachable_from`` (the first budget at which the reference cannot follow, or None).
    """
    from scipy.optimize import brentq, minimize_scalar

    def m(log_budget: Any) -> Any:
        return log_multiplier(target, reference, log_budget, sparsity)

    grid = np.linspace(np.log(LOWEST), np.log(HIGHEST), POINTS if target.closed_form else 61)
    values = m(grid)
    finite = np.isfinite(values)
    sign = np.sign(values)
    crossings = [
        float(np.exp(brentq(lambda x: float(m(x)), grid[i], grid[i + 1], xtol=1e-12)))
        for i in range(len(grid) - 1)
        if finite[i] and finite[i + 1] and sign[i] * sign[i + 1] < 0
    ]
    peak_budget = peak_gain = None
    if finite.all() and np.any(values != 0):
        top = int(np.argmax(values))
        if 0 < top < len(grid) - 1:
            best = minimize_scalar(
                lambda x: -float(m(x)),
                bounds=(grid[top - 1], grid[top + 1]),
                method="bounded",
                options={"xatol": 1e-9},
            )
            peak_budget, peak_gain = float(np.exp(best.x)), float(-np.expm1(best.fun))
    lost = np.flatnonzero(~finite)
    return {
        "sparsity": sparsity,
        "peak_budget": peak_budget,
        "peak_gain": peak_gain,
        "zero_crossings": crossings,
        "unreachable_from": None if len(lost) == 0 else _edge(m, grid, int(lost[0])),
    }


def _edge(m: Callable[[Any], Any], grid: NDArray[np.float64], first: int) -> float:
    """Return the budget at which the multiplier stops being finite, by bisection in front of a grid point."""
    if first == 0:
        return float(np.exp(grid[0]))
    finite, infinite = grid[first - 1], grid[first]
    for _ in range(40):
        middle = 0.5 * (finite + infinite)
        finite, infinite = (middle, infinite) if np.isfinite(m(middle)) else (finite, middle)
    return float(np.exp(infinite))
