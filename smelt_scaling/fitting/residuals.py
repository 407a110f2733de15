"""What the residuals of a fit say about the noise, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import LOWEST_SPARSITY, counted
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, info, warning

__all__ = ["Repeats", "repeats_of", "residual_notes", "resolution", "rms", "sparse_rms"]

Array = NDArray[np.float64]

#: A resolution above this share of the RMSE shows in the fit.
COARSE = 0.2
#: Fewer residual degrees of freedom say little of a scatter.
FEWEST_FREE = 5
#: Settings whose rows repeat each other when all of these agree.
SETTINGS = (
    "scale",
    "cell",
    "F",
    "S",
    "D",
    "N",
    "N_act",
    "C",
    "lr",
    "unique_tokens",
    "domain",
    "eval_set",
    "source",
)


def rms(residual: Array, weight: Array) -> float:
    """Return the weighted root mean square of residuals, with no degrees-of-freedom correction."""
    return float(np.sqrt(np.sum(weight * residual**2) / np.sum(weight)))


def sparse_rms(endpoints: Endpoints, residual: Array, weight: Array) -> float | None:
    """Return the root mean square over the sparse tiers; None unless there is a dense one as well.

    Dense models are of another regime, and one law for both may serve the sparse ones badly.
    """
    lowest = endpoints.tiers == endpoints.tiers.min()
    if lowest.all() or np.abs(endpoints.S[lowest]).max() > -LOWEST_SPARSITY:
        return None
    return rms(residual[~lowest], weight[~lowest])


def residual_notes(arch: str, endpoints: Endpoints, rmse: float, degrees_of_freedom: int) -> list[Note]:
    """Return notes on coarse losses and the scatter of repeats.

    Parameters
    ----------
    arch : str
        The architecture, for messages.
    endpoints : Endpoints
        The rows that were fitted.
    rmse : float
        Root mean square residual of the fit, as it is reported.
    degrees_of_freedom : int
        Endpoints less fitted parameters.
    """
    notes = _repeats(arch, endpoints, rmse)
    if degrees_of_freedom < FEWEST_FREE:
        return notes
    return _coarse(arch, endpoints.loss, rmse) + notes


def resolution(loss: Array) -> float:
    """Return the largest step, decimal or binary, of which all losses are multiples; 0 if there is none.

    Examples
    --------
    >>> resolution(np.array([1.94, 2.05, 2.11, 2.4])), resolution(np.array([1.9453125, 2.0546875, 2.125, 2.25]))
    (0.01, 0.0078125)
    """
    steps = [10.0**-digits for digits in range(6)] + [2.0**-bits for bits in range(1, 14)]
    for step in sorted(steps, reverse=True):
        multiple = loss / step
        # float32 columns hold decimals to about 1e-7
        if np.all(np.abs(multiple - np.round(multiple)) < 1e-3):
            return step
    return 0.0


def _coarse(arch: str, loss: Array, rmse: float) -> list[Note]:
    step = resolution(loss)
    if step <= COARSE * rmse or step == 0.0:
        return []
    message = (
        f"{arch}: losses are multiples of {step:.3g}, coarse beside the RMSE of {rmse:.2g}; "
        "export them with more digits"
    )
    return [warning("low_precision", message, len(loss))]


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """The scatter of runs that share every setting.

    Parameters
    ----------
    sd : float
        Standard deviation of the loss about the mean of its setting, pooled over settings.
    rows, settings : int
        Repeated rows, and how many settings they are of; their difference is the degrees of freedom.
    """

    sd: float
    rows: int
    settings: int

    @property
    def free(self) -> int:
        """Degrees of freedom of the standard deviation."""
        return self.rows - self.settings


def repeats_of(endpoints: Endpoints) -> Repeats | None:
    """Estimate the scatter of repeated settings; None if no setting was run twice.

    Examples
    --------
    >>> seeds = {"arch": ["a"] * 3, "seed": ["0", "1", "2"], "F": [1e9] * 3, "D": [1e10] * 3}
    >>> runs = Endpoints.from_frame(seeds | {"loss": [1.9445, 1.9461, 1.9430]})
    >>> found = repeats_of(runs)
    >>> round(found.sd, 5), found.rows, found.settings  # the sample standard deviation of the three
    (0.00155, 3, 1)
    """
    keys = [name for name in SETTINGS if name in endpoints.columns]
    index = np.stack([np.unique(endpoints[name], return_inverse=True)[1] for name in keys], axis=1)
    _, group, size = np.unique(index, axis=0, return_inverse=True, return_counts=True)
    group = group.ravel()
    repeated = size[group] > 1
    if not repeated.any():
        return None
    mean = np.bincount(group, endpoints.loss) / size
    settings = int((size > 1).sum())
    free = int(repeated.sum()) - settings
    pooled = float(np.sqrt(np.sum((endpoints.loss - mean[group])[repeated] ** 2) / free))
    return Repeats(sd=pooled, rows=int(repeated.sum()), settings=settings)


def _repeats(arch: str, endpoints: Endpoints, rmse: float) -> list[Note]:
    found = repeats_of(endpoints)
    if found is None:
        return []
    message = (
        f"{arch}: {found.rows} repeats of {counted(found.settings, 'setting')} scatter by {found.sd:.2g} "
        f"{endpoints.loss_unit.split('/')[0]} (standard deviation; RMSE of the fit: {rmse:.2g})"
    )
    return [info("seed_noise", message, found.rows)]
