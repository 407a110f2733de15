"""What a figure of the calibration shows: the endpoints with their residuals, and the curve with its band."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt_scaling.analyses.calibration.curve import Calibration
from smelt_scaling.analyses.calibration.scores import Scores
from smelt_scaling.resampling import percentile_interval

__all__ = ["curve_rows", "point_rows"]

#: Losses at which the curve is written.
POINTS = 61


def point_rows(one: Scores, other: Scores, found: Calibration) -> list[dict[str, Any]]:
    """Return one row per endpoint of both architectures."""
    low, high = found.window
    rows = []
    for held in (one, other):
        residual = found.residual(held.loss, held.score)
        for i in range(len(held)):
            rows.append(
                {
                    "metric": str(held.metric[i]),
                    "arch": str(held.arch[i]),
                    "scale": str(held.scale[i]),
                    "cell": str(held.cell[i]),
                    "horizon": str(held.horizon[i]),
                    "loss": float(held.loss[i]),
                    "score": float(held.score[i]),
                    "residual": float(residual[i]),
                    "outside": not low <= held.loss[i] <= high,
                }
            )
    return rows


def curve_rows(metric: str, one: Scores, found: Calibration, level: float) -> list[dict[str, Any]]:
    """Return the curve over the losses of both architectures, with the band of its resamples."""
    low, high = found.window
    losses = np.linspace(min(low, float(one.loss.min())), max(high, float(one.loss.max())), POINTS)
    score = found.fitted.sigmoid.score(losses)[0]
    ends = None if found.draws is None else percentile_interval(found.draws.sigmoid.score(losses), level)
    return [
        {
            "metric": metric,
            "loss": float(loss),
            "score": float(score[i]),
            "score_lo": None if ends is None else float(ends[0][i]),
            "score_hi": None if ends is None else float(ends[1][i]),
        }
        for i, loss in enumerate(losses)
    ]
