"""Which runs there are: cells by horizons, and sparsity tiers, as tidy rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.engine.design import level_index
from smelt_scaling.formatting import format_quantity

__all__ = ["Map", "arch_codes", "cell_map", "tier_rows"]

Index = NDArray[np.intp]
Floats = NDArray[np.float64]

#: Columns that name or measure the size of a model, and those that say how long it was trained, best first.
SIZES = ("scale", "cell", "F", "N_act", "N", "C")
LENGTHS = ("D", "C")
#: More entries than this are no map for anybody; the smallest models are kept.
MOST_ENTRIES = 10_000


@dataclass(frozen=True, kw_only=True)
class Map:
    """Cells by horizons.

    Parameters
    ----------
    rows : list of dict
        One per architecture, cell and horizon, empty ones included: ``arch``, ``cell`` (label), ``size`` (median F,
        or what stands for it), ``tier``, ``S``, ``horizon`` (median D or C), ``endpoints``.
    size, length : str
        Columns that make the cells and the horizons; ``length`` is empty if there is none.
    cells : int
        How many cells there are; those beyond `MOST_ENTRIES` entries are not in ``rows``.
    shown : int
        How many of them are in ``rows``.
    """

    rows: list[dict[str, Any]]
    size: str
    length: str
    cells: int
    shown: int


def cell_map(endpoints: Endpoints) -> Map:
    """Count the endpoints of every architecture, cell (size and sparsity tier) and horizon.

    Sizes and horizons within 5 % of each other are one, over all architectures together.
    """
    arch = arch_codes(endpoints)
    size = next(name for name in SIZES if name in endpoints)
    length = next((name for name in LENGTHS if name in endpoints and name != size), "")
    measure = next(endpoints[name] for name in ("F", "N_act", "N", "C", "loss") if name in endpoints)
    named = size in ("scale", "cell")
    codes: Index = endpoints._stored[size].codes.astype(np.intp) if named else level_index(np.log(measure))
    tier = endpoints.tiers
    horizon = level_index(np.log(endpoints[length])) if length else np.zeros(len(arch), dtype=np.intp)
    width = int(tier.max()) + 1
    cell, first = _compact(codes * width + tier)
    middle = _medians(measure, cell)
    of_size, _ = _compact(codes[first])
    order = np.lexsort((tier[first], _medians(middle, of_size)[of_size]))
    n_archs, n_horizons = len(endpoints.archs), int(horizon.max()) + 1
    shown = order[: max(1, MOST_ENTRIES // (n_archs * n_horizons))]
    place = np.full(len(first), -1)
    place[shown] = np.arange(len(shown))
    there = place[cell] >= 0  # counts of all cells, a million perhaps, by horizons may not fit into memory
    entry = (arch * len(shown) + place[cell]) * n_horizons + horizon
    counts = np.bincount(entry[there], minlength=n_archs * len(shown) * n_horizons)
    counts = counts.reshape(n_archs, len(shown), n_horizons)
    lengths = _medians(endpoints[length], horizon).tolist() if length else [None]
    sparsity = _medians(endpoints.S, cell) if "S" in endpoints else None
    cells = [
        {
            "cell": str(endpoints._stored[size][first[c]])
            if named
            else f"{size} {format_quantity(middle[c])}",
            "size": float(middle[c]),
            "tier": int(tier[first[c]]),
            "S": None if sparsity is None else float(sparsity[c]),
        }
        for c in shown
    ]
    rows = [
        {"arch": name, **known, "horizon": lengths[h], "endpoints": int(counts[a, c, h])}
        for a, name in enumerate(endpoints.archs)
        for c, known in enumerate(cells)
        for h in range(n_horizons)
    ]
    return Map(rows=rows, size=size, length=length, cells=len(first), shown=len(shown))


def tier_rows(endpoints: Endpoints, cells: Index, sparsities: Floats) -> list[dict[str, Any]]:
    """Describe the sparsity tiers, pooled over the architectures.

    Parameters
    ----------
    endpoints : Endpoints
        The table.
    cells : int array (n,)
        Resampling label of each row, as a code.
    sparsities : array (tiers,)
        The default ones of the table.

    Returns
    -------
    list of dict
        One per tier and architecture: ``tier``, ``S_lo``, ``S_hi`` (of all architectures), ``S_median`` (over cells, at
        which gains are compared), ``arch``, ``cells``, ``endpoints``. Empty without a column S.
    """
    if "S" not in endpoints:
        return []
    arch, rows = arch_codes(endpoints), []
    for tier, median in zip(np.unique(endpoints.tiers).tolist(), sparsities, strict=True):
        there = endpoints.tiers == tier
        span = endpoints.S[there]
        for a, name in enumerate(endpoints.archs):
            own = there & (arch == a)
            rows.append(
                {
                    "tier": int(tier),
                    "S_lo": float(span.min()),
                    "S_hi": float(span.max()),
                    "S_median": float(median),
                    "arch": name,
                    "cells": int(np.count_nonzero(np.bincount(cells[own]))),
                    "endpoints": int(own.sum()),
                }
            )
    return rows


def arch_codes(endpoints: Endpoints) -> Index:
    """Return the position of each row's architecture in `Endpoints.archs`; the canonical order begins with it."""
    starts = np.searchsorted(endpoints.arch, np.array(endpoints.archs))
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=len(endpoints)))


def _compact(groups: Index) -> tuple[Index, Index]:
    """Return groups numbered from 0 without gaps, and a row of each; sorts nothing."""
    row = np.full(int(groups.max()) + 1, -1)
    row[groups] = np.arange(len(groups))
    there = row >= 0
    return (np.cumsum(there) - 1)[groups], row[there]


def _medians(values: Floats, groups: Index) -> Floats:
    """Return the median of each group; groups count from 0 without gaps."""
    order = np.argsort(values)
    few = groups.max() < np.iinfo(np.int16).max  # short integers are sorted by counting
    order = order[np.argsort(groups[order].astype(np.int16 if few else np.intp), kind="stable")]
    ends = np.cumsum(np.bincount(groups))
    starts = ends - np.bincount(groups)
    low, high = (starts + ends - 1) // 2, (starts + ends) // 2
    return np.asarray((values[order][low] + values[order][high]) / 2)
