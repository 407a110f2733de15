"""What Weights & Biases' summaries and configurations state of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers._shared import finite

__all__ = ["step_key", "stated"]

#: fact -> last parts of the keys that state it, whatever trainer wrote them.
_STATED: dict[str, frozenset[str]] = {
    "planned_steps": frozenset(
        {"num_train_steps", "max_steps", "total_steps", "train_iters", "max_iters", "num_iterations"}
    ),
    "sequence_length": frozenset(
        {"sequence_length", "seq_length", "seq_len", "max_seq_len", "max_seq_length", "max_sequence_length"}
        | {"context_length", "context_len", "block_size"}
    ),
    "batch_size": frozenset({"global_batch_size", "global_train_batch_size", "effective_batch_size"}),
    "tokens_per_step": frozenset(
        {"tokens_per_step", "tokens_per_batch", "tokens_per_iteration", "tokens_per_iter"}
    ),
    "N": frozenset({"parameter_count", "num_params", "n_params", "num_parameters", "total_params"}),
}
#: Some trainers count a global batch in tokens; no trainer takes so many sequences.
_SEQUENCES = 1 << 16


def stated(values: Iterable[tuple[str, Any]]) -> dict[str, float | str]:
    """Return the facts that flat keys state, each only where all keys that state it agree.

    Tokens per step are batch size times sequence length only where gradients are not accumulated: whether a global
    batch counts that is a matter of the trainer.

    Examples
    --------
    >>> stated([("trainer.seed", 0), ("data/.global_batch_size", 512), ("model.context_length", 2048)])
    {'sequence_length': 2048.0, 'batch_size': 512.0, 'tokens_per_step': 1048576.0, 'seed': '0'}
    >>> stated([("max_steps", -1), ("a.seq_len", 1024), ("b.seq_len", 2048), ("global_batch_size", 4194304)])
    {}
    """
    found: dict[str, set[float]] = {fact: set() for fact in _STATED}
    seeds: set[str] = set()
    accumulates = False
    for key, value in values:
        last = re.split(r"[./]", key)[-1].casefold()
        number = finite(value)
        if last == "seed" and isinstance(value, int | str):
            seeds.add(str(value))
        if number is None or number <= 0:
            continue
        accumulates |= "accum" in last and number > 1
        for fact, names in _STATED.items():
            if last in names:
                found[fact].add(number)
    found["batch_size"] = {size for size in found["batch_size"] if size < _SEQUENCES}
    facts: dict[str, float | str] = {
        fact: numbers.pop() for fact, numbers in found.items() if len(numbers) == 1
    }
    batch, length = facts.get("batch_size"), facts.get("sequence_length")
    if (
        isinstance(batch, float)
        and isinstance(length, float)
        and not found["tokens_per_step"]
        and not accumulates
    ):
        facts.setdefault("tokens_per_step", batch * length)
    if len(seeds) == 1:
        facts["seed"] = seeds.pop()
    return facts


def step_key(keys: Keys, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the key that counts optimiser steps in all rows: as named, as trainers name it, else "_step".

    "_step" counts calls of ``wandb.log``, of which a step may take several.
    """
    if "step" in keys.named:
        return keys.named["step"]
    candidates = ["trainer/global_step", "train/global_step", "global_step"]
    for row in rows:
        candidates = [key for key in candidates if finite(row.get(key)) is not None]
        if not candidates:
            return "_step"
    return candidates[0]
