"""What a reader trips over: texts of a figure that are cut off, or lie on each other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg

#: Pixels by which boxes of glyphs may touch: their edges are rounded to whole pixels.
SLACK = 1.0


def _ticks(axis: Any) -> Iterator[Any]:
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    for tick in axis.get_major_ticks():
        if low - slack <= tick.get_loc() <= high + slack:
            yield from (tick.label1, tick.label2)


def _shown(texts: Any) -> list[Any]:
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def texts_of(ax: Any) -> list[Any]:
    """Return titles, labels, ticks in view and legends of one axes; colour bars are axes of their own."""
    legend = ax.get_legend()
    return _shown(
        [
            *(ax.title, ax.xaxis.label, ax.yaxis.label, *_ticks(ax.xaxis), *_ticks(ax.yaxis)),
            *([] if legend is None else [legend.get_title(), *legend.get_texts()]),
        ]
    )


def faults(figure: Any) -> list[str]:
    """Return what is wrong with the texts of a figure, a line each."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    page = figure.bbox.padded(SLACK)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    box = {text: text.get_window_extent(renderer) for ax in shown for text in texts_of(ax)}
    box |= {
        text: text.get_window_extent(renderer) for legend in figure.legends for text in legend.get_texts()
    }
    inner = {text: text.get_window_extent(renderer) for ax in shown for text in _shown(ax.texts)}
    cut = [
        f"{text.get_text()!r} is cut off"
        for text, of in {**box, **inner}.items()
        if not (page.contains(of.x0, of.y0) and page.contains(of.x1, of.y1))
    ]
    return cut + [
        f"{one.get_text()!r} lies on {other.get_text()!r}"
        for one, other in combinations(box, 2)
        if min(box[one].x1, box[other].x1) - max(box[one].x0, box[other].x0) > SLACK
        and min(box[one].y1, box[other].y1) - max(box[one].y0, box[other].y0) > SLACK
    ]


def without_letters(figure: Any) -> Any:
    """Hide every letter, which releases of matplotlib draw differently, and the room made for it."""
    from matplotlib.legend import Legend
    from matplotlib.text import Text

    figure.set_layout_engine("none")
    for ax in figure.axes:
        ax.tick_params(which="both", labelbottom=False, labelleft=False, labelright=False)
    for artist in (*figure.findobj(Text), *figure.findobj(Legend)):
        artist.set_visible(False)
    return figure
