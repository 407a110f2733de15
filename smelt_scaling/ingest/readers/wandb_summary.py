"""wandb-summary.json: the last value of every key of a run, as Levanter and others log to Weights & Biases.

Format: what wandb writes to ``files/wandb-summary.json``: flat keys with slashes. The file names no run: its folder
does. Of ``run_progress``, Levanter's step over planned steps, the plan follows; a run whose step is not the last one
(they count from 0) is unfinished. FLOPs per example are no FLOPs per token, for the length of an example is not stated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Event, Facts, Reader, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers._shared import chooser, finite, flat, folder_name, json_document
from smelt_scaling.ingest.readers._wandb import stated, step_key
from smelt_scaling.ingest.sources import Source

__all__ = ["WANDB_SUMMARY"]

_STEP = re.compile(rb'"_step"\s*:\s*\d')
_SIGNATURE = re.compile(rb'"(_runtime|_timestamp|_wandb)"\s*:')
#: Of documents that hold more than a summary, and of lines with an object each.
_OTHER = re.compile(rb'"(history|summary)"\s*:\s*[\[{]|\n\s*\{')


def _sniff(head: bytes, name: str) -> bool:
    return (
        head.lstrip().startswith(b"{")
        and _STEP.search(head) is not None
        and _SIGNATURE.search(head) is not None
        and _OTHER.search(head) is None
    )


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    document = json_document(source)
    summary = dict(flat(document)) if isinstance(document, dict) else {}
    counter = step_key(keys, [summary])
    step = finite(summary.get(counter))
    if step is None:
        raise IngestError(
            f"{source.path}: {counter} is no number: a summary holds for a step; name its key with --map step=KEY"
        )
    run = folder_name(source, r"wandb-summary.*|files|wandb|latest-run")
    facts = stated(summary.items())
    progress = finite(summary.get("run_progress"))
    if progress is not None and 0 < progress <= 1 and step > 0:
        planned = float(round(step / progress))
        facts |= {"planned_steps": planned} | ({"status": "unfinished"} if step < planned - 1 else {})
    if facts:
        yield Facts(run=run, values=facts)
    rows = Rows(run=run)
    rows.add(step, chooser(keys)(summary), finite(summary.get("_timestamp")))
    yield from rows.take()


WANDB_SUMMARY = Reader(
    title="wandb-summary.json",
    sniff=_sniff,
    read=_read,
    known_by="a JSON object with `_step` and `_runtime`, `_timestamp` or `_wandb`",
    states=("status", "planned_steps", "sequence_length", "batch_size", "tokens_per_step", "N", "seed"),
)
