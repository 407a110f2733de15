"""Additive laws on an iso-FLOP curve: every term is an exponential of ln F and ln C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import FrontierError, UsageError
from smelt_scaling.laws import AdditiveLaw, Surface

__all__ = ["IsoTerm", "align", "allocates", "falling_and_rising", "has_closed_form", "iso_terms"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class IsoTerm:
    """One term on an iso-FLOP curve, ``exp(intercept + slope*ln F - decay*ln C)``; arrays broadcast together."""

    intercept: Array
    slope: Array
    decay: Array


def has_closed_form(law: AdditiveLaw) -> bool:
    """Whether the law is one term in C alone, or two terms that are monomials in F (or N) and D times anything in S."""
    features = [power.feature for term in law.parsed.terms for power in term.powers]
    separable = all(
        set(f.names) == {"S"} or ("S" not in f.names and f.monomial() is not None) for f in features
    )
    return separable and len(law.parsed.terms) == (2 if allocates(law) else 1)


def allocates(law: AdditiveLaw) -> bool:
    """Whether the law separates model size from tokens; a law in C alone does not."""
    return not set(law.columns) <= {"C", "S"}


def iso_terms(surface: Surface, S: Array | None, ndim: int, flops_per_param: float) -> list[IsoTerm]:  # noqa: N803
    """Return the terms on the iso-FLOP curve, draws first, then ``ndim`` axes to broadcast against budgets and S."""
    result = []
    for term in surface.law.parsed.terms:
        with np.errstate(divide="ignore"):
            intercept = np.log(align(surface[term.amplitude], ndim))
        slope = decay = np.zeros(intercept.shape)
        for power in term.powers:
            named = isinstance(power.exponent, str)
            exponent = power.sign * (
                align(surface[str(power.exponent)], ndim) if named else float(power.exponent)
            )
            if set(power.feature.names) == {"S"}:
                if S is None:
                    raise UsageError(
                        f"law {surface.law.name}: it holds S, so a sparsity is needed (--sparsity)"
                    )
                intercept = intercept + exponent * power.feature.log({"S": S})
                continue
            monomial = power.feature.monomial()
            assert monomial is not None  # has_closed_form
            constant, powers = monomial
            size = powers.get("N", 0.0) + powers.get("N_act", 0.0)
            tokens, compute = powers.get("D", 0.0), powers.get("C", 0.0)
            # ln F = u, ln N = u - ln(flops_per_param), ln D = ln C - u
            intercept = intercept + exponent * (np.log(constant) - size * np.log(flops_per_param))
            slope = slope + exponent * (powers.get("F", 0.0) + size - tokens)
            decay = decay - exponent * (tokens + compute)
        result.append(IsoTerm(intercept=intercept, slope=slope, decay=decay))
    return result


def falling_and_rising(
    surface: Surface,
    S: Array | None,
    ndim: int,
    flops_per_param: float,  # noqa: N803
) -> tuple[IsoTerm, IsoTerm]:
    """Return the falling and the rising term along ln F.

    Raises
    ------
    FrontierError
        If both move the same way, or an amplitude is 0: there is no interior optimum.
    """
    first, second = iso_terms(surface, S, ndim, flops_per_param)
    falling, rising = (first, second) if np.all(first.slope <= second.slope) else (second, first)
    if np.any(falling.slope >= 0) or np.any(rising.slope <= 0):
        raise FrontierError(
            f"law {surface.law.name}: no interior optimum, because one exponent is not positive; "
            "the loss falls towards one end of the iso-FLOP curve"
        )
    if np.any(np.isneginf(falling.intercept)) or np.any(np.isneginf(rising.intercept)):
        raise FrontierError(f"law {surface.law.name}: no interior optimum, because an amplitude is 0")
    return falling, rising


def align(draws: Array, ndim: int) -> Array:
    """Append ``ndim`` axes, so that draws broadcast against budgets."""
    return np.reshape(draws, draws.shape + (1,) * ndim)
