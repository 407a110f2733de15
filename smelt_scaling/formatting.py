"""Numbers, units and intervals as people print them: pure functions from values to text."""

from __future__ import annotations

import math
import re
from typing import Literal

__all__ = [
    "WIDTH",
    "fold",
    "format_interval",
    "format_multiplier",
    "format_number",
    "format_percent",
    "format_quantity",
    "format_thousands",
]

#: Printed where a value does not exist.
ABSENT = "n/a"
#: Printed where no finite compute reaches the loss asked for; never "100 %".
UNREACHABLE = "unreachable"
#: No end of an interval is written with more decimals of a percentage than this.
FINEST = 4

#: Columns of the terminal that every table and summary fits.
WIDTH = 80

_SUFFIXES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))

#: Where a name may be broken.
_SEPARATED = re.compile(r"\S*?[-_/.:,+](?=\S)|\S+?(?=\s|$)|\s+")


def _special(x: float | None) -> str | None:
    """Return what to print for a value that is not finite, None for one that is."""
    if x is None or math.isnan(x):
        return ABSENT
    if math.isinf(x):
        return "inf" if x > 0 else "-inf"
    return None


def _fixed(x: float, decimals: int) -> str:
    text = f"{x:.{decimals}f}"
    # A value that rounds to zero has no sign worth printing.
    return text.removeprefix("-") if float(text) == 0 else text


def format_number(x: float | None, digits: int = 4) -> str:
    """Write a number with so many significant digits; very large and very small ones with an exponent.

    Parameters
    ----------
    x : float or None
        Any number; None and NaN print as "n/a".
    digits : int
        Significant digits; digits before the decimal point are never rounded away below 100,000.

    Examples
    --------
    >>> format_number(1.81724), format_number(482.01), format_number(12345.6), format_number(1.0182741e-3)
    ('1.817', '482.0', '12346', '0.001018')
    >>> format_number(2143417000.0), format_number(0.0), format_number(None)
    ('2.143e9', '0', 'n/a')
    """
    special = _special(x)
    if special is not None or x is None:
        return special or ABSENT
    if x == 0:
        return "0"
    mantissa, exponent = f"{x:.{digits - 1}e}".split("e")  # rounded first: 9.9996 has the exponent of 10.00
    power = int(exponent)
    if 1e-4 <= abs(x) < 1e5:
        return _fixed(x, max(0, digits - 1 - power))
    return f"{mantissa}e{power}"


def format_quantity(x: float | None, digits: int = 3, *, suffix: bool = False) -> str:
    """Write a large amount: FLOPs with an exponent, tokens and parameters with a suffix.

    Parameters
    ----------
    x : float or None
        The amount.
    digits : int
        Significant digits at most; trailing zeros go, one decimal stays behind an exponent.
    suffix : bool
        Use K, M, B and T from a thousand to a thousand trillions.

    Examples
    --------
    >>> format_quantity(1e21), format_quantity(2.156e11), format_quantity(4.5e8)
    ('1.0e21', '2.16e11', '4.5e8')
    >>> format_quantity(215.605e9, 4, suffix=True), format_quantity(1.6e9, suffix=True), format_quantity(12.0)
    ('215.6B', '1.6B', '12')
    """
    special = _special(x)
    if special is not None or x is None:
        return special or ABSENT
    mantissa, exponent = f"{x:.{digits - 1}e}".split("e")
    power = int(exponent)
    if -3 <= power < 3:
        return _trimmed(format_number(x, digits))
    if suffix and 3 <= power < 15:
        rounded = float(f"{mantissa}e{exponent}")
        size, letter = next(pair for pair in _SUFFIXES if abs(rounded) >= pair[0])
        return _trimmed(format_number(rounded / size, digits)) + letter
    mantissa = _trimmed(mantissa)
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{power}"


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_percent(x: float | None, decimals: int = 1, *, sign: bool = False) -> str:
    """Write a fraction in percent; a loss keeps its minus sign, ``sign`` adds a plus to a gain.

    Parameters
    ----------
    x : float or None
        A fraction: 0.264 is 26.4 %.
    decimals : int
        Digits behind the point.
    sign : bool
        Print "+" before positive values.

    Examples
    --------
    >>> format_percent(0.2643), format_percent(-0.031), format_percent(-0.0001)
    ('26.4 %', '-3.1 %', '0.0 %')
    >>> format_percent(0.08, 0, sign=True)
    '+8 %'
    """
    special = _special(x)
    if special is not None or x is None:
        return special or ABSENT
    text = _fixed(100 * x, decimals)
    plus = "+" if sign and float(text) > 0 else ""
    return f"{plus}{text} %"


