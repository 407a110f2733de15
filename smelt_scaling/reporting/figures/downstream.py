"""Scores of tasks against the loss, what is left of them at equal loss, and where the target wins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.intervals import draw_intervals
from smelt_scaling.reporting.figures.labels import handfuls, numbered, shortened, thinned
from smelt_scaling.reporting.figures.style import COLUMN, CYCLE, MARKERS, PAGE, REFERENCE, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["calibration_figures", "draw_calibration", "draw_strip", "draw_wins", "wins_figures"]

Rows = Sequence[Mapping[str, Any]]
#: The row that pools all scales.
ALL = "all"
#: Metrics of one page.
TOGETHER = 3
#: The numbers in a name, and what stands between them.
NUMBERS = re.compile(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)([KMBT]?)|(\D+)")
SUFFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
#: Scales of the target: those of the cycle but the colour of the reference.
SHADES = tuple(colour for colour in CYCLE if colour != REFERENCE)


def draw_calibration(points: Rows, curve: Rows, ax: Axes, *, target: str, scales: Sequence[str]) -> None:
    """Draw scores against the loss, which falls to the right, with the curve of the reference.

    Parameters
    ----------
    points, curve : sequence of mapping
        ``points`` and ``curve`` of `downstream` of one metric.
    ax : Axes
        Where.
    target : str
        Architecture that is marked by scale; the other one is the reference.
    scales : sequence of str
        Its scales, in order.
    """
    loss = [row["loss"] for row in curve]
    if any(row["score_lo"] is not None for row in curve):
        low, high = ([row[f"score{end}"] for row in curve] for end in ("_lo", "_hi"))
        ax.fill_between(loss, low, high, color=REFERENCE, alpha=0.2, linewidth=0)
    ax.plot(loss, [row["score"] for row in curve], color=REFERENCE, linewidth=0.9)
    own = [row for row in points if row["arch"] != target]
    _dots(own, ax, "loss", "score", colour=REFERENCE, marker=".", label=own[0]["arch"] if own else "")
    for number, scale in enumerate(scales):
        own = [row for row in points if row["arch"] == target and row["scale"] == scale]
        label = f"{target}, {scale}" if len(scales) <= 2 * len(SHADES) else ""
        _dots(own, ax, "loss", "score", **_look(number), label=label)
    if not ax.xaxis_inverted():
        ax.invert_xaxis()


def draw_strip(points: Rows, rows: Rows, ax: Axes, *, target: str) -> None:
    """Draw the residuals of the target by scale, with their means and the intervals of these.

    Parameters
    ----------
    points, rows : sequence of mapping
        ``points`` of `downstream` of one metric, and its rows, "all" among them.
    ax : Axes
        Where.
    target : str
        Architecture.
    """
    ordered = [row for row in rows if row["scale"] != ALL] + [row for row in rows if row["scale"] == ALL]
    for number, row in enumerate(ordered):
        own = [point for point in points if point["arch"] == target and point["scale"] == row["scale"]]
        # the dots of a scale side by side, so that equal ones are seen
        x = number + (np.linspace(-0.28, -0.08, len(own)) if len(own) > 1 else np.full(len(own), -0.18))
        y = [point["residual"] for point in own]
        look = _look(number)
        ax.plot(
            x,
            y,
            linestyle="none",
            marker=look["marker"],
            color=look["colour"],
            markersize=1.8,
            alpha=0.6,
            markeredgewidth=0,
        )
    draw_intervals(ax, [number + 0.12 for number in range(len(ordered))], ordered, "residual", colour="black")
    ax.axhline(0.0, color="black", linewidth=0.6)
    ticks = thinned(len(ordered), 9)
    names = [shortened(ordered[i]["scale"], 9, 2) for i in ticks]
    ax.set_xticks(ticks, names)
    ax.set_xlim(-0.5, len(ordered) - 0.5)
    ax.grid(False, axis="x")


def draw_wins(rows: Rows, ax: Axes, *, most: float) -> Any:
    """Draw by how much the target scores better at every cell and horizon.

    Parameters
    ----------
    rows : sequence of mapping
        ``differences`` of `downstream` of one metric.
    ax : Axes
        Where.
    most : float
        Difference at the ends of the scale of colours.

    Returns
    -------
    QuadMesh
        For a colour bar.
    """
    import matplotlib

    cells = sorted(
        {(row["scale"], row["cell"]) for row in rows}, key=lambda pair: [_natural(label) for label in pair]
    )
    of_cell: dict[str, list[Mapping[str, Any]]] = {cell: [] for _, cell in cells}
    for row in rows:
        of_cell[row["cell"]].append(row)
    # horizons of cells differ in tokens: columns are the first, second, ... of each
    width = max(map(len, of_cell.values()))
    tiles = np.full((len(cells), width), np.nan)
    for i, own in enumerate(of_cell.values()):
        ordered = sorted(own, key=lambda row: _natural(row["horizon"]))
        tiles[i, : len(ordered)] = [row["difference"] for row in ordered]
    colours = matplotlib.colormaps["PuOr_r"].with_extremes(bad="#ececec")
    x, y = np.arange(width + 1) - 0.5, np.arange(len(cells) + 1) - 0.5
    mesh = ax.pcolormesh(x, y, np.ma.masked_invalid(tiles), cmap=colours, vmin=-most, vmax=most)
    # a sign that print in grey keeps: where the target is not better
    for (i, j), value in np.ndenumerate(tiles):
        if np.isfinite(value) and value <= 0:
            ax.text(j, i, "−" if value < 0 else "0", ha="center", va="center", fontsize=6)
    ticks = thinned(len(cells), 16)
    ax.set_yticks(ticks, [shortened(cells[i][1], 16, 1) for i in ticks])
    ticks = thinned(width, 8)
    ax.set_xticks(ticks, [str(tick + 1) for tick in ticks])
    ax.set_ylim(len(cells) - 0.5, -0.5)
    ax.tick_params(length=0)
    ax.grid(False)
    return mesh


def _look(number: int) -> dict[str, str]:
    return {"colour": SHADES[number % len(SHADES)], "marker": MARKERS[1:][number % (len(MARKERS) - 1)]}


def _dots(rows: Rows, ax: Axes, x: str, y: str, *, colour: str, marker: str, label: str) -> None:
    ax.plot(
        [row[x] for row in rows],
        [row[y] for row in rows],
        linestyle="none",
        marker=marker,
        markersize=2.6,
        color=colour,
        alpha=0.75,
        markeredgewidth=0,
        label=shortened(label, 24, 1) if label else None,
    )


def _natural(label: str) -> list[tuple[int, float, str]]:
    """Return a key that sorts numbers within names by their size, those with a suffix of thousands too."""
    key = []
    for number, suffix, text in NUMBERS.findall(label):
        size = float(number) * SUFFIXES[suffix] if number else 0.0
        key.append((1, 0.0, text) if text else (0, size, ""))
    return key


def _scales(rows: Rows, metric: str) -> list[str]:
    return [row["scale"] for row in rows if row["metric"] == metric and row["scale"] != ALL]


def calibration_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Draw a frame of `downstream`: per metric the calibration, and residuals by scale."""
    settings, rows = frame.attrs["settings"], plain_rows(frame)
    target, reference = settings["target"], settings["reference"]
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    units = {row["metric"]: row["unit"] for row in frame.attrs["calibration"]}
    drawings = []
    for number, page in enumerate(handfuls(metrics, TOGETHER)):
        figure, axes = new_figure(2 * len(page), width=PAGE, height=2.2 * len(page) + 0.3, rows=len(page))
        drawn: list[dict[str, Any]] = []
        for place, metric in enumerate(page):
            left, right = axes[2 * place], axes[2 * place + 1]
            points, curve, own = (
                [row for row in table if row["metric"] == metric]
                for table in (frame.attrs["points"], frame.attrs["curve"], rows)
            )
            draw_calibration(points, curve, left, target=target, scales=_scales(rows, metric))
            draw_strip(points, own, right, target=target)
            unit = f", {units[metric]}" if units[metric] == "ln ppl" else ""
            left.set_ylabel(f"{shortened(metric, 26, 2)}, score{unit}")
            right.set_ylabel(f"score beyond the curve{unit}")
            drawn += _table(points, curve, own)
        axes[0].legend(loc="best", handletextpad=0.2)
        axes[-2].set_xlabel(f"loss, {settings['loss_unit']}")
        axes[-1].set_xlabel(f"scale of {shortened(target, 22, 1)}")
        caption = (
            f"Left: scores against the loss, the curve calibrated on {reference}"
            f"{', with its band' if settings['bootstrap'] else ''}. Right: how much better {target} scores than "
            f"{reference} would at its loss: endpoints, and their mean."
        )
        if settings["bootstrap"]:
            caption += (
                f" Bars and bands: {100 * settings['level']:g} % intervals by cells, calibrated anew in every "
                "resample, from 7 cells on."
            )
        drawings.append(
            Drawing(name=numbered("downstream", number), figure=figure, rows=drawn, caption=caption)
        )
    return drawings


