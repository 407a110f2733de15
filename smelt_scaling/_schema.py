"""The endpoint schema: one line per column, the units it may come in, and the rules its values obey.

Everything that reads, checks or documents endpoints derives from `COLUMNS` and `UNITS`; a new column is one
more line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BITS_PER_BYTE",
    "COLUMNS",
    "NATS",
    "UNITS",
    "Column",
    "check_values",
    "counted",
    "first_rows",
    "loss_word",
    "mend",
]

Floats = NDArray[np.float64]
Converter = Callable[[Floats], Floats]

#: Compute-equivalent sparsity may dip below 0 by rounding of the layer sizes; further down it is a mistake.
LOWEST_SPARSITY = -0.05


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
    most : float
        A median above it is no size of any training run.
    """

    kind: Literal["text", "number"]
    unit: str = ""
    rule: str = ""
    description: str
    complete: bool = False
    least: float = 0.0
    guess: str = ""
    most: float = float("inf")


def _words(description: str, complete: bool = False) -> Column:
    return Column(kind="text", description=description, complete=complete)


def _number(unit: str, rule: str, description: str, **rest: Any) -> Column:
    return Column(kind="number", unit=unit, rule=rule, description=description, **rest)


#: The schema, in canonical column order. The order is part of the digest of a table.
COLUMNS: dict[str, Column] = {
    "arch": _words("architecture the endpoint belongs to", True),
    "scale": _words("model size as a label, shared by architectures that are compared", True),
    "cell": _words("experimental unit: one (scale, sparsity) design point", True),
    "trunk": _words("stable run that several decay branches share", True),
    "run": _words("training run", True),
    "F": _number(
        "FLOPs/token", "> 0", "training FLOPs per token", complete=True, least=1e4, guess="G", most=1e16
    ),
    "S": _number("fraction", "in [0, 1)", "compute-equivalent sparsity", complete=True),
    "D": _number("tokens", "> 0", "training tokens", complete=True, least=1e5, guess="B", most=1e17),
    "loss": _number("nats/token", "> 0", "validation loss", complete=True),
    "N": _number("parameters", "> 0", "parameters", complete=True, least=100.0, guess="B", most=1e16),
    "N_act": _number(
        "parameters", "> 0", "active parameters", complete=True, least=100.0, guess="B", most=1e16
    ),
    "N_no_emb": _number(
        "parameters",
        "> 0",
        "parameters without embeddings",
        complete=True,
        least=100.0,
        guess="B",
        most=1e16,
    ),
    "C": _number("FLOPs", "> 0", "training FLOPs", complete=True, least=1e9, guess="E", most=1e32),
    "weight": _number("", ">= 0", "weight of the endpoint in the fit", complete=True),
    "loss_se": _number("nats/token", ">= 0", "standard error of the loss"),
    "tokens_per_s": _number("tokens/s", "> 0", "measured training throughput"),
    "kv": _number("bytes/token", ">= 0", "key-value cache per token"),
    "step": _number("steps", ">= 0", "optimiser step of the endpoint"),
    "unique_tokens": _number("tokens", "> 0", "tokens in the training data before any is repeated"),
    "lr": _number("", ">= 0", "learning rate at the endpoint"),
    "seed": _words("random seed of the run"),
    "domain": _words("evaluation domain of the loss"),
    "source": _words("where the row comes from"),
    "status": _words("state of the run: finished, crashed, running"),
    "phase": _words("phase of the schedule: stable, decay"),
    "tokenizer": _words("tokenizer of the loss"),
    "eval_set": _words("evaluation set of the loss"),
    "eval_tokens": _number("tokens", "> 0", "tokens that the loss was evaluated on", complete=True),
    "loss_unit": _words("unit of the loss, nats/token or bits/byte", True),
}

#: Units in which losses are kept. Bits per byte stay what they are: no tokenizer stands between them and the text.
NATS, BITS_PER_BYTE = "nats/token", "bits/byte"


def loss_word(columns: Mapping[str, Any]) -> str:
    """Return what losses are counted in: nats, or bits where the table says bits per byte."""
    return "bits" if "loss_unit" in columns and BITS_PER_BYTE in columns["loss_unit"].present() else "nats"


def _times(factor: float) -> Converter:
    return lambda values: values * factor


def _shift(places: int) -> Converter:
    """Move the decimal point: 94.6 % is the very float 0.946 then, and 20.486 B the integer written in full.

    A product rounds twice (94.7 / 100 is 0.9470000000000001), so the same run would have two digests.
    """

    def convert(values: Floats) -> Floats:
        return np.array([float(Decimal(repr(value)).scaleb(places)) for value in values.tolist()])

    return convert


def _complement(values: Floats) -> Floats:
    """1 - x in decimal, so that an active share of 0.053 is the very float 0.947."""
    return np.array([float(1 - Decimal(repr(value))) for value in values.tolist()])


