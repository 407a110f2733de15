"""Labels of the experimental units that a bootstrap resamples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._canonical import arch_slices
from smelt_scaling._groups import group_rows
from smelt_scaling._text import Text

__all__ = ["RESAMPLING_UNITS", "label_units"]

#: Columns that can name the experimental unit, best first.
RESAMPLING_UNITS = ("cell", "scale*tier", "trunk", "run", "row")


def label_units(columns: Mapping[str, Any], tiers: NDArray[np.intp], unit: str) -> Text:
    """Label each row of columns in canonical order with its unit; rows are numbered within their architecture."""
    if unit == "scale*tier":
        scale: Text = columns["scale"]
        pairs = group_rows({"scale": scale, "tier": tiers}, ["scale", "tier"])
        return Text.coded(pairs.number(), [f"{scale[row]} / tier {tiers[row]}" for row in pairs.firsts()])
    if unit == "row":
        slices = arch_slices(columns).items()
        names = [f"{arch} / row {row + 1:06d}" for arch, own in slices for row in range(own.stop - own.start)]
        return Text.coded(np.arange(len(tiers)), names)
    labels: Text = columns[unit]
    return labels
