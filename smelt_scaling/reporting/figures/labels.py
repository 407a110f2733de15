"""Names on figures: shortened where they are long, thinned where they are many, one drawing per point or handful."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from smelt_scaling.formatting import format_number, format_quantity

__all__ = ["handfuls", "numbered", "points_of", "shortened", "thinned"]

T = TypeVar("T")
Rows = Sequence[Mapping[str, Any]]


def shortened(text: str, width: int = 22, lines: int = 2) -> str:
    r"""Break a name into lines, and end it in an ellipsis where these do not hold it.

    Examples
    --------
    >>> shortened("code"), shortened("baseline with more active parameters", 14)
    ('code', 'baseline with\nmore active p…')
    """
    broken = textwrap.wrap(text, width) or [text]
    if len(broken) > lines:
        rest = " ".join(broken[lines - 1 :])
        broken = [*broken[: lines - 1], f"{rest[: width - 1].rstrip()}…"]
    return "\n".join(broken)


def thinned(n: int, most: int) -> list[int]:
    """Return at most so many of the first n whole numbers, evenly spaced from 0.

    Examples
    --------
    >>> thinned(4, 9), thinned(40, 9)
    ([0, 1, 2, 3], [0, 5, 10, 15, 20, 25, 30, 35])
    """
    return list(range(0, n, max(1, -(-n // most))))


def handfuls(items: Sequence[T], most: int) -> list[list[T]]:
    """Return the items in groups of at most so many.

    Examples
    --------
    >>> handfuls("abcde", 3)
    [['a', 'b', 'c'], ['d', 'e']]
    """
    return [list(items[start : start + most]) for start in range(0, len(items), most)]


def numbered(name: str, place: int) -> str:
    """Return the name of the first drawing of a kind as it is, and the others with their place.

    Examples
    --------
    >>> numbered("shots", 0), numbered("shots", 1)
    ('shots', 'shots_2')
    """
    return name if place == 0 else f"{name}_{place + 1}"


def points_of(rows: Rows) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Return the rows of every budget and sparsity, each with a title.

    Examples
    --------
    >>> rows = [{"budget": 1e21, "sparsity": s, "gain": 0.1} for s in (0.947, None)]
    >>> [title for title, _ in points_of(rows)]
    ['C = 1.0e21 FLOPs, S = 0.947', 'C = 1.0e21 FLOPs']
    """
    points: dict[tuple[float, float], tuple[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        sparsity = row["sparsity"]
        title = f"C = {format_quantity(row['budget'], 2)} FLOPs"
        if sparsity is not None:
            title += f", S = {format_number(sparsity, 3)}"
        key = (row["budget"], np.inf if sparsity is None else sparsity)
        points.setdefault(key, (title, []))[1].append(row)
    return list(points.values())
