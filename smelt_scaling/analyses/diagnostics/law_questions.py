"""What may be asked of two laws: which of their parameters are the same, or idle. Each question is a tie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from smelt_scaling.engine.problem import Problem
from smelt_scaling.engine.tied import Tie, free_tie
from smelt_scaling.laws import AdditiveLaw

__all__ = ["CODES", "Question", "questions_of", "size_and_tokens", "sparsity_exponents"]

#: Every question, and what it supposes of a law that is not known.
CODES = {
    "exponents": "both share their exponents",
    "gamma": "both share gamma",
    "floor": "both share the floor",
    "no_sparsity": "sparsity changes nothing in either",
    "one_exponent": "size and tokens share an exponent in each",
}

#: Columns whose exponents make a frontier: of size, and of tokens.
SIZE, TOKENS = ("F", "N", "N_act"), ("D",)


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """One hypothesis about two architectures.

    Parameters
    ----------
    code : str
        exponents, gamma, floor, no_sparsity or one_exponent.
    hypothesis : str
        What is supposed, in the law's own names.
    tie : Tie or None
        How it ties the parameters; None where it cannot be asked.
    reason : str
        Why it cannot; empty if it can.
    """

    code: str
    hypothesis: str
    tie: Tie | None
    reason: str = ""


def size_and_tokens(law: AdditiveLaw) -> tuple[str, str] | None:
    """Return the exponents a and c of a frontier with gamma = ac/(a+c); None for laws of another shape.

    Each must be the only power of size, or of tokens, and stand in a term without the other.

    Examples
    --------
    >>> from smelt_scaling.laws import LAWS
    >>> size_and_tokens(LAWS["sparse-additive"]), size_and_tokens(LAWS["power-c"])
    (('a', 'c'), None)
    """
    found: dict[str, list[tuple[int, str]]] = {"size": [], "tokens": []}
    for place, term in enumerate(law.parsed.terms):
        for power in term.powers:
            kind = {**dict.fromkeys(SIZE, "size"), **dict.fromkeys(TOKENS, "tokens")}.get(power.feature.text)
            if kind is None and power.feature.names != ("S",):
                return None
            if kind is not None:
                if not isinstance(power.exponent, str) or power.sign > 0:
                    return None
                found[kind].append((place, power.exponent))
    if any(len(own) != 1 for own in found.values()) or found["size"][0][0] == found["tokens"][0][0]:
        return None
    return found["size"][0][1], found["tokens"][0][1]


def sparsity_exponents(law: AdditiveLaw) -> tuple[str, ...]:
    """Return the exponents that stand on S alone."""
    powers = [power for term in law.parsed.terms for power in term.powers]
    others = {power.exponent for power in powers if power.feature.names != ("S",)}
    own = {power.exponent for power in powers if power.feature.names == ("S",)} - others
    return tuple(sorted(name for name in own if isinstance(name, str)))


def questions_of(law: AdditiveLaw, problems: Sequence[Problem], archs: Sequence[str]) -> list[Question]:
    """Return every question, in the order in which a table holds them.

    Parameters
    ----------
    law : AdditiveLaw
        The law of both.
    problems : sequence of two Problems
        Their fits' problems.
    archs : sequence of two str
        Their names, for reasons.
    """
    separate, size = free_tie(problems), len(law.parameters)
    place = {name: i for i, name in enumerate(law.parameters)}
    loose = [{name for name, i in place.items() if np.isnan(problem.held[i])} for problem in problems]

    def missing(*names: str) -> str:
        lost = [
            f"{name} of {a}" for a, own in zip(archs, loose, strict=True) for name in names if name not in own
        ]
        return f"{', '.join(lost)} held or not identified" if lost else ""

    shared = [name for name in law.exponents if all(name in own for own in loose)]
    tie = separate
    for name in shared:
        tie = tie.equal(place[name], size + place[name])
    asked = [
        Question(
            code="exponents",
            hypothesis=f"both share {', '.join(shared or law.exponents)}",
            tie=tie if shared else None,
            reason="" if shared else missing(*law.exponents),
        )
    ]
    pair = size_and_tokens(law)
    a, c = pair or ("a", "c")
    reason = "the law has no exponents of size and tokens apart" if pair is None else missing(a, c)
    if not reason and a == c:
        reason = f"the law has one exponent, {a}"
    asked.append(
        Question(
            code="gamma",
            hypothesis=f"both share gamma = {a}{c}/({a}+{c})" if len(a + c) == 2 else "both share gamma",
            tie=None
            if reason
            else separate.same_frontier(place[a], place[c], size + place[a], size + place[c]),
            reason=reason,
        )
    )
    E = law.floor
    lost = missing(E)
    asked.append(
        Question(
            code="floor",
            hypothesis=f"both share {E}",
            tie=None if lost else separate.equal(0, size, problems[0].scale / problems[1].scale),
            reason=lost,
        )
    )
    idle = sparsity_exponents(law)
    lost = missing(*idle) if idle else "the law holds no exponent of S alone"
    tie = separate
    for name in idle if not lost else ():
        tie = tie.fixed(place[name], 0.0).fixed(size + place[name], 0.0)
    asked.append(
        Question(
            code="no_sparsity",
            hypothesis=f"{' = '.join(idle or ('b',))} = 0 in both",
            tie=None if lost else tie,
            reason=lost,
        )
    )
    asked.append(
        Question(
            code="one_exponent",
            hypothesis=f"{a} = {c} in both",
            tie=None
            if reason
            else separate.equal(place[a], place[c]).equal(size + place[a], size + place[c]),
            reason=reason,
        )
    )
    return asked
