"""Recomputing published numbers from other published numbers, judged by the digits in which both are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from smelt_scaling.analyses import claims_dense, claims_smelt
from smelt_scaling.analyses.claims import Claim
from smelt_scaling.errors import Note
from smelt_scaling.papers import Paper
from smelt_scaling.papers.tables import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["reproduce"]

COLUMNS = (
    "table",
    "section",
    "row",
    "quantity",
    "published",
    "recomputed",
    "difference",
    "allowed",
    "agrees",
)

#: Tables that print results: the columns that name a row, and the columns that are results. Other tables are inputs.
RESULTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "ablation_depth": (("arch",), ("loss",)),
    "ablation_loops": (("loops",), ("loss", "dclm_core")),
    "ablation_span": (("looped_layers",), ("loss_85", "loss_95")),
    "allocations": (("arch", "budget", "status"), ("N", "D", "tokens_per_param", "loss")),
    "ce_gain": (("budget", "tier"), ("gain", "lo", "hi")),
    "coefficients": (("arch",), ("E", "A", "K", "B", "a", "b", "c", "alpha", "beta", "rmse")),
    "domains": (("domain",), ("gain",)),
    "gamma": (("arch",), ("gamma",)),
    "lengths": (("contrast",), ("ratio",)),
    "matching": (("budget",), ("largest_deviation",)),
    "predictions": (("arch", "budget"), ("loss",)),
    "probes": (("probe", "quantity"), ("low", "high", "mean")),
    "quartiles": (("quartile",), ("gain",)),
    "shots": (("task", "k"), ("baseline", "smelt", "gap_points")),
    "speedups": (("budget",), ("flop_multiplier", "wall_multiplier")),
    "tpp": (("budget", "tier", "arch"), ("tpp",)),
    "wins": (("metric",), ("wins", "calibration_r2")),
}

#: Table -> the claims it makes.
CLAIMS: Mapping[str, Callable[[Paper, Table], Iterator[Claim]]] = {
    "allocations": claims_dense.allocation_claims,
    "ce_gain": claims_smelt.gain_claims,
    "coefficients": claims_dense.pinned_fit_claims,
    "configurations": claims_smelt.configuration_claims,
    "gamma": claims_smelt.gamma_claims,
    "matching": claims_smelt.matching_claims,
    "predictions": claims_dense.prediction_claims,
    "recipe": claims_smelt.recipe_claims,
    "speedups": claims_dense.speedup_claims,
    "tpp": claims_smelt.tpp_claims,
}


def reproduce(paper: Paper) -> pd.DataFrame:
    """Recompute what a paper printed from its other printed numbers, and compare.

    A recomputed number agrees when it differs from the printed one by no more than printing explains: ``allowed`` is
    half a unit of the last printed digit, plus the rounding of the printed numbers it is computed from. The second part
    is computed, not chosen: every rounded input is moved up and down by half a unit of its own last digit, the quantity
    is evaluated again, and the larger changes of all inputs are added up. Budgets, counts, the sparsity at which a
    table is evaluated and coefficients that define a quantity are exact. Where a source cuts digits off (the token
    totals of a recipe) a whole unit is open; where it says "at most", only an excess disagrees.

    Parameters
    ----------
    paper : Paper
        A published set.

    Returns
    -------
    DataFrame
        One row per printed result: ``table, section, row, quantity, published`` (text as printed), ``recomputed,
        difference, allowed`` (floats in base units; percentages are fractions) and ``agrees``. Results that do not
        follow from other printed numbers, such as intervals and coefficients fitted to unpublished losses, have None
        there. ``.attrs`` holds ``notes`` (one ``not_recomputed`` per table, with its count) and ``settings``.

    Examples
    --------
    >>> from smelt_scaling.papers import load_paper
    >>> table = reproduce(load_paper("smelt"))
    >>> row = table[(table["table"] == "ce_gain") & (table["row"] == "1e21 85%")].iloc[0]
    >>> row["published"], round(row["recomputed"], 5), round(row["allowed"], 5), row["agrees"]
    ('18.0%', 0.17996, 0.01207, True)
    >>> int((table["agrees"] == False).sum())
    0
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    notes: list[Note] = []
    for name, table in paper.tables.items():
        claims = CLAIMS[name](paper, table) if name in CLAIMS else ()
        by_place = {(claim.row, claim.quantity): claim for claim in claims}
        # statements beside a table's grid, and cells of input tables, are listed if something claims them
        printed = _printed(table) | {place: claim.published for place, claim in by_place.items()}
        for (row, quantity), published in printed.items():
            claim = by_place.get((row, quantity))
            verdict = dict.fromkeys(COLUMNS[-4:]) if claim is None else claim.judge()
            place = {"table": name, "section": table.section, "row": row, "quantity": quantity}
            rows.append({**place, "published": published, **verdict})
        untested = len(printed) - len(by_place)
        if untested:
            message = f"{name}: {untested} of {len(printed)} printed results do not follow from other printed numbers"
            notes.append(Note(code="not_recomputed", severity="info", message=message, count=untested))
    frame = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)  # object keeps None apart from a number
    frame.attrs = {
        "notes": [note.to_dict() for note in notes],
        "settings": {"paper": paper.name, "title": paper.title, "source": paper.source},
    }
    return frame


def _printed(table: Table) -> dict[tuple[str, str], str]:
    """Return (row, quantity) -> text of a table's printed results."""
    keys, results = RESULTS.get(table.name, ((), ()))
    return {
        (" ".join(record[key] for key in keys), quantity): record[quantity]
        for record in table.records()
        for quantity in results
        if record.get(quantity)
    }
