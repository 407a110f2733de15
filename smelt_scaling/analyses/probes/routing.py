"""Experts that a token is sent to by both visits."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling.analyses.probes.arrays import Row, mean_row
from smelt_scaling.analyses.probes.declaration import Columns, Probe
from smelt_scaling.errors import UsageError

__all__ = ["ROUTING", "overlap_tail", "routing_rows"]

Array = NDArray[np.float64]


def _mean(columns: Columns) -> Array:
    return columns["k"] ** 2 / columns["n"]


def _sd(columns: Columns) -> Array:
    k, n = columns["k"], columns["n"]
    return np.sqrt(k * (k / n) * (1 - k / n) * (n - k) / np.maximum(n - 1, 1))


ROUTING = Probe(
    name="routing",
    quantity="experts chosen by both visits, of k",
    unit="count of experts",
    low=0.0,
    high=np.inf,
    chance=_mean,
    chance_words="k²/n, the mean of the hypergeometric distribution of k of n experts",
    needs=("k", "n"),
    ceiling="k",
    spread=_sd,
    control="load-aware chance: the sum over experts of the shares of tokens that each visit sends there",
)


def overlap_tail(n: int, k: int, at_least: int) -> float:
    """Return the chance that two independent uniform choices of k of n experts share so many or more.

    Parameters
    ----------
    n, k : int
        Experts, and those chosen per token.
    at_least : int
        Shared experts.

    Examples
    --------
    >>> round(overlap_tail(504, 8, 2), 3)
    0.006
    """
    from scipy.stats import hypergeom

    return float(hypergeom.sf(at_least - 1, n, k, k))


def routing_rows(first: ArrayLike, second: ArrayLike, *, n: int) -> list[Row]:
    """Measure one document at one layer.

    Parameters
    ----------
    first, second : int array (T, k)
        Experts chosen for each token, numbered from 0.
    n : int
        Experts of the layer.

    Returns
    -------
    list of dict
        One row. Its key ``load`` holds the tokens per expert of each visit, (2, n): the load-aware chance is that of a
        whole cell, so `ProbeWriter` computes it once it has seen all documents.

    Raises
    ------
    UsageError
        If the shapes differ, an expert is not in 0 to n - 1, or a token has one twice.

    Examples
    --------
    >>> (row,) = routing_rows([[0, 1], [2, 3]], [[1, 0], [3, 4]], n=8)
    >>> row["value"], row["k"], row["load"].tolist()[0]
    (1.5, 2, [1, 1, 1, 1, 0, 0, 0, 0])
    """
    a, b = np.sort(np.asarray(first), axis=-1), np.sort(np.asarray(second), axis=-1)
    if a.shape != b.shape or a.ndim != 2:
        raise UsageError(f"routing: shapes {a.shape} and {b.shape}; both visits need one array (tokens, k)")
    for chosen in (a, b):
        if chosen.dtype.kind not in "iu" or chosen.size and not (chosen.min() >= 0 and chosen.max() < n):
            raise UsageError(f"routing: experts are whole numbers from 0 to {n - 1}; check the choices and n")
        if np.any(chosen[:, 1:] == chosen[:, :-1]):
            raise UsageError(
                "routing: a token has one expert twice; pass the k distinct experts of each token"
            )
    shared = (a[:, :, None] == b[:, None, :]).sum(axis=(1, 2))
    load = np.stack([np.bincount(chosen.ravel(), minlength=n) for chosen in (a, b)])
    return [mean_row(shared.astype(np.float64), visit="1-2", k=a.shape[1], n=n, load=load)]
