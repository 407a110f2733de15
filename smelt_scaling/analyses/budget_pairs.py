"""The same cell of two architectures side by side: what its model costs in each, and its runs at equal tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._text import Text
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.engine.design import LEVEL_WIDTH

__all__ = ["QUANTITIES", "BudgetPairs", "Quantity", "Ratio", "pairs_of"]

Floats = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """Something that a comparison should hold equal.

    Parameters
    ----------
    name : str
        Its name in results and tolerances.
    columns : tuple of str
        Columns that hold it, the best first.
    said : str
        Its name in print.
    at_equal_tokens : bool
        Whether it is of runs, compared at equal tokens, and not of models.
    always : bool
        Whether a table without it is told so.
    """

    name: str
    columns: tuple[str, ...]
    said: str
    at_equal_tokens: bool = False
    always: bool = False


#: What is held against each other, in the order of results.
QUANTITIES = (
    Quantity(name="flops", columns=("F",), said="FLOPs per token", always=True),
    Quantity(name="params", columns=("N_no_emb", "N"), said="parameters", always=True),
    Quantity(name="active", columns=("N_act",), said="active parameters"),
    Quantity(name="kv", columns=("kv",), said="KV cache", always=True),
    Quantity(name="tokens", columns=("D",), said="tokens", at_equal_tokens=True),
    Quantity(name="compute", columns=("C",), said="FLOPs of a run", at_equal_tokens=True),
    Quantity(name="speed", columns=("tokens_per_s",), said="tokens per second"),
)
#: FLOPs by the table's other account over those that the law counts.
RECOUNT = Quantity(name="recount", columns=(), said="FLOPs counted anew")


@dataclass(frozen=True, kw_only=True, eq=False)
class Ratio:
    """One quantity in every pair; NaN where a side does not state it.

    Parameters
    ----------
    quantity : Quantity
        What it is.
    column : str
        Where it was read.
    target, reference : (pairs,) array
        Medians over the rows of the cell, or over its common horizons.
    deviation : (pairs,) array
        target / reference - 1; infinite where the reference has none and the target has some.
    spread : (pairs,) array
        Largest over smallest value, less 1, of the side in which it is larger: 0 where a cell is one model.
    horizons : (pairs,) array of int or None
        Rows of the target with a row of the reference at equal tokens; None of models.
    """

    quantity: Quantity
    column: str
    target: Floats
    reference: Floats
    deviation: Floats
    spread: Floats
    horizons: Index | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class BudgetPairs:
    """Cells of two architectures, and what both state of them.

    Parameters
    ----------
    target, reference : str
        Architectures.
    unit : str
        What a cell is: ``cell``, ``scale*tier``; empty if the table has neither, and then nothing pairs.
    labels : Text
        Label of every row of the table.
    codes : (pairs,) array of int
        Codes of the labels that both have.
    ratios : mapping of str to Ratio
        Of every quantity that the table holds, by its name.
    alone : mapping of str to mapping of int to int
        Architecture -> code of a label that the other one lacks -> rows.
    """

    target: str
    reference: str
    unit: str
    labels: Text
    codes: Index
    ratios: Mapping[str, Ratio]
    alone: Mapping[str, Mapping[int, int]]

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.codes)

    @cached_property
    def cells(self) -> list[str]:
        """Labels of the pairs."""
        return [self.labels.names[code] for code in self.codes]

    @property
    def unpaired(self) -> int:
        """Cells of one architecture only."""
        return sum(map(len, self.alone.values()))


def pairs_of(
    endpoints: Endpoints, target: str, reference: str, recount: tuple[str, Floats] | None = None
) -> BudgetPairs:
    """Pair the cells of two architectures by their labels.

    Parameters
    ----------
    endpoints : Endpoints
        The table.
    target, reference : str
        Architectures in it.
    recount : (str, (n,) array), optional
        Another account of the FLOPs of each row over that of the law, with its name.

    Examples
    --------
    >>> runs = Endpoints.from_frame({"arch": ["a", "b"], "cell": ["1B", "1B"], "F": [6e9, 6.3e9], "D": [1e10, 1e10],
    ...                              "loss": [2.5, 2.25]})
    >>> pairs = pairs_of(runs, "b", "a")
    >>> pairs.cells, pairs.ratios["flops"].deviation.round(6).tolist(), pairs.unpaired
    (['1B'], [0.05], 0)
    """
    if "cell" in endpoints or "scale" in endpoints:
        labels, unit = endpoints._units("cell")
    else:  # names of runs are of one architecture each, so equal ones mean nothing
        labels, unit = Text.coded(np.zeros(len(endpoints), dtype=np.intp), [""]), ""
    code = labels.codes.astype(np.intp)
    own = {arch: endpoints.arch == arch for arch in (target, reference)}
    rows = {arch: np.bincount(code[there], minlength=len(labels.names)) for arch, there in own.items()}
    both = (rows[target] > 0) & (rows[reference] > 0) & (unit != "")
    codes = np.flatnonzero(both)
    alone = {arch: {int(c): int(n[c]) for c in np.flatnonzero((n > 0) & ~both)} for arch, n in rows.items()}
    ratios: dict[str, Ratio] = {}
    if len(codes):
        place = np.full(len(labels.names), -1)
        place[codes] = np.arange(len(codes))
        sides = [there & (place[code] >= 0) for there in own.values()]
        groups = [place[code[there]] for there in sides]
        for quantity in QUANTITIES:
            column = next((name for name in quantity.columns if name in endpoints), None)
            if column is None or (quantity.at_equal_tokens and "D" not in endpoints):
                continue
            make = _at_equal_tokens if quantity.at_equal_tokens else _of_models
            name = "F*D" if column == "C" and "C" not in endpoints.columns else column
            tokens = np.log(endpoints.D) if quantity.at_equal_tokens else np.empty(len(endpoints))
            ratios[quantity.name] = make(
                quantity, name, [(endpoints[column][s], tokens[s]) for s in sides], groups, len(codes)
            )
        if recount is not None:
            values = [(recount[1][s], recount[1][s]) for s in sides]
            ratios["recount"] = _of_models(RECOUNT, recount[0], values, groups, len(codes))
    return BudgetPairs(
        target=target, reference=reference, unit=unit, labels=labels, codes=codes, ratios=ratios, alone=alone
    )


Sides = list[tuple[Floats, Floats]]


def _of_models(quantity: Quantity, column: str, sides: Sides, groups: list[Index], pairs: int) -> Ratio:
    (target, more), (reference, other) = (
        _medians(values, group, pairs) for (values, _), group in zip(sides, groups, strict=True)
    )
    return Ratio(
        quantity=quantity,
        column=column,
        target=target,
        reference=reference,
        deviation=_deviation(target, reference),
        spread=np.fmax(more, other),
    )


def _at_equal_tokens(quantity: Quantity, column: str, sides: Sides, groups: list[Index], pairs: int) -> Ratio:
    """Hold each run of the target against the one of the reference that is nearest in tokens, within 5 %."""
    import pandas as pd

    target_runs, reference_runs = (
        pd.DataFrame({"cell": group, "at": tokens, name: values}).sort_values("at", kind="stable")
        for name, (values, tokens), group in zip(("target", "reference"), sides, groups, strict=True)
    )
    near: Any = LEVEL_WIDTH  # a float is what floats take
    met = pd.merge_asof(target_runs, reference_runs, on="at", by="cell", direction="nearest", tolerance=near)
    met = met[met["reference"].notna()]
    cell = met["cell"].to_numpy(np.intp)
    target, reference = (met[name].to_numpy(np.float64) for name in ("target", "reference"))
    ratio, spread = _medians(target / reference, cell, pairs)
    return Ratio(
        quantity=quantity,
        column=column,
        target=_medians(target, cell, pairs)[0],
        reference=_medians(reference, cell, pairs)[0],
        deviation=ratio - 1.0,
        spread=spread,
        horizons=np.bincount(cell, minlength=pairs),
    )


def _deviation(target: Floats, reference: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(target == reference, 1.0, target / reference)  # without a cache on either side, too
    return np.asarray(np.where(np.isnan(target) | np.isnan(reference), np.nan, ratio - 1.0))


def _medians(values: Floats, group: Index, groups: int) -> tuple[Floats, Floats]:
    """Return the median of each group, and its largest over its smallest value less 1; NaN is left out."""
    there = np.isfinite(values)
    values, group = values[there], group[there]
    values = values[np.lexsort((values, group))]
    counts = np.bincount(group, minlength=groups)
    has = counts > 0
    ends = np.cumsum(counts)[has]
    starts = ends - counts[has]
    median, spread = np.full(groups, np.nan), np.full(groups, np.nan)
    median[has] = (values[(starts + ends - 1) // 2] + values[(starts + ends) // 2]) / 2
    spread[has] = _deviation(values[ends - 1], values[starts])
    return median, spread
