"""Tables of measurements other than endpoints: a declared schema, checked column by column, each problem one line."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._cells import RawTable, to_numbers, to_text
from smelt_scaling._columns import PERPLEXITY
from smelt_scaling._plausible import HIGH_LOSS, HIGHEST_LOSS
from smelt_scaling._schema import counted, first_rows, mend
from smelt_scaling.errors import DataError, Note, UsageError, info, merge_notes, warning
from smelt_scaling.ingest.tidy import read_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Field", "Measured", "TableLike", "frame_of", "read_measured"]

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
TableLike = Any  #: a path, "-", a data frame, or anything that makes one

#: Rule of a number, in words -> its test. Missing values are judged apart.
RULES: dict[str, Callable[[Floats], Mask]] = {
    "finite": lambda v: np.isfinite(v),
    "> 0 and finite": lambda v: (v > 0) & np.isfinite(v),
    "in [0, 1]": lambda v: (v >= 0) & (v <= 1),
    "a whole number >= 0": lambda v: (v >= 0) & (v == np.floor(v)) & np.isfinite(v),
    "a whole number > 0": lambda v: (v > 0) & (v == np.floor(v)) & np.isfinite(v),
}


@dataclass(frozen=True, kw_only=True)
class Field:
    """One column of such a table.

    Parameters
    ----------
    description : str
        What it holds.
    rule : str
        What a number must satisfy, a key of `RULES`; empty for text.
    needed : bool
        Whether the table must have it. A column that is there must be filled in every row.
    loss : bool
        Whether it is a loss in nats/token, of which a perplexity is no unit.
    percent : bool
        Whether values may be written in percent and converted by ``units={NAME: "percent"}``.
    """

    description: str
    rule: str = ""
    needed: bool = False
    loss: bool = False
    percent: bool = False

    @property
    def kind(self) -> Literal["text", "number"]:
        """What the cells hold."""
        return "number" if self.rule else "text"


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """A checked table.

    Parameters
    ----------
    source : str
        The file, or "table".
    columns : mapping of str to (n,) array
        Text as str, numbers as float64; only those that the table has.
    notes : tuple of Note
        What had to be interpreted.
    unread : tuple of str
        Columns outside the schema.
    """

    source: str
    columns: Mapping[str, NDArray[Any]]
    notes: tuple[Note, ...] = ()
    unread: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values())))

    def text(self, name: str, otherwise: str = "") -> NDArray[np.str_]:
        """Return a column of text; one value throughout where the table has none."""
        return np.asarray(self.columns.get(name, np.full(len(self), otherwise)))

    def require(self, names: Iterable[str], why: str) -> None:
        """Refuse a table that lacks columns.

        Raises
        ------
        DataError
            Naming those that are missing.
        """
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise DataError(
                f"{self.source}: no column {' or '.join(missing)}: {why}; name it with --map {missing[0]}=COLUMN "
                f"(columns: {', '.join([*self.columns, *self.unread][:12])})"
            )

    def require_unique(self, keys: Sequence[str], fields: Mapping[str, Field], apart: Sequence[str]) -> None:
        """Refuse rows that share all keys; columns of ``apart`` that the table lacks are proposed.

        Raises
        ------
        DataError
            With the first two rows and what they share.
        """
        import pandas as pd

        there = [name for name in keys if name in self.columns]
        frame = pd.DataFrame({name: self.columns[name] for name in there})
        twice = frame.duplicated().to_numpy()
        if not twice.any():
            return
        second = int(twice.argmax())
        first = int((frame == frame.iloc[second]).all(axis=1).to_numpy().argmax())
        shared = ", ".join(f"{name} {_shown(self.columns[name][second])}" for name in there)
        absent = [f"{name}=COLUMN" for name in apart if name not in self.columns]
        remedy = f", or name what tells them apart with --map {' or '.join(absent)}" if absent else ""
        raise DataError(
            f"{self.source}: {counted(int(twice.sum()), 'row')} repeated (rows {first + 1} and {second + 1} share "
            f"{shared}): one row for each; drop or average them{remedy}"
        )


def read_measured(
    table: TableLike,
    fields: Mapping[str, Field],
    *,
    mapping: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
) -> Measured:
    """Read a table and check it against its declared columns.

    Parameters
    ----------
    table : path, "-" or data frame
        As for `read_endpoints`, or anything that pandas makes a frame of.
    fields : mapping of str to Field
        The columns that matter.
    mapping, units : mapping of str to str, optional
        Where a column has another name; which are in percent.

    Raises
    ------
    UsageError
        For a mapping or a unit that no such table could have.
    DataError
        One line per problem.
    """
    import pandas as pd

    mapping, units = dict(mapping or {}), dict(units or {})
    _check_options(fields, mapping, units)
    notes: tuple[Note, ...] = ()
    if isinstance(table, str | Path):
        source = "<stdin>" if str(table) == "-" else str(table)
        kinds = {mapping.get(name, name): field.kind for name, field in fields.items()}
        frame, notes = read_table(table, mapping=mapping, kinds=kinds)
    else:
        source, frame = "table", pd.DataFrame(table)
    frame = frame.rename(columns=lambda name: str(name).strip())
    raw = RawTable(notes=list(notes))
    if not len(frame):
        raise DataError(f"{source}: no rows: one per measurement is needed")
    for name, field in fields.items():
        found = mapping.get(name, name)
        if found in frame.columns:
            raw.names[name] = name if found == name else f"{name} ({found!r} in the file)"
            _read_column(frame[found], name, field, units, source, raw)
            if field.loss:
                _doubt_loss(name, found, source, raw)
        elif field.needed or name in mapping:
            listed = ", ".join(map(str, frame.columns[:12]))
            raw.problems.append(
                f"{source}: no column {found}: {field.description}; name it with --map {name}=COLUMN "
                f"(columns: {listed})"
            )
    if raw.problems:
        raise DataError("\n".join(raw.problems))
    unread = [str(c) for c in frame.columns if c not in {mapping.get(name, name) for name in fields}]
    if unread:
        message = f"{source}: columns outside the schema, not read: {', '.join(unread[:12])}"
        raw.notes.append(info("ignored_columns", message, len(unread)))
    return Measured(source=source, columns=raw.columns, notes=merge_notes(raw.notes), unread=tuple(unread))


def _check_options(fields: Mapping[str, Field], mapping: Mapping[str, str], units: Mapping[str, str]) -> None:
    for name, column in mapping.items():
        if name not in fields:
            raise UsageError(
                f"--map {name}={column}: {name!r} is no column of this table; use one of {', '.join(fields)}"
            )
    convertible = [name for name, field in fields.items() if field.percent]
    for name, unit in units.items():
        if name not in convertible or unit not in ("percent", "fraction"):
            known = " or ".join(f"{other}=percent" for other in convertible) or "no unit"
            raise UsageError(f"--unit {name}={unit}: not known here; this table takes {known}")


def _read_column(
    series: pd.Series[Any], name: str, field: Field, units: Mapping[str, str], source: str, raw: RawTable
) -> None:
    label = raw.names[name]

    def report(bad: Mask, what: str) -> None:
        if bad.any():
            raw.problems.append(f"{source}: column {label}, {first_rows(bad)} {what}")

    absent = series.isna().to_numpy(bool)
    if field.kind == "text":
        values = to_text(series, absent)[0].array()
        report(
            values == "", f"missing: {field.description}, needed in every row; {mend(values == '', 'fill')}"
        )
        raw.columns[name] = values
        return
    numbers = to_numbers(series, absent, name, units, source, raw)
    if name in raw.unreadable:
        return
    missing = np.isnan(numbers)
    if units.get(name) == "percent":
        # hardly anybody scores below 1 % throughout: fractions, which would be divided twice
        if (~missing).any() and np.nanmax(numbers) <= 1:
            raw.problems.append(
                f"{source}: column {label}, no row above {np.nanmax(numbers):.4g} under --unit {name}=percent: these "
                "are fractions already; leave the option out, or divide by 100 if they are percent"
            )
        numbers = numbers / 100
    report(missing, f"missing: {field.description}, needed in every row; {mend(missing, 'fill')}")
    bad = ~missing & ~RULES[field.rule](numbers)
    if bad.any():
        percent = (
            field.percent and name not in units and np.all(numbers[bad] > 1) and np.all(numbers[bad] <= 100)
        )
        remedy = f"add --unit {name}=percent if all are percent" if percent else mend(bad)
        report(bad, f"not {field.rule} ({numbers[bad][0]:g}): {field.description}; {remedy}")
    raw.columns[name] = numbers


def _doubt_loss(name: str, found: str, source: str, raw: RawTable) -> None:
    """Refuse losses that are perplexities by their name or size, and note those that may be."""
    if name not in raw.columns or np.isnan(raw.columns[name]).all():
        return
    where, median = f"{source}: column {raw.names[name]}", float(np.nanmedian(raw.columns[name]))
    if PERPLEXITY.search(found):
        raw.problems.append(
            f"{where}, named like a perplexity: losses are in nats/token; write its logarithm, or another name if it "
            "is a loss already"
        )
    elif median > HIGHEST_LOSS:
        raw.problems.append(
            f"{where}, median {median:.3g}: no loss in nats/token is that high; write the logarithm if it is a "
            "perplexity"
        )
    elif median > HIGH_LOSS:
        message = (
            f"{where}, median {median:.4g} nats/token is high; if it is a perplexity write its logarithm"
        )
        raw.notes.append(warning("high_loss", message, len(raw.columns[name])))


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, str) else f"{value:g}"


def frame_of(
    rows: Sequence[Mapping[str, Any]], notes: Iterable[Note], settings: Mapping[str, Any], **tables: Any
) -> pd.DataFrame:
    """Return rows as a frame whose ``attrs`` hold ``notes``, ``settings`` and further tables."""
    import pandas as pd

    frame = pd.DataFrame(list(rows))
    said: dict[Hashable, Any] = {
        "notes": [note.to_dict() for note in merge_notes(notes)],
        "settings": dict(settings),
    }
    said.update(tables)
    frame.attrs = said
    return frame
