"""Which of several noisy values is the best: shares, sets, and the least difference two runs can show."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["best_set", "best_shares", "least_difference", "one_sided_dunnett"]

Array = NDArray[np.float64]

#: Nodes of the quadrature: the integrands are smooth, and 8 standard deviations hold all but 1e-15.
GRID = np.linspace(-8.0, 8.0, 1601)


def _density() -> Array:
    weights = np.exp(-0.5 * GRID**2)
    return np.asarray(weights / weights.sum())


def _spreads(df: float) -> Array:
    """Return equally likely values of (estimated sd)/(true sd) at so many degrees of freedom; 1 where it is known."""
    if np.isinf(df):
        return np.ones(1)
    from scipy.stats import chi2

    return np.asarray(np.sqrt(chi2.ppf((np.arange(100) + 0.5) / 100, df) / df))


def best_shares(values: ArrayLike, se: ArrayLike, df: float = np.inf) -> Array:
    """Return how often each value would be the lowest, were they normal around what was found with errors ``se``.

    Parameters
    ----------
    values : (L,) array-like
        Values of the levels, lower is better.
    se : (L,) array-like
        Their standard errors, positive.
    df : float
        Degrees of freedom of the standard deviation behind the errors; infinite where it is known.

    Examples
    --------
    >>> best_shares([0.0, 1.0], [1.0, 1.0]).round(4).tolist()  # the normal's share below 1/sqrt(2)
    [0.7602, 0.2398]
    """
    values, se = np.asarray(values, dtype=np.float64), np.asarray(se, dtype=np.float64)
    return np.asarray(np.mean([_shares(values, se / spread) for spread in _spreads(df)], axis=0))


def _shares(values: Array, se: Array) -> Array:
    from scipy.special import log_ndtr

    density = _density()
    shares = np.empty(len(values))
    for i in range(len(values)):
        x = values[i] + se[i] * GRID
        above = log_ndtr((values[:, None] - x) / se[:, None])  # P(another one lies above x)
        above[i] = 0.0
        shares[i] = density @ np.exp(above.sum(axis=0))
    return shares


def one_sided_dunnett(level: float, others: int | Array, df: float = np.inf) -> float:
    """Return d with P(each of so many t variables that share one value <= d) = level.

    Parameters
    ----------
    level : float
        Nominal coverage.
    others : int or array
        How many, if all values have equal errors (the correlation is 1/2), or their errors over that of the shared one.
    df : float
        Degrees of freedom; infinite for known errors.

    Examples
    --------
    >>> round(one_sided_dunnett(0.95, 1), 3), round(one_sided_dunnett(0.95, 4), 2)  # Dunnett (1955), table 1a
    (1.645, 2.16)
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr

    ratio = np.ones(others) if isinstance(others, int) else np.asarray(others, dtype=np.float64)
    sizes, count = np.unique(ratio, return_counts=True)
    density, spread = _density(), _spreads(df)[:, None]

    def short(d: float) -> float:
        below = np.zeros((len(spread), len(GRID)))
        for size, times in zip(sizes.tolist(), count.tolist(), strict=True):
            below += times * log_ndtr((GRID + d * spread * np.hypot(1.0, size)) / size)
        return float(np.mean(np.exp(below) @ density)) - level

    return float(brentq(short, -50.0, 500.0))


def best_set(values: ArrayLike, se: ArrayLike, level: float, df: float = np.inf) -> NDArray[np.bool_]:
    """Find the levels that may be the best (lowest): multiple comparisons with the best.

    A level is out where it lies above another by more than d times the standard error of their difference, with d the
    one-sided critical value of Dunnett for it against the L - 1 others (Hsu 1981, Ann. Statist. 9, 1026).

    Examples
    --------
    >>> best_set([0.0, 1.0, 9.0], [1.0, 1.0, 1.0], 0.95).tolist()
    [True, True, False]
    """
    values, se = np.asarray(values, dtype=np.float64), np.asarray(se, dtype=np.float64)
    found, known = np.ones(len(values), dtype=bool), {}
    for i in range(len(values)):
        others = np.delete(np.arange(len(values)), i)
        ratio = np.sort(se[others] / se[i])
        if len(others) and ratio.tobytes() not in known:  # equal errors, one value
            known[ratio.tobytes()] = one_sided_dunnett(level, ratio, df)
        allowed = known.get(ratio.tobytes(), 0.0) * np.hypot(se[i], se[others])
        found[i] = (values[i] - values[others] <= allowed).all()
    return found


def least_difference(sd: float, level: float, df: float = np.inf, first: int = 1, second: int = 1) -> float:
    """Return the difference of two means of so many runs that noise alone exceeds with probability 1 - level.

    Examples
    --------
    >>> round(least_difference(1.0, 0.95), 2)
    2.77
    """
    from scipy.stats import t

    return float(t.ppf(0.5 + level / 2, df) * sd * np.sqrt(1.0 / first + 1.0 / second))
