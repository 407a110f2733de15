"""Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence

from smelt_scaling.errors import Note
from smelt_scaling.reporting.document import Document, Grid

__all__ = ["escape_markdown", "to_markdown"]


def to_markdown(document: Document, notes: Sequence[Note] = ()) -> str:
    """Return a document as markdown, notes included."""
    blocks = [f"**{escape_markdown(document.title)}**"]
    if document.caption:
        blocks.append(escape_markdown(" ".join(document.caption)))
    for grid in document.grids:
        blocks += [f"**{escape_markdown(grid.heading)}**"] if grid.heading else []
        blocks.append(_table(grid.with_remark_column()))
    blocks += [escape_markdown(text) for text in document.footnotes]
    if notes:
        blocks.append(
            "\n".join(f"- {note.severity} `{note.code}`: {escape_markdown(note.message)}" for note in notes)
        )
    return "\n\n".join(blocks) + "\n"


def _table(grid: Grid) -> str:
    rule = ["---:" if numeric else "---" for numeric in grid.numeric]
    lines = [_row([escape_markdown(header) for header in grid.headers]), _row(rule)]
    lines += [_row([escape_markdown(str(cell)) for cell in cells]) for cells in grid.rows]
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape_markdown(text: str) -> str:
    r"""Escape what markdown would read as structure: cell borders, emphasis, code, HTML.

    Examples
    --------
    >>> print(escape_markdown("D* / (F*/6) of loss_50"))
    D\* / (F\*/6) of loss\_50
    """
    for mark in "\\|*_`<":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")
