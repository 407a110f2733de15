r"""Several problems as one, with parameters that they share.

The parameters of all problems stand one after the other in theta. A tie maps fewer free coordinates phi to it: most
entries are linear in phi, and one may follow from three others so that two frontiers share their exponent gamma,
1/gamma = 1/a + 1/c. Values and exact derivatives pass through by the chain rule,

.. math:: g_\phi = T^T g, \quad H_\phi = T^T H T + \sum_k g_k \nabla^2 \theta_k(\phi), \quad T = d\theta/d\phi,

so any objective of the stacked theta is minimised, bounded and certified like a single fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.engine.objective import Objective
from smelt_scaling.engine.problem import Problem

__all__ = ["Stacked", "Tie", "Tied", "free_tie"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Tie:
    """How the stacked parameters follow from free coordinates: ``theta = offset + matrix @ phi``.

    Parameters
    ----------
    matrix : array (T, Q)
        What a free coordinate does to each parameter; a row of zeros for a held one.
    offset : array (T,)
        Values of held parameters.
    lower, upper : array (Q,)
        Bounds of the free coordinates.
    harmonic : tuple of int
        Positions (a1, c1, a2, c2) in theta of which the last is set to keep 1/a1 + 1/c1 = 1/a2 + 1/c2; empty if none.
    """

    matrix: Array
    offset: Array
    lower: Array
    upper: Array
    harmonic: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Number of free coordinates."""
        return int(self.matrix.shape[1])

    def equal(self, first: int, second: int, ratio: float = 1.0) -> Tie:
        """Return the tie with ``theta[second] = ratio * theta[first]`` as well, for two free parameters; ratio > 0."""
        keep, gone = (int(np.flatnonzero(self.matrix[place])[0]) for place in (first, second))
        matrix, lower, upper = self.matrix.copy(), self.lower.copy(), self.upper.copy()
        scale = ratio * matrix[first, keep] / matrix[second, gone]
        matrix[:, keep] += matrix[:, gone] * scale
        lower[keep] = max(lower[keep], lower[gone] / scale)
        upper[keep] = min(upper[keep], upper[gone] / scale)
        others = np.arange(self.size) != gone
        return replace(self, matrix=matrix[:, others], lower=lower[others], upper=upper[others])

    def fixed(self, place: int, value: float) -> Tie:
        """Return the tie with a free parameter held at a value."""
        others = self.matrix[place] == 0
        offset = self.offset.copy()
        offset[place] = value
        return replace(
            self,
            matrix=self.matrix[:, others],
            offset=offset,
            lower=self.lower[others],
            upper=self.upper[others],
        )

    def same_frontier(self, a1: int, c1: int, a2: int, c2: int) -> Tie:
        """Return the tie in which ``c2`` follows from the others, so that both have one frontier exponent."""
        return replace(self.fixed(c2, 0.0), harmonic=(a1, c1, a2, c2))

    def theta(self, phi: Array) -> Array:
        """Map free coordinates (R, Q) to stacked parameters (R, T); infinite where no exponent would do."""
        result: Array = self.offset + np.einsum("rq,tq->rt", phi, self.matrix)
        if self.harmonic:
            inverse = self._inverse(result)
            with np.errstate(divide="ignore"):
                result[:, self.harmonic[3]] = np.where(inverse > 0, 1.0 / inverse, np.inf)
        return result

    def phi(self, theta: Array) -> Array:
        """Map stacked parameters (R, T) to the nearest free coordinates (R, Q): means of those that are tied."""
        keep = self.matrix.any(axis=1)
        inner = np.linalg.pinv(self.matrix[keep])
        found = np.einsum("qt,rt->rq", inner, theta[:, keep] - self.offset[keep])
        return np.asarray(np.clip(found, self.lower, self.upper))

    def chain(self, theta: Array, g: Array, h: Array) -> tuple[Array, Array]:
        """Return gradient (R, Q) and Hessian (R, Q, Q) in phi from those in theta."""
        slope = np.broadcast_to(self.matrix, (len(theta), *self.matrix.shape))
        if self.harmonic:
            slope, bend = self._harmonic_slope(theta, slope.copy())
            bend *= g[:, self.harmonic[3], None]
            inner = np.zeros_like(h)
            for j, place in enumerate(self.harmonic[:3]):
                for k, other in enumerate(self.harmonic[:3]):
                    inner[:, place, other] = bend[:, 3 * j + k]
            extra = np.matmul(self.matrix.T, np.matmul(inner, self.matrix))
        else:
            extra = 0.0
        return (
            np.einsum("rtq,rt->rq", slope, g),
            np.matmul(slope.transpose(0, 2, 1), np.matmul(h, slope)) + extra,
        )

    def _inverse(self, theta: Array) -> Array:
        """Return 1/c2 = 1/a1 + 1/c1 - 1/a2."""
        a1, c1, a2 = (theta[:, place] for place in self.harmonic[:3])
        return 1.0 / a1 + 1.0 / c1 - 1.0 / a2

    def _harmonic_slope(self, theta: Array, slope: Array) -> tuple[Array, Array]:
        """Fill in d c2/d phi; return it and the second derivatives (R, 9) of c2 by (a1, c1, a2)."""
        own = theta[:, self.harmonic[:3]]
        c2 = theta[:, self.harmonic[3]]
        sign = np.array([1.0, 1.0, -1.0])
        first = sign * (c2[:, None] / own) ** 2
        slope[:, self.harmonic[3]] = np.einsum("rk,kq->rq", first, self.matrix[list(self.harmonic[:3])])
        second = 2.0 * first[:, :, None] * first[:, None, :] / c2[:, None, None]
        for k in range(3):
            second[:, k, k] -= 2.0 * first[:, k] / own[:, k]
        return slope, second.reshape(len(theta), 9)


