"""Budgets to ask for when none is named: round numbers within what the runs cover."""

from __future__ import annotations

import math

from smelt_scaling.analyses.view import common_window, view_of
from smelt_scaling.errors import Note, UsageError, info
from smelt_scaling.papers import Paper
from smelt_scaling.study import Study

__all__ = ["budgets_or_default", "round_budgets", "window_of"]


def window_of(source: Study | Paper) -> tuple[float, float] | None:
    """Return the budgets that the runs of every architecture cover; None if there are none."""
    window = common_window(view_of(source).sides.values())
    return window if window is not None and window[0] <= window[1] else None


def round_budgets(low: float, high: float) -> list[float]:
    """Return the powers of ten in a window, or one number of few digits where there is none.

    Examples
    --------
    >>> round_budgets(1.3e19, 2.2e21), round_budgets(2e18, 8e18)
    ([1e+20, 1e+21], [4e+18])
    """
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    # written as text, because 10.0**21 is not the number that 1e21 is on every platform
    found = [float(f"1e{power}") for power in range(first, last + 1)]
    return [budget for budget in found if low <= budget <= high] or [float(f"{math.sqrt(low * high):.0e}")]


def budgets_or_default(budgets: list[float], source: Study | Paper) -> tuple[list[float], tuple[Note, ...]]:
    """Return the budgets named, or round ones within the runs with a note that says so.

    Raises
    ------
    UsageError
        If none is named and the runs have no budget in common.
    """
    if budgets:
        return budgets, ()
    window = window_of(source)
    if window is None:
        raise UsageError(
            "--budget: there is no range of budgets to choose from; name some, such as --budget 1e21"
        )
    chosen = round_budgets(*window)
    shown = ",".join(f"{budget:.0e}".replace("e+", "e") for budget in chosen)
    message = f"no budget named: powers of ten within the runs of every architecture (--budget {shown})"
    return chosen, (info("default_budgets", message, len(chosen)),)
