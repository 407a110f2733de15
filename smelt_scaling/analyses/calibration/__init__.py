"""Downstream scores at equal loss: calibrated on one architecture, tested on another, by cells."""

from __future__ import annotations

from smelt_scaling.analyses.calibration.report import downstream
from smelt_scaling.analyses.calibration.scores import Scores, read_scores
from smelt_scaling.analyses.calibration.simulated import simulate_scores

__all__ = ["Scores", "downstream", "read_scores", "simulate_scores"]
