r"""The Gaussian likelihood of two architectures whose runs share random effects of their cells.

The residual of row i of architecture j in cell g is ``u_jg + e_ji``: an effect of the cell of variance tau_j, whose
covariance between the architectures is kappa, and an error of variance sigma_j / w_i (Pinheiro and Bates 2000,
Mixed-Effects Models in S and S-PLUS, section 7.1). At given variances minus the log likelihood is, up to a constant,

.. math:: f = \tfrac12 r^T V^{-1} r = \tfrac12 \sum_j \frac{1}{\sigma_j} \sum_i w_i (r_i - \bar r_g)^2
              + \tfrac12 \sum_g \bar r_g^T C_g^{-1} \bar r_g, \quad
          C_g = \begin{pmatrix} \tau_1 + \sigma_1/\omega_{1g} & \kappa \\
                \kappa & \tau_2 + \sigma_2/\omega_{2g} \end{pmatrix}

with the weighted means of each cell and the sums omega of its weights: V is never built.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.engine.problem import Problem

__all__ = ["COMPONENTS", "RandomIntercepts"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: What a lane's row of variances holds: of errors and of cells of each architecture, and the covariance of cells.
COMPONENTS = ("sigma_1", "sigma_2", "tau_1", "tau_2", "kappa")


class _Part:
    """One architecture with its rows in the order of their cells."""

    def __init__(self, problem: Problem, cell: Index) -> None:
        self.problem = problem
        self.order = np.argsort(cell, kind="stable")
        ordered = cell[self.order]
        self.starts = np.flatnonzero(np.r_[True, np.diff(ordered) > 0])
        self.own = ordered[self.starts]  # its cells, as positions in the union
        self.row = np.repeat(np.arange(len(self.own)), np.diff(np.r_[self.starts, len(ordered)]))
        self.weight = problem.weight[self.order]
        self.total = np.add.reduceat(self.weight, self.starts)
        self.terms = [
            (term.columns, np.ascontiguousarray(term.design[self.order].T), term.offset[self.order])
            for term in problem.terms
        ]

    def terms_at(self, theta: Array) -> list[Array]:
        """Return every term (R, n)."""
        result = []
        for columns, design, offset in self.terms:
            # row by row, not as a matrix product, whose bits depend on the number of lanes
            value = offset + theta[:, columns[0], None]
            for column, line in zip(columns[1:], design[1:], strict=True):
                value = value + theta[:, column, None] * line
            result.append(np.exp(value))
        return result

    def residual(self, theta: Array, terms: list[Array], observed: Array) -> tuple[Array, Array]:
        """Return the prediction and the residual, (R, n) each."""
        m = theta[:, :1] + sum(terms)
        with np.errstate(invalid="ignore", divide="ignore"):
            r = np.log(m) if self.problem.log_residual else m
        return m, r - observed[:, self.order]

    def jacobian(self, terms: list[Array], m: Array) -> Array:
        """Return d r / d theta (R, P, n), and turn every term into its share of m where residuals are logarithms."""
        scale = 1.0 / m if self.problem.log_residual else np.ones_like(m)
        jacobian = np.zeros((len(m), len(self.problem.held), m.shape[1]))
        jacobian[:, 0] = scale
        for (columns, design, _), term in zip(self.terms, terms, strict=True):
            term *= scale
            jacobian[:, columns] += term[:, None] * design
        return jacobian

    def means(self, values: Array) -> Array:
        """Return the weighted means of cells along the last axis."""
        return np.asarray(np.add.reduceat(values * self.weight, self.starts, axis=-1) / self.total)


class RandomIntercepts:
    """Objective of the stacked parameters of two architectures; see the module.

    Parameters
    ----------
    problems : sequence of two Problems
        The architectures.
    cells : sequence of two int arrays (n,)
        Position of each row's cell in the union of the cells of both.

    Notes
    -----
    ``weights`` of its methods are the variances of each lane, (R, 5) in the order of `COMPONENTS`; ``delta`` plays no
    part.
    """

    def __init__(self, problems: Sequence[Problem], cells: Sequence[Index]) -> None:
        self._parts = [_Part(problem, cell) for problem, cell in zip(problems, cells, strict=True)]
        self._union = 1 + max(int(cell.max()) for cell in cells)
        sizes = [len(problem.held) for problem in problems]
        rows = [len(problem.weight) for problem in problems]
        self._theta = (slice(0, sizes[0]), slice(sizes[0], sum(sizes)))
        self._rows = (slice(0, rows[0]), slice(rows[0], sum(rows)))

    def residuals(self, theta: Array, observed: Array) -> tuple[Array, Array]:
        """Return predicted minus observed of each architecture, (R, n) each, in the order of its rows."""
        found = []
        for part, own, rows in zip(self._parts, self._theta, self._rows, strict=True):
            r = part.residual(theta[:, own], part.terms_at(theta[:, own]), np.atleast_2d(observed)[:, rows])[
                1
            ]
            restored = np.empty_like(r)
            restored[:, part.order] = r
            found.append(restored)
        return found[0], found[1]

    def jacobians(self, theta: Array) -> list[Array]:
        """Return d r / d theta of each architecture at one point (T,): (n, free parameters) each, as its rows stand."""
        found = []
        for part, own in zip(self._parts, self._theta, strict=True):
            terms = part.terms_at(theta[None, own])
            jacobian = part.jacobian(terms, theta[None, own][:, :1] + sum(terms))[0]
            restored = np.empty_like(jacobian.T)
            restored[part.order] = jacobian.T
            found.append(restored[:, part.problem.free])
        return found

    def value(self, theta: Array, weights: Array, observed: Array, delta: Array) -> Array:
        """Return f, shape (R,)."""
        inverse = self._inverse(weights)
        f, means = np.zeros(len(theta)), []
        for j, part in enumerate(self._parts):
            own = theta[:, self._theta[j]]
            r = part.residual(own, part.terms_at(own), np.atleast_2d(observed)[:, self._rows[j]])[1]
            mean = part.means(r)
            within = r - mean[:, part.row]
            f += 0.5 * np.einsum("rn,rn,n->r", within, within, part.weight) / weights[:, j]
            means.append(self._spread(part, mean))
        for j, k in ((0, 0), (0, 1), (1, 0), (1, 1)):
            f += 0.5 * np.einsum("rg,rg,rg->r", means[j], inverse[j + k], means[k])
        return f

    def derivatives(
        self, theta: Array, weights: Array, observed: Array, delta: Array
    ) -> tuple[Array, Array, Array]:
        """Return f (R,), g (R, T) and H (R, T, T)."""
        data = np.atleast_2d(observed)
        lanes, size = theta.shape
        inverse = self._inverse(weights)
        f, g, h = np.zeros(lanes), np.empty((lanes, size)), np.zeros((lanes, size, size))
        sides = []
        for j, part in enumerate(self._parts):
            own = theta[:, self._theta[j]]
            terms = part.terms_at(own)
            m, r = part.residual(own, terms, data[:, self._rows[j]])
            jacobian = part.jacobian(terms, m)
            mean, slopes = part.means(r), part.means(jacobian)
            sides.append((terms, r - mean[:, part.row], jacobian, mean, slopes))
        spread = [self._spread(part, side[3]) for part, side in zip(self._parts, sides, strict=True)]
        for j, (part, (terms, within, jacobian, mean, slopes)) in enumerate(
            zip(self._parts, sides, strict=True)
        ):
            place = self._theta[j]
            share = part.weight / weights[:, j, None]
            pull = (inverse[2 * j] * spread[j] + inverse[1] * spread[1 - j])[:, part.own]
            force = share * within
            f += 0.5 * np.einsum("rn,rn->r", within, force)
            f += 0.5 * np.einsum("rg,rg->r", mean, pull)
            force = force + (pull / part.total)[:, part.row] * part.weight
            g[:, place] = np.einsum("rpn,rn->rp", jacobian, force)
            inside = jacobian - slopes[:, :, part.row]
            block = np.matmul(inside * share[:, None], inside.transpose(0, 2, 1))
            block += np.matmul(slopes * inverse[2 * j][:, None, part.own], slopes.transpose(0, 2, 1))
            if part.problem.log_residual:
                block -= np.matmul(jacobian * force[:, None], jacobian.transpose(0, 2, 1))
            for (columns, design, _), term in zip(part.terms, terms, strict=True):
                bend = np.matmul((force * term)[:, None] * design, design.T)
                for a, row in enumerate(columns):
                    for b, column in enumerate(columns):
                        block[:, row, column] += bend[:, a, b]
            h[:, place, place] += block
        first, second = (self._spread(part, side[4]) for part, side in zip(self._parts, sides, strict=True))
        cross = np.matmul(first * inverse[1][:, None], second.transpose(0, 2, 1))
        h[:, self._theta[0], self._theta[1]] = cross
        h[:, self._theta[1], self._theta[0]] = cross.transpose(0, 2, 1)
        return f, g, h

    def _spread(self, part: _Part, values: Array) -> Array:
        """Put values of an architecture's cells at their places in the union, 0 elsewhere."""
        result = np.zeros((*values.shape[:-1], self._union))
        result[..., part.own] = values
        return result

    def _inverse(self, weights: Array) -> tuple[Array, Array, Array]:
        """Return the entries (1, 1), (1, 2) and (2, 2) of the inverse of C_g, (R, U) each."""
        entries, there = [], []
        for j, part in enumerate(self._parts):
            own = weights[:, 2 + j, None] + weights[:, j, None] / part.total
            entries.append(self._spread(part, own))
            there.append(self._spread(part, np.ones((1, len(part.own)))) > 0)
        both = there[0] & there[1]
        kappa = np.where(both, weights[:, 4, None], 0.0)
        a, b = (np.where(here, entry, 1.0) for here, entry in zip(there, entries, strict=True))
        determinant = a * b - kappa**2
        return (
            np.where(there[0], b / determinant, 0.0),
            -kappa / determinant,
            np.where(there[1], a / determinant, 0.0),
        )
