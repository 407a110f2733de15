"""Confidence sets of a ratio of two means: Fieller's theorem, which knows that some ratios have no bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.formatting import format_number

__all__ = ["RatioSet", "fieller"]


@dataclass(frozen=True, kw_only=True)
class RatioSet:
    """The ratios that the data do not exclude.

    Parameters
    ----------
    kind : {"bounded", "outside", "any", "none"}
        Between the ends; everything but what lies between them; every number; or no set at all.
    lo, hi : float or None
        The ends of what is in (bounded) or of what is out (outside).
    """

    kind: Literal["bounded", "outside", "any", "none"]
    lo: float | None = None
    hi: float | None = None

    def words(self, digits: int = 3) -> str:
        """Say it as a person would.

        Examples
        --------
        >>> RatioSet(kind="bounded", lo=1.2, hi=1.9).words()
        '[1.20, 1.90]'
        >>> RatioSet(kind="outside", lo=-0.5, hi=1.1).words()
        'unbounded: below -0.500 or above 1.10'
        >>> RatioSet(kind="any").words()
        'unbounded: any ratio'
        """
        lo, hi = format_number(self.lo, digits), format_number(self.hi, digits)
        return {
            "bounded": f"[{lo}, {hi}]",
            "outside": f"unbounded: below {lo} or above {hi}",
            "any": "unbounded: any ratio",
            "none": "",
        }[self.kind]


def fieller(means: NDArray[np.float64], covariance: NDArray[np.float64], quantile: float) -> RatioSet:
    """Return the set of ratios r for which mean_0 - r mean_1 is within ``quantile`` standard errors of 0.

    Parameters
    ----------
    means : (2,) array
        Numerator and denominator.
    covariance : (2, 2) array
        Of the means.
    quantile : float
        Of t or the normal.

    Notes
    -----
    Fieller (1954), J. R. Stat. Soc. B 16, 175: with x, y the means and V their covariance the ends solve
    ``(y^2 - t^2 V_yy) r^2 - 2 (x y - t^2 V_xy) r + (x^2 - t^2 V_xx) = 0``. Where the denominator is not told from 0
    the set is the outside of the roots, or the whole line if there are none.

    Examples
    --------
    >>> fieller(np.array([3.0, 2.0]), np.diag([0.04, 0.01]), 2.0).words()
    '[1.26, 1.77]'
    >>> fieller(np.array([3.0, 0.1]), np.diag([0.04, 0.01]), 2.0).kind
    'outside'
    """
    square = quantile**2
    a = means[1] ** 2 - square * covariance[1, 1]
    b = means[0] * means[1] - square * covariance[0, 1]
    c = means[0] ** 2 - square * covariance[0, 0]
    inside = b * b - a * c
    if a > 0:  # there are two roots then; below 0 only by rounding, where the ratio hardly scatters
        inside = max(inside, 0.0)
    if a == 0 or inside < 0:
        return RatioSet(kind="any")
    lo, hi = sorted(((b - np.sqrt(inside)) / a, (b + np.sqrt(inside)) / a))
    return RatioSet(kind="bounded" if a > 0 else "outside", lo=float(lo), hi=float(hi))
