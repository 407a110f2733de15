"""Surfaces of parts of an evaluation: exponents of the whole, floor and amplitudes of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.view import Side
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.engine.amplitudes import Amplitudes, fit_amplitudes
from smelt_scaling.engine.design import CONDITION_REFUSE_INTERVALS
from smelt_scaling.fitting.steps import prepare
from smelt_scaling.laws import AdditiveLaw, Surface
from smelt_scaling.resampling import Draws
from smelt_scaling.study import Study

__all__ = ["PartFits", "Rows", "fit_parts", "predicted", "rows_of"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """What the fit of one architecture saw.

    Parameters
    ----------
    endpoints : Endpoints
        Its endpoints.
    columns : mapping of str to array (n,)
        Columns of the law.
    weight : array (n,)
        Weights in the fit.
    labels : str array (n,)
        Resampling labels.
    delta : float
        Huber's threshold.
    """

    endpoints: Endpoints
    columns: Mapping[str, Array]
    weight: Array
    labels: NDArray[np.str_]
    delta: float

    def counted(self, draws: Draws) -> Array:
        """Return the weights of every replicate, (R, n)."""
        index = np.searchsorted(np.array(draws.labels), self.labels)
        return np.asarray(self.weight * draws.counts[:, index])


@dataclass(frozen=True, kw_only=True, eq=False)
class PartFits:
    """Surfaces of G parts of one architecture.

    Parameters
    ----------
    surface : Surface
        Coefficients (G, P); NaN for a part whose losses do not tell floor and amplitudes apart.
    drawn : Surface or None
        Coefficients (R, G, P), NaN likewise.
    residual : array (G, n)
        ln(predicted / observed) of the point fits.
    uncertified : int
        Fits, points and replicates, whose optimum the derivatives do not confirm.
    """

    surface: Surface
    drawn: Surface | None
    residual: Array
    uncertified: int

    @property
    def identified(self) -> Mask:
        """Which parts have coefficients, (G,)."""
        return np.asarray(~np.isnan(self.surface.coef).any(axis=1))


def rows_of(study: Study, arch: str) -> Rows:
    """Return what the fit of one architecture saw, in the order of its endpoints."""
    labels = study.endpoints.cells(study.bootstrap.unit)[0][study.endpoints.arch == arch]
    endpoints = study.endpoints.by_arch()[arch]
    stated = {name: endpoints.S if name == "S" else endpoints[name] for name in study.law.columns}
    seen = prepare(stated, endpoints, labels, study.settings)
    return Rows(
        endpoints=endpoints,
        columns=seen.columns,
        weight=seen.weight,
        labels=labels,
        delta=study.fits[arch].delta,
    )


def fit_parts(
    study: Study, side: Side, loss: Array, replicates: Draws | None, drawn_loss: Array | None = None
) -> PartFits:
    """Fit every part of one architecture, under every replicate with the exponents of that replicate.

    Parameters
    ----------
    study : Study
        Its fit of the whole evaluation.
    side : Side
        The architecture.
    loss : array (G, n)
        Losses of the parts; NaN where there is none.
    replicates : Draws or None
        Exponents and label counts.
    drawn_loss : array (R, G, n), optional
        Losses where sources are resampled as well.
    """
    rows, law = rows_of(study, side.arch), study.law
    log_residual = study.settings.residual == "log"

    def solve(
        surface: Surface, weights: Array, of: Array, start: Array | None
    ) -> tuple[Amplitudes, Array, int]:
        basis = _basis(law, surface.coef, rows.columns)
        found = fit_amplitudes(basis, of, weights, delta=rows.delta, log_residual=log_residual, start=start)
        told_apart = _identified(basis, np.isfinite(loss), weights)
        linear = np.where(told_apart[:, :, None], found.coef, np.nan)
        return found, linear, int((told_apart & ~found.certified).sum())

    one = Surface(law=law, coef=side.surface.coef[None])
    point, linear, uncertified = solve(one, rows.weight[None], loss, None)
    surface = _surface(law, one.coef, linear)[0]
    whole = Surface(law=law, coef=surface)
    residual = np.log(whole.loss(**rows.columns)) - np.log(loss)
    if replicates is None:
        return PartFits(surface=whole, drawn=None, residual=residual, uncertified=uncertified)
    of = loss if drawn_loss is None else drawn_loss
    _, linear, more = solve(replicates.surface, rows.counted(replicates), of, point.shares[0])
    return PartFits(
        surface=whole,
        drawn=Surface(law=law, coef=_surface(law, replicates.surface.coef, linear)),
        residual=residual,
        uncertified=uncertified + more,
    )


def _identified(basis: Array, known: Mask, weights: Array) -> Mask:
    """Return which parts of which replicates tell floor and amplitudes apart, (R, G).

    They do not with fewer endpoints than coefficients, in a single cell, or at a single size or horizon. The condition
    number is that of the columns at unit norm, over the endpoints that have a loss and count.
    """
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    told_apart = np.empty((len(basis), len(patterns)), dtype=np.bool_)
    for number, pattern in enumerate(patterns):
        kept = basis * (pattern & (weights > 0))[:, :, None]
        squares = np.matmul(kept.transpose(0, 2, 1), kept)
        norms = np.sqrt(np.einsum("rpp->rp", squares))
        norms[norms == 0] = 1.0
        eigenvalues = np.linalg.eigvalsh(squares / (norms[:, :, None] * norms[:, None, :]))
        told_apart[:, number] = eigenvalues[:, 0] * CONDITION_REFUSE_INTERVALS**2 > eigenvalues[:, -1]
    return told_apart[:, which.reshape(-1)]


def predicted(surface: Surface, columns: Mapping[str, Array]) -> Array:
    """Return the losses of a stack of surfaces at columns (n,): draws + (n,)."""
    return surface.loss(**columns)


def _basis(law: AdditiveLaw, coef: Array, columns: Mapping[str, Array]) -> Array:
    """Return the terms at unit amplitudes, (R, n, 1 + K), the floor first."""
    at = dict(zip(law.parameters, coef.T, strict=True))
    terms = []
    for term in law.log_terms(columns):
        log_value = term.offset + np.zeros((len(coef), 1))
        for name, slope in term.slopes.items():
            log_value = log_value + at[name][:, None] * slope
        terms.append(np.exp(log_value))
    return np.stack([np.ones_like(terms[0]), *terms], axis=2)


def _surface(law: AdditiveLaw, coef: Array, linear: Array) -> Array:
    """Put floors and amplitudes (R, G, 1 + K) beside the exponents of coefficients (R, P): (R, G, P)."""
    shared = coef[:, None, linear.shape[2] :]
    return np.concatenate([linear, np.broadcast_to(shared, (*linear.shape[:2], shared.shape[2]))], axis=2)
