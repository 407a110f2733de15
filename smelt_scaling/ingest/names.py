"""Lists of names within one line of a message."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["listed"]

#: Names shown of a long list.
SHOWN = 6


def listed(names: Iterable[str]) -> str:
    """Return names in order, the first few of many.

    Examples
    --------
    >>> listed("gfedcba")
    'a, b, c, d, e, f, and 1 more'
    """
    ordered = sorted(names)
    return ", ".join(ordered[:SHOWN]) + (f", and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else "")
