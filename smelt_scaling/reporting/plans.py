"""How a plan is shown to people: what to run next, what a sum buys, and which gains a design finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_interval, format_number, format_percent, format_quantity
from smelt_scaling.reporting.columns import MARK, Column, make_grid
from smelt_scaling.reporting.document import Cell, Document, Grid
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plan_document"]

Row = Mapping[str, Any]

#: Candidates in each of the two tables; CSV and JSON hold all.
SHOWN = 6
#: What reduction per FLOP is printed for.
UNIT = 1e21

RUN = (
    Column(key="F", header="F", kind="quantity", marked=True),
    Column(key="S", header="S", kind="number", digits=3, optional=True),
    Column(key="tokens", header="endpoints at D"),
    Column(key="cost", header="cost", kind="quantity"),
)
CANDIDATES = (
    *RUN,
    Column(key="reduction", header="error falls", kind="percent"),
    Column(key="per_unit", header="per 1e21", kind="percent"),
    Column(key="width_after", header="width then", kind="percent"),
)
SEQUENCE = (
    Column(key="step", header="pair", kind="printed"),
    *RUN,
    Column(key="spent", header="spent", kind="quantity"),
    Column(key="se_after", header="error", kind="number", digits=3),
    Column(key="width_after", header="width then", kind="percent"),
)
SIMULATED = (
    Column(key="cells", header="cells", kind="printed"),
    Column(key="gain", header="true gain", kind="percent"),
    Column(key="power", header="found in", kind="percent", interval=True),
    Column(key="worlds", header="worlds", kind="printed"),
    Column(key="detectable", header="found with 80 %", kind="percent", absent="beyond these"),
)


def plan_document(frame: pd.DataFrame) -> Document:
    """Describe candidates by what they do, by what they do per FLOP, what a sum buys, and power."""
    settings = frame.attrs["settings"]
    rows = [_shown(row) for row in plain_rows(frame)]
    best = sorted(rows, key=lambda row: -row["reduction_per_flop"])
    grids = [
        make_grid(rows[:SHOWN], CANDIDATES, heading="Pairs that shrink the error most"),
        make_grid(best[:SHOWN], CANDIDATES, heading="Pairs that shrink it most per FLOP"),
    ]
    bought = [_shown(row) for row in frame.attrs["sequence"]]
    if bought:
        heading = f"What {format_quantity(settings['fund'])} FLOPs buy, one pair after another"
        grids.append(make_grid(bought, SEQUENCE, heading=heading))
    power = frame.attrs["power"]
    grids.append(_power_grid([row for row in power if row["method"] == "formula"], settings))
    simulated = [row for row in power if row["method"] == "simulation"]
    if simulated:
        heading = (
            f"Gains found in simulated worlds: the {100 * settings['level']:g} % percentile interval of "
            f"{settings['bootstrap']} resamples lies above 0"
        )
        grids.append(make_grid(simulated, SIMULATED, heading=heading))
    away = any(not row["in_box"] for row in (*rows[:SHOWN], *best[:SHOWN], *bought))
    return Document(
        title=f"What to run next: compute saved by {settings['target']} relative to {settings['reference']}",
        caption=tuple(_caption(frame, rows[0])),
        grids=tuple(grids),
        footnotes=(f"{MARK} outside the runs: trusts the law where nothing was measured.",) if away else (),
    )


def _shown(row: Row) -> dict[str, Any]:
    horizons = [format_quantity(tokens, suffix=True) for tokens in row["horizons"]]
    shown = ", ".join(horizons) if len(horizons) < 3 else f"{len(horizons)}: {horizons[0]} to {horizons[-1]}"
    per_unit = row["reduction_per_flop"] * UNIT if "reduction_per_flop" in row else None
    return {**row, "tokens": shown, "per_unit": per_unit, "extrapolated": not row["in_box"]}


def _caption(frame: pd.DataFrame, row: Row) -> list[str]:
    settings = frame.attrs["settings"]
    at = "" if settings["sparsity"] is None else f" and S = {format_number(settings['sparsity'], 3)}"
    reported = ""
    if settings["reported_lo"] is not None and settings["reported_hi"] is not None:
        ends = format_interval(settings["reported_lo"], settings["reported_hi"])
        reported = f"; the study's own interval is {ends}"
    sd = ", ".join(f"{format_number(value, 3)} for {arch}" for arch, value in settings["noise"].items())
    box = ", ".join(
        f"{name} {_end(name, low)} to {_end(name, high)}" for name, (low, high) in settings["box"].items()
    )
    decay = settings["decay"]
    if settings["schedule"] == "wsd":
        length = format_percent(decay, 0) if decay < 1 else f"{format_quantity(decay, suffix=True)} tokens"
        how = f"a trunk with a decay of {length} for every endpoint"
    else:
        how = "a run of its own for every endpoint"
    needed = "; ".join(
        f"{format_percent(one['gain'])}: {'over 10,000' if one['cells'] is None else one['cells']}"
        for one in frame.attrs["needed"]
    )
    return [
        f"Gain at {format_quantity(settings['budget'])} FLOPs{at}: {format_percent(settings['gain'])}, its t interval "
        f"over {settings['cells']} cells {100 * row['width_before']:.1f} points wide{reported}.",
        f"Error: standard error of ln(C_ref/C), {format_number(row['se_before'], 3)} now, "
        f"{settings['se_factor']:.2f} times that of least squares ({settings['se_factor_source']}); law "
        f"{settings['law']}.",
        f"Noise of an endpoint in {settings['loss_unit']}: {sd} ({settings['noise_source']}); cells share "
        f"{format_percent(settings['icc'], 0)} of its variance ({settings['icc_source']}), correlated by "
        f"{settings['pair_correlation']:.2f} between the two ({settings['pair_correlation_source']}).",
        f"A pair is one run of each, {how}; cost in training FLOPs of both. Within {box}.",
        f"Cells like these for a power of 80 %, by true gain: {needed}.",
    ]


def _end(name: str, value: float) -> str:
    return format_number(value, 3) if name == "S" else format_quantity(value, suffix=name == "D")


def _power_grid(rows: Sequence[Row], settings: Row) -> Grid:
    """Return one line per number of cells and share of noise, one column per true gain."""
    gains = sorted({row["gain"] for row in rows})
    found: dict[tuple[int, float], dict[float, Row]] = {}
    for row in rows:
        found.setdefault((row["cells"], row["icc"]), {})[row["gain"]] = row
    lines = []
    for (cells, icc), by_gain in found.items():
        any_gain = next(iter(by_gain.values()))
        numbers = [by_gain[gain]["power"] for gain in gains]
        lines.append(
            (
                Cell(point=str(cells)),
                Cell(point=format_percent(icc, 0)),
                Cell(point=format_number(any_gain["se"], 3)),
                Cell(point=format_percent(any_gain["detectable"])),
                *(Cell(point=format_percent(power, 0)) for power in numbers),
            )
        )
    return Grid(
        heading=f"Gains that such designs find: {100 * settings['level']:g} % interval above 0, by the formula",
        headers=(
            "cells",
            "shared",
            "error",
            "found with 80 %",
            *(f"gain {format_percent(g)}" for g in gains),
        ),
        numeric=(True,) * (4 + len(gains)),
        redundant=(*(False,) * 4, *(i == 0 and len(gains) > 3 for i in range(len(gains)))),
        rows=tuple(lines),
    )
