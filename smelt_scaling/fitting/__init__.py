"""One architecture's point estimate, with the certificate that says how far to trust it."""

from __future__ import annotations

from smelt_scaling.fitting.estimate import Fitted, fit_architecture, frontier_columns, minimiser
from smelt_scaling.fitting.result import Certificate, FitResult, FitStatus
from smelt_scaling.fitting.settings import FitSettings

__all__ = [
    "Certificate",
    "FitResult",
    "FitSettings",
    "FitStatus",
    "Fitted",
    "fit_architecture",
    "frontier_columns",
    "minimiser",
]
