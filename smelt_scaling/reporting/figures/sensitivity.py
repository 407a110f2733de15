"""How far the gain moves with choices: a bar per choice, estimators in one panel and rows left out in the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.lines import (
    PITCH,
    draw_gains,
    draw_interval,
    gain_limits,
    name_lines,
    percent_across,
)
from smelt_scaling.reporting.figures.parts import headline_row, part_rows
from smelt_scaling.reporting.figures.style import PAGE, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_tornado", "sensitivity_figure", "sensitivity_figures"]

Rows = Sequence[Mapping[str, Any]]
#: Kinds of choices that are drawn -> title of their panel.
KINDS = {"estimator": "other estimators, rows in place", "rows": "rows left out"}
#: What stands before the name of a choice that does not say what is chosen.
BEFORE = {
    "delta": "Huber δ ",
    "flops": "FLOPs as ",
    "outliers": "outliers ",
    "residual": "residual ",
    "size": "size: ",
}
#: Between groups, in lines.
GAP = 0.6


def draw_tornado(rows: Rows, ax: Axes, *, own: float | None, limits: tuple[float, float]) -> list[float]:
    """Draw choices in groups, those that move the gain most on top; what the study did is the line they start at.

    Returns
    -------
    list of float
        Height of every bar.
    """
    weight = {id(row): abs(row["change"]) if row["change"] is not None else -1.0 for row in rows}
    groups = {row["group"]: 0.0 for row in rows}
    for row in rows:
        groups[row["group"]] = max(groups[row["group"]], weight[id(row)])
    ordered = sorted(rows, key=lambda row: (-groups[row["group"]], row["group"], -weight[id(row)]))
    at: list[float] = []
    for before, row in zip([None, *ordered], ordered, strict=False):
        apart = before is not None and before["group"] != row["group"]
        at.append(at[-1] + 1 + GAP * apart if at else 0.0)
    draw_gains(ordered, ax, at, own=own, limits=limits)
    name_lines(ax, at, [BEFORE.get(row["group"], "") + row["choice"] for row in ordered])
    percent_across(ax, "compute saved")
    return at


def sensitivity_figure(frame: pd.DataFrame) -> Drawing:
    """Draw the choices of a diagnosis against the gain of the study and its interval."""
    settings, own = frame.attrs["settings"], headline_row(frame)
    drawn = [row for row in part_rows(frame, "sensitivity") if row["kind"] in KINDS]
    tried = {kind: [row for row in drawn if row["kind"] == kind and not row["is_default"]] for kind in KINDS}
    tried = {kind: rows for kind, rows in tried.items() if rows}
    limits = gain_limits(drawn, own["gain"], own["gain_lo"], own["gain_hi"])
    figure, axes = new_figure(len(tried), width=PAGE, height=1.0)
    heights = [
        draw_tornado(rows, ax, own=own["gain"], limits=limits)
        for ax, rows in zip(axes, tried.values(), strict=True)
    ]
    lowest = max(at[-1] for at in heights)
    for ax, kind in zip(axes, tried, strict=True):
        ax.set_ylim(lowest + 0.7, -0.7)  # bars are as thick in both
        draw_interval(ax, own, label=f"{100 * settings['level']:g} % interval")
        ax.set_title(KINDS[kind])
    figure.set_size_inches(PAGE, 0.85 + PITCH * max(lowest + 1, 4))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return Drawing(
        name="sensitivity",
        figure=figure,
        rows=drawn,
        caption=(
            f"Compute saved by {settings['target']} relative to {settings['reference']} under choices that somebody "
            "else might have made. Bars start at the gain of the study (dashed). "
            f"Shaded: its {100 * settings['level']:g} % interval of the sampling of cells. Choices that ask another "
            "question are in the table only."
        ),
    )


def sensitivity_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Return the figure where the panel of choices was made."""
    rows = part_rows(frame, "sensitivity")
    some = any(row["kind"] in KINDS and not row["is_default"] for row in rows)
    return [sensitivity_figure(frame)] if some else []
