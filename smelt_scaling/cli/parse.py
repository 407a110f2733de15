"""From what is typed to values; every refusal says what was typed and what would do."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from smelt_scaling.errors import UsageError

__all__ = [
    "AMOUNT",
    "SUFFIX",
    "check_points",
    "parse_budget",
    "parse_budgets",
    "parse_counts",
    "parse_delta",
    "parse_names",
    "parse_noise",
    "parse_number",
    "parse_numbers",
    "parse_pairs",
    "parse_pins",
    "parse_points",
    "parse_starts",
    "pieces",
    "plain_number",
]

#: How a pair of each option is written.
_PAIRS = {
    "--map": "--map NAME=COLUMN",
    "--unit": "--unit NAME=UNIT",
    "--at": "--at F=1e10,D=100B,S=.947",
    "--box": "--box F=1e8..4e10,S=0.7..0.985",
    "--long": "--long domains=eval/*/loss",
    "--allow": "--allow gain=1e-4",
    "--tolerance": "--tolerance flops=.04,params=.01,kv=.04",
}
#: How the counts of each option are written.
_COUNTS = {"--shots": "0,1,2,4,8", "--cells": "12,24", "--loops": "2,3,4"}
SUFFIX = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
AMOUNT = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([KMBT%]?)")


def pieces(texts: Iterable[str] | None) -> list[str]:
    """Split what is repeated or separated by commas."""
    found = [piece.strip() for text in texts or () for piece in text.split(",")]
    return [piece for piece in found if piece]


def parse_names(texts: Iterable[str] | None, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Return names, in order; what is a known name as a whole is not split at its commas.

    Examples
    --------
    >>> parse_names(["ours,base", "third, wide"], known=["third, wide"])
    ('ours', 'base', 'third, wide')
    """
    whole = set(known)
    return tuple(name for text in texts or () for name in ([text] if text in whole else pieces([text])))


def parse_budgets(texts: Iterable[str] | None, option: str = "--budget") -> list[float]:
    """Return training budgets in FLOPs.

    Raises
    ------
    UsageError
        If one is no positive, finite number.

    Examples
    --------
    >>> parse_budgets(["1e20,1e21", "1e22 FLOPs"])
    [1e+20, 1e+21, 1e+22]
    """
    budgets = []
    for piece in pieces(texts):
        bare = re.sub(r"\s*flops?$", "", piece, flags=re.IGNORECASE)
        value = plain_number(bare)
        if value is None or not (value > 0 and math.isfinite(value)):
            raise UsageError(f"{option} {piece}: training FLOPs are a positive number, such as 1e21")
        budgets.append(value)
    return budgets


def parse_budget(option: str, texts: Iterable[str] | None) -> float | None:
    """Return the one amount of FLOPs of an option, or None.

    Raises
    ------
    UsageError
        If there are several, or it is no positive, finite number.

    Examples
    --------
    >>> parse_budget("--fund", ["1e22"])
    1e+22
    """
    budgets = parse_budgets(texts, option)
    if len(budgets) > 1:
        raise UsageError(f"{option}: {len(budgets)} amounts are given; name one here")
    return budgets[0] if budgets else None


def parse_numbers(option: str, texts: Iterable[str] | None) -> list[float]:
    """Return numbers; 95% is 0.95.

    Raises
    ------
    UsageError
        If one is no number.

    Examples
    --------
    >>> parse_numbers("--sparsity", [".846,95%"])
    [0.846, 0.95]
    """
    numbers = []
    for piece in pieces(texts):
        value = plain_number(piece.removesuffix("%"))
        if value is None or not math.isfinite(value):
            raise UsageError(f"{option} {piece}: not a number; write a fraction such as 0.95")
        number = value / 100 if piece.endswith("%") else value
        if option in ("--sparsity", "--exclude-tier") and not -1 < number < 1:
            percent = f"; {piece} percent is written {value / 100:g} or {piece}%" if 1 < number < 100 else ""
            raise UsageError(f"{option} {piece}: a fraction in [0, 1) is needed{percent}")
        numbers.append(number)
    return numbers


