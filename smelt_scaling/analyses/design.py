"""What a table of endpoints can support, before any fit: everything about it in one report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.frames import Carried
from smelt_scaling.endpoints import Endpoints, default_sparsities
from smelt_scaling.errors import DataError, Note, info, merge_notes, warning
from smelt_scaling.laws import AdditiveLaw, get_law

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PARTS", "design_report"]

#: Tables of the report beside its rows, as lists of plain rows in ``attrs``.
PARTS = ("intake", "columns", "flops", "fairness", "tiers", "map")


def design_report(
    endpoints: Endpoints,
    law: str | AdditiveLaw = "sparse-additive",
    *,
    resample: str | None = None,
    flops_per_param: float = 6.0,
    tolerance: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Describe a table and its design without fitting it.

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
    tolerance : mapping of str to float, optional
        Largest deviations between paired budgets, as for `audit_fairness`.

    Returns
    -------
    DataFrame
        One row per architecture: ``arch, endpoints, cells, scales, tiers, horizons, parameters, unidentified``, the
        number of ``levels_...`` of every exponent's feature, the window (``F_lo, F_hi``, ...), and how well the design
        separates the parameters: ``condition, verdict`` with all of the law's, ``condition_fitted, verdict_fitted``
        without those a fit leaves out, and ``remedies``. Condition numbers are of the Jacobian of the log loss,
        features centred and columns at unit norm, at the best start of variable projection; infinite if a column
        vanishes.

        ``.attrs`` holds ``notes``, ``settings``, what to do ``next``, and further tables as lists of rows: ``intake``
        (rows in and out, ``read`` is the sum of the rest), ``columns`` (what each was in the file), ``flops`` (ratios
        of C, F, D and N), ``fairness`` (budgets of each architecture over those of the first by name), ``tiers`` and
        ``map`` (cells by horizons).

    Raises
    ------
    UsageError
        If a tolerance is invalid.
    DataError
        If a column of the law is missing, or no law can describe all rows of an architecture.

    Examples
    --------
    >>> from smelt_scaling.papers.example import example_endpoints
    >>> report = design_report(example_endpoints())
    >>> report[["arch", "endpoints", "cells", "levels_a", "levels_b", "levels_c"]].values.tolist()
    [['baseline', 72, 12, 4, 3, 6], ['smelt', 72, 12, 4, 3, 6]]
    >>> report["verdict"].tolist(), report.attrs["next"]["fit"]
    (['fine', 'fine'], True)
    >>> [row["endpoints"] for row in report.attrs["map"]] == 2 * 12 * 6 * [1]
    True
    """
    import pandas as pd

    from smelt_scaling.analyses.design_map import arch_codes, cell_map, tier_rows
    from smelt_scaling.analyses.fairness import audit_of
    from smelt_scaling.analyses.flops_check import flops_rows
    from smelt_scaling.analyses.intake_tables import column_rows, intake_rows
    from smelt_scaling.study.remarks import measured_apart
    from smelt_scaling.study.run import weighted_rows

    law = get_law(law)
    missing = [name for name in law.columns if name not in endpoints and name != "S"]
    if missing:
        raise DataError(endpoints.explain_missing(*missing))
    endpoints.require_one_law()  # what a fit would refuse, said before one is tried
    used, ignored = weighted_rows(endpoints)
    labels, unit = used._units(resample)  # codes: a million labels are not written out
    label = labels.codes.astype(np.intp)
    arch = arch_codes(used)
    rows = [
        _row(law, name, own, label[arch == number], flops_per_param)
        for number, (name, own) in enumerate(used.by_arch().items())
    ]
    first, *others = sorted(used.archs, key=lambda name: (name.casefold(), name))
    audits = [
        audit_of(used, name, first, tolerance, law_columns=law.columns, flops_per_param=flops_per_param)
        for name in others
    ]
    found, sparsities = cell_map(used), default_sparsities(used)
    frame = pd.DataFrame([row for row, _ in rows])
    notes = merge_notes(
        endpoints.notes,
        ignored,
        *(own for _, own in rows),
        _remarks(law, used, unit, resample is not None),
        measured_apart(used),
        *(audit.notes for audit in audits),
    )
    frame.attrs = {
        "notes": [note.to_dict() for note in notes],
        "settings": {
            "source": endpoints.source,
            "digest": endpoints.digest,
            "law": law.name,
            "formula": law.formula,
            "unit": unit,
            "sparsities": sparsities.tolist(),
            "flops_per_param": flops_per_param,
            "map": {"size": found.size, "length": found.length, "cells": found.cells, "shown": found.shown},
        },
        "intake": Carried(intake_rows(endpoints, used)),
        "columns": Carried(column_rows(endpoints)),
        "flops": Carried(flops_rows(used)),
        "fairness": Carried(row for audit in audits for row in audit.rows),
        "tiers": Carried(tier_rows(used, label, sparsities)),
        "map": Carried(found.rows),
        "next": _next(law, used, frame),
    }
    return frame


