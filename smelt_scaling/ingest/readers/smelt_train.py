"""Logs of this project's own trainer: JSON lines of the schema ``smelt-train/1``.

A record is of one kind: ``run`` (settings, budgets), ``train`` or ``eval``. A decay branches off the stable trunk at a
horizon and counts on from its step, so that the trunk repeats its step numbers: ``branch`` is null in the trunk and
names the horizon in a branch. ``wall`` is seconds since the start, not a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from smelt_scaling._rows import STABLE
from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Event, Facts, Flaw, Reader, Resumed, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.sources import Source, text_lines

__all__ = ["SMELT_TRAIN"]

_SCHEMA = "smelt-train/1"


def _sniff(head: bytes, name: str) -> bool:
    try:
        first = json.loads(head.partition(b"\n")[0])
    except ValueError:
        return False
    return isinstance(first, dict) and str(first.get("schema", "")).startswith("smelt-train/")


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    rows = Rows(run=source.name)
    wanted = cache(keys.wanted)
    torn = strange = read = 0
    named: set[str] = set()
    for number, line, whole in text_lines(source):
        record = _record(line)
        kind = record.get("kind")
        if kind == "run":
            if number == 1 and record.get("schema") != _SCHEMA:
                raise IngestError(
                    f"{source.path}: schema {record.get('schema')}: this version reads {_SCHEMA}; update smelt-scaling"
                )
            yield from rows.take()
            rows = Rows(run=str(record.get("run") or source.name))
            yield Facts(run=rows.run, values=_facts(record))
            if rows.run in named:
                yield Resumed(run=rows.run)
            named.add(rows.run)
        elif kind in ("train", "eval") and _is_number(record.get("step")):
            branch = "" if record.get("branch") is None else str(record["branch"])
            if branch != rows.branch:
                yield from rows.take()
                rows = Rows(run=rows.run, branch=branch)
            values = {key: value for key, value in _values(kind, record) if wanted(key)}
            read += 1
            if rows.add(record["step"], values):
                yield from rows.take()
        elif line.strip():
            torn, strange = torn + (not whole), strange + whole
    yield from rows.take()
    if not read:
        raise IngestError(f"{source.path}: no train or eval record: nothing was logged; check the file")
    if torn:
        yield Flaw(code="torn_line", message="the last line is cut off and was not read", run=rows.run)
    if strange:
        yield Flaw(
            code="unread_lines",
            message=f"{strange} lines are no records of {_SCHEMA}",
            count=strange,
            run=rows.run,
        )


def _record(line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _facts(record: Mapping[str, Any]) -> dict[str, float | str]:
    """Return what the settings state; horizons are ends of several branches and so no planned end of the run."""
    budgets, settings = (
        value if isinstance(value, dict) else {} for value in map(record.get, ("budgets", "opt"))
    )
    stated: dict[str, Any] = {
        **{name: budgets.get(name) for name in ("N", "N_act", "F")},
        "batch_size": settings.get("bs"),
        "sequence_length": settings.get("ctx"),
    }
    facts: dict[str, float | str] = {
        name: float(value) for name, value in stated.items() if _is_number(value)
    }
    if "batch_size" in facts and "sequence_length" in facts:
        facts["tokens_per_step"] = float(settings["bs"] * settings["ctx"])
    if isinstance(record.get("arch"), str):
        facts["arch"] = record["arch"]
    if settings.get("seed") is not None:
        facts["seed"] = str(settings["seed"])
    return facts


def _values(kind: str, record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield f"{kind}/loss", record.get("loss")
    yield "tokens", record.get("tokens")
    yield "lr", record.get("lr")
    if isinstance(record.get("phase"), str):
        yield "annealed", float(record["phase"] not in STABLE)
    domains = record.get("domains")
    for domain, loss in domains.items() if isinstance(domains, dict) else ():
        yield f"{kind}/{domain}/loss", loss


SMELT_TRAIN = Reader(
    title="smelt-train/1 JSON lines",
    sniff=_sniff,
    read=_read,
    known_by='a first line with `"schema": "smelt-train/1"`',
    states=("arch", "seed", "tokens_per_step", "sequence_length", "batch_size", "F", "N", "N_act"),
)
