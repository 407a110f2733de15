"""Simulated worlds whose truth is known: what the coverage of intervals is measured on.

Every world has the design of the example, 12 cells by 6 horizons of two architectures, the published surfaces and noise
of the published size; worlds differ in the noise, and in whether the law that is fitted holds in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Loss = Callable[[Any, Any, Any], Any]

REFERENCE, TARGET = ARCHS = ("baseline", "smelt")
BUDGETS = (1e20, 1e21, 1e22)
SPARSITIES = (0.846, 0.947, 0.969)
#: A point among the largest and longest runs, and one with three times its compute per token and its tokens.
POINTS = {"1e21": (1e10, 1e11), "9e21": (3e10, 3e11)}
#: Where a point and an optimum are asked for, the middle sparsity tier.
SPARSITY, BUDGET = SPARSITIES[1], BUDGETS[1]

#: Degrees of freedom of heavy tails; their variance is df / (df - 2).
DEGREES = 2.5
#: Strength of a drifting exponent: see `drifting`.
DRIFT = 0.02
#: A fit of 6 coefficients to 72 endpoints shrinks the residuals: sd = rmse * sqrt(72 / (72 - 6)).
SD_OVER_RMSE = 1.044


@dataclass(frozen=True, kw_only=True)
class Noise:
    """What is random in a world, and what the fitted law does not know.

    Parameters
    ----------
    title : str
        In words.
    cell_share : float
        Share of the variance that the rows of an architecture in one cell have in common.
    pair_correlation : float
        Correlation of the cell effects of the two architectures.
    shape : {"normal", "heavy", "skewed"}
        Heavy: cell effects and rows of Student's t with 2.5 degrees of freedom. Skewed: cell effects exponential, less
        their mean; rows normal. All have the same variance.
    drift : mapping
        Architecture -> strength of the drift of its exponent of F.
    """

    title: str
    cell_share: float
    pair_correlation: float = 0.5
    shape: Literal["normal", "heavy", "skewed"] = "normal"
    drift: Mapping[str, float] = field(default_factory=dict)


_BOTH = dict.fromkeys(ARCHS, DRIFT)
NOISES = {
    "rows": Noise(title="independent rows", cell_share=0.0),
    "half": Noise(title="half the noise is of cells", cell_share=0.5),
    "most": Noise(title="90 % of the noise is of cells", cell_share=0.9),
    "half, unpaired": Noise(title="half, pair correlation 0", cell_share=0.5, pair_correlation=0.0),
    "most, unpaired": Noise(title="90 %, pair correlation 0", cell_share=0.9, pair_correlation=0.0),
    "half, paired": Noise(title="half, pair correlation .9", cell_share=0.5, pair_correlation=0.9),
    "most, paired": Noise(title="90 %, pair correlation .9", cell_share=0.9, pair_correlation=0.9),
    "rows, heavy": Noise(title="independent rows, heavy tails", cell_share=0.0, shape="heavy"),
    "half, heavy": Noise(title="half, heavy tails", cell_share=0.5, shape="heavy"),
    "half, skewed": Noise(title="half, skewed cell effects", cell_share=0.5, shape="skewed"),
    "most, skewed": Noise(title="90 %, skewed cell effects", cell_share=0.9, shape="skewed"),
    "rows, drift": Noise(title="independent rows, exponents drift", cell_share=0.0, drift=_BOTH),
    "half, drift": Noise(title="half, exponents drift", cell_share=0.5, drift=_BOTH),
    "half, one drifts": Noise(
        title="half, the target's exponent drifts", cell_share=0.5, drift={TARGET: DRIFT}
    ),
}


@cache
def design() -> Any:
    """Return the example's endpoints, whose losses are to be replaced."""
    from smelt_scaling.papers.example import example_endpoints

    return example_endpoints()


@cache
def deviations() -> dict[str, float]:
    """Return the standard deviation of the noise of each architecture, nats/token."""
    from smelt_scaling.papers import load_paper

    table = load_paper("smelt").tables["coefficients"]
    return {arch: SD_OVER_RMSE * float(table.select(arch=arch).numbers("rmse")[0]) for arch in ARCHS}


def drifting(surface: Any, strength: float, smallest: float) -> Loss:
    """Return the loss of a surface whose exponent of F falls as F grows.

    The term of F is multiplied by exp(strength * ln(F / smallest)^2): its local exponent is
    a - 2 * strength * ln(F / smallest), at 0.02 from .39 at the smallest of the runs to .28 at the largest.
    """
    coefficient = {name: float(surface[name]) for name in surface.law.parameters}

    def loss(F: Any, S: Any, D: Any) -> Any:  # noqa: N803
        bent = np.exp(strength * np.log(F / smallest) ** 2)
        of_size = coefficient["A"] * (1 - S) ** coefficient["b"] * F ** -coefficient["a"]
        return coefficient["E"] + of_size * bent + coefficient["K"] * D ** -coefficient["c"]

    return loss


def true_losses(noise: Noise) -> dict[str, Loss]:
    """Return the true surface of each architecture."""
    from smelt_scaling.papers import load_paper

    smallest = float(design().F.min())
    surfaces = load_paper("smelt").surfaces
    return {arch: drifting(surfaces[arch], noise.drift.get(arch, 0.0), smallest) for arch in ARCHS}


