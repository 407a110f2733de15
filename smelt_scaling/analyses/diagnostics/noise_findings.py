"""What the head of a diagnosis says of the noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from smelt_scaling._schema import counted
from smelt_scaling.analyses.diagnostics.findings import Finding
from smelt_scaling.analyses.frames import records
from smelt_scaling.fitting.residuals import COARSE
from smelt_scaling.formatting import format_interval, format_number, format_percent

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["noise_anatomy_findings"]

#: From this share of variance between cells on, more horizons of a cell add next to nothing: with six rows a cell
#: carries as much as 1.7 independent ones.
HIGH_ICC = 0.5
#: Of a test that is looked at without being asked for.
SIGNIFICANT = 0.01
#: An RMSE this many times the scatter of repeated settings is not the seeds' doing.
ABOVE_SEEDS = 2.0


def noise_anatomy_findings(frame: pd.DataFrame) -> list[Finding]:
    """Return what the head of a diagnosis says of the noise: the cells, the seeds, the shape, what pairs share."""
    rows = records(frame)
    return [_of_cells(rows), _of_seeds(rows), _of_shape(rows), *_of_pairs(frame.attrs["pairs"])]


def _each(rows: list[dict[str, Any]], write: Mapping[str, str]) -> str:
    return "; ".join(f"{row['arch']} {write[row['arch']]}" for row in rows)


def _finding(check: str, value: str, verdict: Any, remedy: str = "") -> Finding:
    return Finding(part="noise", check=check, value=value, verdict=verdict, remedy=remedy)


def _of_cells(rows: list[dict[str, Any]]) -> Finding:
    check = "share of the noise that runs of a cell share"
    shown = {
        row["arch"]: "unknown"
        if row["icc"] is None
        else f"{format_percent(row['icc'])} {format_interval(row['icc_lo'], row['icc_hi'])}"
        for row in rows
    }
    value = _each(rows, shown)
    unknown = [row for row in rows if row["icc"] is None]
    if unknown:
        return _finding(check, value, "unknown", f"{unknown[0]['arch']}: {unknown[0]['reason']}")
    if any(row["unit"] == "row" for row in rows):
        remedy = (
            "rows were resampled one by one: name what they share with --map cell=COLUMN or --map run=COLUMN"
        )
        return _finding(check, value, "unknown", remedy)
    if max(row["icc"] for row in rows) >= HIGH_ICC:
        cells = min(row["cells"] for row in rows)
        remedy = f"more horizons add little: {counted(cells, 'cell')} are the sample; add cells"
        return _finding(check, value, "caution", remedy)
    return _finding(check, value, "fine")


def _of_seeds(rows: list[dict[str, Any]]) -> Finding:
    check = "RMSE against the scatter of repeated settings"
    known = [row for row in rows if row["seed_sd"]]
    if not known:
        remedy = "run one setting under three seeds or more, and name them with --map seed=COLUMN"
        return _finding(check, "no setting was run twice", "unknown", remedy)
    ratio = {row["arch"]: row["rmse"] / row["seed_sd"] for row in known}
    value = _each(known, {arch: f"{x:.1f} times" for arch, x in ratio.items()})
    if max(ratio.values()) > ABOVE_SEEDS:
        remedy = "the law or single cells are off by more than seeds explain: look at the residuals by axis"
        return _finding(check, value, "caution", remedy)
    return _finding(check, value, "fine")


def _of_shape(rows: list[dict[str, Any]]) -> Finding:
    check = "residuals: equal spread, no order along runs, fine enough losses"
    wrong, remedies = [], []
    for row in rows:
        arch = row["arch"]
        if row["spread_p"] is not None and row["spread_p"] < SIGNIFICANT:
            wrong.append(f"{arch}: spread changes with {row['spread_axis']} (p = {row['spread_p']:.2g})")
            remedies.append("weigh rows by their precision (column weight)")
        if row["horizon_p"] is not None and row["horizon_p"] < SIGNIFICANT:
            found = format_number(row["horizon_correlation"], 2)
            wrong.append(f"{arch}: neighbouring horizons correlate by {found} (p = {row['horizon_p']:.2g})")
            remedies.append("the law misses the path along tokens, or branches share more than their cell")
        if row["resolution"] and row["resolution"] > COARSE * row["rmse"]:
            wrong.append(f"{arch}: losses in steps of {row['resolution']:.3g}")
            remedies.append("export losses with more digits")
    if wrong:
        return _finding(check, "; ".join(wrong), "caution", "; ".join(dict.fromkeys(remedies)))
    tested = any(row["spread_p"] is not None or row["horizon_p"] is not None for row in rows)
    return _finding(
        check, "nothing stands out" if tested else "too few rows to tell", "fine" if tested else "unknown"
    )


def _of_pairs(pairs: list[dict[str, Any]]) -> list[Finding]:
    known = [row for row in pairs if row["cell_correlation"] is not None]
    if not known:
        return []
    said = [
        f"{row['first']} and {row['second']} {row['cell_correlation']:.2f}"
        f" [{row['cell_correlation_lo']:.2f}, {row['cell_correlation_hi']:.2f}]"
        for row in known
    ]
    check = "correlation of cell effects (shared noise that a paired resample cancels)"
    return [_finding(check, "; ".join(said), "fine")]
