"""What a plan is about, settled once: the gain, the surfaces, the runs there are, and the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from smelt_scaling.analyses.diagnostics.headline import Headline, headline_of
from smelt_scaling.analyses.planning.design import Design, design_of
from smelt_scaling.analyses.planning.evidence import Evidence, evidence_of
from smelt_scaling.analyses.planning.jacobian import log_loss_jacobian
from smelt_scaling.analyses.planning.noise import Noise, Residuals, settled_noise
from smelt_scaling.analyses.view import View, view_of
from smelt_scaling.endpoints import Endpoints, default_sparsities
from smelt_scaling.errors import FrontierError, Note, UsageError, info, merge_notes, warning
from smelt_scaling.fitting import FitSettings
from smelt_scaling.frontier import Frontier
from smelt_scaling.laws import Surface
from smelt_scaling.papers import Paper
from smelt_scaling.resampling import percentile_interval
from smelt_scaling.study import Study

__all__ = ["Intent", "intent_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Intent:
    """What a plan is about.

    Parameters
    ----------
    headline : Headline
        The gain.
    view : View
        Of the study or paper.
    surfaces : mapping of str to Surface
        Of target and reference.
    design : Design
        The runs there are.
    tiers : tuple of float
        Sparsities of the runs.
    noise : Noise
        Of the runs.
    delta : pair of float
        Huber thresholds on ln L.
    held, pinned : mapping of str to frozenset of str
        Parameters that are not fitted, and those of them that the user holds.
    settings : FitSettings
        Choices of the fits.
    reported : pair of float, or None
        Ends of m of the study's own draws.
    notes : tuple of Note
        Caveats.
    """

    headline: Headline
    view: View
    surfaces: Mapping[str, Surface]
    design: Design
    tiers: tuple[float, ...]
    noise: Noise
    delta: tuple[float, float]
    held: Mapping[str, frozenset[str]]
    pinned: Mapping[str, frozenset[str]]
    settings: FitSettings
    reported: tuple[float, float] | None
    notes: tuple[Note, ...]

    @property
    def pair(self) -> tuple[Surface, Surface]:
        """Surfaces of target and reference."""
        return self.surfaces[self.headline.target], self.surfaces[self.headline.reference]

    def evidence(self, *, icc: float | None = None, se_factor: float | None = None) -> Evidence:
        """Return what the runs say, with another share of the noise in common if one is named."""
        return evidence_of(
            self.design,
            self.surfaces,
            self.headline,
            self.noise if icc is None else replace(self.noise, icc=icc),
            delta=self.delta,
            held=self.held,
            flops_per_param=self.settings.flops_per_param,
            se_factor=se_factor,
        )


def intent_of(
    source: Study | Paper,
    *,
    design: Endpoints | None = None,
    target: str | None = None,
    reference: str | None = None,
    budget: float | None = None,
    sparsity: float | None = None,
    noise: float | Mapping[str, float] | None = None,
    icc: float | None = None,
    pair_correlation: float | None = None,
    level: float = 0.95,
) -> Intent:
    """Settle what a plan is about; parameters as of `plan`."""
    view = view_of(source)
    headline, notes = headline_of(
        source, target=target, reference=reference, budget=budget, sparsity=sparsity
    )
    archs = (headline.target, headline.reference)
    pair = (view.side(archs[0]), view.side(archs[1]))
    view.require_comparable(pair)
    view.require_frontier(pair)
    view.sparsity_grid(None if headline.sparsity is None else [headline.sparsity], pair)
    surfaces = {side.arch: side.surface for side in pair}
    for side in pair:
        if not Frontier(side.surface).allocates:
            raise FrontierError(
                f"law {view.law.name}: it holds C only, so it says nothing of sizes and tokens of runs to be made; fit "
                "a law in F and D, such as --law additive"
            )
    if isinstance(source, Study):
        settings, unit, made = source.settings, source.bootstrap.unit, source.endpoints
        own = design_of(made, source.law, archs, settings, unit)
        residuals = _residuals(source, own)
        delta = {arch: source[arch].delta for arch in archs}
        pinned = {arch: frozenset(source[arch].pinned) for arch in archs}
        held = {arch: pinned[arch] | frozenset(source[arch].unidentified) for arch in archs}
    else:
        settings, unit, residuals = FitSettings(flops_per_param=view.flops_per_param), None, None
        delta, pinned = dict.fromkeys(archs, 1e-3), dict.fromkeys(archs, frozenset())
        held = pinned
        if design is None:
            raise UsageError(
                f"paper {source.name}: published coefficients come without runs; name a table of the runs that are "
                "made or planned with --design runs.csv (smelt-scaling example writes those of smelt)"
            )
        made = design
    runs = design or made
    if design is not None:
        own = design_of(design, view.law, archs, settings)
    if len(own.labels) < 2:
        raise UsageError(
            f"{runs.source}: its runs are of one {own.unit}, so nothing says how cells scatter; plan at least two"
        )
    known, assumed = settled_noise(archs, residuals, noise=noise, icc=icc, pair_correlation=pair_correlation)
    weights = runs.weight
    if np.ptp(weights) > 1e-9 * weights.max() or settings.cell_weights != "rows":
        message = "rows of the fit have different weights; the plan counts every endpoint alike"
        notes.append(warning("weights_ignored", message, len(runs)))
    raw = settings.residual == "raw"
    losses = [
        float(surfaces[arch].loss(**columns).mean()) if raw else 1.0
        for arch, columns in zip(archs, own.columns, strict=True)
    ]
    if design is None and isinstance(source, Study):
        reported = _reported(source, headline, level)
    else:
        reported = None
        message = (
            f"planned from the runs of {runs.source}, not those of the fit"
            if isinstance(source, Study)
            else ""
        )
        notes += [info("other_design", message, len(runs))] if message else []
    return Intent(
        headline=headline,
        view=view,
        surfaces=surfaces,
        design=own,
        tiers=tuple(default_sparsities(runs).tolist()) if "S" in view.law.columns else (),
        noise=known,
        delta=(float(delta[archs[0]]) / losses[0], float(delta[archs[1]]) / losses[1]),
        held=held,
        pinned=pinned,
        settings=settings,
        reported=reported,
        notes=merge_notes(view.notes, notes, assumed),
    )


def _residuals(study: Study, design: Design) -> tuple[Residuals, Residuals]:
    by_arch = study.endpoints.by_arch()
    found = []
    for arch, columns, cell in zip(design.archs, design.columns, design.cell, strict=True):
        fit, law = study[arch], study.law
        predicted = fit.surface.loss(**columns)
        free = [name not in fit.pinned and name not in fit.unidentified for name in law.parameters]
        jacobian = predicted[:, None] * log_loss_jacobian(fit.surface, columns)
        found.append(
            Residuals(residual=by_arch[arch].loss - predicted, jacobian=jacobian[:, free], cell=cell)
        )
    return found[0], found[1]


def _reported(study: Study, headline: Headline, level: float) -> tuple[float, float] | None:
    """Return the ends of m of the study's own draws."""
    if study.draws is None or any(fit.intervals_refused for fit in study.fits.values()):
        return None
    drawn = {arch: one.surface for arch, one in study.draws.items()}
    ends = percentile_interval(headline.of_surfaces(drawn, study.settings.flops_per_param), level)
    return None if ends is None else (float(ends[0]), float(ends[1]))
