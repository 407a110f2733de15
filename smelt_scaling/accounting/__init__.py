"""Budgets of a model: FLOPs per token, parameters, key-value cache; no law, no data."""

from __future__ import annotations

from smelt_scaling.accounting.config import Experts, LatentAttention, Loop, ModelConfig
from smelt_scaling.accounting.conventions import CONVENTIONS, Convention, flops_per_token, get_convention
from smelt_scaling.accounting.ledger import Ledger, Term, make_ledger
from smelt_scaling.accounting.lengths import Lengths

__all__ = [
    "CONVENTIONS",
    "Convention",
    "Experts",
    "LatentAttention",
    "Ledger",
    "Lengths",
    "Loop",
    "ModelConfig",
    "Term",
    "flops_per_token",
    "get_convention",
    "make_ledger",
]
