"""How the gap between two architectures grows with the number of in-context examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted
from smelt_scaling.analyses.few_draws import few_draws_note
from smelt_scaling.analyses.measured import TableLike, frame_of
from smelt_scaling.analyses.shot_table import Pair, Task, listed, read_tasks
from smelt_scaling.errors import Note, UsageError, info, warning
from smelt_scaling.resampling import bootstrap_plan, percentile_interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["shot_gaps"]

Array = NDArray[np.float64]

#: Scores of both architectures this close to a guess say nothing of their difference.
FLOOR = 0.01

#: Percentiles of draws of fewer labels than this are too short: with four they cover about 81 % of what cells scatter,
#: with two about half.
FEW_CELLS = FEW_TASKS = 6


def shot_gaps(
    table: TableLike,
    *,
    target: str | None = None,
    reference: str | None = None,
    shots: int | Sequence[int] | None = None,
    drop_incomplete: bool = False,
    level: float = 0.95,
    bootstrap: int = 2000,
    seed: int = 0,
    mapping: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Tabulate the gap between two architectures against the number k of in-context examples.

    gap(k) is the mean over tasks of the mean over cells (and items) of target minus reference, the same tasks at every
    k; each metric (exact match, multiple choice) stands apart.

    Parameters
    ----------
    table : path, "-" or data frame
        One row per (arch, metric, task, cell, horizon, item, k): ``score`` in [0, 1], ``n_items`` (or ``item``).
    target, reference : str, optional
        Architectures.
    shots : int or sequence of int, optional
        The k to use; all by default.
    drop_incomplete : bool
        Leave out tasks that lack some k; refused otherwise.
    level : float
        Nominal coverage.
    bootstrap, seed : int
        Draws of tasks, of cells and of items within their task, each independent of the others; 0 for none.
    mapping, units : mapping of str to str, optional
        Column of the table for those with another name; ``{"score": "percent"}``.

    Returns
    -------
    DataFrame
        ``metric, k, tasks, cells, n_items, reference_score, target_score, gap, gap_lo, gap_hi, item_se``; fractions.
        ``.attrs["changes"]`` holds per metric the jump gap(1) - gap(0), the saturation gap(largest k) - gap(1) and the
        slope of the gap on log2 k over k >= 1, and ``["tasks"]`` the gap of each task.

    Raises
    ------
    DataError, UsageError
        One line per problem of the table or of an option.

    Notes
    -----
    Everything is a difference within tasks and cells, so the draws are paired. Draws of both ways count the scatter of
    single scores more than once (Owen 2007, Ann. Appl. Stat. 1, 386), and few cells less than they scatter. The slope
    is the mean of the slopes of the tasks, which at equal k for all is the estimate with a random effect of each task.
    No interval is given where the number of items is not known.

    Examples
    --------
    >>> rows = [
    ...     {"arch": a, "task": t, "k": k, "score": s + g * (1 + k) * (a == "b"), "n_items": 1000}
    ...     for a in "ab" for t, s in [("x", 0.3), ("y", 0.5)] for k, g in [(0, 0.01), (1, 0.01)]
    ... ]
    >>> frame = shot_gaps(rows, target="b", reference="a")
    >>> frame["gap"].round(3).tolist(), round(frame.attrs["changes"][0]["change"], 3)
    ([0.01, 0.02], 0.01)
    """
    if not 0 < level < 1:
        raise UsageError(f"level {level}: must lie between 0 and 1, such as 0.95")
    if bootstrap < 0:
        raise UsageError(f"bootstrap {bootstrap}: a number of draws, such as 2000, or 0 for none")
    shots = [shots] if isinstance(shots, int) else shots
    metrics, pair, notes, source = read_tasks(
        table,
        mapping=mapping,
        units=units,
        target=target,
        reference=reference,
        shots=shots,
        drop_incomplete=drop_incomplete,
    )
    rows: list[dict[str, Any]] = []
    changes: list[dict[str, Any]] = []
    by_task: list[dict[str, Any]] = []
    for metric, (ks, tasks) in metrics.items():
        known = all(task.n_items is not None for task in tasks)
        draws = _draws(tasks, bootstrap, seed) if bootstrap and known else None
        notes += _remarks(metric, ks, tasks, pair, known) + (
            few_draws_note(bootstrap, level) if known else []
        )
        rows += _gap_rows(metric, ks, tasks, draws, level)
        changes += _changes(metric, ks, tasks, draws, level)
        by_task += [row for task in tasks for row in _task_rows(metric, ks, task)]
    settings = {
        "target": pair.target,
        "reference": pair.reference,
        "shots": [] if shots is None else list(shots),
        "level": level,
        "bootstrap": bootstrap,
        "seed": seed,
        "resampled": _resampled(metrics),
        "source": source,
    }
    return frame_of(rows, notes, settings, changes=changes, tasks=by_task)


