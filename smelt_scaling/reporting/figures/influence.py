"""What leaving things out does: the gain without each part, errors on what was left out, and sizes foretold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.lines import (
    PITCH,
    draw_gain_point,
    draw_gains,
    draw_interval,
    gain_limits,
    legend_above,
    name_lines,
    percent_across,
    say,
)
from smelt_scaling.reporting.figures.parts import headline_row, part_rows
from smelt_scaling.reporting.figures.style import MARKERS, PAGE, TARGET, arch_colours, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_errors", "draw_foretold", "influence_figure", "influence_figures", "rollout_figure"]

Rows = Sequence[Mapping[str, Any]]
Row = Mapping[str, Any]
BOTH = "both"
#: Kind of part -> heading of its lines.
HEADINGS = {"cell": "cells", "size": "sizes", "horizon": "horizons", "sparsity": "sparsity tiers"}
#: Of more parts of one kind, those that move the gain most are drawn.
AT_MOST = 16
ERRORS = "mean of ln(predicted/measured)"


def draw_errors(groups: Sequence[Rows], ax: Axes, at: Sequence[float], *, colours: Mapping[str, str]) -> None:
    """Draw signed errors of predictions, a point per architecture on every line.

    Parameters
    ----------
    groups : sequence of rows
        For every line its rows, with ``arch`` and ``mean_error``.
    ax, at
        Where, and the height of every line.
    colours : mapping of str to str
        Architecture -> colour.
    """
    ax.axvline(0.0, color="black", linewidth=0.6)
    for number, (arch, colour) in enumerate(colours.items()):
        points = [
            (row["mean_error"], y)
            for rows, y in zip(groups, at, strict=True)
            for row in rows
            if row["arch"] == arch and row["mean_error"] is not None
        ]
        ax.plot(
            [x for x, _ in points],
            [y for _, y in points],
            linestyle="none",
            marker=MARKERS[number % len(MARKERS)],
            color=colour,
            markersize=3,
            label=arch,
        )
    for rows, y in zip(groups, at, strict=True):
        if all(row["mean_error"] is None for row in rows):
            say(ax, "none", y)
    seen = [row["mean_error"] for rows in groups for row in rows if row["mean_error"] is not None]
    widest = max(map(abs, seen), default=0.0) or 0.01
    ax.set_xlim(-1.1 * widest, 1.1 * widest)
    percent_across(ax, ERRORS)


def draw_foretold(rows: Rows, ax: Axes, at: Sequence[float], *, limits: tuple[float, float]) -> None:
    """Draw the gain foretold from smaller sizes beside that of all runs, a line per step."""
    ax.axvline(0.0, color="black", linewidth=0.6)
    ax.set_xlim(*limits)
    for row, y in zip(rows, at, strict=True):
        foretold, fitted = row["gain_predicted"], row["gain_fitted"]
        if foretold is not None and fitted is not None:
            ax.plot(np.clip([foretold, fitted], *limits), [y, y], color=TARGET, linewidth=0.8)
        if fitted is not None:
            draw_gain_point(ax, fitted, y, limits=limits, markersize=3.6)
        if foretold is not None:
            draw_gain_point(ax, foretold, y, limits=limits, markersize=3.6, markerfacecolor="white")
        else:
            say(ax, "none foretold", y)
    percent_across(ax, "compute saved at a budget of the next size")
    ax.plot([], [], "o", color=TARGET, markerfacecolor="white", label="foretold")
    ax.plot([], [], "o", color=TARGET, label="all runs")


def _drawn(rows: Rows, by: str) -> list[list[Row]]:
    """Return the rows of every part of a kind, architectures together; of many parts those that matter most."""
    parts: dict[str, list[Row]] = {}
    for row in rows:
        if row["by"] == by and row["rows"]:
            parts.setdefault(row["part"], []).append(row)
    every = list(parts.values())
    if len(every) <= AT_MOST:
        return every
    kept = sorted(every, key=lambda own: -abs(own[-1]["change"] or 0.0))[:AT_MOST]
    return [own for own in every if own in kept]


def influence_figure(frame: pd.DataFrame) -> Drawing:
    """Draw the gain without each cell, size, horizon and tier, and how the rest predicts what was left out."""
    settings, own = frame.attrs["settings"], headline_row(frame)
    rows = part_rows(frame, "influence")
    colours = _colours(frame, rows)
    at: list[float] = []
    names: list[str] = []
    headings: list[int] = []
    groups: list[list[Row]] = []
    for by, heading in HEADINGS.items():
        parts = _drawn(rows, by)
        if not parts:
            continue
        start = at[-1] + 1.3 if at else 0.0
        headings.append(len(names))
        at += [start + i for i in range(len(parts) + 1)]
        names += [heading, *(str(part[0]["part"]) for part in parts)]
        groups += [[], *parts]
    figure, axes = new_figure(2, width=PAGE, height=0.85 + PITCH * (at[-1] + 1), sharey=True)
    lines = [(own_rows, y) for own_rows, y in zip(groups, at, strict=True) if own_rows]
    gains = [next(row for row in own_rows if row["arch"] == BOTH) for own_rows, _ in lines]
    limits = gain_limits(gains, own["gain"], own["gain_lo"], own["gain_hi"])
    draw_gains(gains, axes[0], [y for _, y in lines], own=own["gain"], limits=limits)
    draw_interval(axes[0], own, label=f"{100 * settings['level']:g} % interval")
    percent_across(axes[0], "compute saved without it")
    draw_errors([rows for rows, _ in lines], axes[1], [y for _, y in lines], colours=colours)
    name_lines(axes[0], at, names, headings=headings)
    axes[1].tick_params(axis="y", length=0)
    for ax in axes:
        legend_above(ax)
    return Drawing(
        name="influence",
        figure=figure,
        rows=rows,
        caption=(
            f"Left: compute saved by {settings['target']} relative to {settings['reference']} without each part of the "
            "runs of both. Bars start at the gain of all runs (dashed). "
            f"Shaded: its {100 * settings['level']:g} % interval of the sampling of cells. Right: errors on what was "
            "left out, negative where the rest predicts too low a loss. "
            f"Of more than {AT_MOST} parts of a kind, those that move the gain most."
        ),
    )


def rollout_figure(frame: pd.DataFrame) -> Drawing:
    """Draw what sizes up to each would have foretold of the next."""
    rows = part_rows(frame, "influence", "rollout")
    colours = _colours(frame, rows)
    steps: dict[str, list[Row]] = {}
    for row in rows:
        steps.setdefault(f"to {row['stop']}, predict {row['predicted']}", []).append(row)
    both = [next(row for row in own if row["arch"] == BOTH) for own in steps.values()]
    at = [float(i) for i in range(len(both))]
    seen = [{"gain": row[name]} for row in both for name in ("gain_predicted", "gain_fitted")]
    figure, axes = new_figure(2, width=PAGE, height=0.85 + PITCH * max(len(at), 3), sharey=True)
    draw_foretold(both, axes[0], at, limits=gain_limits(seen, headline_row(frame)["gain"]))
    draw_errors(list(steps.values()), axes[1], at, colours=colours)
    name_lines(axes[0], at, list(steps))
    axes[1].tick_params(axis="y", length=0)
    for ax in axes:
        legend_above(ax)
    return Drawing(
        name="rollout",
        figure=figure,
        rows=rows,
        caption=(
            "Had the runs stopped at a size. Left: compute saved in the geometric middle of the budgets of the next "
            "size, foretold (open) and fitted to all runs (filled). Right: errors on the next size, negative where "
            "the smaller ones predict too low a loss."
        ),
    )


def influence_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Return the figures for which the diagnosis has numbers."""
    parts = [row for row in part_rows(frame, "influence") if row["rows"]]
    steps = part_rows(frame, "influence", "rollout")
    return [draw(frame) for draw, rows in ((influence_figure, parts), (rollout_figure, steps)) if rows]


def _colours(frame: pd.DataFrame, rows: Rows) -> dict[str, str]:
    archs = [arch for arch in dict.fromkeys(row["arch"] for row in rows) if arch != BOTH]
    return arch_colours(archs, frame.attrs["settings"]["reference"])
