"""How downstream scores at equal loss are shown to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_number
from smelt_scaling.reporting.columns import MARK, Column, make_grid
from smelt_scaling.reporting.document import Document
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["downstream_document"]

METRIC = Column(key="metric", header="metric")
SCALE = Column(key="scale", header="scale", marked=True)
P = {"kind": "number", "digits": 2}

RESIDUALS = (
    METRIC,
    SCALE,
    Column(key="n_cells", header="cells", kind="printed"),
    Column(key="residual", header="residual", kind="number", digits=3, interval=True),
    Column(key="p_cell", header="p", **P),  # type: ignore[arg-type]
    Column(key="p_holm", header="p (Holm)", **P),  # type: ignore[arg-type]
)
NAIVE = (
    METRIC,
    Column(key="n", header="endpoints", kind="printed"),
    Column(key="residual_naive", header="residual", kind="number", digits=3, interval=True),
    Column(key="p_naive", header="p", **P),  # type: ignore[arg-type]
    Column(key="design_effect", header="design effect", kind="number", digits=3),
)
CALIBRATION = (
    METRIC,
    Column(key="n", header="n", kind="printed"),
    Column(key="r2", header="R2", kind="printed"),
    Column(key="r2_isotonic", header="R2 of any monotone curve", kind="printed"),
    Column(key="floor", header="floor", kind="number", digits=3),
    Column(key="floor_range", header="may lie in"),
    Column(key="ceiling", header="ceiling", kind="number", digits=3),
    Column(key="ceiling_range", header="may lie in"),
    Column(key="covered", header="covered", kind="percent"),
)
WINS = (
    METRIC,
    Column(key="above", header="kept by"),
    Column(key="won", header="wins+ties/n", kind="printed"),
    Column(key="rate_naive", header="naive", kind="printed"),
    Column(key="p_naive", header="p", **P),  # type: ignore[arg-type]
    Column(key="rate_cell", header="by cells", kind="printed"),
    Column(key="p_cell", header="p", **P),  # type: ignore[arg-type]
)


def downstream_document(frame: pd.DataFrame) -> Document:
    """Describe residuals by scale, naive figures beside them, the calibration, and the wins."""
    rows, settings = plain_rows(frame), frame.attrs["settings"]
    target, reference, level = settings["target"], settings["reference"], settings["level"]
    whole = [row | {"residual_naive": row["residual"]} for row in rows if row["scale"] == "all"]
    drawn = any(row["residual_lo"] is not None for row in rows)
    interval = (
        f"{100 * level:g} % intervals resample cells and calibrate anew in each of {settings['bootstrap']} resamples; "
        "a scale has one from 7 cells on."
        if drawn
        else "No intervals."
    )
    footnotes = []
    if any(row["extrapolated"] for row in rows):
        footnotes.append(
            f"{MARK} outside calibration: losses beyond those of the reference, where its curve is extrapolated, by "
            "the factor shown."
        )
    return Document(
        title=f"Downstream scores of {target} at equal loss, calibrated on {reference}",
        caption=(
            f"Residual: how much better than {reference} at the same loss, in units of the score (0.01 is one point "
            f"of a percentage), mean over endpoints. {interval}",
            f"p: t test on the means of cells ({settings['unit']}) against those of {reference}; Holm over metrics, "
            "and over metrics by scales.",
        ),
        grids=(
            make_grid(rows, RESIDUALS),
            make_grid(
                [row | {"support": []} for row in whole],
                NAIVE,
                heading="The same residuals as if endpoints were independent (they are not)",
            ),
            make_grid(
                [_curve(row, held=settings["asymptotes"] == "chance") for row in frame.attrs["calibration"]],
                CALIBRATION,
                heading=f"Sigmoid of the loss fitted to {reference}",
            ),
            make_grid(
                [_won(row) for row in frame.attrs["wins"]],
                WINS,
                heading=f"Pairs of one cell and horizon that {target} wins: all, and those whose reference (or mean of "
                f"both) is {settings['margin']:g} or more above chance; {100 * level:g} % Wilson intervals of the rate "
                "with all pairs (naive) and with effective pairs (by cells)",
            ),
        ),
        footnotes=tuple(footnotes),
    )


def _curve(row: dict[str, Any], *, held: bool) -> dict[str, Any]:
    ends = {
        f"{name}_range": "held"
        if held
        else f"{_end(row[f'{name}_lo'], 'below')} to {_end(row[f'{name}_hi'], 'above')}"
        for name in ("floor", "ceiling")
    }
    return row | ends | {name: f"{row[name]:.3f}" for name in ("r2", "r2_isotonic")}


def _end(value: float | None, side: str) -> str:
    return f"any {side}" if value is None else format_number(value, 3)


def _won(row: dict[str, Any]) -> dict[str, Any]:
    def between(name: str) -> str:
        lo, hi = row[f"{name}_lo"], row[f"{name}_hi"]
        return "n/a" if lo is None else f"{lo:.3f} to {hi:.3f}"

    return row | {
        "above": "all" if row["pairs"] == "all" else row["pairs"].partition(" ")[0],
        "won": f"{row['wins']}+{row['ties']}/{row['n']}",
        "rate_naive": between("rate_naive"),
        "rate_cell": between("rate"),
    }
