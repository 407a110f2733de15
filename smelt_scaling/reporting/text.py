"""Plain text of fixed width, for a terminal of 80 columns and for pipes alike."""

from __future__ import annotations

import textwrap
from itertools import zip_longest

from smelt_scaling.reporting.document import Document, Grid

__all__ = ["to_text"]

WIDTH = 80
GAP = "  "
#: No column is wrapped below this width.
NARROWEST = 12


def to_text(document: Document) -> str:
    """Return a document as text; columns of numbers are aligned on the right, with their interval beside."""
    blocks = [[*_wrapped(document.title), *(line for text in document.caption for line in _wrapped(text))]]
    for grid in document.grids:
        blocks.append([*_wrapped(grid.heading), *_lines(grid)])
    blocks.append([line for text in document.footnotes for line in _wrapped(text, indent="  ")])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _lines(grid: Grid) -> list[str]:
    columns = [_aligned(grid, j) for j in range(len(grid.headers))]
    narrow = _narrowed(columns, grid.numeric)
    lines = _joined([wrapped[0] for wrapped in narrow])
    for i in range(len(grid.rows)):
        lines += _joined([wrapped[i + 1] for wrapped in narrow])
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
    paired = [cell for cell in cells if cell.beside] or cells  # a long word without interval moves no number
    width = max((len(cell.point) for cell in paired), default=0)
    texts = []
    for cell in cells:
        point = cell.point.rjust(width) if grid.numeric[j] else cell.point
        texts.append(f"{point} {cell.beside}" if cell.beside else point)
    # a narrow column of bare numbers stands under the end of its head, any other under its start
    bare = grid.numeric[j] and not any(cell.beside for cell in cells)
    total = max(len(text) for text in [grid.headers[j], *texts])
    return [text.rjust(total) if bare else text.ljust(total) for text in [grid.headers[j], *texts]]


def _narrowed(columns: list[list[str]], numeric: tuple[bool, ...]) -> list[list[list[str]]]:
    """Return every cell as lines, the widest column of text wrapped where the table is too wide."""
    widths = [len(column[0]) for column in columns]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - WIDTH
    text = [j for j, number in enumerate(numeric) if not number]
    widest = max(text, key=lambda j: widths[j], default=None) if excess > 0 else None
    narrow = [[[cell] for cell in column] for column in columns]
    if widest is not None:
        width = max(NARROWEST, widths[widest] - excess)
        narrow[widest] = [
            [line.ljust(width) for line in textwrap.wrap(cell, width) or [""]] for cell in columns[widest]
        ]
    return narrow


def _joined(cells: list[list[str]]) -> list[str]:
    widths = [len(lines[0]) for lines in cells]
    return [
        GAP.join(
            line if line is not None else " " * width for line, width in zip(parts, widths, strict=True)
        ).rstrip()
        for parts in zip_longest(*cells)
    ]