def _row(
    law: AdditiveLaw, arch: str, own: Endpoints, label: NDArray[np.intp], flops_per_param: float
) -> tuple[dict[str, Any], list[Note]]:
    """Return the row of one architecture and its notes; ``label`` codes the resampling labels."""
    from smelt_scaling.analyses.conditioning import assess
    from smelt_scaling.engine.design import exponent_levels, identify
    from smelt_scaling.fitting.estimate import frontier_columns

    columns = {name: own.S if name == "S" else own[name] for name in law.columns}
    found = identify(law, columns, {}, own.tiers)
    design = assess(law, own, columns, found)
    levels = exponent_levels(law, columns, own.tiers)
    row: dict[str, Any] = {
        "arch": arch,
        "endpoints": len(own),
        "cells": int(np.count_nonzero(np.bincount(label))),
        "scales": len(own._stored["scale"].present()) if "scale" in own else None,
        "tiers": len(np.unique(own.tiers)) if "S" in own else None,
        "horizons": len(np.unique(own.D)) if "D" in own else None,
        "parameters": len(law.parameters) - len(found.dropped_terms | found.dropped_exponents),
        "unidentified": list(found.reasons),
        **{f"levels_{name}": int(index.max()) + 1 for name, index in levels.items()},
    }
    for name, values in frontier_columns(law, own, flops_per_param).items():
        row |= {f"{name}_lo": float(values.min()), f"{name}_hi": float(values.max())}
    row |= {
        "condition": design.condition,
        "condition_fitted": design.condition_fitted,
        "verdict": design.verdict,
        "verdict_fitted": design.verdict_fitted,
        "remedies": list(design.remedies),
    }
    return row, [
        warning("not_identified", f"{arch}: {name} is not identified: {reason}")
        for name, reason in found.reasons.items()
    ]


def _remarks(law: AdditiveLaw, used: Endpoints, unit: str, asked: bool) -> list[Note]:
    """Return what holds for all architectures."""
    from smelt_scaling.study.remarks import row_note, why_not_by_row

    notes = []
    if "S" in law.columns and "S" not in used:
        notes.append(info("sparsity_absent", "no column S: every row is taken as S = 0", len(used)))
    if unit == "row" and not asked and (reason := why_not_by_row(used)):
        notes.append(warning("bootstrap_refused", f"a fit would give no interval: {reason}"))
    elif unit == "row":
        notes.append(row_note(used, "would be"))
    return notes


def _next(law: AdditiveLaw, used: Endpoints, report: pd.DataFrame) -> dict[str, Any]:
    """Say whether a fit has an answer to give, with which law, and why it is another one than was asked for."""
    if law.name == "sparse-additive" and not used.S.any():
        why = "every row is dense (S = 0)" if "S" in used else "no column S, so every row is taken as dense"
        return {"fit": True, "law": "additive", "reason": f"{why}: fit a law without S"}
    of_sparsity = {
        power.exponent for term in law.parsed.terms for power in term.powers if power.feature.names == ("S",)
    }
    lost = any(set(names) - of_sparsity for names in report["unidentified"])
    few = bool((report["endpoints"] < report["parameters"]).any())
    ready = not lost and not few and "not identified" not in set(report["verdict_fitted"])
    return {"fit": ready, "law": law.name, "reason": ""}
