"""From the columns of any data frame to schema columns: names, values and units, with repairs counted.

Problems are collected rather than raised, so that the owner of a table sees all of them at once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._cells import RawTable, to_numbers, to_text
from smelt_scaling._schema import BITS_PER_BYTE, COLUMNS, NATS, UNITS, counted, first_rows, mend
from smelt_scaling._text import Text
from smelt_scaling.errors import DataError, Note, UsageError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PERPLEXITY", "RawTable", "check_options", "read_columns"]

#: Names of columns of perplexities.
PERPLEXITY = re.compile(r"(?:^|[^a-z])(?:ppl|perplexity)(?:[^a-z]|$)", re.IGNORECASE)

_PER_BYTE = re.compile(r"(?:^|[^a-z])(?:bpb|bits_per_byte)(?:[^a-z]|$)", re.IGNORECASE)
_LIKE_A_RUN = re.compile(
    r"(?:.*[^a-z])?(?:run|trial|exp|experiment|job|cell|trunk)(?:[^a-z].*)?", re.IGNORECASE
)
_LIKE_AN_ARCH = re.compile(r"(?:arch|architecture|model|variant)(?:[ _./-]?(?:name|type))?", re.IGNORECASE)
_LIKE_A_SPARSITY = re.compile(r"s|(?:.*[^a-z])?sparsity", re.IGNORECASE)
_ACTIVE = re.compile(r"(?:^|[^a-z])(?:active|activation|density)(?:[^a-z]|$)", re.IGNORECASE)

#: Parts of names under which a required column often hides; used in messages only, never to pick a column.
_OFTEN_CALLED = {
    "loss": ("loss", "nll", "cross_entropy", "/ce", "_ce", "ppl", "perplexity", "bpb"),
    "F": ("flop",),
    "N": ("param",),
    "C": ("compute", "flop"),
}


def check_options(mapping: Mapping[str, str], units: Mapping[str, str]) -> None:
    """Refuse a mapping or a unit that no table could make valid.

    Raises
    ------
    UsageError
        For a name that is not in the schema, or a unit that its column does not have.
    """
    for option, pairs in (("--map", mapping), ("--unit", units)):
        for name, value in pairs.items():
            if name not in COLUMNS:
                raise UsageError(_unknown_name(option, name, value))
    for name, unit in units.items():
        if unit not in UNITS.get(name, {}):
            known = ", ".join(UNITS.get(name, {}))
            remedy = f"write one of {known}" if known else f"that of {name} is fixed, leave it out"
            raise UsageError(f"--unit {name}={unit}: unknown unit; {remedy}")


def _unknown_name(option: str, name: str, value: str) -> str:
    what = f"{option} {name}={value}: {name!r} is no column of the schema"
    if option == "--map" and value in COLUMNS:
        return f"{what}; its name comes first: --map {value}={name}"
    near = _similar(name, list(COLUMNS))[:2]
    return (
        f"{what}; did you mean {' or '.join(near)}?" if near else f"{what}; use one of {', '.join(COLUMNS)}"
    )


def read_columns(
    frame: pd.DataFrame, source: str, mapping: Mapping[str, str], units: Mapping[str, str]
) -> RawTable:
    """Pick, parse and convert the schema columns of a frame.

    Parameters
    ----------
    frame : pandas.DataFrame
        Any dtypes: numpy, nullable, Arrow, categorical, objects, numbers written as text.
    source : str
        How to name the table in messages.
    mapping : mapping of str to str
        Schema name to column of the frame, for those whose names differ.
    units : mapping of str to str
        Schema name to a unit of `UNITS`, for those not in the unit of the schema.

    Returns
    -------
    RawTable
        Text columns as str arrays (missing: ""), numbers as float64 (missing: NaN), and problems, not raised.
    """
    table = RawTable()
    frame = _plain_header(frame, source, table)
    present = [str(name) for name in frame.columns]
    chosen = _choose(present, source, mapping, table)
    table.read = set(chosen.values())
    empty = []
    trimmed: dict[str, int] = {}
    for name, found in chosen.items():
        series = frame[found]
        missing = series.isna().to_numpy(bool)
        if name != "loss" and _is_empty(series, missing):
            empty.append(found)
            continue
        table.sources[name] = found
        table.names[name] = name if found == name else f"{name} ({found!r} in the file)"
        if COLUMNS[name].kind == "text":
            table.columns[name], count = to_text(series, missing)
            if count:
                trimmed[found] = count
        else:
            table.columns[name] = to_numbers(series, missing, name, units, source, table)
    _convert(units, source, table)
    _state_loss_unit(len(frame), units.get("loss"), source, table)
    _question_names(chosen, units, source, table)
    _add_notes(present, chosen, empty, trimmed, source, table, _may_be(frame, chosen, table))
    return table


def _plain_header(frame: pd.DataFrame, source: str, table: RawTable) -> pd.DataFrame:
    """Turn named index levels into columns and strip blanks around names; refuse repeated names."""
    if any(level is not None for level in frame.index.names):
        frame = frame.reset_index()
    names = [str(name).strip() for name in frame.columns]
    changed = sum(str(old) != new for old, new in zip(frame.columns, names, strict=True))
    if changed:
        table.notes.append(
            Note(
                code="trimmed_text",
                severity="info",
                count=changed,
                message=f"{source}: blanks around {counted(changed, 'column name')} removed",
            )
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(
            f"{source}: columns that appear twice: {', '.join(twice)}; rename or drop one of each"
        )
    return frame.set_axis(names, axis=1)


def _choose(present: list[str], source: str, mapping: Mapping[str, str], table: RawTable) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for name in COLUMNS:
        found = mapping.get(name, name)
        if found in present:
            chosen[name] = found
        elif name in mapping:
            table.problems.append(
                f"{source}: no column {found!r}, which --map {name}={found} names; "
                f"did you mean {_listing(_similar(found, present) or present)}?"
            )
    if "loss" not in chosen and "loss" not in mapping:
        table.problems.append(
            f"{source}: no column loss: every endpoint needs one; {_propose('loss', present)}"
        )
    if not {"F", "N", "C"} & (set(chosen) | set(mapping)):
        table.problems.append(
            f"{source}: no column F, N or C: an endpoint needs the training FLOPs per token, the "
            f"parameters or the training FLOPs; {_propose('F', present, 'N', 'C')}"
        )
    return chosen


def _propose(name: str, present: list[str], *others: str) -> str:
    hints = [part for key in (name, *others) for part in _OFTEN_CALLED[key]]
    likely = [column for column in present if any(part in column.casefold() for part in hints)]
    likely += [column for column in _similar(name, present) if column not in likely]
    asked = {"loss=ppl": PERPLEXITY, "loss=bpb": _PER_BYTE} if name == "loss" and likely else {}
    unit = "".join(f" --unit {unit}" for unit, named in asked.items() if named.search(likely[0]))
    if not likely:
        return f"name it with --map {name}=COLUMN (columns: {_listing(present)})"
    return f"name it with --map, e.g. --map {name}={likely[0]}{unit} (candidates: {_listing(likely)})"


def _similar(name: str, present: list[str]) -> list[str]:
    folded = {column.casefold(): column for column in present}
    return [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)]


def _listing(names: Iterable[str], limit: int = 12) -> str:
    names = list(names)
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def _is_empty(series: pd.Series[Any], missing: NDArray[np.bool_]) -> bool:
    def blank(value: Any) -> bool:
        return isinstance(value, str) and not value.strip()

    # the first value settles it for nearly every column
    return bool(missing.all()) or (
        blank(series.iloc[int(missing.argmin())]) and all(map(blank, series[~missing]))
    )


def _convert(units: Mapping[str, str], source: str, table: RawTable) -> None:
    for name, unit in units.items():
        if name not in table.columns:
            table.problems.append(
                f"{source}: no column {name}, which --unit {name}={unit} converts; "
                f"name it with --map {name}=COLUMN, or leave the unit out"
            )
            continue
        raw = table.columns[name]
        with np.errstate(all="ignore"):
            converted = np.asarray(UNITS[name][unit](raw), dtype=np.float64)
        if name == "loss" and "loss_se" in table.columns and unit != "nats":
            # The standard error comes in the unit of the loss; for perplexity to first order.
            scale = {"bits": np.log(2.0), "bpb": 1.0}.get(unit, 1.0 / raw)
            table.columns["loss_se"] = table.columns["loss_se"] * scale
        if name == "loss" and unit == "ppl":
            # A perplexity of 1 or less is no positive loss; report it in the unit of the file.
            bad = np.isfinite(raw) & (raw <= 1)
            if bad.any():
                table.problems.append(
                    f"{source}: column {table.names[name]}, {first_rows(bad)} not > 1: a perplexity "
                    f"exceeds 1; {mend(bad)}"
                )
                converted = np.where(bad, 1.0, converted)
        table.columns[name] = converted
        own = next(iter(UNITS[name]))
        if unit not in (own, "bpb"):  # bits per byte are kept
            table.notes.append(
                Note(
                    code="unit_converted",
                    severity="info",
                    count=int((~np.isnan(raw)).sum()),
                    message=f"{source}: column {table.names[name]} converted from {unit} to "
                    f"{COLUMNS[name].unit}",
                )
            )


def _state_loss_unit(rows: int, unit: str | None, source: str, table: RawTable) -> None:
    """Write bits per byte into a column, so that they are never taken for nats; refuse units nobody knows."""
    known = (NATS, BITS_PER_BYTE)
    if "loss_unit" in table.columns:
        values: Text = table.columns["loss_unit"]
        place = f"{source}: column {table.names['loss_unit']}"
        wrong = ~values.where(("", *known).__contains__)
        if wrong.any():
            shown = values[int(wrong.argmax())][:40]
            table.problems.append(
                f"{place}, {first_rows(wrong)} {shown!r}: a loss is kept in {' or '.join(known)}; "
                "convert the losses, or name their unit with --unit loss=bits (or ppl, bpb) and drop the column"
            )
            return
        values = Text.coded(values.codes, [name or NATS for name in values.names])
        table.columns["loss_unit"] = values
        kept = {None: known, "bpb": (BITS_PER_BYTE,)}.get(unit, (NATS,))
        other = ~values.where(kept.__contains__)
        if other.any():
            named = values[int(other.argmax())]
            table.problems.append(
                f"{place}, {first_rows(other)} {named}, against --unit loss={unit}: name one of them"
            )
    elif unit == "bpb":
        table.columns["loss_unit"] = Text.of(np.full(rows, BITS_PER_BYTE))
        table.names["loss_unit"] = "loss_unit"


def _question_names(
    chosen: Mapping[str, str], units: Mapping[str, str], source: str, table: RawTable
) -> None:
    """Ask for the unit of a column whose name says that it is not the schema's."""

    def ask(name: str, what: str) -> None:
        table.questioned.add(name)
        table.problems.append(f"{source}: column {table.names[name]}, named like {what}")

    loss, sparsity = chosen.get("loss", ""), chosen.get("S", "")
    if "loss" not in units and PERPLEXITY.search(loss):
        ask(
            "loss",
            "a perplexity: loss is in nats/token; add --unit loss=ppl (--unit loss=nats if it is in nats)",
        )
    elif "loss" not in units and _PER_BYTE.search(loss):
        ask(
            "loss",
            "bits per byte: loss is in nats/token; add --unit loss=bpb (--unit loss=nats if it is in nats/token)",
        )
    if "S" not in units and _ACTIVE.search(sparsity) and "spars" not in sparsity.casefold():
        ask("S", "an active share: S is one minus it; add --unit S=active (--unit S=fraction keeps it)")


