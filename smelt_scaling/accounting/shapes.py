"""Many shapes of one model at once: arrays in place of numbers, counted by the same ledger."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.accounting.config import ModelConfig
from smelt_scaling.accounting.conventions import TRAINING, Convention, flops_of_term
from smelt_scaling.accounting.ledger import make_ledger
from smelt_scaling.accounting.lengths import Lengths

__all__ = ["Shapes"]

Whole = NDArray[np.int64]
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Shapes:
    """Shapes that differ in widths, heads and experts only.

    Parameters
    ----------
    template : ModelConfig
        Everything else: layers, loop, kinds of blocks.
    hidden, heads, kv_heads, head_dim, experts, width : (n,) int array
        As in `ModelConfig`; ``width`` is that of an expert, or of the dense block of a model without experts, whose
        ``experts`` are 0.
    """

    template: ModelConfig
    hidden: Whole
    heads: Whole
    kv_heads: Whole
    head_dim: Whole
    experts: Whole
    width: Whole

    def __len__(self) -> int:
        return len(self.hidden)

    def select(self, rows: Any) -> Shapes:
        """Return some of the shapes."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _VARIED})

    def with_width(self, width: Whole) -> Shapes:
        """Return the shapes with other widths."""
        return replace(self, width=width)

    def config(self, row: int) -> ModelConfig:
        """Return one of the shapes."""
        one: dict[str, Any] = {name: int(getattr(self, name)[row]) for name in _VARIED}
        count, width = one.pop("experts"), one.pop("width")
        if self.template.experts is None:
            return replace(self.template, **one, d_ff=width)
        return replace(self.template, **one, experts=replace(self.template.experts, count=count, width=width))

    def budgets(self, convention: Convention, lengths: Lengths) -> tuple[Array, Array, Array]:
        """Return training FLOPs per token, parameters without embedding and head, and cached elements.

        Returns
        -------
        tuple of (n,) array
            As `budgets_of` counts them, exactly: the ledger is the same, with arrays for numbers.
        """
        plain = {field.name: getattr(self.template, field.name) for field in fields(self.template)}
        plain |= {name: getattr(self, name) for name in ("hidden", "heads", "kv_heads", "head_dim")}
        if self.template.experts is None:
            plain["d_ff"] = self.width
        else:
            held = {
                field.name: getattr(self.template.experts, field.name)
                for field in fields(self.template.experts)
            }
            plain["experts"] = SimpleNamespace(**held | {"count": self.experts, "width": self.width})
        many: Any = SimpleNamespace(
            **plain,
            visits=self.template.visits,
            sparse_layers=self.template.sparse_layers,
            query_width=self.heads * self.head_dim,
            key_value_width=self.kv_heads * self.head_dim,
        )
        ledger = make_ledger(many)
        flops = TRAINING * sum(flops_of_term(term, convention, lengths) for term in ledger.terms)
        return (
            np.broadcast_to(np.asarray(flops, dtype=np.float64), len(self)),
            np.broadcast_to(np.asarray(ledger.parameters(), dtype=np.float64), len(self)),
            np.broadcast_to(np.asarray(ledger.cached, dtype=np.float64), len(self)),
        )


_VARIED = ("hidden", "heads", "kv_heads", "head_dim", "experts", "width")
