"""Analyses: every one takes a study or a paper and returns a tidy frame whose ``attrs`` hold notes and settings."""

from __future__ import annotations

from smelt_scaling.analyses.ablations import compare_levels
from smelt_scaling.analyses.allocation import allocate
from smelt_scaling.analyses.budget_ledger import flops_report
from smelt_scaling.analyses.budget_matches import match_budgets
from smelt_scaling.analyses.calibration import downstream, read_scores
from smelt_scaling.analyses.conventions import parameter_conventions
from smelt_scaling.analyses.design import design_report
from smelt_scaling.analyses.diagnostics import diagnose
from smelt_scaling.analyses.fairness import audit_fairness
from smelt_scaling.analyses.frames import notes_of
from smelt_scaling.analyses.gadre import gadre_forecast
from smelt_scaling.analyses.gain import ce_gain
from smelt_scaling.analyses.lengths import length_gains
from smelt_scaling.analyses.planned_grid import endpoint_grid
from smelt_scaling.analyses.planning import plan, read_design
from smelt_scaling.analyses.prediction import predict
from smelt_scaling.analyses.probes import ProbeWriter, probe_report
from smelt_scaling.analyses.reproduction import reproduce
from smelt_scaling.analyses.shots import shot_gaps
from smelt_scaling.analyses.splits import domains, sources

__all__ = [
    "ProbeWriter",
    "allocate",
    "audit_fairness",
    "ce_gain",
    "compare_levels",
    "design_report",
    "downstream",
    "endpoint_grid",
    "flops_report",
    "gadre_forecast",
    "length_gains",
    "diagnose",
    "domains",
    "match_budgets",
    "notes_of",
    "parameter_conventions",
    "plan",
    "predict",
    "read_design",
    "read_scores",
    "probe_report",
    "reproduce",
    "shot_gaps",
    "sources",
]
