"""Turning draws into intervals: order statistics, never interpolated, so gain and multiplier intervals agree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["end_errors", "jackknife_t_interval", "percentile_interval", "simultaneous_interval", "tail_rank"]

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


def end_errors(draws: Array, level: float) -> tuple[Array, Array] | None:
    """Return the Monte-Carlo standard errors of the ends of `percentile_interval`: how far other draws move them.

    The rank of an end has a standard deviation of sqrt(B p (1 - p)), p the tail. The error is half the distance of the
    order statistics 1.96 such deviations below and above, over 1.96 (Maritz and Jarrett 1978 estimate the same by
    smoothing).

    Parameters
    ----------
    draws : array (B, ...)
        On the scale on which the errors are wanted; infinite draws give infinite or undefined (NaN) errors.
    level : float
        Nominal coverage.

    Examples
    --------
    >>> lo, hi = end_errors(np.arange(1.0, 2001.0), 0.95)  # the error is that of the rank: sqrt(2000 p (1 - p))
    >>> round(float(lo), 2), round(float(hi), 2), round((2000 * 0.025 * 0.975) ** 0.5, 2)
    (7.14, 7.14, 6.98)
    """
    k, total = tail_rank(len(draws), level), len(draws)
    if k < 1:
        return None
    p = (1.0 - level) / 2.0
    step = max(1, round(1.96 * float(np.sqrt(total * p * (1.0 - p)))))
    ordered = np.sort(draws, axis=0)
    with np.errstate(invalid="ignore"):  # the difference of two infinite draws
        lo = ordered[min(k - 1 + step, total - 1)] - ordered[max(k - 1 - step, 0)]
        hi = ordered[min(total - k + step, total - 1)] - ordered[max(total - k - step, 0)]
    return lo / (2 * 1.96), hi / (2 * 1.96)


def simultaneous_interval(draws: Array, level: float) -> tuple[Array, Array] | None:
    """Return ends between which at least ``level`` of the draws lie whole, or None if there are too few draws.

    The rank envelope: the largest k for which that many draws lie inside [x_(k), x_(B+1-k)] in every coordinate
    (Davison and Hinkley 1997, section 4.2.4).

    Parameters
    ----------
    draws : array (B, J)
        Replicates of J quantities; may hold ``+inf``, which ranks highest.
    level : float
        Nominal coverage of all J at once.

    Examples
    --------
    >>> x = np.arange(1.0, 2001.0)
    >>> lo, hi = simultaneous_interval(np.stack([x, -x], axis=1), 0.95)  # one coordinate tells the other
    >>> lo.tolist(), hi.tolist()
    ([51.0, -1950.0], [1950.0, -51.0])
    """
    total = len(draws)
    ordered = np.sort(draws, axis=0)
    depth = np.full(total, total)
    for column, values in zip(ordered.T, draws.T, strict=True):
        below, up_to = (np.searchsorted(column, values, side=side) for side in ("left", "right"))
        depth = np.minimum(depth, np.minimum(up_to, total - below))
    k = int(np.sort(depth)[int(np.floor((1.0 - level) * total + 1e-9))])
    if tail_rank(total, level) < 1 or k < 1:
        return None
    return ordered[k - 1], ordered[total - k]


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
