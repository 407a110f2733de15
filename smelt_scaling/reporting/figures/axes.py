"""What figures share: axes of compute, bands, and the mark of what lies outside the runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["compute_axis", "hatch_outside", "log_axis", "percent_axis", "runs_of"]

#: Beyond the runs.
HATCH: dict[str, Any] = {
    "facecolor": "none",
    "edgecolor": "#c4c4c4",
    "hatch": "////",
    "linewidth": 0.0,
    "zorder": 0.5,
}

#: Axes of fewer decades than this -> the multiples of powers of ten that are labelled.
BETWEEN = ((0.9, (1.0, 2.0, 3.0, 5.0)), (1.9, (1.0, 3.0)))


def compute_axis(ax: Axes, label: str = "training compute C, FLOPs") -> None:
    """Make the horizontal axis logarithmic, with powers of ten only as labels."""
    from matplotlib.ticker import LogLocator, NullFormatter

    ax.set_xscale("log")
    ax.set_xlabel(label)
    ax.xaxis.set_major_locator(LogLocator(numticks=6))
    ax.xaxis.set_minor_formatter(NullFormatter())


def log_axis(axis: Axis) -> None:
    """Label a logarithmic axis whose limits are set: powers of ten, and numbers between them on a short one."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    low, high = sorted(np.log10(axis.get_view_interval()).tolist())
    between = next((subs for span, subs in BETWEEN if high - low < span), (1.0,))
    axis.set_major_locator(LogLocator(subs=between, numticks=8))
    axis.set_major_formatter(LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=(np.inf, np.inf)))
    axis.set_minor_formatter(NullFormatter())


def percent_axis(ax: Axes, label: str, along: str = "y") -> None:
    """Write fractions of one axis, the vertical by default, as percent."""
    from matplotlib.ticker import FuncFormatter

    axis = ax.yaxis if along == "y" else ax.xaxis
    # as many decimals as a tick has: ticks that differ read differently
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{round(100 * x, 6) + 0.0:g}%".replace("-", "−")))
    axis.set_label_text(label)


def runs_of(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """Return (first, last) of every stretch of True.

    Examples
    --------
    >>> runs_of([True, True, False, True])
    [(0, 1), (3, 3)]
    """
    marked = np.flatnonzero(np.diff(np.concatenate([[False], np.asarray(flags, dtype=bool), [False]])))
    return [(int(a), int(b) - 1) for a, b in zip(marked[::2], marked[1::2], strict=True)]


def hatch_outside(ax: Axes, x: ArrayLike, outside: Sequence[bool]) -> None:
    """Hatch where points along a logarithmic axis lie outside the runs, up to half way to the next that does not."""
    at: NDArray[np.float64] = np.log(np.asarray(x, dtype=np.float64))
    middle = np.concatenate([[at[0]], (at[1:] + at[:-1]) / 2, [at[-1]]])
    for first, last in runs_of(outside):
        ax.axvspan(float(np.exp(middle[first])), float(np.exp(middle[last + 1])), **HATCH)
