"""Tables of the part on equal budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.document import Grid
from smelt_scaling.reporting.fairness import fairness_grids, pair_grids

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["budget_fairness_grids"]

_EFFECT = (
    Column(key="says", header="FLOPs counted"),
    Column(key="gain", header="compute saved", kind="percent", unreachable=True),
    Column(key="difference", header="points", kind="printed", absent=""),
    Column(key="reason", header="", optional=True),
)


def budget_fairness_grids(frame: pd.DataFrame) -> tuple[Grid, ...]:
    """Return the budgets by quantity and by pair, and the gain by every account of FLOPs."""
    effect = [
        {
            **row,
            "reason": row["reason"] or None,
            "difference": None if row["difference"] is None else f"{100 * row['difference']:+.1f}",
        }
        for row in frame.attrs["fairness_effect"]
    ]
    return (
        *fairness_grids(frame.attrs["fairness"]),
        *pair_grids(frame.attrs["fairness_pairs"]),
        make_grid(effect, _EFFECT, heading="The gain by each account of FLOPs"),
    )
