"""Canonical form of a table: one type per kind, one order of rows and columns, one digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._groups import Groups, group_rows
from smelt_scaling._schema import COLUMNS
from smelt_scaling._text import Text
from smelt_scaling.errors import DataError

__all__ = [
    "Canonical",
    "arch_slices",
    "as_columns",
    "canonical_groups",
    "column_digest",
    "frozen",
    "in_order",
]

#: Rows of text that are written at once for the digest.
BLOCK = 65536


class Canonical(Mapping[str, NDArray[Any]]):
    """Columns in canonical order and form, read-only: stored with text as codes, given as arrays.

    What takes columns need not bring these into order or copy them again.
    """

    def __init__(self, stored: Mapping[str, NDArray[Any] | Text]) -> None:
        self.stored = {
            name: Text(codes=frozen(values.codes), names=values.names)
            if isinstance(values, Text)
            else frozen(values)
            for name, values in stored.items()
        }

    def __getitem__(self, name: str) -> NDArray[Any]:
        values = self.stored[name]
        return frozen(values.array()) if isinstance(values, Text) else values

    def __contains__(self, name: object) -> bool:
        return name in self.stored

    def __iter__(self) -> Iterator[str]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)


def as_columns(given: Mapping[str, ArrayLike | Text], source: str) -> dict[str, Any]:
    """Return columns in schema order, of the type of their kind and of one length; not copied where they are so."""
    unknown = [name for name in given if name not in COLUMNS]
    if unknown:
        raise DataError(f"{source}: no columns of the schema: {', '.join(unknown)}; use {', '.join(COLUMNS)}")
    lacking = [name for name in ("arch", "loss") if name not in given]
    if lacking or not {"F", "N", "C"} & set(given):
        raise DataError(f"{source}: columns {', '.join(given)}: endpoints need arch, loss and one of F, N, C")
    given = given.stored if isinstance(given, Canonical) else given
    columns: dict[str, Any] = {
        name: Text.of(given[name]) if column.kind == "text" else np.asarray(given[name], dtype=np.float64)
        for name, column in COLUMNS.items()
        if name in given
    }
    lengths = {name: values.shape for name, values in columns.items()}
    if len(set(lengths.values())) > 1 or columns["loss"].ndim != 1 or not len(columns["loss"]):
        raise DataError(
            f"{source}: column shapes {lengths}: endpoints need equal lengths, and at least one row"
        )
    return columns


def canonical_groups(columns: Mapping[str, Any]) -> Groups:
    """Sort by all columns in schema order: text by code point, numbers by value, missing last."""
    return group_rows(columns, [name for name in COLUMNS if name in columns])


def in_order(columns: Mapping[str, Any], order: NDArray[np.intp]) -> Canonical:
    """Take copies of the rows in an order, each number with one bit pattern."""

    def plain(values: NDArray[np.float64]) -> NDArray[np.float64]:
        values += 0.0  # -0.0 equals 0.0 and must have its bytes, too
        values[np.isnan(values)] = np.nan  # one bit pattern for "missing"
        return values

    taken = {name: columns[name][order] for name in COLUMNS if name in columns}
    return Canonical({name: v if isinstance(v, Text) else plain(v) for name, v in taken.items()})


def arch_slices(columns: Mapping[str, Any]) -> dict[str, slice]:
    """Return where the rows of each architecture are: together, since it leads the canonical order."""
    arch: Text = columns["arch"]
    starts = np.flatnonzero(np.diff(arch.codes, prepend=arch.codes[0]) != 0)
    bounds = [0, *starts.tolist(), len(arch)]
    return {arch[lo]: slice(lo, hi) for lo, hi in zip(bounds, bounds[1:], strict=False)}


def column_digest(columns: Mapping[str, Any]) -> str:
    """Hash names, kinds and values with sha256; the same on every platform."""
    digest = hashlib.sha256()
    for name, values in columns.items():
        digest.update(f"{name}:{COLUMNS[name].kind}:{len(values)};".encode())
        if isinstance(values, Text):
            _add_text(digest, values)
        else:
            digest.update(values.astype("<f8", copy=False).data)
    return digest.hexdigest()


def _add_text(digest: Any, text: Text) -> None:
    """Hash text as JSON writes a list of it: the width of a NumPy string depends on rows a subset may not have."""
    written = np.array([*map(json.JSONEncoder().encode, text.names)], dtype=object)
    for start in range(0, len(text), BLOCK):
        cells = ", ".join(written[text.codes[start : start + BLOCK]].tolist())
        digest.update(f"{', ' if start else '['}{cells}".encode())
    digest.update(b"]")


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it."""
    values.flags.writeable = False
    return values
