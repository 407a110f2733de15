"""Weights & Biases run files (``run-ID.wandb``), which every run writes, offline or not.

Format: a header of seven bytes, then ``Record`` messages (wandb/proto/wandb_internal.proto) in LevelDB's log format.
History rows carry the run's own keys, nested ones joined by dots as in W&B's tables; ``_step`` counts calls of ``log``
and is the optimiser step unless another key is named. Values of the summary that no history has are a last row.
A run resumed elsewhere is a file of its own with the same id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest._blocks import BLOCK, blocked_records
from smelt_scaling.ingest._tfrecord import Lost
from smelt_scaling.ingest._wire import fields
from smelt_scaling.ingest.events import Event, Facts, Flaw, Reader, Resumed, Rows, logged_number
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.sources import Source, chunks

__all__ = ["WANDB_OFFLINE", "beyond_history"]

_HEADER = b":W&B\xe1\xbe\x00"  # mark, 0xBEE1, version 0
_NUM, _HISTORY, _SUMMARY, _RUN, _EXIT = 1, 2, 3, 17, 18  # fields of Record
_ID, _NAME, _STARTING_STEP, _START, _RESUMED, _BRANCH = 1, 8, 14, 17, 18, 23  # fields of RunRecord
_VALUE = 16  # field of HistoryItem and SummaryItem: the value as JSON; the others are parts of its key


def _sniff(head: bytes, name: str) -> bool:
    return head.startswith(_HEADER[:4])


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    if not source.head().startswith(_HEADER):
        raise IngestError(
            f"{source.path}: a W&B file of another version than 0; sync it and export the run as CSV or JSON"
        )
    lost, facts = Lost(), dict[str, Any]()
    read = _overview(source, facts)
    if not read:
        raise IngestError(f"{source.path}: no record in it can be read; copy the file again")
    run = facts.pop("name", None) or facts.get("id") or source.name
    resumed = facts.pop("resumed", None)
    yield Facts(run=run, values=facts)
    if resumed is not None:
        yield Resumed(run=run, step=resumed or None)
    table = _Table(run=run, keys=keys)
    missing, last = 0, 0
    for number, kind, record in _records(source, lost):
        missing, last = missing + max(0, number - last - 1), number or last
        if kind == _HISTORY:
            yield from table.history(record)
        elif kind == _SUMMARY:
            table.summary(record)
    yield from table.end()
    if lost.gaps:
        yield Flaw(
            code="damaged_records",
            message=f"{missing} records lost in {lost.gaps} damaged places, {lost.bytes} bytes",
            count=max(missing, lost.gaps),
            run=run,
        )
    if lost.torn:
        yield Flaw(code="torn_line", message="the last record is cut off and was not read", run=run)
    if table.unplaced:
        yield Flaw(
            code="unread_lines",
            message=f"{table.unplaced} rows have no {table.step_key}",
            count=table.unplaced,
            run=run,
        )


def _records(source: Source, lost: Lost) -> Iterator[tuple[int, int, bytes]]:
    """Yield number, kind and content of every record of a kind that matters."""
    for data in blocked_records(chunks(source, BLOCK), lost, skip=len(_HEADER)):
        found = dict(fields(data))
        kind = next((kind for kind in (_HISTORY, _SUMMARY, _RUN, _EXIT) if kind in found), 0)
        yield found.get(_NUM, 0), kind, found.get(kind, b"")


def _overview(source: Source, facts: dict[str, Any]) -> int:
    """Read through the file for what it says of the run as a whole, and return how many records there are."""
    status, read = "running", 0  # a run that ends, ends its file with an exit record
    for _, kind, record in _records(source, Lost()):
        read += 1
        if kind == _RUN:
            facts |= _run(dict(fields(record)))
        elif kind == _EXIT:
            status = "crashed" if dict(fields(record)).get(1) else "finished"
    facts["status"] = status
    return read


def _run(record: dict[int, Any]) -> dict[str, Any]:
    """Return the facts of a RunRecord; a later one changes those that it states, such as the name."""
    texts = {"id": _ID, "name": _NAME}
    facts: dict[str, Any] = {
        name: record[at].decode("utf-8", "replace") for name, at in texts.items() if at in record
    }
    if _START in record:
        start = dict(fields(record[_START]))
        facts["created"] = start.get(1, 0) + start.get(2, 0) / 1e9
    if record.get(_RESUMED):
        facts["resumed"] = float(record.get(_STARTING_STEP, 0))
    if _BRANCH in record and (parent := dict(fields(record[_BRANCH])).get(1)):
        facts["parent"] = parent.decode("utf-8", "replace")
    return facts


def beyond_history(summary: Mapping[str, float], seen: Collection[str]) -> dict[str, float]:
    """Return what only a summary holds: for the keys of a history it has their last value, or their extremes.

    Examples
    --------
    >>> beyond_history({"eval/loss": 2.5, "eval/loss.min": 2.4, "test/loss": 2.6}, {"eval/loss"})
    {'test/loss': 2.6}
    """
    return {
        key: value for key, value in summary.items() if key not in seen and key.rpartition(".")[0] not in seen
    }


@dataclass(kw_only=True, eq=False)
class _Table:
    """Rows of the history, and what the summary holds besides."""

    run: str
    keys: Keys
    unplaced: int = 0
    step: float = float("nan")
    seen: set[str] = field(default_factory=set)
    final: dict[str, float] = field(default_factory=dict)
    names: dict[bytes, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.step_key = self.keys.named.get("step", "_step")
        self.rows = Rows(run=self.run)

    def history(self, record: bytes) -> Iterator[Event]:
        """Add one row."""
        items = fields(record)
        values = self.values(item for number, item in items if number == 1)
        step = values.pop(self.step_key, float("nan"))
        time = values.pop("_timestamp", None)
        values.pop("_step", None)
        if step != step and self.step_key == "_step":
            step = next((dict(fields(item)).get(1, 0) for number, item in items if number == 2), step)
        if step != step:
            self.unplaced += 1
            return
        self.step = step
        self.seen |= values.keys()
        if values and self.rows.add(step, values, time):
            yield from self.rows.take()

    def summary(self, record: bytes) -> None:
        """Remember the final values."""
        self.final |= self.values(item for number, item in fields(record) if number == 1)

    def end(self) -> Iterator[Event]:
        """Yield the last rows: what only the summary holds stands at the last step."""
        step = self.step if self.step == self.step else self.final.get(self.step_key, float("nan"))
        only = beyond_history(self.final, self.seen | {self.step_key, "_step", "_timestamp"})
        if only and step == step:
            self.rows.add(step, only)
        yield from self.rows.take()

    def values(self, items: Iterable[bytes]) -> dict[str, float]:
        """Return the numbers among the wanted items of a history or summary, by their keys."""
        found = {}
        for item in items:
            parts, text = [], b""
            for place, value in fields(item):
                if place == _VALUE:
                    text = value
                else:
                    parts.append(value)
            path = b".".join(parts)
            name = self.names.get(path)
            if name is None:
                name = path.decode("utf-8", "replace")
                own = name.startswith("_")  # W&B's own; a few of them matter
                wanted = name in (self.step_key, "_step", "_timestamp") or (
                    not own and self.keys.wanted(name)
                )
                name = self.names[path] = name if wanted else ""
            if name:
                number = logged_number(text.decode("utf-8", "replace").strip('"'))
                if number == number:
                    found[name] = number
        return found


WANDB_OFFLINE = Reader(
    title="W&B run file (.wandb)",
    sniff=_sniff,
    read=_read,
    known_by="the header `:W&B`",
    states=("id", "parent", "status", "created"),
)