def parse_counts(option: str, texts: Iterable[str] | None) -> list[int] | None:
    """Return whole numbers, each once; None if there is none.

    Raises
    ------
    UsageError
        If one is no whole number.

    Examples
    --------
    >>> parse_counts("--shots", ["0,1", "8"])
    [0, 1, 8]
    """
    typed = pieces(texts)
    wrong = [piece for piece in typed if not piece.isdecimal()]
    if wrong:
        raise UsageError(f"{option} {wrong[0]}: not a whole number; write {_COUNTS.get(option, '2')}")
    return list(dict.fromkeys(map(int, typed))) or None


def parse_noise(texts: Iterable[str] | None) -> float | dict[str, float] | None:
    """Return the standard deviation of runs, or that of each metric or architecture.

    Raises
    ------
    UsageError
        If one is no number.

    Examples
    --------
    >>> parse_noise(["0.002"]), parse_noise(["loss=.002,core=.5"])
    (0.002, {'loss': 0.002, 'core': 0.5})
    """
    listed = pieces(texts)
    values = {}
    for piece in listed:
        name, _, typed = piece.rpartition("=")
        value = plain_number(typed)
        if value is None or (name == "" and len(listed) > 1):
            raise UsageError(f"--noise {piece}: write 0.002, or one for each such as loss=0.002,core=0.5")
        values[name.strip()] = value
    return values.get("", values) if values else None


def parse_number(option: str, texts: Iterable[str] | None) -> float | None:
    """Return the one number of an option, or None.

    Raises
    ------
    UsageError
        If there are several, or it is no number.

    Examples
    --------
    >>> parse_number("--sparsity", ["95%"])
    0.95
    """
    numbers = parse_numbers(option, texts)
    if len(numbers) > 1:
        raise UsageError(f"{option}: {len(numbers)} numbers are given; name one here")
    return numbers[0] if numbers else None


def parse_pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """Return NAME=VALUE pairs; a comma separates pairs only where another NAME= follows.

    Raises
    ------
    UsageError
        If a pair has no name or no value, or a name comes twice.

    Examples
    --------
    >>> parse_pairs("--map", ["loss=val/ce, held out,F=flops"])
    {'loss': 'val/ce, held out', 'F': 'flops'}
    """
    pairs: dict[str, str] = {}
    for text in texts or ():
        for piece in re.split(r",(?=\s*\w+\s*=)", text):
            name, equals, value = (part.strip() for part in piece.partition("="))
            if not (name and equals and value):
                raise UsageError(f"{option} {piece}: write {_PAIRS.get(option, 'NAME=VALUE')}")
            if name in pairs and pairs[name] != value:
                raise UsageError(f"{option}: {name} is given as {pairs[name]} and as {value}; name it once")
            pairs[name] = value
    return pairs


Pin = float | tuple[float, str]


def parse_pins(texts: Iterable[str] | None) -> dict[str, Pin | dict[str, Pin]]:
    """Return held parameters, for all architectures or for one; a text with a single = is not split at commas.

    Behind an @ stands the evaluation set that the value belongs to.

    Raises
    ------
    UsageError
        If one is not written P=X or ARCH:P=X, or a parameter is held at two values.

    Examples
    --------
    >>> parse_pins(["E=1.6,c=.65", "ours, wide:a=.35"])
    {'E': 1.6, 'c': 0.65, 'ours, wide': {'a': 0.35}}
    >>> parse_pins(["ours:E=1.6@paloma/macro"])
    {'ours': {'E': (1.6, 'paloma/macro')}}
    """
    pins: dict[str, Pin | dict[str, Pin]] = {}
    listed = ([text] if text.count("=") == 1 else pieces([text]) for text in texts or ())
    for piece in chain.from_iterable(listed):
        left, _, right = piece.rpartition("=")
        arch, colon, name = left.rpartition(":")
        typed, at, tag = (part.strip() for part in right.partition("@"))
        value = plain_number(typed)
        if not name or value is None or (colon and not arch) or (at and not tag):
            raise UsageError(
                f"--pin {piece}: write E=1.6, ours:E=1.6 for one architecture, E=1.6@NAME of an evaluation set"
            )
        pin = (value, tag) if at else value
        own: Any = pins.setdefault(arch, {}) if colon else pins
        held = own.get(name, pin) if isinstance(own, dict) else own
        if isinstance(held, dict) or not isinstance(own, dict):
            raise UsageError(
                f"--pin {piece}: {arch or name} is the name of a parameter as well; hold it alone"
            )
        if held != pin:
            one, other = ("{:g}@{}".format(*p) if isinstance(p, tuple) else f"{p:g}" for p in (held, pin))
            raise UsageError(f"--pin: {left} is held at {one} and at {other}; hold it once")
        own[name] = pin
    return pins


