"""How well the law describes the runs: predicted against measured, and residuals along every axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from smelt_scaling.reporting.figures.axes import log_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.style import MARKERS, PAGE, arch_colours, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_parity", "draw_residuals", "residual_figure"]

#: Columns along which residuals are drawn -> label, and whether the axis is logarithmic.
AXES = {
    "F": ("F, training FLOPs per token", True),
    "N": ("N, parameters", True),
    "N_act": ("active parameters", True),
    "D": ("D, training tokens", True),
    "C": ("C, training FLOPs", True),
    "S": ("sparsity S", False),
}


def draw_parity(frame: pd.DataFrame, ax: Axes, *, colours: Mapping[str, str], unit: str) -> None:
    """Draw predicted against measured losses; the line is equality."""
    ends = [frame[["loss", "predicted"]].to_numpy().min(), frame[["loss", "predicted"]].to_numpy().max()]
    ax.plot(ends, ends, color="black", linewidth=0.6)
    for number, (arch, colour) in enumerate(colours.items()):
        own = frame[frame["arch"] == arch]
        ax.plot(
            own["loss"],
            own["predicted"],
            linestyle="none",
            marker=MARKERS[number % len(MARKERS)],
            markersize=2.4,
            color=colour,
            alpha=0.7,
            markeredgewidth=0,
            label=arch,
        )
    ax.set_xlabel(f"measured loss, {unit}")
    ax.set_ylabel(f"predicted loss, {unit}")
    ax.legend(loc="upper left")


def draw_residuals(frame: pd.DataFrame, ax: Axes, column: str, *, colours: Mapping[str, str]) -> None:
    """Draw relative residuals, percent, along one column."""
    label, logarithmic = AXES.get(column, (column, False))
    ax.axhline(0.0, color="black", linewidth=0.6)
    for number, (arch, colour) in enumerate(colours.items()):
        own = frame[frame["arch"] == arch]
        ax.plot(
            own[column],
            100 * np.expm1(own["residual_log"]),
            linestyle="none",
            marker=MARKERS[number % len(MARKERS)],
            markersize=2.4,
            color=colour,
            alpha=0.7,
            markeredgewidth=0,
        )
    if logarithmic:
        ax.set_xscale("log")
        log_axis(ax.xaxis)
    ax.set_xlabel(label)


def residual_figure(frame: pd.DataFrame, *, reference: str | None = None) -> Drawing:
    """Draw parity and residuals of a frame of `residual_rows`."""
    colours = arch_colours(list(dict.fromkeys(frame["arch"])), reference)
    known = [name for name in AXES if name in frame and frame[name].notna().all()]
    known = [name for name in known if frame[name].nunique() > 1]
    # F of a law in N is N again, and C says nothing beside size and tokens
    spare = {"F"} if {"N", "N_act"} & set(known) else set()
    spare |= {"C"} if len(known) > 1 else set()
    varied = [name for name in known if name not in spare][:3]
    figure, axes = new_figure(1 + len(varied), width=PAGE, height=2.1)
    draw_parity(frame, axes[0], colours=colours, unit=frame.attrs["settings"]["loss_unit"])
    for number, name in enumerate(varied, 1):
        draw_residuals(frame, axes[number], name, colours=colours)
        if number > 1:
            axes[number].sharey(axes[1])
            axes[number].tick_params(labelleft=False)
    if varied:
        axes[1].set_ylabel("predicted over measured, %")
    return Drawing(
        name="residuals",
        figure=figure,
        rows=plain_rows(frame),
        caption=(
            "Left: predicted against measured losses, the line is equality. Right: how far predictions are above "
            "measurements, along every column of the law. A trend along an axis is a fault of the law."
        ),
    )
