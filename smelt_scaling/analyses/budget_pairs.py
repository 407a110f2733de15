"""The same cell of two architectures side by side: what its model costs in each, and its runs at equal tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

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
        Medians over the rows of the cell; NaN of runs, which have no one value.
    deviation : (pairs,) array
        target / reference - 1; infinite where the reference has none and the target has some.
    spread : (pairs,) array
        Largest over smallest value, less 1, of the side in which it is larger: 0 where a cell is one model. Of runs,
        that of their ratios.
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
    code, arch = labels.codes.astype(np.intp), endpoints._stored["arch"]
    own = {name: np.flatnonzero(arch.codes == arch.names.index(name)) for name in (target, reference)}
    counts = {name: np.bincount(code[rows], minlength=len(labels.names)) for name, rows in own.items()}
    both = (counts[target] > 0) & (counts[reference] > 0) & (unit != "")
    codes = np.flatnonzero(both)
    alone = {name: {int(c): int(n[c]) for c in np.flatnonzero((n > 0) & ~both)} for name, n in counts.items()}
    ratios: dict[str, Ratio] = {}
    if len(codes):
        place = np.full(len(labels.names), -1)
        place[codes] = np.arange(len(codes))
        models = [
            _Rows(rows, place[code[rows]]) for rows in (rows[both[code[rows]]] for rows in own.values())
        ]
        runs = _at_equal_tokens(np.log(endpoints.D), *models) if "D" in endpoints else None
        for quantity in QUANTITIES:
            column = next((name for name in quantity.columns if name in endpoints), None)
            if column is None or (quantity.at_equal_tokens and runs is None):
                continue
            name = "F*D" if column == "C" and "C" not in endpoints.columns else column
            if quantity.at_equal_tokens and runs is not None:
                ratios[quantity.name] = _of_runs(quantity, name, endpoints[column], *runs, len(codes))
            else:
                ratios[quantity.name] = _of_models(quantity, name, endpoints[column], models, len(codes))
        if recount is not None:
            ratios["recount"] = _of_models(RECOUNT, *recount, models, len(codes))
    return BudgetPairs(
        target=target, reference=reference, unit=unit, labels=labels, codes=codes, ratios=ratios, alone=alone
    )


class _Rows(NamedTuple):
    """Rows of the table, and the pair that each belongs to."""

    rows: Index
    pair: Index


def _at_equal_tokens(log_tokens: Floats, target: _Rows, reference: _Rows) -> tuple[_Rows, _Rows]:
    """Hold each run of the target against the one of the reference that is nearest in tokens, within 5 %."""
    import pandas as pd

    runs, others = (
        pd.DataFrame({"pair": side.pair, name: side.rows, "at": log_tokens[side.rows]}).sort_values(
            "at", kind="stable"
        )
        for name, side in (("target", target), ("reference", reference))
    )
    near: Any = LEVEL_WIDTH  # a float is what floats take
    met = pd.merge_asof(runs, others, on="at", by="pair", direction="nearest", tolerance=near).dropna()
    pair = met["pair"].to_numpy(np.intp)
    return _Rows(met["target"].to_numpy(np.intp), pair), _Rows(met["reference"].to_numpy(np.intp), pair)


def _of_models(quantity: Quantity, column: str, values: Floats, sides: list[_Rows], pairs: int) -> Ratio:
    (target, more), (reference, other) = (_medians(values[side.rows], side.pair, pairs) for side in sides)
    return Ratio(
        quantity=quantity,
        column=column,
        target=target,
        reference=reference,
        deviation=_deviation(target, reference),
        spread=np.fmax(more, other),
    )


def _of_runs(
    quantity: Quantity, column: str, values: Floats, target: _Rows, reference: _Rows, pairs: int
) -> Ratio:
    ratio, spread = _medians(values[target.rows] / values[reference.rows], target.pair, pairs)
    return Ratio(
        quantity=quantity,
        column=column,
        target=np.full(pairs, np.nan),
        reference=np.full(pairs, np.nan),
        deviation=ratio - 1.0,
        spread=spread,
        horizons=np.bincount(target.pair, minlength=pairs),
    )


def _deviation(target: Floats, reference: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(target == reference, 1.0, target / reference)  # without a cache on either side, too
    return np.asarray(np.where(np.isnan(target) | np.isnan(reference), np.nan, ratio - 1.0))


def _medians(values: Floats, group: Index, groups: int) -> tuple[Floats, Floats]:
    """Return the median of each group, and its largest over its smallest value less 1; NaN is left out."""
    there = np.isfinite(values)
    values, group = values[there], group[there]
    order = np.argsort(group, kind="stable")  # rows of a cell lie together already, more or less
    values, group = values[order], group[order]
    counts = np.bincount(group, minlength=groups)
    has = counts > 0
    ends = np.cumsum(counts)[has]
    starts = ends - counts[has]
    median, spread = np.full(groups, np.nan), np.full(groups, np.nan)
    if not len(values):
        return median, spread
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    if np.any(low < high):  # one model to a cell is the rule, and needs no sorting
        values = values[np.lexsort((values, group))]
    median[has] = (values[(starts + ends - 1) // 2] + values[(starts + ends) // 2]) / 2
    spread[has] = _deviation(high, low)
    return median, spread
