"""Tables as HTML fragments: plain elements with classes, every text escaped, no style of their own."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from smelt_scaling.errors import Note
from smelt_scaling.reporting.document import Document, Grid

__all__ = ["to_html"]


def to_html(document: Document, notes: Sequence[Note] = ()) -> str:
    """Return a document as a ``section``, notes included.

    Examples
    --------
    >>> from smelt_scaling.reporting.document import Cell
    >>> grid = Grid(headers=("S", "saved"), numeric=(True, True), rows=((Cell(point="0.9"), Cell(point="5 %")),))
    >>> print(to_html(Document(title="A < B", caption=("In percent.",), grids=(grid,))))
    <section>
    <h2>A &lt; B</h2>
    <p>In percent.</p>
    <table>
    <thead><tr><th class="number">S</th><th class="number">saved</th></tr></thead>
    <tbody>
    <tr><td class="number">0.9</td><td class="number">5 %</td></tr>
    </tbody>
    </table>
    </section>
    <BLANKLINE>
    """
    lines = ["<section>", f"<h2>{escape(document.title)}</h2>"]
    lines += [f"<p>{escape(text)}</p>" for text in document.caption]
    for grid in document.grids:
        lines += _table(grid.with_remark_column())
    lines += [f'<p class="footnote">{escape(text)}</p>' for text in document.footnotes]
    if notes:
        items = (
            f'<li class="{note.severity}"><code>{escape(note.code)}</code> {escape(note.message)}</li>'
            for note in notes
        )
        lines += ['<ul class="notes">', *items, "</ul>"]
    return "\n".join([*lines, "</section>"]) + "\n"


def _table(grid: Grid) -> list[str]:
    head = "".join(
        _cell("th", header, numeric) for header, numeric in zip(grid.headers, grid.numeric, strict=True)
    )
    rows = [
        f"<tr>{''.join(_cell('td', str(cell), n) for cell, n in zip(cells, grid.numeric, strict=True))}</tr>"
        for cells in grid.rows
    ]
    caption = [f"<caption>{escape(grid.heading)}</caption>"] if grid.heading else []
    return ["<table>", *caption, f"<thead><tr>{head}</tr></thead>", "<tbody>", *rows, "</tbody>", "</table>"]


def _cell(tag: str, text: str, numeric: bool) -> str:
    kind = ' class="number"' if numeric else ""
    return f"<{tag}{kind}>{escape(text)}</{tag}>"
