"""Runs of Weights & Biases as its API gives them, saved as JSON: config, summary and history; or the history alone.

Format: ``wandb.Api().run(path)`` with ``run.config``, ``run.summary``, and ``run.history()`` or ``scan_history()`` as a
list of rows, as columns, or as one ``{"_step": [...], KEY: [...]}`` per key; one run, or a list of them. Keys of nested
dictionaries are joined by points, as the history does: ``val/`` -> ``dclm_loss`` of the summary is its
``val/.dclm_loss``. Text of Python, as in schedules, is not evaluated. Of the summary only that is a row of its own, at
its step, which the history does not end with. ``run.history()`` returns about 500 random rows of longer runs: numbers
of rows that betray this are a flaw.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Event, Facts, Flaw, Reader, Rows, logged_number
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers._shared import chooser, finite, flat, json_document, no_rows, text_of
from smelt_scaling.ingest.readers._wandb import stated, step_key
from smelt_scaling.ingest.sources import Source

__all__ = ["WANDB_API"]

_LIST = re.compile(rb"\s*\[\s*\{")
_STEP = re.compile(rb'"_step"\s*:')
_RUN = (re.compile(rb'"summary"\s*:\s*\{'), re.compile(rb'"(config|history)"\s*:\s*[\[{]'))

Row = Mapping[str, Any]


def _sniff(head: bytes, name: str) -> bool:
    if _LIST.match(head):
        return _STEP.search(head) is not None
    return head.lstrip().startswith(b"{") and all(pattern.search(head) for pattern in _RUN)


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    document = json_document(source)
    if isinstance(document, dict):
        yield from _run(source, document, keys)
    elif isinstance(document, list) and document and all(map(_is_run, document)):
        for record in document:
            yield from _run(source, record, keys, alone=False)
    else:
        yield from _run(source, {"history": document}, keys)


def _is_run(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("summary"), dict)


def _run(source: Source, record: Row, keys: Keys, alone: bool = True) -> Iterator[Event]:
    run = text_of(record.get("name")) or text_of(record.get("id")) or source.name
    config, summary = _values(record.get("config")), _values(record.get("summary"))
    history, exports, lacking = _history(source, record.get("history"))
    if facts := _facts(record) | stated([*config.items(), *summary.items()]):
        yield Facts(run=run, values=facts)

    chosen = chooser(keys)
    telling = [(row, values) for row in history if (values := chosen(row))]
    counter = step_key(keys, [row for row, _ in telling] or [summary])
    rows = Rows(run=run)
    read = 0
    ends: dict[str, float] = {}
    for row, values in telling:
        step = finite(row.get(counter))
        if step is None:
            lacking += 1
            continue
        read += 1
        ends |= {key: number for key, value in values.items() if (number := logged_number(value)) == number}
        if rows.add(step, values, finite(row.get("_timestamp"))):
            yield from rows.take()
    said = {key: logged_number(value) for key, value in chosen(summary).items()}
    rest = {key: number for key, number in said.items() if number == number and number != ends.get(key)}
    last = finite(summary.get(counter))
    if last is not None and (rest or not read):
        rows.add(last, rest)
    elif not read and alone:
        raise no_rows(source, f"neither history nor summary of {run} has {counter}")
    else:
        lacking += last is None and (bool(rest) or not read)
    yield from rows.take()
    if samples := [len(export) for export in exports if _sampled(export)]:
        yield Flaw(
            code="sampled_history",
            message=f"{samples[0]} rows with uneven steps: run.history() returns a random sample of them; "
            "export with run.scan_history()",
            run=run,
        )
    if lacking:
        yield Flaw(
            code="unread_lines",
            message=f"{lacking} rows of history or summary have no {counter}",
            count=lacking,
            run=run,
        )


def _values(record: Any) -> dict[str, Any]:
    """Return flat keys; the values of a raw configuration are wrapped as ``{"value": …, "desc": …}``."""
    if not isinstance(record, dict):
        return {}
    unwrapped = {
        key: value["value"]
        if isinstance(value, dict) and set(value) in ({"value"}, {"value", "desc"})
        else value
        for key, value in record.items()
    }
    return dict(flat(unwrapped))


def _facts(record: Row) -> dict[str, float | str]:
    named = {"id": text_of(record.get("id")), "status": text_of(record.get("state"))}
    facts: dict[str, float | str] = {fact: text for fact, text in named.items() if text}
    with contextlib.suppress(ValueError, OverflowError):
        facts["created"] = datetime.fromisoformat(text_of(record.get("created_at"))).timestamp()
    return facts


def _history(source: Source, history: Any) -> tuple[list[Row], list[list[float]], int]:
    """Return the rows of a history of any shape, the steps of each export it is made of, and items that are no rows."""
    if history is None:
        return [], [], 0
    if isinstance(history, list):
        rows: list[Row] = [dict(flat(row)) for row in history if isinstance(row, dict)]
        steps = [step for row in rows if (step := finite(row.get("_step"))) is not None]
        return rows, [steps], len(history) - len(rows)
    if isinstance(history, dict):
        columns = {"": history} if "_step" in history else history
        table: dict[float, dict[str, Any]] = {}
        exports = [_transposed(source, name, series) for name, series in columns.items()]
        for export in exports:
            for row in export:
                table.setdefault(row["_step"], {}).update(row)
        # Series of one key each are joined by step, of which wandb logs each once, in order.
        return (
            [table[step] for step in sorted(table)],
            [[row["_step"] for row in export] for export in exports],
            0,
        )
    raise IngestError(f"{source.path}: history is neither rows nor columns: export it again")


def _transposed(source: Source, name: str, series: Any) -> list[dict[str, Any]]:
    """Turn columns, one of which is "_step", into rows."""
    columns: dict[str, list[Any]] = {}
    for key, column in series.items() if isinstance(series, dict) else ():
        columns[key] = list(column.values()) if isinstance(column, dict) else column
    steps = columns.get("_step")
    if not isinstance(steps, list) or any(
        not isinstance(column, list) or len(column) != len(steps) for column in columns.values()
    ):
        where = f"history of {name}" if name else "history"
        raise IngestError(f"{source.path}: {where}: columns need one value per _step; export it again")
    columns["_step"] = [finite(step) for step in steps]
    if None in columns["_step"] or len(set(columns["_step"])) < len(steps):
        where = f"history of {name}" if name else "history"
        raise IngestError(f"{source.path}: {where}: _step must be numbers, each once; export it again")
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _sampled(steps: Sequence[float]) -> bool:
    """Whether rows are as many as samples have, and their steps uneven; the last step of a run is uneven anyway."""
    if not (490 <= len(steps) <= 530 or len(steps) in (1000, 10000)):
        return False
    return len({later - step for step, later in zip(steps[:-2], steps[1:-1], strict=True)}) > 1


WANDB_API = Reader(
    title="Weights & Biases run (JSON)",
    sniff=_sniff,
    read=_read,
    sampled=True,
    known_by="a JSON object with `summary` and `config` or `history`; a list of rows with `_step`",
    states=(
        "id",
        "status",
        "created",
        "planned_steps",
        "sequence_length",
        "batch_size",
        "tokens_per_step",
        "N",
        "seed",
    ),
)
