r"""Testing a hypothesis about two laws by a bootstrap that knows of the cells.

The statistic is twice the difference of minus log likelihoods of the Gaussian model in which runs of one cell share a
random effect (`smelt_scaling.engine.intercepts`), with the variances estimated from the unconstrained fit:

.. math:: T = \min_{H_0} r^T \hat V^{-1} r - \min r^T \hat V^{-1} r

(Gallant 1987, Nonlinear Statistical Models, section 5.3). Compared with the difference of the study's own Huber
objectives it weighs what runs of one cell and pairs of architectures say together, which is where exponents are told
apart, and it needs no constant. Chi-square is its distribution only with many cells, so its null is simulated: losses
are drawn from the constrained fit with the estimated cell effects, their correlation between the architectures and the
errors of runs, everything (variances as well) is estimated anew, and p = (1 + #{T* >= T})/(B + 1) (Davison and Hinkley
1997, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.diagnostics.headline import Headline
from smelt_scaling.analyses.diagnostics.law_noise import FEWEST_BETWEEN, CellNoise, noise_of
from smelt_scaling.engine.certificate import certify
from smelt_scaling.engine.intercepts import RandomIntercepts
from smelt_scaling.engine.newton import minimise
from smelt_scaling.engine.problem import Problem
from smelt_scaling.engine.tied import Tie, Tied, free_tie
from smelt_scaling.errors import FitError
from smelt_scaling.fitting import fit_architecture
from smelt_scaling.study import Study

__all__ = ["Pair", "TieTest", "compare", "make_pair", "pair_of", "try_ties"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: Elements of the largest temporary of a batch.
ELEMENTS = 1_000_000
#: A residual this small is rounding: there is no noise to test against.
NOISE_FREE = 1e-9
#: Least squares has no delta.
PLAIN = np.array([np.inf])


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """Reference and target as one problem, with the fit in which they share nothing.

    Parameters
    ----------
    archs : tuple of str
        Reference, target.
    problems : tuple of Problem
        Theirs.
    cells : tuple of int arrays
        Cell of each of their rows.
    noise : CellNoise
        Estimates variances from residuals.
    theta : array (T,)
        Unconstrained optimum, both one after the other.
    components : array (5,)
        Variances at it.
    certified : bool
        Whether the derivatives confirm it.
    """

    archs: tuple[str, str]
    problems: tuple[Problem, Problem]
    cells: tuple[Index, Index]
    objective: RandomIntercepts
    separate: Tie
    noise: CellNoise
    theta: Array
    components: Array
    certified: bool

    @property
    def observed(self) -> Array:
        """Scaled observations of both."""
        return np.concatenate([problem.observed for problem in self.problems])

    def split(self, theta: Array) -> tuple[Array, Array]:
        """Return the parameters (..., P) of each."""
        size = len(self.problems[0].held)
        return theta[..., :size], theta[..., size:]

    def predicted(self, theta: Array) -> Array:
        """Return scaled predictions of both (R, n) at parameters (R, T), on the scale of the residuals."""
        parts = [
            problem.predicted(own) / problem.scale
            for problem, own in zip(self.problems, self.split(theta), strict=True)
        ]
        return np.concatenate(
            [np.log(m) if p.log_residual else m for p, m in zip(self.problems, parts, strict=True)], axis=-1
        )

    def variances(self, observed: Array, start: Array) -> Array:
        """Return the variances (R, 5) of data sets (R, n); ``start`` (R, T) is where the search begins."""
        plain = _least_squares(self.objective, self.separate, observed, start)
        return self.noise.components(self.objective.residuals(plain, observed))

    def simulate(self, theta: Array, components: Array, seed: int) -> Array:
        """Draw scaled observations (R, n) around each point (R, T) with its own variances (R, 5).

        Draw i comes from ``SeedSequence(seed, spawn_key=(i,))``, whatever the number of draws.
        """
        first, second = self.cells
        union = 1 + max(int(first.max()), int(second.max()))
        drawn = self.predicted(theta)
        split = len(first)
        errors = [1.0 / np.sqrt(problem.weight) for problem in self.problems]
        for i, (line, own) in enumerate(zip(drawn, components, strict=True)):
            rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(i,))))
            u, v = rng.standard_normal((2, union))
            spread = np.sqrt(own[:4])
            r = own[4] / (spread[2] * spread[3]) if own[4] else 0.0
            e = rng.standard_normal(len(line))
            line[:split] += spread[2] * u[first] + spread[0] * errors[0] * e[:split]
            line[split:] += spread[3] * (r * u + np.sqrt(1 - r * r) * v)[second]
            line[split:] += spread[1] * errors[1] * e[split:]
        return drawn


@dataclass(frozen=True, kw_only=True, eq=False)
class TieTest:
    """One hypothesis, tested.

    Parameters
    ----------
    theta : array (T,)
        The constrained optimum.
    statistic : float
        T.
    null : array (B,)
        T of simulated losses that obey the hypothesis, sorted.
    certified : float
        Share of simulated pairs of fits that the derivatives confirm.
    """

    theta: Array
    statistic: float
    null: Array
    certified: float

    @property
    def p(self) -> float:
        """Share of the null at or above the statistic, the statistic itself counted."""
        return (1.0 + float(np.sum(self.null >= self.statistic))) / (1.0 + len(self.null))

    @property
    def p_error(self) -> float:
        """Monte-Carlo standard error of p."""
        return float(np.sqrt(self.p * (1.0 - self.p) / (1.0 + len(self.null))))


def pair_of(study: Study, headline: Headline) -> Pair:
    """Return reference and target of a study as one problem.

    Raises
    ------
    FitError
        If a fit is not identified, fits exactly, or leaves too few cells to tell their effects from the law.
    """
    archs = (headline.reference, headline.target)
    for arch in archs:
        if study[arch].intervals_refused:
            raise FitError(f"{arch}: {study[arch].why_no_interval}")
    rows = study.endpoints
    labels = rows.cells(study.bootstrap.unit)[0]
    index = np.unique(labels, return_inverse=True)[1]
    by_arch = rows.by_arch()
    fitted = [
        fit_architecture(
            arch,
            by_arch[arch],
            study.law,
            study.settings,
            n_cells=study[arch].n_cells,
            labels=labels[rows.arch == arch],
        )
        for arch in archs
    ]
    problems = (fitted[0].problem, fitted[1].problem)
    cells = (index[rows.arch == archs[0]], index[rows.arch == archs[1]])
    return make_pair(archs, problems, cells, np.concatenate([one.theta for one in fitted]))


def make_pair(
    archs: tuple[str, str], problems: tuple[Problem, Problem], cells: tuple[Index, Index], start: Array
) -> Pair:
    """Estimate what two problems are where they share nothing; raises as `pair_of`."""
    for arch, problem in zip(archs, problems, strict=True):
        if len(problem.weight) <= problem.free.sum():
            raise FitError(f"{arch}: as many parameters as endpoints leave no noise to test against")
    objective, separate = RandomIntercepts(problems, cells), free_tie(problems)
    observed = np.concatenate([problem.observed for problem in problems])
    plain = _least_squares(objective, separate, observed[None], start[None])
    residuals = objective.residuals(plain, observed)
    if min(float(np.abs(r).max()) for r in residuals) < NOISE_FREE:
        raise FitError("a law fits its endpoints exactly: there is no noise to test against")
    noise = noise_of(objective.jacobians(plain[0]), [problem.weight for problem in problems], cells)
    for arch, repeats, between in zip(archs, noise.repeats, noise.between, strict=True):
        if repeats and between < FEWEST_BETWEEN:
            raise FitError(
                f"{arch}: its cells leave {between:.1f} degrees of freedom beside the law, {FEWEST_BETWEEN:g} are "
                "needed to tell their effects from it"
            )
    components = noise.components(residuals)
    theta, _, certified = _fit(objective, separate, observed[None], components, plain)
    return Pair(
        archs=archs,
        problems=problems,
        cells=cells,
        objective=objective,
        separate=separate,
        noise=noise,
        theta=theta[0],
        components=components[0],
        certified=bool(certified[0]),
    )


def try_ties(
    pair: Pair,
    ties: Sequence[Tie],
    *,
    replicates: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> list[TieTest]:
    """Test hypotheses against the fit in which nothing is shared.

    Parameters
    ----------
    pair : Pair
        Reference and target.
    ties : sequence of Tie
        The hypotheses.
    replicates : int
        Simulated data sets of each, B.
    seed : int
        Of the simulation; all hypotheses meet the same errors and cell effects.
    progress : callable, optional
        Called with the number of data sets just done.
    """
    results = []
    for tie in ties:
        theta, statistic, _ = compare(pair, tie, pair.observed[None], pair.theta[None])
        centre = np.repeat(theta, replicates, axis=0)
        drawn = pair.simulate(centre, np.repeat(pair.components[None], replicates, axis=0), seed)
        _, null, certified = compare(pair, tie, drawn, centre, progress)
        results.append(
            TieTest(
                theta=theta[0],
                statistic=float(statistic[0]),
                null=np.sort(null),
                certified=float(certified.mean()) if replicates else 1.0,
            )
        )
    return results


def compare(
    pair: Pair, tie: Tie, observed: Array, start: Array, progress: Callable[[int], None] | None = None
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return the constrained optima (R, T), T (R,) and whether both fits are confirmed, of data sets (R, n).

    ``start`` (R, T) is where the search begins.
    """
    theta, statistic = np.empty_like(start), np.empty(len(start))
    certified = np.empty(len(start), dtype=bool)
    block = max(64, ELEMENTS // (observed.shape[1] * start.shape[1] // 2))
    for lo in range(0, len(start), block):
        part = slice(lo, min(lo + block, len(start)))
        theta[part], statistic[part], certified[part] = _compare(pair, tie, observed[part], start[part])
        if progress is not None:
            progress(part.stop - part.start)
    return theta, statistic, certified


def _compare(pair: Pair, tie: Tie, observed: Array, start: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    plain = _least_squares(pair.objective, pair.separate, observed, start)
    components = pair.noise.components(pair.objective.residuals(plain, observed))
    _, value, sure = _fit(pair.objective, pair.separate, observed, components, plain)
    theta, tied, also_sure = _fit(pair.objective, tie, observed, components, start)
    lower = np.flatnonzero(
        tied < value
    )  # the freer fit stopped in a worse place: it may do what the other does
    if len(lower):
        _, again, confirmed = _fit(
            pair.objective, pair.separate, observed[lower], components[lower], theta[lower]
        )
        better = again < value[lower]
        value[lower[better]], sure[lower[better]] = again[better], confirmed[better]
    return theta, np.maximum(2.0 * (tied - value), 0.0), sure & also_sure


def _least_squares(objective: RandomIntercepts, tie: Tie, observed: Array, start: Array) -> Array:
    """Return the optima (R, T) without cell effects."""
    unit = np.zeros((len(observed), 5))
    unit[:, :2] = 1.0
    inner = Tied(objective, tie, observed[0])
    return tie.theta(minimise(inner, tie.phi(start), unit, PLAIN, observed=observed).theta)


def _fit(
    objective: RandomIntercepts, tie: Tie, observed: Array, components: Array, start: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return optima (R, T), minus log likelihoods and whether they are confirmed."""
    inner = Tied(objective, tie, observed[0])
    found = minimise(inner, tie.phi(start), components, PLAIN, observed=observed)
    verdict = certify(inner, found.theta, components, float("inf"), observed=observed)
    return tie.theta(found.theta), verdict.objective, verdict.certified
