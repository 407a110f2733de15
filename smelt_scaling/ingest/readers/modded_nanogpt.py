"""modded-nanogpt logs: the whole training script first, then ``step:N/TOTAL val_loss:X train_time:…`` lines.

Format: the ``logs/*.txt`` that the speedrun's train_gpt.py writes (its ``print0``). Times are in ms or s, and are not
read; a step's validation line follows its training line, which in later versions has no loss. Tokens per step stand
only in the script, as code, which is not evaluated: they come from the table of runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from smelt_scaling.ingest.events import Event, Facts, Reader, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers._shared import NUMBER, chooser, line_flaws, no_rows
from smelt_scaling.ingest.sources import Source, text_lines

__all__ = ["MODDED_NANOGPT"]

_LINE = re.compile(rf"step:(\d{{1,15}})/(\d{{1,15}})((?: [a-z_]+:{NUMBER}(?:m?s)?)+)$", re.ASCII)
_FIRST = re.compile(rb"(^|\n)step:\d+/\d+ [a-z_]+:[\d.n]")


def _sniff(head: bytes, name: str) -> bool:
    return _FIRST.search(head) is not None


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    rows = Rows(run=source.name)
    chosen = chooser(keys)
    planned = ""
    torn = strange = 0
    for _, line, whole in text_lines(source):
        if not line.startswith("step:"):
            continue
        match = _LINE.match(line)
        if match is None or not whole:
            torn, strange = torn + (not whole), strange + whole
            continue
        if match[2] != planned:
            yield from rows.take()
            planned = match[2]
            yield Facts(run=rows.run, values={"planned_steps": float(planned)})
        cells = dict(cell.split(":", 1) for cell in match[3].split())
        if rows.add(float(match[1]), chosen(cells)):
            yield from rows.take()
    if not planned:
        raise no_rows(source, "no whole step line")
    yield from rows.take()
    yield from line_flaws(rows.run, torn, strange, "no records of a step")


MODDED_NANOGPT = Reader(
    title="modded-nanogpt log",
    sniff=_sniff,
    read=_read,
    known_by="lines `step:N/M KEY:X`",
    states=("planned_steps",),
)
