"""Residuals of the target by scale: their mean, its interval by cells, and beside it what endpoints alone would say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._json import finite_or_none
from smelt_scaling.analyses.calibration.cells import (
    FEWEST_CELLS,
    cell_differences,
    clusters,
    compare_cells,
    naive_mean,
)
from smelt_scaling.analyses.calibration.curve import Calibration
from smelt_scaling.analyses.calibration.scores import Scores
from smelt_scaling.resampling import percentile_interval

__all__ = ["Drawn", "residual_rows"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Drawn:
    """Resamples of the target under the resampled curves.

    Parameters
    ----------
    calibration : Calibration
        With its draws.
    weight : array (R, n)
        How often each endpoint of the target counts.
    """

    calibration: Calibration
    weight: Array

    def means(self, one: Scores, rows: Mask) -> Array:
        """Return the mean residual of some endpoints in each resample that holds any of them."""
        draws = self.calibration.draws
        if draws is None:
            return np.empty(0)
        weight = self.weight[:, rows]
        residual = draws.sigmoid.sign * (one.score[rows] - draws.sigmoid.score(one.loss[rows]))
        total = weight.sum(axis=1)
        there = total > 0
        return np.asarray(np.sum(weight * residual, axis=1)[there] / total[there])


def residual_rows(
    one: Scores, other: Scores, found: Calibration, draws: Drawn | None, *, level: float, whole: str
) -> Iterator[dict[str, Any]]:
    """Yield the row of all scales, then one per scale where there are several.

    Tests are of endpoints within the losses of the reference: beyond them a curve errs for all cells alike, which a
    test by cells takes for an effect.

    Parameters
    ----------
    one, other : Scores
        One metric of the target and of the reference.
    found : Calibration
        Of the reference.
    draws : Drawn or None
        Resamples.
    level : float
        Nominal coverage.
    whole : str
        Name of the row of all scales.
    """
    residual, own = found.residual(one.loss, one.score), found.residual(other.loss, other.score)
    low, high = found.window
    outside = (one.loss < low) | (one.loss > high)
    inside = one.select(~outside)
    named = [scale for scale in one.scales if np.any(one.scale == scale)]
    for scale in (whole, *(named if len(named) > 1 else ())):
        rows, theirs = (
            np.ones(len(held), dtype=np.bool_) if scale == whole else held.scale == scale
            for held in (one, other)
        )
        tested = rows & ~outside
        test = compare_cells(residual[tested], one.cell[tested], own[theirs], other.cell[theirs], level)
        enough = len(np.unique(one.cell[rows])) >= FEWEST_CELLS
        drawn = draws.means(one, rows) if draws is not None and enough else np.empty(0)
        ends = percentile_interval(drawn, level) if len(drawn) else None
        naive = naive_mean(residual[rows], level)
        alike = clusters(residual[rows], one.cell[rows])
        trend = _trend(inside, residual[~outside], other, own, named) if scale == whole else (None, None)
        support = _support(one.loss[rows], low, high, str(other.arch[0]))
        yield {
            "scale": scale,
            "n": int(rows.sum()),
            "n_cells": test.cells,
            "residual": float(residual[rows].mean()),
            "residual_lo": None if ends is None else float(ends[0]),
            "residual_hi": None if ends is None else float(ends[1]),
            "difference": finite_or_none(test.estimate),
            "difference_lo": finite_or_none(test.lo),
            "difference_hi": finite_or_none(test.hi),
            "p_cell": finite_or_none(test.p),
            "p_holm": None,
            "trend": trend[0],
            "p_trend": trend[1],
            "residual_naive_lo": finite_or_none(naive[0]),
            "residual_naive_hi": finite_or_none(naive[1]),
            "p_naive": finite_or_none(naive[2]),
            "icc": finite_or_none(alike.icc),
            "design_effect": alike.design_effect,
            "r2": found.r2,
            "r2_isotonic": found.r2_isotonic,
            "n_outside": int(np.sum(outside & rows)),
            "residual_inside": _mean(residual[rows & ~outside]),
            "residual_outside": _mean(residual[rows & outside]),
            "extrapolated": bool(support),
            "support": support,
            "draws": len(drawn),
        }


def _mean(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None


def _support(loss: Array, low: float, high: float, reference: str) -> list[dict[str, Any]]:
    factor = max(low / float(loss.min()), float(loss.max()) / high)
    return [{"code": "out_loss", "arch": reference, "factor": factor}] if factor > 1 else []


def _trend(
    one: Scores, residual: Array, other: Scores, own: Array, scales: list[str]
) -> tuple[float | None, float | None]:
    """Return the change of the difference per step of scale, by cells, and its p; None without enough of them."""
    from scipy.stats import linregress

    differences = cell_differences(residual, one.cell, own, other.cell)
    rank = {
        str(cell): scales.index(str(scale))
        for cell, scale in zip(one.cell, one.scale, strict=True)
        if scale in scales
    }
    known = [cell for cell in differences if cell in rank]
    steps = np.array([rank[cell] for cell in known], dtype=np.float64)
    if len(known) < 4 or len(np.unique(steps)) < 2:
        return None, None
    line = linregress(steps, np.array([differences[cell] for cell in known]))
    return float(line.slope), finite_or_none(line.pvalue)
