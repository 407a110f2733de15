"""A diagnosis for people: what was found, worst first in words, then the tables of every part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smelt_scaling.analyses.diagnostics.diagnosis import PARTS, part_frame
from smelt_scaling.errors import UsageError
from smelt_scaling.formatting import format_number, format_quantity
from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.diagnostics.fairness import budget_fairness_grids
from smelt_scaling.reporting.diagnostics.identifiability import identifiability_grids
from smelt_scaling.reporting.diagnostics.influence import influence_grids
from smelt_scaling.reporting.diagnostics.laws import compare_laws_grids
from smelt_scaling.reporting.diagnostics.noise import noise_anatomy_grids
from smelt_scaling.reporting.diagnostics.sensitivity import sensitivity_grids
from smelt_scaling.reporting.document import Document, Grid
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["GRIDS", "diagnosis_document"]

#: Part -> its tables.
GRIDS: dict[str, Callable[[pd.DataFrame], tuple[Grid, ...]]] = {
    "fairness": budget_fairness_grids,
    "sensitivity": sensitivity_grids,
    "influence": influence_grids,
    "noise": noise_anatomy_grids,
    "identifiability": identifiability_grids,
    "laws": compare_laws_grids,
}
FINDINGS = (
    Column(key="verdict", header=""),
    Column(key="check", header="what was looked at"),
    Column(key="value", header="what was found"),
)


def diagnosis_document(frame: pd.DataFrame, part: str | None = None) -> Document:
    """Describe a diagnosis.

    Parameters
    ----------
    frame : DataFrame
        What `diagnose` returned.
    part : str, optional
        One of its parts, with all of its tables; the findings alone by default.

    Raises
    ------
    UsageError
        For a part that is not in it.
    """
    settings = frame.attrs["settings"]
    rows = plain_rows(frame)
    where = f"{format_quantity(settings['budget'])} FLOPs of {settings['target']}"
    if settings["sparsity"] is not None:
        where += f" and S = {format_number(settings['sparsity'], 3)}"
    title = f"Diagnosis of the compute saved by {settings['target']} relative to {settings['reference']}"
    caption = (f"At {where}. {_counted(rows)}",)
    if part is None:
        return Document(title=title, caption=caption, grids=(_findings(rows),))
    if part not in GRIDS:
        raise UsageError(f"part {part!r} is unknown; choose from {', '.join(GRIDS)}")
    own = [row for row in rows if row["part"] == part]
    if part not in frame.attrs["parts"]:
        return Document(title=f"{title}: {part}", caption=caption, grids=(_findings(own),))
    return Document(
        title=f"{title}: {part}",
        caption=(*caption, f"{PARTS[part].says.capitalize()}."),
        grids=(_findings(own), *GRIDS[part](part_frame(frame, part))),
    )


def _findings(rows: list[dict[str, Any]]) -> Grid:
    """Return findings with what to do about each below it."""
    grid = make_grid(rows, FINDINGS)
    remarks = tuple(row["remedy"] or "" for row in rows)
    return replace(grid, remarks=remarks, remark_header="what to do", remark_mark="-")


def _counted(rows: list[dict[str, Any]]) -> str:
    """Count the verdicts, the worst first."""
    parts = []
    for verdict in ("serious", "caution", "unknown", "fine"):
        count = sum(row["verdict"] == verdict for row in rows)
        if count:
            parts.append(f"{count} {verdict}")
    return f"{', '.join(parts).capitalize()}." if parts else ""
