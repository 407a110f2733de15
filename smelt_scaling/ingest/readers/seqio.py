"""seqio metrics: one ``{"step": 10000, "perplexity": 1.08}`` a line, of an evaluation.

Format: what the JSON logger of seqio (T5X's inference_eval) appends to ``TASK-metrics.jsonl``. A perplexity is no loss
in nats: its key says so. Metrics have the key "eval/" and their name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from smelt_scaling.ingest.events import Event, Reader, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers._shared import chooser, finite, line_flaws, no_rows
from smelt_scaling.ingest.sources import Source, text_lines

__all__ = ["SEQIO"]

_FIRST = re.compile(
    rb'\s*\{"step": \d+(, "[^"{}]+": [-\w.+]+)*, "perplexity": [-\w.+]+(, "[^"{}]+": [-\w.+]+)*\}\s*\n'
)


def _sniff(head: bytes, name: str) -> bool:
    match = _FIRST.match(head)
    return match is not None and b"loss" not in match[0]


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    rows = Rows(run=source.name)
    chosen = chooser(keys)
    read = torn = strange = 0
    for _, line, whole in text_lines(source):
        if not line.strip():
            continue
        record = _record(line) if whole else None
        step = None if record is None else finite(record.pop("step", None))
        if record is None or step is None:
            torn, strange = torn + (not whole), strange + whole
            continue
        read += 1
        if rows.add(step, chosen({f"eval/{key}": value for key, value in record.items()})):
            yield from rows.take()
    if not read:
        raise no_rows(source, "no whole record of metrics")
    yield from rows.take()
    yield from line_flaws(rows.run, torn, strange, "no records of metrics")


def _record(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


SEQIO = Reader(
    title="seqio metrics",
    sniff=_sniff,
    read=_read,
    known_by='lines `{"step": N, "perplexity": X}`',
)
