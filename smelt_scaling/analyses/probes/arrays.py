"""From arrays of one document to rows of the long table: what the measures of all probes share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling.errors import UsageError

__all__ = ["SUM_TOLERANCE", "attention_of", "cosine", "mean_row", "pair_of"]

Array = NDArray[np.float64]
Row = dict[str, Any]

#: A row of attention weights may miss a sum of 1 by this much before it is counted: what bf16 does to a softmax.
SUM_TOLERANCE = 1e-2


def pair_of(what: str, first: ArrayLike, second: ArrayLike, dimensions: int) -> tuple[Array, Array]:
    """Return two arrays of one shape.

    Raises
    ------
    UsageError
        If their shapes differ or have another number of dimensions.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != dimensions:
        raise UsageError(
            f"{what}: shapes {a.shape} and {b.shape}; both visits need one array of {dimensions} dimensions and one "
            "shape, the tokens of a single document"
        )
    return a, b


def attention_of(what: str, first: ArrayLike, second: ArrayLike) -> tuple[Array, Array, NDArray[np.int_]]:
    """Return attention weights (heads, T, T) of both visits, and per head how many rows miss a sum of 1.

    Raises
    ------
    UsageError
        As `pair_of`, and if the weights are not square.
    """
    a, b = pair_of(what, first, second, 3)
    if a.shape[1] != a.shape[2]:
        raise UsageError(
            f"{what}: shape {a.shape}; attention of one document is (heads, T, T), queries by keys"
        )
    off = sum((np.abs(x.sum(axis=2) - 1.0) > SUM_TOLERANCE).sum(axis=1) for x in (a, b))
    return a, b, np.asarray(off)


def cosine(first: Array, second: Array) -> Array:
    """Return cosines along the last axis; NaN where a vector is zero.

    Examples
    --------
    >>> cosine(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 1.0], [1.0, 0.0]])).round(4).tolist()
    [0.7071, nan]
    """
    norms = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    product = (first * second).sum(axis=-1)
    return np.asarray(np.divide(product, norms, out=np.full_like(norms, np.nan), where=norms > 0))


def mean_row(values: Array, *, chance: Array | None = None, control: Array | None = None, **more: Any) -> Row:
    """Return the row of one document from a value per token, its chance and control over the same tokens.

    Tokens without a value are counted as ``undefined``; a document without any is a row without a value.
    """
    defined = np.isfinite(values)
    tokens = int(defined.sum())
    row: Row = {
        **more,
        "value": float(values[defined].mean()) if tokens else np.nan,
        "tokens": tokens or max(len(values), 1),
        "undefined": len(values) - tokens if tokens else 0,
    }
    for name, array in (("chance", chance), ("control", control)):
        if array is not None:
            kept = array[defined & np.isfinite(array)]
            row[name] = float(kept.mean()) if len(kept) else np.nan
    return row
