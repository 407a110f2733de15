"""Downstream scores of the target, judged by the reference's calibration: residuals, wins, and the curve itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._json import finite_or_none
from smelt_scaling._together import apart
from smelt_scaling.analyses.calibration.cells import FEWEST_CELLS, holm
from smelt_scaling.analyses.calibration.curve import Calibration, calibrate
from smelt_scaling.analyses.calibration.figure import curve_rows, point_rows
from smelt_scaling.analyses.calibration.remarks import (
    calibration_notes,
    few_cells_note,
    gathered,
    table_notes,
)
from smelt_scaling.analyses.calibration.residuals import Drawn, residual_rows
from smelt_scaling.analyses.calibration.scores import Scores
from smelt_scaling.analyses.calibration.wins import difference_rows, win_rows
from smelt_scaling.analyses.few_draws import few_draws_note
from smelt_scaling.analyses.frames import Carried
from smelt_scaling.analyses.pairing import pair_names
from smelt_scaling.errors import DataError, Note, UsageError, merge_notes
from smelt_scaling.resampling import Plan, bootstrap_plan

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ALL", "ASYMPTOTES", "Asymptotes", "downstream"]

Asymptotes = Literal["free", "chance"]
ASYMPTOTES: tuple[Asymptotes, ...] = ("free", "chance")

#: The row of all scales together.
ALL = "all"


def downstream(
    scores: Scores,
    *,
    target: str | None = None,
    reference: str | None = None,
    metrics: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    asymptotes: Asymptotes = "free",
    margin: float = 0.1,
    bootstrap: int = 2000,
    seed: int = 0,
    level: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Compare downstream scores of two architectures at equal loss.

    Each metric is calibrated on the reference: a monotone sigmoid of the loss through its endpoints. The residual of an
    endpoint of the target is how much better it scores than the reference would at that loss. Intervals resample cells
    of both together, and calibrate anew in every resample; p-values are of t tests on cell means.

    Parameters
    ----------
    scores : Scores
        What `read_scores` or ``Scores.from_frame`` returned.
    target, reference : str, optional
        Architectures; as in `ce_gain`.
    metrics, exclude : str or sequence of str
        Take these metrics only; leave these out.
    asymptotes : {"free", "chance"}
        Fit both ends of the sigmoid, or hold them at chance and at 1.
    margin : float
        How far above chance a pair counts in the restricted win counts.
    bootstrap : int
        Resamples; 0 for none.
    seed : int
        Seed of the resampling.
    level : float
        Nominal coverage of the intervals.
    progress : callable, optional
        Called with the number of metrics done and that of all, at the start and after each.

    Returns
    -------
    DataFrame
        One row per metric and scale, ``scale`` "all" first: ``target, reference, metric, scale, n, n_cells, residual,
        residual_lo, residual_hi, difference, difference_lo, difference_hi, p_cell, p_holm, trend, p_trend,
        residual_naive_lo, residual_naive_hi, p_naive, icc, design_effect, r2, r2_isotonic, n_outside, residual_inside,
        residual_outside, extrapolated, support, draws``. ``residual`` is the mean over endpoints, with an interval
        where there are 7 cells or more; ``difference`` the mean over cells against the reference's own residuals, of
        endpoints within the losses of the reference, with the t interval of the p-value.

        ``.attrs`` holds ``notes``, ``settings`` and, as lists of rows, ``calibration`` (the curve of each metric),
        ``wins``, and for figures ``differences`` (each pair of scores), ``points`` and ``curve``.

    Raises
    ------
    UsageError
        For an unknown architecture, metric or option.
    DataError
        If a metric is constant or of one architecture only, or the losses are not comparable.

    Examples
    --------
    >>> from smelt_scaling.analyses.calibration import simulate_scores
    >>> from smelt_scaling.analyses.calibration.sigmoid import Sigmoid
    >>> from smelt_scaling.papers.example import example_endpoints
    >>> truth = {"core": Sigmoid(floor=0.05, span=0.6, slope=4.5, midpoint=1.75, sign=1)}
    >>> table = simulate_scores(example_endpoints(), truth, sd=0.004, excess={"smelt": 0.01})
    >>> found = downstream(Scores.from_frame(table), target="smelt", reference="baseline", bootstrap=0)
    >>> found[["scale", "n", "n_cells"]].values.tolist()
    [['all', 72, 12], ['100M', 18, 3], ['200M', 18, 3], ['600M', 18, 3], ['1.6B', 18, 3]]
    >>> round(float(found["residual"][0]), 4)
    0.0084
    """
    import pandas as pd

    if not isinstance(scores, Scores):
        raise UsageError(
            f"scores of type {type(scores).__name__}: must be Scores; read_scores(path or frame) makes them"
        )
    _check_options(asymptotes, margin, bootstrap, level)
    target, reference, notes = pair_names(scores.archs, target, reference, scores.source)
    scores = _chosen(scores, target, reference, _several(metrics), _several(exclude))
    _require_comparable(scores, target, reference)
    cells = {arch: scores.cell[scores.arch == arch] for arch in (target, reference)}
    notes += table_notes(scores, target, reference, fewest=FEWEST_CELLS)
    drawn = bootstrap > 0 and min(len(np.unique(labels)) for labels in cells.values()) >= FEWEST_CELLS
    plan = bootstrap_plan(cells, replicates=bootstrap, seed=seed) if drawn else None
    rows: list[dict[str, Any]] = []
    of_metrics: list[Note] = []
    further: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("calibration", "wins", "differences", "points", "curve")
    }
    every = scores.metrics
    for number, metric in enumerate(every):
        if progress is not None:
            progress(number, len(every))
        one, other = (
            scores.select((scores.arch == arch) & (scores.metric == metric)) for arch in (target, reference)
        )
        sign = -1 if metric in scores.lower_better else 1
        n_cells = min(len(np.unique(side.cell)) for side in (one, other))
        own_plan = plan if n_cells >= FEWEST_CELLS else None
        if plan is not None and own_plan is None:
            of_metrics.append(few_cells_note(n_cells, FEWEST_CELLS, f"{metric}: "))
        found = calibrate(
            other.loss,
            other.score,
            other.cell,
            sign=sign,
            where=f"{scores.source}: metric {metric} of {reference}",
            level=level,
            weight=None if own_plan is None else _weight(own_plan, reference, other.cell),
            asymptotes=_held(other, metric, sign) if asymptotes == "chance" else None,
        )
        draws = None if own_plan is None else Drawn(found, _weight(own_plan, target, one.cell))
        common = {"target": target, "reference": reference, "metric": metric}
        rows += [common | row for row in residual_rows(one, other, found, draws, level=level, whole=ALL)]
        won, averaged = win_rows(scores, target, reference, metric, margin=margin, level=level, seed=seed)
        further["wins"] += won
        further["differences"] += difference_rows(scores, target, reference, metric)
        further["calibration"].append(
            common | _calibration_row(scores, metric, found, len(np.unique(other.cell)))
        )
        further["points"] += point_rows(one, other, found)
        further["curve"] += curve_rows(metric, one, found, level)
        of_metrics += calibration_notes(metric, found, _pooled(rows, metric), won, averaged)
    if progress is not None:
        progress(len(every), len(every))
    if drawn:
        notes += few_draws_note(bootstrap, level)
    _adjust(rows)
    frame = pd.DataFrame(rows)
    frame.attrs = {
        "notes": [note.to_dict() for note in merge_notes(scores.notes, notes, gathered(of_metrics))],
        "settings": {
            "target": target,
            "reference": reference,
            "unit": scores.unit,
            "asymptotes": asymptotes,
            "margin": margin,
            "bootstrap": bootstrap if drawn else 0,
            "seed": seed,
            "level": level,
            "loss_unit": scores.loss_unit,
            "units": {metric: scores.units[metric] for metric in scores.metrics},
            "lower_better": sorted(scores.lower_better & set(scores.metrics)),
        },
        **{name: Carried(held) for name, held in further.items()},
    }
    return frame


