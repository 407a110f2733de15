"""Plain text of fixed width, for a terminal of 80 columns and for pipes alike."""

from __future__ import annotations

import textwrap

from smelt_scaling.reporting.document import Document, Grid

__all__ = ["to_text"]

WIDTH = 80
GAP = "  "


def to_text(document: Document) -> str:
    """Return a document as text; columns of numbers are aligned on the right, with their interval beside."""
    blocks = [[*_wrapped(document.title), *(line for text in document.caption for line in _wrapped(text))]]
    for grid in document.grids:
        blocks.append([*([grid.heading] if grid.heading else []), *_lines(grid)])
    blocks.append([line for text in document.footnotes for line in _wrapped(text, indent="  ")])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _lines(grid: Grid) -> list[str]:
    columns = [_aligned(grid, j) for j in range(len(grid.headers))]
    lines = [_joined([column[0] for column in columns])]
    for i in range(len(grid.rows)):
        lines.append(_joined([column[i + 1] for column in columns]))
        if grid.remarks and grid.remarks[i]:
            lines += textwrap.wrap(
                grid.remarks[i],
                WIDTH,
                initial_indent="    † ",
                subsequent_indent="      ",
                break_long_words=False,
                break_on_hyphens=False,
            )
    return lines


def _aligned(grid: Grid, j: int) -> list[str]:
    """Return a column, head first, padded to one width."""
    cells = [row[j] for row in grid.rows]
    width = max((len(cell.point) for cell in cells), default=0)
    texts = []
    for cell in cells:
        point = cell.point.rjust(width) if grid.numeric[j] else cell.point
        texts.append(f"{point} {cell.beside}" if cell.beside else point)
    # a narrow column of bare numbers stands under the end of its head, any other under its start
    bare = grid.numeric[j] and not any(cell.beside for cell in cells)
    total = max(len(text) for text in [grid.headers[j], *texts])
    return [text.rjust(total) if bare else text.ljust(total) for text in [grid.headers[j], *texts]]


def _joined(cells: list[str]) -> str:
    return GAP.join(cells).rstrip()
