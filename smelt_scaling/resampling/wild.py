"""Wild cluster bootstrap with leave-one-out residuals (CR3): the signs of whole cells are drawn, not the cells.

Each replicate adds to the fitted losses the residual of every row, taken from the fit without its cell, times one
random sign per cell, the same for both architectures, and refits all rows. It needs no resample to keep every scale
and tier, so it stands where the bootstrap of cells is refused for too few of them. It assumes errors that are as often
above as below. See MacKinnon, Nielsen and Webb 2023, Journal of Econometrics 232, sections 3 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.engine.certificate import certify
from smelt_scaling.engine.newton import delta_ladder
from smelt_scaling.fitting import FitSettings, Fitted, minimiser
from smelt_scaling.laws import Surface
from smelt_scaling.resampling.plans import Plan, label_groups
from smelt_scaling.resampling.replicates import BLOCK_ELEMENTS, Draws

__all__ = ["FEWEST_LABELS", "refit_wild", "wild_plan", "wild_refusal"]

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

#: With fewer labels than this there are too few sign patterns for an interval.
FEWEST_LABELS = 8
#: Up to so many labels every pattern of signs is taken once.
ENUMERATED = 10


def wild_plan(labels: Mapping[str, Labels], *, replicates: int, seed: int) -> Plan:
    """Draw a sign for every label of the union; with few labels take every pattern once.

    Parameters
    ----------
    labels : mapping of str to str array (n,)
        Architecture -> the label of each of its rows.
    replicates : int
        Number of draws; 2**U where the U labels of the union are at most 10.
    seed : int
        As for `bootstrap_plan`.

    Returns
    -------
    Plan
        ``counts`` holds -1 and +1.

    Examples
    --------
    >>> rows = np.array(["x", "y", "y", "z"])
    >>> plan = wild_plan({"a": rows, "b": rows[:3]}, replicates=2000, seed=0)
    >>> plan.counts["a"].shape, bool((plan.counts["a"][:, :2] == plan.counts["b"]).all())
    ((8, 3), True)
    """
    own = {arch: tuple(np.unique(values).tolist()) for arch, values in sorted(labels.items())}
    groups = label_groups(own)
    unions = [sorted({label for arch in group for label in own[arch]}) for group in groups]
    every = sum(map(len, unions))
    if every <= ENUMERATED:
        bits = np.arange(2**every)[:, None] >> np.arange(every)[None, :]
        signs = (2 * (bits & 1) - 1).astype(np.int16)
    else:
        signs = np.empty((replicates, every), dtype=np.int16)
        for i in range(replicates):
            rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(i,))))
            signs[i] = 2 * rng.integers(0, 2, every) - 1
    place = {
        (number, label): sum(map(len, unions[:number])) + position
        for number, union in enumerate(unions)
        for position, label in enumerate(union)
    }
    counts = {
        arch: signs[:, [place[number, label] for label in own[arch]]]
        for number, group in enumerate(groups)
        for arch in group
    }
    return Plan(kind="wild", labels=own, counts=counts, paired=len(groups) < len(own))


def wild_refusal(plan: Plan, left_out: Mapping[str, Draws]) -> str:
    """Say why there is no such bootstrap; nothing if there is.

    Parameters
    ----------
    plan : Plan
        Of the signs.
    left_out : mapping of str to Draws
        The fits without each label of the union, in sorted order.
    """
    union = sorted({label for own in plan.labels.values() for label in own})
    if len(union) < FEWEST_LABELS:
        return f"{len(union)} labels have too few patterns of signs; it needs {FEWEST_LABELS}"
    for arch, draws in left_out.items():
        bad = ~draws.certified | draws.degenerate
        if bad.any():
            return f"{arch}: the fit without {union[int(bad.argmax())]} is not certified or lacks a parameter"
    return ""


def refit_wild(
    fitted: Fitted, index: NDArray[np.intp], plan: Plan, left_out: Draws, settings: FitSettings
) -> Draws:
    """Refit one architecture to its fitted losses with residuals of random sign.

    Parameters
    ----------
    fitted : Fitted
        The full-data fit.
    index : int array (n,)
        Position of each row's label among those of the architecture.
    plan : Plan
        Of the signs.
    left_out : Draws
        The fits without each label of the union, in sorted order.
    settings : FitSettings
        Engine.
    """
    problem, delta, optimise = fitted.problem, fitted.delta, minimiser(settings)
    own, signs = plan.labels[fitted.result.arch], plan.counts[fitted.result.arch]
    union = sorted({label for labels in plan.labels.values() for label in labels})
    rows = problem.centred(left_out.surface.coef[np.searchsorted(union, own)])
    observed = np.log(problem.scale) + (
        problem.observed if problem.log_residual else np.log(problem.observed)
    )
    centre = np.log(problem.predicted(fitted.theta))
    outside = np.log(problem.predicted(rows))[index, np.arange(len(index))]
    residual = observed - outside
    total, size = len(signs), len(problem.held)
    theta, value = np.empty((total, size)), np.empty(total)
    certified, at_bound = np.zeros(total, dtype=bool), np.zeros((total, size), dtype=bool)
    block = max(64, BLOCK_ELEMENTS // len(index) // 64 * 64)
    for lo in range(0, total, block):
        part = slice(lo, min(lo + block, total))
        drawn = centre + signs[part][:, index] * residual - np.log(problem.scale)
        drawn = drawn if problem.log_residual else np.exp(drawn)
        weights = np.repeat(problem.weight[None, :], len(drawn), axis=0)
        start = np.repeat(fitted.theta[None, :], len(drawn), axis=0)
        found = optimise(fitted.objective, start, weights, delta_ladder(delta), observed=drawn)
        theta[part], value[part] = found.theta, found.objective
        verdict = certify(fitted.objective, found.theta, weights, delta, observed=drawn)
        certified[part], at_bound[part] = verdict.certified, verdict.at_bound
    nowhere = np.zeros(total, dtype=bool)
    return Draws(
        surface=Surface(law=problem.law, coef=problem.natural(theta)),
        certified=certified,
        degenerate=nowhere,
        improved=nowhere,
        at_bound=at_bound,
        objective=value,
        counts=signs,
        labels=own,
    )
