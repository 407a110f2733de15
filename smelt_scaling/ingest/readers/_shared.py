"""What several readers need: a JSON document read whole, a run named by its folder, and flaws of line formats."""

from __future__ import annotations

import json
import lzma
import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Flaw, logged_number
from smelt_scaling.ingest.keys import ROLES, Keys
from smelt_scaling.ingest.sources import Source

__all__ = [
    "NUMBER",
    "chooser",
    "finite",
    "flat",
    "folder_name",
    "json_document",
    "line_flaws",
    "no_rows",
    "text_of",
]

#: A number as C and Python print it.
NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|nan|inf)"

_COUNTERS = frozenset(ROLES["step"][0] + ROLES["time"][0])


def json_document(source: Source) -> Any:
    """Read a file that is one JSON document; NaN and Infinity are numbers, as Python writes them.

    Raises
    ------
    IngestError
        If it is cut off, no UTF-8, nested beyond reason, or has a key twice: nothing of it is guessed.
    """
    with source.open() as stream:
        try:
            data = stream.read()
        except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
            raise IngestError(f"{source.path}: broken packed data ({error}); copy the file again") from error
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise IngestError(
            f"{source.path}: byte {error.start} is not UTF-8: JSON is; copy the file again"
        ) from error
    except json.JSONDecodeError as error:
        raise IngestError(
            f"{source.path}: line {error.lineno}: no whole JSON document ({error.msg}): "
            "it is cut off or damaged; copy or write the file again"
        ) from error
    except (RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise IngestError(f"{source.path}: {reason[:120]}: no log is like that; check the file") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} stands twice in one object")
    return record


def flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested objects under their keys joined by points.

    Examples
    --------
    >>> dict(flat({"val/": {"loss": 2.5}, "lr": 0.1}))
    {'val/.loss': 2.5, 'lr': 0.1}
    """
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def chooser(keys: Keys) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that keeps what is wanted of a record, asking for each key once.

    Step and time are left out: a row has them beside its values.
    """
    known: dict[str, bool] = {}

    def chosen(record: Mapping[str, Any]) -> dict[str, Any]:
        for key in record:
            if key not in known:
                known[key] = key not in _COUNTERS and keys.wanted(key)
        return {key: value for key, value in record.items() if known[key]}

    return chosen


def finite(value: Any) -> float | None:
    """Return a finite number, or None for anything else."""
    number = logged_number(value)
    return number if math.isfinite(number) else None


def text_of(value: Any) -> str:
    """Return text as it is, and "" for anything that is no text."""
    return value if isinstance(value, str) else ""


def folder_name(source: Source, generic: str) -> str:
    """Name a run by its folder, where the file has the name that every run's file has.

    Parameters
    ----------
    source : Source
        The file.
    generic : str
        Regular expression of the names, of files (without their ending) and folders, that say nothing.
    """

    def telling(path: str) -> list[str]:
        return [part for part in PurePath(path).parts if not re.fullmatch(generic, part)]

    if named := telling(source.name):
        return "/".join(named)
    around = telling(str(PurePath(source.path).with_suffix("")))
    return around[-1] if around else source.name


def line_flaws(run: str, torn: int, strange: int, what: str) -> Iterator[Flaw]:
    """Yield the flaws of a file of lines: a last line without its end, and lines that should be records."""
    if torn:
        yield Flaw(code="torn_line", message="the last line has no end and was not read", count=torn, run=run)
    if strange:
        yield Flaw(code="unread_lines", message=f"{strange} lines are {what}", count=strange, run=run)


def no_rows(source: Source, what: str) -> IngestError:
    """Return the error for a file of a known format that holds nothing to read."""
    return IngestError(f"{source.path}: {what}: nothing was logged; leave the file out or copy it again")
