"""The endpoint schema: one line per column, the units it may come in, and the rules its values obey.

Everything that reads, checks or documents endpoints derives from `COLUMNS` and `UNITS`; a new column is one
more line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["COLUMNS", "UNITS", "Column", "check_plausible", "check_products", "check_values", "first_rows"]

Floats = NDArray[np.float64]
Converter = Callable[[Floats], Floats]

#: Compute-equivalent sparsity may dip below 0 by rounding of the layer sizes; further down it is a mistake.
LOWEST_SPARSITY = -0.05
#: A measured C may differ from F*D by what the schedule or the logging rounds, never by a convention.
PRODUCT_TOLERANCE = 0.10
#: Nats per token: no language model with a vocabulary below e**20 starts that high.
HIGHEST_LOSS = 20.0


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the endpoint schema.

    Parameters
    ----------
    kind : {"text", "number"}
        Text stays as it is written; numbers become float64.
    unit : str
        The unit of a number, empty for text.
    rule : str
        What a number must satisfy, in words; a key of the checks below.
    description : str
        What the column means.
    complete : bool
        Whether a missing value in a column that is present is refused.
    least : float
        A median below it means that the unit is probably another one.
    guess : str
        The unit to propose then.
    """

    kind: Literal["text", "number"]
    unit: str = ""
    rule: str = ""
    description: str
    complete: bool = False
    least: float = 0.0
    guess: str = ""


def _text(description: str, complete: bool = False) -> Column:
    return Column(kind="text", description=description, complete=complete)


def _number(unit: str, rule: str, description: str, **rest: Any) -> Column:
    return Column(kind="number", unit=unit, rule=rule, description=description, **rest)


#: The schema, in canonical column order. The order is part of the digest of a table.
COLUMNS: dict[str, Column] = {
    "arch": _text("architecture the endpoint belongs to", True),
    "scale": _text("model size as a label, shared by architectures that are compared", True),
    "cell": _text("experimental unit: one (scale, sparsity) design point", True),
    "trunk": _text("stable run that several decay branches share", True),
    "run": _text("training run", True),
    "F": _number("FLOPs/token", "> 0", "training FLOPs per token", complete=True, least=1e4, guess="G"),
    "S": _number("fraction", "in [0, 1)", "compute-equivalent sparsity", complete=True),
    "D": _number("tokens", "> 0", "training tokens", complete=True, least=1e5, guess="B"),
    "loss": _number("nats/token", "> 0", "validation loss", complete=True),
    "N": _number("parameters", "> 0", "parameters", complete=True, least=100.0, guess="B"),
    "N_act": _number("parameters", "> 0", "active parameters", complete=True, least=100.0, guess="B"),
    "C": _number("FLOPs", "> 0", "training FLOPs", complete=True, least=1e9, guess="E"),
    "weight": _number("", ">= 0", "weight of the endpoint in the fit", complete=True),
    "loss_se": _number("nats/token", ">= 0", "standard error of the loss"),
    "tokens_per_s": _number("tokens/s", "> 0", "measured training throughput"),
    "kv": _number("bytes/token", ">= 0", "key-value cache per token"),
    "step": _number("steps", ">= 0", "optimiser step of the endpoint"),
    "lr": _number("", ">= 0", "learning rate at the endpoint"),
    "seed": _text("random seed of the run"),
    "domain": _text("evaluation domain of the loss"),
    "source": _text("where the row comes from"),
    "status": _text("state of the run: finished, crashed, running"),
    "phase": _text("phase of the schedule: stable, decay"),
    "tokenizer": _text("tokenizer of the loss"),
    "eval_set": _text("evaluation set of the loss"),
}


def _times(factor: float) -> Converter:
    return lambda values: values * factor


def _shift(places: int) -> Converter:
    """Move the decimal point: 94.6 % is the very float 0.946 then, and 20.486 B the integer written in full.

    A product rounds twice (94.7 / 100 is 0.9470000000000001), so the same run would have two digests.
    """

    def convert(values: Floats) -> Floats:
        return np.array([float(Decimal(repr(value)).scaleb(places)) for value in values.tolist()])

    return convert


_AMOUNTS: dict[str, Converter] = {"K": _shift(3), "M": _shift(6), "B": _shift(9), "T": _shift(12)}
_FLOPS: dict[str, Converter] = {
    **{"M": _shift(6), "G": _shift(9), "T": _shift(12)},
    **{"P": _shift(15), "E": _shift(18), "Z": _shift(21)},
}

#: ``column -> unit -> conversion`` to the unit of the schema. The first unit of a column is the schema's own.
UNITS: dict[str, dict[str, Converter]] = {
    "F": {"FLOPs": _times(1.0), **_FLOPS},
    "S": {"fraction": _times(1.0), "percent": _shift(-2)},
    "D": {"tokens": _times(1.0), **_AMOUNTS},
    "loss": {"nats": _times(1.0), "bits": _times(float(np.log(2.0))), "ppl": np.log},
    "N": {"parameters": _times(1.0), **_AMOUNTS},
    "N_act": {"parameters": _times(1.0), **_AMOUNTS},
    "C": {"FLOPs": _times(1.0), **_FLOPS},
}

_CHECKS: dict[str, Callable[[Floats], NDArray[np.bool_]]] = {
    "> 0": lambda v: (v > 0) & np.isfinite(v),
    ">= 0": lambda v: (v >= 0) & np.isfinite(v),
}

_ADVICE = {
    "D": " (a log without a token count often writes 0: use step x batch tokens)",
    "loss": " (a diverged run has no endpoint)",
}


