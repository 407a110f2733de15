"""Compute saved against the budget, one panel per sparsity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.formatting import format_number
from smelt_scaling.reporting.figures.axes import compute_axis, hatch_outside, percent_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.style import PAGE, TARGET, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_gain", "gain_figure"]

Rows = Sequence[Mapping[str, Any]]
#: Gains beyond these are cut off: an interval that is open below would flatten everything else.
LOWEST, HIGHEST = -0.6, 1.0


def draw_gain(
    rows: Rows, ax: Axes, *, turning: Mapping[str, Any] | None = None, colour: str = TARGET
) -> None:
    """Draw one curve of gains over budgets with its bands.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of `ce_gain` at one sparsity, in order of their budgets.
    ax : Axes
        Where.
    turning : mapping, optional
        The row of ``turnover`` of that sparsity: peak and zero crossings are marked.
    """
    budget = np.array([row["budget"] for row in rows])
    gain = _numbers(rows, "gain", np.nan)  # no point where the reference never gets there
    hatch_outside(ax, budget, [bool(row["extrapolated"]) for row in rows])
    for lower, upper, shade, label in (
        ("gain_together_lo", "gain_together_hi", 0.15, "all budgets at once"),
        ("gain_lo", "gain_hi", 0.3, "each budget by itself"),
    ):
        if any(row.get(lower) is not None for row in rows):
            # an end that is not reached at any compute lies beyond the axis
            ends = _numbers(rows, lower, 1.0), _numbers(rows, upper, 1.0)
            ax.fill_between(budget, *ends, color=colour, alpha=shade, linewidth=0, label=label)
    ax.plot(budget, gain, color=colour)
    ax.axhline(0.0, color="black", linewidth=0.6)
    if turning is not None:
        _mark(ax, turning, budget, colour)
    compute_axis(ax)
    ax.set_xlim(budget[0], budget[-1])
    seen = [row[key] for row in rows for key in ("gain", "gain_lo", "gain_hi") if row.get(key) is not None]
    low, high = min([*seen, 0.0]), max([*seen, 0.05])
    ax.set_ylim(max(LOWEST, low - 0.05), min(HIGHEST, high + 0.05))


def _numbers(rows: Rows, key: str, absent: float) -> Any:
    return np.array([absent if row.get(key) is None else row[key] for row in rows])


def _mark(ax: Axes, turning: Mapping[str, Any], budget: Any, colour: str) -> None:
    """Mark the peak and the zero crossings that lie on the axis."""
    peak = turning["peak_budget"]
    if peak is not None and budget[0] <= peak <= budget[-1]:
        ax.plot([peak], [turning["peak_gain"]], marker="v", color=colour, zorder=4)
    zeros = [zero for zero in turning["zero_crossings"] if budget[0] <= zero <= budget[-1]]
    ax.plot(
        zeros,
        [0.0] * len(zeros),
        linestyle="none",
        marker="o",
        markerfacecolor="white",
        color=colour,
        zorder=4,
    )


def gain_figure(frame: pd.DataFrame) -> Drawing:
    """Draw the gains of a frame of `ce_gain` over many budgets."""
    rows = plain_rows(frame)
    target, reference = rows[0]["target"], rows[0]["reference"]
    grid = list(dict.fromkeys(row["sparsity"] for row in rows))
    turning = {row["sparsity"]: row for row in frame.attrs["turnover"]}
    width = PAGE if len(grid) > 1 else 3.35
    figure, axes = new_figure(len(grid), width=width, height=2.4, sharey=True)
    for ax, sparsity in zip(axes, grid, strict=True):
        own = [row for row in rows if row["sparsity"] == sparsity]
        draw_gain(own, ax, turning=turning.get(sparsity))
        if sparsity is not None:
            ax.set_title(f"S = {format_number(sparsity, 3)}")
    low = min(ax.get_ylim()[0] for ax in axes)
    high = max(ax.get_ylim()[1] for ax in axes)
    axes[0].set_ylim(low, high)
    percent_axis(axes[0], f"compute saved by {target}\nrelative to {reference}")
    for ax in axes:
        ax.set_xlabel(f"budget of {target}, FLOPs")
    if axes[0].get_legend_handles_labels()[0]:
        axes[0].legend(loc="best")
    level = frame.attrs["settings"]["level"]
    return Drawing(
        name="gain",
        figure=figure,
        rows=rows,
        caption=(
            f"Compute saved by {target} relative to {reference} at equal loss. Bands: {100 * level:g} % intervals of "
            "the sampling of cells under this law only. Hatched: optima outside the runs. Triangle: peak; circles: "
            "no saving."
        ),
    )
