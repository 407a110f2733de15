"""What figures draw: gains and optima along many budgets, a surface on a grid, residuals of every endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.allocation import allocate
from smelt_scaling.analyses.frames import finish_frame
from smelt_scaling.analyses.gain import ce_gain
from smelt_scaling.analyses.side import IntervalKind, Side
from smelt_scaling.analyses.view import View, common_window, view_of
from smelt_scaling.endpoints import default_sparsities
from smelt_scaling.errors import FrontierError, UsageError
from smelt_scaling.fitting import frontier_columns
from smelt_scaling.papers import Paper
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["curve_budgets", "frontier_curve", "gain_curve", "residual_rows", "surface_grid"]

Array = NDArray[np.float64]

#: A curve goes so far beyond the runs on either side, as a factor, and has so many points.
BEYOND, POINTS = 10.0, 61
#: Points of a surface along size and along tokens.
GRID = (61, 61)


def curve_budgets(source: Study | Paper, named: Sequence[float] = (), points: int = POINTS) -> Array:
    """Return budgets from a tenth of the runs of all architectures to ten times them, spaced evenly in the logarithm.

    Where no range of the runs is known, they lie between the budgets that are named.

    Raises
    ------
    UsageError
        If the runs have no budget in common and none is known.
    """
    window = common_window(view_of(source).sides.values())
    if window is None:
        if len(set(named)) > 1:
            return np.geomspace(min(named), max(named), points)
        raise UsageError("no range of budgets is known, so no curve can be drawn; state C_lo and C_hi")
    low, high = min(window), max(window)
    return np.geomspace(low / BEYOND, high * BEYOND, points)


def gain_curve(
    source: Study | Paper,
    *,
    named: Sequence[float] = (),
    target: str | None = None,
    reference: str | None = None,
    level: float = 0.95,
    interval: IntervalKind = "percentile",
) -> pd.DataFrame:
    """Return `ce_gain` along `curve_budgets`: the bands of a curve are simultaneous over all of its budgets."""
    return ce_gain(
        source,
        curve_budgets(source, named),
        target=target,
        reference=reference,
        level=level,
        interval=interval,
    )


def frontier_curve(
    source: Study | Paper,
    *,
    named: Sequence[float] = (),
    level: float = 0.95,
    interval: IntervalKind = "percentile",
) -> pd.DataFrame:
    """Return `allocate` along `curve_budgets`."""
    return allocate(source, curve_budgets(source, named), level=level, interval=interval)


def residual_rows(study: Study) -> pd.DataFrame:
    """Return every endpoint with its prediction.

    Parameters
    ----------
    study : Study
        Fitted architectures.

    Returns
    -------
    DataFrame
        One row per endpoint: ``arch, cell, loss, predicted, residual_log`` (ln predicted - ln loss), the law's columns,
        ``F, D, C`` where they are known, and ``sparsity``, the default one of its tier.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> frame = residual_rows(fit(example_endpoints(), bootstrap=0))
    >>> len(frame), bool(abs(frame["residual_log"]).max() < 0.02)
    (144, True)
    """
    endpoints = study.endpoints
    labels, _ = endpoints.cells(study.bootstrap.unit)
    tiers = default_sparsities(endpoints) if "S" in study.law.columns else None
    rows: list[dict[str, Any]] = []
    for arch, own in endpoints.by_arch().items():
        surface = study[arch].surface
        known = frontier_columns(study.law, own, study.settings.flops_per_param)
        columns = {name: own[name] if name in own else known[name] for name in study.law.columns}
        predicted = surface.loss(**columns)
        cell = labels[endpoints.arch == arch]
        for i, loss in enumerate(own.loss.tolist()):
            rows.append(
                {
                    "arch": arch,
                    "cell": str(cell[i]),
                    "loss": loss,
                    "predicted": float(predicted[i]),
                    "residual_log": float(np.log(predicted[i]) - np.log(loss)),
                    **{name: float(values[i]) for name, values in columns.items()},
                    # as the frontier counts them: from N for a law in N
                    **{name: float(known[name][i]) if name in known else None for name in ("F", "D", "C")},
                    "sparsity": None if tiers is None else float(tiers[own.tiers[i]]),
                }
            )
    return finish_frame(rows, view_of(study), (), level=0.95, interval="percentile")


def surface_grid(study: Study | Paper, arch: str, sparsity: float | None) -> pd.DataFrame:
    """Return the loss of one architecture on a grid of sizes and tokens, half a decade beyond its runs.

    Where of the runs only their budgets are known, as of a paper, the grid is about the optima of those budgets.

    Parameters
    ----------
    study : Study or Paper
        Where the surface comes from.
    arch : str
        Architecture.
    sparsity : float or None
        At which it is evaluated.

    Returns
    -------
    DataFrame
        ``arch, F, D, C, loss``: F by D, D the faster. ``.attrs["curve"]`` is the frontier: rows of ``budget, F, D``.

    Raises
    ------
    FrontierError
        If the law is no function of size and tokens, or their ranges are not known.
    """
    view = view_of(study)
    side = view.side(arch)
    if "D" not in view.law.columns or not ({"F", "D"} <= side.window.keys() or "C" in side.window):
        raise FrontierError(f"{arch}: no surface to draw: the law or the runs have no F and D")
    edge = np.sqrt(10.0)
    F, D = (  # noqa: N806  # the field's names
        np.geomspace(low / edge, high * edge, count)
        for (low, high), count in zip(_ranges(view, side, sparsity), GRID, strict=True)
    )
    size, tokens = (grid.ravel() for grid in np.meshgrid(F, D, indexing="ij"))
    columns: dict[str, Any] = {"D": tokens, "F": size, "C": size * tokens}
    columns |= dict.fromkeys(("N", "N_act"), size / view.flops_per_param)
    if sparsity is not None:
        columns["S"] = np.full(len(size), sparsity)
    loss = side.surface.loss(**{name: columns[name] for name in view.law.columns})
    budgets = np.geomspace(F[0] * D[0], F[-1] * D[-1], 200)
    at = None if sparsity is None else np.full(len(budgets), sparsity)
    best = view.frontier(side.surface).allocate(budgets, at)
    rows = [
        {"arch": arch, "F": f, "D": d, "C": f * d, "loss": value}
        for f, d, value in zip(size.tolist(), tokens.tolist(), loss.tolist(), strict=True)
    ]
    frame = finish_frame(rows, view, (), level=0.95, interval="percentile", arch=arch, sparsity=sparsity)
    frame.attrs["curve"] = [
        {"budget": c, "F": f, "D": c / f}
        for c, f in zip(budgets.tolist(), np.asarray(best.flops_per_token).tolist(), strict=True)
    ]
    return frame


def _ranges(
    view: View, side: Side, sparsity: float | None
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the range of F and of D: of the runs, or of the optima of their budgets."""
    if "F" in side.window and "D" in side.window:
        return side.window["F"], side.window["D"]
    budgets = np.array(side.window["C"])
    at = None if sparsity is None else np.full(2, sparsity)
    size = np.asarray(view.frontier(side.surface).allocate(budgets, at).flops_per_token)
    F, D = size.tolist(), (budgets / size).tolist()  # noqa: N806  # the field's names
    return (min(F), max(F)), (min(D), max(D))
