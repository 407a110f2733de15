"""What the Huber fit of each architecture costs against generalised least squares of both: its asymptotic variance.

A fit minimises the sum of Huber losses of its own log residuals, as if rows were independent. With psi the clipped
residual, its covariance is A^-1 B A^-1 (Huber and Ronchetti 2009, section 6.3; clusters as in Liang and Zeger 1986):
A is E[psi'] J'J, and B adds up E[psi psi'] over the rows that share a cell, of both architectures. For normal noise
all moments are closed forms, or one integral over what a cell shares.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.planning.information import Spread, cell_sums

__all__ = ["huber_moments", "huber_variance"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Nodes of the Gauss-Hermite rule over a cell effect; psi smoothed by row noise needs no more.
NODES = 80


def huber_moments(delta: Sequence[float], spread: Spread) -> tuple[Array, Array, Array]:
    """Return E[psi'] (2,), E[psi^2] (2,) and E[psi psi'] (2, 2) of two rows that share a cell.

    Parameters
    ----------
    delta : pair of float
        Thresholds on ln L; infinite for least squares.
    spread : Spread
        Of the noise.

    Examples
    --------
    >>> slope, square, shared = huber_moments(
    ...     [np.inf] * 2, Spread(row_sd=(3.0, 3.0), cell_sd=(4.0, 4.0), correlation=0.5))
    >>> slope.tolist(), square.tolist(), shared.round(9).tolist()
    ([1.0, 1.0], [25.0, 25.0], [[16.0, 8.0], [8.0, 16.0]])
    """
    from scipy.special import erf

    slope, square = np.ones(2), np.empty(2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    for a in range(2):
        sd = float(np.hypot(spread.row_sd[a], spread.cell_sd[a]))
        square[a] = sd**2
        if np.isfinite(delta[a]):
            k = delta[a] / sd
            slope[a] = erf(k / np.sqrt(2))
            peak = k * np.sqrt(2 / np.pi) * np.exp(-(k**2) / 2)
            square[a] = sd**2 * (slope[a] - peak) + delta[a] ** 2 * (1 - slope[a])

    def given(a: int, u: Array) -> Array:
        """Return E[psi] of a row whose cell effect is u standard deviations."""
        return _clipped_mean(spread.cell_sd[a] * u, spread.row_sd[a], delta[a])

    shared = np.empty((2, 2))
    for a, b, r in ((0, 0, 1.0), (1, 1, 1.0), (0, 1, spread.correlation)):
        other = r * nodes[:, None] + np.sqrt(1 - r**2) * nodes[None, :]
        shared[a, b] = shared[b, a] = weights @ (given(a, nodes)[:, None] * given(b, other)) @ weights
    return slope, square, shared


def _clipped_mean(mean: Array, sd: float, bound: float) -> Array:
    """Return the mean of a normal variable clipped to +- bound."""
    from scipy.special import ndtr

    if np.isinf(bound):
        return mean
    low, high = (-bound - mean) / sd, (bound - mean) / sd
    fall = (np.exp(-(high**2) / 2) - np.exp(-(low**2) / 2)) / np.sqrt(2 * np.pi)
    return np.asarray(
        mean * (ndtr(high) - ndtr(low)) - sd * fall + bound * (1 - ndtr(high)) - bound * ndtr(low)
    )


def huber_variance(
    jacobians: Sequence[Array],
    cells: Sequence[Index],
    count: int,
    gradient: Array,
    free: NDArray[np.bool_],
    *,
    delta: Sequence[float],
    spread: Spread,
) -> float:
    """Return the asymptotic variance of g' coordinates of the Huber fits of two architectures.

    Parameters
    ----------
    jacobians, cells, count, spread
        As for `cell_information`.
    gradient, free
        As for `variance_of`.
    delta : pair of float
        Thresholds on ln L.
    """
    slope, square, shared = huber_moments(delta, spread)
    size = jacobians[0].shape[1]
    bread, meat = np.zeros((2 * size, 2 * size)), np.zeros((2 * size, 2 * size))
    sums = []
    for a, (jacobian, cell) in enumerate(zip(jacobians, cells, strict=True)):
        products, totals, _ = cell_sums(jacobian, cell, count)
        own = slice(a * size, (a + 1) * size)
        bread[own, own] = slope[a] * products.sum(axis=0)
        meat[own, own] = (square[a] - shared[a, a]) * products.sum(axis=0) + shared[a, a] * totals.T @ totals
        sums.append(totals)
    meat[:size, size:] = shared[0, 1] * sums[0].T @ sums[1]
    meat[size:, :size] = meat[:size, size:].T
    kept = np.ix_(free, free)
    scale = 1.0 / np.sqrt(np.diagonal(bread)[free])
    scaled = bread[kept] * scale[:, None] * scale[None, :]
    along = scale * np.linalg.solve(scaled, scale * gradient[free])
    return float(along @ meat[kept] @ along)
