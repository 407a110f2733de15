"""Reading a law's formula: text -> floor, terms, features, with a whitelist instead of ``eval``.

A formula is a sum of one floor and products ``amplitude * feature**exponent * ...``::

    E + A*(1-S)**b*F**-a + K*D**-c

Names that are columns of the endpoint schema (F, S, D, N, N_act, C) are features, every other name is a parameter. A
minus sign in front of an exponent declares a decay. Numbers are allowed as exponents and inside features.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import UsageError

__all__ = ["FEATURE_NAMES", "RESERVED_NAMES", "Feature", "Formula", "Power", "Term", "parse_formula"]

Array = NDArray[np.float64]

#: Columns a formula may use. All are positive except S, a fraction in [0, 1).
FEATURE_NAMES = ("F", "S", "D", "N", "N_act", "C")

#: Longer texts are refused before they are parsed; nesting this shallow cannot exhaust the stack.
MAX_LENGTH = 400

#: Largest number a formula may hold; integers of any size would not convert to float.
MAX_NUMBER = 1e300

#: Names that stand beside the coefficients in a table of draws; a parameter may not take them.
RESERVED_NAMES = frozenset(
    {"plan", "replicate", "arch", "certified", "degenerate", "improved", "at_bound", "objective", "counts"}
)

_OPERATIONS: dict[type[ast.operator], np.ufunc] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
}


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A positive quantity computed from columns, such as ``F`` or ``1-S``; what the law raises to a power."""

    text: str
    names: tuple[str, ...]
    tree: ast.expr

    def log(self, columns: Mapping[str, Array]) -> Array:
        """Return ln(feature) for the given columns; shape is their broadcast shape."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(np.asarray(_evaluate(self.tree, columns), dtype=np.float64))
        if not np.all(np.isfinite(value)):
            used = ", ".join(self.names)
            raise UsageError(
                f"feature {self.text}: not positive and finite for the given {used}: a law takes its "
                "logarithm; correct the column or use another law"
            )
        return value

    def monomial(self) -> tuple[float, dict[str, float]] | None:
        """Return (constant, powers) if the feature is ``constant * product(column**power)``, else None."""
        return _monomial(self.tree)


@dataclass(frozen=True, kw_only=True)
class Power:
    """One factor ``feature**(sign*exponent)``; the exponent is a parameter name or a fixed number."""

    feature: Feature
    exponent: str | float
    sign: int


@dataclass(frozen=True, kw_only=True)
class Term:
    """``amplitude`` times a product of powers."""

    amplitude: str
    powers: tuple[Power, ...]


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A parsed law: its floor and its terms."""

    floor: str
    terms: tuple[Term, ...]


