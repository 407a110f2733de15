"""The caveats of a table of gains, in words; and those that every table shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from smelt_scaling._schema import counted
from smelt_scaling.analyses.side import SAMPLED
from smelt_scaling.analyses.view import IntervalKind, Side, View
from smelt_scaling.errors import Note, info, warning
from smelt_scaling.formatting import format_percent, format_quantity
from smelt_scaling.resampling.measured import COVERAGE, coverage_words

__all__ = ["gain_notes", "table_notes"]

Row = Mapping[str, Any]

#: A budget this many times outside the runs is beyond any extrapolation worth a number.
FAR = 1e3


def interval_note(
    view: View, rows: Sequence[Row], interval: IntervalKind, *, drawn: bool, given: str
) -> list[Note]:
    """Say what the intervals hold, or why there are none.

    Parameters
    ----------
    view, rows, interval
        What the table was made from, its rows, the kind of interval.
    drawn : bool
        Whether there are replicates.
    given : str
        The column that holds a lower end.
    """
    if not drawn:
        why = view.why_none(interval)
        if interval == "percentile" and any(note.code == "bootstrap_refused" for note in view.notes):
            why = "the bootstrap was refused"  # and that note says why
        return [
            warning("no_interval", f"no {interval} interval: {why or 'the study holds no such replicates'}")
        ]
    if any(row[given] is not None or row.get("hi_unreachable") for row in rows):
        said = [info("sampling_only", "intervals hold the sampling of cells under this law only")]
        if interval in COVERAGE:
            message = f"intervals of --interval {interval} {coverage_words(interval)}"
            said.append(warning("interval_coverage", message))
        return said
    why = (
        "too few draws for this level"
        if interval in SAMPLED
        else "a leave-one-out fit is unreachable in every row"
    )
    return [warning("no_interval", f"no {interval} interval: {why}")]


def table_notes(
    view: View, rows: Sequence[Row], sides: Sequence[Side], interval: IntervalKind, *, given: str
) -> list[Note]:
    """Return the notes of a table with a row per architecture: interval, support and replicates."""
    replicates = [side.replicates(interval) for side in sides]
    drawn = all(draws is not None for draws in replicates)
    return [
        *interval_note(view, rows, interval, drawn=drawn, given=given),
        *support_note(rows),
        *(note for side in sides for note in _design_note([r for r in rows if r["arch"] == side.arch], side)),
        *_held_note(sides, interval),
    ]


def _held_note(sides: Sequence[Side], interval: IntervalKind) -> list[Note]:
    """Count leave-one-out fits that hold a parameter; the study's own notes count the bootstrap's."""
    jackknives = [side.jackknife for side in sides if side.jackknife is not None]
    held = max((int(draws.degenerate.sum()) for draws in jackknives), default=0)
    if interval != "jackknife-t" or not held:
        return []
    message = (
        f"{counted(held, 'leave-one-out fit')} short of a parameter; kept, holding what is not identified"
    )
    return [info("degenerate_draws", message, held)]


def support_note(rows: Sequence[Row]) -> list[Note]:
    """Count the rows outside the support of the runs."""
    if any(row["extrapolated"] is None for row in rows):
        return [
            info("support_unknown", "no window of the runs is known, so nothing says what is extrapolated")
        ]
    beyond = sum(bool(row["extrapolated"]) for row in rows)
    if not beyond:
        return []
    message = f"{beyond} of {len(rows)} rows lie outside the runs: marked †, each with its factor"
    return [warning("extrapolated", message, beyond), *_far_note(rows)]


def _far_note(rows: Sequence[Row]) -> list[Note]:
    """Say so where a budget is so far from any run that its number is none about the world."""
    far = [
        (item["factor"], item["arch"], row)
        for row in rows
        for item in row["support"]
        if item["code"] == "out_C" and item["factor"] > FAR
    ]
    if not far:
        return []
    factor, arch, _ = max(far, key=lambda found: found[0])
    count = len({id(row) for *_, row in far})
    message = (
        f"{count} of {len(rows)} rows ask for budgets over {FAR:g}x outside the runs, the farthest "
        f"{format_quantity(factor)}x outside those of {arch}; no run says anything about them"
    )
    return [warning("far_extrapolated", message, count)]


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
    notes = [
        *interval_note(view, rows, interval, drawn=drawn, given="gain_lo"),
        *_held_note(pair, interval),
    ]
    if uncertified:
        effect = "moves no interval end"
        if moved:
            points = f"by up to {100 * moved:.2g} points" if moved < 10 else "by more than 1000 points"
            effect = f"moves an interval end {points}"
        message = (
            f"in {counted(uncertified, 'replicate')} a fit of this pair is not certified; kept: "
            f"leaving them out {effect}"
        )
        notes.append(warning("uncertified_draws", message, uncertified))
    notes += support_note(rows)
    for side in pair:
        notes += _design_note(rows, side)
    unreachable = sum(bool(row["unreachable"]) for row in rows)
    if unreachable:
        target, reference = (side.arch for side in pair)
        message = (
            f"{reference} never reaches the loss of {target} in {counted(unreachable, 'row')}: no finite gain"
        )
        notes.append(warning("unreachable", message, unreachable))
    notes += _distinguishable_note(rows)
    for turn in turning:
        notes += _turning_note(turn)
    return notes


def _distinguishable_note(rows: Sequence[Row]) -> list[Note]:
    """Say which gains cannot be told from none: those whose interval holds 0, whatever the size of the noise."""
    held = sum(
        row["gain_lo"] is not None
        and row["gain_lo"] <= 0
        and (row["hi_unreachable"] or (row["gain_hi"] or 0) >= 0)
        for row in rows
    )
    if not held:
        return []
    message = (
        f"in {held} of {len(rows)} rows the interval holds 0: such a gain is not distinguishable from none"
    )
    return [warning("not_distinguishable", message, held)]


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
        f"its runs have {low} to {high} tokens per dense parameter; add runs on the other side, or use predict"
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
