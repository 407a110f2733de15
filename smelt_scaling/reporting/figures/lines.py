"""One named line per result: where it stands, and gains as bars from that of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_percent
from smelt_scaling.reporting.figures.style import TARGET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    *("GREY", "PITCH", "SMALL", "cut_middle", "draw_gain_point", "draw_gains", "draw_interval"),
    *("gain_limits", "legend_above", "name_lines", "percent", "percent_across", "say"),
]

Rows = Sequence[Mapping[str, Any]]
#: Gains this far from the study's are cut off, with their value beside: one of them would flatten all others.
FURTHEST = 1.0
#: Inches from one line to the next.
PITCH = 0.165
#: Size of letters between lines, points.
SMALL = 5.5
#: What is there for comparison.
GREY = "#6e6e6e"
#: Behind text that lies on lines.
_BACKING = {"facecolor": "white", "alpha": 0.85, "linewidth": 0.0, "pad": 0.8}


def cut_middle(text: str, width: int = 30) -> str:
    """Cut the middle out of a long name.

    Examples
    --------
    >>> cut_middle("S = 0.9475, median of smelt"), cut_middle("a-very-long-name-of-a-cell/85%", 12)
    ('S = 0.9475, median of smelt', 'a-very…l/85%')
    """
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def name_lines(ax: Axes, at: Sequence[float], names: Sequence[str], *, headings: Sequence[int] = ()) -> None:
    """Name lines of an axes, the first on top; those of ``headings`` stand in bold, without a grid line."""
    ax.set_yticks(list(at), [cut_middle(name) for name in names])
    ax.set_ylim(max(at, default=0.0) + 0.7, min(at, default=0.0) - 0.7)
    ax.tick_params(axis="y", length=0)
    for number in headings:
        tick = ax.yaxis.get_major_ticks()[number]
        tick.label1.set_fontweight("bold")
        tick.gridline.set_visible(False)


def legend_above(ax: Axes) -> None:
    """Put what an axes has to explain above it."""
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def say(ax: Axes, text: str, y: float) -> None:
    """Say in the middle of a line why nothing is drawn on it."""
    where = ("axes fraction", "data")
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL, "color": GREY}
    ax.annotate(text, (0.5, y), xycoords=where, bbox=_BACKING, **style)


def percent_across(ax: Axes, label: str) -> None:
    """Write fractions of the horizontal axis as percent."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(percent)
    ax.set_xlabel(label)


def percent(value: float, _: Any = None) -> str:
    """Write a tick in percent with the decimals that it has.

    Examples
    --------
    >>> percent(0.15), percent(-0.0025), percent(1e-19)
    ('15%', '−0.25%', '0%')
    """
    return f"{round(100 * value, 6) + 0.0:g}%".replace("-", "−")


def draw_interval(ax: Axes, row: Mapping[str, Any], *, label: str) -> None:
    """Shade an interval of the gain over the height of the axes; an end that is not there is that of the axis."""
    low, high = row["gain_lo"], row["gain_hi"]
    if low is None and high is None:
        return
    left, right = ax.get_xlim()
    ends = left if low is None else low, right if high is None else high
    ax.axvspan(*ends, color=GREY, alpha=0.15, linewidth=0, zorder=0, label=label)
    ax.set_xlim(left, right)


def draw_gains(
    rows: Rows, ax: Axes, at: Sequence[float], *, own: float | None, limits: tuple[float, float]
) -> None:
    """Draw gains as bars that start at the study's own.

    Parameters
    ----------
    rows : sequence of mapping
        With ``gain``, a fraction; None where there is none.
    ax : Axes
        Where.
    at : sequence of float
        Height of each.
    own : float or None
        The study's gain; without one, gains are points.
    limits : (float, float)
        Ends of the axis.
    """
    low, high = limits
    ax.set_xlim(low, high)
    ax.axvline(0.0, color="black", linewidth=0.6)
    if own is not None:
        ax.axvline(own, color="black", linewidth=0.8, linestyle="--", label=f"study, {format_percent(own)}")
    for row, y in zip(rows, at, strict=True):
        gain = row["gain"]
        if gain is None:
            say(ax, "no gain", y)
            continue
        if own is not None:
            shown = min(max(gain, low), high)
            ax.barh(y, shown - own, left=own, height=0.62, color=TARGET, alpha=0.75, linewidth=0)
        draw_gain_point(ax, gain, y, limits=limits, markersize=2.2)


def draw_gain_point(ax: Axes, gain: float, y: float, *, limits: tuple[float, float], **style: Any) -> None:
    """Draw one gain; of one beyond the axis an arrow at its end, with the number."""
    low, high = limits
    if low <= gain <= high:
        look: dict[str, Any] = {"marker": "o", "color": TARGET, "zorder": 4, **style}
        ax.plot([gain], [y], **look)
        return
    left = gain < low
    end = low if left else high
    ax.plot([end], [y], marker="<" if left else ">", color=TARGET, markersize=3.2, clip_on=False, zorder=5)
    ax.annotate(
        format_percent(gain, 0),
        (end, y),
        xytext=(5 if left else -5, 0),
        textcoords="offset points",
        ha="left" if left else "right",
        va="center",
        fontsize=SMALL,
        bbox=_BACKING,
        zorder=5,
    )


def gain_limits(rows: Rows, own: float | None, *more: float | None) -> tuple[float, float]:
    """Return the ends of an axis of gains: no saving always lies on it, and what is far from the study's gain does not.

    Examples
    --------
    >>> [round(end, 3) for end in gain_limits([{"gain": 0.2}, {"gain": -3.0}, {"gain": None}], 0.1)]
    [-0.955, 0.255]
    """
    middle = own or 0.0
    seen = [0.0, middle, *(row["gain"] for row in rows if row["gain"] is not None)]
    seen += [value for value in more if value is not None]
    low, high = max(min(seen), min(0.0, middle - FURTHEST)), min(max(seen), max(0.0, middle + FURTHEST))
    room = max(0.05 * (high - low), 0.005)
    return low - room, high + room
