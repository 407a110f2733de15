"""What a fit returns: coefficients, certificate, window and caveats, all frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from smelt_scaling.engine.design import CONDITION_REFUSE_INTERVALS
from smelt_scaling.errors import Note
from smelt_scaling.laws import Surface

__all__ = ["Certificate", "Convention", "FitResult", "FitStatus"]


class FitStatus(Enum):
    """How far a point estimate can be trusted; each value is the sentence printed."""

    CERTIFIED = "certified: exact derivatives confirm an optimum that at least two starts reached"
    LONELY = "not certified: only one start reached the best optimum; try --starts thorough"
    NOT_CONVERGED = (
        "not certified: the derivatives do not confirm an optimum; try --starts thorough or fewer parameters"
    )
    NOT_IDENTIFIED = (
        "not identified: the design leaves a direction of the parameters free; add endpoints or --pin one"
    )


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Evidence that a fit is the optimum.

    Parameters
    ----------
    status : FitStatus
        The verdict.
    decrement : float
        Newton decrement relative to the objective; at most 1e-12 at an optimum.
    starts, starts_agreeing : int
        Starts run, and how many ended within 1e-9 (relative) of the best objective.
    at_bounds : tuple of str
        Parameters on their bound.
    linear_zone_share : float
        Share of residuals beyond delta, where the loss is linear; near 1 the fit is close to least absolute deviations.
    condition : float
        Condition number of the Jacobian, centred features and columns at unit norm.
    """

    status: FitStatus
    decrement: float
    starts: int
    starts_agreeing: int
    at_bounds: tuple[str, ...]
    linear_zone_share: float
    condition: float

    @property
    def certified(self) -> bool:
        """Whether the status is ``CERTIFIED``."""
        return self.status is FitStatus.CERTIFIED

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "status": self.status.name.lower(),
            "decrement": self.decrement,
            "starts": self.starts,
            "starts_agreeing": self.starts_agreeing,
            "at_bounds": list(self.at_bounds),
            "linear_zone_share": self.linear_zone_share,
            "condition": self.condition if np.isfinite(self.condition) else None,
        }


@dataclass(frozen=True, kw_only=True)
class Convention:
    """A fit under one count of parameters.

    Parameters
    ----------
    parameters : str
        The column that counts them.
    used : bool
        Whether it is the one of the fit itself.
    alpha, beta : float
        Decay of the term in size, and of the term in tokens.
    E : float
        The floor, nats/token.
    allocation : float
        Exponent a of N* ~ C^a on the compute-optimal frontier: beta/(alpha + beta).
    certified : bool
        Whether the fit is certified.
    """

    parameters: str
    used: bool
    alpha: float
    beta: float
    E: float
    allocation: float
    certified: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True, eq=False)
class FitResult:
    """A fitted surface of one architecture and everything needed to judge it.

    Parameters
    ----------
    arch : str
        Architecture.
    surface : Surface
        The fitted surface.
    certificate : Certificate
        Evidence of the optimum.
    objective : float
        Sum of weighted Huber losses.
    rmse, rmse_log : float
        Root mean squared residual of the loss (in its unit) and of its logarithm; no degrees-of-freedom correction.
    n, n_cells : int
        Endpoints and resampling labels.
    delta : float
        The Huber threshold used.
    window : mapping
        Column -> (smallest, largest) over the endpoints: F, D, S, C and tokens per dense parameter.
    unidentified : mapping
        Parameter -> why it was not fitted.
    only_at : mapping
        Column -> the one value at which the surface may be used.
    collinear : tuple of str
        Two exponents that the design cannot tell apart, if any.
    pinned : mapping
        Parameter -> held value.
    notes : tuple of Note
        Caveats.
    loss_unit : str
        Unit of the losses: nats/token or bits/byte.
    rmse_without_lowest_tier : float or None
        ``rmse`` of this fit over the other sparsity tiers, where the lowest is a dense one beside sparse ones.
    conventions : tuple of Convention
        Exponents under every count of parameters in the table; empty unless there are several.
    """

    arch: str
    surface: Surface
    certificate: Certificate
    objective: float
    rmse: float
    rmse_log: float
    n: int
    n_cells: int
    delta: float
    window: Mapping[str, tuple[float, float]]
    unidentified: Mapping[str, str]
    only_at: Mapping[str, float]
    collinear: tuple[str, ...]
    pinned: Mapping[str, float]
    notes: tuple[Note, ...]
    loss_unit: str = "nats/token"
    rmse_without_lowest_tier: float | None = None
    conventions: tuple[Convention, ...] = ()

    @property
    def intervals_refused(self) -> bool:
        """Whether the design is too ill-conditioned for an interval to mean anything."""
        return self.why_no_interval != ""

    @property
    def why_no_interval(self) -> str:
        """Why the design allows no interval; empty if it does."""
        if self.collinear:
            return (
                f"exponents {' and '.join(self.collinear)} cannot be told apart, their columns move together"
            )
        if not self.certificate.condition <= CONDITION_REFUSE_INTERVALS:
            return (
                f"condition number {self.certificate.condition:.2g} is above {CONDITION_REFUSE_INTERVALS:.0e}"
            )
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; an unidentified coefficient is null."""
        coefficients = {
            name: (None if name in self.unidentified and name != self.surface.law.floor else value)
            for name, value in self.surface.coefficients.items()
        }
        return {
            "arch": self.arch,
            "law": self.surface.law.name,
            "formula": self.surface.law.formula,
            "loss_unit": self.loss_unit,
            "coefficients": coefficients,
            "held": {
                name: self.surface.coefficients[name] for name, value in coefficients.items() if value is None
            },
            "unidentified": dict(self.unidentified),
            "only_at": dict(self.only_at),
            "collinear": list(self.collinear),
            "pinned": dict(self.pinned),
            "objective": self.objective,
            "rmse": self.rmse,
            "rmse_log": self.rmse_log,
            "rmse_without_lowest_tier": self.rmse_without_lowest_tier,
            "n": self.n,
            "n_cells": self.n_cells,
            "delta": "inf" if np.isinf(self.delta) else self.delta,
            "window": {name: list(bounds) for name, bounds in self.window.items()},
            "certificate": self.certificate.to_dict(),
            "conventions": [one.to_dict() for one in self.conventions],
            "notes": [note.to_dict() for note in self.notes],
        }

    def summary(self) -> str:
        """Return the result as a few lines of text."""
        from smelt_scaling.fitting.summary import fit_lines, note_lines

        return "\n".join([*fit_lines([self]), *note_lines(self.notes)])

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.summary())}</pre>"

    def __repr__(self) -> str:
        values = ", ".join(f"{k}={v:.6g}" for k, v in self.surface.coefficients.items())
        return f"FitResult({self.arch}: {values}; {self.certificate.status.name.lower()})"
