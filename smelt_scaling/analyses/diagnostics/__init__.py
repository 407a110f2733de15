"""What a reader needs to believe or reject a gain: how it moves with choices, rows and laws, and its noise."""

from __future__ import annotations

from smelt_scaling.analyses.diagnostics.fairness import budget_fairness, budget_fairness_findings
from smelt_scaling.analyses.diagnostics.findings import Finding
from smelt_scaling.analyses.diagnostics.headline import Headline, headline_of, refitted

__all__ = [
    "Finding",
    "Headline",
    "budget_fairness",
    "budget_fairness_findings",
    "headline_of",
    "refitted",
]
