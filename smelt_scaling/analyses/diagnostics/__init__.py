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
from smelt_scaling.analyses.diagnostics.covariance import ClusterCovariance, cluster_covariance
from smelt_scaling.analyses.diagnostics.findings import Finding
from smelt_scaling.analyses.diagnostics.headline import Headline, headline_of, refitted
from smelt_scaling.analyses.diagnostics.identifiability import identifiability
from smelt_scaling.analyses.diagnostics.identifiability_findings import identifiability_findings
from smelt_scaling.analyses.diagnostics.noise import noise_anatomy
from smelt_scaling.analyses.diagnostics.noise_findings import noise_anatomy_findings

__all__ = [
    "ClusterCovariance",
    "Finding",
    "Headline",
    "cluster_covariance",
    "headline_of",
    "identifiability",
    "identifiability_findings",
    "noise_anatomy",
    "noise_anatomy_findings",
    "refitted",
]
