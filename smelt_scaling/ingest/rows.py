"""Rows of the tables that come out: an endpoint, where it comes from, an end that was left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from smelt_scaling._schema import counted
from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.condense import Last
from smelt_scaling.ingest.events import FACTS
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.names import listed
from smelt_scaling.ingest.selection import Pick, Run

__all__ = ["REASON", "endpoint_row", "left_out_row", "provenance", "refuse_incomplete"]

#: Facts that become columns of the table of endpoints.
_COLUMNS = (
    "arch",
    "scale",
    "cell",
    "F",
    "S",
    "N",
    "N_act",
    "tokens_per_s",
    "unique_tokens",
    "seed",
    "tokenizer",
    "eval_set",
    "source",
)
_TABLE = "the table of runs, --runs (--runs-template runs.csv writes its skeleton)"
REASON = ("run", "branch", "step", "tokens", "loss", "code", "reason")


def endpoint_row(run: Run, pick: Pick, keys: Keys, *, trunks: bool) -> dict[str, Any]:
    """Return an endpoint as a row of the endpoint schema; what is not known is empty.

    Where any run has a trunk (``trunks``), one without is a trunk of its own.
    """
    spread = keys.find("loss_se", pick.lasts)
    said = pick.lasts[spread] if spread else Last()
    return {
        **{name: run.facts.get(name, "" if FACTS[name][0] is str else None) for name in _COLUMNS},
        "run": run.name,
        "trunk": run.facts.get("trunk") or (run.name if trunks else ""),
        "D": pick.tokens,
        "loss": pick.loss,
        "loss_se": said.value if said.step == pick.step else None,
        "step": pick.step,
        # A schedule ends at 0 up to rounding, on either side of it.
        "lr": 0.0 if abs(pick.lr) <= 1e-6 * run.lr_peak else pick.lr,
        "phase": pick.phase,
    }


def refuse_incomplete(chosen: Sequence[tuple[Run, Pick]]) -> None:
    """Refuse endpoints without tokens, and facts that are known of some runs only."""
    problems = []
    lacking = {run.name for run, pick in chosen if math.isnan(pick.tokens)}
    if lacking:
        problems.append(
            f"no tokens in the logs of {counted(len(lacking), 'run')} ({listed(lacking)}): add tokens_per_step (or "
            f"batch_size and sequence_length) to {_TABLE}"
        )
    zero = {run.name for run, pick in chosen if pick.tokens == 0}
    if zero:
        problems.append(
            f"0 tokens at the end of {counted(len(zero), 'run')} ({listed(zero)}): the trainer did not count them; "
            f"add tokens_per_step to {_TABLE}, and name another key with --map tokens=KEY"
        )
    names = {run.name: run.facts for run, _ in chosen}
    for fact in _COLUMNS:
        without = {name for name, facts in names.items() if fact not in facts}
        if without and len(without) < len(names):
            problems.append(
                f"no {fact} of {len(without)} of {len(names)} runs ({listed(without)}): state it for all in {_TABLE}"
            )
    # of C no log and no table of runs knows
    if not any({"F", "N", "N_act"} & set(facts) for facts in names.values()):
        problems.append(
            f"no F, N or N_act of any run: an endpoint needs the training FLOPs per token or the parameters; "
            f"state one for all in {_TABLE}"
        )
    if problems:
        raise IngestError("\n".join(problems))


def provenance(pick: Pick, key: str) -> dict[str, Any]:
    """Say where an endpoint comes from."""
    return {
        "run": pick.run,
        "branch": pick.branch,
        "step": pick.step,
        "tokens": pick.tokens,
        "loss": pick.loss,
        "key": key,
        "evidence": pick.evidence,
        "rows": sum(piece.rows for piece in pick.part.pieces),
        "pieces": len(pick.part.pieces),
        "files": sorted({piece.source for piece in pick.part.pieces}),
    }


def left_out_row(pick: Pick) -> dict[str, Any]:
    """Return an end that was left out, by the names of `REASON`."""
    return dict(
        zip(
            REASON,
            (pick.run, pick.branch, pick.step, pick.tokens, pick.loss, pick.code, pick.reason),
            strict=True,
        )
    )
