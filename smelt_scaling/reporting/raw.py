"""Results for programs: strict JSON, CSV and Parquet with every field at full precision."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt_scaling.errors import Note

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SCHEMA_VERSION", "frame_record", "plain_rows", "to_csv", "write_parquet"]

SCHEMA_VERSION = 1

#: What stands beside the rows of some results.
TABLES = (
    *("turnover", "fairness", "intake", "columns", "tiers", "map", "flops", "next", "order"),
    *("calibration", "wins", "differences", "points", "curve"),
    *("ratios", "comparisons", "changes", "tasks", "summary", "dunnett", "tukey"),
    *("pairs", "sharing", "correlation", "members"),
    *("headline", "parts"),
    *("totals", "compared", "conventions", "cache", "searches", "windows"),
    *("sequence", "power", "needed"),
)

#: A text cell that starts with one of these is a formula to a spreadsheet.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as plain Python values; NaN, infinity and missing values become None."""
    return [
        {str(key): _plain(value) for key, value in row.items()} for row in frame.to_dict(orient="records")
    ]


def frame_record(
    command: str,
    frame: pd.DataFrame,
    *,
    settings: Mapping[str, Any],
    notes: Iterable[Note],
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a result as the documented JSON object.

    Returns
    -------
    dict
        ``schema_version, command, settings, rows, notes, provenance``, and each further table that the frame has.
    """
    record: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "settings": _plain(dict(settings)),
        "rows": plain_rows(frame),
        "notes": [note.to_dict() for note in notes],
        "provenance": dict(provenance),
    }
    return record | {name: _plain(frame.attrs[name]) for name in TABLES if name in frame.attrs}


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    r"""Return rows as CSV: full precision, empty where a value is absent, support as JSON.

    Text that a spreadsheet would run as a formula gets a leading apostrophe.

    Examples
    --------
    >>> to_csv([{"arch": "=cmd()", "gain": -0.125, "unreachable": False, "gain_hi": None}])
    "arch,gain,unreachable,gain_hi\n'=cmd(),-0.125,false,\n"
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if rows:
        writer.writerow([_csv_cell(key) for key in rows[0]])
        writer.writerows([_csv_cell(value) for value in row.values()] for row in rows)
    return out.getvalue()


def write_parquet(frame: pd.DataFrame, path: Path) -> Path:
    """Write the rows with fixed types: a column without values is a column of floats."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = plain_rows(frame)
    columns = {}
    for name in map(str, frame.columns):
        values = [row[name] for row in rows]
        kinds = {type(value) for value in values if value is not None}
        if list in kinds:
            numbers = all(isinstance(item, float) for value in values for item in value or ("",))
            plain = pa.list_(pa.float64() if numbers else pa.string())
            columns[name] = pa.array(values, _support_type(pa) if name == "support" else plain)
        elif kinds <= {float, int}:
            columns[name] = pa.array(values, pa.int64() if kinds == {int} else pa.float64())
        elif kinds == {bool}:
            columns[name] = pa.array(values, pa.bool_())
        else:
            columns[name] = pa.array([None if v is None else str(v) for v in values], pa.string())
    pq.write_table(pa.table(columns), path)
    return path


def _support_type(pa: Any) -> Any:
    return pa.list_(pa.struct([("code", pa.string()), ("arch", pa.string()), ("factor", pa.float64())]))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    return None if type(value).__name__ in ("NAType", "NaTType") else str(value)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        nested = bool(value) and isinstance(value[0], Mapping)
        value = json.dumps(value, ensure_ascii=False) if nested else "; ".join(map(str, value))
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value
