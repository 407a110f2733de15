"""The three budgets of a model, and how far two models lie apart in them."""

from __future__ import annotations

from dataclasses import dataclass

from smelt_scaling.accounting.config import ModelConfig
from smelt_scaling.accounting.conventions import Convention, flops_per_token
from smelt_scaling.accounting.ledger import make_ledger
from smelt_scaling.accounting.lengths import Lengths

__all__ = ["Budgets", "Deviations", "budgets_of", "sparsity"]


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """What a model costs.

    Parameters
    ----------
    flops : float
        Training FLOPs per token.
    parameters, active : int
        Without embedding and head: stored, and used by one token, those of looped layers once.
    cached : int
        Elements of the key-value cache per token, every visit counted.
    """

    flops: float
    parameters: int
    active: int
    cached: int

    def against(self, reference: Budgets) -> Deviations:
        """Return how far these lie from those of a reference, as fractions of its own."""
        return Deviations(
            flops=self.flops / reference.flops - 1,
            params=self.parameters / reference.parameters - 1,
            kv=self.cached / reference.cached - 1,
        )


@dataclass(frozen=True, kw_only=True)
class Deviations:
    """Relative deviations from a reference.

    Parameters
    ----------
    flops, params, kv : float
        Of training FLOPs per token, of parameters without embedding and head, and of the key-value cache.
    """

    flops: float
    params: float
    kv: float

    @property
    def sorted_sizes(self) -> tuple[float, ...]:
        """The three sizes, the worst first: compared in this order, the least is the best match (leximin)."""
        return tuple(sorted((abs(self.flops), abs(self.params), abs(self.kv)), reverse=True))


def budgets_of(config: ModelConfig, convention: str | Convention, lengths: Lengths) -> Budgets:
    """Return the budgets of a model.

    Examples
    --------
    >>> from smelt_scaling.accounting.config import Experts
    >>> config = ModelConfig(hidden=1280, layers=12, heads=10, kv_heads=2, head_dim=128,
    ...                      experts=Experts(count=192, active=8, width=432))
    >>> budgets_of(config, "smelt", Lengths.of(784))
    Budgets(flops=1328578560.0, parameters=3872226560, active=209419520, cached=6144)
    """
    ledger = make_ledger(config)
    return Budgets(
        flops=flops_per_token(ledger, convention, lengths),
        parameters=ledger.parameters(),
        active=ledger.active(),
        cached=ledger.cached,
    )


def sparsity(model: Budgets, control: Budgets) -> float:
    """Return S = 1 - (F/F0) N0/N, the compute-equivalent sparsity against a dense control of the same scale.

    Parameters
    ----------
    model, control : Budgets
        Of the model, and of its control of sparsity 0.
    """
    return 1 - (model.flops / control.flops) * control.parameters / model.parameters
