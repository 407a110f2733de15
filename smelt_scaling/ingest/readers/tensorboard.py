"""TensorBoard event files: the scalars of every event file of a run's folder.

Format: TFRecords of ``Event`` messages (tensorflow/core/util/event.proto, framework/summary.proto, tensor.proto), as
written by TensorFlow, PyTorch, tensorboardX, Keras, T5X and others. A scalar is a ``simple_value`` or a tensor of one
number; texts, histograms and images are left. Events of one step that follow each other are one row.

A run is a folder, named as TensorBoard names it; its files (one per start of the program) follow each other in the
order of their first wall time. T5X writes ``train/`` and ``training_eval/TASK/`` for one model: they are one run, its
keys are ``train/loss`` and ``training_eval/TASK/loss``, and rows of both are in the order of wall time.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from posixpath import commonpath
from typing import Any

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest._tensor import single
from smelt_scaling.ingest._tfrecord import Lost, records
from smelt_scaling.ingest._wire import fields, signed
from smelt_scaling.ingest.events import Event, Facts, Flaw, Reader, Resumed, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.sources import Source, chunks

__all__ = ["TENSORBOARD"]

_FIRST = re.compile(rb".{12}\t(?P<time>.{8})(\x10.{1,10}?)?\x1a.brain\.Event:\d", re.DOTALL)
_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")
_START = 1  # SessionLog.SessionStatus
#: What happens in a log: wall time, step, and the scalars of one event by key; None where the program starts anew, at
#: an unknown step (NaN) where a new file is all that says so.
_Happening = tuple[float, float, dict[str, float] | None]


def _sniff(head: bytes, name: str) -> bool:
    return _FIRST.match(head) is not None


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    files = sorted((_File.of(part, keys) for part in source.parts()), key=lambda file: file.order)
    folders = {
        folder: [file for file in files if file.folder == folder] for folder in (f.folder for f in files)
    }
    if len(folders) > 1:
        above = len(commonpath(folders)) + 1
        for file in files:
            file.prefix = file.folder[above:] + "/"
    begin = min(file.begin for file in files)
    if begin < float("inf"):
        yield Facts(run=source.name, values={"created": begin})
    yield from _rows(
        source.name, merge(*map(_one_after_another, folders.values()), key=lambda found: found[0])
    )
    if not any(file.read for file in files):
        raise IngestError(f"{source.path}: no event in it can be read; copy the file again")
    yield from (flaw for file in files for flaw in file.flaws(source.name))


def _rows(run: str, happenings: Iterable[_Happening]) -> Iterator[Event]:
    """Join the scalars of one step that follow each other."""
    rows, row, row_step, row_time, began = Rows(run=run), dict[str, float](), 0.0, 0.0, True
    for time, step, scalars in happenings:
        if row and (scalars is None or step != row_step or not row.keys().isdisjoint(scalars)):
            if rows.add(row_step, row, row_time):
                yield from rows.take()
            row = {}
        if scalars is not None:
            row_step, row_time, began = step, time, False
            row.update(scalars)
        elif not began:  # the files of all folders begin anew together
            began = True
            yield from rows.take()
            yield Resumed(run=run, step=step if step == step else None)
    if row:
        rows.add(row_step, row, row_time)
    yield from rows.take()


def _one_after_another(files: Iterable[_File]) -> Iterator[_Happening]:
    """Yield what happens in the files of one folder, each a start of the program."""
    for number, file in enumerate(files):
        if number:
            yield file.begin, float("nan"), None
        yield from file.happenings()


@dataclass(kw_only=True)
class _File:
    """One event file, what its keys begin with, and what of it was read."""

    part: Source
    keys: Keys
    folder: str
    begin: float
    prefix: str = ""
    read: int = 0
    lost: Lost = field(default_factory=Lost)
    names: dict[bytes, str] = field(default_factory=dict)

    @classmethod
    def of(cls, part: Source, keys: Keys) -> _File:
        first = _FIRST.match(part.head())
        begin = _DOUBLE.unpack(first["time"])[0] if first else float("inf")
        return cls(part=part, keys=keys, folder=part.folder, begin=begin)

    @property
    def order(self) -> tuple[str, float, str]:
        return self.folder, self.begin, self.part.path

    def happenings(self) -> Iterator[_Happening]:
        """Yield the scalars that are wanted, and the starts of sessions."""
        for record in records(chunks(self.part), self.lost):
            try:
                time, step, summary, start = 0.0, 0, b"", False
                for number, value in fields(record):
                    if number == 1:
                        (time,) = _DOUBLE.unpack(value)
                    elif number == 2:
                        step = signed(value)
                    elif number == 5:
                        summary = value
                    elif number == 7:
                        start = dict(fields(value)).get(1) == _START
                scalars = dict(filter(None, map(self.scalar, fields(summary))))
            except (ValueError, TypeError, struct.error):
                self.lost.records += 1
                self.lost.bytes += 16 + len(record)
                continue
            self.read += 1
            if start:
                yield time, step, None
            elif scalars:
                yield time, step, scalars

    def scalar(self, item: tuple[int, Any]) -> tuple[str, float] | None:
        """Return key and number of one Summary.Value; None if it is no scalar or not wanted."""
        tag, number, tensor, plugin = b"", None, None, b""
        for place, value in fields(item[1]):
            if place == 1:
                tag = value
            elif place == 2:
                (number,) = _FLOAT.unpack(value)
            elif place == 8:
                tensor = value
            elif place == 9:
                plugin = dict(fields(dict(fields(value)).get(1, b""))).get(1, b"")
        name = self.names.get(tag)
        if name is None:
            name = self.prefix + tag.decode("utf-8", "replace")
            scalar = plugin in (b"", b"scalars") and self.keys.wanted(name)
            self.names[tag] = name = name if scalar else ""
        if not name:
            return None
        if tensor is not None:
            number = single(tensor)
        return None if number is None else (name, number)

    def flaws(self, run: str) -> Iterator[Flaw]:
        """Yield what was lost."""
        lost, file = self.lost, self.part.path[len(self.folder) :].strip("\\/")
        if lost.records or lost.gaps:
            what = (
                f"{lost.records} damaged records and {lost.gaps} damaged lengths: {lost.bytes} bytes not read"
            )
            yield Flaw(
                code="damaged_records", message=f"{file}: {what}", count=lost.records + lost.gaps, run=run
            )
        if lost.torn:
            yield Flaw(
                code="torn_line", message=f"{file}: the last record is cut off and was not read", run=run
            )


TENSORBOARD = Reader(
    title="TensorBoard event files",
    sniff=_sniff,
    read=_read,
    known_by="TFRecords, the first with `brain.Event:`",
    states=("created",),
)