def format_multiplier(x: float | None, decimals: int = 2) -> str:
    """Write a ratio as a multiplier.

    Examples
    --------
    >>> format_multiplier(1.3587), format_multiplier(4.5, 1), format_multiplier(None)
    ('×1.36', '×4.5', 'n/a')
    """
    special = _special(x)
    return special or ABSENT if special is not None or x is None else f"×{_fixed(x, decimals)}"


def format_thousands(x: float | None) -> str:
    """Write a count with separators.

    Examples
    --------
    >>> format_thousands(215605), format_thousands(144)
    ('215,605', '144')
    """
    special = _special(x)
    return special or ABSENT if special is not None or x is None else f"{x:,.0f}"


def format_interval(
    lo: float | None,
    hi: float | None,
    kind: Literal["percent", "number", "quantity", "multiplier"] = "percent",
    *,
    digits: int | None = None,
    lo_unreachable: bool = False,
    hi_unreachable: bool = False,
) -> str:
    """Write an interval; an end that no finite compute reaches says so.

    Parameters
    ----------
    lo, hi : float or None
        The ends; None and NaN are absent. Of an infinite multiplier or quantity the end is unreachable.
    kind : {"percent", "number", "quantity", "multiplier"}
        How each end is written; fractions for "percent".
    digits : int, optional
        Decimals of a percentage (1) or multiplier (2), significant digits of a number (4) or quantity (3). An end
        of a percentage that would round to zero keeps as many more as its sign takes.
    lo_unreachable, hi_unreachable : bool
        The flags that stand beside a null end in a result.

    Returns
    -------
    str
        "n/a" when both ends are absent, "unreachable" when both are.

    Raises
    ------
    ValueError
        For an unknown kind.

    Examples
    --------
    >>> format_interval(0.081, 0.279), format_interval(0.081, None, hi_unreachable=True)
    ('[8.1 %, 27.9 %]', '[8.1 %, unreachable]')
    >>> format_interval(-0.004, 0.096), format_interval(-0.0003, 0.096)
    ('[-0.4 %, 9.6 %]', '[-0.03 %, 9.6 %]')
    >>> format_interval(1.09, float("inf"), "multiplier"), format_interval(1.769, 1.871, "number")
    ('[×1.09, unreachable]', '[1.769, 1.871]')
    """
    ends = [_end(lo, kind, digits, lo_unreachable), _end(hi, kind, digits, hi_unreachable)]
    if ends[0] == ends[1] and ends[0] in (ABSENT, UNREACHABLE):
        return ends[0]
    return f"[{ends[0]}, {ends[1]}]"


def _percent_end(x: float | None, decimals: int) -> str:
    """Write an end with its sign: whether an interval holds zero is what people look for."""
    if x is not None and math.isfinite(x):
        while x != 0 and decimals < FINEST and float(_fixed(100 * x, decimals)) == 0:
            decimals += 1
    return format_percent(x, decimals)


def _end(x: float | None, kind: str, digits: int | None, unreachable: bool) -> str:
    if unreachable or (x is not None and x == math.inf):
        return UNREACHABLE
    if kind == "percent":
        return _percent_end(x, 1 if digits is None else digits)
    if kind == "multiplier":
        return format_multiplier(x, 2 if digits is None else digits)
    if kind == "quantity":
        return format_quantity(x, 3 if digits is None else digits)
    if kind == "number":
        return format_number(x, 4 if digits is None else digits)
    raise ValueError(f"unknown kind of interval {kind!r}: use percent, number, quantity or multiplier")


def fold(text: str, width: int = WIDTH, *, first: str = "", indent: str = "") -> list[str]:
    """Wrap text at blanks; a word longer than a line at its separators, and one without any is shortened with "…".

    Examples
    --------
    >>> fold("a looped-mixture-of-experts model", 16)
    ['a looped-', 'mixture-of-', 'experts model']
    >>> fold("incomprehensibilities", 12)
    ['incomprehen…']
    """
    room = width - max(len(first), len(indent))  # of the narrower line, where words are cut
    pieces: list[str] = []
    for word in re.findall(r"\S+|\s+", text.strip()):
        if word.isspace():
            pieces.append(" ")
        elif len(word) <= room:
            pieces.append(word)
        else:
            pieces += [p if len(p) <= room else f"{p[: room - 1]}…" for p in _SEPARATED.findall(word)]
    lines: list[str] = []
    line = ""
    for piece in pieces:
        if len(line) + len(piece.rstrip()) > width - len(indent if lines else first):
            lines.append(line.rstrip())
            line = ""
        line = line + piece if line else piece.lstrip()
    lines += [line.rstrip()] if line.strip() else []
    return [(indent if i else first) + line for i, line in enumerate(lines)]
