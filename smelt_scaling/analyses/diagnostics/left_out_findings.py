"""What leaving things out says of the headline gain, in a few lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling._schema import counted
from smelt_scaling.analyses.diagnostics.findings import Finding, Verdict, records
from smelt_scaling.analyses.diagnostics.held_out import BOTH
from smelt_scaling.analyses.diagnostics.interval import NO_INTERVAL, width_of
from smelt_scaling.formatting import format_percent, format_quantity

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["influence_findings"]

Row = Mapping[str, Any]

#: One cell that moves the gain by over a quarter of the interval's width (one standard error) is a caution, and by
#: over half of it, its whole half-width, serious.
CELL = (0.25, 0.5)
#: Mean of the signed errors on the smallest and on the largest size, each over the RMSE within: a law of too little
#: curvature misses both ends to one side. In worlds that obey the law 1 in 20 exceeds 1.5 where the twelve cells share
#: half of the noise, and 1.8 where they share .8 of it.
BIAS = (1.5, 2.5)
#: Error of the gain at the last step of the rollout over the width of the interval: half of it is what the interval
#: allows for on either side.
STEP = (0.5, 1.0)
#: Single rows that a line names.
NAMED = 3


def influence_findings(frame: pd.DataFrame) -> list[Finding]:
    """Return the lines that the head of a diagnosis shows.

    The cell that moves the gain most, against the interval; the signed errors on the sizes at both ends; the last
    step of the rollout; single endpoints that are outlying or influential.
    """
    whole = BOTH if (frame["arch"] == BOTH).any() else None
    rows = [row for row in records(frame) if whole is None or row["arch"] == whole]
    steps = [row for row in frame.attrs["rollout"] if whole is None or row["arch"] == whole]
    headline = frame.attrs.get("headline")
    return [
        *([_one_cell(rows, headline)] if headline is not None else []),
        _ends(rows),
        _last_step(steps, headline),
        _single_rows(frame.attrs["row_influence"]),
    ]


def _one_cell(rows: Sequence[Row], headline: Row) -> Finding:
    check = "the cell that moves the gain most"
    remedy = "look at its runs, and train more of its size or sparsity"
    moves = [row for row in rows if row["by"] == "cell" and row["change"] is not None]
    if not moves:
        why = "no cell could be left out"
        return Finding(
            part="influence", check=check, value=why, verdict="unknown", remedy="name cells with --map cell"
        )
    most = max(moves, key=lambda row: abs(row["change"]))
    width, before = width_of(headline), headline["gain"]
    lost = sum(row["by"] == "cell" and row["change"] is None for row in rows)
    value = (
        f"{_points(most['change'])} without {most['part']} ({counted(len(moves), 'cell')} left out in turn"
        f"{f', {lost} more cannot be' if lost else ''})"
    )
    turned = before is not None and before * most["gain"] < 0 and headline["gain_lo"] is not None
    turned = turned and (headline["gain_lo"] > 0 or (headline["gain_hi"] or 0) < 0)
    if width is None:
        verdict: Verdict = "unknown"
        value += "; no interval to compare it with"
    else:
        verdict = "serious" if turned else _graded(abs(most["change"]) / width, CELL)
        value += f"; the interval is {100 * width:.1f} points wide"
    return Finding(
        part="influence",
        check=check,
        value=value,
        verdict=verdict,
        remedy={"fine": "", "unknown": NO_INTERVAL}.get(verdict, remedy),
    )


def _ends(rows: Sequence[Row]) -> Finding:
    check = "smallest and largest size, predicted from the rest"
    sizes = [row for row in rows if row["by"] == "size"]
    ends = [sizes[0], sizes[-1]] if len(sizes) > 1 else []
    lost = [row for row in ends if row["mean_error"] is None or not row["rms_in"]]
    if not ends or lost:
        return Finding(
            part="influence",
            check=check,
            value=f"{lost[0]['part']}: {lost[0]['reason']}" if lost else "there are no two sizes",
            verdict="unknown",
            remedy="add runs of a further size: nothing here says how far the law carries",
        )
    together = sum(row["mean_error"] / row["rms_in"] for row in ends) / 2
    verdict = _graded(abs(together), BIAS)
    each = ", ".join(f"{row['part']} {format_percent(row['mean_error'], 2, sign=True)}" for row in ends)
    remedy = "exponents that drift with size look like that: try other laws, and do not extrapolate"
    return Finding(
        part="influence",
        check=check,
        value=f"mean error {each} of the loss; together {together:+.1f} times the RMSE of the fits to the rest",
        verdict=verdict,
        remedy="" if verdict == "fine" else remedy,
    )


def _last_step(steps: Sequence[Row], headline: Row | None) -> Finding:
    check = "gain foretold from the smaller sizes"
    width = None if headline is None else width_of(headline)
    last = steps[-1] if steps else None
    if last is None or last["gain_error"] is None:
        value = "none" if last is None else f"none: {last['reason'] or 'there is no gain'}"
        if last is not None and last["mean_error"] is not None:
            error = format_percent(last["mean_error"], 2, sign=True)
            value = f"loss of {last['predicted']} from sizes up to {last['stop']}: mean error {error}"
        remedy = "add runs of further sizes" if last is None or last["mean_error"] is None else ""
        return Finding(part="influence", check=check, value=value, verdict="unknown", remedy=remedy)
    value = (
        f"{format_percent(last['gain_predicted'])} at {format_quantity(last['budget'])} from sizes up to "
        f"{last['stop']}, {format_percent(last['gain_fitted'])} with {last['predicted']}"
    )
    verdict: Verdict = "unknown" if width is None else _graded(abs(last["gain_error"]) / width, STEP)
    if width is None:
        value += "; no interval to compare the difference with"
    remedy = "expect the gain of the next size to move as much again: do not extrapolate beyond the runs"
    return Finding(
        part="influence",
        check=check,
        value=value,
        verdict=verdict,
        remedy={"fine": "", "unknown": NO_INTERVAL}.get(verdict, remedy),
    )


def _single_rows(rows: Sequence[Row]) -> Finding:
    flagged = [row for row in rows if row["flag"]]
    value = f"{len(flagged)} of {counted(len(rows), 'endpoint')}"
    if flagged:
        named = ", ".join(f"{row['arch']} {row['endpoint']}" for row in flagged[:NAMED])
        value += f": {named}{f' and {len(flagged) - NAMED} more' if len(flagged) > NAMED else ''}"
    return Finding(
        part="influence",
        check="endpoints that are outlying or move the fit",
        value=value,
        verdict="caution" if flagged else "fine",
        remedy="check these runs; --drop-outliers fits without the outlying ones" if flagged else "",
    )


def _points(change: float) -> str:
    return f"{100 * change:+.1f} points"


def _graded(size: float, bounds: tuple[float, float]) -> Verdict:
    return "fine" if size <= bounds[0] else "caution" if size <= bounds[1] else "serious"
