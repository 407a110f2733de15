"""Values by name, from what is typed: tolerances, bounds, formats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smelt_scaling.cli.parse import AMOUNT, SUFFIX, parse_pairs, pieces, plain_number
from smelt_scaling.errors import UsageError

__all__ = ["parse_allowances", "parse_amount", "parse_box", "parse_figures", "parse_tolerance"]


def parse_tolerance(texts: Iterable[str] | None, known: Sequence[str] = ()) -> dict[str, float]:
    """Return how far budgets may differ, as fractions; 4% is 0.04.

    Raises
    ------
    UsageError
        If one is no number, or its name is not known, where names are given.

    Examples
    --------
    >>> parse_tolerance(["flops=.04,kv=4%"])
    {'flops': 0.04, 'kv': 0.04}
    """
    allowed = {}
    for name, typed in parse_pairs("--tolerance", texts).items():
        value = plain_number(typed.removesuffix("%"))
        if known and name not in known:
            raise UsageError(f"--tolerance {name}={typed}: {name} is unknown; choose from {', '.join(known)}")
        if value is None:
            raise UsageError(f"--tolerance {name}={typed}: not a number; write {name}=.04 or {name}=4%")
        allowed[name] = value / 100 if typed.endswith("%") else value
    return allowed


def parse_amount(option: str, text: str) -> float:
    """Return an amount as it is printed: 20.5B; 10% is 0.1.

    Raises
    ------
    UsageError
        If it is none.

    Examples
    --------
    >>> parse_amount("--horizons", "20B"), parse_amount("--decay", "10%")
    (20000000000.0, 0.1)
    """
    match = AMOUNT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{option} {text}: not a number; write 2e10 or 20B")
    return float(match[1]) / 100 if match[2] == "%" else float(match[1]) * SUFFIX[match[2]]


def parse_allowances(texts: Iterable[str] | None) -> dict[str, float]:
    """Return relative tolerances by column.

    Raises
    ------
    UsageError
        If one is no number.

    Examples
    --------
    >>> parse_allowances(["gain=1e-4,gain_lo=0.01"])
    {'gain': 0.0001, 'gain_lo': 0.01}
    """
    allowed = {}
    for name, typed in parse_pairs("--allow", texts).items():
        value = plain_number(typed)
        if value is None:
            raise UsageError(f"--allow {name}={typed}: not a number; write {name}=1e-4")
        allowed[name] = value
    return allowed


def parse_figures(texts: Iterable[str] | None) -> tuple[str, ...]:
    """Return formats of figures; none of them for "none", all by default.

    Raises
    ------
    UsageError
        If one is unknown.

    Examples
    --------
    >>> parse_figures(None), parse_figures(["pdf"]), parse_figures(["none"])
    (('pdf', 'svg', 'png'), ('pdf',), ())
    """
    every = ("pdf", "svg", "png")
    named = tuple(dict.fromkeys(pieces(texts)))
    for name in named:
        if name not in (*every, "none"):
            raise UsageError(f"--figures {name}: choose from {', '.join(every)}, none")
    return () if "none" in named else named or every


def parse_box(texts: Iterable[str] | None) -> dict[str, tuple[float, float]] | None:
    """Return bounds of columns; None if there are none.

    Raises
    ------
    UsageError
        If one is not written NAME=LOW..HIGH, or comes twice.

    Examples
    --------
    >>> parse_box(["F=1e8..4e10,S=70%..0.985"])
    {'F': (100000000.0, 40000000000.0), 'S': (0.7, 0.985)}
    """
    box: dict[str, tuple[float, float]] = {}
    for name, typed in parse_pairs("--box", texts).items():
        ends = [end.strip() for end in typed.split("..")]
        if len(ends) != 2 or not all(map(AMOUNT.fullmatch, ends)):
            raise UsageError(f"--box {name}={typed}: write NAME=LOW..HIGH, such as F=1e8..4e10,S=0.7..0.985")
        box[name] = (parse_amount("--box", ends[0]), parse_amount("--box", ends[1]))
    return box or None
