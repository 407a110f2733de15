"""Cells of any dtype as text or as numbers, with what had to be read between the lines counted."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import UNITS, counted, first_rows
from smelt_scaling._text import Text
from smelt_scaling.errors import Note

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RawTable", "to_numbers", "to_text"]

_MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>"})
_NUMBER = re.compile(r"([+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z%]*)")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")  # nobody groups 500 as 0,500
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")


@dataclass(kw_only=True)
class RawTable:
    """Schema columns in file order, with what went wrong and what was changed on the way."""

    columns: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)
    questioned: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    sources: dict[str, str] = field(default_factory=dict)
    parsed: dict[str, int] = field(default_factory=dict)
    runs_unread: str = ""


def to_text(series: pd.Series[Any], missing: NDArray[np.bool_]) -> tuple[Text, int]:
    """Write every cell as text; 7.0 reads "7", since a missing value elsewhere makes integers floats."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        codes, values = series.cat.codes.to_numpy(), series.cat.categories.tolist()
    elif pd.api.types.infer_dtype(series, skipna=True) == "string":
        # a million labels are a few distinct ones
        codes, found = pd.factorize(series)
        values = found.tolist()
    else:  # not told apart by their hash: 1, 1.0 and True
        codes, values = np.arange(len(series)), series.astype(object).tolist()
    texts = [value if type(value) is str else _written(value) for value in values]
    cells = [text.strip() for text in texts]
    codes = np.where(missing, len(cells), codes)
    changed = np.array([*map(operator.ne, texts, cells), False])
    return Text.coded(codes, [*cells, ""]), int(changed[codes].sum())


def _written(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 1e15:
        return str(int(value))
    return str(value)


def to_numbers(
    series: pd.Series[Any],
    missing: NDArray[np.bool_],
    name: str,
    units: Mapping[str, str],
    source: str,
    table: RawTable,
) -> NDArray[np.float64]:
    label = table.names[name]
    plain = "fiub" if name == "weight" else "fiu"  # a flag may weigh rows; it is no other quantity
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in plain:
        numbers = series.to_numpy(dtype=np.float64)
        overflowed = np.isinf(numbers)
        if series.dtype == np.float16 and overflowed.any():
            table.problems.append(
                f"{source}: column {label}, {first_rows(overflowed)} infinite: float16 ends at 65504; "
                "write the column as float64"
            )
            table.unreadable.add(name)
        return numbers
    cells = series.astype(object).to_numpy()
    numbers = np.full(len(series), np.nan)
    try:
        if any(_lax(cell, name) for cell in cells):
            raise ValueError  # noqa: TRY301  # such cells are judged one by one
        numbers[~missing] = cells[~missing].astype(np.float64)
    except (OverflowError, TypeError, ValueError):
        return _cell_by_cell(cells, missing, name, units, source, table)
    return numbers


def _lax(value: Any, name: str) -> bool:
    """Whether Python would read as a number what people do not mean so: true, "1_000", full-width digits."""
    if isinstance(value, str):
        return "_" in value or not value.isascii()
    return isinstance(value, bool | np.bool_) and name != "weight"


def _cell_by_cell(
    cells: NDArray[np.object_],
    missing: NDArray[np.bool_],
    name: str,
    units: Mapping[str, str],
    source: str,
    table: RawTable,
) -> NDArray[np.float64]:
    """Read cells of which some are no plain numbers."""
    label = table.names[name]
    # A suffix and a stated unit would scale twice, so a suffix is read only where no unit is stated.
    suffixes = _suffixes(name) if name not in units else {}
    numbers = np.full(len(cells), np.nan)
    bad = np.zeros(len(cells), dtype=np.bool_)
    repaired = 0
    for row, (value, absent) in enumerate(zip(cells, missing, strict=True)):
        if absent:
            continue
        try:
            if _lax(value, name):
                raise ValueError  # noqa: TRY301
            numbers[row] = float(value)
        except OverflowError:
            numbers[row] = np.inf
        except (TypeError, ValueError):
            # no loss in nats is in thousands: 2,244 is a decimal comma
            grouped = name == "loss" and name not in units and "," in str(value)
            number = None if grouped else _parse(str(value), name, suffixes)
            if number is None:
                bad[row] = str(value).strip().casefold() not in _MISSING
            else:
                numbers[row] = number
                repaired += 1
    if bad.any():
        shown = str(cells[int(bad.argmax())])
        accepted = f"use digits, or a suffix of {', '.join(suffixes)}" if suffixes else "use plain digits"
        if _DECIMAL_COMMA.fullmatch(shown.strip()):
            accepted = f"use a decimal point ({shown.strip().replace(',', '.')[:40]})"
        table.problems.append(
            f"{source}: column {label}, {first_rows(bad)} not a number ({shown[:40]!r}): {accepted}"
        )
        table.unreadable.add(name)
    if repaired:
        table.parsed[name] = repaired
        table.notes.append(
            Note(
                code="parsed_numbers",
                severity="info",
                count=repaired,
                message=f"{source}: column {label}, {counted(repaired, 'cell')} with a suffix or thousands "
                "separators read as numbers",
            )
        )
    return numbers


def human_number(text: str, name: str) -> float | None:
    """Read one cell of a column as a person writes it; None when there is any doubt.

    Examples
    --------
    >>> human_number("215B", "D"), human_number("94.7%", "S"), human_number("1_000", "D")
    (215000000000.0, 0.947, None)
    """
    try:
        return None if _lax(text, name) else float(text)
    except ValueError:
        return _parse(text, name, _suffixes(name))


def _suffixes(name: str) -> dict[str, str]:
    """Suffix a person may write after a number of this column, and the unit it stands for."""
    if name == "S":
        return {"%": "percent"}
    return {unit: unit for unit in UNITS.get(name, {}) if len(unit) == 1}


def _parse(text: str, name: str, suffixes: Mapping[str, str]) -> float | None:
    """Read "215B", "1.33 GFLOPs", "86 %" or "215,605,043,200"; None when there is any doubt."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    digits, suffix = match.groups()
    if "," in digits:
        if not _THOUSANDS.fullmatch(digits):
            return None
        digits = digits.replace(",", "")
    number = float(digits)
    suffix = re.sub(r"flops?$", "", suffix, flags=re.IGNORECASE) if name in ("F", "C") else suffix
    if not suffix:
        return number
    unit = suffixes.get(suffix.upper())
    return None if unit is None else float(UNITS[name][unit](np.array([number]))[0])
