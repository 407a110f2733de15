"""Compute saved on groups of sources, and on each source against how hard the reference finds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_number
from smelt_scaling.reporting.figures.axes import percent_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.intervals import OPEN_ENDS, draw_intervals, gain_limits
from smelt_scaling.reporting.figures.labels import numbered, points_of, shortened, thinned
from smelt_scaling.reporting.figures.style import CYCLE, MARKERS, PAGE, TARGET, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_groups", "draw_members", "sources_figures"]

Rows = Sequence[Mapping[str, Any]]
#: Domains that have a colour and a marker of their own; the others share the last grey one.
NAMED = 14


def draw_groups(rows: Rows, ax: Axes) -> None:
    """Draw the gain of every group of sources, the easiest for the reference first.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of `sources` at one budget and sparsity.
    ax : Axes
        Where.
    """
    draw_intervals(ax, range(len(rows)), rows, "gain", colour=TARGET)
    ax.axhline(0.0, color="black", linewidth=0.6)
    if rows[0]["whole_gain"] is not None:
        ax.axhline(rows[0]["whole_gain"], color="black", linewidth=0.8, linestyle="--")
    ticks = thinned(len(rows), 10)
    ax.set_xticks(ticks, [f"{rows[i]['group']}\n{rows[i]['sources']}" for i in ticks])
    ax.set_xlim(-0.5, len(rows) - 0.5)
    ax.set_xlabel("group, and its number of sources")
    ax.grid(False, axis="x")


def draw_members(members: Rows, groups: Rows, ax: Axes) -> None:
    """Draw the gain of every source against the loss of the reference there.

    Parameters
    ----------
    members, groups : sequence of mapping
        ``members`` of `sources` at one point, and its rows, whose losses are shaded.
    ax : Axes
        Where.
    """
    for number, group in enumerate(groups):
        shade = "#f1f1f1" if number % 2 else "#e2e2e2"
        ax.axvspan(group["loss_low"], group["loss_high"], color=shade, linewidth=0, zorder=0)
    names = list(dict.fromkeys(member["domain"] for member in members))
    for number, name in enumerate(names):
        own = [member for member in members if member["domain"] == name and member["gain"] is not None]
        named = number < NAMED
        ax.plot(
            [member["reference_loss"] for member in own],
            [member["gain"] for member in own],
            linestyle="none",
            marker=MARKERS[number % len(MARKERS)],
            color=CYCLE[number % len(CYCLE)] if named else "#8a8a8a",
            markerfacecolor="white" if named and number >= len(CYCLE) else None,
            markersize=3.4,
            label=shortened(name, 20, 1) if named and name else None,
        )
    ax.axhline(0.0, color="black", linewidth=0.6)
    if any(names):
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def sources_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Draw a frame of `sources`, one figure per budget and sparsity."""
    settings = frame.attrs["settings"]
    drawings = []
    for number, (title, rows) in enumerate(points_of(plain_rows(frame))):
        members = [
            member
            for member in frame.attrs["members"]
            if (member["budget"], member["sparsity"]) == (rows[0]["budget"], rows[0]["sparsity"])
        ]
        figure, axes = new_figure(2, width=PAGE, height=2.4, sharey=True, width_ratios=(2, 3))
        draw_groups(rows, axes[0])
        draw_members(members, rows, axes[1])
        axes[0].set_ylim(*gain_limits([*rows, *members], "gain"))
        percent_axis(
            axes[0],
            f"compute saved by {shortened(settings['target'])}\nrelative to {shortened(settings['reference'])}",
        )
        axes[0].set_title(title)
        axes[1].set_xlabel(f"loss of {shortened(settings['reference'])}, {settings['loss_unit']}")
        lacking = [member for member in members if member["gain"] is None]
        caption = (
            "Left: compute saved at equal loss on groups of sources, from those of the lowest loss of the reference; "
            "dashed: on the whole evaluation."
        )
        if any(row["gain_lo"] is not None or row["gain_hi"] is not None for row in rows):
            caption += (
                f" Bars: {100 * settings['level']:g} % intervals; {OPEN_ENDS[0].lower()}{OPEN_ENDS[1:]}"
            )
        caption += " Right: the gain of each source alone; shaded: the losses of the groups."
        if len({member["domain"] for member in members}) > NAMED:
            caption += f" Grey: domains beyond the first {NAMED}."
        if lacking:
            caption += f" {format_number(len(lacking))} of {len(members)} sources have no gain of their own."
        drawings.append(
            Drawing(
                name=numbered("sources", number), figure=figure, rows=_table(rows, members), caption=caption
            )
        )
    return drawings


def _table(groups: Rows, members: Rows) -> list[dict[str, Any]]:
    """Return the numbers of both panels as rows of equal keys."""
    keys = ("panel", "budget", "sparsity", "group", "sources", "source", "domain")
    numbers = ("reference_loss", "loss_low", "loss_high", "gain", "gain_lo", "gain_hi", "whole_gain")
    every = [{"panel": "group", **row} for row in groups] + [{"panel": "source", **row} for row in members]
    return [{key: row.get(key) for key in (*keys, *numbers)} for row in every]
