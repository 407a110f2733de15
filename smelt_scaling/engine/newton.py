"""Damped Newton with exact Hessians and bounds, over many replicates at once.

Huber's objective with a small delta is close to least absolute deviations, so its curvature jumps where residuals
cross delta. Each lane therefore walks down a ladder of deltas, warm-starting the next from the last, and damps its own
steps. Lanes advance independently; finished ones are taken out of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.engine.cholesky import solve_held
from smelt_scaling.engine.objective import Smooth

__all__ = ["DECREMENT", "Optimum", "delta_ladder", "minimise"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Stop when half the squared Newton step, in the metric of the Hessian, is this fraction of the objective.
DECREMENT = 1e-12

#: Enough on every rung of the ladder but the last.
RUNG_DECREMENT = 1e-3

MAX_ITERATIONS = 2000
MAX_STEP = 2.0  # in theta coordinates, where everything of interest is of order one
STALL = 3e-15  # a predicted gain below this fraction of f is lost in rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Optimum:
    """Where each lane ended.

    Parameters
    ----------
    theta : array (R, P)
        Parameters.
    objective : array (R,)
        Objective at the last rung.
    evaluations : int array (R,)
        Evaluations of f, g and H.
    """

    theta: Array
    objective: Array
    evaluations: NDArray[np.int64]


def delta_ladder(delta: float) -> Array:
    """Return the rungs from a mild start of 0.03 down to ``delta``.

    Examples
    --------
    >>> delta_ladder(1e-3).round(5).tolist()
    [0.03, 0.01282, 0.00548, 0.00234, 0.001]
    >>> delta_ladder(float("inf")).tolist(), delta_ladder(0.1).tolist()
    ([inf], [0.1])
    """
    if not delta < 0.03:
        return np.array([delta])
    rungs = 2 + int(np.ceil(np.log(0.03 / delta) / np.log(2.5) - 1))
    return np.geomspace(0.03, delta, rungs)


def minimise(
    objective: Smooth,
    start: Array,
    weights: Array,
    deltas: Array,
    *,
    observed: Array | None = None,
    frozen: Mask | None = None,
    max_iterations: int = MAX_ITERATIONS,
) -> Optimum:
    """Minimise every lane of one block.

    Parameters
    ----------
    objective : Smooth
        The problem, such as `Objective`.
    start : array (R, P)
        Feasible starts; held parameters are reset to their values.
    weights : array (R, n)
        Row weights of each lane.
    deltas : array (rungs,)
        Ladder of deltas; the last one defines the result.
    observed : array (n,) or (R, n), optional
        Scaled observations in place of the problem's own.
    frozen : bool array (R, P), optional
        Coordinates that a lane keeps at its start.
    max_iterations : int
        Newton steps per lane.
    """
    problem = objective.problem
    data = np.atleast_2d(problem.observed if observed is None else observed)
    lanes = len(start)
    bounds = (problem.lower, problem.upper)
    theta = np.where(problem.free, np.clip(start, *bounds), np.nan_to_num(problem.held))
    held = np.repeat(~problem.free[None, :], lanes, axis=0)
    if frozen is not None:
        held |= frozen
    result_theta, result_f = theta.copy(), np.empty(lanes)
    evaluations = np.ones(lanes, dtype=np.int64)

    active = np.arange(lanes)
    rung = np.zeros(lanes, dtype=np.intp)
    damping = np.full(lanes, 1e-8)
    steps = np.zeros(lanes, dtype=np.int64)
    last = len(deltas) - 1

    def rows(which: NDArray[np.intp]) -> Array:
        return data if len(data) == 1 else data[which]

    f, g, h = objective.derivatives(theta, weights, rows(active), deltas[rung])
    while len(active):
        diagonal = np.abs(np.einsum("rii->ri", h)) + 1e-12
        damped = h + np.einsum("ri,ij->rij", damping[:, None] * diagonal, np.eye(h.shape[1]))
        step, positive = _bounded_step(damped, g, theta, bounds, held)
        predicted = -np.einsum("ri,ri->r", g, step) - 0.5 * np.einsum("ri,rij,rj->r", step, h, step)
        largest = np.abs(step).max(axis=1)
        tolerance = np.where(rung == last, DECREMENT, RUNG_DECREMENT)
        # a step clamped at a bound may point uphill on the model: not done, damp it
        uphill = positive & (predicted < -STALL * f)
        positive &= ~uphill
        done = positive & (predicted <= tolerance * f) & (damping <= 1e-3)
        attempt = positive & ~done & (largest <= MAX_STEP)
        damping = np.where(positive, damping, np.maximum(8 * damping, 1e-4))
        damping = np.where(positive & ~done & ~attempt, np.maximum(4 * damping, 1e-4), damping)
        steps += 1
        lost = (damping > 1e16) | (steps > max_iterations)
        advance = done & (rung < last)
        rung = rung + advance
        damping = np.where(advance, 1e-8, damping)

        moving = np.flatnonzero(attempt | advance)
        if len(moving):
            go = attempt[:, None] & ~held
            proposal = np.where(go, _onto_bounds(theta + step, *bounds), theta)[moving]
            who = active[moving]
            new_f, new_g, new_h = objective.derivatives(
                proposal, weights[who], rows(who), deltas[rung[moving]]
            )
            evaluations[who] += 1
            expected = predicted[moving]
            ratio = np.where(expected > 0, (f[moving] - new_f) / np.where(expected > 0, expected, 1.0), -1.0)
            accept = advance[moving] | ((new_f < f[moving]) & (ratio > 1e-4))
            lost[moving[~accept & (expected <= STALL * f[moving])]] = True
            won = moving[accept]
            theta[won], f[won], g[won], h[won] = proposal[accept], new_f[accept], new_g[accept], new_h[accept]
            damping[moving] = _next_damping(damping[moving], advance[moving], accept, ratio)

        finished = (done & ~advance) | lost
        if finished.any():
            ended = active[finished]
            result_theta[ended], result_f[ended] = theta[finished], f[finished]
            # a lane lost on an early rung has its value there; bring it to the last delta
            early = ended[rung[finished] < last]
            if len(early):
                result_f[early] = objective.value(
                    result_theta[early], weights[early], rows(early), np.full(len(early), deltas[-1])
                )
            keep = ~finished
            active, theta, f, g, h = active[keep], theta[keep], f[keep], g[keep], h[keep]
            damping, rung, steps, held = damping[keep], rung[keep], steps[keep], held[keep]
    return Optimum(theta=result_theta, objective=result_f, evaluations=evaluations)


def _onto_bounds(point: Array, lower: Array, upper: Array) -> Array:
    """Put on a bound what crosses it or rounding leaves beside it: theta + (bound - theta) need not be the bound."""
    below = 1e-14 * np.where(np.isfinite(lower), np.abs(lower), 0.0)
    above = 1e-14 * np.where(np.isfinite(upper), np.abs(upper), 0.0)
    return np.where(point <= lower + below, lower, np.where(point >= upper - above, upper, point))


def _bounded_step(
    matrix: Array, g: Array, theta: Array, bounds: tuple[Array, Array], held: Mask
) -> tuple[Array, Mask]:
    """Newton step that stays feasible: the coordinate that meets its bound first is put on it, the rest re-solved."""
    lower, upper = bounds
    fixed = held | ((theta <= lower) & (g >= 0)) | ((theta >= upper) & (g <= 0))
    target = np.zeros_like(theta)
    step, positive = solve_held(matrix, -g, fixed, target)
    for _ in range(len(lower)):
        end = theta + step
        crossing = positive[:, None] & ~fixed & ((end < lower) | (end > upper))
        which = np.flatnonzero(crossing.any(axis=1))
        if len(which) == 0:
            break
        room = np.where(step[which] < 0, lower - theta[which], upper - theta[which])
        share = np.where(crossing[which], room / np.where(crossing[which], step[which], 1.0), np.inf)
        first = np.argmin(share, axis=1)
        target[which, first] = room[np.arange(len(which)), first]
        fixed[which, first] = True
        step[which], positive[which] = solve_held(matrix[which], -g[which], fixed[which], target[which])
    return step, positive


def _next_damping(damping: Array, advance: Mask, accept: Mask, ratio: Array) -> Array:
    grown = np.where(accept, np.maximum(4 * damping, 1e-6), np.maximum(8 * damping, 1e-5))
    shrunk = np.where(ratio > 0.75, np.maximum(0.1 * damping, 1e-12), damping)
    return np.where(advance, damping, np.where(accept & (ratio >= 0.25), shrunk, grown))
