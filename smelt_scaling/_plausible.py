"""Sizes that betray another unit, in either direction; nothing is rescaled on a guess."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import COLUMNS, UNITS, counted, first_rows
from smelt_scaling.errors import Note, warning

__all__ = ["check_plausible", "plausible_notes"]

#: Nats per token: no language model with a vocabulary below e**20 starts that high.
HIGHEST_LOSS = 20.0
#: Nats per token above which a trained model is rare, and a perplexity or bits are likely.
HIGH_LOSS = 5.0
#: A whole column of sparsities below it, after a conversion from percent, was fractions before.
LEAST_SPARSITY = 0.02
#: Passes over the unique data beyond which repeated tokens are worth clearly less than new ones.
EPOCHS = 4.0


def check_plausible(
    columns: Mapping[str, NDArray[Any]],
    names: Mapping[str, str],
    source: str,
    units: Mapping[str, str],
    questioned: Collection[str],
) -> list[str]:
    """Return one line per column whose size betrays another unit.

    Parameters
    ----------
    columns, names, source
        As for `check_values`, after conversion; NaN where a row does not count.
    units : mapping of str to str
        Units the user named: believed where a value is small, not where it is beyond any training run.
    questioned : collection of str
        Columns whose unit the user was asked for already.
    """
    problems: list[str] = []
    for name, column in COLUMNS.items():
        if name not in columns or name in questioned or column.kind == "text":
            continue
        values = columns[name]
        if np.isnan(values).all():
            continue
        median = float(np.nanmedian(values))
        place = f"{source}: column {names.get(name, name)}"
        where = f"{place}, median {median:.4g} {column.unit}"
        if median > column.most:
            problems.append(f"{where}: beyond any training run; {_too_large(name, units)}")
        elif np.any(large := np.isfinite(values) & (values > column.most)):
            problems.append(
                f"{place}, {first_rows(large)} above {column.most:g} {column.unit} beside a median of {median:.4g}: "
                "beyond any training run; correct the cells"
            )
        elif name in units:
            continue
        elif 0 < median < column.least:
            own = next(iter(UNITS[name]))
            problems.append(
                f"{where}: too small for {name} in {column.unit}; add --unit {name}={column.guess} "
                f"(or another of {', '.join(UNITS[name])}; --unit {name}={own} keeps it)"
            )
        elif np.any(small := (values > 0) & (values < column.least)):
            problems.append(
                f"{place}, {first_rows(small)} below {column.least:g} {column.unit} beside a median of {median:.4g}: "
                f"two units in one column; write all in one (--unit {name}={next(iter(UNITS[name]))} keeps them)"
            )
        elif name == "loss" and median > HIGHEST_LOSS:
            problems.append(
                f"{where}: no loss in nats is that high; add --unit loss=ppl if it is a perplexity "
                "(--unit loss=nats keeps it)"
            )
    return problems + _converted_twice(columns, names, source, units) + _more_unique(columns, names, source)


def _too_large(name: str, units: Mapping[str, str]) -> str:
    if name in units and units[name] != next(iter(UNITS[name])):
        return f"the column is in {COLUMNS[name].unit} already: leave out --unit {name}={units[name]}"
    if name == "F":
        return "F is FLOPs per token: if these are the FLOPs of the whole run, name them with --map C=COLUMN"
    return f"{name} is the {COLUMNS[name].description} in {COLUMNS[name].unit}; correct the column"


def _converted_twice(
    columns: Mapping[str, NDArray[Any]], names: Mapping[str, str], source: str, units: Mapping[str, str]
) -> list[str]:
    if units.get("S") != "percent" or "S" not in columns or np.isnan(columns["S"]).all():
        return []
    largest = float(np.nanmax(columns["S"]))
    if not 0 < largest < LEAST_SPARSITY:
        return []
    return [
        f"{source}: column {names.get('S', 'S')}, no row above {largest:.4g} after --unit S=percent: the column "
        "holds fractions already; leave the option out"
    ]


def _more_unique(columns: Mapping[str, NDArray[Any]], names: Mapping[str, str], source: str) -> list[str]:
    if not {"unique_tokens", "D"} <= set(columns):
        return []
    # data written in two places may differ in the last digits
    more = columns["unique_tokens"] > columns["D"] * (1 + 1e-6)
    if not more.any():
        return []
    unique, tokens = (names.get(name, name) for name in ("unique_tokens", "D"))
    return [
        f"{source}: column {unique}, {first_rows(more)} above column {tokens}: a run cannot see more unique tokens "
        "than tokens; write the unique tokens it has seen"
    ]


def plausible_notes(columns: Mapping[str, NDArray[Any]], source: str, units: Mapping[str, str]) -> list[Note]:
    """Note sizes that are possible but deserve a look."""
    notes: list[Note] = []
    median = float(np.median(columns["loss"]))
    if median > HIGH_LOSS and "loss" not in units:
        message = (
            f"{source}: column loss, median {median:.4g} nats/token is high; "
            "if it is a perplexity or in bits, add --unit loss=ppl or --unit loss=bits"
        )
        notes.append(warning("high_loss", message, len(columns["loss"])))
    if units.get("S") == "percent":
        tiny = (columns["S"] > 0) & (columns["S"] < 0.01)
        if tiny.any() and not tiny.all():
            message = (
                f"{source}: column S, {counted(int(tiny.sum()), 'value')} between 0 and 0.01 after --unit S=percent; "
                "if they were fractions, write all in percent"
            )
            notes.append(warning("mixed_units", message, int(tiny.sum())))
    if {"unique_tokens", "D"} <= set(columns):
        with np.errstate(invalid="ignore"):
            epochs = columns["D"] / columns["unique_tokens"]
        many = epochs > EPOCHS
        if many.any():
            message = (
                f"{source}: column unique_tokens, {counted(int(many.sum()), 'row')} with over {EPOCHS:g} passes over "
                f"the data (up to {float(np.nanmax(epochs)):.3g}); laws in D count a repeated token as a new one"
            )
            notes.append(warning("repeated_data", message, int(many.sum())))
    return notes
