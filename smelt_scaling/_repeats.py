"""Rows that repeat others: copies are merged, contradictions refused, repeats counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._canonical import coded_frame
from smelt_scaling._schema import counted, first_rows
from smelt_scaling.errors import DataError, Note, info, warning

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["merge_duplicates", "settle_repeats", "uneven_steps"]

Mask = NDArray[np.bool_]
Columns = Mapping[str, NDArray[Any]]

#: Nats by which two losses of one run at one horizon may differ: another evaluation, not another state.
SAME_LOSS = 0.02
#: Tokens per step may grow with the batch; a factor beyond it is a count that began anew.
STEP_RATIO = 2.0
#: Columns that may differ between two measurements of the same thing.
MEASURED = frozenset({"loss", "loss_se", "step", "lr", "phase", "status", "weight", "tokens_per_s", "kv"})


def merge_duplicates(columns: Columns, source: str, unread: pd.DataFrame | None) -> tuple[Mask, list[Note]]:
    """Find rows that repeat an earlier one in every column.

    Without a run column the unread columns must agree as well: two runs may share all that the schema names.
    """
    frame = coded_frame(columns, list(columns))
    if "run" not in columns and unread is not None:
        for name in unread.columns:
            frame[f"unread {name}"] = unread[name].astype(str).to_numpy()
    repeated: Mask = frame.duplicated().to_numpy(bool)
    if not repeated.any():
        return repeated, []
    message = f"{source}: {first_rows(repeated)} equal to an earlier row in every column, merged with it"
    return repeated, [info("duplicate_rows", message, int(repeated.sum()))]


def settle_repeats(columns: Columns, source: str, rows: NDArray[np.intp]) -> list[Note]:
    """Refuse a run with two losses at one horizon; note rows that share their settings.

    Parameters
    ----------
    columns, source
        Schema columns of the rows kept so far, and the file.
    rows : (n,) array of int
        Number of each row in the file, from 1.

    Raises
    ------
    DataError
        If a run has losses at one horizon that no two evaluations of one state differ by.
    """
    keys = [name for name in columns if name not in MEASURED]
    frame = coded_frame(columns, keys)
    notes: list[Note] = []
    if "run" in columns or "trunk" in columns:
        spread, first, second = _spread(frame, columns["loss"])
        if len(spread):
            _refuse_conflict(columns, source, rows, spread, first, second)
            message = (
                f"{source}: {counted(len(spread), 'run')} with several losses at one D, up to {spread.max():.2g} "
                f"nats apart (first: rows {rows[first[0]]} and {rows[second[0]]}); all kept"
            )
            notes.append(warning("conflicting_rows", message, len(spread)))
        if "trunk" in columns and "run" in columns and not {"phase", "lr", "seed"} & set(columns):
            spread, first, second = _spread(frame.drop(columns="run"), columns["loss"])
            if len(spread):
                _refuse_conflict(columns, source, rows, spread, first, second)
    elif "seed" not in columns:
        spread, first, second = _spread(frame, columns["loss"])
        if len(spread):
            message = (
                f"{source}: {counted(len(spread), 'setting')} with several losses, up to {spread.max():.2g} nats apart "
                f"(first: rows {rows[first[0]]} and {rows[second[0]]}), kept as repeats; "
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
    frame = coded_frame(columns, ["arch", unit]).assign(
        value=np.where(np.isfinite(per_step), per_step, np.nan)
    )
    groups = frame.groupby(["arch", unit])["value"]
    low, high = groups.transform("min").to_numpy(), groups.transform("max").to_numpy()
    uneven = high > STEP_RATIO * low
    if not uneven.any():
        return []
    first = int(uneven.argmax())
    count = len(np.unique(columns[unit][uneven]))
    message = (
        f"{source}: columns D, step: tokens per step differ within {counted(count, unit)} "
        f"({unit} {columns[unit][first]}: {low[first]:.3g} to {high[first]:.3g}); "
        "if a branch counts its tokens from 0, add those of its trunk"
    )
    return [warning("tokens_per_step", message, count)]


def _refuse_conflict(
    columns: Columns,
    source: str,
    rows: NDArray[np.intp],
    spread: NDArray[np.float64],
    first: NDArray[np.intp],
    second: NDArray[np.intp],
) -> None:
    if spread.max() <= SAME_LOSS:
        return
    worst = int(spread.argmax())
    one, other = int(first[worst]), int(second[worst])
    unit = "run" if "run" in columns and columns["run"][one] == columns["run"][other] else "trunk"
    count = int((spread > SAME_LOSS).sum())
    raise DataError(
        f"{source}: column loss, rows {rows[one]} and {rows[other]}: {unit} {columns[unit][one]} has losses "
        f"{columns['loss'][one]:.6g} and {columns['loss'][other]:.6g} at one horizon ({count} such): it has one loss "
        "there; after a resume keep the later row, add phase or lr if one is not annealed, or select one endpoint per "
        "run and horizon first (smelt-scaling endpoints)"
    )


def _spread(
    frame: pd.DataFrame, loss: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Return, per group of equal rows with several losses, their range and the rows of its two ends."""
    shared = np.flatnonzero(frame.duplicated(keep=False).to_numpy(bool))
    empty = np.empty(0, dtype=np.intp)
    if not len(shared):
        return np.empty(0), empty, empty
    part = frame.iloc[shared].reset_index(drop=True).assign(loss=loss[shared])
    # NaN cells are equal to each other here, as they are for duplicates
    groups = part.groupby(list(frame.columns), dropna=False, sort=False)["loss"]
    low, high = shared[groups.idxmin().to_numpy()], shared[groups.idxmax().to_numpy()]
    spread = loss[high] - loss[low]
    differ = spread > 0
    return spread[differ], np.minimum(low, high)[differ], np.maximum(low, high)[differ]
