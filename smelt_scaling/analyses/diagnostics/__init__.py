"""What a reader needs to believe or reject a gain: how it moves with choices, rows and laws, and its noise."""

from __future__ import annotations

from smelt_scaling.analyses.diagnostics.fairness import budget_fairness, budget_fairness_findings
from smelt_scaling.analyses.diagnostics.findings import Finding
from smelt_scaling.analyses.diagnostics.headline import Headline, headline_of, refitted
from smelt_scaling.analyses.diagnostics.left_out import influence
from smelt_scaling.analyses.diagnostics.left_out_findings import influence_findings
from smelt_scaling.analyses.diagnostics.panel import sensitivity
from smelt_scaling.analyses.diagnostics.panel_findings import sensitivity_findings
from smelt_scaling.analyses.diagnostics.single_rows import row_influence
from smelt_scaling.analyses.diagnostics.stopping import rollout

__all__ = [
    "Finding",
    "Headline",
    "budget_fairness",
    "budget_fairness_findings",
    "headline_of",
    "refitted",
    "headline_of",
    "influence",
    "influence_findings",
    "refitted",
    "rollout",
    "row_influence",
    "sensitivity",
    "sensitivity_findings",
]
