"""The choices that change a fit's digits, checked once and carried into every output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from smelt_scaling.errors import UsageError
from smelt_scaling.laws import REPEAT_CONSTANT

__all__ = ["FitSettings"]

#: What a setting of a few words may say.
CHOICES = {
    "residual": ("log", "raw"),
    "engine": ("newton", "lbfgsb"),
    "cell_weights": ("rows", "equal"),
    "data_law": ("fresh", "repeated"),
}


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
    drop_outliers : bool
        Leave out endpoints over 5 robust standard deviations off a first fit, and fit again, once.
    cell_weights : {"rows", "equal"}
        Every row counts by its weight, or every resampling label counts the same and its rows share in proportion to
        their weights.
    pin_tags : mapping
        Architecture ("" for all) -> parameter -> evaluation set that the held value belongs to, where named.
    data_law : {"fresh", "repeated"}
        Count every token alike, or repeated ones by what they are worth in tokens seen once.
    repeat_constant : float
        R_D* of the latter; see `effective_amount`.
    """

    delta: float | Literal["auto"] = 1e-3
    residual: Literal["log", "raw"] = "log"
    pins: Mapping[str, Mapping[str, float]] | None = None
    starts: int | Literal["thorough"] = 64
    engine: Literal["newton", "lbfgsb"] = "newton"
    flops_per_param: float = 6.0
    drop_outliers: bool = False
    cell_weights: Literal["rows", "equal"] = "rows"
    pin_tags: Mapping[str, Mapping[str, str]] | None = None
    data_law: Literal["fresh", "repeated"] = "fresh"
    repeat_constant: float = REPEAT_CONSTANT

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if (value := getattr(self, name)) not in known:
                raise UsageError(f"{name} {value!r} is unknown; choose from {', '.join(known)}")
        if self.delta != "auto" and not (isinstance(self.delta, int | float) and self.delta > 0):
            raise UsageError(f"delta {self.delta!r}: must be positive, inf or auto")
        if self.starts != "thorough" and not (isinstance(self.starts, int) and self.starts >= 1):
            raise UsageError(f"starts {self.starts!r}: must be at least 1, or thorough")
        for name, usual in (("flops_per_param", 6), ("repeat_constant", REPEAT_CONSTANT)):
            if not ((value := getattr(self, name)) > 0 and np.isfinite(value)):
                raise UsageError(f"{name} {value}: must be positive; the usual value is {usual}")

    @property
    def start_count(self) -> int:
        """Number of starts of the full fit."""
        return 256 if self.starts == "thorough" else self.starts

    def pins_of(self, arch: str) -> dict[str, float]:
        """Return the pins of one architecture, its own over the common ones."""
        pins = self.pins or {}
        return {**pins.get("", {}), **pins.get(arch, {})}

    def pin_tags_of(self, arch: str) -> dict[str, str]:
        """Return the evaluation sets that the pins of one architecture belong to, where named."""
        pins, tags = self.pins or {}, self.pin_tags or {}
        owner = {name: arch if name in pins.get(arch, {}) else "" for name in self.pins_of(arch)}
        return {name: tags[of][name] for name, of in owner.items() if name in tags.get(of, {})}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; an infinite delta is the text "inf"."""
        return {
            "delta": "inf" if self.delta == float("inf") else self.delta,
            "residual": self.residual,
            "pins": {arch: dict(values) for arch, values in sorted((self.pins or {}).items())},
            "starts": self.starts,
            "engine": self.engine,
            "flops_per_param": self.flops_per_param,
            "drop_outliers": self.drop_outliers,
            "cell_weights": self.cell_weights,
            "pin_tags": {arch: dict(tags) for arch, tags in sorted((self.pin_tags or {}).items())},
            "data_law": self.data_law,
            "repeat_constant": self.repeat_constant,
        }
