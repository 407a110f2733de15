"""Attention mass on the first position of a document."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling.analyses.probes.arrays import Row, attention_of, mean_row
from smelt_scaling.analyses.probes.declaration import Columns, Probe

__all__ = ["SINK", "sink_rows"]

Array = NDArray[np.float64]


def _uniform(columns: Columns) -> Array:
    return 1.0 / (columns["position"] + 1.0)


SINK = Probe(
    name="sink",
    quantity="attention mass on the first position of the document, queries behind it",
    unit="share",
    low=0.0,
    high=1.0,
    slack=0.01,
    chance=_uniform,
    chance_words="1/(t+1) at position t: attention spread evenly",
    needs=("position",),
    ceiling=1.0,
    control="of a second visit: the first visit of the same head",
    threshold=0.3,
    counted=("cell", "layer", "head"),
)


def sink_rows(first: ArrayLike, second: ArrayLike) -> list[Row]:
    """Measure one document at one layer.

    Parameters
    ----------
    first, second : array (heads, T, T)
        Attention weights of each visit, queries by keys; position 0 opens the document.

    Returns
    -------
    list of dict
        A row per visit and head: the mean over queries from 1 on. ``unnormalised`` counts rows of weights whose sum
        misses 1 by more than 0.01; they stay in.

    Examples
    --------
    >>> even = np.tril(np.ones((1, 4, 4))) / np.arange(1, 5)[None, :, None]
    >>> one, two = sink_rows(even, even)
    >>> round(one["value"], 6) == round(one["chance"], 6) == round((1 / 2 + 1 / 3 + 1 / 4) / 3, 6)
    True
    >>> two["visit"], round(two["control"], 4)
    ('2', 0.3611)
    """
    a, b, off = attention_of("sink", first, second)
    chance = 1.0 / np.arange(2.0, a.shape[1] + 1.0)
    rows = []
    for h in range(len(a)):
        before, after = a[h, 1:, 0], b[h, 1:, 0]
        rows.append(mean_row(before, chance=chance, head=h, visit="1", unnormalised=int(off[h])))
        rows.append(mean_row(after, chance=chance, control=before, head=h, visit="2"))
    return rows
