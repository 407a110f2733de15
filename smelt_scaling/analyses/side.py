"""One architecture as the analyses see it: its surface, replicates and what is known of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from smelt_scaling._schema import NATS
from smelt_scaling.analyses.throughput import Throughput
from smelt_scaling.engine.design import LEVEL_WIDTH
from smelt_scaling.fitting.residuals import Repeats
from smelt_scaling.laws import Surface
from smelt_scaling.resampling import Draws

__all__ = ["INTERVALS", "SAMPLED", "IntervalKind", "Side"]

IntervalKind = Literal["percentile", "jackknife-t", "wild-cr3"]
INTERVALS = ("percentile", "jackknife-t", "wild-cr3")
#: Kinds whose replicates are a sample: ends are order statistics, and shares of replicates mean something.
SAMPLED = ("percentile", "wild-cr3")


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """One architecture as an analysis sees it.

    Parameters
    ----------
    arch : str
        Its name.
    surface : Surface
        Point coefficients.
    draws, jackknife, wild : Draws or None
        Replicates.
    window : mapping
        Column -> (smallest, largest); empty if unknown.
    unidentified, only_at : mapping
        As in `FitResult`.
    certified : bool
        Whether the point fit is certified; published surfaces count as such.
    measured_on : mapping
        Tokenizer, evaluation set and domain of the losses, as far as the table names them.
    rounded : Surface or None
        Printed coefficients as they stand, then each alone half a unit of its last digit up, and down, as draws.
    repeats : Repeats or None
        Scatter of runs that share every setting, if there are any.
    throughput : Throughput or None
        Measured training speed, if the table states it.
    """

    arch: str
    surface: Surface
    draws: Draws | None
    jackknife: Draws | None
    window: Mapping[str, tuple[float, float]]
    unidentified: Mapping[str, str]
    only_at: Mapping[str, float]
    certified: bool
    measured_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rounded: Surface | None = None
    repeats: Repeats | None = None
    throughput: Throughput | None = None
    wild: Draws | None = None

    @property
    def loss_unit(self) -> str:
        """Unit of its losses."""
        return " and ".join(self.measured_on.get("loss_unit", (NATS,)))

    def holds_at(self, sparsity: float) -> bool:
        """Whether the surface may be used at a sparsity: anywhere, or only where its single tier was run."""
        if "S" not in self.only_at:
            return True
        low, high = self.window["S"]
        position = -np.log1p(-sparsity)
        return bool(-np.log1p(-low) - LEVEL_WIDTH <= position <= -np.log1p(-high) + LEVEL_WIDTH)

    def replicates(self, kind: IntervalKind) -> Draws | None:
        """Return the draws behind an interval."""
        return {"percentile": self.draws, "jackknife-t": self.jackknife, "wild-cr3": self.wild}.get(kind)
