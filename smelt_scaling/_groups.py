"""Rows that share their values: one sort by the columns in turn, and neighbours compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._text import Text

__all__ = ["Groups", "group_rows"]

Mask = NDArray[np.bool_]
Index = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """Rows in the order of some columns, those that share all values in them beside each other.

    Parameters
    ----------
    order : (n,) array of int
        Row at each place.
    starts : (n,) array of bool
        Whether the row at a place differs from the one before it.
    """

    order: Index
    starts: Mask

    def number(self) -> Index:
        """Return the group of each row, from 0."""
        number = np.empty(len(self.order), dtype=np.intp)
        number[self.order] = np.cumsum(self.starts) - 1
        return number

    def firsts(self) -> Index:
        """Return the first row of each group."""
        return self.order[self.starts]

    def sizes(self) -> Index:
        """Return the number of rows of each group."""
        return np.diff(np.flatnonzero(self.starts), append=len(self.order))

    def shared(self) -> Index:
        """Return the rows that are not alone in their group, ascending."""
        return np.sort(self.order[~_alone(self.starts)])

    def as_one(self) -> Groups:
        """Return all rows as one group, in this order."""
        return Groups(order=self.order, starts=np.arange(len(self.order)) == 0)

    def keep(self, kept: Mask) -> Groups:
        """Leave rows out that repeat the one before them, and count the others anew."""
        there = kept[self.order]
        return Groups(order=(np.cumsum(kept) - 1)[self.order[there]], starts=self.starts[there])

    def over(self, function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        """Reduce values (of rows) over each group, e.g. by ``np.fmin``."""
        return np.asarray(function.reduceat(values[self.order], np.flatnonzero(self.starts)))


def group_rows(columns: Mapping[str, Any], names: Iterable[str], within: Groups | None = None) -> Groups:
    """Sort rows by columns in turn: text by code point, numbers by value, missing last and equal to each other.

    Only rows that are not told apart yet are looked at, and sorted only where they are out of order.

    Parameters
    ----------
    columns : mapping of str to (n,) array or Text
        At least one row.
    names : iterable of str
        Columns to sort by, the first one before all others.
    within : Groups, optional
        Groups to divide further; rows that share all values stay in their order. By default all rows are one group.

    Examples
    --------
    >>> groups = group_rows({"x": np.array([2.0, 1.0, 2.0])}, ["x"])
    >>> groups.order.tolist(), groups.starts.tolist()
    ([1, 0, 2], [True, True, False])
    """
    if within is None:
        rows = np.arange(len(next(iter(columns.values()))))
        within = Groups(order=rows, starts=rows == 0)
    order, starts = within.order.copy(), within.starts.copy()
    for name in names:
        alone = _alone(starts)
        if alone.all():
            break
        places = np.flatnonzero(~alone) if alone.any() else slice(None)
        begins = starts[places]
        codes = columns[name].codes if isinstance(columns[name], Text) else columns[name]
        values = codes[order[places]]
        if np.any(_above(values) & ~begins[1:]):
            by = _sorted_within(values, np.cumsum(begins) - 1)
            order[places] = order[places][by]
            values = values[by]
        starts[places] |= np.append(False, _differ(values))
    return Groups(order=order, starts=starts)


def _alone(starts: Mask) -> Mask:
    return np.asarray(starts & np.append(starts[1:], True))


def _above(values: NDArray[Any]) -> Mask:
    """Whether a value belongs behind the next one."""
    above = values[:-1] > values[1:]
    missing = _missing(values)
    return np.asarray(above | (missing[:-1] & ~missing[1:]))


def _differ(values: NDArray[Any]) -> Mask:
    differ = values[:-1] != values[1:]
    missing = _missing(values)
    return np.asarray(differ & ~(missing[:-1] & missing[1:]))


def _missing(values: NDArray[Any]) -> Mask:
    return np.asarray(values != values)


def _sorted_within(values: NDArray[Any], group: Index) -> Index:
    """Return the stable order of values within groups, whose numbers ascend.

    Group, rank of the value and place make up one integer, and integers sort several times faster than an index does.
    """
    n = len(values)
    if values.dtype.kind == "f":
        by = np.argsort(values)
        key = np.empty(n, dtype=np.intp)
        key[by] = np.cumsum(np.append(False, _differ(values[by])))
    else:
        key = values.astype(np.intp) - int(values.min())
    kinds = int(key.max()) + 1
    key += group * kinds
    if (int(group[-1]) + 1) * kinds * n >= 2**63:
        return np.asarray(np.argsort(key, kind="stable"), dtype=np.intp)
    key *= n
    key += np.arange(n)
    key.sort()
    key %= n
    return key
