"""What a design says about a gain: its standard error, by generalised least squares and as it is reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.diagnostics.headline import Headline
from smelt_scaling.analyses.planning.design import Design
from smelt_scaling.analyses.planning.estimator import huber_variance
from smelt_scaling.analyses.planning.information import cell_information, variance_of
from smelt_scaling.analyses.planning.jacobian import gain_gradients, log_loss_jacobian
from smelt_scaling.analyses.planning.noise import Noise
from smelt_scaling.errors import FrontierError
from smelt_scaling.laws import Surface

__all__ = ["Evidence", "evidence_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """What runs say about m = ln(C_ref / C).

    Parameters
    ----------
    m : float
        Of the surfaces.
    gradient : array (2P,)
        dm / d coordinates of target and reference.
    free : bool array (2P,)
        Coordinates that are fitted.
    cells : array (K, 2P, 2P)
        Information of every cell.
    losses : pair of float
        Mean losses of the runs, at which the noise of a loss becomes that of its logarithm.
    se : float
        Standard error of m by generalised least squares of both surfaces.
    se_factor : float
        That of the Huber fits over it.
    """

    m: float
    gradient: Array
    free: NDArray[np.bool_]
    cells: Array
    losses: tuple[float, float]
    se: float
    se_factor: float

    @property
    def se_reported(self) -> float:
        """Standard error of m of the fits that are made."""
        return self.se * self.se_factor

    def se_with(self, more: Array, times: NDArray[np.intp] | None = None) -> Array:
        """Return the reported standard error with further information (..., 2P, 2P); cells count so many times."""
        present = self.cells.sum(axis=0) if times is None else np.tensordot(times, self.cells, axes=1)
        return np.asarray(np.sqrt(variance_of(present + more, self.gradient, self.free)) * self.se_factor)


def evidence_of(
    design: Design,
    surfaces: Mapping[str, Surface],
    headline: Headline,
    noise: Noise,
    *,
    delta: tuple[float, float],
    held: Mapping[str, frozenset[str]] | None = None,
    flops_per_param: float = 6.0,
    se_factor: float | None = None,
) -> Evidence:
    """Return what a design says about a gain.

    Parameters
    ----------
    design : Design
        The runs.
    surfaces : mapping of str to Surface
        Where the law is linearised.
    headline : Headline
        The gain.
    noise : Noise
        Noise of the runs.
    delta : pair of float
        Huber thresholds on ln L of target and reference.
    held : mapping of str to frozenset of str, optional
        Parameters that are not fitted.
    flops_per_param : float
        F = flops_per_param * N, for laws in N.
    se_factor : float, optional
        Stated instead of the asymptotic one.

    Raises
    ------
    FrontierError
        If the reference does not reach the loss, or the runs leave a direction of the coefficients open.
    """
    m = float(headline.of_surfaces(surfaces, flops_per_param))
    if not np.isfinite(m):
        raise FrontierError(
            f"{headline.reference}: at no compute does it reach the loss of {headline.target} at {headline.budget:g} "
            "FLOPs, so there is no gain to plan for; name a smaller --budget"
        )
    gradient = np.concatenate(gain_gradients(headline, surfaces, flops_per_param))
    parameters = surfaces[headline.target].law.parameters
    free = np.array([name not in (held or {}).get(arch, ()) for arch in design.archs for name in parameters])
    pair = [surfaces[arch] for arch in design.archs]
    jacobians = [log_loss_jacobian(one, own) for one, own in zip(pair, design.columns, strict=True)]
    losses = [float(one.loss(**own).mean()) for one, own in zip(pair, design.columns, strict=True)]
    kept = (losses[0], losses[1])
    spread, count = noise.spread(kept), len(design.labels)
    cells = cell_information(jacobians, design.cell, count, spread)
    se = float(np.sqrt(variance_of(cells.sum(axis=0), gradient, free)))
    if not np.isfinite(se):
        raise FrontierError(
            "the runs leave a combination of coefficients open, so nothing is known of the gain's error; see "
            "smelt-scaling check for what to add, or hold a parameter with --pin in the fit"
        )
    if se_factor is None:
        wide = huber_variance(jacobians, design.cell, count, gradient, free, delta=delta, spread=spread)
        se_factor = float(np.sqrt(wide)) / se
    return Evidence(m=m, gradient=gradient, free=free, cells=cells, losses=kept, se=se, se_factor=se_factor)
