"""Measured training throughput as a function of model size: interpolated between the runs, never beyond them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._derive import TIER_GAP
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
            Sparsity of each row, which must be of a measured tier; None where the law has none.
        """
        result = np.full(log_flops.shape, np.nan)
        for j in range(log_flops.shape[-1]):
            tier = 0 if S is None else self._tier(float(S[j]))
            if tier is not None:
                result[..., j] = _between(log_flops[..., j], self.log_flops[tier], self.log_speed[tier])
        return result

    def _tier(self, sparsity: float) -> int | None:
        """Return the tier that a sparsity belongs to, by the rule that makes tiers."""
        at = np.log1p(-sparsity)
        away = [max(np.log1p(-high) - at, at - np.log1p(-low), 0.0) for low, high in self.ranges]
        nearest = int(np.argmin(away))
        return nearest if away[nearest] <= TIER_GAP else None


def _between(log_flops: Array, sizes: Array, speeds: Array) -> Array:
    inside = (log_flops >= sizes[0] - TOLERANCE) & (log_flops <= sizes[-1] + TOLERANCE)
    return np.where(inside, np.interp(log_flops, sizes, speeds), np.nan)


def throughput_of(
    endpoints: Endpoints, *, by_tier: bool, size: str = "F", flops_per_size: float = 1.0
) -> Throughput | None:
    """Return the throughput that a table of one architecture states; None if it states none.

    Parameters
    ----------
    endpoints : Endpoints
        Rows of one architecture. Runs of one size and tier count as one measurement, their median.
    by_tier : bool
        Whether throughput is looked up by sparsity tier: where the law knows S.
    size : str
        The column that says how large a model is: F, or N or N_act for laws in parameters.
    flops_per_size : float
        F is this times the size.

    Examples
    --------
    >>> runs = Endpoints.from_frame(
    ...     {"arch": ["a", "a"], "F": [1e9, 4e9], "D": [1e10, 1e10], "loss": [3, 2.5], "tokens_per_s": [4e5, 2e5]})
    >>> found = throughput_of(runs, by_tier=False)
    >>> np.exp(found.log_speed_at(np.log([[2e9, 5e9]]), None)).round(-10).tolist()  # the geometric mean; beyond
    [[565690000000000.0, nan]]
    """
    if "tokens_per_s" not in endpoints.columns or size not in endpoints.columns:
        return None
    flops = endpoints[size] * flops_per_size
    rate = endpoints["tokens_per_s"]
    measured = np.isfinite(rate)
    tiers = endpoints.tiers if by_tier else np.zeros(len(endpoints), dtype=np.intp)
    ranges, sizes, speeds = [], [], []
    for tier in np.unique(tiers[measured]):
        rows = measured & (tiers == tier)
        here, group = np.unique(flops[rows], return_inverse=True)
        order = np.argsort(group, kind="stable")
        parts = np.split((flops * rate)[rows][order], np.cumsum(np.bincount(group))[:-1])
        ranges.append((float(endpoints.S[tiers == tier].min()), float(endpoints.S[tiers == tier].max())))
        sizes.append(np.log(here))
        speeds.append(np.log([np.median(part) for part in parts]))
    return Throughput(ranges=ranges, log_flops=sizes, log_speed=speeds) if ranges else None
