"""What a design tells apart: where two exponents may lie together, and which coefficients trade off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.parts import part_rows
from smelt_scaling.reporting.figures.style import CELLS, COLUMN, MARKERS, PAGE, arch_colours, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    *("correlations_figure", "draw_correlations", "draw_regions", "exponents_figure"),
    "identifiability_figures",
]

Rows = Sequence[Mapping[str, Any]]
#: Contour -> line.
LINES = {"profile likelihood": "-", "draws": "--"}
#: Correlations beyond this stand in white on their colour.
DARK = 0.6


def draw_regions(points: Rows, rows: Rows, ax: Axes, *, colours: Mapping[str, str]) -> None:
    """Draw contours of two exponents, dotted where one did not close, and the optima of the likelihood.

    Parameters
    ----------
    points : sequence of mapping
        Points of the contours: ``arch, contour, size, tokens, closed``.
    rows : sequence of mapping
        One per architecture, with ``size`` and ``tokens`` of the optimum.
    ax : Axes
        Where.
    colours : mapping of str to str
        Architecture -> colour.
    """
    for number, (arch, colour) in enumerate(colours.items()):
        for contour, line in LINES.items():
            own = [row for row in points if (row["arch"], row["contour"]) == (arch, contour)]
            if not own:
                continue
            around = [*own, own[0]]
            x, y = (np.array([row[name] for row in around]) for name in ("size", "tokens"))
            closed = np.array([row["closed"] for row in around])
            if not closed.all():
                ax.plot(x, y, color=colour, linestyle=":", linewidth=0.7)
            x, y = (np.where(closed, values, np.nan) for values in (x, y))
            ax.plot(x, y, color=colour, linestyle=line, linewidth=0.9)
        for row in rows:
            if row["arch"] == arch and row["size"] is not None:
                marker = MARKERS[number % len(MARKERS)]
                ax.plot([row["size"]], [row["tokens"]], marker=marker, color=colour, markersize=3.6)
        ax.plot([], [], color=colour, marker=MARKERS[number % len(MARKERS)], label=arch)
    for contour, line in LINES.items():
        if any(row["contour"] == contour for row in points):
            ax.plot([], [], color="black", linestyle=line, linewidth=0.9, label=contour)


def draw_correlations(rows: Rows, ax: Axes) -> Any:
    """Draw a matrix of correlations as colours with their numbers.

    Parameters
    ----------
    rows : sequence of mapping
        ``first, second, correlation`` of every pair, once.
    ax : Axes
        Where.

    Returns
    -------
    QuadMesh
        For a colour bar.
    """
    names = list(dict.fromkeys(row["first"] for row in rows))
    matrix = np.eye(len(names))
    for row in rows:
        i, j = names.index(row["first"]), names.index(row["second"])
        matrix[i, j] = matrix[j, i] = row["correlation"]
    edges = np.arange(len(names) + 1) - 0.5
    mesh = ax.pcolormesh(edges, edges, matrix, cmap="RdBu_r", vmin=-1, vmax=1, **CELLS)
    ax.set_aspect("equal")
    ax.invert_yaxis()
    for i in range(len(names)):
        for j in range(len(names)):
            if i != j:
                text = f"{round(matrix[i, j], 2) + 0.0:.2f}"  # no -0.00
                colour = "white" if abs(matrix[i, j]) > DARK else "black"
                ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=5.5)
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.grid(False)
    return mesh


def exponents_figure(frame: pd.DataFrame) -> Drawing:
    """Draw where the exponents of size and of tokens may lie together."""
    settings = frame.attrs["settings"]
    rows, points = part_rows(frame, "identifiability"), part_rows(frame, "identifiability", "regions")
    colours = arch_colours(list(dict.fromkeys(row["arch"] for row in points)), settings["reference"])
    named = next(row for row in rows if row["size_exponent"] is not None)
    figure, (ax,) = new_figure(width=COLUMN, height=2.8)
    draw_regions(points, rows, ax, colours=colours)
    ax.set_xlabel(f"exponent of size, {named['size_exponent']}")
    ax.set_ylabel(f"exponent of tokens, {named['token_exponent']}")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return Drawing(
        name="exponents",
        figure=figure,
        rows=points,
        caption=(
            f"Joint {100 * settings['level']:g} % regions of the exponents of size and of tokens. Solid: profile of "
            "the likelihood with an effect per cell, its optimum marked; dotted where it did not close. Dashed: "
            "ellipse of the bootstrap draws."
        ),
    )


def correlations_figure(frame: pd.DataFrame) -> Drawing:
    """Draw how the coefficients of every architecture trade off."""
    rows = _centred(frame)
    archs = list(dict.fromkeys(row["arch"] for row in rows))
    reference = frame.attrs["settings"]["reference"]
    archs.sort(key=lambda arch: arch != reference)
    across = min(len(archs), 3)
    lines = -(-len(archs) // across)
    width = COLUMN if across == 1 else PAGE
    # squares, with room for a title above each and the bar on the right
    height = 0.4 + lines * (0.2 + (width - 0.8) / across)
    figure, axes = new_figure(len(archs), width=width, height=height, rows=lines)
    for arch, ax in zip(archs, axes, strict=True):
        mesh = draw_correlations([row for row in rows if row["arch"] == arch], ax)
        ax.set_title(arch)
    bar = figure.colorbar(mesh, ax=axes, pad=0.01, aspect=30)
    bar.set_label("correlation")
    return Drawing(
        name="correlations",
        figure=figure,
        rows=rows,
        caption=(
            "Correlations of the coefficients as for least squares, in centred coordinates: an amplitude is that of "
            "its term in the middle of the runs. Near 1 or -1 the runs determine one number and leave a trade-off."
        ),
    )


def identifiability_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Return the figures for which the diagnosis has numbers."""
    found = []
    if part_rows(frame, "identifiability", "regions"):
        found.append(exponents_figure(frame))
    if _centred(frame):
        found.append(correlations_figure(frame))
    return found


def _centred(frame: pd.DataFrame) -> list[dict[str, Any]]:
    rows = part_rows(frame, "identifiability", "correlations")
    return [row for row in rows if row["coordinates"] == "centred"]
