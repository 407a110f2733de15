"""Text of many rows as a few names: a small integer per row, which sorts, compares and copies like a number."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Text"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Text:
    """A column of text.

    Parameters
    ----------
    codes : (n,) array of unsigned int
        Place of each row's text in `names`; as small a type as they fit.
    names : tuple of str
        Distinct, by code point, so that codes sort as their texts do. Subsets share it: some may have no row.

    Examples
    --------
    >>> text = Text.of(["b", "a", "b"])
    >>> text.codes.tolist(), text.names, text[0], text.where("b".__eq__).tolist()
    ([1, 0, 1], ('a', 'b'), 'b', [True, False, True])
    """

    codes: NDArray[np.unsignedinteger[Any]]
    names: tuple[str, ...]

    @classmethod
    def of(cls, values: ArrayLike | Text) -> Text:
        """Take the rows of anything that NumPy can write as text."""
        if isinstance(values, Text):
            return values
        cells = np.array(values, dtype=np.str_)
        names = dict.fromkeys(cells.ravel().tolist())
        place = {name: code for code, name in enumerate(names)}
        codes = np.fromiter(map(place.__getitem__, cells.ravel().tolist()), dtype=np.intp, count=cells.size)
        return cls.coded(codes.reshape(cells.shape), list(names))

    @classmethod
    def coded(cls, codes: NDArray[np.integer[Any]], names: Sequence[str]) -> Text:
        """Take names in any order, and repeated; a code is the place of a row's name among them."""
        names = [name.rstrip("\0") for name in names]  # which an array of str cannot hold
        order = sorted(range(len(names)), key=names.__getitem__)
        ordered = [names[place] for place in order]
        new = [True, *map(operator.ne, ordered, ordered[1:])]
        code = np.empty(len(names), dtype=np.min_scalar_type(len(names)))
        code[order] = np.cumsum(new) - 1
        return cls(codes=code[codes], names=tuple(compress(ordered, new)))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the codes."""
        return self.codes.shape

    @overload
    def __getitem__(self, rows: int | np.integer[Any]) -> str: ...

    @overload
    def __getitem__(self, rows: slice | NDArray[Any]) -> Text: ...

    def __getitem__(self, rows: int | np.integer[Any] | slice | NDArray[Any]) -> str | Text:
        if isinstance(rows, int | np.integer):
            return self.names[int(self.codes[rows])]
        return Text(codes=self.codes[rows], names=self.names)

    def array(self) -> NDArray[np.str_]:
        """Write the rows in full."""
        return np.asarray(np.array(self.names, dtype=np.str_)[self.codes])

    def present(self) -> list[str]:
        """Return the names that some row has, by code point."""
        there = np.bincount(self.codes.ravel(), minlength=len(self.names)) > 0
        return [self.names[code] for code in np.flatnonzero(there)]

    def where(self, test: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Find the rows whose text passes a test."""
        passed = np.fromiter(map(test, self.names), dtype=np.bool_, count=len(self.names))
        return np.asarray(passed[self.codes])
