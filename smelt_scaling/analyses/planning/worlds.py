"""How often a true gain would be found: simulated runs of a design, fitted and resampled as a study is.

A world has the reference's surface, and as the target the same surface with every amplitude scaled so that the gain
at the budget is exactly what was asked for; a scaled L* - E leaves the optimum where it is. Runs are drawn with the
noise stated, go through `fit`, and the gain counts as found where the reported interval lies above 0. Worlds of
different gains share their noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.diagnostics.headline import Headline
from smelt_scaling.analyses.planning.design import Design
from smelt_scaling.analyses.planning.noise import Noise
from smelt_scaling.fitting import FitSettings
from smelt_scaling.frontier import Frontier
from smelt_scaling.laws import Surface
from smelt_scaling.resampling import percentile_interval
from smelt_scaling.study import fit
from smelt_scaling.synth import simulate

__all__ = ["Worlds", "detectable", "shifted", "simulated_power"]

Array = NDArray[np.float64]

#: Starts of the point fits; `fit` takes more where they disagree.
STARTS = 4


def shifted(
    reference: Surface, gain: float, budget: float, sparsity: float | None, flops_per_param: float = 6.0
) -> Surface:
    """Return the surface of a target that saves exactly this share of compute over the reference at a budget.

    Examples
    --------
    >>> from smelt_scaling.laws import LAWS
    >>> law = LAWS["sparse-additive"]
    >>> baseline = Surface(law=law, coef=[1.4439, 1.366e3, 1.975e6, .3703, .1530, .6594])
    >>> target = shifted(baseline, 0.1, 1e21, 0.947)
    >>> headline = Headline(target="t", reference="r", budget=1e21, sparsity=0.947)
    >>> m = float(headline.of_surfaces({"t": target, "r": baseline}))
    >>> round(-float(np.expm1(-m)), 12)
    0.1
    """
    frontier = Frontier(reference, flops_per_param=flops_per_param)
    floor = float(reference[reference.law.floor])
    own, reached = (float(frontier.loss(c, sparsity)) - floor for c in (budget, budget / (1 - gain)))
    scale = [reached / own if name in reference.law.amplitudes else 1.0 for name in reference.law.parameters]
    return Surface(law=reference.law, coef=reference.coef * np.array(scale))


@dataclass(frozen=True, kw_only=True, eq=False)
class Worlds:
    """What was found in simulated worlds of one design, noise and gain.

    Parameters
    ----------
    truth : float
        m = ln(C_ref / C), the same in every world.
    estimate, lower, upper : array (W,)
        Point estimates of m and ends of its interval; NaN where there is no interval.
    """

    truth: float
    estimate: Array
    lower: Array
    upper: Array

    @property
    def found(self) -> int:
        """Worlds in which the interval lies above 0."""
        return int(np.sum(self.lower > 0))

    @property
    def held(self) -> int:
        """Worlds in which the interval holds the truth."""
        return int(np.sum((self.lower <= self.truth) & (self.upper >= self.truth)))

    def row(self) -> dict[str, Any]:
        """Return gain, power and its 95 % Clopper-Pearson ends."""
        from scipy.stats import beta

        found, worlds = self.found, len(self.lower)
        return {
            "gain": float(-np.expm1(-self.truth)) + 0.0,
            "power": found / worlds,
            "power_lo": float(beta.ppf(0.025, found, worlds - found + 1)) if found else 0.0,
            "power_hi": float(beta.ppf(0.975, found + 1, worlds - found)) if found < worlds else 1.0,
            "worlds": worlds,
        }


def simulated_power(
    design: Design,
    reference: Surface,
    headline: Headline,
    noise: Noise,
    gains: Iterable[float],
    *,
    cells: int | None = None,
    worlds: int = 200,
    bootstrap: int = 400,
    seed: int = 0,
    level: float = 0.95,
    settings: FitSettings | None = None,
    pinned: Mapping[str, Sequence[str]] | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Worlds]:
    """Simulate runs of a design and ask each world for the gain, as a study reports it.

    Parameters
    ----------
    design : Design
        The runs.
    reference : Surface
        Surface of the reference.
    headline : Headline
        The gain that is asked for.
    noise : Noise
        Noise of the runs.
    gains : iterable of float
        True gains.
    cells : int, optional
        Number of cells, by `Design.times`; those of the design by default.
    worlds, bootstrap : int
        Worlds per gain, and resamples in each.
    seed : int
        World i of every gain draws its noise and its resamples from ``(seed, i)``.
    level : float
        Nominal coverage of the interval.
    settings : FitSettings, optional
        Choices of the fits.
    pinned : mapping of str to sequence of str, optional
        Parameters that are held, per architecture; here at their true values.
    progress : callable, optional
        Called with 1 after every world.

    Returns
    -------
    list of Worlds
        One per gain.
    """
    settings = settings or FitSettings()
    table = design.taken(len(design.labels) if cells is None else cells)
    sd = dict(zip(design.archs, noise.sd, strict=True))
    seeds = [int(np.random.SeedSequence((seed, i)).generate_state(1)[0]) for i in range(worlds)]
    found = []
    for gain in gains:
        target = shifted(reference, gain, headline.budget, headline.sparsity, settings.flops_per_param)
        truth = {headline.target: target, headline.reference: reference}
        pins = {
            arch: {name: truth[arch].coefficients[name] for name in names}
            for arch, names in (pinned or {}).items()
        }
        results = np.full((worlds, 3), np.nan)
        for i, number in enumerate(seeds):
            runs = simulate(
                truth,
                table,
                sd=sd,
                cell_share=noise.icc,
                pair_correlation=noise.pair_correlation,
                seed=number,
            )
            study = fit(
                runs,
                reference.law,
                bootstrap=bootstrap,
                seed=number,
                delta=settings.delta,
                residual=settings.residual,
                pins=pins or None,
                starts=STARTS,
                engine=settings.engine,
                flops_per_param=settings.flops_per_param,
                cell_weights=settings.cell_weights,
            )
            of = {arch: one.surface for arch, one in study.fits.items()}
            results[i, 0] = headline.of_surfaces(of, settings.flops_per_param)
            if study.draws is not None:
                drawn = {arch: one.surface for arch, one in study.draws.items()}
                ends = percentile_interval(headline.of_surfaces(drawn, settings.flops_per_param), level)
                if ends is not None:
                    results[i, 1:] = ends
            if progress is not None:
                progress(1)
        found.append(
            Worlds(
                truth=float(headline.of_surfaces(truth, settings.flops_per_param)),
                estimate=results[:, 0],
                lower=results[:, 1],
                upper=results[:, 2],
            )
        )
    return found


def detectable(found: Sequence[Worlds], power: float = 0.8) -> float | None:
    """Return the gain that is found with this power, between the simulated ones; None if they do not enclose it.

    The share of worlds is taken to the normal scale, where it is close to a straight line of m.
    """
    from scipy.special import ndtri

    ordered = sorted(found, key=lambda one: one.truth)
    shares = np.maximum.accumulate([one.found for one in ordered]).astype(np.float64)
    worlds = np.array([len(one.lower) for one in ordered])
    z = ndtri(np.clip(shares / worlds, 0.5 / worlds, 1 - 0.5 / worlds))
    wanted = float(ndtri(power))
    above = np.flatnonzero(z >= wanted)
    if not len(above) or above[0] == 0:
        return None
    i = int(above[0])
    m = ordered[i - 1].truth + (wanted - z[i - 1]) / (z[i] - z[i - 1]) * (
        ordered[i].truth - ordered[i - 1].truth
    )
    return float(-np.expm1(-m))
