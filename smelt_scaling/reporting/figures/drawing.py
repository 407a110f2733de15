"""A drawn figure: its artists, the numbers it drew, and files of equal bytes for equal numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt_scaling.reporting.raw import to_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "Drawing", "write_drawing"]

FORMATS = ("pdf", "svg", "png")
#: What would tell one run from the next is left out of every file.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "ModDate": None, "Producer": None, "Creator": "smelt-scaling"},
    "svg": {"Date": None, "Creator": "smelt-scaling"},
    "png": {"Software": None},
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawing:
    """A figure with what it shows.

    Parameters
    ----------
    name : str
        Stem of its files.
    figure : Figure
        The artists.
    rows : sequence of mapping
        The numbers drawn, as the CSV beside it holds them.
    caption : str
        What it shows, with units and what bands mean, for the text below it.
    """

    name: str
    figure: Figure
    rows: Sequence[Mapping[str, Any]]
    caption: str


def write_drawing(drawing: Drawing, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a figure in every format, and the numbers it drew as CSV.

    Returns
    -------
    list of Path
        The files, the CSV last.
    """
    from smelt_scaling.reporting.figures.style import styled

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with styled():
        for form in formats:
            path = folder / f"{drawing.name}.{form}"
            drawing.figure.savefig(path, format=form, metadata=_METADATA[form])
            written.append(path)
    table = folder / f"{drawing.name}.csv"
    table.write_text(to_csv(drawing.rows), encoding="utf-8")
    return [*written, table]