def parse_points(texts: Iterable[str]) -> dict[str, list[float]]:
    """Return the columns of the points at which to predict; amounts may end in K, M, B, T or %.

    Raises
    ------
    UsageError
        If a value is no number, or two points name different columns.

    Examples
    --------
    >>> parse_points(["F=1e10,D=100B", "F=2e10,D=1e11"])
    {'F': [10000000000.0, 20000000000.0], 'D': [100000000000.0, 100000000000.0]}
    """
    points: dict[str, list[float]] = {}
    for number, text in enumerate(texts):
        pairs = parse_pairs("--at", [text])
        if number and set(pairs) != set(points):
            raise UsageError(
                f"--at {text}: every point names the same columns; the first has {', '.join(points)}"
            )
        for name, typed in pairs.items():
            points.setdefault(name, []).append(_amount(typed, text))
    return points


def check_points(points: Mapping[str, list[float]], columns: Sequence[str], law: str) -> None:
    """Refuse points that do not name the columns of a law, with the spelling or the value that would do.

    Raises
    ------
    UsageError
        Naming every column that is missing or not in the law.

    Examples
    --------
    >>> check_points({"f": [1e9], "D": [1e9]}, ("F", "S", "D"), "sparse-additive")
    Traceback (most recent call last):
        ...
    smelt_scaling.errors.UsageError: --at: law sparse-additive needs F, S, D; f is written F; S is missing, add S=0 \
    for a dense model
    """
    spelled = {name.casefold(): name for name in columns}
    meant = {name: spelled.get(name.casefold()) for name in points if name not in columns}
    wrong = [
        f"{name} is written {right}" if right else f"{name} is not in the law"
        for name, right in meant.items()
    ]
    for name in columns:
        if name not in points and name not in meant.values():
            wrong.append(f"{name} is missing" + (", add S=0 for a dense model" if name == "S" else ""))
    if wrong:
        raise UsageError(f"--at: law {law} needs {', '.join(columns)}; {'; '.join(wrong)}")


def parse_delta(text: str) -> float | Literal["auto"]:
    """Return a Huber threshold: a number, infinity, or "auto".

    Raises
    ------
    UsageError
        If it is none of these.

    Examples
    --------
    >>> parse_delta("1e-3"), parse_delta("inf"), parse_delta("auto")
    (0.001, inf, 'auto')
    """
    if text == "auto":
        return "auto"
    value = plain_number(text)
    if value is None or not value > 0:
        raise UsageError(f"--delta {text}: write a positive number such as 1e-3, inf or auto")
    return value


def parse_starts(text: str) -> int | Literal["thorough"]:
    """Return a number of starts, or "thorough".

    Raises
    ------
    UsageError
        If it is neither.

    Examples
    --------
    >>> parse_starts("5"), parse_starts("thorough")
    (5, 'thorough')
    """
    if text == "thorough":
        return "thorough"
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"--starts {text}: write a whole number of at least 1, or thorough")
    return int(text)


def plain_number(text: str) -> float | None:
    """Return a number, None if the text is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value


def _amount(typed: str, text: str) -> float:
    match = AMOUNT.fullmatch(typed)
    if match is None:
        raise UsageError(f"--at {text}: {typed} is not a number; write F=1e10,D=100B,S=.947")
    if match[2] == "%":
        return float(match[1]) / 100
    return float(match[1]) * SUFFIX[match[2]]
