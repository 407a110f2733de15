r"""What runs say about the coefficients of a pair of surfaces, where cells share noise and the two share cells.

In a cell with rows of both architectures the log losses have the covariance ``R + U Sigma U'``: R is the variance of
single rows, U tells the rows of the two apart, and Sigma (2 x 2) is the covariance of the cell's effects. Generalised
least squares of both surfaces together has the information

.. math::
    M = \sum_k J_k' (R^{-1} - R^{-1} U \Sigma (I + N \Sigma)^{-1} U' R^{-1}) J_k, \qquad N = U' R^{-1} U

with J_k block diagonal. For uncorrelated cell effects the blocks are, per architecture,
``[J'J - s_c^2 / (s_r^2 + n s_c^2) J'11'J] / s_r^2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Spread", "cell_information", "cell_sums", "log_determinant", "variance_of"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: A scaled information whose smallest eigenvalue is below this says nothing of some direction.
SINGULAR = 1e-13


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How ln L scatters about the surfaces of a pair.

    Parameters
    ----------
    row_sd, cell_sd : pair of float
        Standard deviations: of single rows, and of what the rows of an architecture in one cell share.
    correlation : float
        Of the cell effects of the two architectures in one cell.
    """

    row_sd: tuple[float, float]
    cell_sd: tuple[float, float]
    correlation: float


def cell_sums(jacobian: Array, cell: Index, count: int) -> tuple[Array, Array, Array]:
    """Return J'J (K, P, P), J'1 (K, P) and the number of rows (K,) of every cell."""
    products = np.zeros((count, jacobian.shape[1], jacobian.shape[1]))
    sums = np.zeros((count, jacobian.shape[1]))
    np.add.at(products, cell, jacobian[:, :, None] * jacobian[:, None, :])
    np.add.at(sums, cell, jacobian)
    return products, sums, np.bincount(cell, minlength=count).astype(np.float64)


def cell_information(
    jacobians: Sequence[Array],
    cells: Sequence[Index],
    count: int,
    spread: Spread,
) -> Array:
    """Return the information of every cell, shape (K, 2P, 2P); that of a design is their sum.

    Parameters
    ----------
    jacobians : pair of array (n, P)
        d ln L / d coordinates of the rows of each architecture.
    cells : pair of int array (n,)
        The cell of each row, counted over the union of both.
    count : int
        Number of cells K.
    spread : Spread
        Of the noise.
    """
    row_sd, cell_sd = spread.row_sd, spread.cell_sd
    parameters = jacobians[0].shape[1]
    information = np.zeros((count, 2 * parameters, 2 * parameters))
    weighted = np.zeros((count, 2 * parameters, 2))  # J' R^-1 U
    rows = np.zeros((count, 2, 2))  # U' R^-1 U
    for a, (jacobian, cell) in enumerate(zip(jacobians, cells, strict=True)):
        products, sums, numbers = cell_sums(jacobian, cell, count)
        own = slice(a * parameters, (a + 1) * parameters)
        information[:, own, own] = products / row_sd[a] ** 2
        weighted[:, own, a] = sums / row_sd[a] ** 2
        rows[:, a, a] = numbers / row_sd[a] ** 2
    shared = spread.correlation * cell_sd[0] * cell_sd[1]
    sigma = np.array([[cell_sd[0] ** 2, shared], [shared, cell_sd[1] ** 2]])
    inner = sigma @ np.linalg.inv(np.eye(2) + rows @ sigma)
    return np.asarray(information - weighted @ inner @ weighted.transpose(0, 2, 1))


def variance_of(information: Array, gradient: Array, free: NDArray[np.bool_]) -> Array:
    """Return g' M^-1 g over the free coordinates; infinite where M leaves a direction open.

    Parameters
    ----------
    information : array (..., Q, Q)
        Information.
    gradient : array (Q,)
        Of the quantity asked for.
    free : bool array (Q,)
        Coordinates that are fitted; the others are known.
    """
    chosen = information[..., free, :][..., free]
    diagonal = np.diagonal(chosen, axis1=-2, axis2=-1)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = chosen * scale[..., :, None] * scale[..., None, :]
    values, vectors = np.linalg.eigh(scaled)
    along = np.einsum("...ij,...i->...j", vectors, gradient[free] * scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.sum(along**2 / values, axis=-1)
    return np.where(values[..., 0] > SINGULAR, found, np.inf)


def log_determinant(information: Array, free: NDArray[np.bool_]) -> Array:
    """Return ln det M over the free coordinates."""
    return np.asarray(np.linalg.slogdet(information[..., free, :][..., free])[1])
