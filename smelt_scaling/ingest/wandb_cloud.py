"""Runs on a Weights & Biases server: ``wandb://ENTITY/PROJECT`` for all of a project, ``…/RUN`` for one by its id.

An address is a source like a file: its content is the address. Needs the ``wandb`` package and a login (``wandb
login``). Histories are scanned in full: ``run.history()`` draws about 500 random rows of a longer one and is never
called. A scan of several keys returns only the rows that hold all of them, so every key is scanned alone and the scans
are joined by ``_step``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Event, Facts, Flaw, Reader, Rows, logged_number
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers.wandb_offline import beyond_history
from smelt_scaling.ingest.sources import WANDB, Source

__all__ = ["WANDB_CLOUD", "read_cloud"]

#: State of a run -> its status; every other state (crashed, failed, killed, preempted) is "crashed".
_STATUS = {"finished": "finished", "running": "running", "pending": "running"}
_PAGE = 10_000


def read_cloud(address: str, keys: Keys, api: Any) -> Iterator[Event]:
    """Yield the events of a run, or of every run of a project, oldest first.

    Parameters
    ----------
    address : str
        ``wandb://entity/project`` or ``wandb://entity/project/run``.
    keys : Keys
        What to read.
    api : wandb.Api
        Or anything with its ``run`` and ``runs``.

    Raises
    ------
    IngestError
        If this is no address, or no run there has a row that is wanted.
    """
    parts = address.removeprefix(WANDB).strip("/").split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise IngestError(
            f"{address}: no address of runs; write {WANDB}ENTITY/PROJECT or {WANDB}ENTITY/PROJECT/RUN"
        )
    project = "/".join(parts[:2])
    ids = parts[2:] or [run.id for run in api.runs(project, order="+created_at")]
    empty = 0
    for run_id in ids:
        run = api.run(f"{project}/{run_id}")
        name = run.name or run.id
        table = _history(run, keys)
        if table:
            yield Facts(run=name, values=_facts(run))
            yield from _rows(name, table, run.summary_metrics, keys)
        else:
            empty += 1
            yield Flaw(
                code="empty_run", message=f"no row with a key to read; its state is {run.state}", run=name
            )
    if empty == len(ids):
        raise IngestError(
            f"{address}: {len(ids)} runs, none with a row that has a key to read; name the loss: --map loss=KEY"
        )


def _history(run: Any, keys: Keys) -> dict[int, dict[str, float]]:
    """Return the wanted values of a run, by W&B's step and by key."""
    known = (run.history_keys or {}).get("keys", {})
    wanted = [key for key in sorted(known) if _wanted(key, keys)]
    table: dict[int, dict[str, float]] = {}
    for scanned in [["_step", key] for key in wanted] if known else [None]:
        for row in run.scan_history(keys=scanned, page_size=_PAGE):
            for key, value in row.items():
                number = logged_number(value) if _wanted(key, keys) else float("nan")
                if number == number:
                    table.setdefault(row["_step"], {})[key] = number
    return table


def _rows(
    name: str, table: Mapping[int, dict[str, float]], summary: Mapping[str, Any], keys: Keys
) -> Iterator[Event]:
    """Yield the rows in the order of W&B's step, and what only the summary holds at the last one."""
    step_key = keys.named.get("step", "_step")
    rows, unplaced, step = Rows(run=name), 0, float("nan")
    for at in sorted(table):
        values = table[at]
        place = float(at) if step_key == "_step" else values.pop(step_key, float("nan"))
        if place != place:
            unplaced += 1
        elif rows.add(step := place, values):
            yield from rows.take()
    seen = {key for values in table.values() for key in values}
    final = {key: logged_number(value) for key, value in _flat(summary) if _wanted(key, keys)}
    only = beyond_history(final, seen | {step_key})
    if only and step == step:
        rows.add(step, only)
    yield from rows.take()
    if unplaced:
        yield Flaw(
            code="unread_lines", message=f"{unplaced} rows have no {step_key}", count=unplaced, run=name
        )


def _wanted(key: str, keys: Keys) -> bool:
    return keys.wanted(key) and not key.startswith("_")


def _flat(summary: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield key and value of a nested mapping, keys joined by dots as in W&B's tables."""
    for key, value in summary.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def _facts(run: Any) -> dict[str, float | str]:
    facts: dict[str, float | str] = {"id": run.id, "status": _STATUS.get(run.state, "crashed")}
    if run.created_at:
        created = datetime.fromisoformat(run.created_at)
        facts["created"] = (created if created.tzinfo else created.replace(tzinfo=UTC)).timestamp()
    return facts


def _sniff(head: bytes, name: str) -> bool:
    return name.startswith(WANDB) and head == name.encode()


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    try:
        from wandb import Api
        from wandb.errors import Error
    except ImportError as error:
        raise IngestError(
            f'{source.path}: reading from a W&B server needs one more package; pip install "smelt-scaling[wandb]"'
        ) from error
    try:
        yield from read_cloud(source.path, keys, Api())
    except (Error, ValueError, OSError) as error:
        said = str(error).partition("\n")[0]
        raise IngestError(
            f"{source.path}: W&B says: {said}; check the address, and log in with: wandb login"
        ) from error


WANDB_CLOUD = Reader(
    title="runs on a W&B server",
    sniff=_sniff,
    read=_read,
    known_by="an address `wandb://ENTITY/PROJECT`",
    states=("id", "status", "created"),
)
