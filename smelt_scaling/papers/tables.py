"""Published tables as printed: cells stay text, so that a comparison is judged by the digits printed."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Table", "parse_number", "parse_table", "rounding"]

_NUMBER = re.compile(
    r"(?P<mantissa>[+-]?\d+(?:\.\d*)?|[+-]?\.\d+)(?:[eE](?P<exponent>[+-]?\d+))?(?P<suffix>[KMBT%]?)"
)
#: Power of ten of each suffix a printed number may carry.
_SUFFIX = {"": 0, "%": -2, "K": 3, "M": 6, "B": 9, "T": 12}


def _split(text: str) -> tuple[Decimal, int]:
    """Return the mantissa and the power of ten that multiplies it."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a printed number such as 10.0, 1.366e3, 0.2% or 0.71B")
    return Decimal(match["mantissa"]), int(match["exponent"] or 0) + _SUFFIX[match["suffix"]]


def parse_number(text: str) -> float:
    """Return the value of a printed number; a percentage becomes a fraction, ``B`` means 1e9.

    Raises
    ------
    ValueError
        When the text is not a number.

    Examples
    --------
    >>> parse_number("1.366e3"), parse_number("0.2%"), parse_number("0.71B")
    (1366.0, 0.002, 710000000.0)
    """
    mantissa, power = _split(text)
    return float(mantissa.scaleb(power))


def rounding(text: str) -> float:
    """Return half a unit of the last printed digit, in the unit of `parse_number`.

    A value that agrees with the printed one lies within this distance of it.

    Raises
    ------
    ValueError
        When the text is not a number.

    Examples
    --------
    >>> rounding("10.0"), rounding("1.366e3"), rounding("0.2%"), rounding("56")
    (0.05, 0.5, 0.0005, 0.5)
    """
    mantissa, power = _split(text)
    digits = mantissa.as_tuple().exponent
    assert isinstance(digits, int)  # the pattern admits neither NaN nor infinity
    return float(Decimal("0.5").scaleb(digits + power))


@dataclass(frozen=True, kw_only=True)
class Table:
    """One published table.

    Parameters
    ----------
    name : str
        File name without suffix.
    title, source, section : str
        What it holds and where it was printed.
    precision : str
        ``printed`` (as in the source), or which columns are computed or inferred.
    columns : tuple of str
        Column names. A column ending in ``_inferred`` is not in the source.
    rows : tuple of tuple of str
        Cells as printed; an empty cell was not printed.
    metadata : Mapping[str, str]
        What else the numbers need: budget, target, sparsity and the rule it came from.
    """

    name: str
    title: str
    source: str
    section: str
    precision: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> tuple[str, ...]:
        """Return the cells of a column as printed.

        Raises
        ------
        KeyError
            When the table has no such column.
        """
        if name not in self.columns:
            raise KeyError(f"table {self.name} has no column {name!r}; it has {', '.join(self.columns)}")
        index = self.columns.index(name)
        return tuple(row[index] for row in self.rows)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as numbers, shape (rows,); an empty cell is NaN."""
        return np.array([parse_number(cell) if cell else math.nan for cell in self.column(name)])

    def roundings(self, name: str) -> NDArray[np.float64]:
        """Return half a unit of the last printed digit per cell, shape (rows,); an empty cell is NaN."""
        return np.array([rounding(cell) if cell else math.nan for cell in self.column(name)])

    def records(self) -> list[dict[str, str]]:
        """Return the rows as dictionaries of printed text."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def select(self, **cells: str) -> Table:
        """Return the rows whose cells equal the given text.

        Examples
        --------
        >>> from smelt_scaling.papers import load_paper
        >>> load_paper("smelt").tables["tpp"].select(arch="smelt", tier="95%").column("tpp")
        ('75',)
        """
        wanted = [(self.column(name), text) for name, text in cells.items()]
        keep = [all(column[i] == text for column, text in wanted) for i in range(len(self.rows))]
        rows = tuple(row for row, kept in zip(self.rows, keep, strict=True) if kept)
        return Table(**{**self.__dict__, "rows": rows})

    def sparsities(self) -> dict[str, float]:
        """Return the sparsity at which each tier is evaluated, ``{"85%": 0.846}``; empty if not stated."""
        text = self.metadata.get("sparsity", "")
        pairs = [item.strip().split("=") for item in text.split(",") if item]
        return {tier: parse_number(value) for tier, value in pairs}

    def to_frame(self) -> pd.DataFrame:
        """Return the cells as a frame of text."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.columns), dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain JSON values."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "section": self.section,
            "precision": self.precision,
            "metadata": dict(self.metadata),
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
        }


def parse_table(name: str, text: str) -> Table:
    r"""Read a table from CSV text whose first lines are ``# key: value``.

    Raises
    ------
    ValueError
        When title, source, section or precision is missing, a column name repeats, or a row has the wrong
        number of cells.

    Examples
    --------
    >>> head = "# title: t\n# source: s\n# section: 1\n# precision: printed\n"
    >>> parse_table("demo", head + "arch,gamma\nbase,0.237\n").numbers("gamma")
    array([0.237])
    """
    lines = text.splitlines()
    count = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    head = dict(line.removeprefix("#").strip().split(": ", 1) for line in lines[:count])
    missing = [key for key in ("title", "source", "section", "precision") if key not in head]
    if missing:
        raise ValueError(f"{name}.csv: header lacks {', '.join(missing)}; add a line '# {missing[0]}: ...'")
    columns, *rows = (tuple(row) for row in csv.reader(lines[count:]))
    if len(set(columns)) != len(columns):
        raise ValueError(f"{name}.csv: a column name repeats in {', '.join(columns)}")
    for number, row in enumerate(rows, start=count + 2):
        if len(row) != len(columns):
            raise ValueError(f"{name}.csv: line {number} has {len(row)} cells, the header has {len(columns)}")
    return Table(
        name=name,
        title=head.pop("title"),
        source=head.pop("source"),
        section=head.pop("section"),
        precision=head.pop("precision"),
        columns=columns,
        rows=tuple(rows),
        metadata=MappingProxyType(head),
    )
