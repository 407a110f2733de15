"""Shapes that cost what a reference costs: how far each is off in FLOPs, parameters and cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.reporting.figures.axes import percent_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.labels import shortened
from smelt_scaling.reporting.figures.style import CYCLE, MARKERS, PAGE, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_deviations", "match_figures"]

Rows = Sequence[Mapping[str, Any]]
BUDGETS = {"flops": "FLOPs per token", "params": "parameters", "kv": "KV cache"}
#: Up to so many shapes are named.
NAMED = 60


def draw_deviations(rows: Rows, ax: Axes, budget: str, *, tolerance: float) -> None:
    """Draw one line per shape, with the tolerance shaded.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of `match_budgets`.
    ax : Axes
        Where.
    budget : str
        Column of the deviation.
    tolerance : float
        Relative.
    """
    ax.axvspan(-tolerance, tolerance, color="#e9e9e9", linewidth=0, zorder=0)
    ax.axvline(0.0, color="black", linewidth=0.6)
    searches = list(dict.fromkeys(_search(row) for row in rows))
    for place, row in enumerate(rows):
        number = searches.index(_search(row))
        colour = CYCLE[number % len(CYCLE)]
        ax.plot(
            [row[budget]],
            [place],
            linestyle="none",
            marker=MARKERS[number % len(MARKERS)],
            color=colour,
            markerfacecolor=colour if row["pareto"] else "white",
            markersize=3.6,
        )
    for place, (one, other) in enumerate(zip(rows, rows[1:], strict=False)):
        if _search(one) != _search(other):
            ax.axhline(place + 0.5, color="#9a9a9a", linewidth=0.5)
    most = max([tolerance, *(abs(row[budget]) for row in rows)])
    ax.set_xlim(-1.15 * most, 1.15 * most)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    percent_axis(ax, f"off in {BUDGETS[budget]}", "x")


def match_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Draw a frame of `match_budgets`; nothing where no shape is within tolerance."""
    rows, settings = plain_rows(frame), frame.attrs["settings"]
    if not rows:
        return []
    figure, axes = new_figure(3, width=PAGE, height=0.7 + 0.14 * max(len(rows), 6), sharey=True)
    for ax, budget in zip(axes, BUDGETS, strict=True):
        draw_deviations(rows, ax, budget, tolerance=settings["tolerance"][budget])
    step = 1 if len(rows) <= NAMED else len(rows) // NAMED + 1
    ticks = range(0, len(rows), step)
    axes[0].set_yticks(ticks, [_shape(rows[i]) for i in ticks])
    axes[1].set_title(f"against {shortened(settings['reference'], 40, 1)}")
    return [
        Drawing(
            name="match",
            figure=figure,
            rows=[{key: value for key, value in row.items() if key != "toml"} for row in rows],
            caption=(
                f"Shapes that cost what {settings['reference']} costs, the best of each search first: how far they are "
                "off, with the tolerance shaded. Filled: no other shape is as close in all three and closer in one. "
                "Names: visits of the loop, hidden size, heads × width of a head / KV heads, experts × width of one."
            ),
        )
    ]


def _search(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["loops"], row["first"], row["last"]


def _shape(row: Mapping[str, Any]) -> str:
    """Write a shape in one line."""
    experts = "" if row["experts"] is None else f"{row['experts']}×"
    loop = f"×{row['loops']}  " if row["loops"] > 1 else ""
    return (
        f"{loop}{row['hidden']}  {row['heads']}×{row['head_dim']}/{row['kv_heads']}  {experts}{row['width']}"
    )
