"""Positions that a head attends to most, in both visits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling.analyses.probes.arrays import Row, attention_of, mean_row
from smelt_scaling.analyses.probes.declaration import Columns, Probe
from smelt_scaling.errors import UsageError

__all__ = ["TOP_K", "position_rows"]

Array = NDArray[np.float64]


def _chance(columns: Columns) -> Array:
    return np.minimum(1.0, columns["k"] / np.maximum(columns["position"], 1.0))


TOP_K = Probe(
    name="top_k",
    quantity="share of the k positions attended to most that both visits have, first position removed",
    unit="share",
    low=0.0,
    high=1.0,
    chance=_chance,
    chance_words="min(1, k/t) at position t of the document",
    needs=("k", "position"),
    ceiling=1.0,
    control="the first visit of the head with the second visits of the other heads of the layer",
    counted=("cell", "layer", "head"),
)


def position_rows(first: ArrayLike, second: ArrayLike, *, k: int = 8, after: int = 64) -> list[Row]:
    """Measure one document at one layer.

    Parameters
    ----------
    first, second : array (heads, T, T)
        Attention weights of each visit, queries by keys. Position 0 holds the token that opens every document: both
        visits attend to it, so it is removed.
    k : int
        Positions to compare.
    after : int
        Only queries at positions beyond it count; up to k the two sets are equal by construction.

    Returns
    -------
    list of dict
        A row per head; without a value if the document ends before ``after``.

    Raises
    ------
    UsageError
        If the shapes differ, or ``after`` is less than k.

    Examples
    --------
    >>> a = np.tril(np.random.default_rng(0).random((2, 200, 200)))
    >>> a /= a.sum(axis=2, keepdims=True)
    >>> [row["value"] for row in position_rows(a, a)]
    [1.0, 1.0]
    """
    a, b, off = attention_of("top_k", first, second)
    if not 1 <= k <= after:
        raise UsageError(
            f"top_k: after {after} and k {k}; up to position k both sets are equal, so give after >= k"
        )
    heads, length, _ = a.shape
    queries = np.arange(after + 1, length)
    shared: Row = {"visit": "1-2", "k": k}
    if not len(queries):
        return [
            mean_row(np.full(length, np.nan), head=h, unnormalised=int(off[h]), **shared)
            for h in range(heads)
        ]
    own = [_largest(x, k, queries) for x in a]
    other = [_largest(x, k, queries) for x in b]
    picked = np.zeros((len(queries), length), dtype=np.int32)  # how many heads of the second visit have a key
    for sets in other:
        picked[np.arange(len(queries))[:, None], sets] += 1
    rows = []
    for h in range(heads):
        same = (own[h][:, :, None] == other[h][:, None, :]).sum(axis=(1, 2))
        every = np.take_along_axis(picked, own[h], axis=1).sum(axis=1)
        control = (every - same) / (k * (heads - 1)) if heads > 1 else np.full(len(queries), np.nan)
        rows.append(
            mean_row(
                same / k, chance=k / queries, control=control, head=h, unnormalised=int(off[h]), **shared
            )
        )
    return rows


def _largest(weights: Array, k: int, queries: NDArray[np.int_]) -> NDArray[np.int_]:
    """Return the k keys of each query with the largest weights, of those from 1 to its own position."""
    chosen = weights[queries]  # a copy
    chosen[:, 0] = -1.0
    chosen[np.arange(weights.shape[1])[None, :] > queries[:, None]] = -1.0
    return np.argpartition(chosen, -k, axis=1)[:, -k:]
