"""The fitted surface: loss over size and tokens, with the runs, curves of equal compute, and the frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.formatting import format_number
from smelt_scaling.reporting.figures.axes import log_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.style import COLUMN, PAGE, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_surface", "surface_figure"]

Rows = Sequence[Mapping[str, Any]]
LEVELS = 12


def draw_surface(
    rows: Rows, ax: Axes, *, levels: Sequence[float], runs: pd.DataFrame | None = None, frontier: Rows = ()
) -> Any:
    """Draw one surface as filled contours of the loss.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of `surface_grid`.
    ax : Axes
        Where.
    levels : sequence of float
        Losses at which colours change.
    runs : DataFrame, optional
        Endpoints, with F and D.
    frontier : sequence of mapping
        The compute-optimal curve, with F and D.

    Returns
    -------
    ContourSet
        For a colour bar.
    """
    size, tokens = (np.unique([row[name] for row in rows]) for name in "FD")
    loss = np.array([row["loss"] for row in rows]).reshape(len(size), len(tokens))
    filled = ax.contourf(size, tokens, loss.T, levels=list(levels), cmap="cividis_r", extend="both")
    low, high = size[0] * tokens[0], size[-1] * tokens[-1]
    for power in range(int(np.ceil(np.log10(low))), int(np.floor(np.log10(high))) + 1):
        ax.plot(size, 10.0**power / size, color="white", linewidth=0.5, alpha=0.7)
        _label(ax, power, size, tokens)
    if frontier:
        ax.plot(
            [row["F"] for row in frontier], [row["D"] for row in frontier], color="#D55E00", label="optimum"
        )
    if runs is not None:
        ax.plot(
            runs["F"],
            runs["D"],
            linestyle="none",
            marker="o",
            markersize=2.4,
            markerfacecolor="white",
            markeredgecolor="black",
            markeredgewidth=0.4,
            label="runs",
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(size[0], size[-1])
    ax.set_ylim(tokens[0], tokens[-1])
    log_axis(ax.xaxis)
    log_axis(ax.yaxis)
    ax.set_xlabel("F, training FLOPs per token")
    ax.grid(False)
    return filled


def _label(ax: Axes, power: int, size: Any, tokens: Any) -> None:
    """Name a curve of equal compute where it leaves the panel at the bottom or on the right."""
    right = 10.0**power / size[-1]
    at = (size[-1], right) if right > tokens[0] else (10.0**power / tokens[0], tokens[0])
    if not (size[0] * 1.5 < at[0] and at[1] < tokens[-1] / 1.5):
        return
    ax.annotate(
        f"$10^{{{power}}}$",
        at,
        xytext=(-2, 2) if right > tokens[0] else (-2, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color="white",
        fontsize=5.5,
        path_effects=_outlined(),
    )


def _outlined() -> list[Any]:
    """Return a dark edge, on which white letters are read over light colours too."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=0.7, foreground="#505050")]


def surface_figure(frames: Sequence[pd.DataFrame], residuals: pd.DataFrame | None = None) -> Drawing:
    """Draw the surfaces of several architectures at one sparsity, side by side and in one scale of colours.

    Parameters
    ----------
    frames : sequence of DataFrame
        What `surface_grid` returned for each.
    residuals : DataFrame, optional
        What `residual_rows` returned, for the runs of that sparsity.
    """
    every = [plain_rows(frame) for frame in frames]
    losses = np.concatenate([[row["loss"] for row in rows] for rows in every])
    levels = np.geomspace(losses.min(), np.quantile(losses, 0.98), LEVELS)
    width = PAGE if len(frames) > 1 else COLUMN
    figure, axes = new_figure(len(frames), width=width, height=2.6, sharey=True)
    sparsity = frames[0].attrs["settings"]["sparsity"]
    for ax, rows, frame in zip(axes, every, frames, strict=True):
        arch = frame.attrs["settings"]["arch"]
        runs = None
        if residuals is not None:
            runs = residuals[residuals["arch"] == arch]
            if sparsity is not None:
                runs = runs[np.isclose(runs["sparsity"].astype(float), sparsity)]
        filled = draw_surface(rows, ax, levels=levels.tolist(), runs=runs, frontier=frame.attrs["curve"])
        ax.set_title(arch if sparsity is None else f"{arch}, S = {format_number(sparsity, 3)}")
    axes[0].set_ylabel("D, training tokens")
    legend = axes[0].legend(loc="upper left", labelcolor="white", frameon=False)
    for text in legend.get_texts():
        text.set_path_effects(_outlined())
    bar = figure.colorbar(filled, ax=axes, pad=0.01, aspect=30)
    bar.set_label(f"loss, {frames[0].attrs['settings']['loss_unit']}")
    bar.ax.yaxis.set_major_formatter("{x:.2f}")
    return Drawing(
        name="surface",
        figure=figure,
        rows=[row for rows in every for row in rows],
        caption=(
            "Fitted loss over training FLOPs per token and tokens. White lines: equal compute, in FLOPs. "
            "Orange: the compute-optimal frontier."
            f"{' Circles: the runs of that sparsity.' if residuals is not None else ''}"
        ),
    )
