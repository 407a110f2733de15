"""nanoGPT output: ``step N: train loss X, val loss Y`` is the evaluation, ``iter N: loss X, …`` one training batch.

Format: what nanoGPT's train.py and configurator.py print. Configuration lines are Python; only plain numbers among them
are read, and of those only what holds for every version. Tokens per iteration are taken where the log says them
(``tokens per iteration will be: 491,520``); batch size alone says nothing of gradient accumulation and processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from smelt_scaling.ingest.events import Event, Facts, Reader, Resumed, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers._shared import NUMBER, chooser, line_flaws, no_rows
from smelt_scaling.ingest.sources import Source, text_lines

__all__ = ["NANOGPT"]

_STEP = re.compile(rf"step (\d{{1,15}}): train loss ({NUMBER}), val loss ({NUMBER})(?:,.*)?$", re.ASCII)
_ITER = re.compile(rf"iter (\d{{1,15}}): loss ({NUMBER}), (?:lr ({NUMBER}), )?", re.ASCII)
_SIGNATURE = re.compile(
    rb"(^|\n)(step \d+: train loss \S+, val loss |iter \d+: loss \S+, (lr \S+, )?time \S+ms)"
)

#: How a line states a fact -> (fact, factor).
_STATED: tuple[tuple[re.Pattern[str], str, float], ...] = (
    (re.compile(r"tokens per iteration will be: ([\d,]{1,20})$"), "tokens_per_step", 1.0),
    (re.compile(r"number of parameters: ([\d.]{1,15})M$"), "N", 1e6),
    (re.compile(r"(?:Overriding: )?max_iters = (\d{1,15})\s*(?:#.*)?$"), "planned_steps", 1.0),
    (re.compile(r"(?:Overriding: )?block_size = (\d{1,15})\s*(?:#.*)?$"), "sequence_length", 1.0),
)
_STARTS = ("Initializing a new model", "Resuming training from", "Initializing from OpenAI GPT-2")


def _sniff(head: bytes, name: str) -> bool:
    return _SIGNATURE.search(head) is not None


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    rows = Rows(run=source.name)
    chosen = chooser(keys)
    read = torn = strange = 0
    for _, line, whole in text_lines(source):
        if line.startswith(("iter ", "step ")):
            cells = _record(line)
            if cells is None or not whole:
                torn, strange = torn + (not whole), strange + whole
                continue
            read += 1
            step, values = cells
            if rows.add(step, chosen(values)):
                yield from rows.take()
        elif line.startswith(_STARTS):
            if read or line.startswith("Resuming"):
                yield from rows.take()
                yield Resumed(run=rows.run)
        elif facts := _facts(line):
            yield from rows.take()
            yield Facts(run=rows.run, values=facts)
    if not read:
        raise no_rows(source, "no whole step or iter line")
    yield from rows.take()
    yield from line_flaws(rows.run, torn, strange, "no records of a step or iteration")


def _record(line: str) -> tuple[float, dict[str, str]] | None:
    """Return step and values of a step or iter line."""
    if match := _ITER.match(line):
        return float(match[1]), {"loss": match[2], "lr": match[3]} if match[3] else {"loss": match[2]}
    if match := _STEP.match(line):
        return float(match[1]), {"train loss": match[2], "val loss": match[3]}
    return None


def _facts(line: str) -> dict[str, float | str]:
    for pattern, fact, factor in _STATED:
        if match := pattern.match(line):
            try:
                return {fact: float(match[1].replace(",", "")) * factor}
            except ValueError:
                return {}
    return {}


NANOGPT = Reader(
    title="nanoGPT output",
    sniff=_sniff,
    read=_read,
    known_by="lines `step N: train loss X, val loss Y`",
    states=("planned_steps", "tokens_per_step", "sequence_length", "N"),
)
