"""Where along the length of documents a loss improves: gain per bucket over its mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.formatting import format_number
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.labels import handfuls, numbered, shortened, thinned
from smelt_scaling.reporting.figures.style import COLUMN, CYCLE, MARKERS, PAGE, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_lengths", "lengths_figures"]

Rows = Sequence[Mapping[str, Any]]
#: Contrasts of one panel.
TOGETHER = 4
#: How far bands reach beyond the lines, in spans of these, before they are cut off.
REACH = 0.75


def draw_lengths(rows: Rows, ratios: Rows, ax: Axes) -> None:
    """Draw a line per contrast, with bands where its intervals are bounded.

    Parameters
    ----------
    rows, ratios : sequence of mapping
        Rows of `length_gains`, and its ``ratios``, which the legend holds.
    ax : Axes
        Where.
    """
    for number, ratio in enumerate(ratios):
        own = [row for row in rows if row["contrast"] == ratio["contrast"] and row["relative"] is not None]
        colour, x = CYCLE[number % len(CYCLE)], [row["bucket"] for row in own]
        low, high = (
            [row[f"relative{end}"] if row["relative_set"] == "bounded" else np.nan for row in own]
            for end in ("_lo", "_hi")
        )
        ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(
            x,
            [row["relative"] for row in own],
            color=colour,
            marker=MARKERS[number % len(MARKERS)],
            label=f"{shortened(str(ratio['contrast']), 30, 1)}: {_said(ratio)}",
        )
    ax.axhline(1.0, color="black", linewidth=0.8, linestyle="--")
    buckets = sorted({row["bucket"] for row in rows})
    ax.set_xscale("log", base=2)
    ticks = [buckets[i] for i in thinned(len(buckets), 9)]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel("document length up to, tokens")
    ax.set_ylim(*_limits(rows))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), title="contrast: long over short documents")


def _said(ratio: Mapping[str, Any]) -> str:
    """Write a ratio with its set."""
    if ratio["ratio"] is None:
        return "undefined"
    words = {
        "bounded": "[{}, {}]",
        "outside": "outside ({}, {})",
        "any": "any",
        "none": "no interval",
    }[ratio["ratio_set"]]
    ends = (format_number(ratio[f"ratio{end}"], 3) for end in ("_lo", "_hi"))
    return f"{format_number(ratio['ratio'], 3)}, {words.format(*ends)}"


def _limits(rows: Rows) -> tuple[float, float]:
    points = [1.0, *(row["relative"] for row in rows if row["relative"] is not None)]
    span = max(max(points) - min(points), 0.5)
    ends = [
        row[f"relative{end}"] for row in rows if row["relative_set"] == "bounded" for end in ("_lo", "_hi")
    ]
    low, high = min([*points, *ends]), max([*points, *ends])
    return max(low, min(points) - REACH * span) - 0.05 * span, min(
        high, max(points) + REACH * span
    ) + 0.05 * span


def lengths_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Draw a frame of `length_gains`, a panel per few contrasts."""
    rows = plain_rows(frame)
    panels = handfuls(frame.attrs["ratios"], TOGETHER)
    level = 100 * frame.attrs["settings"]["level"]
    drawings = []
    for number, page in enumerate(handfuls(panels, 4)):
        lines = -(-len(page) // 2)
        width = PAGE if len(page) > 1 else COLUMN
        figure, axes = new_figure(len(page), width=width, height=2.9 * lines, rows=lines)
        drawn: list[Mapping[str, Any]] = []
        for ax, ratios in zip(axes, page, strict=True):
            names = {ratio["contrast"] for ratio in ratios}
            own = [row for row in rows if row["contrast"] in names]
            draw_lengths(own, ratios, ax)
            ax.set_ylabel("loss drop over its mean")
            drawn += own
        caption = (
            "Loss drop in each bucket of document lengths over its mean over buckets; dashed: the same everywhere. "
            f"Bands: {level:g} % Fieller intervals, where these are bounded. Numbers: mean drop on documents of more "
            f"than {frame.attrs['settings']['split']:g} tokens over that on shorter ones."
        )
        drawings.append(Drawing(name=numbered("lengths", number), figure=figure, rows=drawn, caption=caption))
    return drawings
