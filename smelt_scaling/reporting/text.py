"""Plain text of fixed width, for a terminal of 80 columns and for pipes alike."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from smelt_scaling.formatting import WIDTH, fold
from smelt_scaling.reporting.document import Document, Grid

__all__ = ["to_text"]

GAP = "  "
#: No column is wrapped below this width.
NARROWEST = 12
#: Heads of columns wrap at these widths, in turn, where the table is too wide.
HEADS = (WIDTH, 20, 12)


def to_text(document: Document) -> str:
    """Return a document as text; columns of numbers are aligned on the right, with their interval beside."""
    blocks = [[*fold(document.title), *(line for text in document.caption for line in fold(text))]]
    for grid in document.grids:
        blocks.append([*fold(grid.heading), *_lines(grid)])
    blocks.append([line for text in document.footnotes for line in fold(text, indent="  ")])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _lines(grid: Grid) -> list[str]:
    """Return the lines of a table; one too wide is cut into blocks that repeat its first column."""
    narrow, total = _fitted(grid)
    if total > WIDTH and any(grid.redundant):
        return _lines(grid.at_most(len(grid.headers) - 1))
    if total > WIDTH and len(grid.headers) > 2:
        first, second = _halves(grid)
        return [*_lines(first), "", *_lines(second)]
    if total > WIDTH:  # a single column beside its heads: nothing is left but to wrap it
        narrow = _narrowed(narrow, grid.numeric)
    lines = _joined([wrapped[0] for wrapped in narrow])
    for i in range(len(grid.rows)):
        lines += _joined([wrapped[i + 1] for wrapped in narrow])
        if grid.remarks and grid.remarks[i]:
            lines += fold(grid.remarks[i], first=f"    {grid.remark_mark} ", indent="      ")
    return [*lines, *_legend(lines, grid)]


def _legend(lines: list[str], grid: Grid) -> list[str]:
    """Spell out the names that were shortened."""
    cut = {word[:-1] for line in lines for word in line.split() if word.endswith("…") and word != "…"}
    cells = [*grid.headers, *(cell.point for row in grid.rows for cell in row), *grid.remarks]
    full = dict.fromkeys(word for text in cells for word in text.split())
    return [
        line
        for word in full
        for stub in sorted(cut)
        if stub in word and f"{stub}…" not in word
        for line in textwrap.wrap(
            f"{stub}… is in {word}" if word[: len(stub)] != stub else f"{stub}… is {word}", WIDTH
        )
    ]


def _fitted(grid: Grid) -> tuple[list[list[list[str]]], int]:
    """Return every cell as lines, narrowed where the table is too wide, and the width reached."""
    for head in HEADS:
        columns = [_aligned(grid, j, head) for j in range(len(grid.headers))]
        if _total(columns) <= WIDTH:
            break
    narrow = columns if grid.side_by_side else _narrowed(columns, grid.numeric)
    return narrow, _total(narrow)


def _total(columns: Sequence[Sequence[Sequence[str]]]) -> int:
    widths = [len(column[0][0]) for column in columns]
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _halves(grid: Grid) -> tuple[Grid, Grid]:
    """Cut a grid where the first block still fits; its remarks stay with the first."""
    stop = next(
        (n for n in range(len(grid.headers) - 1, 2, -1) if _fitted(_chosen(grid, range(n)))[1] <= WIDTH), 2
    )
    first = _chosen(grid, range(stop))
    return first, replace(_chosen(grid, [0, *range(stop, len(grid.headers))]), remarks=())


def _chosen(grid: Grid, columns: Sequence[int]) -> Grid:
    return replace(
        grid,
        headers=tuple(grid.headers[j] for j in columns),
        numeric=tuple(grid.numeric[j] for j in columns),
        rows=tuple(tuple(row[j] for j in columns) for row in grid.rows),
        redundant=(),
    )


def _aligned(grid: Grid, j: int, widest: int) -> list[list[str]]:
    """Return a column, head first, each cell as lines padded to one width."""
    cells = [row[j] for row in grid.rows]
    paired = [cell for cell in cells if cell.beside] or cells  # a long word without interval moves no number
    width = max((len(cell.point) for cell in paired), default=0)
    texts = []
    for cell in cells:
        point = cell.point.rjust(width) if grid.numeric[j] else cell.point
        texts.append(f"{point} {cell.beside}" if cell.beside else point)
    head = fold(grid.headers[j], max(widest, max(map(len, texts), default=0))) or [""]
    # a narrow column of bare numbers stands under the end of its head, any other under its start
    bare = grid.numeric[j] and not any(cell.beside for cell in cells)
    total = max(len(text) for text in [*head, *texts])
    return [
        [text.rjust(total) if bare else text.ljust(total) for text in lines]
        for lines in [head, *([text] for text in texts)]
    ]


def _narrowed(columns: list[list[list[str]]], numeric: tuple[bool, ...]) -> list[list[list[str]]]:
    """Wrap the widest columns of text, to one width, where the table is too wide."""
    narrow = list(columns)
    widths = {j: len(columns[j][0][0]) for j, n in enumerate(numeric) if not n}
    excess = _total(columns) - WIDTH
    if excess <= 0 or not widths:
        return narrow
    width = next(
        (
            w
            for w in range(max(widths.values()), NARROWEST, -1)
            if sum(max(0, x - w) for x in widths.values()) >= excess
        ),
        NARROWEST,
    )
    for j in (j for j, wide in widths.items() if wide > width):
        folded = [fold(" ".join(line.strip() for line in cell), width) or [""] for cell in columns[j]]
        reached = max(len(line) for cell in folded for line in cell)
        narrow[j] = [[line.ljust(reached) for line in cell] for cell in folded]
    return narrow


def _joined(cells: list[list[str]]) -> list[str]:
    widths = [len(lines[0]) for lines in cells]
    return [
        GAP.join(
            line if line is not None else " " * width for line, width in zip(parts, widths, strict=True)
        ).rstrip()
        for parts in zip_longest(*cells)
    ]
