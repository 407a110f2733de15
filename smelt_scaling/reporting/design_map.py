"""The map of a design for people: a line per cell, a column per horizon, cut to what a page holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from smelt_scaling.formatting import WIDTH, format_number, format_quantity
from smelt_scaling.reporting.document import Cell, Grid

__all__ = ["map_grids"]

#: Maps, cells and horizons of a page; the rest is counted.
MAPS, CELLS = 4, 24
#: Digits of a count that a column always has room for.
NARROWEST = 4
NONE, GAP = ".", "  "

Counts = tuple[tuple[int, ...], ...]


def map_grids(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> tuple[Grid, ...]:
    """Return one grid per distinct map; architectures with the same runs share one.

    Parameters
    ----------
    rows : sequence of mapping
        ``map`` of a design report.
    about : mapping
        ``map`` of its settings.
    """
    horizons = list(dict.fromkeys(row["horizon"] for row in rows))
    by_arch: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_arch.setdefault(row["arch"], []).append(row)
    cells = next(iter(by_arch.values()))[:: len(horizons)]
    maps = {arch: _counts(own, len(horizons)) for arch, own in by_arch.items()}
    alike: dict[Counts, list[str]] = {}
    for arch, counts in maps.items():
        alike.setdefault(counts, []).append(arch)
    shown = list(alike.items())[:MAPS]
    left = len(alike) - len(shown)
    grids = [
        _grid(
            counts,
            archs,
            [counted for other, counted in maps.items() if other not in archs],
            cells,
            horizons,
            about,
        )
        for counts, archs in shown
    ]
    if left:
        grids[-1] = replace(grids[-1], heading=f"{grids[-1].heading}; {left} more maps are in csv and JSON")
    return tuple(grids)


def _counts(rows: Sequence[Mapping[str, Any]], width: int) -> Counts:
    counts = [row["endpoints"] for row in rows]
    return tuple(tuple(counts[i : i + width]) for i in range(0, len(counts), width))


def _grid(
    counts: Counts,
    archs: Sequence[str],
    others: Sequence[Counts],
    cells: Sequence[Mapping[str, Any]],
    horizons: Sequence[float | None],
    about: Mapping[str, Any],
) -> Grid:
    remarks = _remarks(counts, others)
    left_out = about["cells"] - about["shown"]
    with_runs = [i for i, row in enumerate(counts) if any(row)]
    shared = len(with_runs) > len(counts) / 2  # else the sizes of the architectures are not meant to match
    chosen = range(len(counts)) if shared else with_runs
    shown = list(chosen)[:CELLS]
    left_out += len(chosen) - len(shown)
    remarks = [remarks[i] for i in shown]
    sparse = " at S" if cells[0]["S"] is not None else ""
    labels = [*(_label(cells[i]) for i in shown), *([f"… {left_out} more"] if left_out else [])]
    beside = max(map(len, remarks), default=0)
    room = WIDTH - max(map(len, (*labels, about["size"] + sparse))) - (beside + len(GAP) if beside else 0)
    heads = [_head(h, about["length"]) for h in horizons]
    starts = _pooled(heads, horizons, room)
    pooled = len(starts) < len(heads)
    heads = [heads[i] + "+" * pooled for i in starts]
    rows = []
    for i, label, remark in zip(shown, labels, remarks, strict=False):
        numbers = [sum(counts[i][a:b]) for a, b in pairwise([*starts, len(horizons)])]
        texts = [label, *(str(n) if n else NONE for n in numbers), *([remark] if beside else [])]
        rows.append(tuple(Cell(point=text) for text in texts))
    if left_out:
        rest = (Cell(point="") for _ in range(len(heads) + bool(beside)))
        rows.append((Cell(point=labels[-1]), *rest))
    unit = {"D": " and tokens D", "C": " and budget C"}.get(about["length"], "")
    told = [f"{NONE} is none"]
    told += [f"{len(horizons)} horizons pooled, {heads[0]} is from there on"] if pooled else []
    told += [] if shared else [f"{len(with_runs)} of {len(counts)} cells"]
    return Grid(
        heading=f"Endpoints per {about['size']}{sparse}{unit} of {' and of '.join(archs)} ({'; '.join(told)})",
        headers=(f"{about['size']}{sparse}", *heads, *([""] if beside else [])),
        numeric=(False, *(True for _ in heads), *([False] if beside else [])),
        rows=tuple(rows),
    )


def _pooled(heads: Sequence[str], horizons: Sequence[float | None], room: int) -> list[int]:
    """Return where each column begins: at every horizon, or at as many equal steps of ln D as a line has room for."""
    width = max(NARROWEST, *map(len, heads)) + len(GAP)
    if len(heads) * width <= room or horizons[0] is None:
        return list(range(len(heads)))
    steps = max(1, room // (width + 1))
    known = [math.log(h) for h in horizons if h is not None]
    edges = [known[0] + (known[-1] - known[0]) * k / steps for k in range(steps)]
    return sorted({next(i for i, h in enumerate(known) if h >= edge) for edge in edges})


def _head(horizon: float | None, length: str) -> str:
    return "all" if horizon is None else format_quantity(horizon, suffix=length == "D")


def _label(cell: Mapping[str, Any]) -> str:
    return cell["cell"] if cell["S"] is None else f"{cell['cell']} at {format_number(cell['S'], 3)}"


def _remarks(counts: Counts, others: Sequence[Counts]) -> list[str]:
    """Say per cell that other architectures lack it, or that a grid has gaps in it."""
    rows = [row for row in counts if any(row)]
    used = sum(map(any, zip(*counts, strict=True)))
    a_grid = sum(sum(map(bool, row)) for row in rows) > len(rows) * used / 2
    told = []
    for i, row in enumerate(counts):
        filled = sum(map(bool, row))
        said = [f"{filled} of {used} horizons"] if a_grid and filled < used else []
        said += ["unmatched"] if others and not all(any(other[i]) for other in others) else []
        told.append(", ".join(said) if filled else "no runs")
    return told
