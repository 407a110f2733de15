"""One architecture's point estimate, with the certificate that says how far to trust it."""

from __future__ import annotations

from smelt_scaling.fitting.conventions import with_conventions
from smelt_scaling.fitting.estimate import Fitted, fit_architecture, frontier_columns, minimiser
from smelt_scaling.fitting.outliers import fit_screened
from smelt_scaling.fitting.result import Certificate, Convention, FitResult, FitStatus
from smelt_scaling.fitting.settings import FitSettings

__all__ = [
    "Certificate",
    "Convention",
    "FitResult",
    "FitSettings",
    "FitStatus",
    "Fitted",
    "fit_architecture",
    "fit_screened",
    "frontier_columns",
    "minimiser",
    "with_conventions",
]
