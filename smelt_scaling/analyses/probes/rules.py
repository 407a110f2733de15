"""What a table of probes must obey, one line per broken rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted, mend
from smelt_scaling.analyses.probes.catalogue import KEY, PROBE_COLUMNS, PROBES
from smelt_scaling.analyses.probes.declaration import Array, Columns, Probe

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["label_problems", "number_problems", "value_problems"]

Flags = NDArray[np.bool_]


def label_problems(frame: pd.DataFrame, source: str) -> list[str]:
    """Say which labels are missing, unknown or name two measurements."""
    problems = []
    for name in (name for name, column in PROBE_COLUMNS.items() if column.required and column.kind == "text"):
        empty = (frame[name] == "").to_numpy()
        if empty.any():
            problems.append(
                f"{source}: column {name}, {_rows(frame, empty)} missing: a label is needed in every row; "
                f"{mend(empty, 'fill')}"
            )
    unknown = (~frame["probe"].isin([*PROBES, ""])).to_numpy()
    if unknown.any():
        shown = frame["probe"][unknown].iloc[0]
        problems.append(
            f"{source}: column probe, {_rows(frame, unknown)} ({shown!r}): no such probe; use {', '.join(PROBES)}"
        )
    wrong = (~frame["scaled"].isin(["", "yes", "no"])).to_numpy()
    if wrong.any():
        problems.append(
            f"{source}: column scaled, {_rows(frame, wrong)} ({frame['scaled'][wrong].iloc[0]!r}): write yes or no"
        )
    named = (frame[["probe", "cell", "doc"]] != "").all(axis=1).to_numpy()
    repeated = frame.duplicated(list(KEY), keep="first").to_numpy() & named
    if repeated.any():
        problems.append(
            f"{source}: columns {', '.join(KEY)}, {_rows(frame, repeated)} repeat an earlier row: they name one "
            "measurement; add the column that tells them apart, or average them with their tokens"
        )
    return problems


def number_problems(frame: pd.DataFrame, source: str) -> list[str]:
    """Say which numbers are infinite, or no counts where counts are needed."""
    problems = []
    for name, column in PROBE_COLUMNS.items():
        if column.kind == "text":
            continue
        values = frame[name].to_numpy(np.float64)
        bad = np.isinf(values)
        if bad.any():
            problems.append(f"{source}: column {name}, {_rows(frame, bad)} infinite; {mend(bad)}")
        if column.rule:
            bad = np.isfinite(values) & ~((values >= column.least) & (values == np.round(values)))
            if bad.any():
                problems.append(
                    f"{source}: column {name}, {_rows(frame, bad)} not {column.rule} ({values[bad][0]:g}): "
                    f"{name} is the {column.description}; {mend(bad)}"
                )
    return problems


def value_problems(
    frame: pd.DataFrame, mine: Flags, probe: Probe, columns: Columns, top: Array, source: str
) -> list[str]:
    """Say which values of one probe lie outside its range.

    Parameters
    ----------
    frame : DataFrame
        The whole table.
    mine : (n,) array of bool
        Rows of the probe.
    probe : Probe
        Its declaration.
    columns : mapping of str to array
        The numbers of its rows.
    top : array
        Their ceiling.
    source : str
        The file, first in each line.
    """
    problems = []
    upper = np.minimum(probe.high, top)
    for name in ("value", "chance", "control"):
        values = columns[name]
        with np.errstate(invalid="ignore"):
            bad = (values < probe.low - probe.slack) | (values > upper + probe.slack)
        if not bad.any():
            continue
        where = np.zeros(len(frame), dtype=np.bool_)
        where[np.flatnonzero(mine)[bad]] = True
        percent = probe.unit == "share" and 1 < np.nanmax(values) <= 100
        fix = "divide percent by 100" if percent else mend(bad)
        ends = "above 0" if probe.scale == "log" else f"from {probe.low:g} to {upper[bad][0]:g}"
        problems.append(
            f"{source}: column {name}, {_rows(frame, where)} of {probe.name} not {ends} ({values[bad][0]:g}): "
            f"it is a {probe.unit}; {fix}"
        )
    if {"k", "n"} <= set(probe.needs):
        bad = columns["k"] > columns["n"]
        if bad.any():
            where = np.zeros(len(frame), dtype=np.bool_)
            where[np.flatnonzero(mine)[bad]] = True
            problems.append(
                f"{source}: columns k and n, {_rows(frame, where)} of {probe.name} with k > n: k of n are chosen; "
                "check which column is which"
            )
    return problems


def _rows(frame: pd.DataFrame, bad: Flags) -> str:
    """Count rows and name the first, by its place in the file."""
    return f"{counted(int(bad.sum()), 'row')} (first: {int(frame['row'].to_numpy()[bad].min())})"
