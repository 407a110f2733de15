"""Is the frontier of one architecture steeper? The difference of gamma with its interval from paired draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt_scaling.analyses.diagnostics.headline import Headline
from smelt_scaling.analyses.side import SAMPLED
from smelt_scaling.analyses.view import IntervalKind, View, ends
from smelt_scaling.errors import SmeltScalingError

__all__ = ["gamma_row"]

RESOLVED, UNRESOLVED, NO_INTERVAL = "resolved", "not resolved", "no interval"


def gamma_row(view: View, headline: Headline, *, interval: IntervalKind, level: float) -> dict[str, Any]:
    """Return gamma of both architectures and their difference.

    Parameters
    ----------
    view : View
        A study.
    headline : Headline
        Which two.
    interval, level
        As for `ce_gain`.

    Returns
    -------
    dict
        ``gamma_target, gamma_reference, difference`` (target minus reference), ``difference_lo, difference_hi``,
        ``z`` (difference over the standard deviation of its draws), ``draws``, ``positive_share`` of them,
        ``verdict`` (resolved, not resolved, no interval) and ``reason`` why there is no number or no interval.
    """
    row: dict[str, Any] = {
        "target": headline.target,
        "reference": headline.reference,
        **dict.fromkeys(
            ("gamma_target", "gamma_reference", "difference", "difference_lo", "difference_hi", "z", "draws")
        ),
        "positive_share": None,
        "verdict": NO_INTERVAL,
        "reason": "",
    }
    pair = (view.side(headline.target), view.side(headline.reference))
    try:
        view.require_frontier(pair)
        target, reference = (view.frontier(side.surface).exponent for side in pair)
    except SmeltScalingError as error:
        return row | {"reason": str(error)}
    row |= {
        "gamma_target": float(target),
        "gamma_reference": float(reference),
        "difference": float(target - reference),
    }
    replicates = [side.replicates(interval) for side in pair]
    drawn = None
    if replicates[0] is not None and replicates[1] is not None:
        of_target, of_reference = (view.frontier(one.surface).exponent for one in replicates if one)
        drawn = of_target - of_reference
    found = ends(np.asarray(target - reference), drawn, interval, level)
    if drawn is None or found is None:
        return row | {"reason": view.why_none(interval) or "too few draws"}
    lo, hi = (float(end) for end in found)
    if interval in SAMPLED:
        spread = float(np.std(drawn, ddof=1))
        row |= {
            "z": row["difference"] / spread if spread > 0 else None,
            "draws": len(drawn),
            "positive_share": float(np.mean(drawn > 0)),
        }
    verdict = UNRESOLVED if lo <= 0 <= hi else RESOLVED
    return row | {"difference_lo": lo, "difference_hi": hi, "verdict": verdict}
