"""The worlds that benchmarks run on: the fits and resamples of one architecture, ready to be timed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.fitting import FitSettings, Fitted, fit_architecture
from smelt_scaling.laws import get_law
from smelt_scaling.resampling import bootstrap_plan
from smelt_scaling.resampling.replicates import degenerate_replicates

SETTINGS = FitSettings()


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """One architecture: its full-data fit, and how often each label counts in each replicate."""

    fitted: Fitted
    index: NDArray[np.intp]
    counts: NDArray[np.int16]
    labels: tuple[str, ...]

    @property
    def weights(self) -> NDArray[np.float64]:
        """Row weights of every replicate, shape (R, n)."""
        return np.asarray(self.fitted.problem.weight * self.counts[:, self.index])

    @property
    def start(self) -> NDArray[np.float64]:
        """The full-data optimum once per replicate, shape (R, P)."""
        return np.repeat(self.fitted.theta[None, :], len(self.counts), axis=0)

    @property
    def frozen(self) -> NDArray[np.bool_]:
        """Coordinates that degenerate replicates hold, shape (R, P)."""
        return degenerate_replicates(self.fitted, self.index, self.counts)[1]


def worlds(
    endpoints: Endpoints,
    law: str = "sparse-additive",
    *,
    replicates: int,
    seed: int = 0,
    resample: str | None = None,
    settings: FitSettings = SETTINGS,
) -> dict[str, World]:
    """Fit every architecture and draw the resamples that a study with this seed draws."""
    labels = endpoints.cells(resample)[0]
    own = {arch: labels[endpoints.arch == arch] for arch in endpoints.archs}
    plan = bootstrap_plan(own, replicates=replicates, seed=seed)
    result = {}
    for arch, rows in endpoints.by_arch().items():
        names = plan.labels[arch]
        result[arch] = World(
            fitted=fit_architecture(arch, rows, get_law(law), settings, n_cells=len(names)),
            index=np.searchsorted(np.array(names), own[arch]),
            counts=plan.counts[arch],
            labels=names,
        )
    return result