def _table(points: Rows, curve: Rows, rows: Rows) -> list[dict[str, Any]]:
    """Return the numbers of both panels as rows of equal keys."""
    keys = ("drawn", "metric", "arch", "scale", "cell", "horizon", "loss")
    numbers = ("score", "score_lo", "score_hi", "residual", "residual_lo", "residual_hi")
    every = [{"drawn": "endpoint", **row} for row in points] + [{"drawn": "curve", **row} for row in curve]
    every += [{"drawn": "mean", "arch": row["target"], **row} for row in rows]
    return [{key: row.get(key) for key in (*keys, *numbers)} for row in every]


def wins_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Draw a frame of `downstream`: per metric, by how much the target is better at each cell and horizon."""
    settings, every = frame.attrs["settings"], frame.attrs.get("differences", [])
    metrics = list(dict.fromkeys(row["metric"] for row in every))
    won = {row["metric"]: row for row in frame.attrs["wins"] if row["pairs"] == ALL}
    drawings = []
    for number, page in enumerate(handfuls(metrics, TOGETHER)):
        cells = max(len({row["cell"] for row in every if row["metric"] == metric}) for metric in page)
        height = 0.9 + 0.13 * min(max(cells, 6), 24)
        figure, axes = new_figure(len(page), width=PAGE if len(page) > 1 else COLUMN, height=height)
        for ax, metric in zip(axes, page, strict=True):
            own = [row for row in every if row["metric"] == metric]
            most = max(abs(row["difference"]) for row in own) or 1.0
            mesh = draw_wins(own, ax, most=most)
            bar = figure.colorbar(mesh, ax=ax, pad=0.03, aspect=25)
            bar.ax.yaxis.set_major_formatter("{x:.2g}")
            ax.set_title(f"{shortened(metric, 22, 1)}: better in {won[metric]['wins']} of {won[metric]['n']}")
            ax.set_xlabel("horizon, the shortest first")
        drawings.append(
            Drawing(
                name=numbered("downstream_wins", number),
                figure=figure,
                rows=[row for row in every if row["metric"] in page],
                caption=(
                    f"Score of {settings['target']} minus that of {settings['reference']} at every cell and horizon, "
                    "positive where it is better; marked where it is not."
                ),
            )
        )
    return drawings
