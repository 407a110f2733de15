"""AdditiveLaw: a floor plus terms that are exponentials of linear predictors.

Every term is ``exp(ln amplitude + sum(sign * exponent * ln feature))``. Value, gradient, exact Hessian, variable
projection, identifiability and the closed-form frontier all follow from the fixed logarithms of the features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import UsageError
from smelt_scaling.laws.formula import Formula, parse_formula

__all__ = ["AdditiveLaw", "LogTerm"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class LogTerm:
    """The fixed data of one term: ``ln T = ln amplitude + offset + sum(slope[e] * e)`` over its exponents ``e``.

    Parameters
    ----------
    amplitude : str
        Name of the amplitude.
    offset : array (n,)
        Contribution of numeric exponents.
    slopes : dict of array (n,)
        Signed ln(feature) for every named exponent.
    """

    amplitude: str
    offset: Array
    slopes: Mapping[str, Array]


@dataclass(frozen=True)
class AdditiveLaw:
    """A scaling law given by its formula.

    Parameters
    ----------
    name : str
        The name it is known by; a custom law is named by its own formula.
    formula : str
        One floor plus products of an amplitude and powers of columns; see `smelt_scaling.laws.formula`.

    Examples
    --------
    >>> law = AdditiveLaw("sparse-additive", "E + A*(1-S)**b*F**-a + K*D**-c")
    >>> law.parameters
    ('E', 'A', 'K', 'a', 'b', 'c')
    >>> sorted(law.decays), law.columns
    (['a', 'c'], ('S', 'F', 'D'))
    >>> round(float(law.loss([1.4439, 1.366e3, 1.975e6, .3703, .1530, .6594], F=1e10, S=.947, D=1e11)), 6)
    1.726785
    """

    name: str
    formula: str

    def __post_init__(self) -> None:
        _ = self.parsed  # a malformed formula fails here, where it was written

    @cached_property
    def parsed(self) -> Formula:
        """The parsed formula."""
        return parse_formula(self.formula)

    @property
    def floor(self) -> str:
        """Name of the irreducible loss."""
        return self.parsed.floor

    @cached_property
    def amplitudes(self) -> tuple[str, ...]:
        """Names of the amplitudes, in the order of the terms."""
        return tuple(term.amplitude for term in self.parsed.terms)

    @cached_property
    def exponents(self) -> tuple[str, ...]:
        """Names of the exponents, sorted."""
        powers = (power for term in self.parsed.terms for power in term.powers)
        return tuple(sorted({power.exponent for power in powers if isinstance(power.exponent, str)}))

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Floor, amplitudes, exponents: the order of every coefficient vector."""
        return (self.floor, *self.amplitudes, *self.exponents)

    @cached_property
    def decays(self) -> frozenset[str]:
        """Exponents written with a minus sign everywhere; a fit keeps them positive."""
        signs: dict[str, set[int]] = {}
        for term in self.parsed.terms:
            for power in term.powers:
                if isinstance(power.exponent, str):
                    signs.setdefault(power.exponent, set()).add(power.sign)
        return frozenset(name for name, found in signs.items() if found == {-1})

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns the law needs, in order of appearance."""
        powers = (power for term in self.parsed.terms for power in term.powers)
        return tuple(dict.fromkeys(name for power in powers for name in power.feature.names))

    def log_terms(self, columns: Mapping[str, Array]) -> list[LogTerm]:
        """Return the fixed logarithms of every term's features at the given columns.

        Parameters
        ----------
        columns : mapping of name to array
            At least `columns`; arrays broadcast against each other.

        Raises
        ------
        UsageError
            If a column is missing or a feature is not positive.
        """
        missing = [name for name in self.columns if name not in columns]
        if missing:
            raise UsageError(
                f"law {self.name}: column {', '.join(missing)} missing; it needs {', '.join(self.columns)}"
            )
        arrays = {name: np.asarray(columns[name], dtype=np.float64) for name in self.columns}
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        result = []
        for term in self.parsed.terms:
            offset = np.zeros(shape)
            slopes: dict[str, Array] = {}
            for power in term.powers:
                column = power.sign * power.feature.log(arrays)
                if isinstance(power.exponent, str):
                    slopes[power.exponent] = slopes.get(power.exponent, np.zeros(shape)) + column
                else:
                    offset = offset + power.exponent * column
            result.append(LogTerm(amplitude=term.amplitude, offset=offset, slopes=slopes))
        return result

    def loss(self, coef: object, **columns: object) -> Array:
        """Evaluate the law.

        Parameters
        ----------
        coef : array (..., P)
            Values of `parameters`; leading axes are draws.
        **columns : array
            The columns of the law, broadcast against each other.

        Returns
        -------
        array
            Loss in nats/token, shape = leading axes of ``coef`` + broadcast shape of the columns.
        """
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in columns.items()}
        trailing = np.broadcast_shapes(*(arrays[name].shape for name in self.columns if name in arrays))
        return self.loss_by_draw(np.asarray(coef, dtype=np.float64), arrays, len(trailing))

    def loss_by_draw(self, coef: Array, columns: Mapping[str, Array], trailing: int) -> Array:
        """Evaluate at columns that may themselves differ by draw.

        Parameters
        ----------
        coef : array (..., P)
            Coefficients; leading axes are draws.
        columns : mapping of name to array
            Each broadcasts against draws + ``trailing`` axes.
        trailing : int
            How many axes follow the draws.
        """
        at = {name: _align(coef[..., i], trailing) for i, name in enumerate(self.parameters)}
        total = at[self.floor]
        with np.errstate(divide="ignore", over="ignore"):
            for term in self.log_terms(columns):
                log_value = np.log(at[term.amplitude]) + term.offset
                for exponent, slope in term.slopes.items():
                    log_value = log_value + at[exponent] * slope
                total = total + np.exp(log_value)
        return np.asarray(total)


def _align(draws: Array, ndim: int) -> Array:
    """Append ``ndim`` axes so that draws broadcast against columns."""
    return draws.reshape(draws.shape + (1,) * ndim)
