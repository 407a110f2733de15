"""A batched Cholesky solve with held coordinates, unrolled over the few parameters and vectorised over replicates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["PIVOT", "solve_held"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: A pivot below this fraction of its diagonal entry counts as singular.
PIVOT = 1e-13


@np.errstate(over="ignore", invalid="ignore")  # numbers run away where not positive definite
def solve_held(matrix: Array, rhs: Array, held: Mask, step: Array) -> tuple[Array, Mask]:
    """Solve ``matrix @ x = rhs`` with ``x = step`` on held coordinates.

    Parameters
    ----------
    matrix : array (R, P, P)
        Symmetric.
    rhs, step : array (R, P)
        Right-hand side, and the values of held coordinates.
    held : bool array (R, P)
        Coordinates that are not solved for.

    Returns
    -------
    x : array (R, P)
        The solution; meaningless where not positive definite.
    positive : bool array (R,)
        Whether the matrix of the free coordinates is positive definite (relative pivot `PIVOT`).

    Examples
    --------
    >>> m = np.array([[[4.0, 2.0], [2.0, 3.0]]])
    >>> x, ok = solve_held(m, np.array([[2.0, 3.0]]), np.array([[False, False]]), np.zeros((1, 2)))
    >>> (x.round(12) + 0.0).tolist(), ok.tolist()
    ([[0.0, 1.0]], [True])
    """
    size = rhs.shape[1]
    fixed = np.where(held, step, 0.0)
    right = np.where(held, step, rhs - np.einsum("rij,rj->ri", matrix, fixed)).T.copy()
    a = np.ascontiguousarray(matrix.transpose(1, 2, 0))  # (P, P, R): every entry a contiguous vector
    out = held.T
    positive = np.ones(len(rhs), dtype=bool)
    factor: list[list[Array]] = [[] for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            entry = a[i, j].copy() if i == j else np.where(out[i] | out[j], 0.0, a[i, j])
            if i == j:
                entry[out[i]] = 1.0
                diagonal = np.abs(entry)
            for k in range(j):
                entry -= factor[i][k] * factor[j][k]
            if i == j:
                good = entry > PIVOT * diagonal + 1e-300
                positive &= good
                factor[i].append(np.sqrt(np.where(good, entry, 1.0)))
            else:
                factor[i].append(entry / factor[j][j])
    for i in range(size):
        for k in range(i):
            right[i] -= factor[i][k] * right[k]
        right[i] /= factor[i][i]
    for i in reversed(range(size)):
        for k in range(i + 1, size):
            right[i] -= factor[k][i] * right[k]
        right[i] /= factor[i][i]
    return np.ascontiguousarray(right.T), positive
