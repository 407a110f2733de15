"""How far an interval can be trusted as a number: for all rows of a table at once, and against other draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.resampling import end_errors, simultaneous_interval

__all__ = ["ends_beside"]

Array = NDArray[np.float64]


def ends_beside(m_drawn: Array, level: float) -> dict[str, list[Any]]:
    """Return the columns that stand beside percentile intervals of gains.

    Parameters
    ----------
    m_drawn : (draws, rows) array
        ln(C_ref / C_tgt) of every replicate; infinite where unreachable.
    level : float
        Nominal coverage.

    Returns
    -------
    dict
        ``gain_together_lo``, ``gain_together_hi``: ends between which that share of the replicates lies in all rows at
        once. ``gain_lo_error``, ``gain_hi_error``: Monte-Carlo standard errors of the ends of each row. None where an
        end is unreachable; empty with too few draws.
    """
    together = simultaneous_interval(m_drawn, level)
    errors = end_errors(-np.expm1(-m_drawn), level)
    if together is None or errors is None:
        return {}
    lo, hi = together
    unreachable = np.isinf(np.sort(m_drawn, axis=0)).mean(axis=0) > 0.5 * (1 - level)
    return {
        "gain_together_lo": _known(-np.expm1(-lo), np.isfinite(lo)),
        "gain_together_hi": _known(-np.expm1(-hi), np.isfinite(hi)),
        "gain_lo_error": _known(errors[0], np.isfinite(lo)),
        "gain_hi_error": _known(errors[1], ~unreachable),
    }


def _known(values: Array, known: NDArray[np.bool_]) -> list[float | None]:
    return [float(value) if there else None for value, there in zip(values, known, strict=True)]
