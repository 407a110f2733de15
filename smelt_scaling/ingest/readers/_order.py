"""The rows of one run within a table, in the order in which they were logged.

A restart goes back by many steps once; rows that a database or parallel writers left shuffled go back at every other
row. The first keep the order of the file, the second are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Block, Event, Flaw, Floats

__all__ = ["Lane", "rows_of"]

#: Rows of a run that show whether it is shuffled: a step goes back in half of them if so, seldom if it was restarted.
_SHOWN = 64
_SHUFFLED = 0.25


@dataclass(kw_only=True, eq=False)
class Lane:
    """The rows of one run and branch: handed on as they come, or held because they are shuffled."""

    path: str
    run: str
    branch: str
    held: list[Block] = field(default_factory=list)
    rows: int = 0
    shuffled: bool | None = None  # not known yet

    def deal(self, block: Block) -> Iterator[Block]:
        if self.shuffled is False:
            self._check(block)
            yield block
            return
        # Copied, so that a few rows do not keep the whole batch.
        self.held.append(rows_of(block, np.arange(len(block.step))))
        self.rows += len(block.step)
        if self.shuffled is None and self.rows >= _SHOWN:
            self.shuffled = _is_shuffled(np.concatenate([held.step for held in self.held]))
            if not self.shuffled:
                yield from self.held
                self.held = []

    def _check(self, block: Block) -> None:
        if len(block.step) >= _SHOWN and _is_shuffled(block.step):
            raise IngestError(
                f"{self.path}: run {self.run!r}: rows are in order at first and shuffled later, so their order cannot "
                "say which came later; sort them by time or step"
            )

    def finish(self) -> Iterator[Event]:
        if not self.held:
            return
        whole = _joined(self.held)
        if not _is_shuffled(whole.step):
            yield whole
            return
        timed = whole.time is not None and not np.isnan(whole.time).any()
        time = whole.time if timed and whole.time is not None else np.zeros(len(whole.step))
        order = np.lexsort((whole.step, time))
        time, whole = time[order], rows_of(whole, order)
        contested = _contested(time, whole)
        if contested:
            yield Flaw(
                code="ambiguous",
                message=f"run {self.run!r}: its rows are shuffled and {contested} steps have two different values with "
                "nothing to say which came later, so it was left out; add a column of times, or sort the rows",
                count=contested,
                run=self.run,
            )
        else:
            yield whole


def _is_shuffled(step: Floats) -> bool:
    return int((step[1:] < step[:-1]).sum()) > _SHUFFLED * len(step)


def _joined(blocks: list[Block]) -> Block:
    keys = dict.fromkeys(key for block in blocks for key in block.values)

    def column(parts: Iterator[Floats | None]) -> Floats:
        filled = (
            np.full(len(block.step), np.nan) if part is None else part
            for part, block in zip(parts, blocks, strict=True)
        )
        return np.concatenate(list(filled))

    return Block(
        run=blocks[0].run,
        branch=blocks[0].branch,
        step=np.concatenate([block.step for block in blocks]),
        values={key: column(block.values.get(key) for block in blocks) for key in keys},
        time=None if all(block.time is None for block in blocks) else column(b.time for b in blocks),
    )


def rows_of(block: Block, rows: Any) -> Block:
    return Block(
        run=block.run,
        branch=block.branch,
        step=block.step[rows],
        values={key: column[rows] for key, column in block.values.items()},
        time=None if block.time is None else block.time[rows],
    )


def _contested(time: Floats, block: Block) -> int:
    """Count steps that have two values of one key at one time."""
    found: set[float] = set()
    for column in block.values.values():
        logged = ~np.isnan(column)
        step, when, value = block.step[logged], time[logged], column[logged]
        same = (step[1:] == step[:-1]) & (when[1:] == when[:-1]) & (value[1:] != value[:-1])
        found.update(step[1:][same].tolist())
    return len(found)
