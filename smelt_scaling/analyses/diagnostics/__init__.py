"""What a reader needs to believe or reject a gain: how it moves with choices, rows and laws, and its noise."""

from __future__ import annotations

from smelt_scaling.analyses.diagnostics.covariance import ClusterCovariance, cluster_covariance
from smelt_scaling.analyses.diagnostics.diagnosis import diagnose
from smelt_scaling.analyses.diagnostics.fairness import budget_fairness
from smelt_scaling.analyses.diagnostics.findings import Finding
from smelt_scaling.analyses.diagnostics.headline import Headline, headline_of, refitted
from smelt_scaling.analyses.diagnostics.identified import identifiability
from smelt_scaling.analyses.diagnostics.law_comparison import compare_laws
from smelt_scaling.analyses.diagnostics.left_out import influence
from smelt_scaling.analyses.diagnostics.noise import noise_anatomy
from smelt_scaling.analyses.diagnostics.panel import sensitivity
from smelt_scaling.analyses.diagnostics.single_rows import row_influence
from smelt_scaling.analyses.diagnostics.stopping import rollout

__all__ = [
    "ClusterCovariance",
    "Finding",
    "Headline",
    "budget_fairness",
    "cluster_covariance",
    "compare_laws",
    "diagnose",
    "headline_of",
    "identifiability",
    "influence",
    "noise_anatomy",
    "refitted",
    "rollout",
    "row_influence",
    "sensitivity",
]
