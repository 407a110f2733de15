"""What to run next: what every pair of runs is worth, what a sum of FLOPs buys, and which gains are found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.formatting import format_number, format_percent, format_quantity
from smelt_scaling.reporting.figures.axes import percent_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.lines import legend_above, percent_across
from smelt_scaling.reporting.figures.parts import table_rows
from smelt_scaling.reporting.figures.style import CELLS, COLUMN, CYCLE, MARKERS, PAGE, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    *("draw_found", "draw_power", "draw_spent", "draw_worth"),
    *("plan_figures", "plan_map_figure", "plan_power_figure", "plan_sequence_figure"),
]

Rows = Sequence[Mapping[str, Any]]
#: What worth per FLOP is drawn for.
UNIT = 1e21
#: Power that designs are asked for.
WANTED = 0.8


def draw_worth(rows: Rows, ax: Axes, key: str, *, times: float = 100.0) -> Any:
    """Draw a map over size and sparsity: at every place the set of horizons with the largest value.

    Parameters
    ----------
    rows : sequence of mapping
        Candidates of `plan`.
    ax : Axes
        Where.
    key : str
        Column.
    times : float
        What it is multiplied by.

    Returns
    -------
    QuadMesh
        For a colour bar.
    """
    sizes = sorted({row["F"] for row in rows})
    tiers = sorted({row["S"] for row in rows}, key=lambda s: s or 0.0)
    best: dict[tuple[int, int], Mapping[str, Any]] = {}
    for row in rows:
        place = tiers.index(row["S"]), sizes.index(row["F"])
        if place not in best or row[key] > best[place][key]:
            best[place] = row
    worth = np.full((len(tiers), len(sizes)), np.nan)
    for place, row in best.items():
        worth[place] = times * row[key]
    edges = (np.arange(count + 1) - 0.5 for count in (len(sizes), len(tiers)))
    mesh = ax.pcolormesh(*edges, worth, cmap="cividis", vmin=0.0, **CELLS)
    middle = (np.nanmax(worth) or 1.0) / 2
    for (i, j), row in best.items():
        mark = "" if row["in_box"] else "†"
        text = f"{format_number(worth[i, j], 2)}{mark}\n×{len(row['horizons'])}"
        colour = "black" if worth[i, j] > middle else "white"
        ax.text(j, i, text, ha="center", va="center", fontsize=5.5, color=colour, linespacing=1.1)
    ax.set_xticks(range(len(sizes)), [format_quantity(size, 2) for size in sizes])
    ax.set_yticks(range(len(tiers)), ["" if s is None else format_number(s, 3) for s in tiers])
    if len(sizes) > 6:
        ax.tick_params(axis="x", rotation=90)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.set_xlabel("F, training FLOPs per token")
    return mesh


def draw_spent(rows: Rows, ax: Axes) -> None:
    """Draw the standard error over FLOPs spent, a marker for every pair of runs that is bought."""
    from matplotlib.ticker import MaxNLocator

    x = [0.0, *(row["spent"] for row in rows)]
    y = [rows[0]["se_before"], *(row["se_after"] for row in rows)]
    ax.step(x, y, where="post", color="black", linewidth=0.7, zorder=2)
    ax.plot(x[:1], y[:1], "o", color="black", markerfacecolor="white", zorder=4, label="now")
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(_pair(row), []).append(row)
    for number, (name, own) in enumerate(kinds.items()):
        ax.plot(
            [row["spent"] for row in own],
            [row["se_after"] for row in own],
            linestyle="none",
            marker=MARKERS[number % len(MARKERS)],
            color=CYCLE[number % len(CYCLE)],
            markerfacecolor=CYCLE[number % len(CYCLE)] if number < len(CYCLE) else "white",
            label=f"{name}" + (f" ({len(own)} times)" if len(own) > 1 else ""),
            zorder=4,
        )
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel("training FLOPs spent, both architectures")
    ax.set_ylabel(r"standard error of ln($C_\mathrm{ref}/C$)")
    ax.set_ylim(0.0, 1.08 * max(y))


def _pair(row: Mapping[str, Any]) -> str:
    at = "" if row["S"] is None else f", S {format_number(row['S'], 3)}"
    horizons = len(row["horizons"])
    ends = f"{horizons} endpoint{'s' if horizons > 1 else ''}"
    return f"F {format_quantity(row['F'])}{at}, {ends}{'' if row['in_box'] else ' †'}"


def draw_power(rows: Rows, ax: Axes) -> None:
    """Draw power by the formula over the number of cells, a line per true gain."""
    from matplotlib.ticker import FixedLocator, NullLocator

    ax.axhline(WANTED, color="black", linewidth=0.6, linestyle="--")
    for number, gain in enumerate(sorted({row["gain"] for row in rows})):
        own = sorted((row for row in rows if row["gain"] == gain), key=lambda row: row["cells"])
        known = [row for row in own if row["power"] is not None]
        ax.plot(
            [row["cells"] for row in known],
            [row["power"] for row in known],
            marker=MARKERS[number % len(MARKERS)],
            color=CYCLE[number % len(CYCLE)],
            label=f"gain {format_percent(gain)}",
        )
    cells = sorted({row["cells"] for row in rows})
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(cells))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(cells, [str(count) for count in cells])
    ax.set_xlabel("cells")
    _power_axis(ax)


def draw_found(rows: Rows, ax: Axes) -> None:
    """Draw how often simulated worlds found a gain, with intervals of the counts, a line per number of cells."""
    ax.axhline(WANTED, color="black", linewidth=0.6, linestyle="--")
    for number, count in enumerate(sorted({row["cells"] for row in rows})):
        own = sorted((row for row in rows if row["cells"] == count), key=lambda row: row["gain"])
        colour = CYCLE[number % len(CYCLE)]
        x = [row["gain"] for row in own]
        for row in own:
            ax.plot([row["gain"]] * 2, [row["power_lo"], row["power_hi"]], color=colour, linewidth=0.8)
        marker = MARKERS[number % len(MARKERS)]
        ax.plot(x, [row["power"] for row in own], marker=marker, color=colour, label=f"{count} cells")
    percent_across(ax, "true gain")
    _power_axis(ax)


def _power_axis(ax: Axes) -> None:
    percent_axis(ax, "power")
    ax.set_ylim(-0.03, 1.03)
    legend_above(ax)


def plan_map_figure(frame: pd.DataFrame) -> Drawing:
    """Draw what a pair of runs is worth over size and sparsity, in all and per FLOP."""
    rows = plain_rows(frame)
    settings = frame.attrs["settings"]
    tiers = len({row["S"] for row in rows})
    figure, axes = new_figure(2, width=PAGE, height=1.0 + 0.3 * max(tiers, 2), sharey=True)
    for ax, key, times, title in (
        (axes[0], "reduction", 100.0, "standard error falls by, %"),
        (axes[1], "reduction_per_flop", 100.0 * UNIT, f"per {format_quantity(UNIT)} FLOPs, %"),
    ):
        mesh = draw_worth(rows, ax, key, times=times)
        figure.colorbar(mesh, ax=ax, pad=0.01, aspect=20)
        ax.set_title(title)
    axes[0].set_ylabel("sparsity S" if rows[0]["S"] is not None else "")
    away = " †: outside the runs, where it trusts the law." if any(not row["in_box"] for row in rows) else ""
    return Drawing(
        name="plan_map",
        figure=figure,
        rows=rows,
        caption=(
            "What one more pair of runs does to the standard error of ln(C_ref/C) of the gain of "
            f"{settings['target']} relative to {settings['reference']}, now "
            f"{format_number(rows[0]['se_before'], 3)}: at every size and sparsity with the set of horizons that does "
            f"most, as many endpoints as stand below (×).{away}"
        ),
    )


def plan_sequence_figure(frame: pd.DataFrame) -> Drawing:
    """Draw what a sum of FLOPs buys."""
    rows = table_rows(frame.attrs["sequence"])
    kinds = len({_pair(row) for row in rows})
    figure, (ax,) = new_figure(width=COLUMN, height=2.0 + 0.13 * (kinds + 1))
    draw_spent(rows, ax)
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center")
    away = " †: outside the runs, where it trusts the law." if any(not row["in_box"] for row in rows) else ""
    return Drawing(
        name="plan_sequence",
        figure=figure,
        rows=rows,
        caption=(
            f"What {format_quantity(frame.attrs['settings']['fund'])} FLOPs buy, each pair of runs the best given "
            f"those before.{away}"
        ),
    )


def plan_power_figure(frame: pd.DataFrame) -> Drawing:
    """Draw which gains a number of cells finds: by the formula, and in simulated worlds where there are any."""
    settings = frame.attrs["settings"]
    rows = [
        row
        for row in table_rows(frame.attrs["power"])
        if row["power"] is not None and (row["method"] == "simulation" or row["icc"] == settings["icc"])
    ]
    formula = [row for row in rows if row["method"] == "formula"]
    simulated = [row for row in rows if row["method"] == "simulation"]
    figure, axes = new_figure(
        1 + bool(simulated), width=PAGE if simulated else COLUMN, height=2.5, sharey=True
    )
    draw_power(formula, axes[0])
    worlds = ""
    if simulated:
        draw_found(simulated, axes[1])
        axes[1].set_ylabel("")
        worlds = f" Right: found in {simulated[0]['worlds']} simulated worlds each, with 95 % intervals of the counts."
    return Drawing(
        name="plan_power",
        figure=figure,
        rows=rows,
        caption=(
            f"How often a {100 * settings['level']:g} % interval lies above 0, by true gain and number of cells, "
            f"where cells share {format_percent(settings['icc'], 0)} of the noise; by the formula."
            f"{worlds} Dashed: {format_percent(WANTED, 0)}."
        ),
    )


def plan_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Return the figures for which the plan has numbers."""
    found = [plan_map_figure(frame)] if len(frame) else []
    if frame.attrs["sequence"]:
        found.append(plan_sequence_figure(frame))
    own = frame.attrs["settings"]["icc"]
    if any(
        row["method"] == "formula" and row["icc"] == own and row["power"] is not None
        for row in table_rows(frame.attrs["power"])
    ):
        found.append(plan_power_figure(frame))
    return found
