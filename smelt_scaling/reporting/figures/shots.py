"""What examples in the context are worth: scores and their gap against the number of examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_interval, format_number
from smelt_scaling.reporting.figures.axes import percent_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.intervals import draw_intervals
from smelt_scaling.reporting.figures.labels import handfuls, numbered, shortened, thinned
from smelt_scaling.reporting.figures.style import COLUMN, MARKERS, PAGE, REFERENCE, TARGET, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_gap", "draw_scores", "shots_figures"]

Rows = Sequence[Mapping[str, Any]]


def draw_scores(rows: Rows, ax: Axes, *, target: str, reference: str) -> None:
    """Draw the scores of both architectures.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of `shot_gaps` of one metric.
    ax : Axes
        Where.
    target, reference : str
        Names for the legend.
    """
    for key, name, colour, marker in (
        ("reference", reference, REFERENCE, MARKERS[0]),
        ("target", target, TARGET, MARKERS[1]),
    ):
        score = [row[f"{key}_score"] for row in rows]
        ax.plot([row["k"] for row in rows], score, color=colour, marker=marker, label=shortened(name, 22, 1))
    _k_axis(rows, ax)


def draw_gap(rows: Rows, ax: Axes) -> None:
    """Draw the gap between them with its intervals, in points of a percentage."""
    points = [
        {key: None if row[key] is None else 100 * row[key] for key in ("gap", "gap_lo", "gap_hi")}
        for row in rows
    ]
    k = [row["k"] for row in rows]
    ax.plot(k, [100 * row["gap"] for row in rows], color=TARGET, linewidth=0.8, alpha=0.6)
    draw_intervals(ax, k, points, "gap", colour=TARGET, marker=MARKERS[1])
    ax.axhline(0.0, color="black", linewidth=0.6)
    _k_axis(rows, ax)


def _k_axis(rows: Rows, ax: Axes) -> None:
    ks = sorted({row["k"] for row in rows})
    ax.set_xscale("symlog", base=2, linthresh=1.0)
    ticks = [ks[i] for i in thinned(len(ks), 9)]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.margins(x=0.08)


def _jump(changes: Rows, metric: str) -> str:
    """Write the jump from no example to one, if there is one."""
    for row in changes:
        if (row["metric"], row["quantity"]) == (metric, "jump"):
            value, low, high = (
                None if row[key] is None else 100 * row[key] for key in ("change", "change_lo", "change_hi")
            )
            interval = "" if low is None else f" {format_interval(low, high, 'number', digits=3)}"
            return f"jump {format_number(value, 3)}{interval} points"
    return ""


def shots_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Draw a frame of `shot_gaps`: metrics side by side, scores above and gaps below."""
    settings, rows = frame.attrs["settings"], plain_rows(frame)
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    drawings = []
    for number, page in enumerate(handfuls(metrics, 3)):
        width = PAGE if len(page) > 1 else COLUMN
        figure, axes = new_figure(2 * len(page), width=width, height=3.6, rows=2, sharex="col")
        for place, metric in enumerate(page):
            own = [row for row in rows if row["metric"] == metric]
            above, below = axes[place], axes[place + len(page)]
            draw_scores(own, above, target=settings["target"], reference=settings["reference"])
            draw_gap(own, below)
            above.set_title(shortened(metric or "score", 30, 1))
            below.set_title(_jump(frame.attrs["changes"], metric))
            below.set_xlabel("examples in the context, k")
        percent_axis(axes[0], "score")
        for ax in axes[1 : len(page)]:
            percent_axis(ax, "")
        axes[len(page)].set_ylabel("gap, points")
        axes[0].legend(loc="best")
        caption = (
            f"Above: mean scores over tasks against the number of examples. Below: {settings['target']} minus "
            f"{settings['reference']}, the same tasks at every k; jump: gap(1) − gap(0)."
        )
        if any(row["gap_lo"] is not None for row in rows if row["metric"] in page):
            caption += (
                f" Bars: {100 * settings['level']:g} % intervals of {', '.join(settings['resampled'])}."
            )
        drawn = [row for row in rows if row["metric"] in page]
        drawings.append(Drawing(name=numbered("shots", number), figure=figure, rows=drawn, caption=caption))
    return drawings
