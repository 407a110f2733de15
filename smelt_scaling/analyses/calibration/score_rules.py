"""The schema of downstream scores, and the rules that their values obey."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._cells import RawTable, to_numbers, to_text
from smelt_scaling._schema import UNITS, Column, first_rows, mend
from smelt_scaling._together import ONE_LOSS
from smelt_scaling.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SCORE_COLUMNS",
    "SCORE_UNITS",
    "check_names",
    "read_table_of_scores",
    "repeat_problems",
    "score_problems",
]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: The schema; what is complete is needed in every row.
SCORE_COLUMNS: dict[str, Column] = {
    "arch": Column(kind="text", description="architecture", complete=True),
    "metric": Column(kind="text", description="task or metric", complete=True),
    "loss": Column(
        kind="number", unit="nats/token", rule="> 0", description="validation loss", complete=True
    ),
    "score": Column(kind="number", unit="fraction", description="score of the metric", complete=True),
    "scale": Column(kind="text", description="model size as a label"),
    "cell": Column(kind="text", description="experimental unit: one (scale, sparsity) design point"),
    "run": Column(kind="text", description="training run"),
    "S": Column(kind="number", unit="fraction", description="sparsity, for cells"),
    "F": Column(kind="number", unit="FLOPs/token", rule="> 0", description="orders the scales"),
    "N": Column(kind="number", unit="parameters", rule="> 0", description="orders the scales"),
    "D": Column(kind="number", unit="tokens", rule="> 0", description="horizon; pairs endpoints of a cell"),
    "step": Column(kind="number", unit="steps", description="step of the endpoint"),
    "value_step": Column(kind="number", unit="steps", description="step at which the score was logged"),
    "chance": Column(kind="number", unit="as score", description="score of guessing"),
    **{
        name: Column(kind="text", description=f"condition of the loss: {name.replace('_', ' ')}")
        for name in ONE_LOSS
    },
}

#: Unit of a score -> how it becomes what is calibrated, and whether lower is better by its nature.
SCORE_UNITS: dict[str, tuple[Callable[[Array], Array], bool]] = {
    "fraction": (lambda score: score, False),
    "percent": (lambda score: score / 100.0, False),
    "number": (lambda score: score, False),
    "ppl": (np.log, True),
}

#: Names that long tables of endpoints have; used in messages only.
_OFTEN_CALLED = {"metric": ("member", "task"), "score": ("value", "acc", "accuracy")}


def check_names(mapping: Mapping[str, str], units: Mapping[str, str]) -> None:
    """Refuse a column that is not in the schema, and a unit that no score has.

    Raises
    ------
    UsageError
        Naming the option.
    """
    for name, value in mapping.items():
        if name not in SCORE_COLUMNS:
            known = ", ".join(SCORE_COLUMNS)
            raise UsageError(f"--map {name}={value}: {name!r} is no column of scores; use one of {known}")
    for name, unit in units.items():
        units_of = tuple(UNITS["loss"] if name == "loss" else SCORE_UNITS)
        what = "the loss" if name == "loss" else "a score"
        if unit not in units_of:
            raise UsageError(
                f"--unit {name}={unit}: unknown unit of {what}; write one of {', '.join(units_of)}"
            )


def read_table_of_scores(frame: pd.DataFrame, source: str, mapping: Mapping[str, str]) -> RawTable:
    """Pick and parse the columns of the schema; problems are collected, not raised."""
    table = RawTable()
    present = [str(name) for name in frame.columns]
    for name, column in SCORE_COLUMNS.items():
        found = mapping.get(name, name)
        if found not in present:
            if name in mapping:
                table.problems.append(
                    f"{source}: no column {found}, which --map {name}={found} names; it has {', '.join(present[:8])}"
                )
            elif column.complete:
                near = [candidate for candidate in _OFTEN_CALLED.get(name, ()) if candidate in present]
                shown = near[0] if near else "COLUMN"
                table.problems.append(
                    f"{source}: no column {name}: every row needs the {column.description}; name it with --map "
                    f"{name}={shown} (columns: {', '.join(present[:12])})"
                )
            continue
        series = frame[found]
        missing = series.isna().to_numpy(bool)
        table.names[name] = name if found == name else f"{name} ({found!r} in the file)"
        if column.kind == "text":
            table.columns[name], _ = to_text(series, missing)
            bad = table.columns[name].where("".__eq__)
        else:
            table.columns[name] = to_numbers(series, missing, name, {}, source, table)
            bad = np.isnan(table.columns[name])
        _report(table, name, column, bad, source)
    if not len(frame) and not table.problems:
        table.problems.append(f"{source}: no row; give one row per endpoint and metric")
    return table


def _report(table: RawTable, name: str, column: Column, bad: Mask, source: str) -> None:
    where = f"{source}: column {table.names[name]}"
    if column.complete and name != "score" and bad.any() and name not in table.unreadable:
        table.problems.append(
            f"{where}, {first_rows(bad)} missing: {name} is needed in every row; {mend(bad, 'fill')}"
        )
    if column.rule == "> 0":
        values = table.columns[name]
        wrong = (values <= 0) | np.isinf(values)
        if wrong.any():
            table.problems.append(
                f"{where}, {first_rows(wrong)} not > 0 and finite ({values[wrong][0]:g}): {name} is the "
                f"{column.description} in {column.unit}; {mend(wrong)}"
            )


def score_problems(
    metric: NDArray[np.str_],
    score: Array,
    chance: Array,
    units: Mapping[str, str],
    source: str,
    names: Mapping[str, str],
) -> list[str]:
    """Return one line per metric whose scores are not in their unit, and per chance that is not one number."""
    problems: list[str] = []
    in_percent: dict[str, list[tuple[str, Mask]]] = {}
    for name, unit in units.items():
        own = metric == name
        for column, values in (("score", score), ("chance", chance)):
            where = f"{source}: column {names.get(column, column)}, metric {name}"
            top = {"fraction": 1.0, "percent": 100.0}.get(unit, np.inf)
            bad = own & (
                (values > top) | (values < (0.0 if unit != "number" else -np.inf)) | np.isinf(values)
            )
            if unit == "ppl":
                bad = own & ((values <= 0) | np.isinf(values))
            if not bad.any():
                continue
            low, high = float(values[bad].min()), float(values[bad].max())
            if unit == "fraction" and low >= 0 and high <= 100:
                in_percent[column] = [*in_percent.get(column, []), (name, bad)]
                continue
            if unit == "ppl":
                rule = f"not > 0 and finite ({low:g}): a perplexity is positive; {mend(bad)}"
            else:
                rule = (
                    f"outside [0, {top:g}] ({high if high > top else low:g}): add --unit {name}=number, or "
                    f"--unit {name}=ppl for a perplexity"
                )
            problems.append(f"{where}, {first_rows(bad)} {rule}")
        given = np.unique(chance[own & ~np.isnan(chance)])
        if len(given) > 1:
            problems.append(
                f"{source}: column {names.get('chance', 'chance')}, metric {name}: {len(given)} values "
                f"({given[0]:g}, {given[1]:g}): guessing has one score per metric; write the same in every row"
            )
    for column, found in in_percent.items():
        bad = np.logical_or.reduce([rows for _, rows in found])
        shown = ", ".join(name for name, _ in found[:3]) + (", ..." if len(found) > 3 else "")
        all_of_them = len(found) == len(units)
        option = "--unit score=percent" if all_of_them else f"--unit {found[0][0]}=percent"
        problems.append(
            f"{source}: column {names.get(column, column)}, {first_rows(bad)} in (1, 100] (metric {shown}): a score is "
            f"a fraction in [0, 1]; add {option}, or --unit {found[0][0]}=number (ppl of a perplexity) where it is no "
            "share"
        )
    stated = np.isin(metric, [name for name, unit in units.items() if unit == "percent"])
    if stated.any() and np.nanmax(score[stated]) <= 1 and np.nanmax(score[stated]) > 0:
        problems.append(
            f"{source}: column {names.get('score', 'score')}, no row in percent above {np.nanmax(score[stated]):.4g}: "
            "these are fractions already; leave --unit out, or divide by 100 if they are percent"
        )
    return problems


def repeat_problems(
    arch: NDArray[np.str_],
    metric: NDArray[np.str_],
    cell: NDArray[np.str_] | None,
    horizon: NDArray[np.str_],
    run: NDArray[np.str_],
    source: str,
) -> list[str]:
    """Refuse two scores of one endpoint; without a unit nothing says what an endpoint is."""
    if cell is None:
        return []
    keys: dict[tuple[str, ...], int] = {}
    twice = []
    for row, key in enumerate(zip(arch, cell, horizon, run, metric, strict=True)):
        first = keys.setdefault(tuple(map(str, key)), row)
        if first != row:
            twice.append((first, row, key))
    if not twice:
        return []
    first, row, key = twice[0]
    shown = ", ".join(
        f"{name} {value}"
        for name, value in zip(("arch", "cell", "D", "run", "metric"), key, strict=True)
        if value
    )
    more = f", one of {len(twice)} such pairs" if len(twice) > 1 else ""
    return [
        f"{source}: rows {first + 1} and {row + 1} hold one score each of the same endpoint ({shown}){more}: an "
        "endpoint has one score per metric; delete one, or name repeats with --map run=COLUMN, horizons with "
        "--map D=COLUMN"
    ]
