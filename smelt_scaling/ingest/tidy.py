"""Tidy tables of endpoints: one row per endpoint, in whichever format the content says it is.

The first bytes decide, not the file name: Parquet, Arrow, JSON and JSON lines announce themselves, anything
else is text with a separator. Text is never turned into missing values or numbers here; the schema knows
which column is which.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt_scaling.endpoints import COLUMNS, Endpoints
from smelt_scaling.errors import IngestError, Note, merge_notes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_endpoints", "read_table"]

_SEPARATORS = (",", ";", "\t")
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+(?:\.\d{3})*,\d+(?:[eE][+-]?\d+)?\s*")
_POINT_NUMBER = re.compile(r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*")
_GROUPED = re.compile(r"\s*[+-]?\d{1,3}(?:,\d{3}){2,}(?:\.\d+)?\s*")


def read_endpoints(
    path: str | Path,
    *,
    mapping: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    flops: str | None = None,
) -> Endpoints:
    r"""Read a table of endpoints from a file, or from standard input for "-".

    Parameters
    ----------
    path : str or pathlib.Path
        Parquet, Feather (Arrow), CSV (comma, semicolon or tab), JSON records, JSON lines; also gzipped.
    mapping, units, flops
        As for `Endpoints.from_frame`.

    Returns
    -------
    Endpoints
        Checked, in canonical order.

    Raises
    ------
    IngestError
        If the file cannot be read as a table.
    DataError, UsageError
        As `Endpoints.from_frame`.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "runs.csv"
    >>> _ = path.write_text("arch,F,D,loss\n007,6e8,1e10,3.25\nNaN,6e8,2e10,3.0\n")
    >>> read_endpoints(path).archs
    ('007', 'NaN')
    >>> folder.cleanup()
    """
    source = "<stdin>" if str(path) == "-" else str(path)
    frame, notes = read_table(path, numeric=_numeric_columns(mapping or {}))
    endpoints = Endpoints.from_frame(frame, source=source, mapping=mapping, units=units, flops=flops)
    if not notes:
        return endpoints
    return Endpoints(
        columns=endpoints.columns,
        source=source,
        notes=merge_notes(endpoints.notes, notes),
        tiers=endpoints.tiers,
    )


def read_table(
    path: str | Path, *, numeric: frozenset[str] | None = None
) -> tuple[pd.DataFrame, tuple[Note, ...]]:
    """Read a table as it stands, before any schema.

    Parameters
    ----------
    path : str or pathlib.Path
        As for `read_endpoints`.
    numeric : frozenset of str, optional
        Columns in which a decimal comma may occur; those of the schema by default.

    Returns
    -------
    frame : pandas.DataFrame
        Cells of text formats are str as written; binary formats keep their types.
    notes : tuple of Note
        What had to be interpreted.

    Raises
    ------
    IngestError
        One line: file, place, reason, fix.
    """
    source = "<stdin>" if str(path) == "-" else str(path)
    data = _read_bytes(path, source)
    if data[:4] == b"PAR1" or data[:6] == b"ARROW1" or data[:4] == b"\xff\xff\xff\xff":
        return _read_arrow(data, source), ()
    if data[:4] == b"PK\x03\x04":
        raise IngestError(
            f"{source}: a zip archive or Excel workbook: tables are read from CSV, JSON or Parquet; export it"
        )
    text = _decode(data, source)
    if text.lstrip()[:1] in ("{", "["):
        return _read_json(text, source), ()
    return _read_separated(text, source, _numeric_columns({}) if numeric is None else numeric)


def _numeric_columns(mapping: Mapping[str, str]) -> frozenset[str]:
    return frozenset(mapping.get(name, name) for name, column in COLUMNS.items() if column.kind == "number")


def _read_bytes(path: str | Path, source: str) -> bytes:
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except FileNotFoundError:
        raise IngestError(f"{source}: no such file; check the path") from None
    except IsADirectoryError:
        raise IngestError(
            f"{source}: a folder: a table of endpoints is one file; name the file in it"
        ) from None
    except OSError as error:
        raise IngestError(f"{source}: cannot be read: {error.strerror or error}; check the file") from error
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise IngestError(f"{source}: broken gzip data ({error}); copy the file again") from error
    if not data.strip():
        raise IngestError(
            f"{source}: empty: a table needs a header and rows; check the command that wrote it"
        )
    return data


def _read_arrow(data: bytes, source: str) -> pd.DataFrame:
    import pyarrow as pa

    try:
        if data[:4] == b"PAR1":
            import pyarrow.parquet as pq

            table = pq.read_table(io.BytesIO(data))
        elif data[:6] == b"ARROW1":
            table = pa.ipc.open_file(io.BytesIO(data)).read_all()
        else:
            table = pa.ipc.open_stream(io.BytesIO(data)).read_all()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise IngestError(f"{source}: broken Parquet or Arrow file ({reason}); write it again") from error
    # An index that pandas stored is a column like any other; its unnamed default is none.
    named = [name for name in table.column_names if not re.fullmatch(r"__index_level_\d+__", name)]
    frame: pd.DataFrame = table.select(named).to_pandas(ignore_metadata=True)
    return frame


def _decode(data: bytes, source: str) -> str:
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise IngestError(
            f"{source}: line {line} is not {encoding[:6].rstrip('-').upper()} text; save the file as UTF-8"
        ) from error
    if "\0" in text:
        raise IngestError(
            f"{source}: binary data of an unknown format; tables are read from CSV, JSON, Parquet or Feather"
        )
    return text


def _read_json(text: str, source: str) -> pd.DataFrame:
    import pandas as pd

    records: list[Any]
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        records = _json_lines(text, source, error)
    else:
        records = _json_records(document, source)
    for row, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise IngestError(
                f"{source}: record {row} is {type(record).__name__}: rows must be objects with column names"
            )
    # dtype=object keeps what the file says: integers beyond 64 bits, and 1 apart from 1.0, true and "1".
    return pd.DataFrame(records, dtype=object)


def _json_lines(text: str, source: str, whole: json.JSONDecodeError) -> list[Any]:
    records = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError as error:
                if not records:  # not even the first line stands alone: it was meant as one document
                    raise IngestError(
                        f"{source}: line {whole.lineno}, column {whole.colno}: broken JSON "
                        f"({whole.msg}); write it again"
                    ) from error
                raise IngestError(
                    f"{source}: line {number}: broken JSON ({error.msg}); the file may be cut off, "
                    "drop or mend the line"
                ) from error
    return records


def _json_records(document: Any, source: str) -> list[Any]:
    if isinstance(document, dict) and isinstance(document.get("rows"), list):
        document = document["rows"]
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        if not lists:
            return [document]  # JSON lines with one line
        if len(lists) < len(document) or len({len(values) for values in lists}) > 1:
            raise IngestError(
                f"{source}: an object with columns of unequal length; write a list of row objects"
            )
        return [dict(zip(document, row, strict=True)) for row in zip(*lists, strict=True)]
    if not document:
        raise IngestError(f"{source}: no rows: an endpoint table needs at least one; check the file")
    return list(document)


def _read_separated(text: str, source: str, numeric: frozenset[str]) -> tuple[pd.DataFrame, tuple[Note, ...]]:
    import pandas as pd

    lines = text.splitlines(keepends=True)
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("#")), None)
    if start is None:
        raise IngestError(f"{source}: only comments: a table needs a header and rows")
    separator, header = _sniff(lines[start], source, start + 1)
    rows: list[list[str]] = []
    reader = csv.reader(lines[start + 1 :], delimiter=separator, strict=True)
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                # A comment rarely has as many cells as a row; one that has fails as numbers.
                if cells[0].startswith("#"):
                    continue
                number = start + 1 + reader.line_num
                raise IngestError(
                    f"{source}: line {number} has {len(cells)} cells, the header {len(header)}; "
                    "mend the line or quote cells that contain the separator"
                )
            rows.append(cells)
    except csv.Error as error:
        raise IngestError(
            f"{source}: line {start + 1 + reader.line_num}: {error}; mend the quotes"
        ) from error
    columns = [list(cells) for cells in zip(*rows, strict=True)] if rows else [[] for _ in header]
    # A separator at the end of every line makes a nameless column without values.
    kept = [i for i, name in enumerate(header) if name.strip() or any(cell.strip() for cell in columns[i])]
    names = [header[i].strip() or f"unnamed {i + 1}" for i in kept]
    columns = [columns[i] for i in kept]
    count = _replace_decimal_commas(names, columns, numeric, source) if separator != "," else 0
    frame = pd.DataFrame(dict(enumerate(columns)), dtype=object).set_axis(names, axis=1)
    note = Note(
        code="decimal_comma",
        severity="info",
        count=count,
        message=f"{source}: {count} numbers with a decimal comma",
    )
    return frame, (note,) if count else ()


def _sniff(line: str, source: str, number: int) -> tuple[str, list[str]]:
    """Take the separator that gives the header most cells."""
    headers = {mark: next(csv.reader([line], delimiter=mark), []) for mark in _SEPARATORS}
    separator = max(headers, key=lambda mark: len(headers[mark]))
    if len(headers[separator]) < 2:
        raise IngestError(
            f"{source}: line {number} is no header ({line.strip()[:40]!r}): columns must be separated by "
            "commas, semicolons or tabs"
        )
    return separator, headers[separator]


def _replace_decimal_commas(
    names: list[str], columns: list[list[str]], numeric: frozenset[str], source: str
) -> int:
    """Rewrite "2,10" as "2.10" in place where the whole file is written so; return how many cells were."""
    numbers = [cells for name, cells in zip(names, columns, strict=True) if name in numeric]
    commas = sum(bool(_COMMA_NUMBER.fullmatch(cell)) for cells in numbers for cell in cells)
    points = sum(bool(_POINT_NUMBER.fullmatch(cell)) for cells in numbers for cell in cells)
    groups = sum(bool(_GROUPED.fullmatch(cell)) for cells in numbers for cell in cells)
    if not commas or (groups and not _fractional(numbers)):
        return 0
    if points or groups:
        if not _fractional(numbers):
            return 0  # 215,605 beside 2.10: the comma groups thousands
        raise IngestError(
            f"{source}: numbers with decimal commas ({commas}) and with decimal points ({points}): "
            "use one of them"
        )
    for cells in numbers:
        for row, cell in enumerate(cells):
            if _COMMA_NUMBER.fullmatch(cell):
                cells[row] = cell.replace(".", "").replace(",", ".")
    return commas


def _fractional(numbers: list[list[str]]) -> bool:
    """Whether some comma cannot group thousands, because it is not followed by exactly three digits."""
    cells = (cell for column in numbers for cell in column if _COMMA_NUMBER.fullmatch(cell))
    return any(not re.fullmatch(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*", cell) for cell in cells)
