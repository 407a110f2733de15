"""llm.c logs: one ``s:STEP KIND:VALUE`` a line; ``tel`` is the held-out loss, ``trl`` the training loss.

Format: ``main.log`` of llm.c's train_gpt2 (llmc/logger.h), which a resumed run appends to without a word: its steps
go back. Later versions add ``norm`` and ``lr`` to training lines and ``eval`` (HellaSwag accuracy). Early logs of
modded-nanogpt are the same, with their script before the first record. The log states no totals: tokens per step
come from the table of runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from smelt_scaling.ingest.events import Event, Reader, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers._shared import NUMBER, folder_name, line_flaws, no_rows
from smelt_scaling.ingest.sources import Source, text_lines

__all__ = ["LLMC"]

_LINE = re.compile(rf"s:(\d{{1,15}})((?: [a-z]+:{NUMBER})+)$", re.ASCII)
_FIRST = re.compile(rb"(^|\n)s:\d+ (tel|trl|eval):[-\d.in]")
_KEYS = {"tel": "val loss", "trl": "train loss", "eval": "hellaswag/acc", "lr": "lr", "norm": "grad norm"}


def _sniff(head: bytes, name: str) -> bool:
    return _FIRST.search(head) is not None


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    rows = Rows(run=folder_name(source, "main"))
    wanted = {kind: key for kind, key in _KEYS.items() if keys.wanted(key)}
    read = torn = strange = 0
    for _, line, whole in text_lines(source):
        if not line.strip():
            continue
        match = _LINE.match(line)
        if match is None or not whole:
            torn, strange = torn + (not whole), strange + (whole and read > 0)
            continue
        read += 1
        cells = (cell.split(":", 1) for cell in match[2].split())
        if rows.add(float(match[1]), {wanted[kind]: value for kind, value in cells if kind in wanted}):
            yield from rows.take()
    if not read:
        raise no_rows(source, "no whole llm.c record")
    yield from rows.take()
    yield from line_flaws(rows.run, torn, strange, "no llm.c records")


LLMC = Reader(
    title="llm.c main.log",
    sniff=_sniff,
    read=_read,
    known_by="lines `s:STEP tel:LOSS`",
)
