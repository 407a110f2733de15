r"""The weighted Huber objective with its gradient and exact Hessian, for many replicates at once.

.. math::
    f = \sum_i w_i \rho_\delta(r_i), \quad r = \ln m - \ln L \ \text{(or } m - L), \quad m = E + \sum_k T_k

With l = dr/dtheta and psi = clip(r, -delta, delta):

.. math:: g = \sum w \psi\, l, \qquad H = \sum w [(\psi' - \psi) l l^T + \psi \sum_k p_k z_k z_k^T], \quad p_k = T_k/m

(for plain residuals p = T and the ``-psi`` falls away). Every sum over rows is one matrix product of an
(R, n) array with fixed products of design columns, so no (R, n, P) array is ever built.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.engine.problem import Problem

__all__ = ["PAD", "Bounded", "Objective", "Smooth"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Bits of a matrix product depend on its number of rows, so blocks are padded to a multiple of this.
PAD = 64

#: Rows of data, and rows times lanes, handled at once: a dozen arrays of this size stay in cache.
POINTS, ELEMENTS = 512, 32_768


class Bounded(Protocol):
    """What a minimiser knows of a problem beside its derivatives."""

    @property
    def observed(self) -> Array:
        """Scaled observations of every lane that brings none of its own."""

    @property
    def free(self) -> Mask:
        """Which parameters are fitted, shape (P,)."""

    @property
    def held(self) -> Array:
        """Values of those that are not."""

    @property
    def lower(self) -> Array:
        """Lower bounds."""

    @property
    def upper(self) -> Array:
        """Upper bounds."""


class Smooth(Protocol):
    """An objective with exact derivatives, lane by lane."""

    @property
    def problem(self) -> Bounded:
        """Bounds and held parameters."""

    def value(self, theta: Array, weights: Array, observed: Array, delta: Array) -> Array:
        """Return f, shape (R,)."""

    def derivatives(
        self, theta: Array, weights: Array, observed: Array, delta: Array
    ) -> tuple[Array, Array, Array]:
        """Return f (R,), g (R, P) and H (R, P, P)."""


class _TermKernel:
    """Fixed products of one term's design, restricted to a slice of the rows."""

    def __init__(self, columns: NDArray[np.intp], design: Array, offset: Array) -> None:
        self.columns = columns
        self.design = design
        rows, self.inverse = np.unique(np.column_stack([design, offset]), axis=0, return_inverse=True)
        self.inverse = self.inverse.ravel()
        self.repeats = len(rows) < len(design)
        if not self.repeats:
            rows = np.column_stack([design, offset])
        self.unique_design, self.unique_offset = np.ascontiguousarray(rows[:, :-1].T), rows[:, -1]

    def exp(self, theta: Array) -> Array:
        value = theta[:, self.columns] @ self.unique_design
        value += self.unique_offset
        np.exp(value, out=value)
        return value.take(self.inverse, axis=1) if self.repeats else value


class _PairKernel:
    """Where the products of two terms' columns land in the upper triangle of H."""

    def __init__(self, first: _TermKernel, second: _TermKernel, size: int) -> None:
        products: dict[int, Array] = {}
        same = first is second
        for a, row in enumerate(first.columns):
            for b, column in enumerate(second.columns):
                if same and row > column:
                    continue
                low, high = min(row, column), max(row, column)
                twice = (
                    2.0 if not same and row == column else 1.0
                )  # a tied exponent meets itself in both orders
                value = twice * first.design[:, a] * second.design[:, b]
                key = int(low * size + high)
                products[key] = products.get(key, 0.0) + value
        self.entries = np.array(list(products))
        self.products = np.stack(list(products.values()), axis=1)


class _Slice:
    """Everything fixed for one slice of the rows."""

    def __init__(self, problem: Problem, rows: slice) -> None:
        self.rows = rows
        self.terms = [_TermKernel(t.columns, t.design[rows], t.offset[rows]) for t in problem.terms]
        size = len(problem.held)
        self.pairs = [
            (i, j, _PairKernel(self.terms[i], self.terms[j], size))
            for i in range(len(self.terms))
            for j in range(i, len(self.terms))
        ]


