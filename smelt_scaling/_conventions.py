"""What the columns count: C against F*D, and F against 6 FLOPs per parameter, ratio by ratio.

Products are of float64: an int64 wraps at 9.2e18, below every budget that people fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import Floats, first_rows
from smelt_scaling.errors import DataError, Note, info, warning

__all__ = [
    "DENSE_RANGE",
    "NAMED",
    "PRODUCT_TOLERANCE",
    "apply_forward",
    "check_conventions",
    "convention_notes",
    "positive_ratio",
    "ratio_groups",
]

#: Training FLOPs per parameter and token of a dense matrix product: two forward, four backward.
FLOPS_PER_PARAM = 6.0
#: Backward passes cost twice the forward one, so training FLOPs are three times the forward ones.
TRAINING_PER_FORWARD = 3.0
#: A measured C may differ from F*D by what the schedule or the logging rounds, never by a convention.
PRODUCT_TOLERANCE = 0.10
#: A ratio of F to 6 N this close to a named one is that convention and no accident of the architecture.
EXACT = 0.02
#: F/(6 N) of dense models, from embeddings that are looked up to long attention.
DENSE_RANGE = (0.9, 2.0)
#: F/(6 N_act) below it: N_act counts parameters that no token passes through.
LEAST_ACTIVE = 0.6

#: How far N_act/N may be from a sparsity in equal compute.
SHARE_TOLERANCE = 0.05

#: Ratios with a name; anything else is grouped by its size.
NAMED: dict[str, float] = {
    "1": 1.0,
    "1/3": 1 / 3,
    "3": 3.0,
    **{f"1e{exponent}": 10.0**exponent for exponent in (-18, -15, -12, -9, -6, -3, 3, 6, 9, 12, 15, 18)},
}


def check_conventions(
    columns: Mapping[str, NDArray[Any]], names: Mapping[str, str], source: str
) -> list[str]:
    """Return one line per contradiction between C, F, D, S and parameters, each ratio with its rows.

    Parameters
    ----------
    columns, names, source
        As for `check_values`, after conversion; NaN where a row does not count.
    """
    problems: list[str] = []
    if {"C", "F", "D"} <= set(columns):
        ratio = positive_ratio(columns["C"], columns["F"] * columns["D"])
        groups = ratio_groups(ratio, PRODUCT_TOLERANCE)
        if set(groups) - {"1"}:
            where = ", ".join(names.get(name, name) for name in ("C", "F", "D"))
            problems.append(f"{source}: columns {where}: C/(F*D) is {_told(groups)}; {_meaning(groups)}")
    return problems + _per_parameter(columns, names, source) + _share_for_sparsity(columns, names, source)


def positive_ratio(above: Floats, below: Floats) -> Floats:
    with np.errstate(all="ignore"):
        ratio = above / below
    return np.where(np.isfinite(ratio) & (ratio > 0), ratio, np.nan)


def ratio_groups(
    ratio: Floats, tolerance: float, usual: tuple[float, float] | None = None
) -> dict[str, NDArray[np.bool_]]:
    """Group rows by the convention of their ratio, the largest group first; ``usual`` counts as 1."""
    groups: dict[str, NDArray[np.bool_]] = {}
    left = ~np.isnan(ratio)
    for label, value in NAMED.items():
        near = left & (np.abs(ratio / value - 1) <= tolerance)
        if usual and value == 1.0:
            near = left & (ratio >= usual[0]) & (ratio <= usual[1])
        if near.any():
            groups[label] = near
            left = left & ~near
    if left.any():
        low, high = float(ratio[left].min()), float(ratio[left].max())
        groups[f"{low:.4g}" if high < low * 1.001 else f"{low:.4g} to {high:.4g}"] = left
    return dict(sorted(groups.items(), key=lambda group: -int(group[1].sum())))


def _told(groups: Mapping[str, NDArray[np.bool_]]) -> str:
    told = " and ".join(f"{label} on {first_rows(rows)}" for label, rows in groups.items())
    number = {1: "", 2: ": two conventions in one table", 3: ": three conventions in one table"}
    return told + number.get(len(groups), f": {len(groups)} conventions in one table")


def _meaning(groups: Mapping[str, NDArray[np.bool_]]) -> str:
    label = next(label for label in groups if label != "1")
    there = "there " if len(groups) > 1 else ""
    if label == "1/3":
        return f"1/3 means that C is forward-only {there}while F is training FLOPs; multiply it by 3 or leave it out"
    if label == "3":
        remedy = "multiply it by 3 there" if there else "add --flops forward"
        return f"3 means that F is forward-only {there}while C is training FLOPs; {remedy}"
    if label in NAMED:
        return f"{label} is a unit; add --unit for C, F or D" + (", of one unit each" if there else "")
    return "C and F follow different conventions; leave one of them out"


def _size(columns: Mapping[str, NDArray[Any]]) -> str | None:
    """Return the column of parameters that F can be held against: active ones, or all of a dense table."""
    if "N_act" in columns:
        return "N_act"
    dense = "S" not in columns or not np.any(columns["S"] > 0)
    return "N" if "N" in columns and dense else None


def _flops_of(columns: Mapping[str, NDArray[Any]]) -> tuple[Floats, str] | None:
    if "F" in columns:
        return columns["F"], "F"
    if {"C", "D"} <= set(columns):
        return positive_ratio(columns["C"], columns["D"]), "C/D"
    return None


def _per_parameter(columns: Mapping[str, NDArray[Any]], names: Mapping[str, str], source: str) -> list[str]:
    """Refuse F that follows a named convention of 6 N exactly, but another one, or several."""
    size, flops = _size(columns), _flops_of(columns)
    if size is None or flops is None:
        return []
    ratio = positive_ratio(flops[0], FLOPS_PER_PARAM * columns[size])
    groups = ratio_groups(ratio, EXACT)
    if set(groups) <= {"1"} or not set(groups) <= set(NAMED):
        return []
    if len(np.unique(columns[size][~np.isnan(ratio)])) < 2:
        return []  # one model may have any ratio; several of one ratio follow a rule
    written = "C/(6*N*D)" if flops[1] == "C/D" else "F/(6*N)"
    written = written.replace("N", size)
    where = ", ".join(names.get(n, n) for n in (*(("F",) if flops[1] == "F" else ("C", "D")), size))
    label = next(label for label in groups if label != "1")
    if label == "1/3":
        meaning = "1/3 means forward-only FLOPs"
        meaning += "; multiply them by 3 there" if len(groups) > 1 else "; add --flops forward"
    elif label == "3":
        meaning = "3 means training FLOPs taken for forward-only ones"
        meaning += "; divide them by 3 there" if len(groups) > 1 else "; leave out --flops forward"
    else:
        meaning = f"{label} is a unit; add --unit for the FLOPs, D or {size}"
    return [f"{source}: columns {where}: {written} is {_told(groups)}; {meaning}"]


def _share_for_sparsity(
    columns: Mapping[str, NDArray[Any]], names: Mapping[str, str], source: str
) -> list[str]:
    """Refuse S that is N_act/N where it should be one minus that."""
    if not {"S", "N", "N_act"} <= set(columns):
        return []
    share = positive_ratio(columns["N_act"], columns["N"])
    # embeddings and routers are counted in one of them only, so shares agree roughly; near one half nothing is told
    told = ~np.isnan(share) & (columns["S"] > 0) & (np.abs(2 * share - 1) > 0.2)
    off_share, off_sparsity = np.abs(columns["S"] - share), np.abs(columns["S"] - (1 - share))
    is_share = told & (off_share < SHARE_TOLERANCE) & (off_share < 0.25 * off_sparsity)
    if not told.any() or is_share.sum() < 0.9 * told.sum():
        return []
    return [
        f"{source}: column {names.get('S', 'S')}, {first_rows(is_share)} close to N_act/N: an active share, while S is "
        "one minus it; add --unit S=active"
    ]


def apply_forward(columns: dict[str, NDArray[Any]], source: str) -> list[Note]:
    """Turn forward-only FLOPs into training FLOPs, in place: three times as many.

    C follows where it is F*D, and stays where it is three times that, which is training FLOPs already.

    Raises
    ------
    DataError
        If there are no FLOPs to turn.
    """
    changed = [name for name in ("F", "C") if name in columns]
    if not changed:
        raise DataError(
            f"{source}: no column F or C, which --flops forward multiplies by 3; name it with --map F=COLUMN"
        )
    if {"C", "F", "D"} <= set(columns):
        ratio = positive_ratio(columns["C"], columns["F"] * columns["D"])
        if "1" not in ratio_groups(ratio, PRODUCT_TOLERANCE):
            changed = ["F"]
    for name in changed:
        columns[name] = TRAINING_PER_FORWARD * columns[name]
    message = f"{source}: {' and '.join(changed)} taken as 3 times the column, which is forward-only (--flops forward)"
    return [info("derived_flops", message, len(columns["loss"]))]


def convention_notes(columns: Mapping[str, NDArray[Any]], source: str) -> list[Note]:
    """Note FLOPs that are possible but far from 6 per parameter that a token passes through."""
    if "F" not in columns:
        return []
    notes: list[Note] = []
    if "N" in columns and "S" in columns and "N_act" not in columns:
        total = (columns["S"] >= 0.5) & (np.abs(columns["F"] / (FLOPS_PER_PARAM * columns["N"]) - 1) < EXACT)
        if total.any():
            message = (
                f"{source}: columns F, N, S: F is 6 N on {first_rows(total)} with S of 0.5 or more: "
                "FLOPs of all experts? F counts what a token passes through"
            )
            notes.append(warning("active_parameters", message, int(total.sum())))
    size = _size(columns)
    if size is None:
        return notes
    ratio = columns["F"] / (FLOPS_PER_PARAM * columns[size])
    sparse = np.zeros(len(ratio), dtype=bool) if size == "N" else _sparse(columns)
    low = sparse & (ratio < LEAST_ACTIVE)
    if low.any():
        message = (
            f"{source}: columns F, {size}: F/(6*{size}) is {_range(ratio[low])} on "
            f"{first_rows(low)}: does {size} count all experts? Name the active parameters with --map N_act=COLUMN"
        )
        notes.append(warning("active_parameters", message, int(low.sum())))
    off = ~low & ((ratio < DENSE_RANGE[0]) | (ratio > DENSE_RANGE[1]))
    if off.any():
        message = (
            f"{source}: columns F, {size}: F/(6*{size}) is {_range(ratio[off])} on "
            f"{first_rows(off)} (usual: {DENSE_RANGE[0]:g} to {DENSE_RANGE[1]:g}); "
            f"check that F is training FLOPs and which parameters {size} counts"
        )
        notes.append(warning("flops_convention", message, int(off.sum())))
    return notes


def _range(values: Floats) -> str:
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"


def _sparse(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Tell which rows are of sparse models: by S, by parameters no token passes through, or unknown."""
    if "S" in columns:
        return np.asarray(columns["S"] > 0)
    if "N" in columns:
        return np.asarray(columns["N_act"] < columns["N"])
    return np.ones(len(columns["N_act"]), dtype=bool)
