"""Budgets held against each other, for people: one sentence above a gain, one table in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling._schema import counted
from smelt_scaling.analyses.budget_pairs import QUANTITIES, RECOUNT
from smelt_scaling.formatting import format_percent
from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.document import Document, Grid
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["fairness_document", "fairness_grids", "fairness_sentences", "pair_grids"]

Rows = Sequence[Mapping[str, Any]]

SAID = {quantity.name: quantity.said for quantity in (*QUANTITIES, RECOUNT)}
ALWAYS = {quantity.name for quantity in QUANTITIES if quantity.always}
NONE_THERE = "from none"

_SUMMARY = (
    Column(key="of", header="target", optional=True),
    Column(key="said", header=""),
    Column(key="column", header="column"),
    Column(key="pairs", header="pairs", kind="printed"),
    Column(key="range", header="difference"),
    Column(key="mean", header="mean", kind="printed"),
    Column(key="worst_cell", header="most in", absent=""),
    Column(key="verdict", header=""),
)


def fairness_sentences(rows: Rows) -> list[str]:
    """Say how far paired budgets differ, in the sentence that stands above a gain; none without pairs."""
    if not rows:
        return []
    shown = [row for row in rows if row["quantity"] in ALWAYS or row["tolerance"] is not None]
    parts = [
        f"{SAID[row['quantity']]} {_range(row)}{_judged(row)}"
        if row["pairs"]
        else f"{SAID[row['quantity']]} not {'known' if row['column'] else 'in the table'}"
        for row in shown
    ]
    pairs = counted(max(row["pairs"] for row in rows), "pair")  # a column may be empty in some
    alone = f" ({rows[0]['unpaired']} cells unpaired)" if rows[0]["unpaired"] else ""
    pair = f"{rows[0]['target']} over {rows[0]['reference']}"
    mixed = max((row["spread"] or 0.0 for row in shown), default=0.0)
    within = (
        f" Within a cell they vary by up to {format_percent(mixed)}; medians are compared." if mixed else ""
    )
    return [f"In {pairs} of models{alone}, {pair}: {', '.join(parts)}.{within}"]


def fairness_grids(rows: Rows) -> tuple[Grid, ...]:
    """Return the budgets of one or several architectures against those of one, a line per quantity."""
    if not rows:
        return ()
    targets = list(dict.fromkeys(row["target"] for row in rows))
    told = [
        {
            **row,
            "of": row["target"] if len(targets) > 1 else None,
            "said": SAID[row["quantity"]],
            "range": _range(row) if row["pairs"] else None,
            "mean": format_percent(row["mean"], sign=True) if row["mean"] is not None else None,
            "worst_cell": None if row["lowest"] == row["highest"] else row["worst_cell"],
            "verdict": _judged(row).strip(" ()") if row["pairs"] else "not audited",
        }
        for row in rows
        if row["pairs"] or row["quantity"] in ALWAYS
    ]
    of = targets[0] if len(targets) == 1 else "each architecture"
    alone = (
        f"; {rows[0]['unpaired']} cells have no partner" if len(targets) == 1 and rows[0]["unpaired"] else ""
    )
    return (
        make_grid(told, _SUMMARY, heading=f"Budgets of {of} over those of {rows[0]['reference']}{alone}"),
    )


def pair_grids(rows: Rows) -> tuple[Grid, ...]:
    """Return the deviations of every pair, a line per cell and a column per quantity."""
    quantities = list(dict.fromkeys(row["quantity"] for row in rows))
    if not quantities:
        return ()
    cells: dict[str, dict[str, Any]] = {}
    for row in rows:
        value, within = row["deviation"], row["within"]
        text = None if value is None and within is None else NONE_THERE if value is None else _signed(value)
        mark = "" if within in (True, None) else " !"
        cells.setdefault(row["cell"], {"cell": row["cell"]})[row["quantity"]] = (
            None if text is None else text + mark
        )
    columns = [Column(key=name, header=SAID[name], kind="printed") for name in quantities]
    heading = f"Every pair, {rows[0]['target']} over {rows[0]['reference']} (! is over tolerance)"
    return (make_grid(list(cells.values()), (Column(key="cell", header="cell"), *columns), heading=heading),)


def fairness_document(frame: pd.DataFrame) -> Document:
    """Describe an audit of budgets."""
    settings = frame.attrs["settings"]
    return Document(
        title=f"Budgets of {settings['target']} over those of {settings['reference']}",
        caption=(
            "Models by the medians of their cells; tokens and FLOPs of runs at equal tokens, within 5 %.",
            "A law counts each model's own F (or N); what else differs, a gain holds what it is worth.",
        ),
        grids=(*fairness_grids(frame.attrs["fairness"]), *pair_grids(plain_rows(frame))),
    )


def _signed(value: float) -> str:
    return format_percent(value, sign=True)


def _range(row: Mapping[str, Any]) -> str:
    """Write the smallest and the largest deviation."""
    low, high = row["lowest"], row["highest"]
    ends = [NONE_THERE if end is None else _signed(end) for end in (low, high)]
    if ends[0] == ends[1]:
        return ends[0]
    return " to ".join([ends[0].removesuffix(" %"), ends[1]])


def _judged(row: Mapping[str, Any]) -> str:
    """Write the verdict, in parentheses behind the range; nothing without a tolerance."""
    if row["tolerance"] is None:
        return ""
    limit = f"{100 * row['tolerance']:g} %"
    unknown = f", {row['unknown']} not known" if row["unknown"] else ""
    return f" ({row['over']} over {limit}{unknown})" if row["over"] else f" (within {limit}{unknown})"
