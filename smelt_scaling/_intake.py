"""From any data frame to the checked columns of endpoints, every step with its notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._canonical import Canonical, canonical_groups, in_order
from smelt_scaling._columns import RawTable, check_options, read_columns
from smelt_scaling._conventions import apply_forward, check_conventions, convention_notes
from smelt_scaling._derive import complete, parameters_of, remarks
from smelt_scaling._origin import Intake, origins
from smelt_scaling._plausible import check_plausible, plausible_notes
from smelt_scaling._repeats import merge_duplicates, settle_repeats, uneven_steps
from smelt_scaling._rows import not_annealed, without_endpoint
from smelt_scaling._schema import COLUMNS, check_values
from smelt_scaling.errors import DataError, Note, UsageError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FLOPS_RULES", "read_frame"]

Columns = dict[str, Any]

#: Codes of the notes on rows that are no endpoints whatever else they hold.
EXCLUSIONS = ("unfinished", "nonfinite", "diverged")
#: What the option `flops` may say.
FLOPS_RULES = ("6N", "forward")


def read_frame(
    frame: pd.DataFrame | Mapping[str, Any],
    source: str,
    mapping: Mapping[str, str],
    units: Mapping[str, str],
    flops: str | None,
    include_unfinished: bool = False,
) -> tuple[Canonical, list[Note], Intake]:
    """Name, parse, convert, check, screen and complete the columns of a table; see `Endpoints.from_frame`.

    The rows come in canonical order, the notes count them as they are in the file.
    """
    import pandas as pd

    check_options(mapping, units)
    if flops is not None and flops not in FLOPS_RULES:
        raise UsageError(f"--flops {flops}: unknown rule; use {' or '.join(FLOPS_RULES)}, or leave it out")
    frame = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(dict(frame))
    if not len(frame):
        raise DataError(f"{source}: no rows: an endpoint table needs at least one; check the file")
    table = read_columns(frame, source, mapping, units)
    columns, notes = table.columns, table.notes
    out, excluded = np.zeros(len(frame), dtype=bool), list[Note]()
    if "loss" in columns and "loss" not in table.unreadable:
        out, excluded = without_endpoint(columns, source, include_unfinished=include_unfinished)
        notes += excluded
    as_read = dict(table.columns)
    problems = _problems(table, source, units, flops, out, notes)
    if not problems and out.all():
        problems = [_nothing_left(source, out, notes)]
    if problems:
        raise DataError("\n".join(problems))
    rules = {name: "3 x the column" for name in as_read if table.columns[name] is not as_read[name]}
    columns, rows = _keep(columns, ~out), np.flatnonzero(~out) + 1
    notes += complete(columns, source, flops)
    if flops == "6N":
        rules["F"] = f"6 {parameters_of(columns)}"
    early, found = not_annealed(columns, source)
    columns, rows, notes = _keep(columns, ~early), rows[~early], [*notes, *found]
    groups = canonical_groups(columns)
    repeated, found = merge_duplicates(columns, source, rows, groups, _unread(frame, table))
    columns, rows, notes = _keep(columns, ~repeated), rows[~repeated], [*notes, *found]
    groups = groups.keep(~repeated)
    notes += settle_repeats(columns, source, rows, groups)
    notes += [*remarks(columns, source), *convention_notes(columns, source), *uneven_steps(columns, source)]
    notes += plausible_notes(columns, source, units)
    intake = Intake(
        rows=len(frame),
        left_out={note.code: note.count for note in excluded if note.code in EXCLUSIONS}
        | {"not_annealed": int(early.sum()), "duplicate_rows": int(repeated.sum())},
        columns=origins(columns, table, units, rules),
        unread=tuple(name for name in map(str.strip, map(str, frame.columns)) if name not in table.read),
        runs_unread=table.runs_unread,
    )
    return in_order(columns, groups.order), notes, intake


def _problems(
    table: RawTable,
    source: str,
    units: Mapping[str, str],
    flops: str | None,
    out: NDArray[np.bool_],
    notes: list[Note],
) -> list[str]:
    """Collect every broken rule of the rows that count, so that the owner sees all of them at once."""
    # A column that was not understood is reported once, not by every rule it then breaks.
    understood = {name: v for name, v in table.columns.items() if name not in table.unreadable}
    problems = [*table.problems, *check_values(understood, table.names, source, out)]
    counted = {
        name: np.where(out, np.nan, v) if out.any() and COLUMNS[name].kind == "number" else v
        for name, v in understood.items()
    }
    implausible = check_plausible(counted, table.names, source, units, table.questioned)
    problems += implausible
    if not problems and flops == "forward":
        notes += apply_forward(table.columns, source)
        counted |= {
            name: np.where(out, np.nan, table.columns[name]) for name in ("F", "C") if name in counted
        }
    if not problems:  # products of wrong units say nothing new
        # F = 6 N replaces these columns, so what they say does not matter
        replaced = ("F", "C") if flops == "6N" else ()
        problems += check_conventions(
            {name: v for name, v in counted.items() if name not in replaced}, table.names, source
        )
    return problems


def _nothing_left(source: str, out: NDArray[np.bool_], notes: list[Note]) -> str:
    excluded = [note.message for note in notes if note.code in EXCLUSIONS]
    reasons = " and ".join(text.removeprefix(f"{source}: ").partition(" left out")[0] for text in excluded)
    return f"{source}: {reasons}: none of {len(out)} rows is an endpoint, which needs a finished run and a finite loss"


def _keep(columns: Columns, kept: NDArray[np.bool_]) -> Columns:
    return columns if kept.all() else {name: values[kept] for name, values in columns.items()}


def _unread(frame: pd.DataFrame, table: RawTable) -> pd.DataFrame:
    """Return the columns outside the schema."""
    return frame[[name for name in frame.columns if str(name).strip() not in table.read]]
