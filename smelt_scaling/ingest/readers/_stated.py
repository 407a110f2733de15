"""What the columns of a table of steps state about its runs: those that hold one value all through a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.ingest.events import FACTS, Facts
from smelt_scaling.ingest.readers._cells import labels_of, numbers_of

__all__ = ["OF_RUNS", "Stated", "stated_columns"]

#: Facts that a column can state; a status or a throughput in a row is of that moment, not of the run.
OF_RUNS = frozenset(FACTS) - {
    "status",
    "tokens_per_s",
    "id",
    "parent",
    "created",
    "start_step",
    "start_tokens",
}

Value = float | str
#: Values, or codes into the texts beside them; NaN where a cell is empty.
Column = tuple[NDArray[np.float64], list[str] | None]


def stated_columns(batch: Mapping[str, Any], cells: Counter[str]) -> dict[str, Column]:
    """Return the columns of a batch that can state facts."""
    columns: dict[str, Column] = {}
    for name in OF_RUNS & set(batch):
        if FACTS[name][0] is str:
            codes, texts = labels_of(batch[name])
            columns[name] = np.where(codes < 0, np.nan, codes), texts
        else:
            columns[name] = numbers_of(batch[name], cells, name), None
    return columns


@dataclass(kw_only=True, eq=False)
class Stated:
    """Follows such columns through a table; one that changes within a run is no fact of it.

    Examples
    --------
    >>> stated = Stated()
    >>> stated.see("a", {"F": (np.array([6e9, 6e9]), None), "arch": (np.array([1.0, 1.0]), ["x", "y"])})
    >>> stated.see("a", {"F": (np.array([6e9, 7e9]), None), "arch": (np.array([0.0, np.nan]), ["y"])})
    >>> [(facts.run, dict(facts.values)) for facts in stated.facts()]
    [('a', {'arch': 'y'})]
    """

    _seen: dict[str, dict[str, Value | None]] = field(default_factory=dict)

    def see(self, run: str, columns: Mapping[str, Column]) -> None:
        """Take in further rows of a run."""
        seen = self._seen.setdefault(run, {})
        for name, (column, texts) in columns.items():
            known = column[~np.isnan(column)]
            if not known.size:
                continue
            value: Value = float(known[0]) if texts is None else texts[int(known[0])]
            one = bool((known == known[0]).all()) and seen.get(name, value) == value
            seen[name] = value if one else None

    def facts(self) -> Iterator[Facts]:
        """Yield what held all through."""
        for run, seen in self._seen.items():
            values = {name: value for name, value in sorted(seen.items()) if value is not None}
            if values:
                yield Facts(run=run, values=values)
