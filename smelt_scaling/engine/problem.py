"""Problem: one architecture's data in the coordinates in which fitting is well behaved.

Losses are divided by their geometric mean, log features are centred, amplitudes are fitted as logarithms and the floor
E stays linear. Centring removes the A-a and K-c ridges that stop optimisers early; the map back to natural coefficients
is exact. A term whose amplitude is pinned is not centred, because after centring an amplitude is no coordinate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.laws import AdditiveLaw, LogTerm

__all__ = ["DECAY_FLOOR", "Problem", "TermDesign", "make_problem"]

Array = NDArray[np.float64]

#: Lower bound of decay exponents: below it a term is a constant.
DECAY_FLOOR = 1e-3

#: An exponent times the mean log feature stays below this, so that amplitudes are finite doubles. The bound is far
#: beyond any power law (an exponent of about 13): a term that steep is a step at the smallest runs.
STEEPEST = 300.0

#: ln of an amplitude that was taken out of the law; its exponential is exactly 0.
LOG_ZERO = -1e3


@dataclass(frozen=True, kw_only=True, eq=False)
class TermDesign:
    """The fixed design of one term, ``ln T = offset + theta[columns] @ design.T``.

    Parameters
    ----------
    columns : int array (q,)
        Positions of the term's parameters in theta: its amplitude, then its exponents.
    design : array (n, q)
        A column of ones, then the centred signed log features.
    offset : array (n,)
        Contribution of numeric exponents, centred.
    means : array (q,)
        What centring took off each column (0 for the column of ones).
    offset_mean : float
        What centring took off ``offset``.
    """

    columns: NDArray[np.intp]
    design: Array
    offset: Array
    means: Array
    offset_mean: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Data, law and constraints of one fit.

    Parameters
    ----------
    law : AdditiveLaw
        The law.
    observed : array (n,)
        Losses divided by ``scale``; logarithms of them when ``log_residual``.
    weight : array (n,)
        Weights of the rows.
    terms : tuple of TermDesign
        Fixed designs.
    held : array (P,)
        Value of every parameter that is not fitted, in theta coordinates; NaN where it is free.
    pinned : array (P,)
        Natural value of every parameter the user holds, returned as given; NaN elsewhere.
    lower, upper : array (P,)
        Bounds in theta coordinates.
    scale : float
        Geometric mean of the losses, nats/token.
    log_residual : bool
        Whether residuals are ln(predicted) - ln(observed) or predicted - observed.
    """

    law: AdditiveLaw
    observed: Array
    weight: Array
    terms: tuple[TermDesign, ...]
    held: Array
    pinned: Array
    lower: Array
    upper: Array
    scale: float
    log_residual: bool

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which parameters are fitted, shape (P,)."""
        return np.isnan(self.held)

    def natural(self, theta: Array) -> Array:
        """Map theta (..., P) to the law's natural coefficients (..., P)."""
        coef = np.array(theta, dtype=np.float64)
        coef[..., 0] *= self.scale
        for term in self.terms:
            log_amplitude = theta[..., term.columns] @ np.where(
                np.arange(len(term.means)) == 0, 1.0, -term.means
            )
            log_amplitude = log_amplitude - term.offset_mean + np.log(self.scale)
            dropped = theta[..., term.columns[0]] <= LOG_ZERO
            with np.errstate(over="ignore"):
                coef[..., term.columns[0]] = np.where(dropped, 0.0, np.exp(log_amplitude))
        return np.where(np.isnan(self.pinned), coef, self.pinned)

    def centred(self, coef: Array) -> Array:
        """Map natural coefficients (..., P) to theta (..., P); the inverse of `natural`."""
        theta = np.array(coef, dtype=np.float64)
        theta[..., 0] /= self.scale
        for term in self.terms:
            shift = theta[..., term.columns[1:]] @ term.means[1:] + term.offset_mean - np.log(self.scale)
            with np.errstate(divide="ignore"):
                theta[..., term.columns[0]] = np.maximum(np.log(coef[..., term.columns[0]]) + shift, LOG_ZERO)
        return theta

    def predicted(self, theta: Array) -> Array:
        """Loss in nats/token at every row, shape (..., n)."""
        total = np.repeat(theta[..., :1], len(self.weight), axis=-1)
        for term in self.terms:
            total = total + np.exp(theta[..., term.columns] @ term.design.T + term.offset)
        return total * self.scale


