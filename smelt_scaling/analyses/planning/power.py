"""Power without simulation: what a t interval of this standard error would find.

The estimate of m over its standard error is taken as a non-central t with one degree of freedom less than there are
cells, and a gain as found where the lower end m - t_{G-1} se lies above 0.
"""

from __future__ import annotations

import numpy as np

__all__ = ["POWER", "cells_needed", "found_from", "power_of", "width_of"]

#: The power at which a gain counts as detectable.
POWER = 0.8
#: No design of more cells is looked for.
MOST_CELLS = 10_000


def power_of(gain: float, se: float, cells: int, level: float = 0.95) -> float:
    """Return the share of repeats in which the interval of a true gain lies above 0.

    Examples
    --------
    >>> round(power_of(0.158, 0.0431, 1000), 2)  # many cells: normal, Phi(ln(1/.842)/.0431 - 1.96)
    0.98
    """
    return _power(-float(np.log1p(-gain)) / se, cells, level)


def _power(z: float, cells: int, level: float) -> float:
    """Return the power at a true m of so many standard errors."""
    from scipy.stats import nct, t

    free = max(cells - 1, 1)
    return float(nct.sf(t.ppf(0.5 + level / 2, free), free, z))


def found_from(se: float, cells: int, level: float = 0.95, power: float = POWER) -> float:
    """Return the smallest m = ln(C_ref / C) that is found with this power; the gain is 1 - exp(-m).

    Examples
    --------
    >>> round(1 - float(np.exp(-found_from(0.0431, 1000))), 3)  # many cells: 1 - exp(-(1.96 + .84) se)
    0.114
    """
    from scipy.optimize import brentq

    high = 1.0
    while _power(high, cells, level) < power:
        high *= 2
    return se * float(brentq(lambda z: _power(z, cells, level) - power, 0.0, high))


def cells_needed(gain: float, se: float, cells: int, level: float = 0.95, power: float = POWER) -> int | None:
    """Return how many cells like these find a gain with this power; None beyond 10,000.

    The standard error falls with the root of their number.

    Examples
    --------
    >>> cells_needed(0.05, 0.0431, 12)  # normal quantiles: 12 ((1.96 + .84) .0431 / .0513)^2 = 66.5
    69
    """
    if not gain > 0:
        return None

    def enough(number: int) -> bool:
        return power_of(gain, se * float(np.sqrt(cells / number)), number, level) >= power

    low, high = 2, 4
    while not enough(high):
        low, high = high, high * 2
        if high > MOST_CELLS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return low if enough(low) else high


def width_of(m: float, se: float, cells: int, level: float = 0.95) -> float:
    """Return the width of the interval of a gain: from 1 - exp(-(m - h)) to 1 - exp(-(m + h)), h = t_{G-1} se.

    Examples
    --------
    >>> round(width_of(0.1720, 0.0431, 12), 4)
    0.16
    """
    from scipy.stats import t

    half = float(t.ppf(0.5 + level / 2, max(cells - 1, 1))) * se
    return float(np.exp(-m) * 2 * np.sinh(half))
