"""What a probe is: one declaration that reading, resampling, tables and documentation all derive from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Probe", "constant"]

Array = NDArray[np.float64]
#: Column of the table -> one number per row; NaN where it is absent.
Columns = Mapping[str, Array]


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One comparison of two visits of the same weights.

    Parameters
    ----------
    name : str
        In the column ``probe``.
    quantity : str
        What a value is, in words.
    unit : str
        What kind of number a value is, in words: a share, a ratio.
    scale : {"linear", "log"}
        Means are arithmetic on the linear scale and geometric on the log scale, and contrasts differences or ratios.
    low, high : float
        Legal values; ``high`` may be infinite, and bf16 may exceed it by `slack`.
    slack : float
        Rounding allowed beyond ``low`` and ``high``.
    chance : callable
        Columns of the table -> what a row is expected to be if the visits had nothing to do with each other, or another
        reference value that needs no measurement.
    chance_words : str
        The same in words.
    needs : tuple of str
        Columns that ``chance`` takes; they may be absent where the table has a column ``chance``.
    ceiling : str or float, optional
        The largest value, a number or a column; at a chance as large a row says nothing.
    spread : callable, optional
        Columns -> standard deviation of one token's value under chance.
    control : str
        What the column ``control`` holds, in words: the measured reference of each row.
    threshold : float, optional
        ``share_above`` counts units above it; above their chance by default.
    counted : tuple of str
        Columns whose combinations are the units that shares count.
    """

    name: str
    quantity: str
    unit: str
    scale: Literal["linear", "log"] = "linear"
    low: float
    high: float
    slack: float = 0.0
    chance: Callable[[Columns], Array]
    chance_words: str
    needs: tuple[str, ...] = ()
    ceiling: str | float | None = None
    spread: Callable[[Columns], Array] | None = None
    control: str = ""
    threshold: float | None = None
    counted: tuple[str, ...] = ("cell", "layer")

    def forth(self, values: Array) -> Array:
        """Take values to the scale on which they are averaged."""
        return np.log(values) if self.scale == "log" else values

    def back(self, means: Array) -> Array:
        """Take means back."""
        return np.exp(means) if self.scale == "log" else means

    def top(self, columns: Columns) -> Array:
        """Return the ceiling of each row; infinite if there is none."""
        if isinstance(self.ceiling, str):
            return columns[self.ceiling]
        return np.full(len(columns["value"]), np.inf if self.ceiling is None else self.ceiling)


def constant(value: float) -> Callable[[Columns], Array]:
    """Return a chance that is the same for every row."""
    return lambda columns: np.full(len(columns["value"]), value)
