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
        A row per head; without a value if the document ends before ``after``. Queries with fewer than k positive
        weights (padding) are counted as ``undefined``.

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
    token = np.arange(len(queries))[:, None]
    picked = np.zeros((len(queries), length), dtype=np.int32)  # how many heads of the second visit have a key
    for sets, known in other:
        picked[token, sets] += known[:, None]
    several = np.sum([known for _, known in other], axis=0)
    rows = []
    for h, ((sets, known), (seconds, seen)) in enumerate(zip(own, other, strict=True)):
        same = (sets[:, :, None] == seconds[:, None, :]).sum(axis=(1, 2))
        every = picked[token, sets].sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):  # no other head: no control
            control = (every - same * seen) / (k * (several - seen))
        value = np.where(known & seen, same / k, np.nan)
        rows.append(
            mean_row(value, chance=k / queries, control=control, head=h, unnormalised=int(off[h]), **shared)
        )
    return rows


def _largest(weights: Array, k: int, queries: NDArray[np.int_]) -> tuple[NDArray[np.int_], NDArray[np.bool_]]:
    """Return the k keys of each query with the largest weights, of those from 1 to its own position, and if they exist.

    They do not where fewer than k weights are positive, as in padding: what is equal would be picked by its place.
    """
    chosen = weights[queries]  # a copy
    chosen[:, 0] = -1.0
    chosen[np.arange(weights.shape[1])[None, :] > queries[:, None]] = -1.0
    known = ((chosen > 0).sum(axis=1) >= k) & ~np.isnan(chosen).any(axis=1)
    return np.argpartition(chosen, -k, axis=1)[:, -k:], known
