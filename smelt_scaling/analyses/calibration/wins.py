"""How often the target beats the reference at the same cell and horizon: a share whose sample is the cell."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._json import finite_or_none
from smelt_scaling.analyses.calibration.cells import clusters, flip_test, wilson
from smelt_scaling.analyses.calibration.scores import Scores

__all__ = ["RESTRICTIONS", "difference_rows", "win_rows"]

Array = NDArray[np.float64]

#: Which pairs count: all; those whose reference is so far above chance; those whose mean is.
RESTRICTIONS = ("all", "reference above chance", "mean above chance")


def win_rows(
    scores: Scores, target: str, reference: str, metric: str, *, margin: float, level: float, seed: int
) -> tuple[list[dict[str, Any]], int]:
    """Return the counts of one metric, one row per restriction, and how many repeats were averaged.

    Restricting on the reference alone keeps the pairs in which it was lucky, which is conservative for the target; the
    mean of both treats them alike.
    """
    sign = _sign(scores, metric)
    keys, mine, theirs, averaged = _paired(scores, target, reference, metric)
    cell = np.array([key[0] for key in keys], dtype=np.str_)
    chance = scores.chance[scores.metric == metric]
    known = chance[~np.isnan(chance)]
    rows = []
    for restriction in RESTRICTIONS:
        if restriction == "all":
            kept = np.ones(len(keys), dtype=np.bool_)
        elif not len(known):
            continue
        else:
            level_of = theirs if restriction == RESTRICTIONS[1] else (mine + theirs) / 2
            kept = sign * (level_of - known[0]) >= margin - 1e-12
        row = _counts(sign * (mine - theirs)[kept], cell[kept], level, seed)
        rows.append({"target": target, "reference": reference, "metric": metric, "pairs": restriction, **row})
    return rows, averaged


def difference_rows(scores: Scores, target: str, reference: str, metric: str) -> list[dict[str, Any]]:
    """Return by how much the target scores better than the reference at every cell and horizon of both."""
    scale = dict(zip(scores.cell.tolist(), scores.scale.tolist(), strict=True))
    keys, mine, theirs, _ = _paired(scores, target, reference, metric)
    return [
        {
            "target": target,
            "reference": reference,
            "metric": metric,
            "scale": str(scale[cell]),
            "cell": cell,
            "horizon": horizon,
            "difference": float(difference),
        }
        for (cell, horizon), difference in zip(keys, _sign(scores, metric) * (mine - theirs), strict=True)
    ]


def _sign(scores: Scores, metric: str) -> float:
    return -1.0 if metric in scores.lower_better else 1.0


def _paired(
    scores: Scores, target: str, reference: str, metric: str
) -> tuple[list[tuple[str, str]], Array, Array, int]:
    """Return the cells and horizons of both, the scores of each there, and how many repeats were averaged."""
    one, other = _keyed(scores, target, metric), _keyed(scores, reference, metric)
    keys = sorted(one.keys() & other.keys())
    averaged = sum(len(held[key]) - 1 for held in (one, other) for key in keys)
    mine, theirs = (np.array([np.mean(held[key]) for key in keys]) for held in (one, other))
    return keys, mine, theirs, averaged


def _keyed(scores: Scores, arch: str, metric: str) -> dict[tuple[str, str], list[float]]:
    rows = (scores.arch == arch) & (scores.metric == metric)
    held: dict[tuple[str, str], list[float]] = {}
    for cell, horizon, score in zip(
        scores.cell[rows], scores.horizon[rows], scores.score[rows].tolist(), strict=True
    ):
        held.setdefault((str(cell), str(horizon)), []).append(score)
    return held


def _counts(differences: Array, cell: NDArray[np.str_], level: float, seed: int) -> dict[str, Any]:
    from scipy.stats import binomtest, ttest_1samp

    n = len(differences)
    wins, losses = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    row: dict[str, Any] = {
        "n": n,
        "wins": wins,
        "ties": n - wins - losses,
        "losses": losses,
        "rate": None,
        "rate_naive_lo": None,
        "rate_naive_hi": None,
        "p_naive": None,
        "rate_lo": None,
        "rate_hi": None,
        "p_cell": None,
        "p_flip": None,
        "n_cells": 0,
        "icc": None,
        "design_effect": None,
    }
    if not n:
        return row
    outcome = np.where(differences > 0, 1.0, np.where(differences < 0, 0.0, 0.5))
    rate = float(outcome.mean())
    labels, index, sizes = np.unique(cell, return_inverse=True, return_counts=True)
    shares, means = (np.bincount(index, values) / sizes for values in (outcome, differences))
    alike = clusters(outcome, cell)
    testable = len(labels) > 1 and np.ptp(shares) > 0
    naive, celled = wilson(rate, n, level), wilson(rate, n / alike.design_effect, level)
    return row | {
        "rate": rate,
        "rate_naive_lo": naive[0],
        "rate_naive_hi": naive[1],
        "p_naive": float(binomtest(wins, wins + losses).pvalue) if wins + losses else None,
        "rate_lo": celled[0],
        "rate_hi": celled[1],
        "p_cell": float(ttest_1samp(shares, 0.5).pvalue) if testable else None,
        "p_flip": finite_or_none(flip_test(means, seed)),
        "n_cells": len(labels),
        "icc": finite_or_none(alike.icc),
        "design_effect": alike.design_effect,
    }
