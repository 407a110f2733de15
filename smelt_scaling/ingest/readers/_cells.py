"""A column of a table as numbers, labels or times; a column is an Arrow array, or a list of JSON values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.ingest.events import logged_number

__all__ = ["labels_of", "numbers_of", "times_of"]

_ABSENT = frozenset({"", "null", "none", "na", "n/a"})
_EPOCH = (
    1e8,
    1e11,
)  # seconds since 1970 from 1973 on; milliseconds are larger, seconds since the start smaller


def numbers_of(column: Any, lost: Counter[str], name: str) -> NDArray[np.float64]:
    """Return a column as numbers: NaN where a cell is empty, inf where it was logged but is not finite.

    Parameters
    ----------
    column : pyarrow.Array or list
        Numbers, or text of numbers.
    lost : Counter
        Counts cells that hold something else, by column.
    name : str
        The column.
    """
    if isinstance(column, list):
        return _parsed(column, lost, name)
    import pyarrow as pa

    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        try:
            column = column.cast(pa.float64())
        except pa.ArrowException:
            return _parsed(column.to_pylist(), lost, name)
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return _parsed(column.to_pylist(), lost, name)
    column = column.cast(pa.float64(), safe=False)
    empty = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    values: NDArray[np.float64] = column.to_numpy(zero_copy_only=False)
    finite = np.isfinite(values)
    if finite.all():
        return values
    values = np.where(finite, values, np.inf)
    if empty is not None:
        values[empty] = np.nan
    return values


def _parsed(cells: list[Any], lost: Counter[str], name: str) -> NDArray[np.float64]:
    if set(map(type, cells)) <= {int, float, type(None)}:
        try:
            values = np.array(cells, dtype=np.float64)  # None becomes NaN
        except OverflowError:
            pass  # an integer of hundreds of digits
        else:
            for i in np.flatnonzero(~np.isfinite(values)):
                values[i] = logged_number(cells[i])
            return values
    values = np.array([logged_number(cell) for cell in cells])
    for i in np.flatnonzero(np.isnan(values)):
        cell = cells[i]
        if cell is not None and not (isinstance(cell, str) and cell.strip().casefold() in _ABSENT):
            lost[name] += 1
    return values


def labels_of(column: Any) -> tuple[NDArray[np.intp], list[str]]:
    """Return a column of text as codes into distinct texts; -1 where a cell is empty."""
    import pyarrow as pa

    if isinstance(column, list):
        column = pa.array([None if cell is None else str(cell) for cell in column], pa.string())
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    codes = column.indices.fill_null(-1) if column.null_count else column.indices
    texts = [str(text) for text in column.dictionary.to_pylist()]
    return codes.to_numpy(zero_copy_only=False).astype(np.intp, copy=False), texts


def times_of(column: Any, lost: Counter[str], name: str) -> NDArray[np.float64]:
    """Return a column of times in seconds since 1970; NaN where a cell is none, which is counted."""
    import pyarrow as pa

    if not isinstance(column, list) and pa.types.is_timestamp(column.type):
        micro = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
        return np.asarray(micro.cast(pa.float64()).to_numpy(zero_copy_only=False) / 1e6)
    texts = pa.array(column, pa.string()) if isinstance(column, list) and _texts(column) else column
    if not isinstance(texts, list) and pa.types.is_string(texts.type):
        try:
            return times_of(texts.cast(pa.timestamp("us", "UTC")), lost, name)
        except pa.ArrowException:
            pass  # numbers as text, most likely
    values = numbers_of(column, lost, name)
    epoch = (values >= _EPOCH[0]) & (values < _EPOCH[1])
    lost[name] += int((~epoch & ~np.isnan(values)).sum())
    return np.where(epoch, values, np.nan)


def _texts(column: list[Any]) -> bool:
    return all(cell is None or isinstance(cell, str) for cell in column)
