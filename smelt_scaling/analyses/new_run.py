"""The loss of one run that was not made: the surface's draws, and the noise that the run will bring.

An interval of the surface is that of the mean of many runs. One new run has a cell effect of its own and run noise
within its cell on top. Both come from the variance components of the residuals by restricted maximum likelihood, which
already makes up for the coefficients that the cells have paid for: plug-in deviations would have to be widened by
sqrt(G / (G - 4)), G cells, these would be widened twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.anova import analysis_of_variance
from smelt_scaling.analyses.linear_problem import linearised
from smelt_scaling.analyses.variance import variance_components
from smelt_scaling.errors import FrontierError, Note, info, warning
from smelt_scaling.study import Study

__all__ = ["RunNoise", "new_run_noise"]

Array = NDArray[np.float64]

#: Fewer cells say next to nothing of how a new one may differ.
FEWEST_CELLS = 5
#: Names the stream of random numbers, apart from that of the resampling.
STREAM = 0x6E657772


@dataclass(frozen=True, kw_only=True)
class RunNoise:
    """Standard deviations of what one new run of one architecture adds to the logarithm of its loss.

    Parameters
    ----------
    arch : str
        The architecture.
    sd_between : float
        Of its cell; 0 if cells were not seen to differ or cannot be told from runs.
    sd_within : float
        Of a run of weight 1 within its cell.
    together : bool
        Whether ``sd_within`` holds both, since no cell was run twice.
    cells : int
        From how many cells they are.
    """

    arch: str
    sd_between: float
    sd_within: float
    together: bool
    cells: int

    def draw(self, draws: int, seed: int, number: int) -> Array:
        """Return one deviation of ln(loss) per draw of the surface, shape (draws,).

        Parameters
        ----------
        draws : int
            How many.
        seed, number : int
            Seed of the study, and the place of the architecture in it.
        """
        rng = np.random.Generator(
            np.random.PCG64(np.random.SeedSequence([STREAM, seed], spawn_key=(number,)))
        )
        cell, run = rng.standard_normal((2, draws))
        return np.asarray(self.sd_between * cell + self.sd_within * run)


def new_run_noise(study: Study, arch: str) -> tuple[RunNoise, list[Note]]:
    """Estimate what one new run of an architecture adds to its surface.

    Parameters
    ----------
    study : Study
        Fitted architectures.
    arch : str
        One of them.

    Raises
    ------
    FrontierError
        If the study leaves nothing to estimate noise from.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> noise, notes = new_run_noise(fit(example_endpoints(), bootstrap=0), "smelt")
    >>> round(noise.sd_between, 5), round(noise.sd_within, 5)
    (0.00298, 0.00351)
    """
    model = linearised(study, arch)
    data = (model.residual, model.basis, model.cell, model.weight)
    found, table, cells = variance_components(*data), analysis_of_variance(*data), len(model.cells)
    unit = study.bootstrap.unit
    if table.sd_total is None or cells < FEWEST_CELLS:
        why = (
            "as many coefficients as endpoints"
            if table.sd_total is None
            else f"{cells} {unit} labels of at least {FEWEST_CELLS}"
        )
        raise FrontierError(
            f"{arch}: no interval of a new run, because nothing tells how runs scatter ({why}); add cells"
        )
    notes: list[Note] = []
    if found.sd_between is None or found.sd_within is None:
        message = (
            f"{arch}: {found.reason}; a new run is taken to scatter by the residuals as a whole, "
            f"{table.sd_total:.2g} of ln(loss)"
        )
        notes.append(warning("noise_not_split", message, cells))
        between, within, together = 0.0, table.sd_total, True
    else:
        between, within, together = found.sd_between, found.sd_within, False
    parts = f"{within:.2g} in all" if together else f"{between:.2g} by its {unit}, {within:.2g} within"
    message = (
        f"{arch}: one new run of a {unit} of its own adds noise of ln(loss) with standard deviation {parts} "
        f"({cells} {unit} labels)"
    )
    notes.append(info("new_run", message, cells))
    if found.status == "at zero":
        message = (
            f"{arch}: {unit} effects are estimated at 0 (up to {_up_to(found.icc_hi)} of the variance is possible): "
            "the interval of a new run counts run noise only"
        )
        notes.append(info("no_cell_effect", message, cells))
    return (
        RunNoise(arch=arch, sd_between=between, sd_within=within, together=together, cells=cells),
        notes,
    )


def _up_to(share: float | None) -> str:
    return "all" if share is None else f"{share:.0%}"