def _may_be(frame: pd.DataFrame, chosen: Mapping[str, str], table: RawTable) -> str:
    """Propose columns that nothing reads, for those whose absence changes what is fitted or resampled."""
    groups = {"cell", "scale", "trunk", "run"} & set(chosen)
    wanted = {
        "arch": (_LIKE_AN_ARCH, "names architectures"),
        "S": (_LIKE_A_SPARSITY, "is the sparsity"),
        "run": (_LIKE_A_RUN, "names runs"),
    }
    hints = []
    for wants, (pattern, what) in wanted.items():
        if wants in chosen or (wants == "run" and groups):
            continue
        for name in frame.columns:
            if name in chosen.values() or not pattern.fullmatch(name):
                continue
            distinct = frame[name].astype(str).nunique()
            if 1 < distinct < len(frame):
                map_it = f"{wants}={name}"
                if wants == "run":
                    table.runs_unread = f"{name} ({distinct} values in {len(frame)} rows)"
                shown = map_it if re.fullmatch(r"[\w./-]+", name) else repr(map_it)
                hints.append(
                    f"; {name} repeats ({distinct} values in {len(frame)} rows): if it {what}, add --map {shown}"
                )
                break
    return "".join(hints)


def _add_notes(
    present: list[str],
    chosen: Mapping[str, str],
    empty: list[str],
    trimmed: Mapping[str, int],
    source: str,
    table: RawTable,
    hint: str,
) -> None:
    def info(code: str, count: int, message: str) -> None:
        table.notes.append(Note(code=code, severity="info", count=count, message=f"{source}: {message}"))

    unread = [name for name in present if name not in chosen.values()]
    if unread:
        info(
            "ignored_columns", len(unread), f"columns outside the schema, not read: {_listing(unread)}{hint}"
        )
    if empty:
        info(
            "empty_columns", len(empty), f"columns without a single value, taken as absent: {_listing(empty)}"
        )
    if trimmed:
        info("trimmed_text", sum(trimmed.values()), f"blanks removed around text in {_listing(trimmed)}")
