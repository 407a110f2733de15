"""Probes for people: one grid per probe, with what its chance and its control are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt_scaling.analyses.probes.catalogue import BY, PROBES
from smelt_scaling.analyses.probes.declaration import Probe
from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.document import Document, Grid
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["probe_document"]


def _columns(probe: Probe) -> tuple[Column, ...]:
    than = "chance" if probe.threshold is None else f"{probe.threshold:g}"
    return (
        *(Column(key=name, header=name, optional=True) for name in (*BY, "part", "visit")),
        *(Column(key=name, header=name, kind="printed", optional=True) for name in ("k", "n")),
        Column(key="value", header="mean", kind="number", digits=3, interval=True),
        Column(key="chance", header="chance", kind="number", digits=3),
        Column(key="lift", header="×chance", kind="multiplier", optional=True, redundant=True),
        Column(key="control", header="control", kind="number", digits=3, optional=True),
        Column(
            key="contrast", header=_contrast(probe), kind="number", digits=3, interval=True, optional=True
        ),
        Column(key="share_above", header=f"> {than}", kind="percent", redundant=True),
        Column(key="share_above_control", header="> control", kind="percent", optional=True, redundant=True),
        Column(key="cells", header="cells", kind="printed", redundant=True),
    )


def _contrast(probe: Probe) -> str:
    return "over control" if probe.scale == "log" else "minus control"


def probe_document(frame: pd.DataFrame) -> Document:
    """Describe a table of probes."""
    by_probe: dict[str, list[dict[str, Any]]] = {}
    for row in plain_rows(frame):
        shown = {name: None if value == "" else value for name, value in row.items()}
        by_probe.setdefault(row["probe"], []).append(shown)
    settings = frame.attrs.get("settings", {})
    drawn = any(row["draws"] for rows in by_probe.values() for row in rows)
    return Document(
        title="Two visits of the same layers, compared",
        caption=(
            f"{100 * settings['level']:g} % percentile intervals: documents inside a cell are resampled"
            f"{'' if 'cell' in settings['by'] else ', then cells'}; never tokens."
            if drawn
            else "Point estimates, no intervals.",
            "Intervals of shares are in csv and json."
            if drawn
            else "Means of tokens in a cell, then of cells.",
        ),
        grids=tuple(_grid(PROBES[name], rows) for name, rows in by_probe.items()),
        footnotes=tuple(
            _footnote(PROBES[name], rows, settings.get("scaled", [])) for name, rows in by_probe.items()
        ),
    )


def _grid(probe: Probe, rows: list[dict[str, Any]]) -> Grid:
    return make_grid(rows, _columns(probe), heading=f"{probe.name}: {probe.quantity}")


#: What the column scaled of write norms may say -> in words.
_SCALED = {
    "yes": "holding the factor 1/r",
    "no": "without the factor 1/r",
    "": "with or without 1/r, not stated",
}


def _footnote(probe: Probe, rows: list[dict[str, Any]], scaled: list[str]) -> str:
    mean = ", geometric mean" if probe.scale == "log" else ""
    above = f"shares count {', '.join(probe.counted)}" if len(probe.counted) > 1 else "shares count cells"
    controlled = probe.control and any(row["control"] is not None for row in rows)
    control = f" Control: {probe.control}." if controlled else ""
    writes = f" Writes {'; '.join(_SCALED[said] for said in scaled)}." if probe.name == "write_norm" else ""
    counts = ", ".join(
        _ranged([row[name] for row in rows], name) for name in ("cells", "documents", "tokens")
    )
    return f"{probe.name}{mean}: chance is {probe.chance_words}; {above}.{control}{writes} A row: {counts}."


def _ranged(values: list[int], noun: str) -> str:
    """Write how many of something rows rest on: one number, or the least and the most."""
    least, most = min(values), max(values)
    return f"{least} {noun if least != 1 else noun[:-1]}" if least == most else f"{least} to {most} {noun}"
