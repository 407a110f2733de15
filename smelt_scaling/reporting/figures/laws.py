"""Tests of what two architectures share, their frontier exponents, and laws by errors on sizes left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.lines import GREY, PITCH, name_lines, percent_across, say
from smelt_scaling.reporting.figures.parts import part_rows
from smelt_scaling.reporting.figures.style import BLUE, COLUMN, PAGE, VERMILLION, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    *("draw_differences", "draw_gamma", "draw_law_errors", "draw_tests", "gamma_figure"),
    *("law_errors_figure", "law_figures", "law_tests_figure"),
]

Rows = Sequence[Mapping[str, Any]]
#: P below this stands at the end of the axis.
LEAST = 1e-3
#: Column of the tests -> label and marker.
PS: dict[str, tuple[str, dict[str, Any]]] = {
    "p_chi2": ("naive χ²", {"marker": "x", "color": GREY, "markersize": 3.6}),
    "p": ("simulated", {"marker": "o", "color": BLUE}),
    "p_holm": ("Holm", {"marker": "D", "color": VERMILLION, "markerfacecolor": "none"}),
}
#: Scheme -> colour, marker, and how far from the middle of its line.
SCHEMES = {
    "each size left out": (BLUE, "o", -0.17),
    "next size from all smaller": (VERMILLION, "s", 0.17),
}


def draw_tests(rows: Rows, ax: Axes, *, level: float) -> None:
    """Draw the P of every hypothesis on a logarithmic axis: simulated, by Holm, and the naive one."""
    ax.set_xscale("log")
    ax.set_xlim(LEAST / 1.6, 1.6)
    ax.axvline(1 - level, color="black", linewidth=0.8, linestyle="--")
    for y, row in enumerate(rows):
        if row["p"] is None:
            say(ax, "no P", y)
            continue
        if row["p_error"] is not None:
            ends = [max(row["p"] - row["p_error"], LEAST), min(row["p"] + row["p_error"], 1.0)]
            ax.plot(ends, [y, y], color=BLUE, linewidth=0.9)
        for key, (_, style) in PS.items():
            if row[key] is not None:
                ax.plot([max(row[key], LEAST)], [y], linestyle="none", **style)
                if row[key] < LEAST:
                    ax.plot([LEAST / 1.35], [y], "<", color=GREY, markersize=2)
    for label, style in PS.values():
        ax.plot([], [], linestyle="none", label=label, **style)
    name_lines(ax, range(len(rows)), [row["hypothesis"] for row in rows])
    ax.set_xlabel("P of the hypothesis")


def draw_gamma(row: Mapping[str, Any], ax: Axes) -> None:
    """Draw the difference of two frontier exponents with its interval."""
    ax.axvline(0.0, color="black", linewidth=0.6)
    ends = [row["difference_lo"], row["difference_hi"]]
    if None not in ends:
        ax.plot(ends, [0, 0], color=BLUE, linewidth=1.4)
    ax.plot([row["difference"]], [0], "o", color=BLUE, markersize=4)
    furthest = max(abs(x) for x in (row["difference"], *ends) if x is not None) or 0.01
    ax.set_xlim(-1.15 * furthest, 1.15 * furthest)
    name_lines(ax, [0], [row["verdict"]])
    ax.set_xlabel(f"γ of {row['target']} - γ of {row['reference']}")


def draw_law_errors(rows: Rows, ax: Axes) -> None:
    """Draw root mean square (filled) and mean (open) errors of laws on sizes left out."""
    ax.axvline(0.0, color="black", linewidth=0.6)
    _schemes(rows, ax, lambda row: row["rms_error"], filled=True)
    _schemes(rows, ax, lambda row: row["mean_error"], filled=False)
    percent_across(ax, "error of ln(loss): mean (open), rms (filled)")


def draw_differences(rows: Rows, ax: Axes) -> None:
    """Draw by how much mean absolute errors exceed those of the study's law, with intervals."""
    ax.axvline(0.0, color="black", linewidth=0.6)
    names = list(dict.fromkeys(row["law"] for row in rows))
    for row in rows:
        colour, _, off = SCHEMES[row["scheme"]]
        if row["difference_lo"] is not None:
            y = names.index(row["law"]) + off
            ax.plot([row["difference_lo"], row["difference_hi"]], [y, y], color=colour, linewidth=0.9)
    _schemes(rows, ax, lambda row: row["difference"], filled=True)
    percent_across(ax, "mean |error|, less that of the study's law")


