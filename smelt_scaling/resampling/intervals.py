"""Turning draws into intervals: order statistics, never interpolated, so gain and multiplier intervals agree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["jackknife_t_interval", "percentile_interval", "tail_rank"]

Array = NDArray[np.float64]


def tail_rank(draws: int, level: float) -> int:
    """Return k, so that the k-th smallest and k-th largest of the draws are the interval; 0 if there are too few.

    Examples
    --------
    >>> tail_rank(2000, 0.95), tail_rank(20, 0.95)
    (50, 0)
    """
    # (B+1)(1-level)/2 in exact arithmetic may sit a rounding error below an integer
    return int(np.floor((draws + 1) * (1.0 - level) / 2.0 + 1e-9))


def percentile_interval(draws: Array, level: float) -> tuple[Array, Array] | None:
    """Return the equal-tailed interval of draws along the first axis, or None if there are too few draws.

    Parameters
    ----------
    draws : array (B, ...)
        May hold ``+inf``, which ranks highest.
    level : float
        Nominal coverage, in (0, 1).

    Examples
    --------
    >>> lo, hi = percentile_interval(np.arange(1.0, 2001.0), 0.95)
    >>> float(lo), float(hi)
    (50.0, 1951.0)
    """
    k = tail_rank(len(draws), level)
    if k < 1:
        return None
    ordered = np.sort(draws, axis=0)
    return ordered[k - 1], ordered[len(draws) - k]


def jackknife_t_interval(point: Array, left_out: Array, level: float) -> tuple[Array, Array] | None:
    """Return point +- t_{G-1} * se of leave-one-label-out estimates; NaN where any of them is infinite.

    ``se^2 = (G-1)/G * sum (m_g - mean)^2`` (Efron and Tibshirani 1993, eq. 11.5).

    Parameters
    ----------
    point : array (...)
        Full-data estimate.
    left_out : array (G, ...)
        Estimates without label g.
    level : float
        Nominal coverage.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 4.0, 7.0])
    >>> means = (x.sum() - x) / 3
    >>> lo, hi = jackknife_t_interval(np.array(x.mean()), means, 0.95)
    >>> round(float(lo), 4), round(float(hi), 4)
    (-0.71, 7.71)
    """
    from scipy.stats import t

    groups = len(left_out)
    usable = np.isfinite(point) & np.isfinite(left_out).all(axis=0)
    if groups < 2 or not usable.any():
        return None
    finite = np.where(usable, left_out, np.nan)
    deviation = finite - finite.mean(axis=0)
    se = np.sqrt((groups - 1) / groups * np.sum(deviation**2, axis=0))
    half = float(t.ppf(0.5 + level / 2, groups - 1)) * se
    return point - half, point + half
