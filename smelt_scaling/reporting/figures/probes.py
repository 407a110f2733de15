"""What a second visit of the same layers does, set against chance and against what was measured beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.intervals import draw_intervals
from smelt_scaling.reporting.figures.labels import shortened, thinned
from smelt_scaling.reporting.figures.style import COLUMN, CYCLE, MARKERS, PAGE, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_probe", "probes_figures"]

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class _Panel:
    """How a probe is drawn: along what, if the table keeps that apart; what tells colours apart; its references."""

    along: tuple[str, ...]
    apart: str
    label: str
    logarithmic: bool = False
    references: tuple[tuple[str, str], ...] = ()


CHANCE, CONTROL = ("chance", "--"), ("control", ":")
#: Probe -> its panel, in the order of the page.
PANELS = {
    "routing": _Panel(
        along=("layer", "cell", "n"),
        apart="n",
        label="experts chosen by both visits",
        references=(CHANCE, CONTROL),
    ),
    "write_norm": _Panel(
        along=("layer", "part"),
        apart="part",
        label="norm written, second over first",
        logarithmic=True,
        references=(CHANCE,),
    ),
    "write_cosine": _Panel(
        along=("layer", "part"),
        apart="part",
        label="cosine of what the visits write",
        references=(CHANCE, CONTROL),
    ),
    "attention_cosine": _Panel(along=("part",), apart="layer", label="cosine of the visits"),
    "top_k": _Panel(
        along=("layer", "head", "cell", "visit"),
        apart="cell",
        label="share of top positions of both",
        references=(CHANCE, CONTROL),
    ),
    # the control of a second visit is the first, which has rows of its own
    "sink": _Panel(
        along=("layer", "head", "visit"),
        apart="visit",
        label="attention on the first position",
        references=(CHANCE,),
    ),
}
#: Column -> what its axis is called, and its values in a legend.
NAMES = {
    "n": ("experts to choose from", "{} experts"),
    "part": ("part", "{}"),
    "visit": ("visit", "visit {}"),
    "cell": ("cell", "{}"),
    "layer": ("layer", "layer {}"),
    "head": ("head", "head {}"),
}
#: Up to so many lines each has a colour and intervals; of more, those that one column tells apart have colours.
NAMED = 7


def draw_probe(rows: Rows, ax: Axes, panel: _Panel, by: Sequence[str]) -> None:
    """Draw one probe: values with intervals, chance dashed, the control dotted.

    Parameters
    ----------
    rows : sequence of mapping
        Its rows of `probe_report`.
    ax : Axes
        Where.
    panel : _Panel
        How.
    by : sequence of str
        What the rows keep apart.
    """
    kept = [name for name in NAMES if name in ("n", "part", "visit", *by)]
    values = {name: list(dict.fromkeys(row[name] for row in rows)) for name in kept}
    possible = [name for name in panel.along if name in kept]
    along = next((name for name in possible if len(values[name]) > 1), possible[0])
    others = [name for name in kept if name != along and len(values[name]) > 1]
    lines: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        lines.setdefault(tuple(row[name] for name in others), []).append(row)
    few = len(lines) <= NAMED
    told = others if few else [name for name in others if name == panel.apart]
    colours: dict[tuple[Any, ...], int] = {}
    for number, (key, own) in enumerate(lines.items()):
        shown = tuple(value for name, value in zip(others, key, strict=True) if name in told)
        first = shown not in colours
        look = colours.setdefault(shown, len(colours))
        colour, marker = CYCLE[look % len(CYCLE)], MARKERS[look % len(MARKERS)]
        moved = 0.08 * (number - (len(lines) - 1) / 2) if few else 0.0
        x = [values[along].index(row[along]) + moved for row in own]
        value = [row["value"] for row in own]
        ax.plot(x, value, color=colour, linewidth=0.7, alpha=0.8 if few else 0.3)
        label = ", ".join(NAMES[name][1].format(_text(of)) for name, of in zip(told, shown, strict=True))
        if few:
            draw_intervals(ax, x, own, "value", colour=colour, marker=marker)
        else:
            ax.plot(x, value, linestyle="none", marker=marker, color=colour, markersize=1.8, alpha=0.4)
        if first and label:
            ax.plot([], [], color=colour, marker=marker, linewidth=0.7, label=shortened(label, 24, 1))
        for name, style in panel.references if first else ():
            # a dash as wide as its place, so that a single one is seen
            for row in own:
                if row[name] is not None:
                    at = values[along].index(row[along])
                    ends = [at - 0.3, at + 0.3]
                    ax.plot(ends, [row[name]] * 2, color=colour, linestyle=style, linewidth=0.8)
    if panel.logarithmic:
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    ticks = thinned(len(values[along]), 9)
    ax.set_xticks(ticks, [shortened(_text(values[along][i]), 9, 2) for i in ticks])
    ax.set_xlim(-0.6, len(values[along]) - 0.4)
    ax.set_xlabel(NAMES[along][0])
    ax.set_ylabel(panel.label)
    ax.margins(y=0.08)
    ax.grid(False, axis="x")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.3), ncols=2, columnspacing=1.0)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def probes_figures(frame: pd.DataFrame) -> list[Drawing]:
    """Draw a frame of `probe_report`, a panel per probe."""
    rows, settings = plain_rows(frame), frame.attrs["settings"]
    there = [name for name in PANELS if any(row["probe"] == name for row in rows)]
    if not there:
        return []
    lines = -(-len(there) // 3)
    width = PAGE if len(there) > 1 else COLUMN
    figure, axes = new_figure(len(there), width=width, height=2.5 * lines, rows=lines)
    for ax, name in zip(axes, there, strict=True):
        draw_probe([row for row in rows if row["probe"] == name], ax, PANELS[name], settings["by"])
    caption = "What the visits of looped layers share. Dashed: chance; dotted: the control of the probe."
    if any(row["value_lo"] is not None for row in rows):
        caption += (
            f" Bars: {100 * settings['level']:g} % intervals of documents and cells; without them where there are "
            f"more than {NAMED} lines."
        )
    return [Drawing(name="probes", figure=figure, rows=rows, caption=caption)]
