"""Loss and tokens per parameter along the compute-optimal frontier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.formatting import format_number
from smelt_scaling.reporting.figures.axes import compute_axis, hatch_outside, log_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.style import PAGE, arch_colours, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_along", "frontier_figure", "tokens_figure"]

Rows = Sequence[Mapping[str, Any]]
#: Tokens per parameter that Hoffmann et al. 2022 found for dense models.
CHINCHILLA = 20.0


def draw_along(rows: Rows, ax: Axes, key: str, *, colours: Mapping[str, str]) -> None:
    """Draw one quantity of `allocate` over budgets, a line and a band per architecture.

    Parameters
    ----------
    rows : sequence of mapping
        Rows of `allocate` at one sparsity.
    ax : Axes
        Where.
    key : str
        Column, with ``_lo`` and ``_hi`` where it has an interval.
    colours : mapping of str to str
        Architecture -> colour.
    """
    budgets = sorted({row["budget"] for row in rows})
    # hatched where no architecture has its optimum within its own runs
    inside = {row["budget"] for row in rows if not row["extrapolated"]}
    hatch_outside(ax, budgets, [budget not in inside for budget in budgets])
    for arch, colour in colours.items():
        own = [row for row in rows if row["arch"] == arch]
        if not own:
            continue
        x = np.array([row["budget"] for row in own])
        if own[0].get(f"{key}_lo") is not None:
            low, high = (np.array([row[f"{key}{end}"] for row in own], dtype=float) for end in ("_lo", "_hi"))
            ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(x, np.array([row[key] for row in own], dtype=float), color=colour, label=arch)
    compute_axis(ax)
    ax.set_xlim(budgets[0], budgets[-1])


def _panels(frame: pd.DataFrame, key: str, reference: str | None) -> tuple[Any, list[Any], list[Any], Any]:
    rows = plain_rows(frame)
    grid = list(dict.fromkeys(row["sparsity"] for row in rows))
    colours = arch_colours(list(dict.fromkeys(row["arch"] for row in rows)), reference)
    figure, axes = new_figure(len(grid), width=PAGE if len(grid) > 1 else 3.35, height=2.4, sharey=True)
    for ax, sparsity in zip(axes, grid, strict=True):
        draw_along([row for row in rows if row["sparsity"] == sparsity], ax, key, colours=colours)
        if sparsity is not None:
            ax.set_title(f"S = {format_number(sparsity, 3)}")
    return figure, axes, rows, colours


def _interval_words(frame: pd.DataFrame, rows: Rows, key: str) -> str:
    if not any(row.get(f"{key}_lo") is not None for row in rows):
        return ""
    return f" Bands: {100 * frame.attrs['settings']['level']:g} % intervals of the sampling of cells."


def frontier_figure(
    frame: pd.DataFrame, endpoints: pd.DataFrame | None = None, *, reference: str | None = None
) -> Drawing:
    """Draw L*(C) of every architecture, and its endpoints where they are given."""
    figure, axes, rows, colours = _panels(frame, "loss", reference)
    unit = frame.attrs["settings"]["loss_unit"]
    if endpoints is not None:
        tiers = sorted(endpoints["tier_sparsity"].dropna().unique()) if "tier_sparsity" in endpoints else []
        for number, ax in enumerate(axes):
            own = (
                endpoints
                if len(tiers) != len(axes)
                else endpoints[endpoints["tier_sparsity"] == tiers[number]]
            )
            for arch, colour in colours.items():
                points = own[own["arch"] == arch]
                ax.plot(points["C"], points["loss"], ".", color=colour, markersize=2.2, alpha=0.6)
    axes[0].set_ylabel(f"loss, {unit}")
    axes[0].legend(loc="best")
    return Drawing(
        name="frontier",
        figure=figure,
        rows=rows,
        caption=(
            f"Loss along the compute-optimal frontier.{_interval_words(frame, rows, 'loss')}"
            f"{' Dots: endpoints.' if endpoints is not None else ''} Hatched: optima outside the runs."
        ),
    )


def tokens_figure(frame: pd.DataFrame, *, reference: str | None = None) -> Drawing:
    """Draw compute-optimal tokens per parameter."""
    figure, axes, rows, _ = _panels(frame, "tokens_per_param", reference)
    low = min(CHINCHILLA, *(limit for ax in axes for limit in ax.dataLim.intervaly))
    for ax in axes:
        ax.set_yscale("log")
        ax.axhline(CHINCHILLA, color="black", linestyle=":", linewidth=0.8)
    axes[0].set_ylim(bottom=low / 1.3)
    log_axis(axes[0].yaxis)
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].annotate(
        "Chinchilla, 20", (0.02, CHINCHILLA), xycoords=("axes fraction", "data"), va="bottom", fontsize=6
    )
    axes[0].set_ylabel("tokens per parameter, D* / (F*/6)")
    axes[0].legend(loc="upper right")
    return Drawing(
        name="tokens",
        figure=figure,
        rows=rows,
        caption=(
            "Compute-optimal tokens per parameter; parameters are F*/6, those of a dense model of equal compute."
            f"{_interval_words(frame, rows, 'tokens_per_param')} Hatched: optima outside the runs."
        ),
    )
