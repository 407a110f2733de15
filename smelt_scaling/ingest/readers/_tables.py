"""Tables of any format as batches of columns.

Parquet and Arrow are read by column, CSV and JSON lines in pieces; only the columns asked for are kept. A column is an
Arrow array, or a list for JSON lines.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.sources import Source, text_lines

__all__ = ["Table", "open_table"]

ROWS = 1 << 16

Batch = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table that can be read once.

    Parameters
    ----------
    names : tuple of str
        Columns; for JSON lines those of its first lines.
    batches : callable
        ``batches(wanted, labels, lost) -> iterator of {name: column}``: the columns to read, those of them to read as
        text, and where to count lines by what is wrong with them.
    """

    names: tuple[str, ...]
    batches: Callable[[Callable[[str], bool], tuple[str, ...], Counter[str]], Iterator[Batch]]


@contextmanager
def open_table(source: Source) -> Iterator[Table]:
    """Open a table by its content.

    Raises
    ------
    IngestError
        If it is broken.
    """
    head = source.head()
    if head.lstrip().startswith(b"{"):
        yield _json_lines(source, head)
        return
    if head.startswith(b"PAR1"):
        opener = _parquet
    else:
        opener = _arrow if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")) else _csv
    with source.open() as stream:
        yield _guarded(source, stream, opener)


def _guarded(source: Source, stream: IO[bytes], opener: Callable[[IO[bytes]], Table]) -> Table:
    """Say in one line what is broken, whenever it shows."""
    import pyarrow as pa

    broken = (pa.ArrowException, csv.Error, OSError, EOFError, ValueError, KeyError, NotImplementedError)

    def failed(error: Exception) -> IngestError:
        reason = (str(error).splitlines() or ["cut off"])[0].partition(". ")[0][:120]
        return IngestError(f"{source.path}: broken table ({reason}); copy or write the file again")

    try:
        table = opener(stream)
    except broken as error:
        raise failed(error) from error

    def batches(
        wanted: Callable[[str], bool], labels: tuple[str, ...], lost: Counter[str]
    ) -> Iterator[Batch]:
        try:
            yield from table.batches(wanted, labels, lost)
        except broken as error:
            raise failed(error) from error

    return Table(names=table.names, batches=batches)


def _parquet(stream: IO[bytes]) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(stream)
    schema = metadata.schema.to_arrow_schema()
    text = {field.name for field in schema if str(field.type) in ("string", "large_string")}

    def batches(
        wanted: Callable[[str], bool], labels: tuple[str, ...], lost: Counter[str]
    ) -> Iterator[Batch]:
        # No pre_buffer: it holds whole row groups of every column.
        with pq.ParquetFile(
            stream, metadata=metadata, read_dictionary=[name for name in labels if name in text]
        ) as file:
            columns = [name for name in schema.names if wanted(name)]
            for batch in file.iter_batches(batch_size=ROWS, columns=columns):
                for column in batch.columns:
                    if column.type in (pa.string(), pa.large_string()):
                        column.validate(full=True)
                    elif pa.types.is_dictionary(column.type):
                        column.dictionary.validate(full=True)  # the names alone: codes come from the decoder
                yield dict(zip(batch.schema.names, batch.columns, strict=True))

    return Table(names=tuple(schema.names), batches=batches)


def _arrow(stream: IO[bytes]) -> Table:
    import pyarrow as pa

    start = stream.read(6)
    stream.seek(0)
    if start == b"ARROW1":
        file = pa.ipc.open_file(stream)
        schema, every = file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
    else:
        every = pa.ipc.open_stream(stream)
        schema = every.schema

    def batches(
        wanted: Callable[[str], bool], labels: tuple[str, ...], lost: Counter[str]
    ) -> Iterator[Batch]:
        for batch in every:
            columns = {name: batch.column(i) for i, name in enumerate(schema.names) if wanted(name)}
            for column in columns.values():
                column.validate(full=True)  # nothing else checks what a damaged file points to
            yield columns

    return Table(names=tuple(schema.names), batches=batches)


class _WholeLines(io.RawIOBase):
    """Lines of UTF-8, without what follows the last line end: of a number that is cut off nobody can tell.

    Bytes that are no UTF-8 are replaced, so that they cost no more than their own cell.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._tail, self._ready = stream, b"", b""
        self.torn = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._stream.read(1 << 20)
            if not data:
                tail, self._tail = self._tail, b""
                # Where all cells are quoted, the last quote says that the line is whole.
                if not (tail.startswith(b'"') and tail.endswith(b'"')):
                    self.torn = self.torn or bool(tail.strip())
                    return 0
                data = tail + b"\n"
            whole, end, tail = data.rpartition(b"\n")
            self._ready, self._tail = (self._tail + whole + end, tail) if end else (b"", self._tail + data)
            try:
                self._ready.decode()
            except UnicodeDecodeError:
                self._ready = self._ready.decode("utf-8", "replace").encode()
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n


def _csv(stream: IO[bytes]) -> Table:
    import pyarrow as pa
    import pyarrow.csv as pc

    whole = _WholeLines(stream)
    lines = io.BufferedReader(whole, 1 << 20)
    for raw in lines:
        line = raw.decode("utf-8-sig").strip("\r\n")
        if line.strip() and not line.startswith("#"):
            break
    else:
        raise ValueError("no whole line")
    separator = max(",;\t", key=line.count)
    names = [name.strip() for name in next(csv.reader([line], delimiter=separator, strict=True))]

    def batches(
        wanted: Callable[[str], bool], labels: tuple[str, ...], lost: Counter[str]
    ) -> Iterator[Batch]:
        def ragged(row: Any) -> str:
            lost["have another number of cells than the header"] += 1 + (row.text or "").count("\n")
            return "skip"

        kept = {str(i): name for i, name in enumerate(names) if wanted(name)}
        reader = pc.open_csv(
            lines,
            read_options=pc.ReadOptions(column_names=[str(i) for i in range(len(names))], block_size=1 << 22),
            parse_options=pc.ParseOptions(delimiter=separator, invalid_row_handler=ragged),
            convert_options=pc.ConvertOptions(
                include_columns=list(kept),
                column_types=dict.fromkeys(kept, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        for batch in reader:
            yield dict(zip(kept.values(), batch.columns, strict=True))
        if whole.torn:
            lost["torn"] += 1

    return Table(names=tuple(names), batches=batches)


def _json_lines(source: Source, head: bytes) -> Table:
    first: dict[str, None] = {}
    for line in head.split(b"\n"):
        record = _record(line.decode("utf-8", "replace"))
        first.update(dict.fromkeys(record or ()))

    def batches(
        wanted: Callable[[str], bool], labels: tuple[str, ...], lost: Counter[str]
    ) -> Iterator[Batch]:
        records: list[dict[str, Any]] = []
        keep: dict[str, bool] = {}
        for _, line, whole in text_lines(source):
            record = _record(line)
            if record is None:
                if line.strip():
                    lost["are no JSON objects" if whole else "torn"] += 1
                continue
            for key in record:
                if key not in keep:
                    keep[key] = wanted(key)
            records.append(record)
            if len(records) == ROWS // 8:
                yield _transposed(records, keep)
                records = []
        if records:
            yield _transposed(records, keep)

    return Table(names=tuple(first), batches=batches)


def _record(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    return dict(_flat(record, "")) if line.find("{", 1) > 0 else record


def _flat(record: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}/")
        else:
            yield prefix + key, value


def _transposed(records: list[dict[str, Any]], keep: Mapping[str, bool]) -> Batch:
    return {key: [record.get(key) for record in records] for key, kept in keep.items() if kept}