def _resampled(metrics: Mapping[str, tuple[Array, list[Task]]]) -> list[str]:
    """Name what draws are of: tasks and cells, and the items of those tasks that have them."""
    items = any(len(task.items) > 1 for _, tasks in metrics.values() for task in tasks)
    return ["tasks", "cells", *(["items"] if items else [])]


def _draws(tasks: Sequence[Task], replicates: int, seed: int) -> Array | None:
    """Return the mean gap of every draw, (R, K).

    None for one task without its items: cells are scored on the same items, whose noise draws of cells do not hold.
    """
    if len(tasks) == 1 and len(tasks[0].items) == 1:
        return None
    labels = {
        "tasks": np.array([f"task {task.name}" for task in tasks]),
        "cells": np.array(sorted({f"cell {cell}" for task in tasks for cell in task.cells})),
        **{
            f"items {task.name}": np.array([f"item {task.name} {item}" for item in task.items])
            for task in tasks
            if len(task.items) > 1
        },
    }
    plan = bootstrap_plan(labels, replicates=replicates, seed=seed)
    column = {label: j for j, label in enumerate(plan.labels["tasks"])}
    cells = {label: j for j, label in enumerate(plan.labels["cells"])}
    total = np.zeros((replicates, len(tasks[0].reference)))
    weight = np.zeros((replicates, 1))
    for task in tasks:
        gap = task.target - task.reference
        chosen = plan.counts["cells"][:, [cells[f"cell {cell}"] for cell in task.cells]].astype(np.float64)
        items = plan.counts.get(f"items {task.name}", np.ones((replicates, 1))).astype(np.float64)
        there = np.isfinite(gap)
        drawn = np.stack(
            [
                np.sum((chosen @ np.where(there[j], gap[j], 0.0)) * items, axis=1)
                / np.maximum(np.sum((chosen @ there[j].astype(np.float64)) * items, axis=1), 1e-300)
                for j in range(len(gap))
            ],
            axis=1,
        )
        # a draw without any cell of a task has no score of it
        held = (chosen.sum(axis=1) > 0)[:, None] * plan.counts["tasks"][:, [column[f"task {task.name}"]]]
        total += held * drawn
        weight += held
    return np.asarray(total / np.where(weight > 0, weight, np.nan))


def _ends(draws: Array | None, level: float) -> tuple[Array, Array] | None:
    """Return the interval of each column of draws; NaN, a draw without tasks, allows none."""
    if draws is None or not np.isfinite(draws).all():
        return None
    return percentile_interval(draws, level)


def _gap_rows(
    metric: str, ks: Array, tasks: Sequence[Task], draws: Array | None, level: float
) -> list[dict[str, Any]]:
    ends = _ends(draws, level)
    gap = np.mean([task.gap for task in tasks], axis=0)
    scores = [
        np.mean([np.nanmean(getattr(task, side), axis=(1, 2)) for task in tasks], axis=0)
        for side in ("reference", "target")
    ]
    errors = [task.item_se for task in tasks]
    known = [error for error in errors if error is not None]
    item_se = np.sqrt(np.sum(np.square(known), axis=0)) / len(tasks) if len(known) == len(tasks) else None
    sizes = [task.n_items for task in tasks if task.n_items is not None]
    return [
        {
            "metric": metric,
            "k": int(k),
            "tasks": len(tasks),
            "cells": len({cell for task in tasks for cell in task.cells}),
            "n_items": sum(sizes) if len(sizes) == len(tasks) else None,
            "reference_score": float(scores[0][j]),
            "target_score": float(scores[1][j]),
            "gap": float(gap[j]),
            "gap_lo": None if ends is None else float(ends[0][j]),
            "gap_hi": None if ends is None else float(ends[1][j]),
            "item_se": None if item_se is None else float(item_se[j]),
        }
        for j, k in enumerate(ks)
    ]


