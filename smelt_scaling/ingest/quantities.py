"""Tokens and FLOPs of an endpoint: as logged, or from what is stated of the run; both are compared where both exist."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from smelt_scaling.ingest.condense import Last
from smelt_scaling.ingest.stitching import Stitched

__all__ = ["TOKENS_AGREE", "tokens_at", "tokens_by_steps", "tokens_per_step"]

Facts = Mapping[str, float | str]

#: Logged tokens and steps times tokens per step agree to this share, unless the batch size changed.
TOKENS_AGREE = 0.005
#: Share beyond the last logged count of tokens up to which it is continued at its slope.
BEYOND = 0.05


def tokens_at(facts: Facts, part: Stitched, last: Last, tokens_key: str | None) -> float:
    """Return the training tokens at an evaluation: as logged, else by steps; NaN if neither is known.

    Parameters
    ----------
    facts : mapping
        Of the run.
    part : Stitched
        The part of the run that was evaluated.
    last : Last
        The evaluation.
    tokens_key : str or None
        The key that counts tokens.

    Returns
    -------
    float
        Tokens.
    """
    if math.isnan(last.step):
        return math.nan
    if math.isfinite(last.tokens):
        return last.tokens
    logged = math.nan if tokens_key is None else _logged(part, last.step, tokens_key)
    return tokens_by_steps(facts, last.step) if math.isnan(logged) else logged


def tokens_by_steps(facts: Facts, step: float) -> float:
    """Return steps times tokens per step, and the tokens of the trunk if steps count from the branch.

    Examples
    --------
    >>> tokens_by_steps({"batch_size": 512.0, "sequence_length": 2048.0}, 100)
    104857600.0
    """
    before = 0.0 if "start_step" in facts else float(facts.get("start_tokens", 0.0))
    return step * tokens_per_step(facts) + before


def tokens_per_step(facts: Facts) -> float:
    """Return tokens per step as stated, else batch size times sequence length; NaN if not stated."""
    stated, batch, length = (
        float(facts.get(name, math.nan)) for name in ("tokens_per_step", "batch_size", "sequence_length")
    )
    return batch * length if math.isnan(stated) else stated


def _logged(part: Stitched, step: float, tokens_key: str) -> float:
    """Return the tokens logged at a step, on the line between the rows around it, or a little beyond the last."""
    if tokens_key not in part.series:
        return math.nan
    steps, tokens = part.series[tokens_key]
    end = part.end.lasts.get(tokens_key, Last())
    if end.step > steps[-1]:  # the series is thinned, its end is not
        steps, tokens = np.append(steps, end.step), np.append(tokens, end.value)
    if step <= steps[-1]:
        return float(np.interp(step, steps, tokens)) if step >= steps[0] else math.nan
    if len(steps) < 2 or step > (1 + BEYOND) * steps[-1]:
        return math.nan
    return float(tokens[-1] + (step - steps[-1]) * (tokens[-1] - tokens[0]) / (steps[-1] - steps[0]))
