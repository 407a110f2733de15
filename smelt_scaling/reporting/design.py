"""What a table of endpoints can support, before any fit: counts, levels, windows and identifiability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt_scaling.endpoints import Endpoints, default_sparsities
from smelt_scaling.errors import DataError, Note, merge_notes
from smelt_scaling.formatting import format_number, format_quantity
from smelt_scaling.laws import AdditiveLaw, get_law
from smelt_scaling.reporting.document import Cell, Document, Grid
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["design_document", "design_report"]

_UNITS = {
    "F": "FLOPs/token",
    "D": "tokens",
    "S": "",
    "C": "FLOPs",
    "TPP": "tokens per dense parameter",
}


def design_report(
    endpoints: Endpoints,
    law: str | AdditiveLaw = "sparse-additive",
    *,
    resample: str | None = None,
    flops_per_param: float = 6.0,
) -> pd.DataFrame:
    """Describe a design without fitting it.

    Parameters
    ----------
    endpoints : Endpoints
        The table.
    law : str or AdditiveLaw
        The law to be fitted.
    resample : str, optional
        The unit to be resampled.
    flops_per_param : float
        F = flops_per_param * N, for laws in N.

    Returns
    -------
    DataFrame
        One row per architecture: ``arch, endpoints, cells, scales, horizons, parameters, unidentified``, the number of
        ``levels_...`` of every exponent's feature, and the window (``F_lo, F_hi``, ...). ``.attrs`` holds ``notes`` and
        ``settings``.

    Raises
    ------
    DataError
        If a column of the law is missing.

    Examples
    --------
    >>> from smelt_scaling.papers.example import example_endpoints
    >>> report = design_report(example_endpoints())
    >>> report[["arch", "endpoints", "cells", "levels_a", "levels_b", "levels_c"]].values.tolist()
    [['baseline', 72, 12, 4, 3, 6], ['smelt', 72, 12, 4, 3, 6]]
    """
    import numpy as np
    import pandas as pd

    from smelt_scaling.engine.design import exponent_levels, identify
    from smelt_scaling.fitting.estimate import frontier_columns

    law = get_law(law)
    missing = [name for name in law.columns if name not in endpoints and name != "S"]
    if missing:
        raise DataError(endpoints.explain_missing(*missing))
    labels, unit = endpoints.cells(resample)
    rows: list[dict[str, Any]] = []
    notes: list[Note] = []
    for arch, own in endpoints.by_arch().items():
        columns = {name: own.S if name == "S" else own[name] for name in law.columns}
        found = identify(law, columns, {}, own.tiers)
        row: dict[str, Any] = {
            "arch": arch,
            "endpoints": len(own),
            "cells": len(np.unique(labels[endpoints.arch == arch])),
            "scales": len(np.unique(own["scale"])) if "scale" in own else None,
            "tiers": len(np.unique(own.tiers)) if "S" in own else None,
            "horizons": len(np.unique(own.D)) if "D" in own else None,
            "parameters": len(law.parameters) - len(found.dropped_terms | found.dropped_exponents),
            "unidentified": list(found.reasons),
        }
        row |= {
            f"levels_{name}": int(index.max()) + 1
            for name, index in exponent_levels(law, columns, own.tiers).items()
        }
        for name, values in frontier_columns(law, own, flops_per_param).items():
            row |= {f"{name}_lo": float(values.min()), f"{name}_hi": float(values.max())}
        rows.append(row)
        notes += [
            Note(
                code="not_identified",
                severity="warning",
                message=f"{arch}: {name} is not identified: {reason}",
            )
            for name, reason in found.reasons.items()
        ]
    if unit == "row":
        notes.append(
            Note(
                code="row_resampling",
                severity="warning",
                count=len(endpoints),
                message="no column cell, scale, trunk or run: single rows would be resampled; map one with --map "
                "run=COLUMN",
            )
        )
    frame = pd.DataFrame(rows)
    frame.attrs = {
        "notes": merge_notes(endpoints.notes, notes),
        "settings": {
            "source": endpoints.source,
            "digest": endpoints.digest,
            "law": law.name,
            "formula": law.formula,
            "unit": unit,
            "sparsities": default_sparsities(endpoints).tolist(),
            "flops_per_param": flops_per_param,
        },
    }
    return frame


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
            ),
        ),
    )
