"""Text with separators: commas, semicolons or tabs, with comments, quotes and decimal commas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from smelt_scaling._schema import counted
from smelt_scaling.errors import IngestError, Note

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_plain", "read_separated"]

_SEPARATORS = (",", ";", "\t")
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+(?:\.\d{3})*,\d+(?:[eE][+-]?\d+)?\s*")
_POINT_NUMBER = re.compile(r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*")
_GROUPED = re.compile(r"\s*[+-]?\d{1,3}(?:,\d{3}){2,}(?:\.\d+)?\s*")


def read_plain(data: bytes, source: str, kinds: Mapping[str, str]) -> pd.DataFrame | None:
    """Read the plainest of tables fast: UTF-8, a header first, no quotes, comments, blanks or decimal commas.

    Parameters
    ----------
    data : bytes
        The file.
    source : str
        How to name it in messages.
    kinds : mapping of str to {"text", "number"}
        The columns of the schema, by their names in the file.

    Returns
    -------
    pandas.DataFrame or None
        What `read_separated` would return, with numbers as float64 where a column has nothing else and text
        as categories; None where the table is not so plain.
    """
    import pyarrow as pa

    data = data.removeprefix(b"\xef\xbb\xbf")
    end = data.find(b"\n")
    if end < 0 or b'"' in data or b"\0" in data:
        return None
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return None
    try:
        line = data[:end].decode("utf-8")
    except UnicodeDecodeError:
        return None
    if not line.strip() or line.startswith(("#", "sep=")):
        return None
    separator, header = _sniff(line, source, 1)
    names = [name.strip() for name in header]
    if not all(names) or (separator != "," and b"," in data):
        return None
    types = {"number": pa.float64(), "text": pa.dictionary(pa.int32(), pa.string())}
    table = _parse(data, separator, [types.get(kinds.get(name, ""), pa.string()) for name in names])
    if table is None:  # some column of numbers has other cells: _typed finds out which
        table = _parse(data, separator, [pa.string()] * len(names))
    if table is None or _odd_lines(table.column(0)):
        return None
    columns = [_typed(column, kinds.get(name)) for column, name in zip(table.columns, names, strict=True)]
    frame: pd.DataFrame = pa.table(columns, names=table.column_names).to_pandas(
        split_blocks=True, self_destruct=True
    )
    pa.default_memory_pool().release_unused()
    return frame.set_axis(names, axis=1)


def _parse(data: bytes, separator: str, types: list[Any]) -> Any:
    """Read rows as columns of the types; None for ragged rows, bytes that are no UTF-8 or cells of another type."""
    import pyarrow as pa
    import pyarrow.csv

    keys = [str(i) for i in range(len(types))]
    try:
        return pa.csv.read_csv(
            pa.BufferReader(data),
            read_options=pa.csv.ReadOptions(column_names=keys, skip_rows=1),
            parse_options=pa.csv.ParseOptions(delimiter=separator, quote_char=False),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict(zip(keys, types, strict=True)), null_values=[], strings_can_be_null=False
            ),
        )
    except pa.ArrowException:
        return None


def _odd_lines(column: Any) -> bool:
    """Whether some line begins with a comment, a blank or a separator: the careful reader knows what it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        return False
    chunks = [part.dictionary if pa.types.is_dictionary(part.type) else part for part in column.chunks]
    return any(pc.any(pc.match_substring_regex(cells, r"^([# \t]|$)")).as_py() for cells in chunks)


def _typed(column: Any, kind: str | None) -> Any:
    import pyarrow as pa

    if kind is None or not pa.types.is_string(column.type):
        return column
    try:
        return column.cast(pa.float64()) if kind == "number" else column.dictionary_encode()
    except pa.ArrowException:
        return column


def read_separated(text: str, source: str, numeric: Collection[str]) -> tuple[pd.DataFrame, tuple[Note, ...]]:
    """Read text with separators, cell by cell.

    Parameters
    ----------
    text : str
        The file.
    source : str
        How to name it in messages.
    numeric : collection of str
        Columns in which a decimal comma may occur.

    Returns
    -------
    frame : pandas.DataFrame
        Cells as they are written, as str.
    notes : tuple of Note
        What had to be interpreted.

    Raises
    ------
    IngestError
        One line: file, line, reason, fix.
    """
    import pandas as pd

    # Not splitlines: names may hold other line separators of Unicode as they are.
    lines = list(io.StringIO(text, newline=""))
    start, stated = 0, None
    comments: list[str] = []
    for start, line in enumerate(lines):  # noqa: B007
        if line.startswith("sep=") and len(line.rstrip("\r\n")) == 5 and stated is None:
            stated = line[4]  # how Excel is told the separator
        elif line.startswith("#"):
            comments.append(line[1:])
        elif line.strip():
            break
    else:
        raise IngestError(f"{source}: only comments: a table needs a header and rows; check the file")
    separator, header = _sniff(lines[start], source, start + 1, stated)
    _refuse_commented_header(header, comments, source, numeric)
    rows = _rows(lines[start + 1 :], separator, header, start + 1, source)
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
        message=f"{source}: {counted(count, 'number')} with a decimal comma",
    )
    return frame, (note,) if count else ()


