"""A design report for people: a line per quantity, a column per architecture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt_scaling.formatting import format_number, format_quantity
from smelt_scaling.reporting.document import Cell, Document, Grid
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["design_document"]

_UNITS = {
    "F": "FLOPs/token",
    "D": "tokens",
    "S": "",
    "C": "FLOPs",
    "TPP": "tokens per dense parameter",
}


def design_document(frame: pd.DataFrame) -> Document:
    """Describe a design report: a line per quantity, a column per architecture."""
    report, settings = plain_rows(frame), frame.attrs["settings"]
    rows: list[tuple[Cell, ...]] = []

    def line(name: str, texts: list[str]) -> None:
        rows.append((Cell(point=name), *(Cell(point=text) for text in texts)))

    line("endpoints", [str(row["endpoints"]) for row in report])
    line(f"{settings['unit']} labels", [str(row["cells"]) for row in report])
    for key, name in (
        ("scales", "scales"),
        ("tiers", "sparsity tiers"),
        ("horizons", "horizons (distinct D)"),
    ):
        if any(row[key] is not None for row in report):
            line(name, [str(row[key]) for row in report])
    for key in sorted(map(str, frame.columns)):
        if key.startswith("levels_"):
            line(f"levels for {key.removeprefix('levels_')}", [str(row[key]) for row in report])
    for name, unit in _UNITS.items():
        if f"{name}_lo" in frame.columns:
            write = format_quantity if name in ("F", "D", "C") else lambda x: format_number(x, 3)
            window = [f"{write(row[f'{name}_lo'])} to {write(row[f'{name}_hi'])}" for row in report]
            line(f"{name} ({unit})" if unit else name, window)
    line("parameters to fit", [str(row["parameters"]) for row in report])
    line("not identified", [", ".join(row["unidentified"]) or "none" for row in report])
    tiers = ", ".join(format_number(s, 3) for s in settings["sparsities"])
    caption = [f"Law {settings['law']}: {settings['formula']}."]
    if tiers:
        caption.append(f"Gains will be compared at S = {tiers}, the median of each tier over cells.")
    return Document(
        title=f"Design of {settings['source']}",
        caption=tuple(caption),
        grids=(
            Grid(
                headers=("", *(row["arch"] for row in report)),
                numeric=(False, *(False for _ in report)),
                rows=tuple(rows),
                side_by_side=True,
            ),
        ),
    )
