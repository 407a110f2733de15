"""Compute-optimal allocation: model size, tokens and loss that a budget buys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._json import finite_or_none
from smelt_scaling.analyses.frames import finish_frame
from smelt_scaling.analyses.remarks import table_notes
from smelt_scaling.analyses.rounding import moved_by_rounding, rounding_note
from smelt_scaling.analyses.support import outside
from smelt_scaling.analyses.view import IntervalKind, Side, View, check_budgets, ends, grid_of, view_of
from smelt_scaling.errors import Note
from smelt_scaling.formatting import format_percent
from smelt_scaling.laws import Surface
from smelt_scaling.papers import Paper
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["allocate"]

Array = NDArray[np.float64]

QUANTITIES = ("flops_per_token", "tokens", "dense_params", "tokens_per_param", "loss")


def allocate(
    study: Study | Paper,
    budgets: ArrayLike,
    *,
    archs: str | Sequence[str] | None = None,
    sparsities: ArrayLike | None = None,
    level: float = 0.95,
    interval: IntervalKind = "percentile",
) -> pd.DataFrame:
    """Tabulate the compute-optimal F*, D*, dense parameters, tokens per parameter and loss.

    Parameters
    ----------
    study : Study or Paper
        Fitted or published surfaces.
    budgets : array-like
        Training FLOPs.
    archs : str or sequence of str, optional
        Architectures; all by default.
    sparsities : array-like, optional
        By default the median of each sparsity tier over cells.
    level, interval
        As in `ce_gain`.

    Returns
    -------
    DataFrame
        One row per architecture, budget and sparsity: ``arch, budget, sparsity, flops_per_token, tokens, dense_params,
        tokens_per_param, loss``, each quantity with ``_lo`` and ``_hi``, then ``extrapolated, support, draws``.
        ``dense_params`` is F* / flops_per_param (6 unless told otherwise), ``tokens_per_param`` is D* over it.
        ``.attrs`` holds ``notes`` and ``settings``.

    Examples
    --------
    >>> from smelt_scaling.papers import load_paper
    >>> table = allocate(load_paper("smelt"), 1e21, archs=("baseline",), sparsities=[0.85, 0.95, 0.97])
    >>> table["tokens_per_param"].round().tolist()
    [56.0, 78.0, 91.0]
    """
    view = view_of(study)
    sides = view.chosen(archs)
    view.require_frontier(sides)
    budget, sparsity = grid_of(check_budgets(budgets), view.sparsity_grid(sparsities, sides))
    rows: list[dict[str, Any]] = []
    for side in sides:
        replicates = side.replicates(interval)
        point = _quantities(view, side.surface, budget, sparsity)
        drawn = None if replicates is None else _quantities(view, replicates.surface, budget, sparsity)
        # positive quantities that span decades get their t interval on the logarithm
        found = {
            name: ends(np.log(point[name]), None if drawn is None else np.log(drawn[name]), interval, level)
            for name in QUANTITIES
        }
        for j, value in enumerate(budget.tolist()):
            row: dict[str, Any] = {
                "arch": side.arch,
                "budget": value,
                "sparsity": None if sparsity is None else float(sparsity[j]),
            }
            for name in QUANTITIES:
                pair = found[name]
                lo, hi = (None, None) if pair is None else (finite_or_none(np.exp(end[j])) for end in pair)
                row |= {name: float(point[name][j]), f"{name}_lo": lo, f"{name}_hi": hi}
            support = outside(
                side.window,
                arch=side.arch,
                F=row["flops_per_token"],
                D=row["tokens"],
                C=value,
                S=row["sparsity"],
                TPP=row["tokens_per_param"],
            )
            draws = 0 if replicates is None else len(replicates)
            known = bool(side.window)
            extrapolated = bool(support) if known else None
            rows.append(row | {"extrapolated": extrapolated, "support": support, "draws": draws})
    notes = table_notes(view, rows, sides, interval, given="loss_lo")
    notes += _rounding_notes(view, sides, budget, sparsity)
    return finish_frame(rows, view, notes, level=level, interval=interval)


def _rounding_notes(view: View, sides: Sequence[Side], budget: Array, sparsity: Array | None) -> list[Note]:
    """Say how far the digits of printed coefficients let an allocation move."""
    largest = {"flops_per_token": 0.0, "tokens_per_param": 0.0, "loss": 0.0}
    for side in sides:
        point = _quantities(view, side.surface, budget, sparsity)
        for name in largest:
            moved = moved_by_rounding(
                [side], lambda surface, name=name: _quantities(view, surface, budget, sparsity)[name]
            )
            if moved is None:
                return []
            unit = 1.0 if name == "loss" else point[name]
            largest[name] = max(largest[name], float(np.max(moved / unit)))
    size, ratio, loss = largest.values()
    shown = [
        ("F*", format_percent(size)),
        ("D*/N*", format_percent(ratio)),
        ("the loss", f"{loss:.2g} {view.loss_unit}"),
    ]
    return rounding_note(shown, len(sides) * len(budget))


def _quantities(view: View, surface: Surface, budget: Array, sparsity: Array | None) -> dict[str, Array]:
    best = view.frontier(surface).allocate(budget, sparsity)
    dense = best.flops_per_token / view.flops_per_param
    return {
        "flops_per_token": best.flops_per_token,
        "tokens": best.tokens,
        "dense_params": dense,
        "tokens_per_param": best.tokens / dense,
        "loss": best.loss,
    }
