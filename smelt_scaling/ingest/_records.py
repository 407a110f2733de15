"""JSON: records, columns, JSON lines, and what pandas writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.errors import IngestError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_json"]


class _TwiceError(ValueError):
    """A key that an object has twice; the argument is the key."""


def read_json(text: str, source: str, kinds: Mapping[str, str]) -> pd.DataFrame:
    """Read one JSON document, or one per line.

    Parameters
    ----------
    text : str
        The file.
    source : str
        How to name it in messages.
    kinds : mapping of str to {"text", "number"}
        The columns of the schema, by their names in the file; none may hold lists or objects.

    Returns
    -------
    pandas.DataFrame
        One row per record, columns of objects; missing keys are missing values.

    Raises
    ------
    IngestError
        One line: file, place, reason, fix.
    """
    import pandas as pd

    records: list[Any]
    try:
        document = json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        records = _json_lines(text, source, error)
    except _TwiceError as error:
        raise IngestError(
            f"{source}: an object has the key {error} twice: the table must say which; drop one of each"
        ) from None
    except RecursionError:
        raise IngestError(
            f"{source}: JSON nested too deeply for a table; write a list of row objects"
        ) from None
    else:
        records = _json_records(document, source, kinds)
    if not records:
        raise IngestError(f"{source}: no rows: an endpoint table needs at least one; check the file")
    for row, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise IngestError(
                f"{source}: record {row} is {_kind(record)}: rows must be objects with column names; "
                "write a list of row objects"
            )
    _refuse_nested(records, source, kinds)
    if "\\u" in text:
        _refuse_halves(records, source)
    # dtype=object keeps what the file says: integers beyond 64 bits, and 1 apart from 1.0, true and "1".
    return pd.DataFrame(records, dtype=object)


def _refuse_halves(records: Sequence[Any], source: str) -> None:
    """Refuse text that no file or screen can hold: half of a pair of escapes."""
    try:
        json.dumps(records, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise IngestError(
            f"{source}: text holds {ascii(error.object[error.start])}, half of a character: it was cut or escaped "
            "wrongly; write the text as UTF-8"
        ) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for name in names if names.count(name) > 1))
    return record


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return {str: "text", type(None): "null"}.get(type(value), "a number")


def _refuse_nested(records: Sequence[Mapping[str, Any]], source: str, kinds: Mapping[str, str]) -> None:
    """Refuse values that would be taken for numbers or names without being any."""
    for name, kind in kinds.items():
        wrong: tuple[type, ...] = (dict, list, bool) if kind == "number" else (dict, list)
        bad = [row for row, record in enumerate(records, start=1) if isinstance(record.get(name), wrong)]
        if bad:
            shown = _kind(records[bad[0] - 1][name])
            raise IngestError(
                f"{source}: column {name}, {len(bad)} row{'s' if len(bad) > 1 else ''} (first: {bad[0]}) "
                f"with {shown}: a cell is {'a number' if kind == 'number' else 'text'}; "
                "write a flat table"
            )


def _json_lines(text: str, source: str, whole: json.JSONDecodeError) -> list[Any]:
    records: list[Any] = []
    # Not splitlines: JSON text may hold other line separators of Unicode as they are.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            records.append(json.loads(line, object_pairs_hook=_unique))
        except json.JSONDecodeError as error:
            if not records:  # not even the first line stands alone: it was meant as one document
                raise IngestError(
                    f"{source}: line {whole.lineno}, column {whole.colno}: broken JSON ({whole.msg}); "
                    "write it again"
                ) from error
            raise IngestError(
                f"{source}: line {number}: broken JSON ({error.msg}); the file may be cut off, "
                "drop or mend the line"
            ) from error
        except _TwiceError as error:
            raise IngestError(
                f"{source}: line {number} has the key {error} twice: the table must say which; "
                "drop one of each"
            ) from None
        except RecursionError:
            raise IngestError(
                f"{source}: line {number}: JSON nested too deeply for a row; write flat objects"
            ) from None
    return records


def _json_records(document: Any, source: str, kinds: Mapping[str, str]) -> list[Any]:
    if isinstance(document, dict):
        for key in ("rows", "data"):
            if isinstance(document.get(key), list):
                names = document.get("columns")
                return _named(document[key], names, source) if isinstance(names, list) else document[key]
        return _json_columns(document, source, kinds)
    return list(document)


def _named(rows: list[Any], names: list[Any], source: str) -> list[Any]:
    """Rows of bare values, with the names beside them."""
    if all(isinstance(row, dict) for row in rows):
        return rows
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, list) or len(row) != len(names):
            raise IngestError(
                f"{source}: record {number} does not have the {len(names)} values that columns names; "
                "write a list of row objects"
            )
    return [dict(zip(map(str, names), row, strict=True)) for row in rows]


def _json_columns(document: dict[str, Any], source: str, kinds: Mapping[str, str]) -> list[Any]:
    values = list(document.values())
    if values and all(isinstance(column, dict) for column in values):
        # Columns of {row: value}, or rows of {column: value}: the names of the schema tell which.
        if not set(document) & set(kinds):
            return values
        rows = list(values[0])
        if any(set(column) != set(rows) for column in values):
            raise IngestError(
                f"{source}: columns whose rows have different names; write a list of row objects"
            )
        return [{name: column[row] for name, column in document.items()} for row in rows]
    lists = [column for column in values if isinstance(column, list)]
    if not lists:
        return [document]  # JSON lines with one line
    if len(lists) < len(document) or len({len(column) for column in lists}) > 1:
        raise IngestError(f"{source}: an object with columns of unequal length; write a list of row objects")
    return [dict(zip(document, row, strict=True)) for row in zip(*lists, strict=True)]
