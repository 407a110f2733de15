"""Losses by length bucket: what such a table holds, and its pairs as one array per contrast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted
from smelt_scaling.analyses.measured import Field, Measured, TableLike, read_measured
from smelt_scaling.analyses.pairing import named, pair_names, pair_rows
from smelt_scaling.errors import DataError, Note, UsageError, warning

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LENGTH_FIELDS", "Contrast", "read_contrasts"]

Array = NDArray[np.float64]

#: The table: either both losses of a pair in one row, or one loss with its architecture.
LENGTH_FIELDS: dict[str, Field] = {
    "contrast": Field(description="what is compared with what"),
    "arch": Field(description="architecture of the loss, where a row holds one"),
    "cell": Field(description="experimental unit: one (scale, sparsity) design point", needed=True),
    "horizon": Field(description="label of the endpoint within its cell"),
    "document": Field(description="evaluation document, where losses are of single documents"),
    "bucket": Field(
        description="upper bound of the lengths in the bucket, in tokens",
        rule="a whole number > 0",
        needed=True,
    ),
    "loss_ref": Field(description="loss of the reference, nats/token", rule="> 0 and finite", loss=True),
    "loss_new": Field(description="loss of the target, nats/token", rule="> 0 and finite", loss=True),
    "loss": Field(description="loss of the architecture, nats/token", rule="> 0 and finite", loss=True),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Contrast:
    """Loss drops (reference minus target) of one contrast.

    Parameters
    ----------
    name : str
        What is compared with what.
    buckets : (B,) array
        Upper bounds, ascending.
    cells : tuple of str
        Labels, sorted.
    documents : tuple of tuple of str
        Of each bucket; one nameless entry where losses are of whole buckets.
    drops : tuple of (n_cells, n_documents) array
        Of each bucket, mean over horizons; NaN where a cell has no loss of a document.
    reference_loss : (B,) array
        Mean loss of the reference.
    pairs : int
        Endpoints behind it: (cell, horizon).
    """

    name: str
    buckets: Array
    cells: tuple[str, ...]
    documents: tuple[tuple[str, ...], ...]
    drops: tuple[Array, ...]
    reference_loss: Array
    pairs: int

    @property
    def by_cell(self) -> Array:
        """Mean drop of each cell in each bucket, (n_cells, B)."""
        return np.stack([np.nanmean(drops, axis=1) for drops in self.drops], axis=1)


def read_contrasts(
    table: TableLike, mapping: Mapping[str, str] | None, target: str | None, reference: str | None
) -> tuple[list[Contrast], list[Note], str]:
    """Read the table; return its contrasts in the order of the file, notes, and the name of the table.

    Raises
    ------
    DataError, UsageError
        One line per problem.
    """
    data = read_measured(table, LENGTH_FIELDS, mapping=mapping)
    columns, notes = _paired(data, target, reference)
    contrasts = []
    frame = _frame(columns)
    for name, rows in frame.groupby("contrast", sort=False):
        contrast, left = _contrast(str(name), rows, data.source)
        contrasts.append(contrast)
        notes += left
    return contrasts, [*data.notes, *notes], data.source


def _paired(
    data: Measured, target: str | None, reference: str | None
) -> tuple[dict[str, NDArray[Any]], list[Note]]:
    keys = ("contrast", "cell", "horizon", "document", "bucket")
    wide = [name for name in ("loss_ref", "loss_new") if name in data.columns]
    if wide:
        data.require(("loss_ref", "loss_new"), "a pair has two losses")
        if target or reference:
            raise UsageError(
                "--target, --reference: the table holds pairs (loss_ref, loss_new) already; leave them out"
            )
        data.require_unique(keys, LENGTH_FIELDS, ("horizon", "document", "contrast"))
        columns = dict(data.columns) | {
            "reference": data.columns["loss_ref"],
            "target": data.columns["loss_new"],
        }
        return columns | {"contrast": data.text("contrast", "target over reference")}, []
    data.require(
        ("arch", "loss"), "a row holds loss_ref and loss_new of a pair, or the loss of one architecture"
    )
    data.require_unique(("arch", *keys), LENGTH_FIELDS, ("horizon", "document", "contrast"))
    target, reference, notes = pair_names(
        dict.fromkeys(data.columns["arch"].tolist()), target, reference, data.source
    )
    columns, alone = pair_rows(data, keys, "loss", target, reference)
    if "contrast" not in columns:
        columns["contrast"] = np.full(len(columns["cell"]), f"{target} over {reference}")
    return columns, notes + alone


def _frame(columns: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame({name: columns[name] for name in ("contrast", "cell", "bucket", "reference")})
    frame["drop"] = columns["reference"] - columns["target"]
    for name in ("horizon", "document"):
        frame[name] = columns.get(name, np.full(len(frame), ""))
    return frame


def _contrast(name: str, rows: pd.DataFrame, source: str) -> tuple[Contrast, list[Note]]:
    """Keep the endpoints that have every bucket, so that all buckets are measured on the same ones."""
    rows = rows.sort_values(["cell", "bucket", "document", "horizon"])  # so that sums are taken in one order
    buckets = np.unique(rows["bucket"].to_numpy())
    if len(buckets) < 2:
        raise DataError(
            f"{source}: contrast {name}: one bucket ({buckets[0]:g}): a ratio needs long and short ones; "
            "add the others"
        )
    keys = ["cell", "horizon"]
    have = rows.groupby(keys)["bucket"].transform("nunique").to_numpy()
    partial, notes = have < len(buckets), []
    if partial.any():
        first = rows[partial].iloc[0]
        ends = rows[partial].groupby(keys).ngroups
        where = f"first: {named(first.to_dict(), keys)}"
        message = (
            f"{source}: contrast {name}: {counted(ends, 'endpoint')} without every bucket left out ({where})"
        )
        if partial.all():
            raise DataError(
                f"{source}: contrast {name}: no endpoint has all {len(buckets)} buckets ({where}); "
                "evaluate the missing ones, or leave out a bucket"
            )
        notes.append(warning("incomplete_buckets", message, ends))
        rows = rows[~partial]
    cells = tuple(sorted(set(rows["cell"])))
    documents, drops = [], []
    for bucket in buckets:
        wide = rows[rows["bucket"] == bucket].pivot_table(index="cell", columns="document", values="drop")
        documents.append(tuple(map(str, wide.columns)))
        drops.append(wide.reindex(list(cells)).to_numpy(dtype=np.float64))
    losses = rows.groupby("bucket")["reference"].mean().reindex(buckets).to_numpy(dtype=np.float64)
    return (
        Contrast(
            name=name,
            buckets=buckets,
            cells=cells,
            documents=tuple(documents),
            drops=tuple(drops),
            reference_loss=losses,
            pairs=rows.groupby(keys).ngroups,
        ),
        notes,
    )
