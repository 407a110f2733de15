"""Refitting one architecture under every replicate's weights, each refit certified.

A near-LAD objective has local minima, so one start per replicate is not enough. Every replicate starts at the
full-data optimum, then looks at the optima of a fixed pilot (replicates 0-255), restarts from the one that suits it
best and keeps the lower. From 256 draws on the pilot is the same however many there are, and so are the first draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.engine.certificate import certify
from smelt_scaling.engine.design import CONDITION_SINGULAR, condition_numbers, exponent_levels
from smelt_scaling.engine.newton import delta_ladder
from smelt_scaling.fitting import FitSettings, Fitted, minimiser
from smelt_scaling.laws import Surface

__all__ = ["Draws", "degenerate_replicates", "refit"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Counts = NDArray[np.int16]

PILOT = 256
SEEDS = 32
THOROUGH_SEEDS = 8
SCREEN = 4096  # replicates screened at once
BLOCK_ELEMENTS = 2_000_000  # rows x replicates in one batch: enough to keep stragglers company


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """Resampled surfaces of one architecture.

    Parameters
    ----------
    surface : Surface
        Coefficients of shape (R, P).
    certified, degenerate, improved : bool array (R,)
        Whether the optimum is certified; whether the resample could not identify every parameter; whether an extra
        start found a lower objective.
    at_bound : bool array (R, P)
        Parameters on their bound.
    objective : array (R,)
        Objective of each refit.
    counts : int array (R, U)
        How often each label counts.
    labels : tuple of str
        The labels, sorted.
    """

    surface: Surface
    certified: Mask
    degenerate: Mask
    improved: Mask
    at_bound: Mask
    objective: Array
    counts: Counts
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("certified", "degenerate", "improved", "at_bound", "objective", "counts"):
            frozen = np.array(getattr(self, name))
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)

    def __len__(self) -> int:
        """Return the number of replicates."""
        return len(self.certified)


def degenerate_replicates(fitted: Fitted, index: NDArray[np.intp], counts: Counts) -> tuple[Mask, Mask]:
    """Find resamples that cannot identify every free parameter.

    Returns
    -------
    degenerate : bool array (R,)
        A free exponent's feature has one level left, or the Jacobian at the full-data optimum is singular.
    frozen : bool array (R, P)
        Coordinates to hold at the full-data value: the exponent that lost its levels with the amplitude of a term that
        became constant, or every exponent where only the Jacobian tells.
    """
    parts = [_screen(fitted, index, counts[lo : lo + SCREEN]) for lo in range(0, len(counts), SCREEN)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _screen(fitted: Fitted, index: NDArray[np.intp], counts: Counts) -> tuple[Mask, Mask]:
    problem = fitted.problem
    law, free = problem.law, problem.free
    present = counts[:, index] > 0
    frozen = np.zeros((len(counts), len(free)), dtype=bool)
    for name, level in exponent_levels(law, fitted.columns, fitted.tiers).items():
        position = law.parameters.index(name)
        if not free[position]:
            continue
        one_hot = np.eye(level.max() + 1)[level]
        frozen[:, position] = (present.astype(np.float64) @ one_hot > 0).sum(axis=1) < 2
    exponents = np.array([name in law.exponents for name in law.parameters])
    for term in problem.terms:
        own = [c for c in term.columns[1:] if free[c]]
        if own and free[term.columns[0]]:
            frozen[:, term.columns[0]] |= frozen[:, own].all(axis=1)
    degenerate = frozen.any(axis=1)
    singular = (
        condition_numbers(problem, fitted.theta, problem.weight * counts[:, index]) > CONDITION_SINGULAR
    )
    frozen[singular & ~degenerate] |= exponents & free
    return degenerate | singular, frozen


def refit(
    fitted: Fitted,
    index: NDArray[np.intp],
    counts: Counts,
    labels: tuple[str, ...],
    settings: FitSettings,
    *,
    screened: tuple[Mask, Mask] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Draws:
    """Refit one architecture under every row of ``counts``.

    Parameters
    ----------
    fitted : Fitted
        The full-data fit.
    index : int array (n,)
        Position in ``labels`` of each row's label.
    counts : int array (R, U)
        How often each label counts in each replicate.
    labels : tuple of str
        The labels.
    settings : FitSettings
        Engine and thoroughness.
    screened : pair of bool arrays, optional
        What `degenerate_replicates` returned, if it is known already.
    progress : callable, optional
        Called with the number of replicates just finished.
    """
    problem, objective, delta = fitted.problem, fitted.objective, fitted.delta
    optimise = minimiser(settings)
    total, size = len(counts), len(problem.held)
    block = max(64, BLOCK_ELEMENTS // len(index) // 64 * 64)
    blocks = [slice(lo, min(lo + block, total)) for lo in range(0, total, block)]
    degenerate, frozen = degenerate_replicates(fitted, index, counts) if screened is None else screened
    theta, value = np.empty((total, size)), np.empty(total)
    for part in blocks:
        start = np.repeat(fitted.theta[None, :], part.stop - part.start, axis=0)
        weights = problem.weight * counts[part][:, index]
        found = optimise(objective, start, weights, delta_ladder(delta), frozen=frozen[part])
        theta[part], value[part] = found.theta, found.objective
        if progress is not None:
            progress((part.stop - part.start + 1) // 2)
    improved = np.zeros(total, dtype=bool)
    seeds = _seeds(theta, value, degenerate, settings, exponent=1 + len(problem.terms))
    scores = objective.loss_of_rows(seeds, delta) if len(seeds) else np.empty((0, len(index)))
    certified, at_bound = np.zeros(total, dtype=bool), np.zeros((total, size), dtype=bool)
    for part in blocks:
        weights = problem.weight * counts[part][:, index]
        before = value[part].copy()
        for start in _restarts(theta[part], weights, seeds, scores, settings):
            usable = ~degenerate[part]
            found = optimise(objective, start[usable], weights[usable], np.array([delta]))
            better = np.zeros(len(usable), dtype=bool)
            better[usable] = found.objective < value[part][usable]
            rows = np.flatnonzero(better) + part.start
            theta[rows], value[rows] = found.theta[better[usable]], found.objective[better[usable]]
        rounding = 0.5 * weights.sum(axis=1) * 1e-24  # of noise-free data, which end in it
        improved[part] = value[part] < before * (1 - 1e-9) - rounding
        verdict = certify(objective, theta[part], weights, delta, frozen=frozen[part])
        certified[part], at_bound[part] = verdict.certified, verdict.at_bound
        if progress is not None:
            progress((part.stop - part.start) // 2)
    return Draws(
        surface=Surface(law=problem.law, coef=problem.natural(theta)),
        certified=certified,
        degenerate=degenerate,
        improved=improved,
        at_bound=at_bound,
        objective=value,
        counts=counts,
        labels=labels,
    )


def _seeds(theta: Array, value: Array, degenerate: Mask, settings: FitSettings, *, exponent: int) -> Array:
    """Return pilot optima spread evenly over the ranks of the first exponent."""
    usable = np.flatnonzero(~degenerate[:PILOT] & np.isfinite(value[:PILOT]))
    wanted = THOROUGH_SEEDS if settings.starts == "thorough" else SEEDS
    if len(usable) == 0:
        return theta[:0]
    pilot = theta[usable]
    key = pilot[:, min(exponent, pilot.shape[1] - 1)]
    ranked = pilot[np.lexsort((usable, key))]
    if len(ranked) <= wanted:
        return ranked
    ranks = np.linspace(0.03, 0.995, wanted) * (len(ranked) - 1)
    return np.asarray(ranked[ranks.round().astype(np.intp)])


def _restarts(
    theta: Array, weights: Array, seeds: Array, scores: Array, settings: FitSettings
) -> list[Array]:
    """Return extra starts of a block: each replicate's most promising seed, or every seed when thorough."""
    if len(seeds) == 0:
        return []
    if settings.starts == "thorough":
        return [np.repeat(seed[None, :], len(theta), axis=0) for seed in seeds]
    at_seed = weights @ scores.T
    own = (theta[:, None, :] == seeds[None, :, :]).all(axis=2)  # its own optimum is no news
    return [seeds[np.argmin(np.where(own, np.inf, at_seed), axis=1)]]
