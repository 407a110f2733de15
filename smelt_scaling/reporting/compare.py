"""Two reports held against each other: every number of every table, each with its tolerance."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smelt_scaling.errors import UsageError
from smelt_scaling.reporting.page import files_of

__all__ = ["TOLERANCES", "Difference", "compare_reports", "difference_lines", "shared_tables"]

#: End of a column's name -> relative tolerance. The longest that fits holds; "" is every other column. Points agree to
#: six digits between platforms, order statistics of refits to three, their Monte-Carlo errors to their first; a flat
#: maximum is found to half the digits.
TOLERANCES: dict[str, float] = {
    "": 1e-6,
    "lo": 1e-3,
    "hi": 1e-3,
    "_error": 0.2,
    "_share": 1e-3,
    "peak_budget": 1e-4,
}
#: Numbers below this are told apart by their difference, not by their ratio.
SMALL = 1e-3
#: Differences that are shown of one table.
SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One number, text or file that differs.

    Parameters
    ----------
    table : str
        File of the table, within the report.
    row : int
        Row below the header, from 1; 0 for the whole table.
    label : str
        What the row is about.
    column : str
        Its column; empty for the whole table.
    before, after : str
        What the committed report holds, and what the new one does.
    allowed : float
        Relative tolerance; 0 for text.
    """

    table: str
    row: int
    label: str
    column: str
    before: str
    after: str
    allowed: float


def compare_reports(
    before: str | Path, after: str | Path, *, tolerances: Mapping[str, float] | None = None
) -> list[Difference]:
    """Compare the tables of two reports.

    Pictures are not compared: their bytes differ between versions of what draws them, their numbers do not. A file that
    the first report lists and that is gone from its folder was left out of what is committed, and is passed over.

    Parameters
    ----------
    before, after : str or Path
        Folders that `build_report` wrote: the committed one, and the new one.
    tolerances : mapping of str to float, optional
        Column, or end of its name -> relative tolerance, over those of `TOLERANCES`.

    Returns
    -------
    list of Difference
        Empty if every number agrees.

    Raises
    ------
    StudyError
        If a folder holds no report.
    UsageError
        If a tolerance is negative or no number.
    """
    rules = {**TOLERANCES, **(tolerances or {})}
    for name, value in rules.items():
        if not value >= 0:
            raise UsageError(f"tolerance {name}={value}: must be 0 or more")
    listed, right = files_of(before, ".csv"), files_of(after, ".csv")
    left = {name: path for name, path in listed.items() if path.is_file()}
    found = [
        Difference(table=name, row=0, label="", column="", before="there", after="missing", allowed=0.0)
        for name in sorted(left.keys() - right.keys())
    ]
    found += [
        Difference(table=name, row=0, label="", column="", before="missing", after="there", allowed=0.0)
        for name in sorted(right.keys() - listed.keys())
    ]
    for name in shared_tables(before, after):
        found += _compare(name, _rows(left[name]), _rows(right[name]), rules)
    return found


def shared_tables(before: str | Path, after: str | Path) -> list[str]:
    """Return the names of the tables that are compared: those of both reports, of which the first holds the file.

    What readers see comes before the numbers of figures.
    """
    right = files_of(after, ".csv")
    both = [name for name, path in files_of(before, ".csv").items() if name in right and path.is_file()]
    return sorted(both, key=lambda name: not name.startswith("tables/"))


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def _compare(
    table: str, before: Sequence[dict[str, str]], after: Sequence[dict[str, str]], rules: Mapping[str, float]
) -> Iterable[Difference]:
    if len(before) != len(after):
        yield Difference(
            table=table,
            row=0,
            label="",
            column="rows",
            before=str(len(before)),
            after=str(len(after)),
            allowed=0.0,
        )
        return
    for number, (one, other) in enumerate(zip(before, after, strict=True), 1):
        for column in dict.fromkeys([*one, *other]):
            a, b = one.get(column, "(no column)"), other.get(column, "(no column)")
            allowed = _allowed(column, rules)
            if not _agree(a, b, allowed):
                yield Difference(
                    table=table,
                    row=number,
                    label=_label(one),
                    column=column,
                    before=a,
                    after=b,
                    allowed=allowed,
                )


def _allowed(column: str, rules: Mapping[str, float]) -> float:
    """Return the tolerance of a column: its own, else that of the longest end that fits."""
    return max(((len(end), value) for end, value in rules.items() if column.endswith(end)))[1]


def _agree(before: str, after: str, allowed: float) -> bool:
    return before == after or _alike(_value(before), _value(after), allowed)


def _value(text: str) -> Any:
    """Return a cell as what it says: a number, a list, or text."""
    for reading in (float, json.loads):
        with suppress(ValueError):
            return reading(text)
    return [_value(piece) for piece in text.split("; ")] if "; " in text else text


def _alike(a: Any, b: Any, allowed: float) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_alike(x, y, allowed) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[key], b[key], allowed) for key in a)
    if type(a) is bool or type(b) is bool or not isinstance(a, float | int) or not isinstance(b, float | int):
        return bool(a == b)
    return math.isclose(a, b, rel_tol=allowed, abs_tol=allowed * SMALL)


def _label(row: Mapping[str, str]) -> str:
    """Return the first columns that name a row."""
    named = [
        f"{key} {row[key]}"
        for key in (
            "arch",
            "parameter",
            "target",
            "budget",
            "sparsity",
            "domain",
            "group",
            "part",
            "check",
            "choice",
        )
        if row.get(key)
    ]
    return ", ".join(named[:3])


def difference_lines(found: Sequence[Difference]) -> list[str]:
    """Return differences as lines that say table, row, column, both values and what was allowed."""
    lines = []
    for table in dict.fromkeys(one.table for one in found):
        own = [one for one in found if one.table == table]
        for one in own[:SHOWN]:
            where = (
                f"row {one.row}{f' ({one.label})' if one.label else ''}, {one.column}"
                if one.row
                else one.column
            )
            allowed = f" (allowed {one.allowed:g}, relative)" if one.allowed else ""
            lines.append(
                f"{table}: {where or 'table'}: {one.before or 'empty'} -> {one.after or 'empty'}{allowed}"
            )
        if len(own) > SHOWN:
            lines.append(f"{table}: {len(own) - SHOWN} more")
    return lines
