"""Task scores by number of in-context examples: what such a table holds, and its pairs as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted
from smelt_scaling.analyses.measured import Field, Measured, TableLike, read_measured
from smelt_scaling.analyses.pairing import pair_names, pair_rows
from smelt_scaling.errors import DataError, Note, UsageError, warning

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SHOT_FIELDS", "Pair", "Task", "listed", "read_tasks"]

Array = NDArray[np.float64]

#: Names that a message lists.
SHOWN = 4

#: One row per score of an architecture.
SHOT_FIELDS: dict[str, Field] = {
    "arch": Field(description="architecture of the score", needed=True),
    "cell": Field(description="experimental unit: one (scale, sparsity) design point"),
    "horizon": Field(description="label of the endpoint within its cell"),
    "metric": Field(description="kind of score: exact_match, multiple_choice"),
    "task": Field(description="task of the score", needed=True),
    "item": Field(description="item of the task, where scores are of single items"),
    "k": Field(description="number of in-context examples", rule="a whole number >= 0", needed=True),
    "score": Field(description="share that is right", rule="in [0, 1]", needed=True, percent=True),
    "n_items": Field(description="items of the task", rule="a whole number > 0"),
    "chance": Field(description="score of a guess", rule="in [0, 1]", percent=True),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """Paired scores of one task.

    Parameters
    ----------
    name : str
        The task.
    cells, items : tuple of str
        Labels, sorted; one nameless item where scores are of whole tasks.
    reference, target : (K, n_cells, n_items) array
        Scores at each k, mean over horizons; NaN where a cell has none.
    n_items : int or None
        How many items are behind a score, if known.
    chance : float
        Score of a guess; 0 where the table does not say.
    """

    name: str
    cells: tuple[str, ...]
    items: tuple[str, ...]
    reference: Array
    target: Array
    n_items: int | None
    chance: float

    @property
    def gap(self) -> Array:
        """Target minus reference at each k, mean over items and cells, (K,)."""
        return np.asarray(np.nanmean(self.target - self.reference, axis=(1, 2)))

    @property
    def item_se(self) -> Array | None:
        """Standard error of the gap at each k from items alone, the two scores taken as unpaired, (K,).

        ``sqrt((p (1 - p) + q (1 - q)) / n)`` with n items, however many cells were scored on them; pairing makes it
        smaller.
        """
        if self.n_items is None:
            return None
        p, q = (np.nanmean(side, axis=(1, 2)) for side in (self.reference, self.target))
        return np.asarray(np.sqrt((p * (1 - p) + q * (1 - q)) / self.n_items))


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Which architectures the scores are of."""

    target: str
    reference: str


def read_tasks(
    table: TableLike,
    *,
    mapping: Mapping[str, str] | None,
    units: Mapping[str, str] | None,
    target: str | None,
    reference: str | None,
    shots: Sequence[int] | None,
    drop_incomplete: bool,
) -> tuple[dict[str, tuple[Array, list[Task]]], Pair, list[Note], str]:
    """Read the table.

    Returns
    -------
    metrics : dict
        Metric -> (the k, ascending; its tasks, every one with all of them).
    pair, notes, source
        Which architectures; what was left out; the name of the table.

    Raises
    ------
    DataError, UsageError
        One line per problem; one per task that lacks some k.
    """
    data = read_measured(table, SHOT_FIELDS, mapping=mapping, units=units)
    keys = ("metric", "task", "cell", "horizon", "item", "k")
    data.require_unique(("arch", *keys), SHOT_FIELDS, ("horizon", "cell", "metric", "item"))
    target, reference, notes = pair_names(
        dict.fromkeys(data.columns["arch"].tolist()), target, reference, data.source
    )
    data, uneven = _even_items(data)
    columns, alone = pair_rows(data, keys, "score", target, reference)
    frame = _frame(columns)
    if shots is not None:
        absent = sorted(set(shots) - set(frame["k"].astype(int)))
        if absent or not shots:
            there = ", ".join(f"{k:g}" for k in np.unique(frame["k"]))
            raise UsageError(
                f"--shots {', '.join(map(str, absent))}: no scores at this k; choose from {there}"
            )
        frame = frame[frame["k"].isin(list(shots))]
    metrics: dict[str, tuple[Array, list[Task]]] = {}
    problems: list[str] = []
    for metric, rows in frame.groupby("metric", sort=True):
        ks = np.unique(rows["k"].to_numpy(dtype=np.float64))
        tasks, lacking = [], {}
        for name, of_task in rows.groupby("task", sort=True):
            missing = _missing(of_task, ks)
            if missing:
                lacking[str(name)] = missing
            else:
                tasks.append(_task(str(name), of_task, ks))
        problems += [
            f"{data.source}: task {name} lacks k = {which}: a gap needs the same tasks at every k; choose k with "
            "--shots, or leave such tasks out with --drop-incomplete"
            for name, which in lacking.items()
        ]
        if lacking:
            message = (
                f"{data.source}: {counted(len(lacking), 'task')} without every k left out ({listed(lacking)})"
            )
            notes.append(warning("incomplete_tasks", message, len(lacking)))
        if not tasks and drop_incomplete:
            raise DataError(
                f"{data.source}: no task has a score at every k of {', '.join(f'{k:g}' for k in ks)}: a gap needs the "
                "same tasks at every k; choose k with --shots"
            )
        metrics[str(metric)] = ks, tasks
    if problems and not drop_incomplete:
        raise DataError("\n".join(problems))
    return (
        metrics,
        Pair(target=target, reference=reference),
        [*data.notes, *notes, *uneven, *alone],
        data.source,
    )