def _several(names: str | Sequence[str]) -> Sequence[str]:
    return (names,) if isinstance(names, str) else names


def _pooled(rows: list[dict[str, Any]], metric: str) -> dict[str, Any]:
    return next(row for row in rows if row["metric"] == metric and row["scale"] == ALL)


def _check_options(asymptotes: str, margin: float, bootstrap: int, level: float) -> None:
    if asymptotes not in ASYMPTOTES:
        raise UsageError(f"asymptotes {asymptotes!r} is unknown; choose from {', '.join(ASYMPTOTES)}")
    if not 0 <= margin < 1:
        raise UsageError(f"margin {margin:g}: how far above chance, a fraction in [0, 1) such as 0.1")
    if bootstrap < 0:
        raise UsageError(f"bootstrap {bootstrap}: a number of resamples, 0 for none")
    if not 0 < level < 1:
        raise UsageError(f"level {level}: must lie between 0 and 1, such as 0.95")


def _chosen(
    scores: Scores, target: str, reference: str, metrics: Sequence[str], exclude: Sequence[str]
) -> Scores:
    """Return the rows of the two architectures and of the metrics asked for, each with rows of both."""
    for name in (*metrics, *exclude):
        if name not in scores.metrics:
            raise UsageError(f"metric {name!r} is not there; choose from {', '.join(scores.metrics)}")
    wanted = [m for m in metrics or scores.metrics if m not in exclude]
    if not wanted:
        raise UsageError("no metric is left; name one with --metric")
    scores = scores.select(np.isin(scores.arch, (target, reference)) & np.isin(scores.metric, wanted))
    lone: dict[str, list[str]] = {}
    for arch, absent in ((target, reference), (reference, target)):
        own, other = (set(scores.metric[scores.arch == name].tolist()) for name in (arch, absent))
        lone |= {arch: sorted(own - other)} if own - other else {}
    if lone:
        lines = [
            f"{scores.source}: metric {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}: scores of {arch} "
            f"only: a comparison needs both; add those of {reference if arch == target else target}, or leave it "
            "out with --exclude-metric"
            for arch, names in lone.items()
        ]
        raise DataError("\n".join(lines))
    return scores


