"""Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence

from smelt_scaling.errors import Note
from smelt_scaling.reporting.document import Document, Grid

__all__ = ["to_markdown"]


def to_markdown(document: Document, notes: Sequence[Note] = ()) -> str:
    """Return a document as markdown, notes included."""
    blocks = [f"**{_escaped(document.title)}**"]
    if document.caption:
        blocks.append(_escaped(" ".join(document.caption)))
    for grid in document.grids:
        blocks += [f"**{_escaped(grid.heading)}**"] if grid.heading else []
        blocks.append(_table(grid.with_remark_column()))
    blocks += [_escaped(text) for text in document.footnotes]
    if notes:
        blocks.append(
            "\n".join(f"- {note.severity} `{note.code}`: {_escaped(note.message)}" for note in notes)
        )
    return "\n\n".join(blocks) + "\n"


def _table(grid: Grid) -> str:
    rule = ["---:" if numeric else "---" for numeric in grid.numeric]
    lines = [_row([_escaped(header) for header in grid.headers]), _row(rule)]
    lines += [_row([_escaped(str(cell)) for cell in cells]) for cells in grid.rows]
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Escape what markdown would read as structure: cell borders, emphasis, links, HTML."""
    for mark in "\\|*_`<":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")
