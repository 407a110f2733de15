"""Reads a log from its text in memory, as its own file would be read, and damages it."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Block, Facts, Flaw, Reader, Resumed
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers import READERS
from smelt_scaling.ingest.sources import Source

Row = tuple[float, dict[str, float]]


@dataclass(kw_only=True)
class Log:
    """All that a reader said of a file; cells that a row lacks are left out."""

    runs: set[str] = field(default_factory=set)
    rows: list[Row] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    flaws: dict[str, int] = field(default_factory=dict)
    resumed: list[tuple[int, float | None]] = field(default_factory=list)  # rows before it, step it states

    def column(self, key: str) -> list[Row]:
        return [(step, values[key]) for step, values in self.rows if key in values]


def read(reader: Reader, content: bytes | str, path: str = "runs/one.log", keys: Keys | None = None) -> Log:
    data = content.encode() if isinstance(content, str) else content
    source = Source(
        path=path,
        name=str(Path(path).with_suffix("")),
        size=len(data),
        opener=lambda: io.BytesIO(data),
    )
    log = Log()
    for event in reader.read(source, keys or Keys()):
        log.runs.add(event.run)
        if isinstance(event, Facts):
            assert set(event.values) <= set(reader.states)  # what docs/logs.md says of the format
            log.facts |= event.values
        elif isinstance(event, Flaw):
            log.flaws[event.code] = event.count
        elif isinstance(event, Resumed):
            log.resumed.append((len(log.rows), event.step))
        else:
            assert isinstance(event, Block)
            for place, step in enumerate(event.step.tolist()):
                assert math.isfinite(step)
                cells = {key: float(column[place]) for key, column in event.values.items()}
                log.rows.append((step, {key: cell for key, cell in cells.items() if not math.isnan(cell)}))
                log.times.append(math.nan if event.time is None else float(event.time[place]))
    return log


def claimed(content: bytes | str, path: str = "runs/one.log") -> list[str]:
    """Names of the readers that take a file for theirs."""
    data = content.encode() if isinstance(content, str) else content
    return [name for name, reader in READERS.items() if reader.sniff(data[:262144], path)]


def within(part: Row, whole: Row) -> bool:
    return part[0] == whole[0] and part[1].items() <= whole[1].items()


def damaged(reader: Reader, content: str, data: st.DataObject, path: str = "runs/one.log") -> None:
    """Cut, flip, or thin and repeat lines; what is read must be part of what was there, or be refused in one line.

    A document with other lines may be whole, and say something else.
    """
    whole = read(reader, content, path)
    raw = content.encode()
    document = len(content.splitlines()[0]) < 3
    how = data.draw(st.sampled_from(["cut", "flip"] if document else ["cut", "flip", "thin", "repeat"]))
    lines = raw.splitlines(keepends=True)
    if how == "cut":
        raw = raw[: data.draw(st.integers(0, len(raw) - 1))]
    elif how == "flip":
        flipped = bytearray(raw)
        for place in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=8)):
            flipped[place] ^= 1 << data.draw(st.integers(0, 7))
        raw = bytes(flipped)
    else:
        chosen = data.draw(st.sets(st.integers(0, len(lines) - 1), min_size=1))
        times = 0 if how == "thin" else 2
        raw = b"".join(line * (times if place in chosen else 1) for place, line in enumerate(lines))
    try:
        log = read(reader, raw, path)
    except IngestError as error:
        assert str(error).startswith(f"{path}: ")  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
        return
    if how == "cut":
        assert len(log.rows) <= len(whole.rows)
        assert all(within(*pair) for pair in zip(log.rows, whole.rows, strict=False))
    elif how != "flip":
        assert all(any(within(row, other) for other in whole.rows) for row in log.rows)


@dataclass(frozen=True)
class Tools:
    read: Any = staticmethod(read)
    claimed: Any = staticmethod(claimed)
    damaged: Any = staticmethod(damaged)


@pytest.fixture(scope="session")
def logs() -> Tools:
    """Functions to read and damage logs."""
    return Tools()
