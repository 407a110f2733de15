"""The caveats of a table of gains, in words; and those that every table shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smelt_scaling.analyses.view import IntervalKind, Side, View
from smelt_scaling.errors import Note, info, warning
from smelt_scaling.formatting import format_percent, format_quantity

__all__ = ["gain_notes", "interval_note", "support_note"]

Row = Mapping[str, Any]


def interval_note(view: View, interval: IntervalKind, *, drawn: bool) -> list[Note]:
    """Say why there is no interval, or what the interval holds."""
    if drawn:
        return [info("sampling_only", "intervals hold the sampling of cells under this law only")]
    return [
        warning(
            "no_interval", f"no {interval} interval: {view.no_draws or 'the study holds no such replicates'}"
        )
    ]


def support_note(rows: Sequence[Row]) -> list[Note]:
    """Count the rows outside the support of the runs."""
    beyond = sum(bool(row["extrapolated"]) for row in rows)
    if not beyond:
        return []
    message = f"{beyond} of {len(rows)} rows lie outside the support of the runs; see support"
    return [warning("extrapolated", message, beyond)]


def gain_notes(
    view: View,
    rows: Sequence[Row],
    pair: tuple[Side, Side],
    turning: Sequence[Row],
    interval: IntervalKind,
    *,
    drawn: bool,
    uncertified: int,
    moved: float,
) -> list[Note]:
    """Return the notes of a table of gains.

    Parameters
    ----------
    view, rows, pair, turning, interval
        What the table was made from, and its rows.
    drawn : bool
        Whether there are replicates.
    uncertified : int
        Replicates in which either fit is not certified.
    moved : float
        Largest change of an interval end, as a fraction of gain, when those are left out.
    """
    notes = interval_note(view, interval, drawn=drawn)
    if drawn and all(row["gain_lo"] is None and not row["hi_unreachable"] for row in rows):
        why = "too few draws for this level, or a replicate is unreachable"
        notes.append(warning("no_interval", f"no {interval} interval: {why}"))
    held = max(
        (int(draws.degenerate.sum()) for draws in (s.jackknife for s in pair) if draws is not None), default=0
    )
    if drawn and interval == "jackknife-t" and held:
        message = (
            f"{held} leave-one-out fits cannot identify every parameter; kept, holding what is not identified"
        )
        notes.append(info("degenerate_draws", message, held))
    if uncertified:
        effect = "moves no interval end"
        if moved:
            points = f"by up to {100 * moved:.2g} points" if moved < 10 else "by more than 1000 points"
            effect = f"moves an interval end {points}"
        message = f"{uncertified} replicates are not certified; kept: leaving them out {effect}"
        notes.append(warning("uncertified_draws", message, uncertified))
    notes += support_note(rows)
    for side in pair:
        notes += _design_note(rows, side)
    unreachable = sum(bool(row["unreachable"]) for row in rows)
    if unreachable:
        message = (
            f"{pair[1].arch} never reaches the loss of {pair[0].arch} in {unreachable} rows: no finite gain"
        )
        notes.append(warning("unreachable", message, unreachable))
    for turn in turning:
        notes += _turning_note(turn)
    return notes


def _design_note(rows: Sequence[Row], side: Side) -> list[Note]:
    """Say it plainly when every optimum lies beyond the tokens per parameter that were run."""
    off = [
        row for row in rows if any(s["code"] == "out_TPP" and s["arch"] == side.arch for s in row["support"])
    ]
    if not off or len(off) < len(rows):
        return []
    low, high = (f"{bound:,.3g}" if bound < 1000 else f"{bound:,.0f}" for bound in side.window["TPP"])
    message = (
        f"{side.arch}: the frontier lies outside the design in every row: "
        f"its runs have {low} to {high} tokens per dense parameter"
    )
    return [warning("frontier_outside_design", message, len(off))]


def _turning_note(turn: Row) -> list[Note]:
    parts = []
    if turn["peak_budget"] is not None:
        peak, budget = format_percent(turn["peak_gain"]), format_quantity(turn["peak_budget"])
        parts.append(f"peaks at {peak} near {budget} FLOPs")
    if turn["zero_crossings"]:
        parts.append(f"changes sign at {', '.join(format_quantity(c) for c in turn['zero_crossings'])} FLOPs")
    if not parts:
        return []
    where = "" if turn["sparsity"] is None else f"S = {turn['sparsity']:.4g}: "
    return [info("turnover", f"{where}the gain {' and '.join(parts)}")]
