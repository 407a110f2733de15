"""Where endpoints come from: rows read and left out, and what each column was in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from smelt_scaling._cells import RawTable
from smelt_scaling._schema import COLUMNS, UNITS

__all__ = ["Intake", "Origin", "origins"]

#: What a column that the file does not hold is computed as.
COMPUTED = {"arch": "'model' in every row", "F": "C/D", "D": "C/F", "C": "F*D"}


@dataclass(frozen=True, kw_only=True)
class Origin:
    """How one column of the schema came about.

    Parameters
    ----------
    name : str
        Schema name.
    column : str or None
        Column of the file; None if the values were computed.
    unit : str
        Unit of the file's column, of `UNITS`; the schema's own where the user named none. Empty for text.
    declared : bool
        Whether the user named the unit.
    rule : str
        What was computed, such as ``C/D``; empty if the values are those of the file.
    parsed : int
        Cells with a suffix or thousands separators that were read as numbers.
    """

    name: str
    column: str | None
    unit: str = ""
    declared: bool = False
    rule: str = ""
    parsed: int = 0


@dataclass(frozen=True, kw_only=True)
class Intake:
    """What was read to make a table of endpoints.

    Parameters
    ----------
    rows : int
        Rows of the file.
    left_out : mapping of str to int
        Note code -> rows left out for that reason while reading; no row counts twice.
    columns : tuple of Origin
        In schema order.
    unread : tuple of str
        Columns of the file outside the schema.
    runs_unread : str
        One of them that seems to name runs and repeats, with its counts, where no column of the schema groups rows.
    """

    rows: int
    left_out: Mapping[str, int]
    columns: tuple[Origin, ...]
    unread: tuple[str, ...] = ()
    runs_unread: str = ""


def origins(
    columns: Mapping[str, NDArray[Any]],
    table: RawTable | None = None,
    units: Mapping[str, str] | None = None,
    rules: Mapping[str, str] | None = None,
) -> tuple[Origin, ...]:
    """Describe columns.

    Parameters
    ----------
    columns : mapping of str to (n,) array
        The finished columns.
    table : RawTable, optional
        What was read; without one every column is taken as it is.
    units : mapping of str to str, optional
        Units that the user named.
    rules : mapping of str to str, optional
        Columns that were computed although the file may hold them, and how.
    """
    found = []
    for name in columns:
        source = name if table is None else table.sources.get(name)
        rule = (rules or {}).get(name, COMPUTED.get(name, "") if source is None else "")
        own = next(iter(UNITS[name])) if name in UNITS else COLUMNS[name].unit
        found.append(
            Origin(
                name=name,
                column=source,
                unit=(units or {}).get(name, own) if source else own,
                declared=name in (units or {}),
                rule=rule,
                parsed=table.parsed.get(name, 0) if table else 0,
            )
        )
    return tuple(found)
