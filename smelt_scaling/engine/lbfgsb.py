"""SciPy's L-BFGS-B with settings under which it reaches the optimum: the paper's optimiser, kept for parity.

The objective is multiplied by 1e6 because ``ftol`` is relative to max(|f|, 1); with defaults on an objective of 1e-4
the search stops next to its start and reports success.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.engine.newton import Optimum
from smelt_scaling.engine.objective import Objective

__all__ = ["OPTIONS", "minimise_lbfgsb"]

Array = NDArray[np.float64]

SCALE = 1e6
OPTIONS: Any = {"maxiter": 20_000, "maxfun": 40_000, "maxcor": 20, "ftol": 1e-15, "gtol": 1e-9}


def minimise_lbfgsb(
    objective: Objective,
    start: Array,
    weights: Array,
    deltas: Array,
    *,
    observed: Array | None = None,
    frozen: NDArray[np.bool_] | None = None,
) -> Optimum:
    """Minimise lane by lane at the last delta; arguments and result as `smelt_scaling.engine.newton.minimise`."""
    from scipy.optimize import Bounds, minimize
    from threadpoolctl import threadpool_limits

    problem = objective.problem
    lanes = len(start)
    data = np.atleast_2d(problem.observed if observed is None else observed)
    theta = np.where(problem.free, np.clip(start, problem.lower, problem.upper), np.nan_to_num(problem.held))
    f, evaluations = np.empty(lanes), np.empty(lanes, dtype=np.int64)
    delta = deltas[-1:]
    # SciPy brings a BLAS of its own, which a limit set before its import does not reach
    with threadpool_limits(limits=1):
        for lane in range(lanes):
            free = problem.free if frozen is None else problem.free & ~frozen[lane]
            bounds = Bounds(problem.lower[free], problem.upper[free])
            row, y = weights[lane : lane + 1], data[lane : lane + 1] if len(data) > 1 else data

            scaled = _scaled_objective(objective, theta[lane], free, row, y, delta)
            start_free: Any = theta[lane, free]
            found = minimize(scaled, start_free, jac=True, method="L-BFGS-B", bounds=bounds, options=OPTIONS)
            theta[lane, free] = found.x
            f[lane], evaluations[lane] = found.fun / SCALE, found.nfev
    return Optimum(theta=theta, objective=f, evaluations=evaluations)


def _scaled_objective(
    objective: Objective, point: Array, free: NDArray[np.bool_], weights: Array, observed: Array, delta: Array
) -> Callable[[Array], tuple[float, Array]]:
    """Return value and gradient of the free coordinates of one lane, times `SCALE`."""

    def scaled(x: Array) -> tuple[float, Array]:
        theta = point[None, :].copy()
        theta[0, free] = x
        with np.errstate(over="ignore", invalid="ignore"):  # a line search may try steps beyond any double
            value, gradient = objective.gradient(theta, weights, observed, delta)
        return SCALE * value, SCALE * gradient[free]

    return scaled