def standard_noise(noise: Noise, rng: np.random.Generator, cells: NDArray[np.intp]) -> Array:
    """Draw noise of mean 0 and variance 1 of both architectures, shape (2, n).

    Parameters
    ----------
    noise : Noise
        Shares, correlation and shape.
    rng : Generator
        Where draws come from; every noise takes as many of it, so that worlds of one number resemble each other.
    cells : int array (2, n)
        The cell of each row.
    """
    count, r = int(cells.max()) + 1, noise.pair_correlation

    def symmetric(*shape: int) -> Array:
        if noise.shape == "heavy":
            return np.asarray(rng.standard_t(DEGREES, shape) / np.sqrt(DEGREES / (DEGREES - 2)))
        return rng.standard_normal(shape)

    if noise.shape == "skewed":  # gamma variables of shapes r and 1 - r add up to an exponential one
        effects = rng.gamma(r, size=count) + rng.gamma(1 - r, size=(2, count)) - 1
    else:
        effects = np.sqrt(r) * symmetric(count) + np.sqrt(1 - r) * symmetric(2, count)
    rows = symmetric(*cells.shape)
    shared = np.take_along_axis(effects, cells, axis=1)
    return np.asarray(np.sqrt(noise.cell_share) * shared + np.sqrt(1 - noise.cell_share) * rows)


def endpoints(noise: Noise, index: int, seed: int) -> Any:
    """Draw one world; it depends on the noise, the seed and its index alone."""
    runs, loss = design(), np.empty(len(design()))
    rng = np.random.default_rng(np.random.SeedSequence((seed, index)))
    of = [np.flatnonzero(runs.arch == arch) for arch in ARCHS]
    names = np.unique(runs["cell"])
    drawn = standard_noise(noise, rng, np.array([np.searchsorted(names, runs["cell"][rows]) for rows in of]))
    for arch, rows, z in zip(ARCHS, of, drawn, strict=True):
        exact = true_losses(noise)[arch](runs.F[rows], runs["S"][rows], runs.D[rows])
        loss[rows] = exact + deviations()[arch] * z
    return replace(runs, columns={**runs.columns, "loss": loss}, source="<simulated>")


# -- what is asked of a world, estimated and true ----------------------------------------------------------------------

#: What is asked of each architecture.
OF_ARCH = ("E", "a", "b", "c", "gamma", *(f"loss {at}" for at in POINTS), "ln TPP")
GAINS = tuple((budget, sparsity) for budget in BUDGETS for sparsity in SPARSITIES)
#: Quantity -> the group it is reported in.
QUANTITIES = {f"{arch} {name}": name for arch in ARCHS for name in OF_ARCH} | {
    f"gain {budget:.0e} at {sparsity}".replace("e+", "e"): f"gain {budget:.0e}".replace("e+", "e")
    for budget, sparsity in GAINS
}
GROUPS = tuple(dict.fromkeys(QUANTITIES.values()))


def estimated(surfaces: Mapping[str, Any]) -> Array:
    """Return every quantity of two surfaces or of paired draws of them, shape draws + (quantities,).

    Gains stand as m = ln(C_ref / C), infinite where unreachable.
    """
    from smelt_scaling.analyses.beside import reachable
    from smelt_scaling.frontier import Frontier, log_multiplier

    columns: list[Any] = []
    for arch in ARCHS:
        surface = surfaces[arch]
        frontier = Frontier(surface)
        best = frontier.allocate(BUDGET, SPARSITY)
        columns += [surface[name] for name in ("E", "a", "b", "c")] + [frontier.exponent]
        columns += [surface.loss(F=F, S=SPARSITY, D=D) for F, D in POINTS.values()]
        columns.append(np.log(6 * best.tokens / best.flops_per_token))
    budget, sparsity = np.array(GAINS).T
    m = reachable(
        log_multiplier(Frontier(surfaces[TARGET]), Frontier(surfaces[REFERENCE]), np.log(budget), sparsity)
    )
    return np.concatenate([np.stack(columns, axis=-1), m], axis=-1)


def optimum(loss: Loss, log_budget: float, sparsity: float) -> tuple[float, float]:
    """Return ln F and loss where a surface is lowest at one budget, found numerically whatever the surface."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda x: float(loss(np.exp(x), sparsity, np.exp(log_budget - x))),
        bounds=(np.log(1e7), np.log(1e12)),
        method="bounded",
        options={"xatol": 1e-10, "maxiter": 500},
    )
    return float(found.x), float(found.fun)


def true_gain(losses: Mapping[str, Loss], budget: float, sparsity: float) -> float:
    """Return m = ln(C_ref / C): C_ref is where the reference's own true frontier reaches the target's true loss."""
    from scipy.optimize import brentq

    log_budget = float(np.log(budget))
    goal = optimum(losses[TARGET], log_budget, sparsity)[1]
    reached = brentq(
        lambda x: optimum(losses[REFERENCE], x, sparsity)[1] - goal,
        log_budget - 5,
        log_budget + 10,
        xtol=1e-12,
    )
    return float(reached) - log_budget


def truth(noise: Noise) -> Array:
    """Return every quantity of the true surfaces; NaN for an exponent that drifts, and gamma with it."""
    from smelt_scaling.frontier import Frontier
    from smelt_scaling.papers import load_paper

    losses, surfaces = true_losses(noise), load_paper("smelt").surfaces
    values: list[float] = []
    for arch in ARCHS:
        known = {name: float(surfaces[arch][name]) for name in ("E", "a", "b", "c")}
        known["gamma"] = float(Frontier(surfaces[arch]).exponent)
        if noise.drift.get(arch):
            known |= {"a": np.nan, "gamma": np.nan}
        at, _ = optimum(losses[arch], np.log(BUDGET), SPARSITY)
        values += known.values()
        values += [float(losses[arch](F, SPARSITY, D)) for F, D in POINTS.values()]
        values.append(float(np.log(6 * BUDGET)) - 2 * at)
    return np.array(values + [true_gain(losses, budget, sparsity) for budget, sparsity in GAINS])
