"""What follows from the columns: other columns, sparsity tiers, remarks on legal values worth a look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._schema import Floats, first_rows
from smelt_scaling._text import Text
from smelt_scaling.errors import DataError, Note

__all__ = ["TIER_GAP", "complete", "parameters_of", "remarks", "sparsity_tiers"]

#: Training FLOPs per parameter and token of a dense matrix product: two forward, four backward.
FLOPS_PER_PARAM = 6.0
#: Sparsities are of one tier when ln(1 - S) differs by no more; published designs have gaps of .37 and up.
TIER_GAP = 0.25


def parameters_of(columns: Mapping[str, Any]) -> str:
    """Return the column of parameters that a token passes through."""
    return "N_act" if "N_act" in columns else "N"


def complete(columns: dict[str, Any], source: str, flops: str | None) -> list[Note]:
    """Add to the columns what follows from the others: arch, F and D."""
    notes: list[Note] = []
    n = len(columns["loss"])

    def derive(name: str, code: str, values: Floats, message: str) -> None:
        bad = ~(np.isfinite(values) & (values > 0))
        if bad.any():
            raise DataError(
                f"{source}: column {name}, {first_rows(bad)} not finite and > 0 when {message}; "
                f"correct the columns it comes from"
            )
        columns[name] = values
        notes.append(Note(code=code, severity="info", count=n, message=f"{source}: {message}"))

    if "arch" not in columns:
        columns["arch"] = Text(codes=np.zeros(n, dtype=np.uint8), names=("model",))
        notes.append(
            Note(
                code="arch_absent",
                severity="info",
                count=n,
                message=f"{source}: no column arch; all rows belong to one architecture, 'model'",
            )
        )
    if flops == "6N":
        parameters = parameters_of(columns)
        if parameters not in columns:
            raise DataError(
                f"{source}: no column N or N_act, which --flops 6N needs; name it with --map N=COLUMN"
            )
        if parameters == "N" and "S" in columns and np.any(columns["S"] > 0):
            sparse = first_rows(columns["S"] > 0)
            raise DataError(
                f"{source}: column S, {sparse} > 0: --flops 6N needs active parameters for sparse models; "
                "name them with --map N_act=COLUMN"
            )
        replaced = [name for name in ("F", "C") if name in columns and (name == "F" or "D" in columns)]
        for name in replaced:
            del columns[name]
        also = (
            f", in place of the column{'s' * (len(replaced) > 1)} {' and '.join(replaced)}"
            if replaced
            else ""
        )
        derive(
            "F",
            "derived_flops",
            FLOPS_PER_PARAM * columns[parameters],
            f"F taken as 6 {parameters}{also}; FLOPs of attention and the output layer are not in it",
        )
    elif "F" not in columns and {"C", "D"} <= set(columns):
        derive("F", "derived_flops", columns["C"] / columns["D"], "F computed as C/D")
    if "D" not in columns and {"C", "F"} <= set(columns):
        derive("D", "derived_tokens", columns["C"] / columns["F"], "D computed as C/F")
    return notes


def remarks(columns: Mapping[str, Any], source: str) -> list[Note]:
    """Note what is legal but deserves a look."""
    notes: list[Note] = []
    if "S" in columns and np.any(columns["S"] < 0):
        below = columns["S"] < 0
        notes.append(
            Note(
                code="negative_sparsity",
                severity="warning",
                count=int(below.sum()),
                message=f"{source}: column S, {first_rows(below)} below 0, kept",
            )
        )
    count = int(columns["source"].where("simulated".__eq__).sum()) if "source" in columns else 0
    if count:
        notes.append(
            Note(
                code="simulated",
                severity="warning",
                count=count,
                message=f"{source}: {count} endpoints are simulated; they are not measurements",
            )
        )
    archs = columns["arch"].present()
    folded = [name.casefold() for name in archs]
    alike = [name for name in archs if folded.count(name.casefold()) > 1]
    if alike:
        notes.append(
            Note(
                code="similar_names",
                severity="warning",
                count=len(alike),
                message=f"{source}: architectures whose names differ in case only, kept apart: "
                f"{', '.join(alike)}",
            )
        )
    return notes


def sparsity_tiers(S: ArrayLike) -> NDArray[np.intp]:
    """Group sparsities into levels: single linkage on ln(1 - S), cut at gaps above 0.25.

    Parameters
    ----------
    S : (n,) array_like
        Sparsities below 1, pooled over the architectures that are compared.

    Returns
    -------
    (n,) array of int
        Tier of each value, from 0 for the least sparse.

    Examples
    --------
    >>> sparsity_tiers([0.86, 0.0, 0.946, 0.843, 0.972, 0.952]).tolist()
    [1, 0, 2, 1, 3, 2]
    """
    values = np.asarray(S, dtype=np.float64)
    ascending = np.sort(values)
    firsts = ascending[1:][np.diff(-np.log1p(-ascending)) > TIER_GAP]
    return np.asarray(np.searchsorted(firsts, values, side="right"), dtype=np.intp)
