"""Where a frontier point lies relative to the runs it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["outside"]

#: A point this close to the edge of the window, relatively, is on it.
TOLERANCE = 1e-9


def outside(
    window: Mapping[str, tuple[float, float]], *, arch: str, **values: float | None
) -> list[dict[str, Any]]:
    """List the columns whose value leaves the window, with the factor by which it does.

    Parameters
    ----------
    window : mapping
        Column -> (smallest, largest) over the endpoints.
    arch : str
        Whose window it is; goes into the result.
    **values : float or None
        F, D, C, TPP, or S, whose factor is that of 1 - S. None and infinite values are passed over.

    Returns
    -------
    list of dict
        ``{"code": "out_F", "arch": ..., "factor": ...}``; factor > 1.

    Examples
    --------
    >>> window = {"C": (1.3e19, 2.2e21), "S": (0.8, 0.96)}
    >>> [(item["code"], round(item["factor"], 3)) for item in outside(window, arch="smelt", C=1e22, S=0.98)]
    [('out_C', 4.545), ('out_S', 2.0)]
    """
    found = []
    for name, value in values.items():
        if value is None or name not in window or not np.isfinite(value):
            continue
        low, high = window[name]
        if name == "S":
            low, high, value = 1.0 - high, 1.0 - low, 1.0 - value
        factor = max(value / high, low / value)
        if factor > 1 + TOLERANCE:
            found.append({"code": f"out_{name}", "arch": arch, "factor": round(float(factor), 12)})
    return found
