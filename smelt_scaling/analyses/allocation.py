"""Compute-optimal allocation: model size, tokens and loss that a budget buys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._json import finite_or_none
from smelt_scaling.analyses.remarks import interval_note, support_note
from smelt_scaling.analyses.support import outside
from smelt_scaling.analyses.view import IntervalKind, ends, view_of
from smelt_scaling.errors import merge_notes
from smelt_scaling.frontier import Frontier
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
    archs: tuple[str, ...] | None = None,
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
    archs : tuple of str, optional
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
        ``dense_params`` is F*/6, the dense equivalent, and ``tokens_per_param`` D* over it. ``.attrs`` holds ``notes``
        and ``settings``.

    Examples
    --------
    >>> from smelt_scaling.papers import load_paper
    >>> table = allocate(load_paper("smelt"), 1e21, archs=("baseline",), sparsities=[0.85, 0.95, 0.97])
    >>> table["tokens_per_param"].round().tolist()
    [56.0, 78.0, 91.0]
    """
    import pandas as pd

    view = view_of(study)
    sides = tuple(view.side(arch) for arch in (archs or tuple(view.sides)))
    view.require_frontier(sides)
    grid = view.sparsity_grid(sparsities, sides)
    budget = np.atleast_1d(np.asarray(budgets, dtype=np.float64))
    rows: list[dict[str, Any]] = []
    without_draws = False
    for side in sides:
        replicates = side.replicates(interval)
        without_draws |= replicates is None
        for value in budget:
            for sparsity in grid:
                point = _quantities(view.frontier(side.surface), value, sparsity, view.flops_per_param)
                drawn = (
                    None
                    if replicates is None
                    else _quantities(view.frontier(replicates.surface), value, sparsity, view.flops_per_param)
                )
                row: dict[str, Any] = {"arch": side.arch, "budget": float(value), "sparsity": sparsity}
                for name in QUANTITIES:
                    row[name] = float(point[name])
                    # positive quantities that span decades get their t interval on the logarithm
                    found = ends(
                        np.log(point[name]), None if drawn is None else np.log(drawn[name]), interval, level
                    )
                    lo, hi = (np.nan, np.nan) if found is None else found
                    row[f"{name}_lo"], row[f"{name}_hi"] = (finite_or_none(np.exp(end)) for end in (lo, hi))
                support = outside(
                    side.window,
                    arch=side.arch,
                    F=row["flops_per_token"],
                    D=row["tokens"],
                    C=float(value),
                    S=sparsity,
                    TPP=row["tokens_per_param"],
                )
                rows.append(
                    row
                    | {
                        "extrapolated": bool(support),
                        "support": support,
                        "draws": 0 if replicates is None else len(replicates),
                    }
                )
    frame = pd.DataFrame(rows)
    notes = [*interval_note(view, interval, drawn=not without_draws), *support_note(rows)]
    frame.attrs = {
        "notes": merge_notes(view.notes, notes),
        "settings": {
            "law": view.law.name,
            "formula": view.law.formula,
            "level": level,
            "interval": interval,
            "flops_per_param": view.flops_per_param,
        },
    }
    return frame


def _quantities(
    frontier: Frontier, budget: float, sparsity: float | None, flops_per_param: float
) -> dict[str, Array]:
    best = frontier.allocate(budget, sparsity)
    dense = best.flops_per_token / flops_per_param
    return {
        "flops_per_token": best.flops_per_token,
        "tokens": best.tokens,
        "dense_params": dense,
        "tokens_per_param": best.tokens / dense,
        "loss": best.loss,
    }
