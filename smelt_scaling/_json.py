"""Strict JSON: no NaN, no infinity, floats in full precision, a trailing newline."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["dumps", "finite_or_none"]


def dumps(value: Any) -> str:
    r"""Serialise plain values; a NaN or infinity anywhere is a programming error and raises.

    Examples
    --------
    >>> dumps({"gain": 0.18, "hi": None})
    '{\n "gain": 0.18,\n "hi": null\n}\n'
    """
    return json.dumps(_plain(value), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def finite_or_none(value: Any) -> float | None:
    """Return a float, or None where it is missing or not finite (its flag must stand beside it)."""
    if value is None or not math.isfinite(value):
        return None
    return float(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value
