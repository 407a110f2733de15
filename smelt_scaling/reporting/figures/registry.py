"""Which figures a saved result has: command -> functions of its frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from smelt_scaling.reporting.figures.ablations import ablations_figures
from smelt_scaling.reporting.figures.domains import domains_figures
from smelt_scaling.reporting.figures.downstream import calibration_figures, wins_figures
from smelt_scaling.reporting.figures.drawing import Drawing
from smelt_scaling.reporting.figures.flops import flops_figures
from smelt_scaling.reporting.figures.identifiability import identifiability_figures
from smelt_scaling.reporting.figures.influence import influence_figures
from smelt_scaling.reporting.figures.laws import law_figures
from smelt_scaling.reporting.figures.lengths import lengths_figures
from smelt_scaling.reporting.figures.match import match_figures
from smelt_scaling.reporting.figures.noise import noise_figures
from smelt_scaling.reporting.figures.plans import plan_figures
from smelt_scaling.reporting.figures.probes import probes_figures
from smelt_scaling.reporting.figures.sensitivity import sensitivity_figures
from smelt_scaling.reporting.figures.shots import shots_figures
from smelt_scaling.reporting.figures.sources import sources_figures

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SAVED_FIGURES"]

#: Command -> functions that draw what it saved; each returns the figures that its frame has numbers for.
SAVED_FIGURES: dict[str, tuple[Callable[[pd.DataFrame], Sequence[Drawing]], ...]] = {
    "domains": (domains_figures,),
    "sources": (sources_figures,),
    "lengths": (lengths_figures,),
    "shots": (shots_figures,),
    "downstream": (calibration_figures, wins_figures),
    "ablations": (ablations_figures,),
    "probes": (probes_figures,),
    "flops": (flops_figures,),
    "match": (match_figures,),
    "diagnose": (
        sensitivity_figures,
        influence_figures,
        noise_figures,
        identifiability_figures,
        law_figures,
    ),
    "plan": (plan_figures,),
}
