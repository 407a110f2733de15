"""Ablations: what such a table holds, and the runs of each comparison as arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._cells import to_text
from smelt_scaling.analyses.measured import Field, TableLike, read_measured
from smelt_scaling.errors import DataError, Note, UsageError, info

__all__ = ["ABLATION_FIELDS", "Comparison", "read_comparisons"]

Array = NDArray[np.float64]

#: One row per run and metric.
ABLATION_FIELDS: dict[str, Field] = {
    "factor": Field(description="what was varied, such as span"),
    "group": Field(description="what stays the same within a comparison, such as a sparsity"),
    "level": Field(description="setting of the factor", needed=True),
    "seed": Field(description="random seed of the run, where levels were run again"),
    "metric": Field(description="what the value is: loss, core"),
    "value": Field(description="final value of the run", rule="finite", needed=True),
    "flops_ratio": Field(
        description="training FLOPs over those of the level compared with", rule="> 0 and finite"
    ),
}

#: Metrics of which everybody knows that less is better.
_LOWER = re.compile(r"(?:^|[^a-z])(?:loss|nll|ppl|perplexity|bpb|error)$", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """The levels of one factor within one group by one metric, in the order of the table.

    Parameters
    ----------
    factor, group, metric : str
        Which comparison it is; empty where the table does not say.
    levels : tuple of str
        Settings.
    runs : tuple of array
        Values of each level, one per seed.
    against : int
        Place of the level that others are compared with.
    higher : bool
        Whether more is better.
    flops_ratio : (L,) array or None
        Mean over the runs of a level.
    """

    factor: str
    group: str
    metric: str
    levels: tuple[str, ...]
    runs: tuple[Array, ...]
    against: int
    higher: bool
    flops_ratio: Array | None

    @property
    def values(self) -> Array:
        """Mean of each level."""
        return np.array([runs.mean() for runs in self.runs])

    @property
    def counts(self) -> Array:
        """Number of runs of each level."""
        return np.array([float(len(runs)) for runs in self.runs])

    @property
    def name(self) -> str:
        """How to call it in a message."""
        return ", ".join(part for part in (self.factor, self.group, self.metric) if part)


def read_comparisons(
    table: TableLike,
    *,
    mapping: Mapping[str, str] | None,
    against: object,
    higher: Sequence[str],
    lower: Sequence[str],
) -> tuple[list[Comparison], list[Note], str]:
    """Read the table; return its comparisons in the order of the file, notes, and the name of the table.

    Raises
    ------
    DataError, UsageError
        One line per problem.
    """
    import pandas as pd

    data = read_measured(table, ABLATION_FIELDS, mapping=mapping)
    keys = ("factor", "group", "metric", "level", "seed")
    data.require_unique(keys, ABLATION_FIELDS, ("seed", "group", "factor", "metric"))
    frame = pd.DataFrame(
        dict(data.columns)
        | {"metric": data.text("metric", "loss"), "factor": data.text("factor"), "group": data.text("group")}
    )
    directions = _directions(list(dict.fromkeys(frame["metric"])), higher, lower, data.source)
    notes = list(data.notes)
    found, problems = [], []
    first_levels: dict[str, list[str]] = {}
    against = None if against is None else _as_written(against)
    for key, rows in frame.groupby(["factor", "group", "metric"], sort=False):
        factor, group, metric = map(str, key)
        levels = tuple(dict.fromkeys(rows["level"]))
        name = ", ".join(part for part in (factor, group, metric) if part)
        if against is not None and against not in levels:
            problems.append(
                f"{data.source}: {name}: no level {against!r}, which --against names; choose from {', '.join(levels)}"
            )
            continue
        if len(levels) < 2:
            problems.append(
                f"{data.source}: {name}: one level ({levels[0]}): a comparison needs two; "
                "add the level to compare with"
            )
            continue
        if rows["value"].nunique() == 1:
            problems.append(
                f"{data.source}: {name}: all {len(rows)} values are {rows['value'].iloc[0]:g}: a constant metric "
                "compares nothing; check the column value or leave the metric out"
            )
            continue
        by_level = [rows[rows["level"] == level] for level in levels]
        first_levels.setdefault(levels[0], []).append(name)
        found.append(
            Comparison(
                factor=factor,
                group=group,
                metric=metric,
                levels=levels,
                runs=tuple(part["value"].to_numpy(dtype=np.float64) for part in by_level),
                against=levels.index(against) if against is not None else 0,
                higher=directions[metric],
                flops_ratio=np.array([part["flops_ratio"].mean() for part in by_level])
                if "flops_ratio" in frame
                else None,
            )
        )
    if problems:
        raise DataError("\n".join(problems))
    if against is None:
        named = "; ".join(
            f"{level} ({', '.join(where[:3])}{f' and {len(where) - 3} more' if len(where) > 3 else ''})"
            if len(first_levels) > 1
            else level
            for level, where in first_levels.items()
        )
        notes.append(
            info(
                "default_level", f"compared with {named}, the first of the table; name another with --against"
            )
        )
    return found, notes, data.source


def _as_written(level: object) -> str:
    """Write a level as reading a table does: 0.5 and 1, not 1.0."""
    import pandas as pd

    return str(to_text(pd.Series([level]), np.array([False]))[0].array()[0])


def _directions(
    metrics: Sequence[str], higher: Sequence[str], lower: Sequence[str], source: str
) -> dict[str, bool]:
    """Say of each metric whether more is better.

    Raises
    ------
    UsageError
        If nothing says so, an option names a metric that is not there, or both name one.
    """
    unknown = [name for name in (*higher, *lower) if name not in metrics]
    if unknown:
        raise UsageError(
            f"{source}: no metric {unknown[0]!r}, which --higher or --lower names; choose from {', '.join(metrics)}"
        )
    both = [name for name in higher if name in lower]
    if both:
        raise UsageError(f"metric {both[0]}: --higher and --lower both name it; name it in one of them")
    directions = {}
    for name in metrics:
        if name not in (*higher, *lower) and not _LOWER.search(name):
            raise UsageError(
                f"{source}: metric {name}: nothing says which way is better; add --higher {name} or --lower {name}"
            )
        directions[name] = name in higher
    return directions
