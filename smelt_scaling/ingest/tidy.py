"""Tidy tables of endpoints: one row per endpoint, in whichever format the content says it is.

The first bytes decide, not the file name: Parquet, Arrow, JSON and JSON lines announce themselves, anything
else is text with a separator. Text is never turned into missing values here, and into numbers only where all of a
column of numbers is plain; the schema knows which column is which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from smelt_scaling.endpoints import COLUMNS, Endpoints
from smelt_scaling.errors import Note, merge_notes
from smelt_scaling.ingest._arrow import is_arrow, read_arrow
from smelt_scaling.ingest._bytes import decode, read_bytes
from smelt_scaling.ingest._records import read_json
from smelt_scaling.ingest._separated import read_plain, read_separated

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_endpoints", "read_table"]


def read_endpoints(
    path: str | Path,
    *,
    mapping: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    flops: str | None = None,
    include_unfinished: bool = False,
) -> Endpoints:
    r"""Read a table of endpoints from a file, or from standard input for "-".

    Parameters
    ----------
    path : str or pathlib.Path
        Parquet, Feather (Arrow), CSV (comma, semicolon or tab), JSON records, JSON lines; also compressed
        (gzip, zstd, bzip2, xz, or alone in a zip archive).
    mapping, units, flops, include_unfinished
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
    frame, notes = read_table(path, mapping=mapping)
    endpoints = Endpoints.from_frame(
        frame,
        source=source,
        mapping=mapping,
        units=units,
        flops=flops,
        include_unfinished=include_unfinished,
    )
    if not notes:
        return endpoints
    return replace(endpoints, notes=merge_notes(endpoints.notes, notes))


def read_table(
    path: str | Path,
    *,
    mapping: Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> tuple[pd.DataFrame, tuple[Note, ...]]:
    """Read a table as it stands, before any schema.

    Parameters
    ----------
    path : str or pathlib.Path
        As for `read_endpoints`.
    mapping : mapping of str to str, optional
        Schema name to column of the file, for those whose names differ.
    kinds : mapping of str to {"text", "number"}, optional
        The columns that matter and what they hold; those of the schema by default.

    Returns
    -------
    frame : pandas.DataFrame
        Cells of text formats are str as written, or float64 where a column of numbers holds plain numbers
        only; binary formats keep their types.
    notes : tuple of Note
        What had to be interpreted.

    Raises
    ------
    IngestError
        One line: file, place, reason, fix.
    """
    source = "<stdin>" if str(path) == "-" else str(path)
    found = mapping or {}
    kinds = kinds or {found.get(name, name): column.kind for name, column in COLUMNS.items()}
    data = read_bytes(path, source)
    if is_arrow(data):
        return read_arrow(data, source, kinds), ()
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b"["):
        frame = read_plain(data, source, kinds)
        if frame is not None:
            return frame, ()
    text = decode(data, source)
    if text.lstrip()[:1] in ("{", "["):
        return read_json(text, source, kinds), ()
    numeric = {name for name, kind in kinds.items() if kind == "number"}
    return read_separated(text, source, numeric)
