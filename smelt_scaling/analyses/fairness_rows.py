"""Paired budgets in rows and words: every pair, every quantity over its pairs, and what must be said of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._json import finite_or_none
from smelt_scaling._schema import counted
from smelt_scaling.analyses.budget_pairs import QUANTITIES, BudgetPairs, Quantity, Ratio
from smelt_scaling.analyses.recount import Recount
from smelt_scaling.errors import Note, info, warning
from smelt_scaling.formatting import format_percent

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PAIR_COLUMNS", "fairness_notes", "pair_frame", "summary_row"]

Mask = NDArray[np.bool_]

#: A ratio this close to the tolerance is within it: 1.04 is no exact number in binary.
EDGE = 1e-9
#: Of a quantity that the law counts, and of any other.
COUNTED = "the law counts each model's own, so a gain stands"
UNCOUNTED = "a gain holds what that is worth: match them, or report both"

PAIR_COLUMNS = (
    *("target", "reference", "cell", "quantity", "column", "target_value", "reference_value"),
    *("deviation", "tolerance", "within", "spread", "horizons"),
)


def _over(ratio: Ratio, tolerance: float | None) -> Mask:
    limit = np.inf if tolerance is None else tolerance + EDGE
    return np.asarray(np.abs(ratio.deviation) > limit)


def pair_frame(pairs: BudgetPairs, ratio: Ratio, tolerance: Mapping[str, float]) -> pd.DataFrame:
    """Return the rows of one quantity, one per pair; see `audit_fairness`."""
    import pandas as pd

    allowed = tolerance.get(ratio.quantity.name)
    over, unknown = _over(ratio, allowed), np.isnan(ratio.deviation)
    whole = np.full(len(pairs), np.nan)
    return pd.DataFrame(
        {
            "target": pairs.target,
            "reference": pairs.reference,
            "cell": pairs.cells,
            "quantity": ratio.quantity.name,
            "column": ratio.column,
            "target_value": ratio.target,
            "reference_value": ratio.reference,
            "deviation": np.where(np.isfinite(ratio.deviation), ratio.deviation, np.nan),
            "tolerance": whole if allowed is None else np.full(len(pairs), allowed),
            "within": pd.Series(~over, dtype=object).mask(unknown | (allowed is None), None),
            "spread": np.where(np.isfinite(ratio.spread), ratio.spread, np.nan),
            "horizons": whole if ratio.horizons is None else ratio.horizons.astype(np.float64),
        },
        columns=list(PAIR_COLUMNS),
    )


def summary_row(pairs: BudgetPairs, quantity: Quantity, tolerance: Mapping[str, float]) -> dict[str, Any]:
    """Return the row of one quantity over all pairs."""
    ratio, allowed = pairs.ratios.get(quantity.name), tolerance.get(quantity.name)
    row: dict[str, Any] = {
        "target": pairs.target,
        "reference": pairs.reference,
        "quantity": quantity.name,
        "column": None,
        "pairs": 0,
        "unknown": len(pairs),
        "unpaired": pairs.unpaired,
        **dict.fromkeys(("lowest", "highest", "mean", "worst_cell", "worst")),
        "tolerance": allowed,
        "over": 0,
        "within": None,
        "spread": None,
    }
    if ratio is None:
        return row
    known = ~np.isnan(ratio.deviation)
    row |= {"column": ratio.column, "pairs": int(known.sum()), "unknown": int((~known).sum())}
    if not known.any():
        return row
    deviation, over = ratio.deviation[known], int(_over(ratio, allowed).sum())
    worst = int(np.nanargmax(np.abs(ratio.deviation)))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = float(np.expm1(np.log1p(deviation).mean()))
    return row | {
        "lowest": finite_or_none(float(deviation.min())),
        "highest": finite_or_none(float(deviation.max())),
        "mean": finite_or_none(mean),
        "worst_cell": pairs.cells[worst],
        "worst": finite_or_none(float(ratio.deviation[worst])),
        "over": over,
        "within": None if allowed is None else not over,
        "spread": finite_or_none(float(np.nanmax(ratio.spread))),
    }


def fairness_notes(
    pairs: BudgetPairs, rows: Iterable[Mapping[str, Any]], recount: Recount | None, by_law: Collection[str]
) -> list[Note]:
    """Say what is over its tolerance, and in what FLOPs are counted twice; ``by_law`` are quantities of the law."""
    both = f"{pairs.target} and {pairs.reference}"
    if not len(pairs):
        why = f"share no {pairs.unit} label" if pairs.unit else "have no column cell or scale to pair by"
        return [info("unaudited_budgets", f"{both} {why}: whether their budgets are equal is not known")]
    said = {quantity.name: quantity.said for quantity in QUANTITIES}
    notes = []
    for row in rows:
        if row["over"]:
            name = row["quantity"]
            worst = "from none" if row["worst"] is None else format_percent(row["worst"], sign=True)
            message = (
                f"{said[name]} of {both} differ by more than {100 * row['tolerance']:g} % in {row['over']} of "
                f"{counted(row['pairs'], 'pair')}, most in {row['worst_cell']} ({worst}); "
                f"{COUNTED if name in by_law else UNCOUNTED}"
            )
            notes.append(warning("unfair_budget", message, row["over"]))
    if recount is not None:
        message = (
            f"{recount.account} is {recount.target:.4g} for {pairs.target} and {recount.reference:.4g} for "
            f"{pairs.reference} ({counted(recount.pairs, 'pair')}): two accounts of FLOPs; "
            "ce-gain gives the gain by the other one as gain_at_matched_flops"
        )
        notes.append(warning("recounted_flops", message, recount.pairs))
    return notes
