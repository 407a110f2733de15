"""MLflow's file store: a folder per run with ``meta.yaml``, ``metrics/KEY``, ``params/KEY`` and ``tags/KEY``.

Format: mlflow/store/tracking/file_store.py. A metric file has a line ``TIMESTAMP VALUE [STEP [DATASET DIGEST]]`` per
value (milliseconds since 1970; no step is step 0), and a key with slashes is a file in folders. The metrics of a run
are read whole and joined by step; where one goes back in steps, or repeats one, a new piece of the run begins. The
``meta.yaml`` of an experiment or a model names no run and holds no rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from operator import itemgetter

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Event, Facts, Flaw, Reader, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.sources import Source, text_lines

__all__ = ["MLFLOW_STORE"]

#: RunStatus (mlflow/protos/service.proto), stored as its number.
_STATUS = {"1": "running", "2": "running", "3": "finished", "4": "crashed", "5": "crashed"}
_EXPERIMENT = re.compile(rb"^experiment_id:", re.MULTILINE)
_FIELD = re.compile(r"(\w+): *(?:'((?:[^']|'')*)'|\"([^\"]*)\"|(.*))$")

#: One logged value: milliseconds since 1970, key, step, value.
_Value = tuple[int, str, int, float]


def _sniff(head: bytes, name: str) -> bool:
    places = (b"artifact_uri:", b"artifact_location:")
    return _EXPERIMENT.search(head) is not None and any(place in head for place in places)


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    meta = _fields(source)
    run_id = meta.get("run_id") or meta.get("run_uuid")
    if not run_id and "artifact_uri" in meta:
        raise IngestError(f"{source.path}: a run's file without its run_id; copy the file again")
    if not run_id:
        return
    if not source.beside:
        raise IngestError(f"{source.path}: the metrics of a run lie beside this file; name the run's folder")
    folder = source.folder + "/" if source.folder else ""
    beside = {part.path.replace("\\", "/").removeprefix(folder): part for part in source.beside}
    name = beside.get("tags/mlflow.runName")
    run = (" ".join(line for _, line, _ in text_lines(name)) if name else meta.get("run_name")) or run_id
    if meta.get("lifecycle_stage") == "deleted":
        yield Flaw(code="deleted_run", message="the run is marked as deleted and was not read", run=run)
        return
    yield Facts(run=run, values=_facts(run_id, meta, source))
    metrics = {
        path.removeprefix("metrics/"): part for path, part in beside.items() if path.startswith("metrics/")
    }
    wanted = {key: part for key, part in sorted(metrics.items()) if keys.wanted(key)}
    values: list[_Value] = []
    flaws: list[Flaw] = []
    for key, part in wanted.items():
        values += _values(part, key, run, flaws)
    values.sort(key=itemgetter(0))  # in time, and in the order of the file where times are equal
    rows = Rows(run=run)
    for step, row, time in _joined(values):
        if rows.add(step, row, time):
            yield from rows.take()
    yield from rows.take()
    yield from flaws


def _values(part: Source, key: str, run: str, flaws: list[Flaw]) -> Iterator[_Value]:
    """Yield the values of one metric."""
    strange = 0
    for _, line, whole in text_lines(part):
        value = _value(line, key) if whole else None
        if value:
            yield value
        elif whole:
            strange += bool(line.strip())
        else:
            message = f"metric {key}: the last line has no end and was not read"
            flaws.append(Flaw(code="torn_line", message=message, run=run))
    if strange:
        message = f"metric {key}: {strange} lines are no metric values"
        flaws.append(Flaw(code="unread_lines", message=message, count=strange, run=run))


def _value(line: str, key: str) -> _Value | None:
    cells = line.split(" ")
    try:
        return int(cells[0]), key, int(cells[2]) if len(cells) > 2 else 0, float(cells[1])
    except (ValueError, IndexError):
        return None


def _joined(values: Iterable[_Value]) -> Iterator[tuple[int, dict[str, float], float]]:
    """Yield step, values by key and time of the rows of each piece of the run, sorted by step within the piece."""
    last: dict[str, int] = {}
    rows: dict[int, dict[str, float]] = {}
    times: dict[int, float] = {}
    for time, key, step, value in values:
        if step <= last.get(key, -1):
            yield from ((at, rows[at], times[at]) for at in sorted(rows))
            last, rows, times = {}, {}, {}
        last[key] = step
        rows.setdefault(step, {})[key] = value
        times[step] = time / 1000
    yield from ((at, rows[at], times[at]) for at in sorted(rows))


def _facts(run_id: str, meta: dict[str, str], source: Source) -> dict[str, float | str]:
    facts: dict[str, float | str] = {"id": run_id}
    status = meta.get("status", "1")  # as MLflow reads a run without one
    if status not in _STATUS:
        raise IngestError(
            f"{source.path}: status {status} is none of {', '.join(_STATUS)}; is the file damaged?"
        )
    facts["status"] = _STATUS[status]
    if meta.get("start_time", "").isdigit():
        facts["created"] = int(meta["start_time"]) / 1000
    return facts


def _fields(source: Source) -> dict[str, str]:
    """Return the scalar fields of a flat YAML document."""
    matches = (_FIELD.match(line) for _, line, _ in text_lines(source))
    return {m[1]: (m[2] or "").replace("''", "'") or m[3] or m[4] or "" for m in matches if m}


MLFLOW_STORE = Reader(
    title="MLflow file store",
    sniff=_sniff,
    read=_read,
    known_by="`meta.yaml` with `artifact_uri`",
    states=("id", "status", "created"),
)
