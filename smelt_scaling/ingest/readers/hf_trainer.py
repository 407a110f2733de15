"""trainer_state.json of Hugging Face's Trainer: ``log_history`` holds what was logged, training and evaluations mixed.

Format: ``TrainerState`` and ``TrainerCallback`` of transformers. The last entry of a finished run repeats its last step
with ``train_loss``, a mean over the whole run and no final loss: it is not read. ``num_input_tokens_seen`` is 0 unless
a flag was set: then tokens are unknown. ``total_flos`` is an estimate that grows anew with every restart: it is no F.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Event, Facts, Flaw, Reader, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers._shared import chooser, finite, folder_name, json_document, no_rows
from smelt_scaling.ingest.sources import Source

__all__ = ["HF_TRAINER"]

_SIGNATURE = re.compile(rb'"log_history"\s*:\s*\[')
_TOKENS = "num_input_tokens_seen"


def _sniff(head: bytes, name: str) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{") and _SIGNATURE.search(head) is not None


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    state = json_document(source)
    history = state.get("log_history") if isinstance(state, dict) else None
    if not isinstance(history, list):
        raise IngestError(
            f"{source.path}: log_history is no list: a trainer_state.json has one; check the file"
        )
    run = folder_name(source, r"trainer_state|checkpoint-\d+")
    planned = finite(state.get("max_steps"))
    if planned is not None and planned > 0:
        yield Facts(run=run, values={"planned_steps": planned})
    rows = Rows(run=run)
    read = lacking = 0
    chosen = chooser(keys)
    for entry in history:
        step = finite(entry.get("step")) if isinstance(entry, dict) else None
        if step is None:
            lacking += 1
            continue
        read += 1
        if rows.add(step, _values(entry, chosen)):
            yield from rows.take()
    end, tokens = finite(state.get("global_step")), finite(state.get(_TOKENS))
    if read and end is not None and tokens and keys.wanted(_TOKENS):
        rows.add(end, {_TOKENS: tokens})
    if not read:
        raise no_rows(source, "no entry of log_history has a step")
    yield from rows.take()
    if lacking:
        yield Flaw(
            code="unread_lines",
            message=f"{lacking} entries of log_history have no step (predictions have none)",
            count=lacking,
            run=run,
        )


def _values(
    entry: Mapping[str, Any], chosen: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    values = chosen(entry)
    if "train_runtime" in entry:
        values.pop("train_loss", None)
    if not finite(values.get(_TOKENS)):
        values.pop(_TOKENS, None)
    return values


HF_TRAINER = Reader(
    title="Hugging Face trainer_state.json",
    sniff=_sniff,
    read=_read,
    known_by="a JSON object with `log_history`",
    states=("planned_steps",),
)
