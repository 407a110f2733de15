"""Is part of a gain a larger budget? Paired budgets, and the gain by every account of FLOPs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling.analyses.beside import reachable
from smelt_scaling.analyses.budget_pairs import QUANTITIES
from smelt_scaling.analyses.diagnostics.findings import Finding, Verdict
from smelt_scaling.analyses.diagnostics.headline import Headline, headline_of
from smelt_scaling.analyses.fairness import audit_fairness, audit_of
from smelt_scaling.analyses.frames import Carried, notes_of
from smelt_scaling.analyses.gain import gain_of
from smelt_scaling.analyses.recount import Recount
from smelt_scaling.analyses.view import view_of
from smelt_scaling.errors import SmeltScalingError, UsageError, merge_notes
from smelt_scaling.formatting import UNREACHABLE, format_percent
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["budget_fairness", "budget_fairness_findings"]

Row = Mapping[str, Any]

#: A tenth more parameters lowers the reducible loss by some 3 % (exponents near .35), which at a frontier exponent
#: near .24 is worth some 14 % of compute: as much as the gains that are claimed.
SERIOUS = 0.10
#: Points of gain between two accounts of FLOPs; the published gain is quoted to a tenth of a point.
MOVED_SERIOUS = 0.02

SAID = {quantity.name: quantity.said for quantity in QUANTITIES}
GIVE = {
    "flops": "name the FLOPs per token with --map F=COLUMN",
    "params": "name the parameters with --map N=COLUMN",
    "kv": "name the bytes of KV cache per token with --map kv=COLUMN",
}


def budget_fairness(
    study: Study,
    *,
    target: str | None = None,
    reference: str | None = None,
    budget: float | None = None,
    sparsity: float | None = None,
    tolerance: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Hold the budgets of paired models against each other, and say what their residual mismatch is worth.

    Parameters
    ----------
    study : Study
        Fitted architectures.
    target, reference, budget, sparsity : optional
        Which gain; see `headline_of`.
    tolerance : mapping of str to float, optional
        As for `audit_fairness`.

    Returns
    -------
    DataFrame
        One row per quantity, as ``attrs["fairness"]`` of `audit_fairness`; no row without pairs. ``.attrs`` holds
        ``notes``, ``settings``, the rows once more as ``fairness``, every pair as ``fairness_pairs``,
        ``unpaired_cells``, and ``fairness_effect``: ``account, says, gain`` (a fraction), ``unreachable, difference``
        from the first row, ``reason`` why there is none. The accounts are

        - ``fitted``: each model with the FLOPs that the law counts; the gain as it is reported.
        - ``equal``: what would be reported if paired models had been taken to cost the same, on geometric average.
          The difference is what a comparison by nominal budgets credits to the target for its larger ones.
        - ``recount``: FLOPs by the table's other account; only where there is one that differs.

    Raises
    ------
    UsageError
        If an argument is invalid, or there are published surfaces instead of a study.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> frame = budget_fairness(fit(example_endpoints(), bootstrap=0), sparsity=0.947)
    >>> [(row["account"], round(row["gain"], 3)) for row in frame.attrs["fairness_effect"]]
    [('fitted', 0.084), ('equal', 0.104)]
    """
    import pandas as pd

    if not isinstance(study, Study):
        raise UsageError("an audit of budgets needs the runs: give a study, not published surfaces")
    headline, notes = headline_of(study, target=target, reference=reference, budget=budget, sparsity=sparsity)
    named = {"target": headline.target, "reference": headline.reference}
    every = audit_fairness(study, **named, tolerance=tolerance)
    audit = audit_of(study, headline.target, headline.reference, tolerance)
    frame = pd.DataFrame(list(audit.rows))
    told = merge_notes(notes, notes_of(every))
    frame.attrs = {
        "notes": [note.to_dict() for note in told],
        "settings": {
            **named,
            "budget": headline.budget,
            "sparsity": headline.sparsity,
            "tolerance": audit.tolerance,
            "counted": list(audit.by_law),
        },
        "fairness": audit.rows,
        "fairness_pairs": Carried(_plain(row) for row in every.to_dict(orient="records")),
        "unpaired_cells": every.attrs["unpaired"],
        "fairness_effect": Carried(_effect(study, headline, audit.rows, audit.recount)),
    }
    return frame


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        str(key): None if isinstance(value, float) and np.isnan(value) else value
        for key, value in row.items()
    }


