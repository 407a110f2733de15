r"""Floor and amplitudes at given exponents, for many subsets and replicates at once.

With the exponents held a law is linear, m = E + sum(A_k X_k), and what remains of the fit is

.. math:: \min_{E, A \ge 0} \sum_i w_i \rho_\delta(\ln m_i - \ln L_i) \quad \text{(or } m_i - L_i\text{)}.

The latter is convex. The former is but for the curvature of the logarithm, which is delta times smaller than that of
the quadratic zone. Every lane (one subset in one replicate) has columns and losses of its own; it starts at the
non-negative least squares of the relative residuals and takes the Newton steps of the full fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.engine.certificate import certify
from smelt_scaling.engine.newton import delta_ladder, minimise

__all__ = ["Amplitudes", "fit_amplitudes"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Lanes of one batch: a dozen arrays of them times a hundred rows stay in cache.
LANES = 1024

#: A share of the loss below it is rounding: 0.
NOTHING = 1e-10


@dataclass(frozen=True, kw_only=True, eq=False)
class Amplitudes:
    """Optima of R replicates of M subsets.

    Parameters
    ----------
    coef : array (R, M, P)
        Floor and amplitudes, none below 0.
    objective : array (R, M)
        Weighted sum of Huber losses.
    certified : bool array (R, M)
        Whether the derivatives confirm the optimum.
    shares : array (R, M, P)
        The optimum in units of the mean loss: what a similar problem may start at.
    """

    coef: Array
    objective: Array
    certified: Mask
    shares: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class _Orthant:
    """Parameters that are free and not below 0."""

    observed: Array
    free: Mask
    held: Array
    lower: Array
    upper: Array


class _LinearObjective:
    """Huber's objective of lanes that bring their own columns: ``observed`` is (R, P + 1, n), columns, then data."""

    def __init__(self, size: int, log_residual: bool) -> None:
        nothing = np.full(size, np.nan)
        self.log_residual = log_residual
        self.problem = _Orthant(
            observed=np.empty((0, 0)),
            free=np.ones(size, dtype=bool),
            held=nothing,
            lower=np.zeros(size),
            upper=np.full(size, np.inf),
        )

    def value(self, theta: Array, weights: Array, observed: Array, delta: Array) -> Array:
        return self._residuals(theta, weights, observed, delta)[0]

    def derivatives(
        self, theta: Array, weights: Array, observed: Array, delta: Array
    ) -> tuple[Array, Array, Array]:
        f, r, psi, m = self._residuals(theta, weights, observed, delta)
        m = np.maximum(
            m, np.finfo(np.float64).tiny
        )  # where all is at its bound f is infinite, and nothing else counts
        size = theta.shape[1]
        curvature = np.where(psi == r, weights, 0.0)
        psi *= weights
        columns = [observed[:, k] for k in range(size)]
        if self.log_residual:
            curvature -= psi
            with np.errstate(over="ignore"):
                columns = [column / m for column in columns]
        g, h = np.empty_like(theta), np.empty((len(theta), size, size))
        for k, column in enumerate(columns):
            g[:, k] = np.einsum("rn,rn->r", psi, column)
            bent = curvature * column
            for j in range(k + 1):
                h[:, k, j] = h[:, j, k] = np.einsum("rn,rn->r", bent, columns[j])
        return f, g, h

    def _residuals(
        self, theta: Array, weights: Array, observed: Array, delta: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Return f, r, psi and m."""
        m = theta[:, :1] * observed[:, 0]
        for k in range(1, theta.shape[1]):
            m += theta[:, k : k + 1] * observed[:, k]
        with np.errstate(divide="ignore"):  # all at their bound: infinitely far off, no step goes there
            r = np.log(m) if self.log_residual else m - observed[:, -1]
        limit = delta[:, None]
        psi = np.clip(r, -limit, limit)
        return np.einsum("rn,rn,rn->r", weights, psi, r - 0.5 * psi), r, psi, m


def fit_amplitudes(
    basis: Array,
    loss: Array,
    weights: Array,
    *,
    delta: float,
    log_residual: bool = True,
    start: Array | None = None,
) -> Amplitudes:
    """Fit floor and amplitudes of every subset in every replicate.

    Parameters
    ----------
    basis : array (R, n, P)
        Columns of the linear law, at the exponents of each replicate; the first is 1.
    loss : array (M, n) or (R, M, n)
        Losses of each subset; NaN where there is none.
    weights : array (R, n)
        Row weights of each replicate.
    delta : float
        Huber's threshold.
    log_residual : bool
        Of the logarithms, or of the losses themselves.
    start : array (M, P), optional
        ``shares`` of a similar problem; the non-negative least squares of the first replicate by default.

    Examples
    --------
    >>> F = np.geomspace(1e8, 1e10, 5)
    >>> basis = np.stack([np.ones(5), F**-0.3], axis=1)[None]
    >>> found = fit_amplitudes(basis, np.stack([1.5 + 200 * F**-0.3, 2 + 0 * F]), np.ones((1, 5)), delta=1e-3)
    >>> found.coef.round(6).tolist()
    [[[1.5, 200.0], [2.0, 0.0]]]
    """
    replicates, _, size = basis.shape
    several = np.broadcast_to(loss, (replicates, *loss.shape[-2:]))
    subsets = several.shape[1]
    scale = 1.0 if log_residual else float(np.nanmean(loss))
    objective = _LinearObjective(size, log_residual)
    ladder = delta_ladder(delta / scale)
    coef, shares = np.empty((replicates, subsets, size)), np.empty((replicates, subsets, size))
    value, certified = np.empty((replicates, subsets)), np.empty((replicates, subsets), dtype=bool)
    block = max(1, LANES // subsets)
    for lo in range(0, replicates, block):
        part = slice(lo, min(lo + block, replicates))
        data, weight, unit = _lanes(basis[part], several[part], weights[part], scale, log_residual)
        if start is None:
            start = _least_squares(data[:subsets], weight[:subsets], size)
        theta = np.tile(start, (part.stop - part.start, 1))
        theta = minimise(objective, theta, weight, ladder, observed=data).theta
        theta = np.where(theta < NOTHING, 0.0, theta)
        verdict = certify(objective, theta, weight, float(ladder[-1]), observed=data)
        shape = (part.stop - part.start, subsets)
        coef[part] = (theta / unit).reshape(*shape, size)
        shares[part] = theta.reshape(*shape, size)
        value[part] = verdict.objective.reshape(shape) * scale**2
        certified[part] = verdict.certified.reshape(shape)
    return Amplitudes(coef=coef, objective=value, certified=certified, shares=shares)


def _lanes(
    basis: Array, loss: Array, weights: Array, scale: float, log_residual: bool
) -> tuple[Array, Array, Array]:
    """Return columns of unit mean with the data below (L, P + 1, n), weights (L, n), and the means (L, P).

    A log residual is that of the columns over the loss, so its data are 0; rows without a loss weigh nothing.
    """
    present = np.isfinite(loss)
    weight = np.where(present, weights[:, None, :], 0.0)
    divisor = np.where(present, loss, 1.0) if log_residual else np.full(loss.shape, scale)
    data = np.empty((*loss.shape[:2], basis.shape[2] + 1, loss.shape[2]))
    data[:, :, :-1] = basis.transpose(0, 2, 1)[:, None] / divisor[:, :, None]
    data[:, :, -1] = 0.0 if log_residual else np.where(present, loss, scale) / scale
    total = np.maximum(weight.sum(axis=2), 1e-300)
    unit = np.einsum("rmn,rmpn->rmp", weight, data[:, :, :-1]) / total[:, :, None]
    unit = np.asarray(np.where(unit > 0, unit, 1.0))
    data[:, :, :-1] /= unit[:, :, :, None]
    lanes = loss.shape[0] * loss.shape[1]
    return (
        data.reshape(lanes, *data.shape[2:]),
        weight.reshape(lanes, -1),
        unit.reshape(lanes, -1),
    )


def _least_squares(data: Array, weights: Array, size: int) -> Array:
    """Return the non-negative least squares of every lane, on relative residuals where those are logarithms."""
    from scipy.optimize import nnls

    root = np.sqrt(weights)
    wanted = np.where(data[:, -1] == 0, 1.0, data[:, -1])
    found = np.stack([nnls((d[:size] * w).T, y * w)[0] for d, w, y in zip(data, root, wanted, strict=True)])
    empty = np.asarray(np.all(found <= 0, axis=1))
    return np.where(empty[:, None], 1.0 / size, found)
