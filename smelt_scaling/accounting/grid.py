"""From models and a training schedule to the endpoints they will give: sizes, tokens, compute, before any run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.accounting.budgets import budgets_of, sparsity
from smelt_scaling.accounting.config import ModelConfig
from smelt_scaling.accounting.conventions import Convention
from smelt_scaling.accounting.lengths import Lengths
from smelt_scaling.errors import UsageError

__all__ = ["GridModel", "Schedule", "grid_columns"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When endpoints are taken.

    Parameters
    ----------
    steps : tuple of int
        Optimiser steps at which a branch leaves the trunk, or after which a run of its own ends.
    sequences, sequence_length : int
        Sequences of a batch and their tokens.
    branch_tokens : float
        Tokens of the decay of every branch, after its step.
    kind : {"wsd", "independent"}
        Warmup-stable-decay: one trunk to the last step, which the branches share. Independent: a run per endpoint,
        whose decay lies within its steps or in ``branch_tokens``.

    Examples
    --------
    The SMELT paper's longest trunk of 196,075 steps of 256 sequences of 4096 tokens, and its decay of 10 B:

    >>> schedule = Schedule(steps=(10_000, 196_075), sequences=256, sequence_length=4096, branch_tokens=1e10)
    >>> schedule.tokens.tolist()
    [20485760000.0, 215599539200.0]
    >>> schedule.tokens_trained, Schedule(**vars(schedule) | {"kind": "independent"}).tokens_trained
    (225599539200.0, 236085299200.0)
    """

    steps: tuple[int, ...]
    sequences: int
    sequence_length: int
    branch_tokens: float = 0.0
    kind: Literal["wsd", "independent"] = "wsd"

    def __post_init__(self) -> None:
        if not self.steps or min(self.steps) < 1 or len(set(self.steps)) < len(self.steps):
            raise UsageError("schedule: steps must be distinct whole numbers of 1 or more, at least one")
        for key in ("sequences", "sequence_length"):
            if getattr(self, key) < 1:
                raise UsageError(f"schedule: {key} {getattr(self, key)}: must be 1 or more")
        if not 0 <= self.branch_tokens < float("inf"):
            raise UsageError(f"schedule: branch_tokens {self.branch_tokens:g}: must be 0 or more")
        if self.kind not in ("wsd", "independent"):
            raise UsageError(f"schedule: kind {self.kind!r} is unknown; choose from wsd, independent")

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a batch."""
        return self.sequences * self.sequence_length

    @property
    def tokens(self) -> NDArray[np.float64]:
        """Tokens that each endpoint has seen, in the order of ``steps``."""
        return np.array(self.steps, dtype=np.float64) * self.tokens_per_step + self.branch_tokens

    @property
    def tokens_trained(self) -> float:
        """Tokens to train one model to all its endpoints: a trunk counts once."""
        if self.kind == "independent":
            return float(self.tokens.sum())
        return max(self.steps) * self.tokens_per_step + len(self.steps) * self.branch_tokens


@dataclass(frozen=True, kw_only=True)
class GridModel:
    """One model of a study.

    Parameters
    ----------
    arch, scale, cell : str
        As in a table of endpoints.
    config : ModelConfig
        The model.
    control : ModelConfig, optional
        The dense model of its scale against which S is counted.
    S : float, optional
        Its compute-equivalent sparsity where there is no control; 0 if neither is given.
    """

    arch: str
    scale: str
    cell: str
    config: ModelConfig
    control: ModelConfig | None = None
    S: float | None = None  # noqa: N815  # the field's name

    def __post_init__(self) -> None:
        if self.control is not None and self.S is not None:
            raise UsageError(f"{self.arch}/{self.cell}: names a control and S; leave one out")
        if self.S is not None and not -1 < self.S < 1:
            raise UsageError(
                f"{self.arch}/{self.cell}: S {self.S:g}: must be a fraction in [0, 1), such as 0.95"
            )


def grid_columns(
    models: Sequence[GridModel],
    schedule: Schedule,
    *,
    convention: str | Convention = "smelt",
    lengths: Lengths | None = None,
    bytes_per_element: int = 2,
) -> dict[str, NDArray[Any]]:
    """Return a table of endpoints without losses.

    Parameters
    ----------
    models : sequence of GridModel
        One per cell and architecture.
    schedule : Schedule
        The same for all of them.
    convention : str or Convention
        How FLOPs are counted.
    lengths : Lengths, optional
        Documents as packed; whole sequences by default. FLOPs are those at the mean length.
    bytes_per_element : int
        Of the key-value cache.

    Returns
    -------
    dict
        ``arch, scale, cell, trunk, run`` and ``F`` (FLOPs/token), ``S``, ``D`` (tokens), ``N``, ``N_act`` (without
        embeddings), ``C`` (FLOPs), ``kv`` (bytes/token), ``step``: models by models, then by step.

    Raises
    ------
    UsageError
        If two models share an architecture and a cell.
    """
    if not models:
        raise UsageError("grid: there is no model")
    mean = Lengths.of((lengths or Lengths.of(schedule.sequence_length)).mean)
    seen: set[tuple[str, str]] = set()
    rows: list[dict[str, Any]] = []
    for model in models:
        if (model.arch, model.cell) in seen:
            raise UsageError(
                f"grid: {model.arch} has cell {model.cell} twice; give every model a cell of its own"
            )
        seen.add((model.arch, model.cell))
        own = budgets_of(model.config, convention, mean)
        share = model.S or 0.0
        if model.control is not None:
            share = sparsity(own, budgets_of(model.control, convention, mean))
        trunk = f"{model.arch}/{model.cell}"
        for step, tokens in zip(schedule.steps, schedule.tokens.tolist(), strict=True):
            rows.append(
                {
                    "arch": model.arch,
                    "scale": model.scale,
                    "cell": model.cell,
                    "trunk": trunk,
                    "run": f"{trunk}/{step:06d}",
                    "F": own.flops,
                    "S": share,
                    "D": tokens,
                    "N": float(own.parameters),
                    "N_act": float(own.active),
                    "C": own.flops * tokens,
                    "kv": float(own.cached * bytes_per_element),
                    "step": float(step),
                }
            )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
