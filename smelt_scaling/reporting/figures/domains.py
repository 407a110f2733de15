"""Compute saved on each domain, the largest first, and which of two domains gains more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.reporting.figures.axes import percent_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.intervals import OPEN_ENDS, draw_intervals, gain_limits
from smelt_scaling.reporting.figures.labels import numbered, points_of, shortened, thinned
from smelt_scaling.reporting.figures.style import COLUMN, PAGE, TARGET, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["domains_figures", "draw_forest", "draw_ranks"]

Rows = Sequence[Mapping[str, Any]]
#: Up to so many domains every share is written out.
WRITTEN = 10


def draw_forest(rows: Rows, ax: Axes) -> None:
    """Draw one domain per line, in the order of the rows, with its number of sources.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of `domains` at one budget and sparsity.
    ax : Axes
        Where.
    """
    draw_intervals(ax, range(len(rows)), rows, "gain", colour=TARGET, along="x")
    ax.axvline(0.0, color="black", linewidth=0.6)
    whole = rows[0]["whole_gain"]
    if whole is not None:
        ax.axvline(whole, color="black", linewidth=0.8, linestyle="--")
    for place, row in enumerate(rows):
        if row["gain"] is None:
            said = "unreachable" if row["unreachable"] else "no frontier"
            ax.annotate(
                said,
                (0.99, place),
                xytext=(0, 1),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                ha="right",
                va="bottom",
                fontsize=6,
                color=TARGET,
            )
    ax.set_xlim(*gain_limits(rows, "gain"))
    names = [f"{shortened(row['domain'], 26, 1)} ({row['sources']})" for row in rows]
    ax.set_yticks(range(len(rows)), [f"{name}  {place}" for place, name in enumerate(names, 1)])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")


def draw_ranks(rows: Rows, pairs: Rows, ax: Axes) -> Any:
    """Draw in which share of replicates the domain of a line gains more than that of a column.

    Parameters
    ----------
    rows, pairs : sequence of mapping
        Rows of `domains` at one point, and the paired differences there.
    ax : Axes
        Where.

    Returns
    -------
    QuadMesh
        For a colour bar.
    """
    import matplotlib

    place = {row["domain"]: i for i, row in enumerate(rows)}
    shares = np.full((len(rows), len(rows)), np.nan)
    for pair in pairs:
        if pair["ahead_share"] is not None:
            i, j = place[pair["one"]], place[pair["other"]]
            # ties count half, so what is not ahead is behind
            shares[i, j], shares[j, i] = pair["ahead_share"], 1.0 - pair["ahead_share"]
    edges = np.arange(len(rows) + 1) - 0.5
    colours = matplotlib.colormaps["PuOr"].with_extremes(bad="#ececec")
    mesh = ax.pcolormesh(edges, edges, np.ma.masked_invalid(shares), cmap=colours, vmin=0.0, vmax=1.0)
    if len(rows) <= WRITTEN:
        for (i, j), share in np.ndenumerate(shares):
            if np.isfinite(share):
                dark = abs(share - 0.5) > 0.35
                ax.text(
                    j,
                    i,
                    f"{100 * share:.0f}",
                    ha="center",
                    va="center",
                    fontsize=6,
                    color="white" if dark else "black",
                )
    ticks = thinned(len(rows), 15)
    ax.set_xticks(ticks, [str(tick + 1) for tick in ticks])
    ax.set_xlabel("than domain number")
    ax.tick_params(length=0)
    ax.grid(False)
    return mesh


def domains_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Draw a frame of `domains`, one figure per budget and sparsity."""
    drawings = []
    settings = frame.attrs["settings"]
    for number, (title, rows) in enumerate(points_of(plain_rows(frame))):
        own = sorted(rows, key=lambda row: (row["rank"] is None, row["rank"] or 0))
        at = {key: own[0][key] for key in ("budget", "sparsity")}
        pairs = [
            pair for pair in frame.attrs["pairs"] if all(pair[key] == value for key, value in at.items())
        ]
        ranked = any(pair["ahead_share"] is not None for pair in pairs)
        height = 1.0 + 0.16 * max(len(own), 4)
        figure, axes = new_figure(
            1 + ranked,
            width=PAGE if ranked else COLUMN,
            height=height,
            sharey=True,
            width_ratios=(3, 2)[: 1 + ranked],
        )
        draw_forest(own, axes[0])
        percent_axis(
            axes[0],
            f"compute saved by {shortened(settings['target'])}\nrelative to "
            f"{shortened(settings['reference'])}",
            "x",
        )
        axes[0].set_title(title)
        caption = (
            "Compute saved at equal loss on each domain, the largest first, with the number of its sources in "
            "parentheses. Dashed: on the whole evaluation."
        )
        if any(row["gain_lo"] is not None or row["gain_hi"] is not None for row in own):
            caption += (
                f" Bars: {100 * settings['level']:g} % intervals; {OPEN_ENDS[0].lower()}{OPEN_ENDS[1:]}"
            )
        if ranked:
            bar = figure.colorbar(draw_ranks(own, pairs, axes[1]), ax=axes[1], pad=0.02, aspect=25)
            percent_axis(bar.ax, "share of replicates")
            axes[1].set_title("gains more …")
            caption += " Right: share of replicates, in percent, in which the domain of a line gains more."
        drawings.append(Drawing(name=numbered("domains", number), figure=figure, rows=own, caption=caption))
    return drawings
