"""Measured training throughput as a function of model size: interpolated between the runs, never beyond them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.endpoints import Endpoints

__all__ = ["Throughput", "throughput_of"]

Array = NDArray[np.float64]

#: A size this close to the edge of the measured ones, relatively, is on it.
TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Throughput:
    """FLOPs per second of one architecture, by size and sparsity.

    Parameters
    ----------
    ranges : sequence of (float, float)
        Smallest and largest S of each sparsity tier.
    log_flops, log_speed : sequence of (sizes,) array
        ln F and ln(F * tokens_per_s) of each tier, by size.
    """

    ranges: Sequence[tuple[float, float]]
    log_flops: Sequence[Array]
    log_speed: Sequence[Array]

    def log_speed_at(self, log_flops: Array, S: Array | None) -> Array:  # noqa: N803  # the field's name
        """Return ln(F * tokens_per_s), linear in ln F between measured sizes; NaN where nothing was measured.

        Parameters
        ----------
        log_flops : (..., rows) array
            ln F, training FLOPs per token.
        S : (rows,) array or None
            Sparsity of each row, which must lie within a measured tier; None where the law has none.
        """
        result = np.full(log_flops.shape, np.nan)
        for j in range(log_flops.shape[-1]):
            sparsity = None if S is None else float(S[j])
            for (low, high), sizes, speeds in zip(self.ranges, self.log_flops, self.log_speed, strict=True):
                if sparsity is None or low - TOLERANCE <= sparsity <= high + TOLERANCE:
                    result[..., j] = _between(log_flops[..., j], sizes, speeds)
        return result


def _between(log_flops: Array, sizes: Array, speeds: Array) -> Array:
    inside = (log_flops >= sizes[0] - TOLERANCE) & (log_flops <= sizes[-1] + TOLERANCE)
    return np.where(inside, np.interp(log_flops, sizes, speeds), np.nan)


def throughput_of(endpoints: Endpoints, *, by_tier: bool, flops_per_param: float | None) -> Throughput | None:
    """Return the throughput that a table of one architecture states; None if it states none.

    Parameters
    ----------
    endpoints : Endpoints
        Rows of one architecture. Runs of one size and tier count as one measurement, their median.
    by_tier : bool
        Whether throughput is looked up by sparsity tier: where the law knows S.
    flops_per_param : float or None
        F is this times N (or N_act), for laws in parameters; None takes the column F.

    Examples
    --------
    >>> runs = Endpoints.from_frame(
    ...     {"arch": ["a", "a"], "F": [1e9, 4e9], "D": [1e10, 1e10], "loss": [3, 2.5], "tokens_per_s": [4e5, 2e5]})
    >>> found = throughput_of(runs, by_tier=False, flops_per_param=None)
    >>> np.exp(found.log_speed_at(np.log([[2e9, 5e9]]), None)).round(-10).tolist()  # the geometric mean; beyond
    [[565690000000000.0, nan]]
    """
    size = (
        "F" if flops_per_param is None else next((n for n in ("N", "N_act") if n in endpoints.columns), "F")
    )
    if "tokens_per_s" not in endpoints.columns or size not in endpoints.columns:
        return None
    flops = endpoints[size] * (flops_per_param if size != "F" and flops_per_param else 1.0)
    rate = endpoints["tokens_per_s"]
    measured = np.isfinite(rate)
    tiers = endpoints.tiers if by_tier else np.zeros(len(endpoints), dtype=np.intp)
    ranges, sizes, speeds = [], [], []
    for tier in np.unique(tiers[measured]):
        rows = measured & (tiers == tier)
        here = np.unique(flops[rows])
        ranges.append((float(endpoints.S[tiers == tier].min()), float(endpoints.S[tiers == tier].max())))
        sizes.append(np.log(here))
        speeds.append(np.log([np.median((flops * rate)[rows & (flops == value)]) for value in here]))
    return Throughput(ranges=ranges, log_flops=sizes, log_speed=speeds) if ranges else None