def _sniff(line: str, source: str, number: int, stated: str | None = None) -> tuple[str, list[str]]:
    """Take the separator that gives the header most cells."""
    headers: dict[str, list[str]] = {}
    broken: csv.Error | None = None
    for mark in (stated,) if stated else _SEPARATORS:
        try:
            headers[mark] = next(csv.reader([line], delimiter=mark, strict=True), [])
        except csv.Error as error:
            broken = error
    if not headers:
        raise IngestError(
            f"{source}: line {number}: quotes that do not match ({broken}): close or double them"
        ) from broken
    separator = max(headers, key=lambda mark: len(headers[mark]))
    if len(headers[separator]) < 2:
        raise IngestError(
            f"{source}: line {number} is no header ({line.strip()[:40]!r}): columns must be separated by "
            "commas, semicolons or tabs; write their names in the first line"
        )
    return separator, headers[separator]


def _refuse_commented_header(
    header: list[str], comments: list[str], source: str, numeric: Collection[str]
) -> None:
    """Refuse a header behind "#": the first row stands in its place then, and would be lost."""
    if {name.strip() for name in header} & set(numeric):
        return
    for line in comments:
        cells = {cell.strip() for cell in re.split(r"[,;\t]", line)}
        if len(cells & set(numeric)) > 1:
            raise IngestError(
                f"{source}: the header is a comment (#{line.strip()[:40]}): remove the # before it"
            )


def _rows(lines: list[str], separator: str, header: list[str], offset: int, source: str) -> list[list[str]]:
    rows: list[list[str]] = []
    taken: list[str] = []  # the lines of the row at hand

    def feed() -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line

    reader = csv.reader(feed(), delimiter=separator, strict=True)
    try:
        for cells in reader:
            first, number = taken[0], offset + reader.line_num - len(taken) + 1
            taken.clear()
            if not any(cell.strip() for cell in cells):
                continue
            whole = len(cells) == len(header)
            if first.startswith("#"):
                if not whole:
                    continue
                raise IngestError(
                    f"{source}: line {number} starts with # and has as many cells as the header: quote "
                    "the first cell if this is a row, delete the line if it is none"
                )
            if not whole:
                raise IngestError(
                    f"{source}: line {number} has {len(cells)} cells, the header {len(header)}: "
                    "mend the line or quote cells that contain the separator"
                )
            rows.append(cells)
    except csv.Error as error:
        raise IngestError(
            f"{source}: line {offset + reader.line_num}: quotes that do not match ({error}): close or double them"
        ) from error
    return rows


def _replace_decimal_commas(
    names: list[str], columns: list[list[str]], numeric: Collection[str], source: str
) -> int:
    """Rewrite "2,10" as "2.10" in place where the whole file is written so; return how many cells were."""
    chosen = [(name, cells) for name, cells in zip(names, columns, strict=True) if name in numeric]
    numbers = [cells for _, cells in chosen]
    commas = sum(bool(_COMMA_NUMBER.fullmatch(cell)) for cells in numbers for cell in cells)
    points = sum(bool(_POINT_NUMBER.fullmatch(cell)) for cells in numbers for cell in cells)
    groups = sum(bool(_GROUPED.fullmatch(cell)) for cells in numbers for cell in cells)
    if not commas or (groups and not _fractional(numbers)):
        return 0
    if points or groups:
        if not _fractional(numbers):
            return 0  # 215,605 beside 2.10: the comma groups thousands
        raise IngestError(f"{source}: {_stray(chosen)}: use one of them")
    for cells in numbers:
        for row, cell in enumerate(cells):
            if _COMMA_NUMBER.fullmatch(cell):
                cells[row] = cell.replace(".", "").replace(",", ".")
    return commas


def _stray(chosen: list[tuple[str, list[str]]]) -> str:
    """Say where the rarer of decimal commas and decimal points stands first."""
    found: dict[str, list[tuple[str, int]]] = {"a decimal comma": [], "a decimal point": []}
    for name, cells in chosen:
        for row, cell in enumerate(cells, start=1):
            if _COMMA_NUMBER.fullmatch(cell):
                found["a decimal comma"].append((name, row))
            elif _POINT_NUMBER.fullmatch(cell) or _GROUPED.fullmatch(cell):
                found["a decimal point"].append((name, row))
    (rare, few), (usual, many) = sorted(found.items(), key=lambda item: len(item[1]))
    name, row = few[0]
    count = sum(1 for other, _ in few if other == name)
    rows = f"{counted(count, 'row')} (first: {row})"
    return f"column {name}, {rows} with {rare} beside {counted(len(many), 'number')} with {usual}"


def _fractional(numbers: list[list[str]]) -> bool:
    """Whether some comma cannot group thousands, because it is not followed by exactly three digits."""
    cells = (cell for column in numbers for cell in column if _COMMA_NUMBER.fullmatch(cell))
    return any(not re.fullmatch(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*", cell) for cell in cells)
