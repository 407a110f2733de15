"""A fit as a table: coefficients with intervals, architectures side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt_scaling.fitting.summary import certificate_text, state_of
from smelt_scaling.formatting import format_interval, format_number
from smelt_scaling.reporting.document import Cell, Document, Grid
from smelt_scaling.study.summary import intervals_of

if TYPE_CHECKING:
    from smelt_scaling.study import Study

__all__ = ["coefficient_rows", "study_document"]

LEVEL = 0.95


def coefficient_rows(study: Study, level: float = LEVEL) -> list[dict[str, Any]]:
    """Return one row per architecture and coefficient: ``arch, parameter, value, lo, hi, state``.

    ``state`` is "fitted", "held" (by the user), "at bound" or "not identified"; the value of the last is None.
    """
    intervals = intervals_of(study, level)
    rows = []
    for arch, fit in study.fits.items():
        for name, value in fit.surface.coefficients.items():
            state = state_of(fit, name)
            drawn = state in ("fitted", "at bound")
            ends = intervals.get(arch, {}).get(name) if drawn else None
            rows.append(
                {
                    "arch": arch,
                    "parameter": name,
                    "value": None if state == "not identified" else float(value),
                    "lo": None if ends is None else ends[0],
                    "hi": None if ends is None else ends[1],
                    "state": state,
                }
            )
    return rows


def study_document(study: Study) -> Document:
    """Describe a study as one grid, a column per architecture."""
    found = {(row["arch"], row["parameter"]): row for row in coefficient_rows(study)}
    fits = list(study.fits.values())
    rows = [
        (Cell(point=name), *(_cell(found[fit.arch, name]) for fit in fits)) for name in study.law.parameters
    ]

    def line(name: str, texts: list[str]) -> None:
        rows.append((Cell(point=name), *(Cell(point=text) for text in texts)))

    line(f"rmse ({study.endpoints.loss_unit})", [format_number(fit.rmse, 3) for fit in fits])
    line("endpoints", [str(fit.n) for fit in fits])
    line(f"{study.bootstrap.unit} labels", [str(fit.n_cells) for fit in fits])
    line("certificate", [certificate_text(fit) for fit in fits])
    drawn = (
        f"{100 * LEVEL:g} % percentile intervals of {study.bootstrap.replicates} resamples: sampling of cells "
        "under this law only."
        if any(row["lo"] is not None for row in found.values())
        else "Point estimates, no intervals."
    )
    return Document(
        title=f"Fitted law {study.law.name}",
        caption=(f"{study.law.formula}.", drawn),
        grids=(
            Grid(
                headers=("", *(fit.arch for fit in fits)),
                numeric=(False, *(True for _ in fits)),
                rows=tuple(rows),
                side_by_side=True,
            ),
        ),
    )


def _cell(row: dict[str, Any]) -> Cell:
    if row["value"] is None:
        return Cell(point=row["state"])
    beside = "" if row["lo"] is None else format_interval(row["lo"], row["hi"], "number", digits=3)
    state = "" if row["state"] == "fitted" else f"({row['state']})"
    return Cell(point=format_number(row["value"]), beside=f"{beside} {state}".strip())
