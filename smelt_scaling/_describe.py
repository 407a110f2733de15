"""A table of endpoints at a glance: for a prompt, and for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import COLUMNS, counted
from smelt_scaling.errors import Note
from smelt_scaling.formatting import format_quantity

__all__ = ["describe", "describe_html"]

Columns = Mapping[str, NDArray[Any]]

#: More names than this are counted, not listed.
MOST_NAMES = 4


def describe(columns: Columns, source: str) -> str:
    """Return one line: rows, architectures, columns and source.

    Examples
    --------
    >>> describe({"arch": np.array(["a", "b"]), "loss": np.array([3.0, 2.5])}, "runs.csv")
    "Endpoints(2 rows of a, b; columns arch, loss; from 'runs.csv')"
    """
    rows = f"{counted(len(columns['loss']), 'row')} of {_names(columns['arch'], 'architecture')}"
    return f"Endpoints({rows}; columns {', '.join(columns)}; from {source!r})"


def describe_html(columns: Columns, source: str, notes: Iterable[Note]) -> str:
    """Return the same as HTML, with the unit and the range of every column, and the notes."""
    from html import escape

    archs, count = np.unique(columns["arch"], return_counts=True)
    rows = ", ".join(f"{name} ({n})" for name, n in zip(archs.tolist()[:12], count.tolist(), strict=False))
    more = f" and {len(archs) - 12} more" if len(archs) > 12 else ""
    head = (
        f"{counted(len(columns['loss']), 'endpoint')} of {counted(len(archs), 'architecture')}: {rows}{more}"
    )
    cells = "".join(
        f"<tr><td>{name}</td><td>{COLUMNS[name].unit}</td><td>{escape(_range(name, values))}</td></tr>"
        for name, values in columns.items()
    )
    said = "".join(f"<li>{note.severity} [{note.code}] {escape(note.message)}</li>" for note in notes)
    return (
        f"<div><p>{escape(head)}<br>from {escape(source)}</p>"
        f"<table><tr><th>column</th><th>unit</th><th>values</th></tr>{cells}</table>"
        + (f"<ul>{said}</ul>" if said else "")
        + "</div>"
    )


def _names(values: NDArray[Any], noun: str) -> str:
    names = np.unique(values).tolist()
    return ", ".join(names) if len(names) <= MOST_NAMES else counted(len(names), noun)


def _range(name: str, values: NDArray[Any]) -> str:
    if COLUMNS[name].kind == "text":
        return _names(values, "name")
    known = values[~np.isnan(values)]
    low, high = (format_quantity(float(end), 4) for end in (known.min(), known.max()))
    missing = f", {len(values) - len(known)} missing" if len(known) < len(values) else ""
    return (low if low == high else f"{low} to {high}") + missing
