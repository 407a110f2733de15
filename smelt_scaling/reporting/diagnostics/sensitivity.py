"""A panel of choices for people: the ranges, then every choice by what it leaves in place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_number
from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.document import Grid
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["points_text", "sensitivity_grids"]

#: What the kinds of rows are called, in the order in which they are shown.
KINDS = {
    "estimator": "other estimators, rows in place",
    "rows": "rows left out",
    "question": "other questions",
    "interval": "interval of the study",
}
RANGES = (
    Column(key="what", header="range of the gain"),
    Column(key="gain_lo", header="from", kind="percent"),
    Column(key="gain_hi", header="to", kind="percent"),
    Column(key="count", header="choices", kind="printed"),
    Column(key="failed_count", header="without a gain", kind="printed", absent=""),
)
CHOICES = (
    Column(key="group", header=""),
    Column(key="choice", header="choice"),
    Column(key="left_out_count", header="rows out", kind="printed", optional=True, absent=""),
    Column(key="gain", header="compute saved", kind="percent"),
    Column(key="points", header="change", kind="printed", absent=""),
    Column(key="rounding", header="rounding ±", kind="printed", optional=True, absent=""),
)


def sensitivity_grids(frame: pd.DataFrame) -> tuple[Grid, ...]:
    """Return the grids of what `sensitivity` returned.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> from smelt_scaling.analyses.diagnostics import sensitivity
    >>> grids = sensitivity_grids(sensitivity(fit(example_endpoints(), bootstrap=0)))
    >>> [grid.heading for grid in grids[1:]]
    ['Other estimators, rows in place', 'Rows left out', 'Other questions']
    """
    between = [
        row
        | {
            "what": KINDS[row["kind"]],
            "count": f"{row['choices']}{' draws' if row['kind'] == 'interval' else ''}",
            "failed_count": str(row["failed"]) if row["failed"] else None,
        }
        for row in frame.attrs["ranges"]
    ]
    grids = [make_grid(between, RANGES)]
    rows = plain_rows(frame)
    for kind, heading in KINDS.items():
        own = [_shown(row) for row in rows if row["kind"] == kind]
        if own:
            grids.append(_with_reasons(make_grid(own, CHOICES, heading=heading.capitalize()), own))
    return tuple(grids)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    by = row["gain_rounding"]
    return row | {
        "left_out_count": str(row["left_out"]) if row["left_out"] else None,
        "points": "as fitted" if row["is_default"] else points_text(row["change"]),
        "rounding": None if by is None else f"{format_number(100 * by, 2)} points",
    }


def points_text(change: float | None) -> str | None:
    """Write a difference of gains, a fraction, in points.

    Examples
    --------
    >>> points_text(0.0312), points_text(-1e-9), points_text(None)
    ('+3.1 points', '0.0 points', None)
    """
    if change is None:
        return None
    text = f"{100 * change:+.1f}"
    return f"{text if float(text) else '0.0'} points"


def _with_reasons(grid: Grid, rows: list[dict[str, Any]]) -> Grid:
    """Return the grid with why there is no number beside each row that lacks one."""
    reasons = tuple(row["reason"] or "" for row in rows)
    return replace(grid, remarks=reasons, remark_header="why there is none")
