"""Points with their intervals; an end that lies beyond all numbers is an arrow, a point that does is not drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["OPEN_ENDS", "draw_intervals", "gain_limits"]

Rows = Sequence[Mapping[str, Any]]
#: Said in captions.
OPEN_ENDS = "Arrows: ends that no finite compute reaches, or that may lie anywhere."
#: Gains beyond these are cut off: an interval that is open below would flatten everything else.
LOWEST, HIGHEST = -0.6, 1.0
#: Length of an arrow, points.
ARROW = 11


def draw_intervals(
    ax: Axes,
    at: Sequence[float],
    rows: Rows,
    key: str,
    *,
    colour: str,
    marker: str = "o",
    filled: Sequence[bool] | None = None,
    along: str = "y",
    label: str | None = None,
) -> None:
    """Draw values with the intervals that they have.

    Parameters
    ----------
    ax : Axes
        Where.
    at : sequence of float
        Places on the other axis.
    rows : sequence of mapping
        Rows with ``key``, ``<key>_lo`` and ``<key>_hi``; None where absent.
    key : str
        Column.
    colour, marker, label : str
        How, and what the legend says.
    filled : sequence of bool, optional
        Markers that are full; all by default.
    along : {"x", "y"}
        The axis of the values.
    """
    flip = along == "x"
    for place, (where, row) in enumerate(zip(at, rows, strict=True)):
        value, low, high = (row.get(f"{key}{end}") for end in ("", "_lo", "_hi"))
        ends = [end for end in (low, high, value) if end is not None]
        if low is not None or high is not None:
            span, fixed = (min(ends), max(ends)), (where, where)
            ax.plot(*((span, fixed) if flip else (fixed, span)), color=colour, linewidth=0.9)
            for end, sign in ((low, -1), (high, 1)):
                if end is None:
                    _arrow(ax, where, max(ends) if sign > 0 else min(ends), sign, flip=flip, colour=colour)
        if value is not None:
            full = filled is None or filled[place]
            ax.plot(
                *(([value], [where]) if flip else ([where], [value])),
                linestyle="none",
                marker=marker,
                markersize=4,
                color=colour,
                markerfacecolor=colour if full else "white",
                zorder=3,
            )
    if label is not None:
        ax.plot([], [], marker=marker, markersize=4, linestyle="none", color=colour, label=label)


def _arrow(ax: Axes, where: float, start: float, sign: int, *, flip: bool, colour: str) -> None:
    ax.annotate(
        "",
        (start, where) if flip else (where, start),
        xytext=(sign * ARROW, 0) if flip else (0, sign * ARROW),
        textcoords="offset points",
        arrowprops={"arrowstyle": "<|-", "color": colour, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0},
    )


def gain_limits(rows: Rows, *keys: str) -> tuple[float, float]:
    """Return limits of an axis that hold 0 and the gains, without ends far below.

    Examples
    --------
    >>> [round(end, 3) for end in gain_limits([{"gain": 0.2, "gain_lo": -3.0, "gain_hi": None}], "gain")]
    [-0.648, 0.248]
    """
    names = [f"{key}{end}" for key in keys for end in ("", "_lo", "_hi")]
    seen = [row[name] for row in rows for name in names if row.get(name) is not None]
    low, high = max(LOWEST, min([*seen, 0.0])), min(HIGHEST, max([*seen, 0.05]))
    return low - 0.06 * (high - low), high + 0.06 * (high - low)
