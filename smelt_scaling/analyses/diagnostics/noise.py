"""What the residuals of a study are made of: cell effects, run noise, what pairs share, and what looks wrong."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.anova import Anova, analysis_of_variance
from smelt_scaling.analyses.diagnostics.covariance import standard_errors
from smelt_scaling.analyses.diagnostics.headline import headline_settings
from smelt_scaling.analyses.diagnostics.noise_tests import (
    axis_rows,
    neighbours,
    normal_quantiles,
    shape_of,
    spread_rows,
)
from smelt_scaling.analyses.diagnostics.shared_noise import pair_row
from smelt_scaling.analyses.frames import Carried, finish_frame, with_nones
from smelt_scaling.analyses.linear_problem import Linearised, linearised
from smelt_scaling.analyses.variance import Components, variance_components
from smelt_scaling.analyses.view import view_of
from smelt_scaling.errors import UsageError
from smelt_scaling.fitting.residuals import repeats_of, resolution
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["noise_anatomy"]

Array = NDArray[np.float64]


def noise_anatomy(
    study: Study,
    *,
    target: str | None = None,
    reference: str | None = None,
    budget: float | None = None,
    sparsity: float | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Take the residuals of every architecture apart.

    All is computed on the fit linearised at its optimum, in logarithms of the loss: 0.002 is 0.2 % of the loss. A cell
    is what the study resampled.

    Parameters
    ----------
    study : Study
        Fitted architectures.
    target, reference, budget, sparsity
        The gain that the diagnosis is about; carried into the settings.
    level : float
        Of all intervals.

    Returns
    -------
    DataFrame
        One row per architecture: ``arch, endpoints, cells, unit``; restricted maximum likelihood ``sd_between,
        sd_within, sd_total, icc, icc_lo, icc_hi, status, reason``; analysis of variance beside it
        (``sd_between_anova, sd_within_anova, icc_anova, cells_p``) with ``cells_left``, as how many cells the effects
        scatter once the law has taken its coefficients; repeated settings (``seed_sd`` in the unit of the loss,
        ``seed_settings, seed_rows``) beside ``rmse``; neighbouring horizons (``horizon_correlation,
        horizon_expected, horizon_p, horizon_pairs``); ``spread_p, spread_axis`` (least cell-robust p of unequal
        spread, times the axes looked at); ``skew, excess_kurtosis, normality_p``; ``linear_zone_share, resolution``
        (step of the losses). None where there is nothing to estimate.

        ``.attrs`` holds ``notes``, ``settings`` and further rows: ``pairs`` (what two architectures share), ``tests``
        (spread by axis), ``axes`` (residuals by level of each axis), ``errors`` (cluster-robust, linearised standard
        errors of the coefficients) and ``panel`` (one row per endpoint, for figures).

    Raises
    ------
    UsageError
        If ``study`` is none, or a name is unknown.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> found = noise_anatomy(fit(example_endpoints(), bootstrap=0))
    >>> found[["arch", "sd_between", "sd_within", "icc"]].round(4).values.tolist()
    [['baseline', 0.0025, 0.0022, 0.5533], ['smelt', 0.003, 0.0035, 0.4181]]
    """
    if not isinstance(study, Study):
        raise UsageError(
            f"source of type {type(study).__name__}: its noise needs runs; fit(endpoints) makes a study of them"
        )
    if not 0 < level < 1:
        raise UsageError(f"level {level}: must lie between 0 and 1, such as 0.95")
    settings, notes = headline_settings(study, target, reference, budget, sparsity)
    models = {arch: linearised(study, arch) for arch in study.archs}
    rows: list[dict[str, Any]] = []
    carried: dict[str, list[dict[str, Any]]] = {
        "pairs": [],
        "tests": [],
        "axes": [],
        "errors": [],
        "panel": [],
    }
    parts: dict[str, Components] = {}
    for arch, model in models.items():
        data = (model.residual, model.basis, model.cell, model.weight)
        parts[arch] = found = variance_components(*data, level=level)
        table = analysis_of_variance(*data)
        standard = _standardised(model, found, table)
        after_step = np.sqrt(model.weight) * model.residual
        after_step = after_step - model.basis @ (model.basis.T @ after_step)
        tests = spread_rows(model, after_step)
        rows.append(_row(study, model, found, table, tests, standard))
        carried["tests"] += tests
        carried["axes"] += axis_rows(model, standard)
        carried["errors"] += standard_errors(model, level)
        carried["panel"] += _panel(model, found, standard)
    for one, other in combinations(models, 2):
        carried["pairs"].append(pair_row(models[one], models[other], parts[one], parts[other], level))
    frame = finish_frame(rows, view_of(study), notes, level=level, interval="percentile", **settings)
    frame = with_nones(frame)
    frame.attrs |= {name: Carried(own) for name, own in carried.items()}
    return frame


