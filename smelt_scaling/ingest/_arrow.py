"""Parquet, Feather and Arrow streams, whatever types their columns have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from smelt_scaling.errors import IngestError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["is_arrow", "read_arrow"]


def is_arrow(data: bytes) -> bool:
    """Whether bytes begin like Parquet, an Arrow file (Feather) or an Arrow stream."""
    return data[:4] in (b"PAR1", b"PARE", b"\xff\xff\xff\xff") or data[:6] == b"ARROW1"


def read_arrow(data: bytes, source: str, kinds: Mapping[str, str]) -> pd.DataFrame:
    """Read a binary table.

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
    pandas.DataFrame
        Columns keep their types, but for text in those of the schema, which is categorical.

    Raises
    ------
    IngestError
        If the file is broken, or the type of a column cannot be what the schema says.
    """
    import pyarrow as pa

    try:
        table = _read(data, [name for name, kind in kinds.items() if kind == "text"])
        # An index that pandas stored is a column like any other; its unnamed default is none.
        kept = [
            i for i, name in enumerate(table.column_names) if not re.fullmatch(r"__index_level_\d+__", name)
        ]
        names = [table.column_names[i] for i in kept]
        columns = [
            _checked(table.column(i), name, source, kinds.get(name.strip()))
            for i, name in zip(kept, names, strict=True)
        ]
        table = pa.table(columns, names=[str(i) for i in range(len(kept))])
        frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, split_blocks=True, self_destruct=True)
        pa.default_memory_pool().release_unused()  # what decoding took, before more is allocated elsewhere
    except (pa.ArrowException, OSError, ValueError, KeyError, NotImplementedError) as error:
        reason = (str(error).splitlines() or ["cut off"])[0].partition(". ")[0]
        raise IngestError(
            f"{source}: broken Parquet or Arrow file ({reason[:120]}); write it again"
        ) from error
    return frame.set_axis(names, axis=1)


def _read(data: bytes, texts: list[str]) -> Any:
    import pyarrow as pa

    if data[:3] == b"PAR":
        import pyarrow.parquet as pq

        schema = pq.read_schema(pa.BufferReader(data))
        # Repeated text stays a dictionary; the pages hold it as one already.
        shared = [name for name in texts if name in schema.names and _plain_text(schema.field(name).type)]
        return pq.ParquetFile(pa.BufferReader(data), read_dictionary=shared).read()
    if data[:6] == b"ARROW1":
        return pa.ipc.open_file(pa.BufferReader(data)).read_all()
    return pa.ipc.open_stream(pa.BufferReader(data)).read_all()


def _checked(column: Any, name: str, source: str, kind: str | None) -> Any:
    """Refuse types that would be taken for numbers or names without being any; share repeated text."""
    import pyarrow as pa

    values = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if kind is None:
        return column
    if pa.types.is_nested(values) or (
        kind == "number"
        and (pa.types.is_temporal(values) or (name != "weight" and pa.types.is_boolean(values)))
    ):
        cell = "a number" if kind == "number" else "text"
        raise IngestError(
            f"{source}: column {name.strip()} is of type {values}: each of its cells must be {cell}; "
            "write it as one, or drop the column"
        )
    if kind == "text" and _plain_text(values):
        return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return column


def _plain_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
