"""Rows of a saved diagnosis as its figures take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["headline_row", "part_rows", "table_rows"]


def table_rows(table: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows as plain values, None where one is absent and whole numbers whole.

    Examples
    --------
    >>> table_rows([{"gain": float("nan"), "rows": 12}, {"gain": 0.1, "rows": None}])
    [{'gain': None, 'rows': 12}, {'gain': 0.1, 'rows': None}]
    """
    import pandas as pd

    return plain_rows(pd.DataFrame(list(table), dtype=object))


def part_rows(frame: pd.DataFrame, part: str, table: str = "rows") -> list[dict[str, Any]]:
    """Return the rows of one table of one part of a diagnosis; none where the part was not run."""
    return table_rows(frame.attrs["parts"].get(part, {}).get(table, ()))


def headline_row(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the row of the gain that a diagnosis is about, with its interval."""
    (row,) = table_rows(frame.attrs["headline"])
    return row
