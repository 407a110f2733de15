"""What can be left out of a table: its cells, sizes of model, horizons and sparsity tiers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.design_map import LENGTHS
from smelt_scaling.endpoints import Endpoints, default_sparsities
from smelt_scaling.engine.design import level_index
from smelt_scaling.errors import Note, info
from smelt_scaling.formatting import format_quantity
from smelt_scaling.study import Study

__all__ = ["KINDS", "MOST_CELLS", "MOST_LEVELS", "Part", "dense_tier", "only", "parts_of", "size_levels"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Kinds of parts, finest first.
KINDS = ("cell", "size", "horizon", "sparsity")
#: A design with more levels than this has no tiers but a continuum; neighbours are joined to so many parts.
MOST_LEVELS = 12
#: With more cells than this a single one says nothing.
MOST_CELLS = 400
#: Sizes without a name are apart where the logarithm of one is by more than this above the next smaller; a size wider
#: than twice that is none.
GAP = 0.15
#: Least sparsity that is not dense, as compute-equivalent sparsity of a dense model is 0 up to rounding.
DENSE = 0.05


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """Rows that belong together.

    Parameters
    ----------
    by : {"cell", "size", "horizon", "sparsity"}
        What they have in common.
    name : str
        Which of these, as people write it.
    rows : (n,) array of bool
        The rows.
    """

    by: str
    name: str
    rows: Mask


def only(study: Study, archs: tuple[str, ...]) -> Study:
    """Return the study of some of its architectures, without replicates."""
    rows = study.endpoints
    if set(archs) != set(study.archs):
        rows = rows.select(np.isin(rows.arch, archs))
    fits = {arch: fit for arch, fit in study.fits.items() if arch in archs}
    return replace(study, fits=fits, endpoints=rows, draws=None, jackknife=None, wild=None)


def parts_of(study: Study) -> tuple[dict[str, list[Part]], list[Note]]:
    """Split the rows of a study in every way that its columns allow, each in ascending order.

    Sizes are the levels of ``scale``, or of the law's measure of size; horizons are levels of D, or of C where there
    is no D. Sizes without a name are those of `size_levels`, horizons within 5 % of each other are one. Over
    `MOST_LEVELS` of them are joined, with a note.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> parts, _ = parts_of(fit(example_endpoints(), bootstrap=0))
    >>> {by: len(own) for by, own in parts.items()}
    {'cell': 12, 'size': 4, 'horizon': 6, 'sparsity': 3}
    >>> [part.name for part in parts["size"]], int(parts["size"][0].rows.sum())
    (['100M', '200M', '600M', '1.6B'], 36)
    """
    rows = study.endpoints
    measure = _measure(study)
    found: dict[str, list[Part]] = {"cell": _cells(study, measure)}
    notes: list[Note] = []
    if "scale" in rows:
        found["size"] = _named("size", rows["scale"], rows[measure])
    else:
        found["size"], joined = _levels("size", measure, rows[measure])
        notes += joined
    length = next((name for name in LENGTHS if name in rows and name != measure), "")
    if length:
        found["horizon"], joined = _levels("horizon", length, rows[length])
        notes += joined
    if "S" in rows:
        found["sparsity"] = [
            Part(by="sparsity", name=f"S = {at:.3g}", rows=rows.tiers == tier)
            for tier, at in zip(np.unique(rows.tiers), default_sparsities(rows), strict=True)
        ]
    return found, notes


def size_levels(log_size: Array) -> NDArray[np.intp]:
    """Return the level of each size, smallest first.

    Designs of two architectures, or of several sparsities, differ a little at what is one size to people: levels are
    what gaps part. Where sizes follow one another without gaps they are a continuum, cut by steps of 5 %.

    Examples
    --------
    >>> size_levels(np.log([6.3e8, 6.7e8, 1.32e9, 1.39e9])).tolist()
    [0, 0, 1, 1]
    """
    ordered, inverse = np.unique(log_size, return_inverse=True)
    level = np.r_[0, np.cumsum(np.diff(ordered) > GAP)]
    widest = max(float(np.ptp(ordered[level == k])) for k in range(level[-1] + 1))
    return np.asarray(level[inverse] if widest <= 2 * GAP else level_index(log_size), dtype=np.intp)


def dense_tier(rows: Endpoints) -> Mask | None:
    """Return the rows of the dense tier where it lies beside sparse ones, else None."""
    lowest = rows.tiers == rows.tiers.min()
    beside = not lowest.all() and bool(np.abs(rows.S[lowest]).max() <= DENSE)
    return lowest if beside else None


def _measure(study: Study) -> str:
    """Return the column that says how large a model is: the law's own, if it has one."""
    names = ("F", "N", "N_act", "C")
    own = [name for name in names if name in study.law.columns]
    return next(name for name in (*own, *names) if name in study.endpoints)


def _cells(study: Study, measure: str) -> list[Part]:
    labels, unit = study.endpoints.cells(study.bootstrap.unit)
    if unit == "row":
        return []
    return _named("cell", labels, study.endpoints[measure])


def _named(by: str, labels: NDArray[np.str_], size: Array) -> list[Part]:
    """Return a part per label, ordered by median size, then by name."""
    names, code = np.unique(labels, return_inverse=True)
    order = sorted(range(len(names)), key=lambda i: (float(np.median(size[code == i])), str(names[i])))
    return [Part(by=by, name=str(names[i]), rows=code == i) for i in order]


def _levels(by: str, column: str, values: Array) -> tuple[list[Part], list[Note]]:
    level = size_levels(np.log(values)) if by == "size" else level_index(np.log(values))
    count = int(level.max()) + 1
    notes = []
    if count > MOST_LEVELS:
        message = (
            f"{column} has {count} levels: neighbours are joined to {MOST_LEVELS} parts of about as many rows"
        )
        notes.append(info("levels_joined", message, count))
        below = np.cumsum(np.bincount(level))
        centre = below - np.bincount(level) / 2
        level = (centre * MOST_LEVELS / len(values)).astype(np.intp)[level]
    parts = []
    for one in np.unique(level):
        rows = level == one
        low, middle, high = (
            format_quantity(float(value), suffix=True)
            for value in (values[rows].min(), np.median(values[rows]), values[rows].max())
        )
        wide = count > MOST_LEVELS and low != high
        name = f"{column} {low} to {high}" if wide else f"{column} {middle}"
        parts.append(Part(by=by, name=name, rows=rows))
    return parts, notes