def _require_comparable(scores: Scores, target: str, reference: str) -> None:
    one, other = scores.measured_on[target], scores.measured_on[reference]
    for name in apart(one, other):
        here, there = ("+".join(named.get(name, ("unnamed",))) for named in (one, other))
        raise DataError(
            f"{scores.source}: column {name} differs: {here} for {target}, {there} for {reference}: equal losses would "
            "not be equal; evaluate both alike, or give both losses in bits per byte"
        )


def _weight(plan: Plan, arch: str, cell: NDArray[np.str_]) -> NDArray[np.float64]:
    """Return how often each row counts in each resample."""
    column = np.searchsorted(np.array(plan.labels[arch]), cell)
    return plan.counts[arch][:, column].astype(np.float64)


def _held(scores: Scores, metric: str, sign: int) -> tuple[float, float]:
    chance = scores.chance[~np.isnan(scores.chance)]
    if not len(chance) or sign < 0 or scores.units[metric] not in ("fraction", "percent"):
        raise DataError(
            f"{scores.source}: metric {metric}: no chance to hold the lower end at; add a column chance (--map "
            "chance=COLUMN), or leave --asymptotes free"
        )
    return float(chance[0]), 1.0


def _calibration_row(scores: Scores, metric: str, found: Calibration, n_cells: int) -> dict[str, Any]:
    sigmoid = found.fitted.sigmoid
    floor, ceiling = sigmoid.asymptotes
    bounds = ("floor", "span", "slope", "midpoint")
    return {
        "better": "lower" if metric in scores.lower_better else "higher",
        "unit": "ln ppl"
        if scores.units[metric] == "ppl"
        else scores.units[metric].replace("percent", "fraction"),
        "n": len(found.loss),
        "n_cells": n_cells,
        "r2": found.r2,
        "r2_isotonic": found.r2_isotonic,
        "floor": float(floor[0]),
        "floor_lo": finite_or_none(found.floor_profile[0]),
        "floor_hi": finite_or_none(found.floor_profile[1]),
        "ceiling": float(ceiling[0]),
        "ceiling_lo": finite_or_none(found.ceiling_profile[0]),
        "ceiling_hi": finite_or_none(found.ceiling_profile[1]),
        "slope": float(np.asarray(sigmoid.slope)[0]),
        "midpoint": float(np.asarray(sigmoid.midpoint)[0]),
        "covered": found.covered,
        "loss_lo": found.window[0],
        "loss_hi": found.window[1],
        "at_bounds": [name for name, on in zip(bounds, found.fitted.at_bound[0], strict=True) if on],
        "starts_agreeing": found.starts_agreeing,
        "converged_share": None if found.draws is None else float(found.draws.converged.mean()),
    }


def _adjust(rows: list[dict[str, Any]]) -> None:
    """Add Holm's adjustment: metrics are one family, and metrics by scales another."""
    for whole in (True, False):
        family = [row for row in rows if (row["scale"] == ALL) == whole]
        raw = np.array([np.nan if row["p_cell"] is None else row["p_cell"] for row in family])
        for row, adjusted in zip(family, holm(raw).tolist(), strict=True):
            row["p_holm"] = finite_or_none(adjusted)
