"""Certifying an optimum, whoever found it.

An optimiser's own "success" means little here: the objective is about 1e-4, so SciPy's default tolerances, relative to
max(|f|, 1), are met far from the optimum. The certificate asks the exact derivatives instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.engine.cholesky import solve_held
from smelt_scaling.engine.newton import DECREMENT
from smelt_scaling.engine.objective import Smooth

__all__ = ["Verdict", "certify"]

Array = NDArray[np.float64]

#: Residuals this small are rounding; noise-free data end there, where f cannot get relatively smaller.
NOISE_FREE = 1e-12

#: Curvature below this fraction of delta times the total weight is rounding, not curvature.
FLAT = 1e-10


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdict:
    """What the derivatives say about each lane.

    Parameters
    ----------
    objective : array (R,)
        Objective.
    decrement : array (R,)
        Newton decrement g' H^-1 g / 2 over free coordinates, relative to the objective.
    positive : bool array (R,)
        Whether the Hessian of the free coordinates is positive definite.
    at_bound : bool array (R, P)
        Parameters on their bound.
    certified : bool array (R,)
        Decrement, curvature and gradient signs all pass.
    """

    objective: Array
    decrement: Array
    positive: NDArray[np.bool_]
    at_bound: NDArray[np.bool_]
    certified: NDArray[np.bool_]


def certify(
    objective: Smooth,
    theta: Array,
    weights: Array,
    delta: float,
    *,
    observed: Array | None = None,
    frozen: NDArray[np.bool_] | None = None,
) -> Verdict:
    """Judge lanes: theta (R, P), weights (R, n), observed (n,) or (R, n), frozen (R, P) coordinates not judged.

    Certified iff (i) the Newton decrement is at most 1e-12 of the objective, or the objective is rounding;
    (ii) the free Hessian is positive definite (relative pivot 1e-13); (iii) the gradient pushes outwards at every
    bound.
    """
    problem = objective.problem
    data = problem.observed if observed is None else observed
    f, g, h = objective.derivatives(theta, weights, data, np.full(len(theta), delta))
    held = np.broadcast_to(~problem.free, theta.shape)
    if frozen is not None:
        held = held | frozen
    at_lower, at_upper = (theta <= problem.lower) & ~held, (theta >= problem.upper) & ~held
    at_bound = at_lower | at_upper
    fixed = held | at_bound
    step, positive = solve_held(h, -g, fixed, np.zeros_like(theta))
    decrement = 0.5 * np.abs(np.einsum("ri,ri->r", g, np.where(fixed, 0.0, step)))
    rounding = f <= 0.5 * weights.sum(axis=1) * NOISE_FREE**2
    outward = np.all((~at_lower | (g >= 0)) & (~at_upper | (g <= 0)), axis=1)
    if np.isfinite(delta):  # where no residual is within delta the curvature may be nothing but rounding
        flat = FLAT * delta * weights.sum(axis=1, keepdims=True)
        positive &= np.all(fixed | (np.einsum("rii->ri", h) > flat), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(rounding, 0.0, decrement / f)
    certified = (rounding | (relative <= DECREMENT)) & positive & outward
    return Verdict(objective=f, decrement=relative, positive=positive, at_bound=at_bound, certified=certified)
