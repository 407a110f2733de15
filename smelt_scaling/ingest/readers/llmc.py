"""llm.c logs: one ``s:STEP KIND:VALUE`` a line; ``tel`` is the held-out loss, ``trl`` the training loss.

Format: ``main.log`` of llm.c's train_gpt2 (logger.h). Later versions add ``norm`` and ``lr`` to training lines and
``eval`` (HellaSwag accuracy). The log states no totals: tokens per step come from the table of runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from smelt_scaling.ingest.events import Event, Flaw, Reader, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.sources import Source, text_lines

__all__ = ["LLMC"]

_LINE = re.compile(r"s:(\d+)((?: [a-z]+:\S+)+)$")
_KEYS = {"tel": "val loss", "trl": "train loss", "eval": "hellaswag/acc", "lr": "lr", "norm": "grad norm"}


def _sniff(head: bytes, name: str) -> bool:
    return re.match(rb"\s*s:\d+ (tel|trl|eval):\S+", head) is not None


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    rows = Rows(run=source.name)
    torn = strange = 0
    for _, line, whole in text_lines(source):
        if not line.strip():
            continue
        match = _LINE.match(line)
        if match is None or not whole:
            torn, strange = torn + (not whole), strange + whole
            continue
        cells = dict(cell.split(":", 1) for cell in match[2].split())
        values = {_KEYS[kind]: value for kind, value in cells.items() if kind in _KEYS}
        if rows.add(int(match[1]), {key: value for key, value in values.items() if keys.wanted(key)}):
            yield from rows.take()
    yield from rows.take()
    if torn:
        yield Flaw(
            code="torn_line", message="the last line has no end and was not read", count=torn, run=source.name
        )
    if strange:
        yield Flaw(
            code="unread_lines",
            message=f"{strange} lines are no llm.c records",
            count=strange,
            run=source.name,
        )


LLMC = Reader(title="llm.c main.log", sniff=_sniff, read=_read)
