"""What a second visit of the same layers does, set against chance and against what was measured beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.intervals import draw_intervals
from smelt_scaling.reporting.figures.labels import handfuls, shortened, thinned
from smelt_scaling.reporting.figures.style import COLUMN, CYCLE, MARKERS, PAGE, new_figure
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["draw_probe", "probes_figures"]

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class _Panel:
    """How a probe is drawn: along what, if the table keeps that apart; its axis; and what its references are."""

    along: tuple[str, ...]
    label: str
    logarithmic: bool = False
    chance: bool = True
    control: bool = True


#: Probe -> its panel; in the order of the page.
PANELS = {
    "routing": _Panel(along=("layer", "cell", "n"), label="experts chosen by both visits"),
    "write_norm": _Panel(
        along=("layer", "part"), label="norm written, second over first", logarithmic=True, control=False
    ),
    "write_cosine": _Panel(along=("layer", "part"), label="cosine of what the visits write"),
    "attention_cosine": _Panel(along=("part",), label="cosine of the visits", chance=False, control=False),
    "top_k": _Panel(along=("layer", "head", "cell", "visit"), label="top positions of both visits, share"),
    "sink": _Panel(along=("layer", "head", "visit"), label="attention on the first position", control=False),
}
#: Column -> what it is called.
NAMES = {"n": "experts to choose from", "part": "", "visit": "visit", "layer": "layer", "head": "head"}
#: Lines that have a colour, a marker and a place in the legend; where there are more, all are alike.
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
    known = [name for name in panel.along if name in (*by, "part", "visit", "n")]
    along = next((name for name in known if _count(rows, name) > 1), known[0])
    others = [
        name for name in ("part", "visit", "n", *by) if name != along and _count(rows, name) > 1
    ]
    places = list(dict.fromkeys(row[along] for row in rows))
    if along in ("layer", "head"):
        places.sort(key=_number)
    lines: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        lines.setdefault(tuple(row[name] for name in others), []).append(row)
    few = len(lines) <= NAMED
    for number, (key, line) in enumerate(lines.items()):
        own = sorted(line, key=lambda row: places.index(row[along]))
        colour = CYCLE[number % len(CYCLE)] if few else CYCLE[0]
        x = [places.index(row[along]) + (0.05 * (number - (len(lines) - 1) / 2) if few else 0.0) for row in own]
        ax.plot(x, [row["value"] for row in own], color=colour, linewidth=0.7, alpha=0.8 if few else 0.25)
        if few:
            label = ", ".join(_said(name, value) for name, value in zip(others, key, strict=True))
            draw_intervals(
                ax,
                x,
                own,
                "value",
                colour=colour,
                marker=MARKERS[number % len(MARKERS)],
                label=shortened(label, 26, 1) or None,
            )
        for shown, name, style in ((panel.chance, "chance", "--"), (panel.control, "control", ":")):
            if shown and (few or number == 0):
                # one level per place, as wide as the place, so that a single one is seen
                for at, row in zip(x, own, strict=True):
                    if row[name] is not None:
                        ax.plot([at - 0.3, at + 0.3], [row[name]] * 2, color=colour, linestyle=style, linewidth=0.8)
    if panel.logarithmic:
        from matplotlib.ticker import NullFormatter, ScalarFormatter

        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_minor_formatter(NullFormatter())
    ticks = thinned(len(places), 9)
    ax.set_xticks(ticks, [shortened(str(places[i]), 10, 2) for i in ticks])
    ax.set_xlim(-0.5, len(places) - 0.5)
    ax.set_xlabel(NAMES.get(along, along))
    ax.grid(False, axis="x")
    if any(ax.get_legend_handles_labels()[0]):
        ax.legend(loc="best")
