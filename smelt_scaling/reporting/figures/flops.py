"""Where the FLOPs of a token go: one bar per model, a piece per term of its ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_quantity
from smelt_scaling.reporting.figures.axes import percent_axis
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.labels import shortened
from smelt_scaling.reporting.figures.style import COLUMN, CYCLE, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_terms", "flops_figures"]

Rows = Sequence[Mapping[str, Any]]
#: Terms beyond the colours repeat these, hatched.
HATCHES = ("", "////", "....", "xxxx")
#: Pieces of less than this are not written out.
LEAST = 0.045


def draw_terms(models: Mapping[str, Rows], ax: Axes) -> None:
    """Draw the shares of the terms of every model.

    Parameters
    ----------
    models : mapping of str to sequence of mapping
        Name -> rows of `flops_report`, the first on top.
    ax : Axes
        Where.
    """
    counted = [row for rows in models.values() for row in rows if row["training_flops"] > 0]
    looks = {
        term: (CYCLE[i % len(CYCLE)], HATCHES[i // len(CYCLE) % len(HATCHES)])
        for i, term in enumerate(dict.fromkeys(row["term"] for row in counted))
    }
    seen: set[str] = set()
    for place, rows in enumerate(models.values()):
        left = 0.0
        for row in rows:
            if row["training_flops"] <= 0:
                continue
            colour, hatch = looks[row["term"]]
            ax.barh(
                place,
                row["flops_share"],
                left=left,
                height=0.62,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0.5,
                label=None if row["term"] in seen else shortened(row["term"], 22, 1),
            )
            seen.add(row["term"])
            if row["flops_share"] >= LEAST:
                ax.text(
                    left + row["flops_share"] / 2,
                    place,
                    f"{100 * row['flops_share']:.0f}",
                    ha="center",
                    va="center",
                    fontsize=6,
                    color="white" if colour in ("#000000", "#0072B2") else "black",
                )
            left += row["flops_share"]
    names = [
        f"{shortened(name, 26)}\n{format_quantity(sum(row['training_flops'] for row in rows), 3)}"
        for name, rows in models.items()
    ]
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0.0, 1.0)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")


def flops_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Draw a frame of `flops_report`, with the model it was compared with; nothing where no term is counted."""
    settings = frame.attrs["settings"]
    models = {settings["model"]: plain_rows(frame)}
    if frame.attrs.get("compared"):
        models[settings["compare"]] = frame.attrs["compared"]
    models = {name: rows for name, rows in models.items() if any(row["training_flops"] > 0 for row in rows)}
    if not models:
        return []
    terms = {row["term"] for rows in models.values() for row in rows if row["training_flops"] > 0}
    height = 1.0 + 0.45 * len(models) + 0.14 * -(-len(terms) // 2)
    figure, axes = new_figure(1, width=COLUMN, height=height)
    draw_terms(models, axes[0])
    percent_axis(axes[0], "share of training FLOPs per token", "x")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, handlelength=1.0)
    return [
        Drawing(
            name="flops",
            figure=figure,
            rows=[{"model": name, **row} for name, rows in models.items() for row in rows],
            caption=(
                f"Training FLOPs per token by term, convention {settings['convention']}; below each model its sum. "
                "Numbers: percent."
            ),
        )
    ]
