"""What the head of a diagnosis says of the design."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.analyses.diagnostics.findings import Finding
from smelt_scaling.analyses.frames import records
from smelt_scaling.engine.design import CONDITION_REFUSE_INTERVALS, CONDITION_WARN
from smelt_scaling.formatting import format_interval, format_number

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["identifiability_findings"]

#: An exponent known to less than this, as half the width of its region over its value, is loose.
LOOSE = 0.25


def identifiability_findings(frame: pd.DataFrame) -> list[Finding]:
    """Return what the head of a diagnosis says of the design: its condition, its exponents, the floor."""
    rows = records(frame)
    fixes = [f"{issue['arch']}: {issue['fix']}" for issue in frame.attrs["issues"]]
    return [_of_design(rows, fixes), *_of_exponents(rows)]


def _of_design(rows: list[dict[str, Any]], fixes: list[str]) -> Finding:
    check = f"condition number of the design (above {CONDITION_WARN:.0e}: wide intervals)"
    shown = "; ".join(
        f"{row['arch']} {'infinite' if row['condition'] is None else format_number(row['condition'], 2)}"
        for row in rows
    )
    worst = max(np.inf if row["condition"] is None else row["condition"] for row in rows)
    lost = any(row["collinear"] or row["unidentified"] for row in rows)
    bound = any(row["at_bounds"] for row in rows)
    verdict: Any = "fine"
    if worst > CONDITION_REFUSE_INTERVALS or lost:
        verdict = "serious"
    elif worst > CONDITION_WARN or bound:
        verdict = "caution"
    return Finding(
        part="identifiability",
        check=check,
        value=shown,
        verdict=verdict,
        remedy="" if verdict == "fine" else "; ".join(dict.fromkeys(fixes)),
    )


def _of_exponents(rows: list[dict[str, Any]]) -> list[Finding]:
    check = "joint region of the exponents, cell effects taken into account"
    known = [row for row in rows if row["size"] is not None]
    if not known:
        reason = rows[0]["region_reason"]
        return [Finding(part="identifiability", check=check, value="none", verdict="unknown", remedy=reason)]
    said, loose = [], []
    for row in known:
        for kind, name in (("size", row["size_exponent"]), ("tokens", row["token_exponent"])):
            lo, hi, value = row[f"{kind}_lo"], row[f"{kind}_hi"], row[kind]
            ends = "open" if lo is None or hi is None else format_interval(lo, hi, "number", digits=3)
            said.append(f"{row['arch']} {name} {format_number(value, 3)} {ends}")
            if lo is None or hi is None or hi - lo > 2 * LOOSE * value:
                loose.append((kind, f"{row['arch']} {name}"))
    if not loose:
        return [Finding(part="identifiability", check=check, value="; ".join(said), verdict="fine")]
    more = {"size": "sizes", "tokens": "horizons"}
    wanted = " and ".join(dict.fromkeys(more[kind] for kind, _ in loose))
    remedy = f"{', '.join(name for _, name in loose)} loose: add cells at {wanted} farther apart"
    return [
        Finding(part="identifiability", check=check, value="; ".join(said), verdict="caution", remedy=remedy)
    ]
