"""Tables of logged steps: CSV, JSON lines, Parquet or Arrow with one row per step, of one run or of many.

There is no one producer: such files are written by pandas, ``json.dumps`` or an export of a run's history, and columns
are known by their names (see `smelt_scaling.ingest.keys`). Rows of several runs may be interleaved, and the rows of a
run may be shuffled, as databases and parallel writers leave them.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._rows import STABLE
from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Block, Event, Flaw, Reader, logged_number
from smelt_scaling.ingest.keys import Keys, is_loss
from smelt_scaling.ingest.readers._cells import labels_of, numbers_of, times_of
from smelt_scaling.ingest.readers._order import Lane, rows_of
from smelt_scaling.ingest.readers._stated import OF_RUNS, Stated, stated_columns
from smelt_scaling.ingest.readers._tables import Table, open_table
from smelt_scaling.ingest.sources import Source

__all__ = ["STEP_TABLE"]

_ROLES = ("run", "branch", "phase", "time", "step")


def _sniff(head: bytes, name: str) -> bool:
    if head.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
        return True
    lines = [line for line in head.decode("utf-8-sig", "replace").split("\n") if line.strip()]
    if not lines:
        return False
    if lines[0].lstrip().startswith("{"):
        return _sniff_json(lines, name)
    lines = [line.strip("\r") for line in lines if not line.startswith("#")][:2]
    if len(lines) < 2 or "\0" in lines[0]:
        return False
    separator = max(",;\t", key=lines[0].count)
    try:
        first, second = (next(csv.reader([line], delimiter=separator, strict=True)) for line in lines)
    except csv.Error:
        return False
    keys = [key.strip() for key in first]
    return (
        1 < len(keys) == len(second)
        and all(keys)
        and not all(" - " in key for key in keys[1:])
        and any(_is_known(key) and _is_value(cell) for key, cell in zip(keys, second, strict=True))
    )


def _sniff_json(lines: list[str], name: str) -> bool:
    try:
        first = json.loads(lines[0])
    except ValueError:
        return False
    several = name.endswith((".jsonl", ".ndjson")) or (len(lines) > 1 and lines[1].startswith("{"))
    seqio = "perplexity" in first and not any("loss" in key for key in first)
    return several and "schema" not in first and not seqio and any(map(_is_known, first))


def _is_known(key: str) -> bool:
    return Keys().find("step", [key]) is not None or is_loss(key)


def _is_value(cell: str) -> bool:
    return not cell.strip() or logged_number(cell) == logged_number(cell)


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    with open_table(source) as table:
        yield from _events(source, table, keys)


def _events(source: Source, table: Table, keys: Keys) -> Iterator[Event]:
    roles = {role: key for role in _ROLES if (key := keys.find(role, table.names)) is not None}
    if "step" not in roles:
        shown = ", ".join(table.names[:12])
        raise IngestError(
            f"{source.path}: no column of steps among {shown}: each row of a log needs one; name it with "
            "--map step=COLUMN"
        )
    used = [name for name in table.names if name in roles.values() or keys.wanted(name)]
    twice = [name for name, n in Counter(used).items() if n > 1]
    if twice:
        raise IngestError(f"{source.path}: column {twice[0]} is there twice: rename or drop one of the two")
    texts = (*(roles[role] for role in ("run", "branch", "phase") if role in roles), *sorted(OF_RUNS))
    lost: Counter[str] = Counter()
    cells: Counter[str] = Counter()
    lanes: dict[tuple[str, str], Lane] = {}
    read = 0
    stated = Stated()

    def wanted(key: str) -> bool:
        return key in roles.values() or key in OF_RUNS or keys.wanted(key)

    for batch in table.batches(wanted, texts, lost):
        for block in _blocks(batch, roles, source.name, lost, cells, stated):
            lane = lanes.get((block.run, block.branch))
            if lane is None:
                lane = Lane(path=source.path, run=block.run, branch=block.branch)
                lanes[block.run, block.branch] = lane
            read += len(block.step)
            yield from lane.deal(block)
    for lane in lanes.values():
        yield from lane.finish()
    yield from stated.facts()
    if not read:
        raise IngestError(
            f"{source.path}: no row has a number in column {roles['step']}; check --map step=COLUMN"
        )
    for what, count in (+lost).items():
        if what == "torn":
            yield Flaw(code="torn_line", message="the last line has no end and was not read", count=count)
        else:
            yield Flaw(code="unread_lines", message=f"{count} rows {what} and were not read", count=count)
    for name, count in (+cells).items():
        kind = "time in seconds since 1970" if name == roles.get("time") else "number"
        message = f"column {name}: {count} cells hold no {kind} and were taken as empty"
        yield Flaw(code="unread_cells", message=message, count=count)


def _blocks(
    batch: Mapping[str, Any],
    roles: Mapping[str, str],
    name: str,
    lost: Counter[str],
    cells: Counter[str],
    stated: Stated,
) -> Iterator[Block]:
    """Split a batch stably by run and branch."""
    n = len(next(iter(batch.values()), ()))

    def labels(role: str, default: str) -> tuple[Any, list[str]]:
        if roles.get(role) not in batch:
            return np.zeros(n, dtype=np.intp), [default]
        return labels_of(batch[roles[role]])

    step_key = roles["step"]
    step = numbers_of(batch.get(step_key, [None] * n), cells, step_key)
    said = stated_columns({key: column for key, column in batch.items() if key not in roles.values()}, cells)
    values = {
        key: numbers_of(column, cells, key)
        for key, column in batch.items()
        if key not in roles.values() and key not in said
    }
    if Keys().find("tokens", [step_key]):  # steps counted in tokens
        values[step_key] = step
    if "phase" in roles:
        phase, phases = labels("phase", "")
        annealed = [
            float(text.strip().casefold() not in STABLE) if text.strip() else np.nan for text in phases
        ]
        values["annealed"] = np.array([*annealed, np.nan])[phase]  # the code of an empty cell is -1
    time = times_of(batch[roles["time"]], cells, roles["time"]) if roles.get("time") in batch else None
    run, runs = labels("run", name)
    branch, branches = labels("branch", "")
    branches = [*branches, ""]
    rows = Block(run="", step=step, values=values, time=time)
    lane = run * len(branches) + branch % len(branches)
    finite = np.isfinite(step)
    whole = finite & (run >= 0)
    order: Any = slice(None)
    if not whole.all():
        lost["have no step"] += int((~finite).sum())
        lost["name no run"] += int((finite & (run < 0)).sum())
        order = np.flatnonzero(whole)
        lane = lane[order]
        if not len(lane):
            return
    starts = _starts(lane)
    if len(np.unique(lane[starts])) < len(starts):  # interleaved
        by_lane = np.argsort(lane, kind="stable")
        order, lane = np.arange(n)[order][by_lane], lane[by_lane]
        starts = _starts(lane)
    if not isinstance(order, slice):
        rows = rows_of(rows, order)
    said = {key: (column[order], texts) for key, (column, texts) in said.items()}
    for start, stop in zip(starts, [*starts[1:], len(lane)], strict=True):
        own = slice(start, stop)
        whose, which = divmod(int(lane[start]), len(branches))
        stated.see(runs[whose], {key: (column[own], texts) for key, (column, texts) in said.items()})
        yield replace(rows_of(rows, own), run=runs[whose], branch=branches[which])


def _starts(lane: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return where a lane begins."""
    return np.concatenate([[0], np.flatnonzero(lane[1:] != lane[:-1]) + 1])


STEP_TABLE = Reader(
    title="table of steps: CSV, JSON lines, Parquet or Arrow",
    sniff=_sniff,
    read=_read,
    known_by="columns or keys such as `step` and `loss`, if nothing above matches",
    states=tuple(sorted(OF_RUNS)),
)
