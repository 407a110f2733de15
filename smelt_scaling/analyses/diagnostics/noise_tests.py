"""Tests of what a fit takes for granted of its noise: equal spread, no order along a run, a bell shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.linear_problem import Linearised
from smelt_scaling.engine.design import level_index

__all__ = ["Neighbours", "axis_rows", "neighbours", "normal_quantiles", "shape_of", "spread_rows"]

Array = NDArray[np.float64]

#: Fewer rows say nothing of a shape or a trend.
FEWEST_ROWS = 8
#: More rows than this are not asked for their normality: no real noise is exactly normal.
MOST_ROWS = 5000


def spread_rows(model: Linearised, step_residual: Array) -> list[dict[str, Any]]:
    """Test by each axis, and by all, whether the spread of the residuals changes (Breusch and Pagan 1979).

    ``p`` is Koenker's form (no normality needed), which takes rows as independent. ``p_cell`` lets rows of a cell go
    together, with t on cells less one: read that one. In 150 simulated worlds of the example's design ``p`` of ln(1-S),
    along which the spread is equal, was below .05 in 3, 12 and 35 % with 0, half and nine tenths of the variance
    between cells; ``p_cell`` in 5 to 7 %.

    Parameters
    ----------
    model : Linearised
        The fit.
    step_residual : array (n,)
        Its residuals, each times the root of its weight.
    """
    import statsmodels.api as sm
    from statsmodels.stats.diagnostic import het_breuschpagan

    axes = model.axes
    squares = step_residual**2
    if len(squares) < FEWEST_ROWS or not axes or squares.mean() == 0:
        return []
    rows: list[dict[str, Any]] = []
    for name, own in [*((name, [x]) for name, x in axes.items()), ("all", list(axes.values()))]:
        design = sm.add_constant(np.stack(own, axis=1) - np.mean(own, axis=1), has_constant="add")
        if (name == "all" and len(own) == 1) or np.linalg.matrix_rank(design) < design.shape[1]:
            continue
        p = float(het_breuschpagan(step_residual, design)[1])
        row: dict[str, Any] = {
            "arch": model.fit.arch,
            "axis": name,
            "p": p if np.isfinite(p) else None,
            "p_cell": None,
            "sd_ratio": None,
        }
        if name != "all":
            trend = sm.OLS(squares / squares.mean(), design)
            if len(model.cells) > 2:
                robust = trend.fit(cov_type="cluster", cov_kwds={"groups": model.cell}, use_t=True)
                row["p_cell"] = float(robust.pvalues[1]) if np.isfinite(robust.pvalues[1]) else None
            fitted = np.maximum(trend.fit().fittedvalues, 0.0)
            ends = np.argmin(own[0]), np.argmax(own[0])
            low, high = (float(np.sqrt(fitted[end])) for end in ends)
            row["sd_ratio"] = high / low if low > 0 else None
        rows.append(row)
    return rows


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """How alike neighbouring horizons of one cell are beyond what the whole cell shares.

    Parameters
    ----------
    correlation : float
        Moran's I of the residuals about the cells, neighbouring horizons linked.
    expected : float
        Its mean if horizons are independent given the cell: below 0, as residuals about a mean must be.
    p : float
        Two-sided, by the exact first two moments under normal errors.
    links : int
        Pairs of neighbouring horizons.
    """

    correlation: float
    expected: float
    p: float
    links: int


def neighbours(model: Linearised) -> Neighbours | None:
    """Test whether neighbouring horizons go together within cells; None where there are too few.

    Branches of one trunk share its history, so neighbours may be more alike than distant horizons. Moran's I of
    regression residuals, with cells and the law's derivatives as regressors (Cliff and Ord 1981, section 8.3).
    """
    from scipy.sparse import coo_array
    from scipy.stats import norm

    if "D" not in model.columns:
        return None
    first, second = _links(model.cell, model.columns["D"])
    n, root = len(model.cell), np.sqrt(model.weight)
    Z = coo_array((root, (np.arange(n), model.cell))).tocsr()
    Z = (
        Z
        @ coo_array(
            (1 / np.sqrt(np.bincount(model.cell, model.weight)), (np.arange(Z.shape[1]),) * 2)
        ).tocsr()
    )
    X = model.basis - Z @ (Z.T @ model.basis)
    left, singular, _ = np.linalg.svd(X, full_matrices=False)
    X = left[:, singular > 1e-8]
    k = Z.shape[1] + X.shape[1]
    if not len(first) or n - k < 2:
        return None
    W = coo_array(
        (np.ones(2 * len(first)), (np.r_[first, second], np.r_[second, first])), shape=(n, n)
    ).tocsr()
    e = root * model.residual
    e = e - Z @ (Z.T @ e) - X @ (X.T @ e)
    if not e @ e > 0:
        return None
    WZ, WX = W @ Z, W @ X
    inner = np.block([[(Z.T @ WZ).toarray(), Z.T @ WX], [X.T @ WZ, X.T @ WX]])
    twice = float((WZ.multiply(WZ)).sum() + np.sum(WX**2))  # tr(Q'W'WQ)
    trace = -float(np.trace(inner))
    square = W.nnz - 2 * twice + float(np.sum(inner * inner.T))
    factor, df = n / W.sum(), n - k
    expected = factor * trace / df
    variance = factor**2 * (2 * square + trace**2) / (df * (df + 2)) - expected**2
    if not variance > 0:
        return None
    value = float(factor * (e @ (W @ e)) / (e @ e))
    z = (value - expected) / np.sqrt(variance)
    return Neighbours(
        correlation=value, expected=float(expected), p=float(2 * norm.sf(abs(z))), links=len(first)
    )


def _links(cell: NDArray[np.intp], D: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of every pair of neighbouring horizons of a cell; repeats of a horizon are no neighbours."""
    order = np.lexsort((D, cell))
    level = np.zeros(len(D), dtype=np.intp)
    for rows in np.split(order, np.flatnonzero(np.diff(cell[order])) + 1):
        level[rows] = level_index(np.log(D[rows]))
    key = cell * (int(level.max(initial=0)) + 2) + level
    pairs: list[tuple[int, int]] = []
    of: dict[int, list[int]] = {}
    for row in order.tolist():
        of.setdefault(int(key[row]), []).append(row)
    for here, rows_here in of.items():
        pairs += [(one, other) for other in of.get(here + 1, ()) for one in rows_here]
    found = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def shape_of(standardised: Array) -> Mapping[str, float | None]:
    """Return skewness, excess kurtosis, and the p value of normality (Shapiro and Wilk 1965) of residuals.

    The test takes rows as independent.

    Examples
    --------
    >>> shape_of(np.array([-2.0, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 2.0]))["skew"]
    0.0
    """
    from scipy.stats import kurtosis, shapiro, skew

    if len(standardised) < FEWEST_ROWS or not np.ptp(standardised) > 0:
        return {"skew": None, "excess_kurtosis": None, "normality_p": None}
    few = len(standardised) <= MOST_ROWS
    return {
        "skew": float(skew(standardised)),
        "excess_kurtosis": float(kurtosis(standardised)),
        "normality_p": float(shapiro(standardised).pvalue) if few else None,
    }


def normal_quantiles(values: Array) -> Array:
    """Return the normal quantile that belongs to the rank of each value: ((rank - 3/8) / (n + 1/4)) (Blom 1958).

    Examples
    --------
    >>> normal_quantiles(np.array([3.0, 1.0, 2.0])).round(3).tolist()
    [0.869, -0.869, 0.0]
    """
    from scipy.stats import norm, rankdata

    return np.asarray(norm.ppf((rankdata(values) - 0.375) / (len(values) + 0.25)))


def axis_rows(model: Linearised, standardised: Array) -> list[dict[str, Any]]:
    """Return the mean and spread of the residuals at each level of each axis."""
    rows: list[dict[str, Any]] = []
    for name, x in model.axes.items():
        level = model.own.tiers if name == "ln(1-S)" else level_index(x)
        for number in np.unique(level):
            at = level == number
            rows.append(
                {
                    "arch": model.fit.arch,
                    "axis": name,
                    "at": float(x[at].mean()),
                    "rows": int(at.sum()),
                    "cells": len(np.unique(model.cell[at])),
                    "residual_log": float(np.average(model.residual[at], weights=model.weight[at])),
                    "sd_standardised": float(np.sqrt(np.mean(standardised[at] ** 2))),
                }
            )
    return rows