def _schemes(rows: Rows, ax: Axes, value: Any, *, filled: bool) -> None:
    names = list(dict.fromkeys(row["law"] for row in rows))
    for scheme, (colour, marker, off) in SCHEMES.items():
        own = [row for row in rows if row["scheme"] == scheme and value(row) is not None]
        ax.plot(
            [value(row) for row in own],
            [names.index(row["law"]) + off for row in own],
            linestyle="none",
            marker=marker,
            color=colour,
            markerfacecolor=colour if filled else "white",
            markersize=3,
            label=scheme if filled else None,
        )


def law_tests_figure(frame: pd.DataFrame) -> Drawing:
    """Draw the tests of a diagnosis."""
    rows, level = part_rows(frame, "laws"), frame.attrs["settings"]["level"]
    figure, (ax,) = new_figure(width=COLUMN, height=0.9 + 1.4 * PITCH * len(rows))
    draw_tests(rows, ax, level=level)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return Drawing(
        name="law_tests",
        figure=figure,
        rows=rows,
        caption=(
            "P of what two architectures may share, from simulated data with effects of cells that obey it (bar: "
            "Monte-Carlo standard error), adjusted over the questions by Holm, and by χ² (naive: it takes the number "
            f"of cells for large). Dashed: {1 - level:.2g}. At the left end: {LEAST:g} or less."
        ),
    )


def gamma_figure(frame: pd.DataFrame) -> Drawing:
    """Draw the difference of the frontier exponents of a diagnosis."""
    rows, level = part_rows(frame, "laws", "gamma"), frame.attrs["settings"]["level"]
    figure, (ax,) = new_figure(width=COLUMN, height=0.9)
    draw_gamma(rows[0], ax)
    return Drawing(
        name="gamma",
        figure=figure,
        rows=rows,
        caption=(
            f"Difference of the frontier exponents γ with its {100 * level:g} % interval of the sampling of cells "
            "(paired draws). An interval that holds 0 does not resolve it."
        ),
    )


def law_errors_figure(frame: pd.DataFrame) -> Drawing:
    """Draw how well laws predict sizes that were left out."""
    rows, level = part_rows(frame, "laws", "laws"), frame.attrs["settings"]["level"]
    names = list(dict.fromkeys(row["law"] for row in rows))
    figure, axes = new_figure(2, width=PAGE, height=0.9 + 1.6 * PITCH * len(names), sharey=True)
    draw_law_errors(rows, axes[0])
    draw_differences(rows, axes[1])
    name_lines(axes[0], np.arange(len(names)).tolist(), names)
    axes[1].tick_params(axis="y", length=0)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return Drawing(
        name="law_errors",
        figure=figure,
        rows=rows,
        caption=(
            "Errors of ln(loss) on sizes that were left out. Left: root mean square (filled) and mean (open), which "
            "is negative where predictions are too low. Right: mean absolute error by cell, less that of the study's "
            f"law, with {100 * level:g} % t intervals over cells. A law that could not be tried has no point."
        ),
    )


def law_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Return the figures for which the diagnosis has numbers."""
    tests = [row for row in part_rows(frame, "laws") if row["p"] is not None]
    gamma = part_rows(frame, "laws", "gamma")
    laws = [row for row in part_rows(frame, "laws", "laws") if row["rms_error"] is not None]
    known = [row for row in gamma if row["difference"] is not None]
    drawn = ((law_tests_figure, tests), (gamma_figure, known), (law_errors_figure, laws))
    return [draw(frame) for draw, rows in drawn if rows]
