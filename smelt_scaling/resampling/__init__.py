"""Resampling: which labels count how often, the refits, and the intervals they give."""

from __future__ import annotations

from smelt_scaling.resampling.intervals import jackknife_t_interval, percentile_interval, tail_rank
from smelt_scaling.resampling.plans import Plan, bootstrap_plan, jackknife_plan
from smelt_scaling.resampling.replicates import Draws, refit

__all__ = [
    "Draws",
    "Plan",
    "bootstrap_plan",
    "jackknife_plan",
    "jackknife_t_interval",
    "percentile_interval",
    "refit",
    "tail_rank",
]
