"""What paired draws say about an order: ends, and shares of draws, which are no more than that."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.view import IntervalKind, ends

__all__ = ["ahead_share", "first_share", "open_ends"]

Array = NDArray[np.float64]


def open_ends(
    point: Array, drawn: Array | None, kind: IntervalKind, level: float
) -> tuple[Array, Array] | None:
    """Return interval ends where some draws may be undefined (NaN): they may lie anywhere, so they widen both ends.

    An end is NaN where it may lie anywhere.

    Examples
    --------
    >>> drawn = np.append(np.arange(1.0, 40.0), np.nan)[:, None]
    >>> [end.tolist() for end in open_ends(np.array([20.0]), drawn, "percentile", 0.90)]
    [[1.0], [39.0]]
    """
    undefined = None if drawn is None else np.isnan(drawn)
    if drawn is None or undefined is None or kind != "percentile" or not undefined.any():
        return ends(point, drawn, kind, level)
    low = ends(point, np.where(undefined, -np.inf, drawn), kind, level)
    high = ends(point, np.where(undefined, np.inf, drawn), kind, level)
    if low is None or high is None:
        return None
    lo, hi = low[0], high[1]
    return np.where(np.isneginf(lo), np.nan, lo), np.where(np.isposinf(hi) & ~np.isposinf(low[1]), np.nan, hi)


def first_share(drawn: Array, sign: int) -> Array:
    """Return, per quantity, in which share of the draws it is the largest (sign 1) or smallest (-1); ties are split.

    Draws with an undefined quantity have no order and do not count; NaN where none has one.

    Examples
    --------
    >>> first_share(np.array([[3.0, 1.0], [2.0, 2.0], [1.0, np.nan]]), 1).tolist()
    [0.75, 0.25]
    """
    known = sign * drawn[~np.isnan(drawn).any(axis=1)]
    if not len(known):
        return np.full(drawn.shape[1], np.nan)
    best = known == known.max(axis=1, keepdims=True)
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))


def ahead_share(one: Array, other: Array) -> float | None:
    """Return in which share of the draws one exceeds the other; ties count half, undefined draws not at all.

    Examples
    --------
    >>> ahead_share(np.array([3.0, 1.0, 2.0, np.nan]), np.array([1.0, 3.0, 2.0, 0.0]))
    0.5
    """
    known = ~(np.isnan(one) | np.isnan(other))
    if not known.any():
        return None
    return float(np.mean((one[known] > other[known]) + 0.5 * (one[known] == other[known])))
