"""The runs that a plan starts from: rows of both architectures by cell, and designs of more or fewer such cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import DataError, UsageError
from smelt_scaling.fitting import FitSettings
from smelt_scaling.fitting.estimate import frontier_columns
from smelt_scaling.fitting.steps import prepare
from smelt_scaling.laws import AdditiveLaw

__all__ = ["Design", "design_of"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """Runs of a pair of architectures.

    Parameters
    ----------
    archs : pair of str
        Target and reference, the order of every pair below.
    columns : pair of mapping of str to (n,) array
        Columns of the law as a fit sees them.
    table : pair of mapping of str to (n,) array
        Columns of the law as the table has them.
    cell : pair of int array (n,)
        Position in ``labels`` of each row's cell.
    labels : tuple of str
        Cells of both, smallest runs first; within a size by sparsity.
    unit : str
        What a cell is.
    support : mapping of str to (float, float)
        F, D and (for laws with S) S that the runs of both cover.
    horizons : tuple of float
        Tokens of the runs, each once.
    """

    archs: tuple[str, str]
    columns: tuple[Mapping[str, Array], Mapping[str, Array]]
    table: tuple[Mapping[str, Array], Mapping[str, Array]]
    cell: tuple[Index, Index]
    labels: tuple[str, ...]
    unit: str
    support: Mapping[str, tuple[float, float]]
    horizons: tuple[float, ...]

    def times(self, cells: int) -> NDArray[np.intp]:
        """Return how often each cell is taken in a design of so many: all alike, and what is left spread evenly.

        Examples
        --------
        >>> from smelt_scaling import example_endpoints, get_law
        >>> design = design_of(example_endpoints(), get_law("sparse-additive"), ("smelt", "baseline"))
        >>> design.times(6).tolist(), design.times(15).tolist()
        ([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1], [1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 1])
        """
        present = len(self.labels)
        every, left = divmod(cells, present)
        found = np.full(present, every, dtype=np.intp)
        found[((np.arange(left) + 0.5) * present / max(left, 1)).astype(np.intp)] += 1
        return found

    def taken(self, cells: int) -> dict[str, NDArray[Any]]:
        """Return a table of runs, without losses, of the design with so many cells; repeated cells are new ones."""
        times = self.times(cells)
        parts: dict[str, list[NDArray[Any]]] = {}
        for arch, table, cell in zip(self.archs, self.table, self.cell, strict=True):
            rows = np.repeat(np.arange(len(cell)), times[cell])
            # the n-th copy of a row belongs to the n-th copy of its cell
            copy = np.concatenate([np.arange(times[k]) for k in cell]) if len(cell) else rows
            labels = [
                f"{self.labels[cell[row]]} #{number + 1}" for row, number in zip(rows, copy, strict=True)
            ]
            columns = {name: values[rows] for name, values in table.items()}
            for name, values in {"arch": np.repeat(arch, len(rows)), "cell": labels, **columns}.items():
                parts.setdefault(name, []).append(np.asarray(values))
        return {name: np.concatenate(pieces) for name, pieces in parts.items()}


def design_of(
    endpoints: Endpoints,
    law: AdditiveLaw,
    pair: tuple[str, str],
    settings: FitSettings | None = None,
    unit: str | None = None,
) -> Design:
    """Return the design of two architectures in a table; its losses are not looked at.

    Parameters
    ----------
    endpoints : Endpoints
        The runs.
    law : AdditiveLaw
        The law they are for.
    pair : pair of str
        Target and reference.
    settings : FitSettings, optional
        Choices that change what a fit sees of the table.
    unit : str, optional
        The resampling unit.

    Raises
    ------
    DataError
        If a column of the law is missing.
    UsageError
        If an architecture has no runs.
    """
    settings = settings or FitSettings()
    labels, unit = endpoints.cells(unit)
    by_arch = endpoints.by_arch()
    absent = [arch for arch in pair if arch not in by_arch]
    if absent:
        raise UsageError(
            f"{endpoints.source}: no runs of {' or '.join(absent)}; it holds {', '.join(by_arch)}; write the names of "
            "the architectures alike"
        )
    missing = [name for name in law.columns if name not in endpoints and name != "S"]
    if missing:
        raise DataError(endpoints.explain_missing(*missing))
    columns, tables, own_labels, sizes = [], [], [], []
    for arch in pair:
        own = by_arch[arch]
        mine = labels[endpoints.arch == arch]
        table = {name: own.S if name == "S" else own[name] for name in law.columns}
        columns.append(prepare(table, own, mine, settings).columns)
        tables.append(table)
        own_labels.append(mine)
        sizes.append(frontier_columns(law, own, settings.flops_per_param))
    named = [name for name in ("F", "D", "S") if all(name in size for size in sizes)]
    every = {name: np.concatenate([size[name] for size in sizes]) for name in named}
    union, cell = np.unique(np.concatenate(own_labels), return_inverse=True)
    mean_size, mean_dense = (
        np.bincount(cell, np.log(values)) / np.bincount(cell)
        for values in (every.get("F", np.ones(len(cell))), 1 - every.get("S", np.zeros(len(cell))))
    )
    order = np.lexsort([np.arange(len(union)), -mean_dense, mean_size])
    place = np.argsort(order)[cell]
    first = len(own_labels[0])
    support = {
        name: (
            max(float(size[name].min()) for size in sizes),
            min(float(size[name].max()) for size in sizes),
        )
        for name in named
    }
    return Design(
        archs=pair,
        columns=(columns[0], columns[1]),
        table=(tables[0], tables[1]),
        cell=(place[:first], place[first:]),
        labels=tuple(union[order].tolist()),
        unit=unit,
        support=support,
        horizons=tuple(np.unique(every["D"]).tolist()) if "D" in every else (),
    )
