"""Rows that repeat others: copies are merged, contradictions refused, repeats counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._groups import Groups, group_rows
from smelt_scaling._schema import counted, first_rows, loss_word
from smelt_scaling.errors import DataError, Note, info, warning

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["merge_duplicates", "settle_repeats", "uneven_steps"]

Mask = NDArray[np.bool_]
Index = NDArray[np.intp]
Columns = Mapping[str, Any]

#: Nats by which two losses of one run at one horizon may differ: another evaluation, not another state.
SAME_LOSS = 0.02
#: Tokens per step may grow with the batch; a factor beyond it is a count that began anew.
STEP_RATIO = 2.0
#: Columns that may differ between two measurements of the same thing.
MEASURED = frozenset({"loss", "loss_se", "step", "lr", "phase", "status", "weight", "tokens_per_s", "kv"})


def merge_duplicates(
    columns: Columns, source: str, rows: Index, groups: Groups, unread: pd.DataFrame
) -> tuple[Mask, list[Note]]:
    """Find rows that repeat an earlier one in every column.

    Without a run column the unread columns must agree as well: two runs may share all that the schema names.

    Parameters
    ----------
    columns, source, rows
        As for `settle_repeats`.
    groups : Groups
        Rows that are equal in every column of the schema.
    unread : pandas.DataFrame
        The other columns of the file.
    """
    repeated = np.zeros(len(groups.order), dtype=bool)
    if "run" in columns or not len(unread.columns):
        repeated[groups.order[~groups.starts]] = True
    elif len(shared := groups.shared()):
        told = unread.iloc[rows[shared] - 1].astype(str).set_axis(range(len(unread.columns)), axis=1)
        repeated[shared] = told.assign(group=groups.number()[shared]).duplicated().to_numpy(bool)
    if not repeated.any():
        return repeated, []
    message = f"{source}: {first_rows(repeated)} equal to an earlier row in every column, merged with it"
    return repeated, [info("duplicate_rows", message, int(repeated.sum()))]


def settle_repeats(columns: Columns, source: str, rows: Index, groups: Groups) -> list[Note]:
    """Refuse a run with two losses at one horizon; note rows that share their settings.

    Parameters
    ----------
    columns, source
        Schema columns of the rows kept so far, and the file.
    rows : (n,) array of int
        Number of each row in the file, from 1.
    groups : Groups
        The rows in canonical order.

    Raises
    ------
    DataError
        If a run has losses at one horizon that no two evaluations of one state differ by.
    """
    keys = [name for name in columns if name not in MEASURED]
    notes: list[Note] = []
    spread, first, second = _spread(columns, keys, groups)
    if "run" in columns or "trunk" in columns:
        if len(spread):
            _refuse_conflict(columns, source, rows, spread, first, second)
            message = (
                f"{source}: {counted(len(spread), 'run')} with several losses at one D, up to {spread.max():.2g} "
                f"{loss_word(columns)} apart (first: rows {rows[first[0]]} and {rows[second[0]]}); all kept"
            )
            notes.append(warning("conflicting_rows", message, len(spread)))
        if "trunk" in columns and "run" in columns and not {"phase", "lr", "seed"} & set(columns):
            spread, first, second = _spread(columns, [name for name in keys if name != "run"], groups)
            if len(spread):
                _refuse_conflict(columns, source, rows, spread, first, second)
    elif "seed" not in columns and len(spread):
        message = (
            f"{source}: {counted(len(spread), 'setting')} with several losses, up to {spread.max():.2g} "
            f"{loss_word(columns)} apart (first: rows {rows[first[0]]} and {rows[second[0]]}), kept as repeats; "
            "name runs or seeds with --map run=COLUMN, and keep the best of a sweep"
        )
        make = warning if spread.max() > SAME_LOSS else info
        notes.append(make("repeats", message, len(spread)))
    return notes


def uneven_steps(columns: Columns, source: str) -> list[Note]:
    """Note runs whose tokens per step change: a branch may count its tokens from where it began."""
    unit = next((name for name in ("trunk", "run") if name in columns), None)
    if unit is None or not {"step", "D"} <= set(columns):
        return []
    with np.errstate(all="ignore"):
        per_step = columns["D"] / columns["step"]
    per_step[~np.isfinite(per_step)] = np.nan
    groups = group_rows(columns, ["arch", unit])
    run = groups.number()
    low, high = groups.over(np.fmin, per_step)[run], groups.over(np.fmax, per_step)[run]
    uneven = high > STEP_RATIO * low
    if not uneven.any():
        return []
    first = int(uneven.argmax())
    count = len(columns[unit][uneven].present())
    message = (
        f"{source}: columns D, step: tokens per step differ within {counted(count, unit)} "
        f"({unit} {columns[unit][first]}: {low[first]:.3g} to {high[first]:.3g}); "
        "if a branch counts its tokens from 0, add those of its trunk"
    )
    return [warning("tokens_per_step", message, count)]


def _refuse_conflict(
    columns: Columns,
    source: str,
    rows: Index,
    spread: NDArray[np.float64],
    first: Index,
    second: Index,
) -> None:
    if spread.max() <= SAME_LOSS:
        return
    worst = int(spread.argmax())
    one, other = int(first[worst]), int(second[worst])
    unit = "run" if "run" in columns and columns["run"][one] == columns["run"][other] else "trunk"
    count = int((spread > SAME_LOSS).sum())
    losses = f"losses {columns['loss'][one]:.6g} and {columns['loss'][other]:.6g}"
    if not {"D", "C"} & set(columns):  # what looks like a contradiction is a column of another name
        raise DataError(
            f"{source}: no column D or C, rows {rows[one]} and {rows[other]}: {unit} {columns[unit][one]} has {losses} "
            f"({count} such) and nothing says after how many tokens: name them with --map D=COLUMN"
        )
    raise DataError(
        f"{source}: column loss, rows {rows[one]} and {rows[other]}: {unit} {columns[unit][one]} has {losses} "
        f"at one horizon ({count} such): it has one loss "
        "there; after a resume keep the later row, add phase or lr if one is not annealed, or select one endpoint per "
        "run and horizon first (smelt-scaling endpoints)"
    )


def _spread(columns: Columns, keys: list[str], groups: Groups) -> tuple[NDArray[np.float64], Index, Index]:
    """Return, per group of rows of equal keys with several losses, their range and the rows of its two ends.

    Groups come by their first row in the file, and each end is the first row of its loss.
    """
    loss = columns["loss"]
    alike = group_rows(columns, keys, groups.as_one())
    shared, number = alike.shared(), alike.number()
    _, first_seen = np.unique(number[shared], return_index=True)
    lowest, highest = (shared[np.lexsort((sign * loss[shared], number[shared]))] for sign in (1.0, -1.0))
    _, begin = np.unique(number[lowest], return_index=True)
    by = np.argsort(first_seen)
    low, high = lowest[begin][by], highest[begin][by]
    spread = loss[high] - loss[low]
    differ = spread > 0
    return spread[differ], np.minimum(low, high)[differ], np.maximum(low, high)[differ]