def _changes(
    metric: str, ks: Array, tasks: Sequence[Task], draws: Array | None, level: float
) -> list[dict[str, Any]]:
    """Return the jump, the saturation and the slope, as far as the k allow: each is a fixed sum of gaps."""
    place = {float(k): j for j, k in enumerate(ks)}
    unit = np.eye(len(ks))
    sums: dict[str, tuple[str, Array]] = {}
    if {0.0, 1.0} <= set(place):
        sums["jump"] = "gap(1) - gap(0)", unit[place[1.0]] - unit[place[0.0]]
    if 1.0 in place and ks[-1] > 1:
        sums["saturation"] = f"gap({ks[-1]:g}) - gap(1)", unit[-1] - unit[place[1.0]]
    if (ks >= 1).sum() >= 2:
        x = np.where(ks >= 1, np.log2(np.maximum(ks, 1.0)), 0.0)
        centred = np.where(ks >= 1, x - x[ks >= 1].mean(), 0.0)
        sums["slope"] = "gap per doubling of k, k >= 1", centred / np.sum(centred**2)
    gap = np.mean([task.gap for task in tasks], axis=0)
    rows = []
    for name, (meaning, weights) in sums.items():
        ends = _ends(None if draws is None else (draws @ weights)[:, None], level)
        rows.append(
            {
                "metric": metric,
                "quantity": name,
                "meaning": meaning,
                "change": float(gap @ weights),
                "change_lo": None if ends is None else float(ends[0][0]),
                "change_hi": None if ends is None else float(ends[1][0]),
            }
        )
    return rows


def _task_rows(metric: str, ks: Array, task: Task) -> list[dict[str, Any]]:
    error = task.item_se
    return [
        {
            "metric": metric,
            "task": task.name,
            "k": int(k),
            "n_items": task.n_items,
            "reference_score": float(np.nanmean(task.reference[j])),
            "target_score": float(np.nanmean(task.target[j])),
            "gap": float(task.gap[j]),
            "item_se": None if error is None else float(error[j]),
        }
        for j, k in enumerate(ks)
    ]


def _remarks(metric: str, ks: Array, tasks: Sequence[Task], pair: Pair, known: bool) -> list[Note]:
    notes = []
    if not known:
        lacking = [task.name for task in tasks if task.n_items is None]
        message = f"{metric}: no interval, because the number of items is not known ({listed(lacking)})"
        notes.append(warning("items_unknown", f"{message}; add a column n_items or item", len(lacking)))
    elif len(tasks) == 1:
        whole = len(tasks[0].items) == 1
        missing = (
            "no interval: item_se is the noise of its items"
            if whole
            else "the interval is of this task alone"
        )
        notes.append(warning("too_few_units", f"{metric}: one task ({tasks[0].name}), so {missing}"))
    else:
        cells = len({cell for task in tasks for cell in task.cells})
        if cells < FEW_CELLS:
            lacks = "does not hold how other sizes or sparsities would differ"
            short = "is too short if cells differ much" if cells > 1 else lacks
            message = f"{metric}: {counted(cells, 'cell')}, so the interval {short}"
            notes.append(warning("too_few_units", message))
        if len(tasks) < FEW_TASKS:
            message = f"{metric}: {len(tasks)} tasks, so the interval is too short for other tasks like them"
            notes.append(warning("too_few_units", message))
    floored = [
        f"{task.name} at k = {k:g}"
        for task in tasks
        for j, k in enumerate(ks)
        if max(np.nanmean(task.reference[j]), np.nanmean(task.target[j])) <= task.chance + FLOOR
    ]
    if floored:
        message = f"{metric}: {pair.target} and {pair.reference} both score no better than a guess ({listed(floored)})"
        notes.append(info("score_floor", message, len(floored)))
    return notes
