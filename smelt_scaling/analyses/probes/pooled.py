"""Means over tokens, documents and cells: the point and every draw go through the same functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.probes.declaration import Probe
from smelt_scaling.resampling import bootstrap_plan

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CellSums", "cell_sums", "draw_weights", "statistics"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class CellSums:
    """Sums over the tokens of one cell.

    Parameters
    ----------
    cell : str
        Its label.
    docs : tuple of str
        Its documents, sorted.
    sums : array (6, units, docs)
        Tokens, value, chance, tokens with a control, control, value less control; on the scale of the probe.
    """

    cell: str
    docs: tuple[str, ...]
    sums: Array


def cell_sums(frame: pd.DataFrame, probe: Probe) -> list[CellSums]:
    """Sum the rows of one group by cell, unit and document.

    Parameters
    ----------
    frame : DataFrame
        Checked rows.
    probe : Probe
        Their probe.
    """
    return [_of_cell(str(cell), rows, probe) for cell, rows in frame.groupby("cell", observed=True)]


def _of_cell(cell: str, rows: pd.DataFrame, probe: Probe) -> CellSums:
    import pandas as pd

    doc, docs = pd.factorize(rows["doc"], sort=True)
    unit = rows.groupby(list(probe.counted), observed=True).ngroup().to_numpy()
    tokens = rows["tokens"].to_numpy(np.float64)
    value, chance, control = (
        probe.forth(rows[name].to_numpy(np.float64)) for name in ("value", "chance", "control")
    )
    compared = np.where(np.isnan(control), 0.0, tokens)
    known = np.nan_to_num(control)
    terms = (tokens, tokens * value, tokens * chance, compared, compared * known, compared * (value - known))
    sums = np.zeros((len(terms), int(unit.max()) + 1, len(docs)))
    for j, term in enumerate(terms):
        np.add.at(sums[j], (unit, doc), term)
    return CellSums(cell=cell, docs=tuple(map(str, docs)), sums=sums)


def draw_weights(cells: Sequence[CellSums], replicates: int, seed: int) -> tuple[list[Array], Array]:
    """Draw documents, then cells, with replacement.

    Cells that share documents share their draws, since what a document does to one it may do to all.

    Returns
    -------
    documents : list of array (docs, B)
        How often each document of each cell counts.
    cells : array (cells, B)
        How often each cell counts.
    """
    own = {f"{i:09d}": np.array([f"document {doc}" for doc in cell.docs]) for i, cell in enumerate(cells)}
    own["cells"] = np.array([f"cell {cell.cell}" for cell in cells])
    plan = bootstrap_plan(own, replicates=replicates, seed=seed)
    counts = {name: plan.counts[name].T.astype(np.float64) for name in own}
    return [counts[f"{i:09d}"] for i in range(len(cells))], counts["cells"]


def statistics(
    cells: Sequence[CellSums], documents: Sequence[Array], weights: Array, probe: Probe
) -> dict[str, Array]:
    """Return the pooled quantities of every draw.

    Tokens count alike inside a cell and cells count alike. A cell without any of its documents in a draw, or without a
    control, is left out of that mean.

    Parameters
    ----------
    cells : sequence of CellSums
        The group.
    documents : sequence of array (docs, B)
        Weights of the documents of each cell.
    weights : array (cells, B)
        Weights of the cells.
    probe : Probe
        Whose scale and threshold hold.

    Returns
    -------
    dict
        ``value, chance, control, contrast, lift, share_above, share_above_control``, each (B,); NaN where there is
        none.
    """
    found: dict[str, list[Array]] = {
        name: [] for name in ("value", "chance", "control", "contrast", "share_above", "share_above_control")
    }
    with np.errstate(invalid="ignore", divide="ignore"):
        for cell, count in zip(cells, documents, strict=True):
            sums = cell.sums @ count
            tokens, value, chance, compared, control, less = sums.sum(axis=1)
            found["value"].append(value / tokens)
            found["chance"].append(chance / tokens)
            found["control"].append(control / compared)
            found["contrast"].append(less / compared)
            threshold = (
                sums[2] / sums[0] if probe.threshold is None else np.full_like(sums[0], probe.threshold)
            )
            found["share_above"].append(_share(sums[1] / sums[0] - threshold))
            found["share_above_control"].append(_share(sums[5] / sums[3]))
        means = {name: _weighted(np.array(values), weights) for name, values in found.items()}
        for name in ("value", "chance", "control", "contrast"):
            means[name] = probe.back(means[name])
        means["lift"] = np.where(means["chance"] > 0, means["value"] / means["chance"], np.nan)
    return means


def _share(excess: Array) -> Array:
    """Return the share of units, along the first axis, that exceed; NaN units do not count."""
    known = np.isfinite(excess)
    return np.asarray(((excess > 0) & known).sum(axis=0) / known.sum(axis=0))


def _weighted(values: Array, weights: Array) -> Array:
    known = np.isfinite(values)
    kept = np.where(known, weights, 0.0)
    return np.asarray((kept * np.where(known, values, 0.0)).sum(axis=0) / kept.sum(axis=0))