def first_rows(bad: NDArray[np.bool_]) -> str:
    """Say how many rows are concerned and which comes first, counting data rows from 1.

    Examples
    --------
    >>> first_rows(np.array([False, True, True]))
    '2 rows (first: 2)'
    """
    count = int(bad.sum())
    return f"{count} row{'s' if count > 1 else ''} (first: {int(bad.argmax()) + 1})"


def check_values(columns: Mapping[str, NDArray[Any]], names: Mapping[str, str], source: str) -> list[str]:
    """Return one line per broken rule of single columns, in schema order; empty when all hold.

    Parameters
    ----------
    columns : mapping of str to (n,) array
        Schema columns in file order: text as str arrays, numbers as float64.
    names : mapping of str to str
        How to name a column to its owner, where that differs from the schema name.
    source : str
        The file, first in each line.
    """
    problems: list[str] = []

    def report(name: str, bad: NDArray[np.bool_], what: str) -> None:
        if bad.any():
            problems.append(f"{source}: column {names.get(name, name)}, {first_rows(bad)} {what}")

    for name, column in COLUMNS.items():
        if name not in columns:
            continue
        values = columns[name]
        if column.kind == "text":
            if column.complete:
                report(
                    name, values == "", "missing: a label is needed in every row; fill it in or drop the rows"
                )
            continue
        missing = np.isnan(values)
        if column.complete:
            dense = "; write 0 for dense models" if name == "S" else "; fill them in or drop the rows"
            report(name, missing, f"missing: {name} is needed in every row{dense}")
        if name == "S":
            for bad, what in _sparsity_problems(values):
                report(name, bad, what)
        else:
            bad = ~_CHECKS[column.rule](values) & ~missing
            if bad.any():
                value = f"not {column.rule} and finite ({values[bad][0]:g})"
                unit = f" in {column.unit}" if column.unit else ""
                report(
                    name,
                    bad,
                    f"{value}: {name} is the {column.description}{unit}; "
                    f"correct them or drop the rows{_ADVICE.get(name, '')}",
                )
    if "weight" in columns and not np.any(columns["weight"] > 0):
        problems.append(
            f"{source}: column {names.get('weight', 'weight')}, no row > 0: nothing is left to fit"
        )
    return problems


def _sparsity_problems(values: Floats) -> list[tuple[NDArray[np.bool_], str]]:
    rule = "S is a fraction in [0, 1)"
    return [
        ((values > 1) & (values <= 100), f"in (1, 100]: {rule}; add --unit S=percent"),
        (values == 1, f"equal to 1: {rule}; a model without active parameters has no loss, correct them"),
        (
            (values > 100) | (values < LOWEST_SPARSITY),
            f"outside [{LOWEST_SPARSITY:g}, 1): {rule}; correct them",
        ),
    ]


def check_plausible(
    columns: Mapping[str, NDArray[Any]], names: Mapping[str, str], source: str, stated: Collection[str]
) -> list[str]:
    """Return one line per column whose size betrays another unit; a stated unit is believed.

    Parameters
    ----------
    columns, names, source
        As for `check_values`, after conversion.
    stated : collection of str
        Columns whose unit the user named, or was asked for already.
    """
    problems: list[str] = []
    for name, column in COLUMNS.items():
        if name not in columns or name in stated or column.kind == "text":
            continue
        median = float(np.nanmedian(columns[name])) if not np.isnan(columns[name]).all() else np.nan
        where = f"{source}: column {names.get(name, name)}, median {median:.4g} {column.unit}"
        if 0 < median < column.least:
            own = next(iter(UNITS[name]))
            problems.append(
                f"{where}: too small for {name} in {column.unit}; add --unit {name}={column.guess} "
                f"(or another of {', '.join(UNITS[name])}; --unit {name}={own} keeps it)"
            )
        if name == "loss" and median > HIGHEST_LOSS:
            problems.append(
                f"{where}: no loss in nats is that high; add --unit loss=ppl if it is a perplexity "
                "(--unit loss=nats keeps it)"
            )
    return problems


def check_products(columns: Mapping[str, NDArray[Any]], names: Mapping[str, str], source: str) -> list[str]:
    """Return a line when C, F and D contradict each other, with the ratio and what it usually means."""
    if not {"C", "F", "D"} <= set(columns):
        return []
    with np.errstate(all="ignore"):
        ratio = columns["C"] / (columns["F"] * columns["D"])
    valid = np.isfinite(ratio) & (ratio > 0)
    bad = valid & (np.abs(ratio - 1) > PRODUCT_TOLERANCE)
    if not bad.any():
        return []
    median = float(np.median(ratio[bad]))
    rest = int(valid.sum() - bad.sum())
    agreeing = f" and agrees on {rest}: two conventions in one table" if rest else ""
    which = ", ".join(names.get(name, name) for name in ("C", "F", "D"))
    return [
        f"{source}: columns {which}, {first_rows(bad)} with C/(F*D) off 1 by more than 10 %: the "
        f"median ratio is {median:.4g}{agreeing}; {_meaning(median)}"
    ]


def _meaning(ratio: float) -> str:
    exponent = np.log10(ratio)
    if abs(ratio * 3 - 1) < 0.1:
        return "1/3 means that C is forward-only while F is training FLOPs; multiply C by 3 or leave it out"
    if abs(ratio / 3 - 1) < 0.1:
        return "3 means that F is forward-only while C is training FLOPs; multiply F by 3"
    if abs(exponent) > 2 and abs(exponent / 3 - round(exponent / 3)) < 0.02:
        return f"1e{round(exponent)} is a unit; add --unit for C, F or D"
    return "C and F follow different conventions; leave one of them out"