def make_problem(
    law: AdditiveLaw,
    columns: Mapping[str, Array],
    loss: Array,
    weight: Array,
    *,
    pins: Mapping[str, float],
    dropped_terms: frozenset[str] = frozenset(),
    dropped_exponents: frozenset[str] = frozenset(),
    log_residual: bool = True,
) -> Problem:
    """Build the problem of one architecture.

    Parameters
    ----------
    law : AdditiveLaw
        The law.
    columns : mapping of name to array (n,)
        Columns of the law.
    loss, weight : array (n,)
        Losses in nats/token and row weights.
    pins : mapping
        Parameters held at a natural value.
    dropped_terms : frozenset of str
        Amplitudes of terms that the design cannot tell from the floor; they are held at 0.
    dropped_exponents : frozenset of str
        Exponents whose feature does not vary; they are held at 0 and the amplitude absorbs the factor.
    log_residual : bool
        Residuals of ln(loss) (True) or of the loss.
    """
    parameters = law.parameters
    position = {name: i for i, name in enumerate(parameters)}
    scale = float(np.exp(np.mean(np.log(loss))))
    held = np.full(len(parameters), np.nan)
    for name in dropped_exponents:
        held[position[name]] = 0.0
    terms = tuple(
        _term_design(term, position, centre=term.amplitude not in pins, constant=dropped_exponents)
        for term in law.log_terms(columns)
    )
    for name, value in pins.items():
        held[position[name]] = value
    held[0] /= scale
    for term in terms:
        amplitude = parameters[term.columns[0]]
        if amplitude in dropped_terms:
            held[term.columns[0]] = LOG_ZERO
        elif amplitude in pins:
            with np.errstate(divide="ignore"):
                held[term.columns[0]] = max(float(np.log(pins[amplitude] / scale)), LOG_ZERO)
    lower = np.full(len(parameters), -np.inf)
    lower[0] = 0.0
    for name in law.decays:
        lower[position[name]] = DECAY_FLOOR
    upper = np.full(len(parameters), np.inf)
    for term in terms:
        for column, mean in zip(term.columns[1:], term.means[1:], strict=True):
            steepest = STEEPEST / abs(mean) if mean else np.inf
            upper[column] = min(upper[column], steepest)
            lower[column] = max(lower[column], -steepest)
    free = np.isnan(held)
    scaled = loss / scale
    return Problem(
        law=law,
        observed=np.log(scaled) if log_residual else scaled,
        weight=weight,
        terms=terms,
        held=held,
        pinned=np.array([pins.get(name, np.nan) for name in parameters]),
        lower=np.where(free, lower, -np.inf),
        upper=np.where(free, upper, np.inf),
        scale=scale,
        log_residual=log_residual,
    )


def _term_design(
    term: LogTerm, position: Mapping[str, int], *, centre: bool, constant: frozenset[str]
) -> TermDesign:
    names = list(term.slopes)
    raw = np.stack([np.ones_like(term.offset), *(term.slopes[name] for name in names)], axis=1)
    means = raw.mean(axis=0) if centre else np.zeros(raw.shape[1])
    means[0] = 0.0
    offset_mean = float(term.offset.mean()) if centre else 0.0
    design = raw - means
    for k, name in enumerate(names, start=1):
        if name in constant:
            design[:, k] = 0.0
    return TermDesign(
        columns=np.array([position[term.amplitude], *(position[name] for name in names)]),
        design=design,
        offset=term.offset - offset_mean,
        means=means,
        offset_mean=offset_mean,
    )
