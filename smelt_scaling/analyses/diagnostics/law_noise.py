r"""How runs scatter: an error of each run, an effect of its cell, and how far two architectures share that effect.

Moments of the residuals of a least-squares fit, with the exact expectations of the fit linearised at its optimum: a fit
absorbs part of both, so plain variances are too small. With M = I - QQ^T the projection off the Jacobian and B that
onto cell means,

.. math:: E\,r^T r = \sigma\,\mathrm{tr}M + \tau\,\mathrm{tr}(M A A^T), \quad
          E\,r^T B r = \sigma\,\mathrm{tr}(BM) + \tau\,\mathrm{tr}(B M A A^T M),

solved for the two variances: Henderson's method (Searle, Casella and McCulloch 1992, Variance Components, section 5.5).
The covariance of cell effects follows from products of cell sums in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CellNoise", "noise_of"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Cell effects need so many degrees of freedom between cells that the law leaves; with fewer none is told from it.
FEWEST_BETWEEN = 2.0
#: Correlation of cell effects is kept off 1, and errors of runs off 0, so that the likelihood stays finite.
LARGEST_CORRELATION = 0.98
SMALLEST_SHARE = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class _Moments:
    """What one architecture's residuals are expected to be: sums of squares by its two variances."""

    root: Array
    indicator: Array
    expected: Array
    repeats: bool
    between: float
    degrees: float


@dataclass(frozen=True, kw_only=True, eq=False)
class CellNoise:
    """Estimates variances of any number of residuals of one design.

    Parameters
    ----------
    between : tuple of float
        Degrees of freedom between cells that the law leaves to each architecture.
    repeats : tuple of bool
        Whether some cell of each architecture holds several runs; without, a cell effect is part of the run's error.
    """

    between: tuple[float, float]
    repeats: tuple[bool, bool]
    _sides: tuple[_Moments, _Moments]
    _shared: tuple[Index, Index]
    _crossed: float

    def components(self, residuals: Sequence[Array]) -> Array:
        """Return variances (R, 5) in the order of `COMPONENTS` from residuals, (R, n) of each architecture."""
        lanes = len(residuals[0])
        result = np.zeros((lanes, 5))
        sums = []
        for j, (side, residual) in enumerate(zip(self._sides, residuals, strict=True)):
            r = residual * side.root
            total = np.einsum("rn,rn->r", r, r)
            cell = np.einsum("rn,ng->rg", r, side.indicator)
            sums.append(cell)
            pooled = total / side.degrees
            if side.repeats:
                unit = cell / np.sqrt(np.einsum("ng,ng->g", side.indicator, side.indicator))
                known = np.stack([total, np.einsum("rg,rg->r", unit, unit)], axis=1)
                error, effect = np.einsum("jk,rk->jr", np.linalg.inv(side.expected), known)
            else:
                error, effect = pooled, np.zeros(lanes)
            error = np.where(effect > 0, error, pooled)
            result[:, j] = np.maximum(error, SMALLEST_SHARE * pooled)
            result[:, 2 + j] = np.maximum(effect, 0.0)
        if self._crossed > 0:
            first, second = (cell[:, own] for cell, own in zip(sums, self._shared, strict=True))
            limit = LARGEST_CORRELATION * np.sqrt(result[:, 2] * result[:, 3])
            product = np.einsum("rg,rg->r", first, second) / self._crossed
            result[:, 4] = np.clip(product, -limit, limit)
        return result


def noise_of(jacobians: Sequence[Array], weights: Sequence[Array], cells: Sequence[Index]) -> CellNoise:
    """Return the estimator for a design.

    Parameters
    ----------
    jacobians : sequence of two arrays (n, p)
        Derivatives of the residuals of each architecture by its free parameters, at the optimum.
    weights : sequence of two arrays (n,)
        Inverse variances of the errors, up to a constant.
    cells : sequence of two int arrays (n,)
        Cell of each row; equal numbers are one cell.

    Examples
    --------
    >>> one = np.ones((6, 1))  # a mean, and three cells of two runs: the textbook's balanced one-way layout
    >>> noise = noise_of([one, one], [np.ones(6)] * 2, [np.arange(6) // 2] * 2)
    >>> r = np.array([[1.0, 3.0, 5.0, 7.0, -9.0, -7.0]])  # within 2 on 3 d.f.; cells 2, 6, -8: mean square 2 * 52
    >>> noise.components([r, r]).round(9).tolist()  # sigma = 2, tau = (104 - 2) / 2
    [[2.0, 2.0, 51.0, 51.0, 49.98]]
    """
    labels = [np.unique(cell) for cell in cells]
    sides, products = [], []
    common = np.intersect1d(labels[0], labels[1])
    shared = tuple(np.searchsorted(own, common) for own in labels)
    for jacobian, weight, cell, own, both in zip(jacobians, weights, cells, labels, shared, strict=True):
        root = np.sqrt(weight)
        indicator = root[:, None] * (cell[:, None] == own)
        q = _basis(root[:, None] * jacobian)
        caught = q.T @ indicator
        gram = indicator.T @ indicator - caught.T @ caught  # A' M A
        length = np.sqrt(np.diag(indicator.T @ indicator))
        unit = gram / length / length[:, None]
        between, degrees = float(np.trace(unit)), float(len(root) - q.shape[1])
        expected = np.array([[degrees, np.trace(gram)], [between, np.sum((gram / length[:, None]) ** 2)]])
        sides.append(
            _Moments(
                root=root,
                indicator=indicator,
                expected=expected,
                repeats=len(own) < len(cell),
                between=between,
                degrees=degrees,
            )
        )
        products.append(gram[np.ix_(both, both)])
    crossed = float(np.sum(products[0] * products[1])) if all(side.repeats for side in sides) else 0.0
    return CellNoise(
        between=(sides[0].between, sides[1].between),
        repeats=(sides[0].repeats, sides[1].repeats),
        _sides=(sides[0], sides[1]),
        _shared=(shared[0], shared[1]),
        _crossed=crossed,
    )


def _basis(columns: Array) -> Array:
    """Return an orthonormal basis (n, rank) of the columns."""
    norms = np.linalg.norm(columns, axis=0)
    left, singular, _ = np.linalg.svd(columns / np.where(norms > 0, norms, 1.0), full_matrices=False)
    return np.asarray(left[:, singular > 1e-10 * max(1.0, float(singular.max(initial=0.0)))])