class Objective:
    """Evaluate one problem for many parameter vectors and weightings.

    Parameters
    ----------
    problem : Problem
        Data, law and constraints.

    Examples
    --------
    >>> from smelt_scaling.engine.problem import make_problem
    >>> from smelt_scaling.laws import LAWS
    >>> C = np.array([1e18, 1e19, 1e20])
    >>> problem = make_problem(LAWS["power-c"], {"C": C}, 1.5 + 80 * C**-0.1, np.ones(3), pins={})
    >>> theta = problem.centred(np.array([[1.5, 80.0, 0.1]]))
    >>> bool(Objective(problem).value(theta, np.ones((1, 3)), problem.observed, np.array([1e-3]))[0] < 1e-28)
    True
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        n = len(problem.weight)
        self._slices = [_Slice(problem, slice(lo, min(lo + POINTS, n))) for lo in range(0, n, POINTS)]

    def value(self, theta: Array, weights: Array, observed: Array, delta: Array) -> Array:
        """Return f, shape (R,), for theta (R, P), weights (R, n), observed (n,) or (R, n), delta (R,)."""
        count = len(theta)
        theta, weights, observed, delta = _pad(theta, weights, np.atleast_2d(observed), delta)
        f = np.zeros(len(theta))
        for lanes in self._tiles(len(theta)):
            own, own_observed = theta[lanes], observed[lanes] if len(observed) > 1 else observed
            for part in self._slices:
                terms = [t.exp(own) for t in part.terms]
                r, psi = self._residuals(part, terms, own, own_observed, delta[lanes])[1:3]
                f[lanes] += np.einsum("ij,ij,ij->i", weights[lanes, part.rows], psi, r - 0.5 * psi)
        return f[:count]

    def loss_of_rows(self, theta: Array, delta: float) -> Array:
        """Return rho(r) of every row, shape (R, n), against the problem's own data."""
        theta_, observed, deltas = _pad(
            theta, np.atleast_2d(self.problem.observed), np.full(len(theta), delta)
        )
        parts = []
        for part in self._slices:
            r, psi = self._residuals(part, [t.exp(theta_) for t in part.terms], theta_, observed, deltas)[1:3]
            parts.append(psi * (r - 0.5 * psi))
        return np.concatenate(parts, axis=1)[: len(theta)]

    def derivatives(
        self, theta: Array, weights: Array, observed: Array, delta: Array
    ) -> tuple[Array, Array, Array]:
        """Return f (R,), g (R, P) and the symmetric H (R, P, P); arguments as `value`."""
        count, size = theta.shape
        theta, weights, observed, delta = _pad(theta, weights, np.atleast_2d(observed), delta)
        lanes = len(theta)
        f, g, upper = np.zeros(lanes), np.zeros((lanes, size)), np.zeros((lanes, size * size))
        for tile in self._tiles(lanes):
            own_observed = observed[tile] if len(observed) > 1 else observed
            for part in self._slices:
                into = (f[tile], g[tile], upper[tile])
                self._add_slice(part, theta[tile], weights[tile, part.rows], own_observed, delta[tile], *into)
        hessian = upper.reshape(lanes, size, size)
        lower = np.tril_indices(size, -1)
        hessian[:, lower[0], lower[1]] = hessian[:, lower[1], lower[0]]
        return f[:count], g[:count], hessian[:count]

    def gradient(self, theta: Array, weights: Array, observed: Array, delta: Array) -> tuple[float, Array]:
        """Return f and g (P,) of a single lane; arguments as `value`, with one row each.

        For optimisers that ask one point at a time: no Hessian, and no padding, since a lone lane is always alone.
        """
        f, g = 0.0, np.zeros(theta.shape[1])
        for part in self._slices:
            terms = [t.exp(theta) for t in part.terms]
            inverse, r, psi = self._residuals(part, terms, theta, np.atleast_2d(observed), delta)
            weighted = weights[:, part.rows] * psi
            f += float(np.vdot(weighted, r - 0.5 * psi))
            weighted *= inverse
            g[0] += weighted.sum()
            for kernel, term in zip(part.terms, terms, strict=True):
                g[kernel.columns] += (weighted * term)[0] @ kernel.design
        return f, g

    def _tiles(self, lanes: int) -> list[slice]:
        """Split lanes into blocks, each a multiple of `PAD`, that fill about `ELEMENTS` with one slice of rows."""
        rows = min(len(self.problem.weight), POINTS)
        tile = max(PAD, ELEMENTS // rows // PAD * PAD)
        return [slice(lo, min(lo + tile, lanes)) for lo in range(0, lanes, tile)]

    def _residuals(
        self, part: _Slice, terms: list[Array], theta: Array, observed: Array, delta: Array
    ) -> tuple[Array, Array, Array]:
        """Return 1/m (or 1), r and psi."""
        m = terms[0].copy() if len(terms) == 1 else terms[0] + terms[1]
        for term in terms[2:]:
            m += term
        m += theta[:, :1]
        if self.problem.log_residual:
            inverse = 1.0 / m
            r = np.log(m, out=m)
        else:
            inverse = np.ones_like(m)
            r = m
        r -= observed[:, part.rows]
        limit = delta[:, None]
        return inverse, r, np.clip(r, -limit, limit)

    def _add_slice(
        self,
        part: _Slice,
        theta: Array,
        weights: Array,
        observed: Array,
        delta: Array,
        f: Array,
        g: Array,
        upper: Array,
    ) -> None:
        terms = [t.exp(theta) for t in part.terms]
        inverse, r, psi = self._residuals(part, terms, theta, observed, delta)
        f += np.einsum("ij,ij,ij->i", weights, psi, r - 0.5 * psi)
        curvature = np.where(psi == r, weights, 0.0)
        psi *= weights
        if self.problem.log_residual:
            curvature -= psi
            for term in terms:
                term *= inverse
        g[:, 0] += np.einsum("ij,ij->i", psi, inverse)
        by_floor = curvature * inverse
        upper[:, 0] += np.einsum("ij,ij->i", by_floor, inverse)
        for kernel, term in zip(part.terms, terms, strict=True):
            g[:, kernel.columns] += (psi * term) @ kernel.design
            upper[:, kernel.columns] += (by_floor * term) @ kernel.design  # row 0 of H: columns are > 0
        for i, j, pair in part.pairs:
            product = curvature * terms[i]
            product *= terms[j]
            if i == j:
                product += psi * terms[i]
            upper[:, pair.entries] += product @ pair.products


def _pad(*arrays: Array) -> list[Array]:
    """Repeat the last lane until there is a multiple of `PAD` of them; an array of one lane for all stays as it is."""
    lanes = len(arrays[0])
    extra = -lanes % PAD
    if extra == 0:
        return list(arrays)
    return [np.concatenate([a, np.repeat(a[-1:], extra, axis=0)]) if len(a) == lanes else a for a in arrays]
