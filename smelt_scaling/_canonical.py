"""Canonical form of a table: one dtype per kind, one order of rows and columns, one digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._schema import COLUMNS
from smelt_scaling.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_columns", "canonical_order", "coded_frame", "column_digest", "frozen"]


def as_columns(given: Mapping[str, ArrayLike], source: str) -> dict[str, NDArray[Any]]:
    """Return copies in schema order, of the dtype of their kind and of one length."""
    unknown = [name for name in given if name not in COLUMNS]
    if unknown:
        raise DataError(f"{source}: no columns of the schema: {', '.join(unknown)}; use {', '.join(COLUMNS)}")
    lacking = [name for name in ("arch", "loss") if name not in given]
    if lacking or not {"F", "N", "C"} & set(given):
        raise DataError(f"{source}: columns {', '.join(given)}: endpoints need arch, loss and one of F, N, C")
    columns: dict[str, NDArray[Any]] = {}
    for name, column in COLUMNS.items():
        if name in given:
            dtype = np.str_ if column.kind == "text" else np.float64
            columns[name] = np.array(given[name], dtype=dtype)
            if column.kind == "number":
                columns[name] += 0.0  # -0.0 equals 0.0 and must have its bytes, too
                columns[name][np.isnan(columns[name])] = np.nan  # one bit pattern for "missing"
    lengths = {name: values.shape for name, values in columns.items()}
    if len(set(lengths.values())) > 1 or columns["loss"].ndim != 1 or not len(columns["loss"]):
        raise DataError(
            f"{source}: column shapes {lengths}: endpoints need equal lengths, and at least one row"
        )
    return columns


def canonical_order(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.intp]:
    """Sort by all columns in schema order: text by code point, numbers by value, missing last."""
    if _in_order(columns):
        return np.arange(len(columns["loss"]))
    keys = [_rank(values) if COLUMNS[name].kind == "text" else values for name, values in columns.items()]
    return np.lexsort(keys[::-1])


def _in_order(columns: Mapping[str, NDArray[Any]]) -> bool:
    """Whether rows are sorted already, as those of a subset are; a million rows are not sorted again then."""
    open_: NDArray[np.bool_] | None = None
    for name, values in columns.items():
        before, after = values[:-1], values[1:]
        equal, above = before == after, before > after
        if COLUMNS[name].kind == "number":
            lacking = np.isnan(before), np.isnan(after)
            equal, above = equal | (lacking[0] & lacking[1]), above | (lacking[0] & ~lacking[1])
        if np.any(above if open_ is None else above & open_):
            return False
        open_ = equal if open_ is None else equal & open_
        if not open_.any():
            return True
    return True


def _rank(labels: NDArray[Any]) -> NDArray[np.intp]:
    """Replace labels by their place in code point order; a dictionary beats sorting a million strings."""
    cells = labels.tolist()
    place = {label: rank for rank, label in enumerate(sorted(set(cells)))}
    return np.fromiter(map(place.__getitem__, cells), dtype=np.intp, count=len(cells))


def column_digest(columns: Mapping[str, NDArray[Any]]) -> str:
    """Hash names, kinds and values with sha256; the same on every platform."""
    digest = hashlib.sha256()
    for name, values in columns.items():
        text = COLUMNS[name].kind == "text"
        digest.update(f"{name}:{COLUMNS[name].kind}:{len(values)};".encode())
        # Text as JSON: the width of a numpy string dtype depends on rows that a subset may no longer have.
        digest.update(json.dumps(values.tolist()).encode() if text else values.astype("<f8").tobytes())
    return digest.hexdigest()


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it."""
    values.flags.writeable = False
    return values


def coded_frame(columns: Mapping[str, NDArray[Any]], names: Iterable[str]) -> pd.DataFrame:
    """Return columns for grouping: text as integer codes, which hash far faster than strings."""
    import pandas as pd

    return pd.DataFrame(
        {
            name: pd.factorize(columns[name].astype(object))[0]
            if COLUMNS[name].kind == "text"
            else columns[name]
            for name in names
        }
    )
