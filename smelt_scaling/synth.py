"""Simulated endpoints: a surface plus noise that cells and paired architectures share to a stated extent.

On the loss scale, for a row of architecture *j* in cell *g*::

    L = surface_j(row) + sd_j * (sqrt(cell_share) * u[j, g] + sqrt(1 - cell_share) * z[row])

with standard normal ``u`` and ``z``; ``z`` is independent between rows, and two architectures' ``u`` in one
cell have correlation ``pair_correlation`` (a common factor, so any number of architectures can share it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, UsageError, merge_notes
from smelt_scaling.laws import Surface

__all__ = ["simulate"]

Columns = Mapping[str, NDArray[Any]]


def simulate(
    surfaces: Mapping[str, Surface],
    design: Any,
    *,
    sd: Mapping[str, float] | float,
    cell_share: float = 0.5,
    pair_correlation: float = 0.5,
    seed: int = 0,
) -> Endpoints:
    """Draw one set of endpoints from known surfaces.

    Parameters
    ----------
    surfaces : Mapping[str, Surface]
        One surface (a single coefficient vector, no draws) per architecture of the design.
    design : DataFrame or mapping of columns
        Endpoint columns of length n: ``arch``, the columns of the laws (such as ``F``, ``S``, ``D``),
        ``cell`` when ``cell_share > 0``, and any other, which is passed through. ``loss`` is replaced.
    sd : Mapping[str, float] or float
        Standard deviation of the noise per architecture, nats per token.
    cell_share : float
        Share of the noise variance that the rows of an architecture in one cell have in common, in [0, 1].
    pair_correlation : float
        Correlation of the cell effects of two architectures in the same cell, in [0, 1].
    seed : int
        The same seed and rows give the same losses, in whatever order the rows stand.

    Returns
    -------
    Endpoints
        The design with its losses, and a note of code ``simulated``.

    Raises
    ------
    UsageError
        On a share or correlation outside [0, 1], a negative or missing sd, an architecture without a surface,
        a surface with draws, a missing column, or noise that makes a loss negative.

    Examples
    --------
    >>> from smelt_scaling.papers import load_paper
    >>> design = {"arch": ["smelt"] * 2, "cell": ["200M/95%"] * 2}
    >>> design |= {"F": [1.37e9] * 2, "S": [0.947] * 2, "D": [2e10, 2e11]}
    >>> e = simulate(load_paper("smelt").surfaces, design, sd=0.0)
    >>> e.loss.round(4).tolist(), e.notes[0].code
    ([2.1203, 1.8675], 'simulated')
    """
    columns = {str(name): np.asarray(design[name]) for name in design if name != "loss"}
    columns = _check_design(surfaces, columns, cell_share, pair_correlation)
    archs = [str(arch) for arch in np.unique(columns["arch"])]
    scale = _scales(archs, sd)
    used = {name for arch in archs for name in surfaces[arch].law.columns}
    order = _canonical_order(columns, used)
    columns = {name: values[order] for name, values in columns.items()}

    noise = _noise(columns, cell_share, pair_correlation, seed)
    loss = np.empty(len(order))
    for arch in archs:
        rows = columns["arch"] == arch
        exact = surfaces[arch].loss(**{name: columns[name][rows] for name in surfaces[arch].law.columns})
        loss[rows] = exact + scale[arch] * noise[rows]
    if not np.all(loss > 0):
        count = int(np.sum(~(loss > 0)))
        raise UsageError(
            f"simulated loss, {counted(count, 'row')} not > 0: a loss is positive; lower sd, or correct the surface"
        )

    endpoints = _endpoints({**columns, "loss": loss})
    message = (
        f"{len(order)} endpoints are simulated from given surfaces plus noise; they are not measurements"
    )
    note = Note(code="simulated", severity="warning", message=message, count=len(order))
    notes = [old for old in endpoints.notes if old.code != "simulated"]  # said once, with the full count
    return replace(endpoints, notes=merge_notes(notes, [note]))


def _noise(columns: Columns, cell_share: float, pair_correlation: float, seed: int) -> NDArray[np.float64]:
    """Return unit-variance noise per row, shape (n,); canonical order makes draws belong to rows."""
    children = np.random.SeedSequence(seed).spawn(3)
    shared, own, rows = (np.random.default_rng(child) for child in children)
    z = rows.standard_normal(len(columns["arch"]))
    if cell_share == 0:
        return z
    archs, arch = np.unique(columns["arch"], return_inverse=True)
    cells, cell = np.unique(columns["cell"], return_inverse=True)
    common = shared.standard_normal(len(cells))
    specific = own.standard_normal((len(archs), len(cells)))
    u = np.sqrt(pair_correlation) * common + np.sqrt(1 - pair_correlation) * specific
    return np.asarray(np.sqrt(cell_share) * u[arch, cell] + np.sqrt(1 - cell_share) * z)


def _canonical_order(columns: Columns, used: Iterable[str]) -> NDArray[np.intp]:
    """Return the order that sorts rows by architecture, cell, the laws' columns, then every other column.

    Rows that tie are equal in every column, so it does not matter which of them gets which draw.
    """
    first = [name for name in ("arch", "cell", *sorted(used)) if name in columns]
    names = first + sorted(set(columns) - set(first))
    # object columns may hold missing values, which do not compare: their text does
    keys = [columns[name].astype(str) if columns[name].dtype == object else columns[name] for name in names]
    return np.lexsort(keys[::-1])


def _check_design(
    surfaces: Mapping[str, Surface], columns: Columns, cell_share: float, pair_correlation: float
) -> dict[str, NDArray[Any]]:
    """Return columns, labels as text and the laws' columns as numbers, or say which rule is broken."""
    for name, value in (("cell_share", cell_share), ("pair_correlation", pair_correlation)):
        if not 0 <= value <= 1:
            raise UsageError(f"{name} {value:g}: a share in [0, 1] is needed, such as 0.5")
    _require(columns, ["arch"], "it selects the surface")
    if cell_share > 0:
        _require(columns, ["cell"], "cell effects need column cell; or set cell_share=0")
    typed = dict(columns)
    typed |= {name: typed[name].astype(str) for name in ("arch", "cell") if name in typed}
    for arch in map(str, np.unique(typed["arch"])):
        if arch not in surfaces:
            known = f"there are {', '.join(surfaces)}" if surfaces else "there are none"
            raise UsageError(
                f"design, column arch: {arch!r} has no surface ({known}); give one to each architecture"
            )
        if surfaces[arch].coef.ndim != 1:
            raise UsageError(
                f"surface of {arch!r}: it holds draws; endpoints are simulated from one vector, select one draw"
            )
        _require(typed, surfaces[arch].law.columns, f"the law of {arch!r} reads it")
        typed |= {name: typed[name].astype(np.float64) for name in surfaces[arch].law.columns}
    return typed


def _scales(archs: Iterable[str], sd: Mapping[str, float] | float) -> dict[str, float]:
    scale = {arch: float(sd.get(arch, np.nan) if isinstance(sd, Mapping) else sd) for arch in archs}
    for arch, value in scale.items():
        if not (np.isfinite(value) and value >= 0):
            raise UsageError(
                f"sd of {arch!r}: {value:g} is no standard deviation; give a finite number >= 0, nats per token"
            )
    return scale


def _require(columns: Columns, names: Iterable[str], why: str) -> None:
    for name in names:
        if name not in columns:
            raise UsageError(f"design: no column {name}; {why}")


def _endpoints(columns: Columns) -> Endpoints:
    """Validate through the one door for tables: a simulated set obeys the same schema as a logged one."""
    import pandas as pd

    return Endpoints.from_frame(pd.DataFrame(dict(columns)), source="<simulated>")
