"""What a table of endpoints can support, before any fit: counts, levels, windows and identifiability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt_scaling.endpoints import Endpoints, default_sparsities
from smelt_scaling.errors import DataError, Note, info, merge_notes, warning
from smelt_scaling.laws import AdditiveLaw, get_law

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["design_report"]


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
    endpoints.require_one_law()  # what a fit would refuse, said before one is tried
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
            warning("not_identified", f"{arch}: {name} is not identified: {reason}")
            for name, reason in found.reasons.items()
        ]
    if "S" in law.columns and "S" not in endpoints:
        notes.append(info("sparsity_absent", "no column S: every row is taken as S = 0", len(endpoints)))
    if unit == "row":
        notes.append(
            warning(
                "row_resampling",
                "no column cell, scale, trunk or run: single rows would be resampled; if several rows share a run, "
                "name it with --map run=COLUMN",
                len(endpoints),
            )
        )
    frame = pd.DataFrame(rows)
    frame.attrs = {
        "notes": [note.to_dict() for note in merge_notes(endpoints.notes, notes)],
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