def _even_items(data: Measured) -> tuple[Measured, list[Note]]:
    """Give every task one number of items, the smallest that its rows name, and note those that name several."""
    if "n_items" not in data.columns:
        return data, []
    import pandas as pd

    frame = pd.DataFrame({"task": data.columns["task"], "n": data.columns["n_items"]})
    frame["metric"] = data.text("metric")
    by_task = frame.groupby(["metric", "task"], sort=False)["n"]
    uneven = by_task.agg(["min", "max"]).query("min < max")
    if not len(uneven):
        return data, []
    shown = listed(f"{task} {least:.0f} to {most:.0f}" for (_, task), least, most in uneven.itertuples())
    message = f"{data.source}: column n_items, {counted(len(uneven), 'task')} with several ({shown}); the least counts"
    columns = {**data.columns, "n_items": by_task.transform("min").to_numpy(dtype=np.float64)}
    return replace(data, columns=columns), [warning("uneven_items", message, len(uneven))]


def listed(names: Iterable[str]) -> str:
    """Write the first names of many, and how many more there are.

    Examples
    --------
    >>> listed("abc"), listed("abcdefg")
    ('a, b, c', 'a, b, c, d and 3 more')
    """
    every = list(names)
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + more


def _frame(columns: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(dict(columns))
    for name, otherwise in {"metric": "score", "cell": "", "horizon": "", "item": ""}.items():
        if name not in frame:
            frame[name] = otherwise
    return frame


def _missing(rows: pd.DataFrame, ks: Array) -> str:
    """Name the k that some cell or item of a task lacks; empty if there is none."""
    keys = ["cell", "horizon", "item"]
    expected = rows[keys].drop_duplicates().shape[0]
    found = rows.groupby("k").size().reindex(ks, fill_value=0).to_numpy()
    lacks = [
        f"{k:g}" + (f" ({some} of {expected} scores)" if some else "")
        for k, some in zip(ks, found, strict=True)
        if some < expected
    ]
    return ", ".join(lacks)


def _task(name: str, rows: pd.DataFrame, ks: Array) -> Task:
    cells, items = (tuple(sorted(set(rows[key]))) for key in ("cell", "item"))
    place = {label: i for i, label in enumerate(cells)}, {label: i for i, label in enumerate(items)}
    index = (
        np.searchsorted(ks, rows["k"].to_numpy(dtype=np.float64)),
        rows["cell"].map(place[0]).to_numpy(dtype=np.intp),
        rows["item"].map(place[1]).to_numpy(dtype=np.intp),
    )
    shape = (len(ks), len(cells), len(items))
    count = np.zeros(shape)
    np.add.at(count, index, 1.0)
    sides = []
    for side in ("reference", "target"):
        total = np.zeros(shape)
        np.add.at(total, index, rows[side].to_numpy(dtype=np.float64))
        sides.append(np.where(count > 0, total / np.where(count > 0, count, 1.0), np.nan))
    known = len(items) if items != ("",) else None
    if known is None and "n_items" in rows:
        known = int(rows["n_items"].min())
    chance = float(rows["chance"].max()) if "chance" in rows else 0.0
    return Task(
        name=name, cells=cells, items=items, reference=sides[0], target=sides[1], n_items=known, chance=chance
    )
