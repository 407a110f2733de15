"""What a run costs: how many tokens are trained for endpoints at several horizons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from smelt_scaling.errors import UsageError

__all__ = ["Schedule", "ScheduleKind"]

ScheduleKind = Literal["wsd", "independent"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How endpoints at several horizons are made.

    Parameters
    ----------
    kind : {"wsd", "independent"}
        One stable trunk with a decay branched off before every horizon, or one run for each.
    decay : float
        Length of a decay of ``wsd``: below 1 a share of the horizon it ends in, else tokens.

    Raises
    ------
    UsageError
        If the kind is unknown or the decay is not positive.

    Examples
    --------
    >>> Schedule(kind="wsd", decay=1e10).tokens([2e10, 3e10, 2e11])  # a trunk of 1.9e11, three decays
    220000000000.0
    >>> Schedule(kind="independent").tokens([2e10, 3e10, 2e11])
    250000000000.0
    """

    kind: ScheduleKind = "wsd"
    decay: float = 0.1

    def __post_init__(self) -> None:
        if self.kind not in get_args(ScheduleKind):
            raise UsageError(f"--schedule {self.kind}: choose from {', '.join(get_args(ScheduleKind))}")
        if not (self.decay > 0 and np.isfinite(self.decay)):
            raise UsageError(
                f"--decay {self.decay:g}: write a share of the horizon such as 0.1, or tokens such as 1e10"
            )

    def tokens(self, horizons: Sequence[float]) -> float:
        """Return the tokens trained in all.

        Raises
        ------
        UsageError
            If a decay is longer than the run that it ends.
        """
        longest = max(horizons)
        if self.kind == "independent":
            return float(sum(horizons))
        decays = [self.decay * tokens if self.decay < 1 else self.decay for tokens in horizons]
        if self.decay >= min(horizons):
            raise UsageError(
                f"--decay {self.decay:g}: longer than the shortest horizon of {min(horizons):.3g} tokens; write a "
                "share such as 0.1, or fewer tokens"
            )
        return float(longest - decays[list(horizons).index(longest)] + sum(decays))
