"""Gains on parts of an evaluation: domains, and groups of sources, with the exponents of the whole."""

from __future__ import annotations

from smelt_scaling.analyses.splits.by_domain import domains
from smelt_scaling.analyses.splits.by_source import sources

__all__ = ["domains", "sources"]
