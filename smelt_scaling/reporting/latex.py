"""LaTeX tables with booktabs rules; every special character of a name or unit is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smelt_scaling.errors import Note
from smelt_scaling.reporting.document import Document, Grid

__all__ = ["escape_latex", "to_latex"]

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "×": r"$\times$",
    "†": r"$^\dagger$",
}
_POWER = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?)e(-?\d+)(?![\w.])")


def to_latex(document: Document, notes: Sequence[Note] = ()) -> str:
    """Return a document as ``table`` floats; needs the package booktabs. Notes come as comments."""
    lines = [r"% \usepackage{booktabs}"]
    lines += [f"% {note.severity} [{note.code}] {' '.join(note.message.split())}" for note in notes]
    footnotes = [_text(text) for text in document.footnotes]
    for number, grid in enumerate(document.grids):
        title = (
            [document.title, *document.caption]
            if number == 0
            else [f"{document.title}: {grid.heading}" if grid.heading else document.title]
        )
        below = footnotes if number == 0 else []
        lines += _float(grid.with_remark_column(), ". ".join(text.rstrip(".") for text in title) + ".", below)
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    r"""Escape the characters LaTeX reads as commands.

    Examples
    --------
    >>> escape_latex("loss_50% of A&B #1")
    'loss\\_50\\% of A\\&B \\#1'
    """
    return "".join(_SPECIAL.get(character, character) for character in text)


def _text(text: str) -> str:
    return escape_latex(text.replace("\n", " "))


def _cell(text: str) -> str:
    """Set numbers as people write them: a thin space before the percent sign, powers of ten as powers."""
    escaped = _text(text).replace(r" \%", r"\,\%")
    return _POWER.sub(r"$\1 \\times 10^{\2}$", escaped)


def _float(grid: Grid, title: str, footnotes: list[str]) -> list[str]:
    kinds = "".join("r" if numeric else "l" for numeric in grid.numeric)
    rows = [
        " & ".join(
            _cell(str(cell)) if n else _plain(str(cell)) for cell, n in zip(row, grid.numeric, strict=True)
        )
        for row in grid.rows
    ]
    # a bracket that opens a row would be the optional argument of the line break before it
    rows = [f"{{[}}{row[1:]}" if row.startswith("[") else row for row in rows]
    return [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_text(title)}}}",
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        " & ".join(_text(header) for header in grid.headers) + r" \\",
        r"\midrule",
        *(rf"{row} \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\smallskip{{\footnotesize {text}}}" for text in footnotes),
        r"\end{table}",
    ]


def _plain(text: str) -> str:
    """Set a cell of text; lists of amounts are text too, names are not amounts."""
    return _cell(text) if re.fullmatch(r"[\d.e, +-]+", text) else _text(text)