def _row(
    study: Study,
    model: Linearised,
    found: Components,
    table: Anova,
    tests: list[dict[str, Any]],
    standard: Array,
) -> dict[str, Any]:
    repeats, near, fit = repeats_of(model.own), neighbours(model), model.fit
    known = found.sd_between is not None and found.sd_within is not None
    total = float(np.hypot(found.sd_between or 0.0, found.sd_within or 0.0)) if known else table.sd_total
    by_axis = [test for test in tests if test["p_cell"] is not None]
    least = min(by_axis, key=lambda test: float(test["p_cell"]), default=None)
    step = resolution(model.own.loss)
    return {
        "arch": fit.arch,
        "endpoints": len(model.residual),
        "cells": len(model.cells),
        "unit": study.bootstrap.unit,
        "sd_between": found.sd_between,
        "sd_within": found.sd_within,
        "sd_total": total,
        "icc": found.icc,
        "icc_lo": found.icc_lo,
        "icc_hi": found.icc_hi,
        "status": found.status,
        "reason": found.reason,
        "sd_between_anova": table.sd_between,
        "sd_within_anova": table.sd_within,
        "icc_anova": table.icc,
        "cells_p": table.p,
        "cells_left": table.cells_left,
        "rmse": fit.rmse,
        "seed_sd": None if repeats is None else repeats.sd,
        "seed_settings": 0 if repeats is None else repeats.settings,
        "seed_rows": 0 if repeats is None else repeats.rows,
        "horizon_correlation": None if near is None else near.correlation,
        "horizon_expected": None if near is None else near.expected,
        "horizon_p": None if near is None else near.p,
        "horizon_pairs": 0 if near is None else near.links,
        "spread_p": None if least is None else min(1.0, float(least["p_cell"]) * len(by_axis)),
        "spread_axis": "" if least is None else least["axis"],
        **shape_of(standard),
        "linear_zone_share": fit.certificate.linear_zone_share,
        "resolution": step or None,
    }


def _standardised(model: Linearised, found: Components, table: Anova) -> Array:
    """Return residuals over their standard deviation, which the fit makes smaller at rows that it leans on."""
    leverage = np.minimum(np.sum(model.basis**2, axis=1), 1 - 1e-9)
    if found.sd_between is None or found.sd_within is None:
        sd = np.full(len(leverage), table.sd_total or 0.0) / np.sqrt(model.weight)
    else:
        sd = np.sqrt(found.sd_between**2 + found.sd_within**2 / model.weight)
    sd = sd * np.sqrt(1 - leverage)
    return np.asarray(np.divide(model.residual, sd, out=np.zeros_like(sd), where=sd > 0))


def _panel(model: Linearised, found: Components, standard: Array) -> list[dict[str, Any]]:
    """Return one row per endpoint: where it lies, what was fitted, and its residual in three forms."""
    quantile = normal_quantiles(standard)
    fitted = model.problem.predicted(model.theta)
    return [
        {
            "arch": model.fit.arch,
            "row": i,
            "cell": str(model.label[i]),
            **{name: float(x[i]) for name, x in model.axes.items()},
            "fitted": float(fitted[i]),
            "residual_log": float(model.residual[i]),
            "standardised": float(standard[i]),
            "normal_quantile": float(quantile[i]),
            "cell_effect": float(found.effects[model.cell[i]]),
        }
        for i in range(len(fitted))
    ]
