"""LaTeX tables with booktabs rules; every special character of a name or unit is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smelt_scaling.errors import Note
from smelt_scaling.reporting.document import Document, Grid

__all__ = ["escape_latex", "to_latex"]

#: More columns do not fit the width of a page.
COLUMNS = 7

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
    "±": r"$\pm$",
    "…": r"\ldots{}",
}
#: A power of ten as amounts are printed, always with a decimal point.
_POWER = re.compile(r"(?<![\w.])(\d+\.\d+)e(-?\d+)(?!\w|\.\w)")
#: A remark longer than this would be wider than the page.
REMARK = 60
#: A number as it is printed: perhaps a sign, a power of ten, a suffix and a percent sign.
_NUMBER = re.compile(
    r"(?<![\w.$])(?P<times>×)?(?P<number>[-+]?\d[\d,]*(?:\.\d+)?)(?:e(?P<power>-?\d+))?"
    r"(?P<unit>[KMBT]?)(?P<percent> ?%)?(?![\w.])"
)


def to_latex(document: Document, notes: Sequence[Note] = ()) -> str:
    """Return a document as ``table`` floats; needs the package booktabs.

    Warnings stand below the first table, where readers see them; every note is a comment as well.
    """
    lines = [r"% \usepackage{booktabs}"]
    lines += [f"% {note.severity} [{note.code}] {' '.join(note.message.split())}" for note in notes]
    footnotes = [_text(text) for text in document.footnotes]
    footnotes += [_text(f"Note: {note.message.rstrip('.')}.") for note in notes if note.severity == "warning"]
    for number, grid in enumerate(document.grids):
        title = (
            [document.title, *document.caption, *([grid.heading] if grid.heading else [])]
            if number == 0
            else [f"{document.title}: {grid.heading}" if grid.heading else document.title]
        )
        below = footnotes if number == 0 else []
        lines += _float(grid.at_most(COLUMNS), ". ".join(text.rstrip(".") for text in title) + ".", below)
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
    """Escape text, in which only powers of ten are set as numbers: other digits may belong to names."""
    return _POWER.sub(r"$\1 \\times 10^{\2}$", escape_latex(text.replace("\n", " ")))


def _cell(text: str) -> str:
    r"""Set numbers in mathematics, so that a minus is one and a power of ten a power.

    Examples
    --------
    >>> _cell("-0.4 % [×1.09, 1.2e21]")
    '$-0.4\\,\\%$ [$\\times 1.09$, $1.2 \\times 10^{21}$]'
    """
    parts, done = [], 0
    for match in _NUMBER.finditer(text):
        number = match["number"].replace(",", "{,}")
        times = r"\times " if match["times"] else ""
        power = rf" \times 10^{{{match['power']}}}" if match["power"] else ""
        unit = rf"\,\mathrm{{{match['unit']}}}" if match["unit"] else ""
        percent = r"\,\%" if match["percent"] else ""
        parts += [
            _text(text[done : match.start()]),
            f"${times}{number}{power}{unit}{percent}$",
        ]
        done = match.end()
    return "".join([*parts, _text(text[done:])])


def _float(grid: Grid, title: str, footnotes: list[str]) -> list[str]:
    kinds = "".join("r" if numeric else "l" for numeric in grid.numeric)
    lines = []
    for i, row in enumerate(grid.rows):
        cells = [
            _cell(str(cell)) if n else _plain(str(cell)) for cell, n in zip(row, grid.numeric, strict=True)
        ]
        line = " & ".join(cells)
        # a bracket that opens a row would be the optional argument of the line break before it
        lines.append(rf"{{[}}{line[1:]} \\" if line.startswith("[") else rf"{line} \\")
        if grid.remarks and grid.remarks[i]:  # a column of its own would be wider than the page
            remark = _text(grid.remarks[i])
            kind = "l" if len(grid.remarks[i]) <= REMARK else r"p{0.8\textwidth}"
            lines.append(
                rf"\multicolumn{{{len(row)}}}{{{kind}}}{{\quad\footnotesize $^\dagger$ {remark}}} \\"
            )
    return [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_text(title)}}}",
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        " & ".join(_text(header) for header in grid.headers) + r" \\",
        r"\midrule",
        *lines,
        r"\bottomrule",
        r"\end{tabular}",
        *(rf"\par\smallskip{{\footnotesize {text}}}" for text in footnotes),
        r"\end{table}",
    ]


def _plain(text: str) -> str:
    """Set a cell of text; lists of amounts are text too, names are not amounts."""
    return _cell(text) if re.fullmatch(r"[\d.e, +†-]+", text) else _text(text)