def free_tie(problems: Sequence[Problem]) -> Tie:
    """Return the tie of problems that share nothing: their free parameters one after the other."""
    held = np.concatenate([problem.held for problem in problems])
    free = np.isnan(held)
    return Tie(
        matrix=np.eye(len(held))[:, free],
        offset=np.nan_to_num(held),
        lower=np.concatenate([problem.lower for problem in problems])[free],
        upper=np.concatenate([problem.upper for problem in problems])[free],
    )


class StackedObjective(Protocol):
    """An objective of the stacked parameters, lane by lane; arguments as those of `Objective`."""

    def value(self, theta: Array, weights: Array, observed: Array, delta: Array) -> Array:
        """Return f (R,)."""

    def derivatives(
        self, theta: Array, weights: Array, observed: Array, delta: Array
    ) -> tuple[Array, Array, Array]:
        """Return f (R,), g (R, T) and H (R, T, T)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Box:
    """Free coordinates and their bounds, as a minimiser asks for them."""

    observed: Array
    free: NDArray[np.bool_]
    held: Array
    lower: Array
    upper: Array


class Tied:
    """A stacked objective in the free coordinates of a tie.

    Parameters
    ----------
    inner : StackedObjective
        Objective of theta.
    tie : Tie
        How theta follows from phi.
    observed : array (n,)
        Scaled observations of all problems, one after the other.

    Examples
    --------
    >>> from smelt_scaling.engine.newton import minimise
    >>> from smelt_scaling.engine.problem import make_problem
    >>> from smelt_scaling.laws import LAWS
    >>> C = np.geomspace(1e18, 1e21, 8)
    >>> losses = [1.5 + 80 * C**-0.1, 1.7 + 90 * C**-0.1]
    >>> both = [make_problem(LAWS["power-c"], {"C": C}, loss, np.ones(8), pins={}) for loss in losses]
    >>> shared = Tied(Stacked(both), free_tie(both).equal(2, 5), np.concatenate([one.observed for one in both]))
    >>> start = shared.tie.phi(np.array([[0.5, -1.0, 0.2, 0.5, -1.0, 0.2]]))
    >>> phi = minimise(shared, start, np.ones((1, 16)), np.array([np.inf])).theta
    >>> both[1].natural(shared.tie.theta(phi)[:, 3:]).round(6).tolist()
    [[1.7, 90.0, 0.1]]
    """

    def __init__(self, inner: StackedObjective, tie: Tie, observed: Array) -> None:
        self.inner = inner
        self.tie = tie
        self.problem = _Box(
            observed=observed,
            free=np.ones(tie.size, dtype=bool),
            held=np.full(tie.size, np.nan),
            lower=tie.lower,
            upper=tie.upper,
        )

    def value(self, theta: Array, weights: Array, observed: Array, delta: Array) -> Array:
        """Return f, shape (R,); ``theta`` holds phi (R, Q)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.inner.value(self.tie.theta(theta), weights, observed, delta)

    def derivatives(
        self, theta: Array, weights: Array, observed: Array, delta: Array
    ) -> tuple[Array, Array, Array]:
        """Return f (R,), g (R, Q) and H (R, Q, Q); f is infinite where the tie has no solution."""
        stacked = self.tie.theta(theta)
        with np.errstate(over="ignore", invalid="ignore"):
            f, g, h = self.inner.derivatives(stacked, weights, observed, delta)
            g, h = self.tie.chain(stacked, g, h)
        lost = ~(np.isfinite(f) & np.isfinite(g).all(axis=1) & np.isfinite(h).all(axis=(1, 2)))
        f[lost], g[lost], h[lost] = np.inf, 0.0, np.eye(self.tie.size)
        return f, g, h


class Stacked:
    """The sum of the weighted Huber objectives of several problems.

    Parameters
    ----------
    problems : iterable of Problem
        Problems.
    factors : sequence of float, optional
        What delta is multiplied by in each; 1 by default.
    """

    def __init__(self, problems: Iterable[Problem], factors: Sequence[float] | None = None) -> None:
        self._parts = [Objective(problem) for problem in problems]
        self._factors = [1.0] * len(self._parts) if factors is None else list(factors)
        self._theta = _slices([len(part.problem.held) for part in self._parts])
        self._rows = _slices([len(part.problem.weight) for part in self._parts])

    def value(self, theta: Array, weights: Array, observed: Array, delta: Array) -> Array:
        """Return f, shape (R,)."""
        data = np.atleast_2d(observed)
        f = np.zeros(len(theta))
        for part, own, rows, factor in zip(self._parts, self._theta, self._rows, self._factors, strict=True):
            f += part.value(theta[:, own], weights[:, rows], data[:, rows], factor * delta)
        return f

    def derivatives(
        self, theta: Array, weights: Array, observed: Array, delta: Array
    ) -> tuple[Array, Array, Array]:
        """Return f (R,), g (R, T) and H (R, T, T)."""
        data = np.atleast_2d(observed)
        lanes, size = theta.shape
        f, g, h = np.zeros(lanes), np.empty((lanes, size)), np.zeros((lanes, size, size))
        for part, own, rows, factor in zip(self._parts, self._theta, self._rows, self._factors, strict=True):
            value, g[:, own], h[:, own, own] = part.derivatives(
                theta[:, own], weights[:, rows], data[:, rows], factor * delta
            )
            f += value
        return f, g, h


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes])
    return [slice(int(lo), int(hi)) for lo, hi in zip(ends[:-1], ends[1:], strict=True)]
