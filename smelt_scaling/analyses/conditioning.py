"""How well a design separates the parameters of a law, before any fit, and what would mend it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.engine.design import (
    CONDITION_REFUSE_INTERVALS,
    CONDITION_SINGULAR,
    CONDITION_WARN,
    Identified,
    condition_numbers,
    moving_together,
    null_direction,
)
from smelt_scaling.engine.problem import Problem, make_problem
from smelt_scaling.engine.seeds import projected_starts
from smelt_scaling.laws import AdditiveLaw

__all__ = ["Conditioning", "assess"]

Array = NDArray[np.float64]

#: Rows that place the start, and rows of which the condition number is taken; of longer tables that many at random.
START_ROWS, MOST_ROWS = 512, 100_000
#: Condition numbers up to each bound, and what they mean.
VERDICTS = (
    (CONDITION_WARN, "fine"),
    (CONDITION_REFUSE_INTERVALS, "wide intervals"),
    (CONDITION_SINGULAR, "no intervals"),
    (np.inf, "not identified"),
)
#: Column whose feature has one level -> what to add.
ADD = {
    "D": "add runs at a second number of tokens D, over 5 % away",
    "S": "add a second sparsity tier (over 0.25 away in ln(1 - S)); until then gains hold at this S only",
    "F": "add runs of a second size F, over 5 % away",
    "N": "add runs of a second size N, over 5 % away",
    "N_act": "add runs of a second size N_act, over 5 % away",
    "C": "add runs at a second budget C, over 5 % away",
}
DENSE = "every row is dense: use --law additive"
HOLD = "or hold one with --pin in the fit"


@dataclass(frozen=True, kw_only=True)
class Conditioning:
    """What a design says of a law.

    Parameters
    ----------
    condition : float
        Of the Jacobian of ln loss, free columns at unit norm, features centred, every parameter of the law free; inf if
        a column is zero or there are fewer rows than parameters.
    condition_fitted : float
        The same without the parameters that a fit leaves out.
    verdict, verdict_fitted : str
        "fine", "wide intervals", "no intervals" or "not identified", of the law and without those parameters.
    remedies : tuple of str
        What would mend it, in words; empty if fine.
    """

    condition: float
    condition_fitted: float
    verdict: str
    verdict_fitted: str
    remedies: tuple[str, ...]


def assess(law: AdditiveLaw, own: Endpoints, columns: Mapping[str, Array], found: Identified) -> Conditioning:
    """Assess one architecture.

    Parameters
    ----------
    law : AdditiveLaw
        The law.
    own : Endpoints
        Rows of the architecture.
    columns : mapping of name to array (n,)
        Columns of the law.
    found : Identified
        What its levels say.
    """
    condition, _ = _condition(law, own, columns)
    fitted, weak = condition, ""
    if found.reasons or condition > CONDITION_WARN:
        fitted, weak = _condition(law, own, columns, found)
    verdicts = [text for _, text in VERDICTS]
    rank = next(i for i, (bound, _) in enumerate(VERDICTS) if fitted <= bound)
    if found.collinear:
        rank = max(rank, verdicts.index("no intervals"))
    return Conditioning(
        condition=condition,
        condition_fitted=fitted,
        verdict=verdicts[-1 if found.reasons else rank],
        verdict_fitted=verdicts[rank],
        remedies=tuple(_remedies(law, own, found, fitted, weak)),
    )


def _condition(
    law: AdditiveLaw, own: Endpoints, columns: Mapping[str, Array], found: Identified | None = None
) -> tuple[float, str]:
    """Return the condition number at the best projected start, and the parameters of its weakest direction."""
    # every k-th row of a sorted table may be of one and the same horizon; the seed is fixed for equal answers
    shuffled = (
        np.random.default_rng(0).permutation(len(own)) if len(own) > START_ROWS else np.arange(len(own))
    )

    def problem(most: int) -> Problem:
        rows = np.sort(shuffled[:most])
        return make_problem(
            law,
            {name: values[rows] for name, values in columns.items()},
            own.loss[rows],
            own.weight[rows],
            pins={},
            dropped_terms=found.dropped_terms if found else frozenset(),
            dropped_exponents=found.dropped_exponents if found else frozenset(),
        )

    few, many = problem(START_ROWS), problem(MOST_ROWS)
    starts = projected_starts(few, 1)
    if not len(starts):
        return np.inf, ""
    # coordinates are centred on the rows of a problem, natural coefficients are not
    theta = starts[0] if len(own) <= START_ROWS else many.centred(few.natural(starts[0]))
    condition = float(condition_numbers(many, theta, many.weight[None, :])[0])
    weak = ", ".join(sorted(null_direction(many, theta))) if condition > CONDITION_WARN else ""
    return condition, weak


def _remedies(law: AdditiveLaw, own: Endpoints, found: Identified, fitted: float, weak: str) -> list[str]:
    single = dict.fromkeys(
        name
        for term in law.parsed.terms
        for power in term.powers
        if power.exponent in found.dropped_exponents
        for name in power.feature.names
    )
    remedies = [
        f"{name} has one level: {DENSE if name == 'S' and not own.S.any() else ADD[name]}" for name in single
    ]
    if found.collinear:
        remedies.append(
            f"{' and '.join(found.collinear)} cannot be told apart: {moving_together(law, found.collinear)}, {HOLD}"
        )
    parameters = len(law.parameters) - len(found.dropped_terms | found.dropped_exponents)
    if len(own) < parameters:
        remedies.append(
            f"{len(own)} endpoints for {parameters} parameters: add endpoints, or hold parameters with --pin in the fit"
        )
    elif fitted > CONDITION_WARN and not found.collinear:
        remedies.append(
            f"{weak} trade off against each other: spread sizes, sparsities or tokens wider apart"
        )
    return remedies
