"""What the residuals look like: along every axis, against a normal, and by cell of both architectures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_interval, format_number
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.lines import cut_middle, percent
from smelt_scaling.reporting.figures.parts import part_rows
from smelt_scaling.reporting.figures.style import MARKERS, PAGE, arch_colours, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_along_axis", "draw_cells", "draw_quantiles", "noise_figure", "noise_figures"]

Rows = Sequence[Mapping[str, Any]]
#: Columns of the rows along which residuals are drawn -> label.
AXES = {
    "ln F": "ln F, F in FLOPs/token",
    "ln N": "ln N, N in parameters",
    "ln N_act": "ln N_act, in parameters",
    "ln D": "ln D, D in tokens",
    "ln C": "ln C, C in FLOPs",
    "ln(1-S)": "ln(1 - S)",
}
#: More cells than this have no room for their names.
NAMED_CELLS = 24


def _points(ax: Axes, rows: Rows, x: str, y: str, colours: Mapping[str, str]) -> None:
    for number, (arch, colour) in enumerate(colours.items()):
        own = [row for row in rows if row["arch"] == arch and row.get(x) is not None]
        ax.plot(
            [row[x] for row in own],
            [row[y] for row in own],
            linestyle="none",
            marker=MARKERS[number % len(MARKERS)],
            markersize=2.4,
            markeredgewidth=0,
            color=colour,
            alpha=0.7,
            label=arch,
        )


def draw_along_axis(rows: Rows, ax: Axes, column: str, label: str, *, colours: Mapping[str, str]) -> None:
    """Draw residuals of the logarithm of the loss along one column."""
    from matplotlib.ticker import MaxNLocator

    ax.axhline(0.0, color="black", linewidth=0.6)
    _points(ax, rows, column, "residual_log", colours)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.set_xlabel(label)


def draw_quantiles(rows: Rows, ax: Axes, *, colours: Mapping[str, str]) -> None:
    """Draw standardised residuals against quantiles of a normal; on the line they agree."""
    at = [row[name] for row in rows for name in ("normal_quantile", "standardised")]
    ends = [min(at), max(at)]
    ax.plot(ends, ends, color="black", linewidth=0.6)
    _points(ax, rows, "normal_quantile", "standardised", colours)
    ax.set_xlabel("normal quantile")
    ax.set_ylabel("residual / its sd")


def draw_cells(rows: Rows, ax: Axes, *, colours: Mapping[str, str]) -> None:
    """Draw what the runs of every cell have in common, architectures beside each other."""
    place = {cell: i for i, cell in enumerate(dict.fromkeys(row["cell"] for row in rows))}
    effects = {(row["arch"], row["cell"]): row for row in rows}
    ax.axhline(0.0, color="black", linewidth=0.6)
    _points(ax, [{**row, "at": place[row["cell"]]} for row in effects.values()], "at", "cell_effect", colours)
    for line in ax.lines[1:]:
        line.set(markersize=3.2, alpha=1.0)
    named = len(place) <= NAMED_CELLS
    ax.set_xticks(
        list(place.values()) if named else [], [cut_middle(cell, 14) for cell in place] if named else []
    )
    ax.tick_params(axis="x", rotation=90, labelsize=5.5)
    ax.set_xlim(-0.7, len(place) - 0.3)
    ax.set_xlabel("" if named else f"{len(place)} cells, by size")


def noise_figure(frame: pd.DataFrame) -> Drawing:
    """Draw the residuals of a diagnosis in panels."""
    from matplotlib.ticker import MaxNLocator

    settings = frame.attrs["settings"]
    panel = part_rows(frame, "noise", "panel")
    colours = arch_colours(list(dict.fromkeys(row["arch"] for row in panel)), settings["reference"])
    along = [name for name in AXES if any(row.get(name) is not None for row in panel)][:3]
    figure, axes = new_figure(len(along) + 3, width=PAGE, height=4.2, rows=2)
    for ax, name in zip(axes, along, strict=False):
        draw_along_axis(panel, ax, name, AXES[name], colours=colours)
    fitted, quantiles, cells = axes[len(along) :]
    draw_along_axis(panel, fitted, "fitted", f"fitted loss, {settings['loss_unit']}", colours=colours)
    axes[0].yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes[0].yaxis.set_major_formatter(percent)
    for ax in (*axes[1 : len(along) + 1], cells):  # cell effects on the scale of what they are a part of
        ax.sharey(axes[0])
    for ax in axes[: len(along) + 1]:
        ax.set_ylabel("ln(measured/fitted)" if ax in (axes[0], fitted) else "")
    draw_quantiles(panel, quantiles, colours=colours)
    draw_cells(_by_size(panel), cells, colours=colours)
    cells.set_ylabel("cell effect")
    cells.set_title(_correlation(frame))
    figure.legend(*fitted.get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return Drawing(
        name="noise",
        figure=figure,
        rows=panel,
        caption=(
            "Residuals of ln(loss), a point per endpoint: along the columns of the law and the fitted loss, against "
            "quantiles of a normal (on the line they agree), and as effects of cells, shrunken as their reliability "
            f"asks. The correlation is that of cell means of {settings['target']} and {settings['reference']} with "
            f"its {100 * settings['level']:g} % interval."
        ),
    )


def noise_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Return the figure where the noise was looked at."""
    return [noise_figure(frame)] if part_rows(frame, "noise", "panel") else []


def _by_size(rows: Rows) -> list[Mapping[str, Any]]:
    """Return rows by size of their cell, then by sparsity."""
    size = next((name for name in AXES if rows[0].get(name) is not None), "fitted")
    first: dict[str, tuple[float, float]] = {}
    for row in rows:
        own = (round(row.get(size) or 0.0, 1), -(row.get("ln(1-S)") or 0.0))
        first[row["cell"]] = min(first.get(row["cell"], own), own)
    return sorted(rows, key=lambda row: (first[row["cell"]], row["cell"]))


def _correlation(frame: pd.DataFrame) -> str:
    settings = frame.attrs["settings"]
    named = {settings["target"], settings["reference"]}
    for row in part_rows(frame, "noise", "pairs"):
        if {row["first"], row["second"]} == named and row["cell_correlation"] is not None:
            ends = row["cell_correlation_lo"], row["cell_correlation_hi"]
            value = format_number(row["cell_correlation"], 2)
            return f"correlation {value} {format_interval(*ends, 'number', digits=2)}"
    return ""
