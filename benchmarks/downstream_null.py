"""How often tests of downstream scores at equal loss find something where nothing is.

Simulated from a stated truth: both architectures score by one sigmoid of their true loss; cells of each architecture
have luck of their own. The example's design: 12 cells by 6 horizons per architecture.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.recorder import table

TITLE = "Downstream scores where nothing is to be found"
Array = NDArray[np.float64]

WORLDS = 1000
SHARES = (0.0, 0.5, 0.9)
#: Noise of a score, a fraction, and of a loss, nats/token.
SD, LOSS_SD = 0.009, 0.003
COVERED = {"share": 0.5, "worlds": 200, "resamples": 400}


def truth() -> Any:
    """Return the sigmoid that both architectures follow."""
    from smelt_scaling.analyses.calibration.sigmoid import Sigmoid

    return Sigmoid(floor=0.05, span=0.6, slope=4.5, midpoint=1.75, sign=1)


def design() -> tuple[Array, Array, NDArray[np.str_]]:
    """Return the noise-free losses of reference and target, and the cell of each row, in the same order."""
    from smelt_scaling.papers import load_paper
    from smelt_scaling.papers.example import example_endpoints

    surfaces, runs = load_paper("smelt").surfaces, example_endpoints().by_arch()
    losses = [
        surfaces[arch].loss(F=runs[arch].F, S=runs[arch]["S"], D=runs[arch].D)
        for arch in ("baseline", "smelt")
    ]
    cells = [runs[arch]["cell"] for arch in ("baseline", "smelt")]
    assert np.array_equal(cells[0], cells[1])
    return losses[0], losses[1], cells[0]


def worlds(
    count: int, share: float, seed: int, lower: float = 0.0
) -> tuple[Array, Array, Array, Array, NDArray[np.str_]]:
    """Draw losses and scores (count, n) of reference and target without any effect, the target's losses lower."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    reference, target, cell = design()
    target = target - lower
    labels, index = np.unique(cell, return_inverse=True)
    drawn = []
    for loss in (reference, target):
        luck = np.sqrt(share) * rng.standard_normal((count, len(labels)))[:, index]
        noise = SD * (luck + np.sqrt(1 - share) * rng.standard_normal((count, len(loss))))
        drawn += [loss + LOSS_SD * rng.standard_normal((count, len(loss))), truth().score(loss) + noise]
    return drawn[0], drawn[1], drawn[2], drawn[3], cell


def rejections(count: int, share: float, seed: int = 0, lower: float = 0.0) -> dict[str, float]:
    """Return the share of worlds in which each test rejects at a nominal 5 %."""
    from scipy.stats import binomtest, ttest_1samp

    from smelt_scaling.analyses.calibration.cells import compare_cells, flip_test, naive_mean
    from smelt_scaling.analyses.calibration.sigmoid import fit_sigmoid, refit_sigmoid

    x, y, x_target, y_target, cell = worlds(count, share, seed, lower)
    start = fit_sigmoid(x[0], y[0], 1)[0].theta[0]
    curves = refit_sigmoid(x, y, 1, np.ones_like(x), start).sigmoid
    own, residual = y - _at(curves, x), y_target - _at(curves, x_target)
    _, index, sizes = np.unique(cell, return_inverse=True, return_counts=True)
    found: dict[str, list[float]] = {name: [] for name in ("naive", "cells", "every", "sign", "wins", "flip")}
    for i in range(count):
        found["naive"].append(naive_mean(residual[i], 0.95)[2])
        inside = (x_target[i] >= x[i].min()) & (x_target[i] <= x[i].max())
        found["cells"].append(compare_cells(residual[i][inside], cell[inside], own[i], cell).p)
        found["every"].append(compare_cells(residual[i], cell, own[i], cell).p)
        differences = y_target[i] - y[i] - (truth().score(x_target[i]) - truth().score(x[i]))
        won = differences > 0
        found["sign"].append(float(binomtest(int(won.sum()), len(won)).pvalue))
        shares = np.bincount(index, won) / sizes
        found["wins"].append(float(ttest_1samp(shares, 0.5).pvalue) if np.ptp(shares) > 0 else 1.0)
        found["flip"].append(flip_test(np.bincount(index, differences) / sizes))
    return {name: float(np.mean(np.array(p) < 0.05)) for name, p in found.items()}


