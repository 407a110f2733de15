"""What a panel of choices says of the headline gain, in a few lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling._schema import counted
from smelt_scaling.analyses.diagnostics.findings import Finding, Verdict, records
from smelt_scaling.analyses.diagnostics.interval import NO_INTERVAL, width_of
from smelt_scaling.formatting import format_interval, format_number, format_percent

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["sensitivity_findings"]

#: A range wider than this share of the interval is worth a word: added to the sampling as an independent error of
#: the same kind, half the width makes the whole 12 % wider.
NOTABLE = 0.5
#: Rounding that moves a gain by more than this changes the digits people print: gains are given to .1 points.
ROUNDING = 0.001


def sensitivity_findings(frame: pd.DataFrame) -> list[Finding]:
    """Return the lines that the head of a diagnosis shows.

    A range is fine up to half the width of the interval, a caution above, and serious where it is wider than the
    interval, or where some choice changes the sign of a gain whose interval excludes 0. Without an interval to compare
    with it is unknown.
    """
    ranges = {row["kind"]: row for row in frame.attrs["ranges"]}
    rows = records(frame)
    return [
        _range_finding(
            ranges["estimator"],
            ranges["interval"],
            "other estimators, all rows in place",
            "report the range beside the interval; ce-gain --sensitivity prints it",
        ),
        _range_finding(
            ranges["rows"],
            ranges["interval"],
            "rows left out",
            "look at the choice that moves it most, and add runs where the gain hangs on one tier",
        ),
        *_counts(rows, ranges["interval"]),
        _rounding(rows),
    ]


def _counts(rows: Sequence[Mapping[str, Any]], interval: Mapping[str, Any]) -> list[Finding]:
    """Name counts of FLOPs that price the architectures apart."""
    others = [row for row in rows if row["group"] == "flops" and row["kind"] == "question"]
    if not others:
        return []
    told = ", ".join(f"{format_percent(row['gain'])} by {row['choice']}" for row in others)
    moved = [abs(row["change"]) for row in others if row["change"] is not None]
    width = width_of(interval)
    notable = bool(moved) and (width is None or max(moved) > NOTABLE * width)
    return [
        Finding(
            part="sensitivity",
            check="FLOPs by another count, dearer to one",
            value=told,
            verdict="caution" if notable else "fine",
            remedy="say beside the gain which FLOPs are counted" if notable else "",
        )
    ]


def _rounding(rows: Sequence[Mapping[str, Any]]) -> Finding:
    moved = [
        (row["choice"], row["gain_rounding"])
        for row in rows
        if row["group"] == "digits" and not row["is_default"]
    ]
    shown = ", ".join(
        f"no bound at {name}" if by is None else f"±{format_number(100 * by, 2)} points at {name}"
        for name, by in moved
    )
    coarse = any(by is None or by > ROUNDING for _, by in moved)
    return Finding(
        part="sensitivity",
        check="rounding of printed coefficients",
        value=shown,
        verdict="caution" if coarse else "fine",
        remedy="publish the study, or coefficients with all digits" if coarse else "",
    )


def _range_finding(own: Mapping[str, Any], interval: Mapping[str, Any], check: str, remedy: str) -> Finding:
    lo, hi = own["gain_lo"], own["gain_hi"]
    tried = f"{format_interval(lo, hi)} over {counted(own['choices'], 'choice')}"
    failed = f", {own['failed']} of them without a gain" if own["failed"] else ""
    verdict, beside = _verdict(lo, hi, interval)
    return Finding(
        part="sensitivity",
        check=check,
        value=f"{tried}{failed}; {beside}",
        verdict=verdict,
        remedy={"fine": "", "unknown": NO_INTERVAL}.get(verdict, remedy),
    )


def _verdict(lo: float | None, hi: float | None, interval: Mapping[str, Any]) -> tuple[Verdict, str]:
    """Judge a range of gains by the interval beside it."""
    low, high = interval["gain_lo"], interval["gain_hi"]
    if lo is None or hi is None or low is None or high is None:
        return "unknown", "no interval to compare it with"
    share = (hi - lo) / (high - low) if high > low else float("inf")
    beside = f"{format_percent(share, 0)} of the width of the interval {format_interval(low, high)}"
    resolved = low > 0 or high < 0
    if share > 1 or (resolved and lo <= 0 <= hi):
        return "serious", beside
    return ("caution" if share > NOTABLE else "fine"), beside
