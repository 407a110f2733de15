"""What a design tells apart, for people: its condition, the exponents' region, correlations and what would mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_interval
from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.document import Cell, Grid
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["identifiability_grids"]

DESIGN = (
    Column(key="arch", header="arch"),
    Column(key="cells", header="labels", kind="printed"),
    Column(key="parameters", header="fitted", kind="printed"),
    Column(key="condition", header="condition", kind="number", digits=2, absent="infinite"),
    Column(key="verdict", header="verdict"),
    Column(key="open", header="left open", absent="none"),
)
EXPONENTS = (
    Column(key="arch", header="arch"),
    Column(key="exponent", header="exponent"),
    Column(key="value", header="likelihood with cell effects", kind="number", digits=3, interval=True),
    Column(key="draws", header="ellipse of the draws", kind="printed"),
    Column(key="reason", header="why none", optional=True),
)
ISSUES = (Column(key="arch", header="arch"), Column(key="fix", header="what would mend it"))


def identifiability_grids(frame: pd.DataFrame) -> tuple[Grid, ...]:
    """Return the tables of `identifiability`."""
    rows, attrs = plain_rows(frame), frame.attrs
    level = f"{100 * attrs['settings']['level']:g} %"
    grids = [
        make_grid(
            [row | {"open": _open(row)} for row in rows],
            DESIGN,
            heading="Condition of the design (about 50 is good, 1000 is poor)",
        )
    ]
    exponents = [line for row in rows for line in _exponents(row)]
    grids.append(
        make_grid(
            exponents,
            EXPONENTS,
            heading=f"Exponents, with the ends of their joint {level} region",
        )
    )
    for row in rows:
        if any(line["arch"] == row["arch"] for line in attrs["correlations"]):
            grids.append(_matrix(row, attrs["correlations"]))
    if attrs["issues"]:
        grids.append(make_grid(attrs["issues"], ISSUES, heading="What is left open, and what would mend it"))
    return tuple(grids)


def _open(row: dict[str, Any]) -> str | None:
    parts = [
        *(f"{name} not identified" for name in row["unidentified"]),
        *(f"{name} on its bound" for name in row["at_bounds"]),
        *(f"{name} held" for name in row["pinned"]),
    ]
    return ", ".join(parts) or None


def _exponents(row: dict[str, Any]) -> list[dict[str, Any]]:
    if row["size_exponent"] is None or row["size"] is None:
        return [{"arch": row["arch"], "exponent": "", "value": None, "reason": row["region_reason"]}]
    return [
        {
            "arch": row["arch"],
            "exponent": row[name],
            "value": row[kind],
            "value_lo": row[f"{kind}_lo"],
            "value_hi": row[f"{kind}_hi"],
            "draws": None
            if row[f"{kind}_draws_lo"] is None
            else format_interval(row[f"{kind}_draws_lo"], row[f"{kind}_draws_hi"], "number", digits=3),
        }
        for kind, name in (("size", "size_exponent"), ("tokens", "token_exponent"))
    ]


def _matrix(row: dict[str, Any], correlations: list[dict[str, Any]]) -> Grid:
    """Return the correlations of one architecture: centred above the diagonal, natural below it."""
    own = [line for line in correlations if line["arch"] == row["arch"]]
    names = list(dict.fromkeys(line["first"] for line in own))
    value = {(line["coordinates"], line["first"], line["second"]): line["correlation"] for line in own}

    def cell(i: int, j: int) -> Cell:
        if i == j:
            return Cell(point="")
        key = ("centred", names[i], names[j]) if i < j else ("natural", names[j], names[i])
        return Cell(point=f"{round(value[key], 3) + 0.0:.3f}")  # no -0.000

    return Grid(
        heading=f"Correlations of the coefficients of {row['arch']}: centred above the diagonal, natural below",
        headers=("", *names),
        numeric=(False, *(True for _ in names)),
        rows=tuple(
            (Cell(point=name), *(cell(i, j) for j in range(len(names)))) for i, name in enumerate(names)
        ),
    )