def _at(curves: Any, loss: Array) -> Array:
    """Return the score of each world's own curve at its own losses."""
    z = curves.slope[:, None] * (loss - curves.midpoint[:, None])
    return np.asarray(curves.floor[:, None] + curves.span[:, None] * 0.5 * (1 - np.tanh(0.5 * z)))


def coverage(share: float, count: int, resamples: int, seed: int = 1) -> dict[str, float]:
    """Return how often 95 % intervals of the pooled residual hold 0: by cells and calibrated anew, and naive."""
    from smelt_scaling.analyses.calibration.cells import naive_mean
    from smelt_scaling.analyses.calibration.sigmoid import fit_sigmoid, refit_sigmoid
    from smelt_scaling.resampling import bootstrap_plan, percentile_interval

    x, y, x_target, y_target, cell = worlds(count, share, seed)
    labels = np.unique(cell)
    held, naive = 0, 0
    for i in range(count):
        plan = bootstrap_plan({"a": cell, "b": cell}, replicates=resamples, seed=i)
        weight = plan.counts["a"][:, np.searchsorted(labels, cell)].astype(float)
        fitted = fit_sigmoid(x[i], y[i], 1)[0]
        draws = refit_sigmoid(x[i], y[i], 1, weight, fitted.theta[0]).sigmoid
        means = np.average(y_target[i] - draws.score(x_target[i]), axis=1, weights=weight)
        ends = percentile_interval(means, 0.95)
        assert ends is not None
        held += bool(ends[0] <= 0 <= ends[1])
        lo, hi, _ = naive_mean(y_target[i] - fitted.sigmoid.score(x_target[i])[0], 0.95)
        naive += bool(lo <= 0 <= hi)
    return {"cells": held / count, "naive": naive / count}


def measure(count: int = WORLDS, covered: dict[str, Any] | None = None) -> dict[str, Any]:
    """Measure every share of the cell noise."""
    covered = covered or COVERED
    return {
        "worlds": count,
        "rows": [{"share": share, **rejections(count, share)} for share in SHARES],
        "covered": {**covered, **coverage(covered["share"], covered["worlds"], covered["resamples"])},
    }


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    covered = values["covered"]
    rows = [
        [f"{row['share']:.0%}", *(f"{row[name]:.1%}" for name in ("naive", "cells", "sign", "wins", "flip"))]
        for row in values["rows"]
    ]
    error = 1.96 * np.sqrt(0.05 * 0.95 / values["worlds"])
    return "\n".join(
        [
            f"Both architectures score by one sigmoid of the loss: there is no effect. {values['worlds']} simulated "
            "worlds per row, the example's 12 cells by 6 horizons; cells of each architecture share the given part of "
            "the noise (wins are counted after the known effect of the loss is taken off). Share of worlds in which a "
            f"test at a nominal 5 % rejects; a true 5.0% shows as 5.0% ± {error:.1%}:",
            "",
            table(
                [
                    "noise shared by a cell",
                    "pooled residual, endpoints as independent",
                    "pooled residual, by cells",
                    "wins, binomial sign test",
                    "wins, t on cells",
                    "wins, sign flips of cells",
                ],
                rows,
            ),
            "",
            f"95 % intervals of the pooled residual at {covered['share']:.0%}, {covered['worlds']} worlds, "
            f"{covered['resamples']} resamples: by cells, calibrated anew in each, {covered['cells']:.1%} hold the "
            f"truth; naive ones {covered['naive']:.1%}.",
        ]
    )