_AMOUNTS: dict[str, Converter] = {"K": _shift(3), "M": _shift(6), "B": _shift(9), "T": _shift(12)}
_FLOPS: dict[str, Converter] = {
    **{"M": _shift(6), "G": _shift(9), "T": _shift(12)},
    **{"P": _shift(15), "E": _shift(18), "Z": _shift(21)},
}

#: ``column -> unit -> conversion`` to the unit of the schema. The first unit of a column is the schema's own.
UNITS: dict[str, dict[str, Converter]] = {
    "F": {"FLOPs": _times(1.0), **_FLOPS},
    "S": {"fraction": _times(1.0), "percent": _shift(-2), "active": _complement},
    "D": {"tokens": _times(1.0), **_AMOUNTS},
    "unique_tokens": {"tokens": _times(1.0), **_AMOUNTS},
    "loss": {"nats": _times(1.0), "bits": _times(float(np.log(2.0))), "ppl": np.log, "bpb": _times(1.0)},
    "N": {"parameters": _times(1.0), **_AMOUNTS},
    "N_act": {"parameters": _times(1.0), **_AMOUNTS},
    "N_no_emb": {"parameters": _times(1.0), **_AMOUNTS},
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


def counted(count: int, noun: str) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> counted(1, "run"), counted(2, "run")
    ('1 run', '2 runs')
    """
    return f"{count} {noun}{'s' * (count != 1)}"


def mend(bad: NDArray[np.bool_], verb: str = "correct") -> str:
    """Say what to do about the rows that `first_rows` counts.

    Examples
    --------
    >>> mend(np.array([False, True])), mend(np.array([True, True]), "fill")
    ('correct it or drop the row', 'fill them or drop the rows')
    """
    return f"{verb} it or drop the row" if bad.sum() == 1 else f"{verb} them or drop the rows"


def check_values(
    columns: Mapping[str, Any],
    names: Mapping[str, str],
    source: str,
    ignored: NDArray[np.bool_] | None = None,
) -> list[str]:
    """Return one line per broken rule of single columns, in schema order; empty when all hold.

    Parameters
    ----------
    columns : mapping of str to (n,) array or Text
        Schema columns in file order.
    names : mapping of str to str
        How to name a column to its owner, where that differs from the schema name.
    source : str
        The file, first in each line.
    ignored : (n,) array of bool, optional
        Rows that are left out anyway, whose values do not matter.
    """
    problems: list[str] = []
    kept = True if ignored is None else ~ignored

    def report(name: str, bad: NDArray[np.bool_], what: str) -> None:
        if bad.any():
            problems.append(f"{source}: column {names.get(name, name)}, {first_rows(bad)} {what}")

    for name, column in COLUMNS.items():
        if name not in columns:
            continue
        values = columns[name]
        if column.kind == "text":
            if column.complete:
                missing = values.where("".__eq__) & kept
                report(name, missing, f"missing: a label is needed in every row; {mend(missing, 'fill')}")
            continue
        missing = np.isnan(values) & kept
        if column.complete:
            remedy = "write 0 for dense models" if name == "S" else mend(missing, "fill")
            report(name, missing, f"missing: {name} is needed in every row; {remedy}")
        if name == "S":
            for bad, what in _sparsity_problems(np.where(kept, values, np.nan)):
                report(name, bad, what)
        else:
            bad = ~_CHECKS[column.rule](values) & ~missing & kept
            if bad.any():
                value = f"not {column.rule} and finite ({values[bad][0]:g})"
                unit = f" in {column.unit}" if column.unit else ""
                report(
                    name,
                    bad,
                    f"{value}: {name} is the {column.description}{unit}; {mend(bad)}{_ADVICE.get(name, '')}",
                )
    if "weight" in columns and not np.any((columns["weight"] > 0) & kept):
        problems.append(
            f"{source}: column {names.get('weight', 'weight')}, no row > 0: nothing is left to fit; "
            "give the rows to fit a positive weight, or leave the column out"
        )
    return problems


def _sparsity_problems(values: Floats) -> list[tuple[NDArray[np.bool_], str]]:
    rule = "S is a fraction in [0, 1)"
    percent = (values > 1) & (values <= 100)
    fractions = (values > 0) & (values < 1)
    full = values == 1
    outside = (values > 100) | (values < LOWEST_SPARSITY)
    advice = "add --unit S=percent"
    if percent.any() and fractions.any():
        beside = f"but {first_rows(fractions)} in (0, 1): percent beside fractions"
        advice = f"{beside}; write all in percent, then --unit S=percent"
    return [
        (percent, f"in (1, 100]: {rule}; {advice}"),
        (full, f"equal to 1: {rule}; a model without active parameters has no loss; {mend(full)}"),
        (outside, f"outside [{LOWEST_SPARSITY:g}, 1): {rule}; {mend(outside)}"),
    ]
