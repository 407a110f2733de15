"""The interval of the headline gain, for its parts to be compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smelt_scaling._json import finite_or_none
from smelt_scaling.analyses.diagnostics.headline import Headline
from smelt_scaling.analyses.gain import ce_gain
from smelt_scaling.analyses.side import IntervalKind
from smelt_scaling.study import Study

__all__ = ["NO_INTERVAL", "headline_row", "width_of"]

#: What to do where there is no interval to compare with.
NO_INTERVAL = "fit again with --bootstrap 2000, for an interval to compare with"


def headline_row(
    study: Study, headline: Headline, *, level: float = 0.95, interval: IntervalKind = "percentile"
) -> dict[str, Any]:
    """Return ``gain, gain_lo, gain_hi, draws, unreachable_draws`` of the headline, as `ce_gain` has them."""
    row = ce_gain(
        study,
        headline.budget,
        target=headline.target,
        reference=headline.reference,
        sparsities=headline.sparsity,
        level=level,
        interval=interval,
    ).to_dict("records")[0]
    gains = {
        name: None if row[name] is None else finite_or_none(row[name])
        for name in ("gain", "gain_lo", "gain_hi")
    }
    return gains | {name: int(row[name]) for name in ("draws", "unreachable_draws")}


def width_of(row: Mapping[str, Any]) -> float | None:
    """Return the width of the interval; None where there is none, or an end is out of reach."""
    lo, hi = row.get("gain_lo"), row.get("gain_hi")
    return None if lo is None or hi is None else float(hi - lo)
