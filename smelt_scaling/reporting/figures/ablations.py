"""Levels of a factor: their values, one line per group, with what single runs scatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.labels import handfuls, numbered, shortened
from smelt_scaling.reporting.figures.style import COLUMN, CYCLE, MARKERS, PAGE, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["ablations_figures", "draw_levels"]

Rows = Sequence[Mapping[str, Any]]
#: Levels whose names stand side by side; more are turned upright.
UPRIGHT = 6
#: Levels that fit half a page.
HALF = 14
#: Groups side by side in a legend.
COLUMNS = 3
#: How far lines of groups are moved apart at most, in levels.
APART = 0.06


def draw_levels(rows: Rows, summary: Rows, ax: Axes) -> None:
    """Draw values over levels, a line per group.

    Parameters
    ----------
    rows, summary : sequence of mapping
        Rows of `compare_levels` of one factor and metric, and their summary.
    ax : Axes
        Where.
    """
    levels = list(dict.fromkeys(row["level"] for row in rows))
    groups = list(dict.fromkeys(row["group"] for row in rows))
    noise = {row["group"]: row["noise"] for row in summary}
    step = min(APART, 0.7 / len(groups))
    for number, group in enumerate(groups):
        own = [row for row in rows if row["group"] == group]
        at = [levels.index(row["level"]) + step * (number - (len(groups) - 1) / 2) for row in own]
        colour = CYCLE[number % len(CYCLE)]
        value = [row["value"] for row in own]
        ax.plot(at, value, color=colour, linewidth=0.9, alpha=0.7)
        for x, row in zip(at, own, strict=True):
            if noise[group] is not None:
                ends = [row["value"] - noise[group], row["value"] + noise[group]]
                ax.plot([x, x], ends, color=colour, linewidth=0.9)
            ax.plot(
                [x],
                [row["value"]],
                marker=MARKERS[number % len(MARKERS)],
                color=colour,
                markersize=4,
                markerfacecolor="white" if row["may_be_best"] is False else colour,
                zorder=3,
            )
        if len(groups) > 1:
            ax.plot(
                [],
                [],
                color=colour,
                marker=MARKERS[number % len(MARKERS)],
                linewidth=0.9,
                label=shortened(group, 12, 1),
            )
    many = len(levels) > UPRIGHT
    ax.set_xticks(range(len(levels)), [shortened(level, 14 if many else 10, 1) for level in levels])
    ax.tick_params(axis="x", length=0, rotation=90 if many else 0)
    ax.set_xlim(-0.5, len(levels) - 0.5)
    ax.margins(y=0.1)
    ax.ticklabel_format(axis="y", useOffset=False)
    if len(groups) > 1:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=COLUMNS)


def ablations_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Draw a frame of `compare_levels`, a panel per factor and metric."""
    rows = plain_rows(frame)
    summary = frame.attrs["summary"]
    panels = list(dict.fromkeys((row["factor"], row["metric"]) for row in rows))
    if not panels:
        return []
    wide = max(len({row["level"] for row in _of(rows, panel)}) for panel in panels) > HALF
    drawings = []
    for number, page in enumerate(handfuls(panels, 3 if wide else 6)):
        columns = 1 if wide or len(page) == 1 else 2
        lines = -(-len(page) // columns)
        groups = max(len({row["group"] for row in _of(rows, panel)}) for panel in page)
        figure, axes = new_figure(
            len(page),
            width=PAGE if wide or columns > 1 else COLUMN,
            height=0.2 + lines * (2.1 + 0.14 * -(-groups // COLUMNS)),
            rows=lines,
        )
        drawn: list[Mapping[str, Any]] = []
        for ax, panel in zip(axes, page, strict=True):
            own, stated = _of(rows, panel), _of(summary, panel)
            draw_levels(own, stated, ax)
            ax.set_xlabel(shortened(panel[0] or "level", 30, 1))
            better = {row["better"] for row in stated}
            ax.set_ylabel(f"{shortened(panel[1], 24, 2)}\n{' or '.join(sorted(better))} is better")
            drawn += own
        noisy = any(row["noise"] is not None for panel in page for row in _of(summary, panel))
        caption = "Values of the levels."
        if noisy:
            caption += (
                " Bars: one standard deviation of a single run to either side. Filled: may be the best."
            )
        else:
            caption += " What runs scatter is not known, so no level is called the best."
        drawings.append(
            Drawing(name=numbered("ablations", number), figure=figure, rows=drawn, caption=caption)
        )
    return drawings


def _of(rows: Rows, panel: tuple[str, str]) -> list[Mapping[str, Any]]:
    return [row for row in rows if (row["factor"], row["metric"]) == panel]
