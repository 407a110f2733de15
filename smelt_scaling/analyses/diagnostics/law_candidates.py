"""The laws that a study's law is compared with: its simpler and its richer neighbours, and any that is named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from smelt_scaling.analyses.diagnostics.law_questions import size_and_tokens, sparsity_exponents
from smelt_scaling.laws import AdditiveLaw, get_law
from smelt_scaling.laws.formula import Formula, Power, Term, parse_formula

__all__ = ["STUDY", "Candidate", "candidates_of"]

#: Name of the study's own law among the candidates.
STUDY = "the study's law"
#: Names tried for an exponent that a richer law adds.
NEW = ("d", "h", "g", "q")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One law to compare.

    Parameters
    ----------
    name : str
        What it is, in words.
    law : AdditiveLaw
        Its formula.
    shared : bool
        Whether the architectures share its exponents.
    """

    name: str
    law: AdditiveLaw
    shared: bool = False


def candidates_of(law: AdditiveLaw, named: Iterable[str | AdditiveLaw] = ()) -> list[Candidate]:
    """Return the study's law, its neighbours as far as its shape has them, then the laws named.

    Examples
    --------
    >>> from smelt_scaling.laws import LAWS
    >>> for one in candidates_of(LAWS["sparse-additive"]):
    ...     print(f"{one.name}: {one.law.formula}")
    the study's law: E + A*(1-S)**b*F**-a + K*D**-c
    exponents shared: E + A*(1-S)**b*F**-a + K*D**-c
    without S (b = 0): E + A*F**-a + K*D**-c
    one exponent (a = c): E + A*(1-S)**b*F**-a + K*D**-a
    S in the term of tokens: E + A*(1-S)**b*F**-a + K*D**-c*(1-S)**d
    size and tokens interact: E + A*(1-S)**b*F**-a*D**d + K*D**-c
    """
    found = [Candidate(name=STUDY, law=law), Candidate(name="exponents shared", law=law, shared=True)]
    formula = law.parsed
    idle = sparsity_exponents(law)
    if idle:
        found.append(_candidate(f"without S ({' = '.join(idle)} = 0)", _without(formula, set(idle))))
    pair = size_and_tokens(law)
    if pair is not None and pair[0] != pair[1]:
        a, c = pair
        found.append(_candidate(f"one exponent ({a} = {c})", _renamed(formula, c, a)))
        new = next(name for name in NEW if name not in law.parameters)
        size, tokens = (next(t for t in formula.terms if name in _exponents(t)) for name in pair)
        sparsity = next((p for t in formula.terms for p in t.powers if p.exponent in idle), None)
        if sparsity is not None and not set(idle) & _exponents(tokens):
            more = _with(formula, tokens, replace(sparsity, exponent=new, sign=1))
            found.append(_candidate("S in the term of tokens", more))
        length = next(p for p in tokens.powers if p.exponent == c)
        more = _with(formula, size, replace(length, exponent=new, sign=1))
        found.append(_candidate("size and tokens interact", more))
    for one in named:
        other = get_law(one)
        found.append(Candidate(name=other.name, law=other))
    unique = {(one.law.formula.replace(" ", ""), one.shared): one for one in reversed(found)}
    return [one for one in found if one is unique[one.law.formula.replace(" ", ""), one.shared]]


def _candidate(name: str, formula: Formula) -> Candidate:
    text = " + ".join([formula.floor, *(_term_text(term) for term in formula.terms)])
    return Candidate(name=name, law=AdditiveLaw(name, text))


def _term_text(term: Term) -> str:
    factors = [term.amplitude]
    for power in term.powers:
        base = power.feature.text if power.feature.text.isidentifier() else f"({power.feature.text})"
        exponent = f"{power.exponent:g}" if isinstance(power.exponent, float) else power.exponent
        factors.append(f"{base}**{'-' if power.sign < 0 else ''}{exponent}")
    return "*".join(factors)


def _exponents(term: Term) -> set[str | float]:
    return {power.exponent for power in term.powers}


def _without(formula: Formula, names: set[str]) -> Formula:
    """Drop powers; a term of which nothing is left would be a constant beside the floor, and goes with them."""
    terms = (
        replace(term, powers=tuple(p for p in term.powers if p.exponent not in names))
        for term in formula.terms
    )
    return replace(formula, terms=tuple(term for term in terms if term.powers))


def _renamed(formula: Formula, old: str, new: str) -> Formula:
    def power(one: Power) -> Power:
        return replace(one, exponent=new) if one.exponent == old else one

    terms = (replace(term, powers=tuple(map(power, term.powers))) for term in formula.terms)
    return replace(formula, terms=tuple(terms))


def _with(formula: Formula, term: Term, power: Power) -> Formula:
    terms = (replace(one, powers=(*one.powers, power)) if one is term else one for one in formula.terms)
    return parse_formula(
        " + ".join([formula.floor, *(_term_text(one) for one in terms)])
    )  # the same, written and read
