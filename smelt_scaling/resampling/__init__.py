"""Resampling: which labels count how often, the refits, and the intervals they give."""

from __future__ import annotations

from smelt_scaling.resampling.intervals import (
    end_errors,
    jackknife_t_interval,
    percentile_interval,
    simultaneous_interval,
    tail_rank,
)
from smelt_scaling.resampling.plans import Plan, bootstrap_plan, jackknife_plan
from smelt_scaling.resampling.replicates import Draws, refit

__all__ = [
    "Draws",
    "Plan",
    "bootstrap_plan",
    "end_errors",
    "jackknife_plan",
    "jackknife_t_interval",
    "percentile_interval",
    "refit",
    "simultaneous_interval",
    "tail_rank",
]
