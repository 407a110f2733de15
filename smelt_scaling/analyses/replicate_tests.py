"""Tests of levels that were run several times: all against one (Dunnett), and two by two (Tukey)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np

from smelt_scaling.analyses.ablation_table import Comparison

__all__ = ["dunnett_rows", "tukey_rows"]


def dunnett_rows(item: Comparison, level: float) -> list[dict[str, Any]]:
    """Compare every level with one, all at one family-wise level; nothing without repeated runs.

    The integral behind it is random at the fourth digit, so its generator has a fixed seed.
    """
    if not _scatters(item):
        return []
    from scipy.stats import dunnett

    others = [j for j in range(len(item.levels)) if j != item.against]
    with _silent():
        found: Any = dunnett(
            *(item.runs[j] for j in others), control=item.runs[item.against], rng=np.random.default_rng(0)
        )
    ends = found.confidence_interval(level)
    return [
        {
            **_head(item),
            "level": item.levels[j],
            "against": item.levels[item.against],
            "difference": float(item.runs[j].mean() - item.runs[item.against].mean()),
            "difference_lo": float(ends.low[place]),
            "difference_hi": float(ends.high[place]),
            "p_adjusted": float(found.pvalue[place]),
        }
        for place, j in enumerate(others)
    ]


def tukey_rows(item: Comparison, level: float) -> list[dict[str, Any]]:
    """Compare levels two by two at one family-wise level; nothing unless every one has two runs."""
    if not _scatters(item) or min(map(len, item.runs)) < 2:
        return []
    from scipy.stats import tukey_hsd

    with _silent():
        found: Any = tukey_hsd(*item.runs)
    ends = found.confidence_interval(level)
    return [
        {
            **_head(item),
            "level": item.levels[i],
            "against": item.levels[j],
            "difference": float(found.statistic[i, j]),
            "difference_lo": float(ends.low[i, j]),
            "difference_hi": float(ends.high[i, j]),
            "p_adjusted": float(found.pvalue[i, j]),
        }
        for i, j in combinations(range(len(item.levels)), 2)
    ]


@contextmanager
def _silent() -> Iterator[None]:
    """Keep SciPy from warning of a level whose runs are equal; the pooled scatter is that of the others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def _scatters(item: Comparison) -> bool:
    return any(np.ptp(runs) > 0 for runs in item.runs)


def _head(item: Comparison) -> dict[str, str]:
    return {"factor": item.factor, "group": item.group, "metric": item.metric}
