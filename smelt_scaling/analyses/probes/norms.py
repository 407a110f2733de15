"""How much the second visit writes to the residual stream, relative to the first."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from smelt_scaling.analyses.probes.arrays import Row, mean_row, pair_of
from smelt_scaling.analyses.probes.declaration import Probe, constant

__all__ = ["WRITE_NORM", "norm_rows"]

WRITE_NORM = Probe(
    name="write_norm",
    quantity="norm written by the second visit over that of the first",
    unit="ratio",
    scale="log",
    low=np.nextafter(0.0, 1.0),
    high=np.inf,
    chance=constant(1.0),
    chance_words="1: both visits write as much",
    counted=("cell",),
)


def norm_rows(first: ArrayLike, second: ArrayLike, *, part: str, scaled: bool) -> list[Row]:
    """Measure one document at one layer.

    Parameters
    ----------
    first, second : array (T, H)
        What each visit adds to the residual stream, token by token.
    part : str
        Which component writes: "attention", "moe", ...
    scaled : bool
        Whether the writes hold the factor 1/r of a loop of r visits.

    Returns
    -------
    list of dict
        One row: the geometric mean over tokens; tokens with a zero vector are counted as ``undefined``.

    Examples
    --------
    >>> (row,) = norm_rows([[1.0, 0], [0, 1], [0, 0]], [[2.0, 0], [0, 8], [1, 0]], part="moe", scaled=False)
    >>> round(row["value"], 12), row["tokens"], row["undefined"]
    (4.0, 2, 1)
    """
    a, b = (np.linalg.norm(x, axis=1) for x in pair_of("write_norm", first, second, 2))
    usable = (a > 0) & (b > 0)
    logs = np.full(len(a), np.nan)
    logs[usable] = np.log(b[usable]) - np.log(a[usable])
    row = mean_row(logs, part=part, visit="1-2", scaled="yes" if scaled else "no")
    return [row | {"value": float(np.exp(row["value"]))}]