def parse_formula(text: str) -> Formula:
    """Parse a formula such as ``"E + A*(1-S)**b*F**-a + K*D**-c"``.

    ``^`` is read as ``**`` and ``A/N**a`` as ``A*N**-a``.

    Raises
    ------
    UsageError
        If the text is not a sum of one floor and amplitude-times-power terms.

    Examples
    --------
    >>> formula = parse_formula("E + A/N^alpha + B*D**-beta")
    >>> formula.floor, [term.amplitude for term in formula.terms]
    ('E', ['A', 'B'])
    """
    if len(text) > MAX_LENGTH:
        raise _refuse(text[:40] + "...", f"longer than {MAX_LENGTH} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # "1if" and the like compile with a warning; here they are refused
            tree = ast.parse(text.replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refuse(text, f"not an expression ({getattr(error, 'msg', error)})") from None
    floors: list[str] = []
    terms: list[Term] = []
    for part in _flatten(tree, ast.Add):
        if isinstance(part, ast.Name) and part.id not in FEATURE_NAMES:
            floors.append(part.id)
        else:
            terms.append(_term(part, text))
    if len(floors) != 1:
        raise _refuse(text, f"it has {len(floors)} floors; exactly one lone parameter, such as E, is needed")
    if not terms:
        raise _refuse(text, "it has no term that depends on a column")
    names = [floors[0], *(term.amplitude for term in terms)]
    exponents = {p.exponent for term in terms for p in term.powers if isinstance(p.exponent, str)}
    if len(set(names)) != len(names) or exponents & set(names):
        raise _refuse(text, "the floor, each amplitude and the exponents need different names")
    reserved = sorted(RESERVED_NAMES & (exponents | set(names)))
    if reserved:
        raise _refuse(text, f"{', '.join(reserved)} is a column of the table of draws; choose another name")
    return Formula(floor=floors[0], terms=tuple(terms))


def _refuse(text: str, why: str) -> UsageError:
    return UsageError(
        f"law {text!r}: {why}; write it like E + A*(1-S)**b*F**-a + K*D**-c with columns {', '.join(FEATURE_NAMES)}"
    )


def _flatten(node: ast.expr, operator: type[ast.operator]) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        return [*_flatten(node.left, operator), *_flatten(node.right, operator)]
    return [node]


def _factors(node: ast.expr, sign: int = 1) -> list[tuple[ast.expr, int]]:
    """Flatten a product and a quotient to (factor, +1 or -1)."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        right = sign if isinstance(node.op, ast.Mult) else -sign
        return [*_factors(node.left, sign), *_factors(node.right, right)]
    return [(node, sign)]


def _term(node: ast.expr, text: str) -> Term:
    amplitudes: list[str] = []
    powers: list[Power] = []
    for factor, sign in _factors(node):
        if isinstance(factor, ast.Name) and factor.id not in FEATURE_NAMES and sign == 1:
            amplitudes.append(factor.id)
        elif isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Pow):
            powers.append(_power(factor, sign, text))
        else:
            raise _refuse(text, f"{ast.unparse(factor)!r} is neither an amplitude nor a power of a column")
    if len(amplitudes) != 1 or not powers:
        raise _refuse(
            text, f"term {ast.unparse(node)!r} needs one amplitude and at least one power of a column"
        )
    return Term(amplitude=amplitudes[0], powers=tuple(powers))


def _power(node: ast.BinOp, sign: int, text: str) -> Power:
    exponent: ast.expr = node.right
    while isinstance(exponent, ast.UnaryOp) and isinstance(exponent.op, ast.USub | ast.UAdd):
        sign = -sign if isinstance(exponent.op, ast.USub) else sign
        exponent = exponent.operand
    feature = _feature(node.left, text)
    if isinstance(exponent, ast.Name) and exponent.id not in FEATURE_NAMES:
        return Power(feature=feature, exponent=exponent.id, sign=sign)
    if isinstance(exponent, ast.Constant) and _is_number(exponent.value):
        return Power(feature=feature, exponent=float(exponent.value), sign=sign)
    raise _refuse(text, f"exponent {ast.unparse(node.right)!r} must be a parameter or a number")


def _feature(node: ast.expr, text: str) -> Feature:
    names: list[str] = []
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            if part.id not in FEATURE_NAMES:
                inside = "" if part is node else f" in {ast.unparse(node)!r}"
                raise _refuse(text, f"{part.id!r}{inside} is not a column")
            names.append(part.id)
        elif isinstance(part, ast.Constant):
            if not _is_number(part.value):
                raise _refuse(text, f"{ast.unparse(part)!r} is not a number")
        elif isinstance(part, ast.BinOp):
            if type(part.op) not in _OPERATIONS:
                raise _refuse(text, f"{ast.unparse(node)!r} may use + - * / only")
        elif not isinstance(part, ast.operator | ast.Load):
            raise _refuse(text, f"{ast.unparse(node)!r} may hold columns, numbers and + - * / only")
    if not names:
        raise _refuse(text, f"{ast.unparse(node)!r} holds no column")
    return Feature(text=ast.unparse(node).replace(" ", ""), names=tuple(dict.fromkeys(names)), tree=node)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_NUMBER


def _evaluate(node: ast.expr, columns: Mapping[str, Array]) -> Array | float:
    if isinstance(node, ast.Name):
        return columns[node.id]
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]  # the parser admitted numbers only
    assert isinstance(node, ast.BinOp)
    result: Array = _OPERATIONS[type(node.op)](_evaluate(node.left, columns), _evaluate(node.right, columns))
    return result


def _monomial(node: ast.expr) -> tuple[float, dict[str, float]] | None:
    if isinstance(node, ast.Name):
        return 1.0, {node.id: 1.0}
    if isinstance(node, ast.Constant):
        return float(node.value), {}  # type: ignore[arg-type]
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Div):
        return None
    left, right = _monomial(node.left), _monomial(node.right)
    if left is None or right is None:
        return None
    sign = 1.0 if isinstance(node.op, ast.Mult) else -1.0
    powers = dict(left[1])
    for name, power in right[1].items():
        powers[name] = powers.get(name, 0.0) + sign * power
    return left[0] * right[0] ** sign, powers