def _effect(
    study: Study, headline: Headline, rows: Sequence[Row], recount: Recount | None
) -> list[dict[str, Any]]:
    """Return the gain by every account of FLOPs."""

    def by(account: Recount) -> Callable[[], float]:
        def m() -> float:
            view = view_of(study)
            headline.of(study)  # refuses what has no gain
            frontiers = [
                view.frontier(view.side(arch).surface) for arch in (headline.target, headline.reference)
            ]
            at = None if headline.sparsity is None else np.array([headline.sparsity])
            budget = np.log([headline.budget])
            return float(account.log_multiplier(frontiers[0], frontiers[1], budget, at)[0])

        return m

    accounts: list[tuple[str, str, Callable[[], float]]] = [
        ("fitted", "each model's own, as the law counts them", lambda: headline.of(study))
    ]
    flops = next((row for row in rows if row["quantity"] == "flops"), None)
    if flops and flops["mean"] is not None and "F" in study.law.columns:
        # models that were taken for equal, while the target really spends 1 + mean times as much
        equal = Recount(account="", target=1 / (1 + flops["mean"]), reference=1.0, pairs=flops["pairs"])
        accounts.append(("equal", "taken as equal in every pair", by(equal)))
    if recount is not None:
        accounts.append(("recount", f"by the other account, {recount.account}", by(recount)))
    found: list[dict[str, Any]] = []
    for account, says, m in accounts:
        row: dict[str, Any] = {"account": account, "says": says, "gain": None, "unreachable": False}
        row |= {"difference": None, "reason": ""}
        try:
            value = float(reachable(np.array(m())))
        except SmeltScalingError as error:
            row["reason"] = str(error)
        else:
            row |= {"gain": gain_of(value), "unreachable": bool(np.isinf(value))}
        if found and row["gain"] is not None and found[0]["gain"] is not None:
            row["difference"] = row["gain"] - found[0]["gain"]
        found.append(row)
    return found


def budget_fairness_findings(frame: pd.DataFrame) -> list[Finding]:
    """Return what the head of a diagnosis says: FLOPs, parameters, KV cache, and a second account of FLOPs.

    A quantity over its tolerance is a caution, over `SERIOUS` it is serious; what the law counts for each model is a
    caution at most. Two accounts that move the gain by over `MOVED_SERIOUS` are serious.
    """
    rows = {row["quantity"]: row for row in frame.attrs["fairness"]}
    effect = {row["account"]: row for row in frame.attrs["fairness_effect"]}
    if not rows:
        remedy = "give models that are compared one label in a column cell"
        return [_finding("budgets", "no cells pair", "unknown", remedy)]
    by_law = frame.attrs["settings"]["counted"]
    found = [_of_quantity(rows[name], name in by_law) for name in ("flops", "params", "kv")]
    if _declared(rows):
        found[0] = _finding(
            "FLOPs per token",
            f"the same number in all {rows['flops']['pairs']} pairs, though the models differ",
            "unknown",
            "declared, not counted? Give measured FLOPs of the runs as a column C, or count F by configuration",
        )
    if "recount" in effect:
        found.append(_of_recount(effect["fitted"], effect["recount"]))
    return found


def _finding(check: str, value: str, verdict: Verdict, remedy: str = "") -> Finding:
    return Finding(part="fairness", check=check, value=value, verdict=verdict, remedy=remedy)


def _of_quantity(row: Row, counted: bool) -> Finding:
    name, check = row["quantity"], f"{SAID[row['quantity']]} of paired models"
    if not row["pairs"]:
        return _finding(check, "not audited", "unknown", GIVE[name])
    ends = [
        "from none" if end is None else format_percent(end, sign=True)
        for end in (row["lowest"], row["highest"])
    ]
    span = ends[0] if ends[0] == ends[1] else " to ".join(ends)
    partners = f", {row['unpaired']} cells have no partner" if row["unpaired"] else ""
    value = f"{span} in {row['pairs']} pairs{partners}"
    if not row["over"]:
        return _finding(check, value, "fine")
    serious = not counted and (row["worst"] is None or abs(row["worst"]) > SERIOUS)
    remedy = (
        "the law counts each model's own, so the gain stands; say so beside it"
        if counted
        else f"part of the gain may be that: match {row['worst_cell']} and the like, or report both"
    )
    limit = f"{row['over']} over {100 * row['tolerance']:g} %"
    return _finding(check, f"{value}, {limit}", "serious" if serious else "caution", remedy)


def _declared(rows: Mapping[str, Row]) -> bool:
    """Whether FLOPs are equal to the last digit in models that differ in something else."""
    flops = rows["flops"]
    others = [rows[name] for name in ("params", "active", "kv") if rows[name]["pairs"]]
    differ = any(row["lowest"] != 0.0 or row["highest"] != 0.0 for row in others)
    return bool(flops["pairs"]) and flops["lowest"] == flops["highest"] == 0.0 and differ


def _of_recount(fitted: Row, other: Row) -> Finding:
    shown = [UNREACHABLE if row["unreachable"] else format_percent(row["gain"]) for row in (fitted, other)]
    moved = other["difference"]
    return _finding(
        "gain by the table's other account of FLOPs",
        f"{shown[1]} instead of {shown[0]}",
        "caution" if moved is not None and abs(moved) <= MOVED_SERIOUS else "serious",
        "find out which was measured; report the gain by it, and leave the other column out",
    )
