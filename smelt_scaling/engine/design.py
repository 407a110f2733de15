"""What a design can and cannot identify, before and after the fit.

Two questions. Does each exponent's feature take at least two levels? If not, the exponent is not fitted; and if no
exponent of a term is left, the term is a constant that the floor absorbs. And how well conditioned is the Jacobian at
the optimum, in centred coordinates and with columns of unit norm?
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.engine.problem import Problem
from smelt_scaling.laws import AdditiveLaw, LogTerm

__all__ = [
    "CONDITION_REFUSE_INTERVALS",
    "CONDITION_SINGULAR",
    "CONDITION_WARN",
    "Identified",
    "condition_numbers",
    "exponent_levels",
    "identify",
    "level_index",
    "log_jacobian",
    "moving_together",
    "null_direction",
]

Array = NDArray[np.float64]

#: Sizes or horizons within 5 % of each other are one level.
LEVEL_WIDTH = 0.05

# Measured on simulated worlds: the survey's design has 47, a 4x3 Chinchilla grid 27, fixed tokens per parameter 1.5e7.
CONDITION_WARN = 1e3
CONDITION_REFUSE_INTERVALS = 1e6
CONDITION_SINGULAR = 1e10


@dataclass(frozen=True, kw_only=True)
class Identified:
    """Which parameters a design leaves out, and why.

    Parameters
    ----------
    dropped_terms : frozenset of str
        Amplitudes of terms that are constant over the design.
    dropped_exponents : frozenset of str
        Exponents whose feature has one level.
    reasons : mapping
        One sentence for every unidentified parameter.
    only_at : mapping
        Column -> the one value at which the surface may be used.
    collinear : tuple of str
        Two exponents whose features move together, such as model size and tokens at fixed tokens per parameter, or
        size and sparsity at one total number of parameters; empty if there are none. The optimum may look well
        conditioned by accident of noise; the design is not.
    """

    dropped_terms: frozenset[str]
    dropped_exponents: frozenset[str]
    reasons: Mapping[str, str]
    only_at: Mapping[str, float]
    collinear: tuple[str, ...]


def exponent_levels(
    law: AdditiveLaw, columns: Mapping[str, Array], tiers: NDArray[np.intp]
) -> dict[str, NDArray[np.intp]]:
    """Return, for every exponent, the level index of each row's feature (the finest over the terms it appears in).

    Parameters
    ----------
    law : AdditiveLaw
        The law.
    columns : mapping of name to array (n,)
        The design.
    tiers : int array (n,)
        Sparsity tier of each row, pooled over the architectures compared; the levels of a feature of S alone.
    """
    return _levels_of(law, law.log_terms(columns), tiers)


def _levels_of(
    law: AdditiveLaw, terms: Sequence[LogTerm], tiers: NDArray[np.intp]
) -> dict[str, NDArray[np.intp]]:
    result: dict[str, NDArray[np.intp]] = {}
    of_sparsity = {
        power.exponent
        for term in law.parsed.terms
        for power in term.powers
        if power.feature.names == ("S",) and isinstance(power.exponent, str)
    }
    own_tiers = np.searchsorted(np.unique(tiers), tiers)
    for term in terms:
        for name, slope in term.slopes.items():
            levels = own_tiers if name in of_sparsity else level_index(slope)
            if name not in result or levels.max() > result[name].max():
                result[name] = levels
    return result


def identify(
    law: AdditiveLaw, columns: Mapping[str, Array], pins: Mapping[str, float], tiers: NDArray[np.intp]
) -> Identified:
    """Find exponents and terms that the design cannot tell apart from the rest.

    Parameters
    ----------
    law : AdditiveLaw
        The law.
    columns : mapping of name to array (n,)
        The design.
    pins : mapping
        Parameters the user holds; they need no identification.
    tiers : int array (n,)
        Sparsity tier of each row.
    """
    terms = law.log_terms(columns)
    levels = _levels_of(law, terms, tiers)
    single = frozenset(name for name, index in levels.items() if name not in pins and index.max() == 0)
    features = {
        power.exponent: power.feature
        for term in law.parsed.terms
        for power in term.powers
        if isinstance(power.exponent, str)
    }
    reasons: dict[str, str] = {}
    only_at: dict[str, float] = {}
    for name in sorted(single):
        feature = features[name]
        where = ", ".join(
            f"{column} about {float(np.median(columns[column])):.4g}" for column in feature.names
        )
        reasons[name] = f"{feature.text} has a single level ({where}), so its factor is part of the amplitude"
        only_at |= {column: float(np.median(columns[column])) for column in feature.names}
    dropped = set()
    for term, fixed in zip(law.parsed.terms, terms, strict=True):
        varies = [name for name in fixed.slopes if name not in single]
        constant = not varies and _one_level(fixed.offset)
        if constant and term.amplitude not in pins and law.floor not in pins:
            dropped.add(term.amplitude)
            reasons[term.amplitude] = f"its term is constant over the design, so {law.floor} absorbs it"
            reasons[law.floor] = f"it absorbs the constant term of {term.amplitude}"
    return Identified(
        dropped_terms=frozenset(dropped),
        dropped_exponents=single,
        reasons=reasons,
        only_at=only_at,
        collinear=_collinear(terms, single | frozenset(pins)),
    )


def _collinear(terms: Sequence[LogTerm], given: frozenset[str]) -> tuple[str, ...]:
    """Find two exponents to fit whose log features are one line within `LEVEL_WIDTH`.

    Of two terms with one exponent each, or of one term with these two.
    """
    lines: list[tuple[str, Array]] = []
    for term in terms:
        fitted = [name for name in term.slopes if name not in given]
        if len(term.slopes) == 1 and fitted:
            lines.append((fitted[0], term.slopes[fitted[0]]))
    pairs = list(combinations(lines, 2))
    for term in terms:
        pairs += combinations(((name, x) for name, x in term.slopes.items() if name not in given), 2)
    for (first, x), (second, y) in pairs:
        if first == second:
            continue
        centred = x - x.mean()
        slope = (centred @ y) / (centred @ centred)
        if _one_level(y - slope * centred):
            return (first, second)
    return ()


def moving_together(law: AdditiveLaw, exponents: Sequence[str]) -> str:
    """Say which columns move together where two exponents cannot be told apart, and which runs would part them.

    Examples
    --------
    >>> from smelt_scaling.laws import LAWS
    >>> moving_together(LAWS["sparse-additive"], ("b", "a"))  # doctest: +NORMALIZE_WHITESPACE
    'S and F move together, as with one total size N of which only the active part varies: vary N at a fixed S'
    >>> moving_together(LAWS["chinchilla"], ("alpha", "beta"))
    'N and D move together, as at fixed tokens per parameter: vary one at a fixed value of the other'
    """
    columns = {power.exponent: power.feature.names for term in law.parsed.terms for power in term.powers}
    names = list(dict.fromkeys(name for exponent in exponents for name in columns[exponent]))
    pair = f"{' and '.join(names)} move together"
    if "S" in names:
        return f"{pair}, as with one total size N of which only the active part varies: vary N at a fixed S"
    if "D" in names:
        return f"{pair}, as at fixed tokens per parameter: vary one at a fixed value of the other"
    return f"{pair}: vary one at a fixed value of the other"


def condition_numbers(problem: Problem, theta: Array, weights: Array) -> Array:
    """Return the condition number of the weighted Jacobian of ln m, free columns at unit norm; shape (R,).

    Parameters
    ----------
    problem : Problem
        The problem.
    theta : array (P,)
        Where the Jacobian is taken.
    weights : array (R, n)
        Row weights of each lane.
    """
    jacobian = log_jacobian(problem, theta)
    if jacobian.shape[1] == 0:
        return np.ones(len(weights))
    result = np.empty(len(weights))
    chunk = max(1, 4_000_000 // jacobian.size)
    for lo in range(0, len(weights), chunk):
        scaled = np.sqrt(weights[lo : lo + chunk])[:, :, None] * jacobian
        norms = np.linalg.norm(scaled, axis=1, keepdims=True)
        zero = (norms == 0).any(axis=(1, 2))
        singular = np.linalg.svd(scaled / np.where(norms == 0, 1.0, norms), compute_uv=False)
        # with fewer rows than columns the missing singular values are zeros
        rank_deficient = zero | (singular.shape[1] < jacobian.shape[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            result[lo : lo + chunk] = np.where(rank_deficient, np.inf, singular[:, 0] / singular[:, -1])
    return result


def null_direction(problem: Problem, theta: Array) -> tuple[str, ...]:
    """Name the parameters that make up the least determined direction, largest share first."""
    jacobian = np.sqrt(problem.weight)[:, None] * log_jacobian(problem, theta)
    norms = np.linalg.norm(jacobian, axis=0)
    # the full matrix has a row per endpoint squared; it is needed only where rows are fewer than columns
    full = len(jacobian) < jacobian.shape[1]
    direction = np.linalg.svd(jacobian / np.where(norms == 0, 1.0, norms), full_matrices=full)[2][-1]
    names = [name for name, free in zip(problem.law.parameters, problem.free, strict=True) if free]
    order = np.argsort(-np.abs(direction), kind="stable")
    return tuple(names[i] for i in order if abs(direction[i]) > 0.1)


def log_jacobian(problem: Problem, theta: Array) -> Array:
    """Return d ln m / d theta at the free parameters, shape (n, free)."""
    columns = np.zeros((len(problem.weight), len(theta)))
    columns[:, 0] = 1.0
    for term in problem.terms:
        columns[:, term.columns] += (
            np.exp(term.design @ theta[term.columns] + term.offset)[:, None] * term.design
        )
    predicted = problem.predicted(theta) / problem.scale
    return (columns / predicted[:, None])[:, problem.free]


def _one_level(values: Array) -> bool:
    return not values.max() - values.min() > LEVEL_WIDTH


def level_index(values: Array) -> NDArray[np.intp]:
    """Index levels: a new one starts where a value exceeds the level's first by more than `LEVEL_WIDTH`."""
    ascending = np.sort(values)  # several times as fast as sorting an index
    firsts: list[float] = []
    position = 0
    while position < len(ascending):
        first = float(ascending[position])
        firsts.append(first)
        position = bisect_right(ascending, LEVEL_WIDTH, lo=position, key=partial(_above, first))
    return np.searchsorted(firsts, values, side="right") - 1


def _above(first: float, value: float) -> float:
    return value - first
