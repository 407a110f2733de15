"""FLOPs against tokens and parameters: each ratio by groups of rows, with what its size means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._conventions import DENSE_RANGE, NAMED, PRODUCT_TOLERANCE, positive_ratio, ratio_groups
from smelt_scaling.analyses.design_map import arch_codes
from smelt_scaling.analyses.intake_tables import known_origins
from smelt_scaling.endpoints import Endpoints

__all__ = ["flops_rows"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """One quotient that two conventions would change.

    Parameters
    ----------
    name : str
        The quotient as printed.
    needs : tuple of str
        Columns in it.
    value : callable
        Columns -> numerator, denominator.
    usual : tuple of float
        Sizes that are no other convention.
    agrees : str
        What such a size means.
    """

    name: str
    needs: tuple[str, ...]
    value: Callable[[Endpoints], tuple[Floats, Floats]]
    usual: tuple[float, float]
    agrees: str


#: A named ratio of FLOPs per parameter may be off by attention, head and embedding.
NEAR = 0.10
SIX_N = "6 FLOPs per parameter, plus attention and head"
RATIOS = (
    Ratio(
        name="C/(F*D)",
        needs=("C", "F", "D"),
        value=lambda e: (e["C"], e["F"] * e["D"]),
        usual=(1 - PRODUCT_TOLERANCE, 1 + PRODUCT_TOLERANCE),
        agrees="C = F*D",
    ),
    *(
        Ratio(
            name=f"F/(6*{size})",
            needs=("F", size),
            value=lambda e, size=size: (e["F"], 6 * e[size]),  # type: ignore[misc]
            usual=DENSE_RANGE,
            agrees=SIX_N,
        )
        for size in ("N", "N_act")
    ),
    *(
        Ratio(
            name=f"C/(6*{size}*D)",
            needs=("C", size, "D"),
            value=lambda e, size=size: (e["C"], 6 * e[size] * e["D"]),  # type: ignore[misc]
            usual=DENSE_RANGE,
            agrees=SIX_N,
        )
        for size in ("N", "N_act")
    ),
)
#: What a ratio of FLOPs that is not 1 means, and what mends it.
MEANINGS = {
    "1/3": "forward-only FLOPs? add --flops forward, or multiply them by 3",
    "3": "three times training FLOPs? divide them by 3, or leave out --flops forward",
}
#: Computed column and rule -> the ratio that is 1 by that.
BY_CONSTRUCTION = {
    ("F", "C/D"): "C/(F*D)",
    ("D", "C/F"): "C/(F*D)",
    ("C", "F*D"): "C/(F*D)",
    ("F", "6 N"): "F/(6*N)",
    ("F", "6 N_act"): "F/(6*N_act)",
}
UNIT = "a unit? add --unit for the FLOPs, D or the parameters"
OTHER = "no known convention; check what the FLOPs and the parameters count"
SPARSE = "sparse rows: about the active share, since N counts all experts"
SPARSE_ACTIVE = "sparse rows: N counts active parameters; name them with --map N_act=COLUMN"
#: F/(6 N (1 - S)) of sparse models whose N counts all experts; S is in equal compute, so it is no exact 1.
SHARE_RANGE = (0.6, 2.5)


def flops_rows(endpoints: Endpoints) -> list[dict[str, Any]]:
    """Compare FLOPs with tokens and parameters.

    Returns
    -------
    list of dict
        One per ratio and convention: ``ratio``, ``convention`` ("1", "1/3", "1e9", "sparse", or a range), ``rows``,
        ``archs``, ``median``, ``lo``, ``hi``, ``agrees`` and ``meaning``, in words.
    """
    rows: list[dict[str, Any]] = []
    archs = np.array(endpoints.archs)
    arch = arch_codes(endpoints)
    rules = {origin.name: origin.rule for origin in known_origins(endpoints)}
    computed = {
        BY_CONSTRUCTION.get(rule): f"by construction: {rule[0]} = {rule[1]}" for rule in rules.items()
    }
    for ratio in RATIOS:
        # a C that is F*D says nothing that F does not say
        if not all(name in endpoints for name in ratio.needs) or (
            "F" not in ratio.needs and rules["C"] == "F*D"
        ):
            continue
        values = positive_ratio(*ratio.value(endpoints))
        groups = _groups(ratio, values, endpoints)
        for label, chosen in groups.items():
            there = values[chosen]
            rows.append(
                {
                    "ratio": ratio.name,
                    "convention": label,
                    "rows": int(chosen.sum()),
                    "archs": archs[np.bincount(arch[chosen], minlength=len(archs)) > 0].tolist(),
                    "median": float(np.median(there)),
                    "lo": float(there.min()),
                    "hi": float(there.max()),
                    "agrees": label == "1",
                    "meaning": computed.get(ratio.name)
                    or (
                        _sparse_meaning(there, endpoints.S[chosen])
                        if label == "sparse"
                        else _meaning(ratio, label, groups)
                    ),
                }
            )
    return rows


def _groups(ratio: Ratio, values: Floats, endpoints: Endpoints) -> dict[str, NDArray[np.bool_]]:
    """Group rows by convention; parameters of a sparse model in all its experts tell nothing of one."""
    sparse = endpoints.S > 0 if "N" in ratio.needs else np.zeros(len(values), dtype=bool)
    values = np.where(sparse, np.nan, values)
    groups = ratio_groups(values, NEAR, ratio.usual)
    if not set(groups) <= set(NAMED):  # a continuum meets named values by chance
        usual = groups.get("1", np.zeros(len(values), dtype=bool))
        rest = ratio_groups(np.where(usual, np.nan, values), 0.0)
        groups = ({"1": usual} if usual.any() else {}) | rest
    return groups | ({"sparse": sparse} if sparse.any() else {})


def _meaning(ratio: Ratio, label: str, groups: Mapping[str, Any]) -> str:
    if label == "1":
        return ratio.agrees + (" on all rows" if len(groups) == 1 else "")
    return MEANINGS.get(label, UNIT if label in NAMED else OTHER)


def _sparse_meaning(values: Floats, sparsity: Floats) -> str:
    """Read F/(6 N) of sparse rows as a share of all experts, which 1 - S tells, before as a convention."""

    def all_within(ratio: Floats, low: float, high: float) -> bool:
        return bool(np.all((ratio >= low) & (ratio <= high)))

    share = values / (1 - sparsity)
    if all_within(share, *SHARE_RANGE):
        return SPARSE
    if all_within(values, *DENSE_RANGE):
        return SPARSE_ACTIVE
    third = NAMED["1/3"]
    if any(all_within(ratio, third * (1 - NEAR), third * (1 + NEAR)) for ratio in (values, share)):
        return f"sparse rows: {MEANINGS['1/3']}"
    return f"sparse rows: {OTHER}"
