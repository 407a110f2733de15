"""What a table of endpoints was in its file: rows in and out by reason, columns with their units and rules."""

from __future__ import annotations

import re
from typing import Any

from smelt_scaling._origin import Origin, origins
from smelt_scaling._schema import COLUMNS, UNITS
from smelt_scaling.endpoints import Endpoints

__all__ = ["column_rows", "intake_rows", "known_origins"]

#: Names under which people keep parameters without those of the embedding.
_WITHOUT_EMBEDDING = re.compile(r"(?:non|no|without|wo|ex)[-_ ]?emb", re.IGNORECASE)


def intake_rows(endpoints: Endpoints, weighted: Endpoints) -> list[dict[str, Any]]:
    """Count rows in and out; ``read`` is the sum of all others.

    Parameters
    ----------
    endpoints : Endpoints
        The table.
    weighted : Endpoints
        Those of its rows that a fit uses.

    Returns
    -------
    list of dict
        ``step`` ("read", "left_out", "kept"), ``code`` (of the note; "not_selected" for rows dropped with
        `Endpoints.select`) and ``rows``.
    """
    out = dict(endpoints.intake.left_out) if endpoints.intake else {}
    out["excluded_tier"] = sum(note.count for note in endpoints.notes if note.code == "excluded_tier")
    read = endpoints.intake.rows if endpoints.intake else len(endpoints) + sum(out.values())
    # a selection in Python leaves no note
    out["not_selected"] = max(0, read - sum(out.values()) - len(endpoints))
    out["zero_weight"] = len(endpoints) - len(weighted)
    left_out = [{"step": "left_out", "code": code, "rows": rows} for code, rows in out.items() if rows]
    kept = {"step": "kept", "code": None, "rows": len(weighted)}
    return [{"step": "read", "code": None, "rows": len(weighted) + sum(out.values())}, *left_out, kept]


def column_rows(endpoints: Endpoints) -> list[dict[str, Any]]:
    """Describe every column of the schema that a fit may use: where it stands, its unit, what was done to it.

    Returns
    -------
    list of dict
        ``name``, ``column`` (of the file, null if computed), ``unit`` (of the file), ``unit_declared``,
        ``schema_unit``, ``rule`` (what was computed), ``parsed`` (cells with a suffix) and ``meaning``, in words.
    """
    return [
        {
            "name": origin.name,
            "column": origin.column,
            "unit": origin.unit,
            "unit_declared": origin.declared,
            "schema_unit": COLUMNS[origin.name].unit,
            "rule": origin.rule,
            "parsed": origin.parsed,
            "meaning": _meaning(origin),
        }
        for origin in known_origins(endpoints)
    ]


def known_origins(endpoints: Endpoints) -> list[Origin]:
    """Return the origin of every column that a fit may use, also of C and S that the table does not hold."""
    known = list(endpoints.intake.columns if endpoints.intake else origins(endpoints.columns))
    if "C" not in endpoints.columns and "C" in endpoints:
        known.append(Origin(name="C", column=None, rule="F*D", unit="FLOPs"))
    if "S" not in endpoints:
        known.append(Origin(name="S", column=None, rule="0 in every row", unit="fraction"))
    order = list(COLUMNS)
    return sorted(known, key=lambda origin: order.index(origin.name))


def _meaning(origin: Origin) -> str:
    own = next(iter(UNITS.get(origin.name, ())), origin.unit)
    said = [
        COLUMNS[origin.name].description,
        "without embeddings, by its name"
        if origin.name in ("N", "N_act") and _WITHOUT_EMBEDDING.search(origin.column or "")
        else "",
        f"taken as {origin.rule}" if origin.rule else "",
        f"converted to {COLUMNS[origin.name].unit}" if origin.unit != own and origin.column else "",
        f"{origin.parsed} cells with suffixes or separators read as numbers" if origin.parsed else "",
    ]
    return "; ".join(text for text in said if text)
