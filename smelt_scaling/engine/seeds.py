"""Starting points by variable projection: given the exponents, the floor and the amplitudes are a linear problem.

A grid of exponents is solved exactly under non-negativity (by enumerating which coefficients are zero, vectorised over
the grid) for squared residuals relative to the observed losses; the best local minima of the grid start the fit.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.engine.problem import LOG_ZERO, Problem

__all__ = ["projected_starts"]

Array = NDArray[np.float64]

MAX_GRID = 4096  # grid points; coarser per exponent when a law has many
CHUNK = 2_000_000  # elements of the largest temporary


def projected_starts(problem: Problem, count: int) -> Array:
    """Return up to ``count`` starts (k, P) in theta coordinates, best first.

    Local minima of the exponent grid come first, then the remaining grid points by their residual sum of squares.
    """
    grid, shape = _exponent_grid(problem)
    sse, linear = _solve_grid(problem, grid)
    order = np.lexsort((np.arange(len(sse)), sse, ~_local_minima(sse.reshape(shape)).ravel()))
    order = order[np.isfinite(sse[order])][:count]
    size = 1 + len(problem.terms)
    theta = np.column_stack([linear[order], grid[order]])
    total = theta[:, :size].sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        theta[:, 1:size] = np.log(
            np.maximum(theta[:, 1:size], 1e-4 * total)
        )  # a zero amplitude has no logarithm
    return np.where(problem.free, theta, np.nan_to_num(problem.held))


def _exponent_grid(problem: Problem) -> tuple[Array, tuple[int, ...]]:
    names = problem.law.exponents
    offset = len(problem.law.parameters) - len(names)
    free = problem.free[offset:]
    per_axis = int(min(16, MAX_GRID ** (1 / max(free.sum(), 1))))
    axes = []
    for i, name in enumerate(names):
        if not free[i]:
            axes.append(np.array([problem.held[offset + i]]))
        elif name in problem.law.decays:
            axes.append(np.geomspace(0.02, 4.0, per_axis))
        else:
            axes.append(np.array([-0.3, 0.0, 0.1, 0.2, 0.4, 0.7, 1.1])[: max(per_axis, 3)])
    shape = tuple(len(axis) for axis in axes)
    points = list(itertools.product(*axes))  # one empty point where the law has no named exponent
    return np.array(points).reshape(len(points), len(names)), shape


def _solve_grid(problem: Problem, grid: Array) -> tuple[Array, Array]:
    """Non-negative least squares of the linear coefficients at every grid point: sse (G,), coefficients (G, K+1)."""
    n, size = len(problem.weight), 1 + len(problem.terms)
    observed = np.exp(problem.observed) if problem.log_residual else problem.observed
    root = np.sqrt(problem.weight) / (observed if problem.log_residual else 1.0)
    held = problem.held[:size]
    fixed = np.flatnonzero(~np.isnan(held))
    free = np.flatnonzero(np.isnan(held))
    with np.errstate(under="ignore"):
        known = np.array([held[0] if j == 0 else np.exp(max(held[j], LOG_ZERO)) for j in fixed])
    sse, linear = np.full(len(grid), np.inf), np.zeros((len(grid), size))
    for lo in range(0, len(grid), max(1, CHUNK // (n * size))):
        block = slice(lo, lo + max(1, CHUNK // (n * size)))
        points = grid[block]
        basis = np.ones((len(points), size, n))
        for k, term in enumerate(problem.terms, start=1):
            exponents = points[:, term.columns[1:] - size]
            with np.errstate(over="ignore"):
                basis[:, k] = np.exp(exponents @ term.design[:, 1:].T + term.offset)
        basis *= root
        target = observed * root - np.einsum("j,gjn->gn", known, basis[:, fixed])
        linear[block, fixed] = known
        sse[block], linear[block, free] = _nonnegative(basis[:, free], target)
    return sse, linear


def _nonnegative(basis: Array, target: Array) -> tuple[Array, Array]:
    """Exact non-negative least squares of a few columns by trying every support, vectorised over the first axis."""
    count, size = basis.shape[:2]
    with np.errstate(invalid="ignore", over="ignore"):
        gram = np.einsum("gin,gjn->gij", basis, basis)
        moment = np.einsum("gin,gn->gi", basis, target)
        total = np.einsum("gn,gn->g", target, target)
    best, chosen = np.where(np.isfinite(total), total, np.inf), np.zeros((count, size))
    if size == 0:
        return best, chosen
    usable = np.isfinite(gram).all(axis=(1, 2)) & np.isfinite(moment).all(axis=1)
    best[~usable] = np.inf
    for support in itertools.product([False, True], repeat=size):
        on = np.flatnonzero(support)
        if len(on) == 0:
            continue
        sub = gram[:, on][:, :, on]
        diagonal = np.sqrt(np.einsum("gii->gi", sub))
        usable_here = usable & (diagonal > 0).all(axis=1)
        scaled = np.where(
            usable_here[:, None, None],
            sub / (diagonal[:, :, None] * diagonal[:, None, :] + 1e-300),
            np.eye(len(on)),
        )
        right = np.where(usable_here[:, None], moment[:, on] / (diagonal + 1e-300), 0.0)
        regular = np.linalg.det(scaled) > 1e-14
        scaled = np.where(regular[:, None, None], scaled, np.eye(len(on)))
        x = np.linalg.solve(scaled, right[..., None])[..., 0] / (diagonal + 1e-300)
        value = total - np.einsum("gi,gi->g", x, np.where(usable_here[:, None], moment[:, on], 0.0))
        better = usable_here & regular & (x >= 0).all(axis=1) & (value < best)
        best[better] = value[better]
        chosen[better] = 0.0
        chosen[np.ix_(np.flatnonzero(better), on)] = x[better]
    return best, chosen


def _local_minima(values: Array) -> NDArray[np.bool_]:
    """Mark grid points not above any axis neighbour."""
    minimal = np.isfinite(values)
    for axis in range(values.ndim):
        padded = np.pad(
            values, [(1, 1) if a == axis else (0, 0) for a in range(values.ndim)], constant_values=np.inf
        )
        length = values.shape[axis]
        for shift in (0, 2):
            minimal &= values <= np.take(padded, np.arange(shift, shift + length), axis=axis)
    return minimal
