"""The choices that change a fit's digits, checked once and carried into every output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from smelt_scaling.errors import UsageError

__all__ = ["FitSettings"]

RESIDUALS, ENGINES = ("log", "raw"), ("newton", "lbfgsb")


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Choices that change a fit's digits.

    Parameters
    ----------
    delta : float or "auto"
        Huber threshold of the residual; ``inf`` is least squares, ``"auto"`` is 1.345 robust standard deviations of the
        residuals of a first fit at 1e-3.
    residual : {"log", "raw"}
        ln(predicted) - ln(observed), or predicted - observed in nats/token.
    pins : mapping
        Architecture ("" for all) -> parameter -> held value.
    starts : int or "thorough"
        Variable-projection starts of the full fit; ``"thorough"`` is 256, and eight further starts in every replicate.
    engine : {"newton", "lbfgsb"}
        Optimiser.
    flops_per_param : float
        F = flops_per_param * N, for laws in N.
    """

    delta: float | Literal["auto"] = 1e-3
    residual: Literal["log", "raw"] = "log"
    pins: Mapping[str, Mapping[str, float]] | None = None
    starts: int | Literal["thorough"] = 64
    engine: Literal["newton", "lbfgsb"] = "newton"
    flops_per_param: float = 6.0

    def __post_init__(self) -> None:
        for name, value, known in (("residual", self.residual, RESIDUALS), ("engine", self.engine, ENGINES)):
            if value not in known:
                raise UsageError(f"{name} {value!r} is unknown; choose from {', '.join(known)}")
        if self.delta != "auto" and not (isinstance(self.delta, int | float) and self.delta > 0):
            raise UsageError(f"delta {self.delta!r}: must be positive, inf or auto")
        if self.starts != "thorough" and not (isinstance(self.starts, int) and self.starts >= 1):
            raise UsageError(f"starts {self.starts!r}: must be at least 1, or thorough")
        if not (self.flops_per_param > 0 and np.isfinite(self.flops_per_param)):
            raise UsageError(
                f"flops_per_param {self.flops_per_param}: must be positive; the usual value is 6"
            )

    @property
    def start_count(self) -> int:
        """Number of starts of the full fit."""
        return 256 if self.starts == "thorough" else self.starts

    def pins_of(self, arch: str) -> dict[str, float]:
        """Return the pins of one architecture, its own over the common ones."""
        pins = self.pins or {}
        return {**pins.get("", {}), **pins.get(arch, {})}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; an infinite delta is the text "inf"."""
        return {
            "delta": "inf" if self.delta == float("inf") else self.delta,
            "residual": self.residual,
            "pins": {arch: dict(values) for arch, values in sorted((self.pins or {}).items())},
            "starts": self.starts,
            "engine": self.engine,
            "flops_per_param": self.flops_per_param,
        }
