"""What to run next: the worth of further pairs of runs, and the gains that a design finds."""

from __future__ import annotations

from smelt_scaling.analyses.planning.intake import read_design
from smelt_scaling.analyses.planning.report import plan

__all__ = ["plan", "read_design"]
