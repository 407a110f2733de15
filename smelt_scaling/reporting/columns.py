"""How a column of a result is shown to people: one declarative description per column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from smelt_scaling.formatting import (
    ABSENT,
    UNREACHABLE,
    format_interval,
    format_multiplier,
    format_number,
    format_percent,
    format_quantity,
)
from smelt_scaling.reporting.document import Cell, Grid

__all__ = ["Column", "make_grid", "support_text"]

Kind = Literal["text", "percent", "quantity", "size", "number", "multiplier", "quantities", "printed"]
Row = Mapping[str, Any]

#: Stands beside a row outside the support of the runs.
MARK = "†"

_WRITE: dict[str, Callable[[Any], str]] = {
    "percent": format_percent,
    "quantity": format_quantity,
    "size": lambda x: format_quantity(x, suffix=True),
    "multiplier": format_multiplier,
    "quantities": lambda xs: ", ".join(format_quantity(x) for x in xs) or "none",
    "text": str,
    "printed": str,
}


@dataclass(frozen=True, kw_only=True)
class Column:
    """How one column is shown.

    Parameters
    ----------
    key : str
        Column of the frame.
    header : str
        Head in print.
    kind : str
        How its values are written.
    digits : int
        Significant digits of a number.
    interval : bool
        Show ``[key_lo, key_hi]`` beside the value, where there is one.
    unreachable : bool
        An absent value (or end) of a row flagged ``unreachable`` (``hi_unreachable``) says so; it is never "100 %".
    marked : bool
        Carries the mark of rows outside support.
    redundant : bool
        Follows from other columns; left out where the page is narrow.
    optional : bool
        Left out when the frame has no value in it.
    absent : str
        Printed where there is no value.
    """

    key: str
    header: str
    kind: Kind = "text"
    digits: int = 4
    interval: bool = False
    unreachable: bool = False
    marked: bool = False
    redundant: bool = False
    optional: bool = False
    absent: str = ABSENT

    @property
    def numeric(self) -> bool:
        """Whether values are aligned on the right."""
        return self.kind not in ("text", "quantities")

    def cell(self, row: Row) -> Cell:
        """Return the cell of one row."""
        value = row.get(self.key)
        if value is None and self.unreachable and row.get("unreachable"):
            point = UNREACHABLE
        elif value is None:
            point = self.absent
        elif self.kind == "number":
            point = format_number(value, self.digits)
        else:
            point = _WRITE[self.kind](value)
        beside = self._interval(row) if self.interval else ""
        beside = "" if beside == point == UNREACHABLE else beside
        if self.marked and row.get("extrapolated"):
            beside = f"{beside} {MARK}".strip()
        return Cell(point=point, beside=beside)

    def _interval(self, row: Row) -> str:
        lo, hi = row.get(f"{self.key}_lo"), row.get(f"{self.key}_hi")
        hi_unreachable = self.unreachable and bool(row.get("hi_unreachable"))
        if lo is None and hi is None and not hi_unreachable:
            return ""
        if self.kind == "number":
            return format_interval(lo, hi, "number", digits=self.digits)
        if self.kind == "percent":
            # ends are ordered, so an absent lower end below an unreachable upper one is unreachable too
            return format_interval(
                lo, hi, lo_unreachable=hi_unreachable and lo is None, hi_unreachable=hi_unreachable
            )
        return format_interval(lo, hi, "multiplier" if self.kind == "multiplier" else "quantity")


def make_grid(rows: Sequence[Row], columns: Iterable[Column], *, heading: str = "") -> Grid:
    """Return the rows of a result as a grid, with the support of each row as its remark."""
    shown = [c for c in columns if not c.optional or any(row.get(c.key) is not None for row in rows)]
    return Grid(
        heading=heading,
        headers=tuple(column.header for column in shown),
        numeric=tuple(column.numeric for column in shown),
        rows=tuple(tuple(column.cell(row) for column in shown) for row in rows),
        remarks=tuple(support_text(row.get("support") or ()) for row in rows),
        remark_header=f"outside the runs {MARK}",
        redundant=tuple(column.redundant for column in shown),
    )


def support_text(support: Iterable[Mapping[str, Any]]) -> str:
    """Write where a row leaves the support of the runs.

    Examples
    --------
    >>> support_text([{"code": "out_F", "arch": "baseline", "factor": 1.0123},
    ...               {"code": "out_C", "arch": "ours", "factor": 4.5}])
    'out_F ×1.01 (baseline), out_C ×4.5 (ours)'
    """
    return ", ".join(f"{item['code']} {_factor(item['factor'])} ({item['arch']})" for item in support)


def _factor(factor: float) -> str:
    if factor >= 100:
        return f"×{format_quantity(factor)}"
    decimals = 4 if factor < 1.005 else 2 if factor < 2 else 1
    return format_multiplier(factor, decimals)
