"""Charts exported by the web interface of Weights & Biases as CSV: a column per run and metric.

The header reads ``"Step","RUN - METRIC","RUN - METRIC__MIN","RUN - METRIC__MAX"``, every cell is quoted, and a run
that does not reach a step has empty cells there, so that the restarts of one training stand side by side. Over many
points a chart shows means of buckets, whose least and greatest value then differ; a column ``Group: NAME - METRIC`` is
a mean over runs.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Event, Flaw, Reader, Rows, logged_number
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.sources import Source, text_lines

__all__ = ["WANDB_CSV"]

_SIDES = ("__MIN", "__MAX")
_DASH = " - "
#: Points to which the interface and the API thin a run's history, if they are irregular.
_SAMPLES = (range(490, 531), range(1000, 1001), range(1500, 1501), range(10000, 10001))


def _sniff(head: bytes, name: str) -> bool:
    cells = _split(head.decode("utf-8-sig", "replace").partition("\n")[0])
    return cells is not None and len(cells) > 1 and all(_DASH in cell for cell in cells[1:])


def _split(line: str) -> list[str] | None:
    try:
        return next(csv.reader([line.rstrip("\r")], strict=True), None)
    except csv.Error:
        return None


@dataclass(kw_only=True, eq=False)
class _Run:
    """One run of the chart: its columns, and what shows that it was thinned."""

    rows: Rows
    columns: list[tuple[int, str, tuple[int, ...]]] = field(default_factory=list)
    group: bool = False
    points: int = 0
    averaged: int = 0
    last: float | None = None
    gaps: set[float] = field(default_factory=set)

    def add(self, x: float, cells: list[str], axis: dict[str, float], unread: Counter[str]) -> bool:
        values: dict[str, float] = {}
        for column, metric, sides in self.columns:
            if not cells[column].strip():
                continue
            values[metric] = logged_number(cells[column])
            if values[metric] != values[metric]:
                unread[self.rows.run] += 1
                del values[metric]
            self.averaged += len(sides) == 2 and cells[sides[0]] != cells[sides[1]]
        if not values:
            return False
        self.points += 1
        if self.last is not None and len(self.gaps) < 3:
            self.gaps.add(x - self.last)
        self.last = x
        return self.rows.add(x, {**axis, **values})

    def flaws(self) -> Iterator[Flaw]:
        run = self.rows.run
        if self.group:
            yield Flaw(code="grouped_mean", message=f"{run!r} is a mean over the runs of a group", run=run)
        elif self.averaged:
            message = (
                f"{self.averaged} points of run {run!r} are means of several; export its history by the API"
            )
            yield Flaw(code="sampled_history", message=message, count=self.averaged, run=run)
        elif len(self.gaps) > 1 and any(self.points in sample for sample in _SAMPLES):
            message = f"run {run!r} has {self.points} irregular points, as a sample has; export its history by the API"
            yield Flaw(code="sampled_history", message=message, count=self.points, run=run)


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    runs: list[_Run] = []
    unread: Counter[str] = Counter()
    torn = strange = read = width = 0
    axis = ""
    for number, line, whole in text_lines(source):
        cells = _split(line.removeprefix("\ufeff") if number == 1 else line)
        if number == 1:
            if cells is None or not all(_DASH in cell for cell in cells[1:]):
                raise IngestError(
                    f"{source.path}: line 1: broken header, a column is no 'RUN - METRIC'; export the chart again"
                )
            axis, width = _axis(source, cells[0], keys), len(cells)
            runs, flaws = _columns(source, cells, keys)
            yield from flaws
            continue
        if not line.strip():
            continue
        x = logged_number(cells[0]) if cells else float("nan")
        # The last line has no end; its last quote says that it is whole.
        cut = not whole and not line.rstrip().endswith('"')
        if cells is None or len(cells) != width or not abs(x) < float("inf") or cut:
            torn, strange = torn + (not whole), strange + whole
            continue
        read += 1
        for run in runs:
            if run.add(x, cells, {axis: x} if axis else {}, unread):
                yield from run.rows.take()
    if not read:
        raise IngestError(
            f"{source.path}: no row that can be read: the export is empty; export the chart again"
        )
    for run in runs:
        yield from run.rows.take()
        yield from run.flaws()
    if torn:
        yield Flaw(code="torn_line", message="the last line is cut off and was not read")
    if strange:
        message = f"{strange} lines do not have the {width} cells of the header"
        yield Flaw(code="unread_lines", message=message, count=strange)
    for name, count in unread.items():
        message = f"run {name!r}: {count} cells hold no number and were taken as empty"
        yield Flaw(code="unread_cells", message=message, count=count, run=name)


def _axis(source: Source, name: str, keys: Keys) -> str:
    """Return the key of tokens that the x axis counts, or nothing where it counts steps."""
    if keys.find("step", [name]):
        return ""
    if keys.find("tokens", [name]):
        return name
    raise IngestError(
        f"{source.path}: the x axis is {name!r}: a log is read by Step or by tokens; set the x axis of the chart and "
        "export it again"
    )


def _columns(source: Source, cells: list[str], keys: Keys) -> tuple[list[_Run], list[Flaw]]:
    """Split the header into runs and metrics."""
    places = {cell: i for i, cell in enumerate(cells)}
    seen: Counter[str] = Counter()
    runs: dict[str, _Run] = {}
    doubtful: list[str] = []
    for i, cell in enumerate(cells):
        if i == 0 or cell.endswith(_SIDES):
            continue
        metric = _metric(cell, keys)
        if not keys.wanted(metric):
            continue
        seen[cell] += 1
        again = seen[cell] > 1
        name = cell.removesuffix(_DASH + metric) + (f" [{seen[cell]}]" if again else "")
        doubtful += [cell] if _DASH in name and metric not in keys.named.values() else []
        sides = () if again else tuple(places[cell + side] for side in _SIDES if cell + side in places)
        run = runs.setdefault(name, _Run(rows=Rows(run=name), group=name.startswith("Group: ")))
        run.columns.append((i, metric, sides))
    if not runs:
        shown = ", ".join(
            dict.fromkeys(_metric(cell, keys) for cell in cells[1:] if not cell.endswith(_SIDES))
        )
        raise IngestError(
            f"{source.path}: no column of a loss among {shown}: leave the file out, or name the metric with "
            "--map loss=METRIC"
        )
    flaws = []
    if doubtful:
        metric = _metric(doubtful[0], keys)
        message = (
            f"{len(doubtful)} columns with several dashes were split at the last one: {doubtful[0]!r} is {metric!r} of "
            f"run {doubtful[0].removesuffix(_DASH + metric)!r}; --map loss=METRIC names another"
        )
        flaws.append(Flaw(code="ambiguous_name", message=message, count=len(doubtful)))
    for cell, n in seen.items():
        if n > 1:
            message = (
                f"{n} columns are named {cell!r}: their runs are kept apart by a number; rename the runs"
            )
            flaws.append(Flaw(code="repeated_name", message=message, count=n))
    return list(runs.values()), flaws


def _metric(column: str, keys: Keys) -> str:
    """Return the metric of a column: one that the user named, else what follows the last dash.

    Examples
    --------
    >>> _metric("a - b - loss", Keys()), _metric("a - b - loss", Keys(named={"loss": "b - loss"}))
    ('loss', 'b - loss')
    """
    parts = column.split(_DASH)
    ends = [_DASH.join(parts[i:]) for i in range(1, len(parts))]
    return next((end for end in ends if end in keys.named.values()), ends[-1])


WANDB_CSV = Reader(
    title="Weights & Biases chart, CSV",
    sniff=_sniff,
    read=_read,
    sampled=True,
    known_by='a header `"Step","RUN - METRIC"`',
)
