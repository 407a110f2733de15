"""Guards of the numerical core and of the point fit: each test fails if one clause that protects a number is lost.

Constructed problems with answers known on paper, so that a guard that real data rarely reach is reached here.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import huber

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.engine.certificate import certify
from smelt_scaling.engine.design import exponent_levels, identify
from smelt_scaling.engine.lbfgsb import minimise_lbfgsb
from smelt_scaling.engine.newton import Optimum, delta_ladder, minimise
from smelt_scaling.engine.objective import Objective
from smelt_scaling.engine.problem import make_problem
from smelt_scaling.engine.seeds import projected_starts
from smelt_scaling.fitting import FitSettings, FitStatus, estimate, fit_architecture
from smelt_scaling.fitting.notes import fit_notes
from smelt_scaling.laws import get_law
from smelt_scaling.papers import load_paper
from smelt_scaling.papers.example import example_endpoints
from smelt_scaling.synth import simulate

TOKENS = np.geomspace(1e9, 1e12, 40)
ONE_TERM = get_law("E + K*D**-c")
LEAST_SQUARES = float("inf")


def one_term(loss, **pins):
    return make_problem(ONE_TERM, {"D": TOKENS}, loss, np.ones(len(TOKENS)), pins=pins)


def noisy(scale, seed=0):
    """Losses of 1.7 + 2.4e3 D^-0.38, times exp(scale * normal)."""
    noise = np.random.default_rng(seed).standard_normal(len(TOKENS))
    return (1.7 + 2.4e3 * TOKENS**-0.38) * np.exp(scale * noise)


def solved(problem, delta=LEAST_SQUARES):
    """Return the best optimum (1, P) of a problem, and its weights."""
    start = projected_starts(problem, 8)
    weights = np.repeat(problem.weight[None], len(start), axis=0)
    found = minimise(Objective(problem), start, weights, delta_ladder(delta))
    return found.theta[[np.argmin(found.objective)]], weights[:1]


# -- the certificate ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("outwards", [True, False])
def test_a_bound_is_an_optimum_only_if_the_gradient_pushes_against_it(side, outwards):
    """The floor is held at the wrong or the right side of its free optimum, and everything else is optimal.

    All other clauses hold: the decrement is that of an optimum of the remaining coordinates, their curvature is
    positive. Only the sign of the floor's gradient tells a bound that binds from one that should be left.
    """
    problem = one_term(noisy(0.003))
    floor = solved(problem)[0][0, 0]
    below = (side == "lower") != outwards  # a lower bound below the optimum does not bind
    bound = floor * (0.9 if below else 1.05)
    at_bound, weights = solved(one_term(noisy(0.003), E=bound * problem.scale))
    bounds = {side: np.where(np.arange(3) == 0, at_bound[0], getattr(problem, side))}
    verdict = certify(Objective(replace(problem, **bounds)), at_bound, weights, LEAST_SQUARES)
    assert verdict.at_bound[0].tolist() == [True, False, False]
    assert verdict.positive[0]
    assert verdict.decrement[0] <= 1e-12
    assert verdict.certified[0] == outwards


def test_a_term_that_vanished_is_no_optimum():
    """With an amplitude of e^-700 the best floor is the geometric mean and every gradient is 0: flat, not a minimum."""
    problem = one_term(noisy(0.003))
    theta, weights = np.array([[1.0, -700.0, 0.3]]), problem.weight[None]
    verdict = certify(Objective(problem), theta, weights, LEAST_SQUARES)
    assert verdict.decrement[0] <= 1e-12
    assert not verdict.at_bound.any()
    assert not verdict.positive[0]
    assert not verdict.certified[0]


def test_residuals_of_a_hundred_thousandth_are_not_taken_for_rounding():
    """Data good to 1e-5: a point 1e-6 from the optimum has a decrement far above 1e-12 and is refused."""
    problem = one_term(noisy(1e-5))
    theta, weights = solved(problem)
    objective = Objective(problem)
    assert certify(objective, theta, weights, LEAST_SQUARES).certified[0]
    moved = certify(objective, theta + 1e-6, weights, LEAST_SQUARES)
    assert moved.decrement[0] > 1e-9
    assert not moved.certified[0]


def test_curvature_of_rounding_is_no_curvature():
    """Two clusters of losses far beyond delta: every floor between them is optimal, so none is certified.

    The Huber objective is linear there; a weight that is off by 1e-13 leaves a curvature of 1e-16, which is positive.
    """
    loss = np.where(np.arange(40) % 2 == 0, 1.0, 2.0)
    problem = one_term(loss, K=0.0, c=0.5)
    weights = np.ones((1, 40))
    weights[0, 1] += 1e-13  # a row above the floor: its pull outweighs the other side's
    theta = np.where(problem.free, 1.0, np.nan_to_num(problem.held))[None]
    f, g, h = Objective(problem).derivatives(theta, weights, problem.observed, np.array([1e-3]))
    assert 0 < h[0, 0, 0] < 1e-14
    assert 0.5 * g[0, 0] ** 2 / h[0, 0, 0] <= 1e-12 * f[0]
    assert not certify(Objective(problem), theta, weights, 1e-3).certified[0]


# -- Newton ------------------------------------------------------------------------------------------------------------


class Recorded:
    """A function of a few coordinates in the place of an objective; remembers where it was asked."""

    def __init__(self, function, lower, upper):
        size = len(lower)
        self.function = function
        self.problem = SimpleNamespace(
            lower=np.array(lower, dtype=float),
            upper=np.array(upper, dtype=float),
            free=np.ones(size, dtype=bool),
            held=np.full(size, np.nan),
            observed=np.zeros(1),
        )
        self.asked = []

    def derivatives(self, theta, weights, observed, delta):
        self.asked += theta.tolist()
        parts = [self.function(row, d) for row, d in zip(theta, delta, strict=True)]
        return tuple(np.array(values) for values in zip(*parts, strict=True))

    def value(self, theta, weights, observed, delta):
        return np.array([self.function(row, d)[0] for row, d in zip(theta, delta, strict=True)])


def newton(recorded, start, deltas=(LEAST_SQUARES,), **options):
    return minimise(recorded, np.array([start], dtype=float), np.ones((1, 1)), np.array(deltas), **options)


def parabola(offset):
    """f = offset + (x - 50)^2 / 2: a full Newton step from 0 is 50."""
    return lambda x, _: (offset + 0.5 * (x[0] - 50) ** 2, [x[0] - 50], [[1.0]])


def test_no_step_is_longer_than_two():
    """In theta coordinates 2 is a factor e^2 of an amplitude; a model is not trusted further than that."""
    recorded = Recorded(parabola(1e-3), [-np.inf], [np.inf])
    found = newton(recorded, [0.0])
    assert found.theta[0, 0] == pytest.approx(50.0, abs=1e-6)
    assert np.abs(np.diff([x for (x,) in recorded.asked])).max() <= 2.0 + 1e-12
    assert len(recorded.asked) >= 25


def test_a_damped_step_is_no_sign_of_an_optimum():
    """Damping alone makes the predicted gain small (98 of 1250 at the first step): the lane goes on regardless.

    With f = 2e14 the tolerance is a gain of 200, which an undamped step promises from within 20 of the minimum only.
    """
    found = newton(Recorded(parabola(2e14), [-np.inf], [np.inf]), [0.0])
    assert abs(found.theta[0, 0] - 50.0) < 20.0


def test_a_step_clamped_at_three_bounds_does_not_stop_a_lane():
    """A convex quadratic over x >= 0 whose first clamped step points uphill; the minimum is SciPy's bounded one."""
    H = np.array([
        [2.317, 1.292, -0.154, -2.098],
        [1.292, 1.651, -1.787, -0.527],
        [-0.154, -1.787, 3.215, -1.316],
        [-2.098, -0.527, -1.316, 3.573],
    ])  # fmt: skip
    start = np.array([0.16, 0.003, 0.037, 0.007])
    gradient = np.array([-0.397, -0.285, -0.656, 2.618])

    def quadratic(x, _):
        d = x - start
        return 10.0 + gradient @ d + 0.5 * d @ H @ d, gradient + H @ d, H

    found = newton(Recorded(quadratic, [0.0] * 4, [np.inf] * 4), start)
    scipy = minimize(lambda x: quadratic(x, 0)[:2], start, jac=True, bounds=[(0, None)] * 4, tol=1e-14)
    assert found.objective[0] == pytest.approx(scipy.fun, abs=1e-9)


def test_a_step_that_gains_a_millionth_of_its_promise_is_refused():
    """A quartic with 1 - 1e-6 at the end of the first Newton step, and its minimum on the way there.

    f = 1 - x + x^2/2 + p x^3 + q x^4 with f(1) = 1 - 1e-6 and f'(1) = 0: x = 1 is a stationary point that a lane
    would not leave.
    """
    p = 4 * (0.5 - 1e-6)
    q = -0.75 * p
    coefficients = np.array([q, p, 0.5, -1.0, 1.0])
    first, second = np.polyder(coefficients), np.polyder(coefficients, 2)

    def quartic(x, _):
        at = x[0]
        return np.polyval(coefficients, at), [np.polyval(first, at)], [[np.polyval(second, at)]]

    found = newton(Recorded(quartic, [-np.inf], [np.inf]), [0.0])
    roots = np.sort(np.roots(first).real)
    assert quartic([1.0], 0)[0] == pytest.approx(1 - 1e-6, abs=1e-12)
    assert found.theta[0, 0] == pytest.approx(roots[1], abs=1e-6)  # about 1/sqrt(6)


@pytest.mark.parametrize("iterations", [0, 1])
def test_a_lane_lost_early_has_its_value_at_the_last_delta(iterations):
    """Out of iterations on the first rung (delta 0.03), its objective is Huber's at 1e-3, as SciPy computes it."""
    problem = one_term(noisy(0.01))
    start = projected_starts(problem, 3) + 0.05
    weights = np.ones((3, 40))
    found = minimise(Objective(problem), start, weights, delta_ladder(1e-3), max_iterations=iterations)
    predicted = problem.predicted(found.theta)
    residual = np.log(predicted) - np.log(noisy(0.01))
    expected = huber(1e-3, residual).sum(axis=1)
    np.testing.assert_allclose(found.objective, expected, rtol=1e-9)
    assert (huber(0.03, residual).sum(axis=1) > 2 * expected).all()


# -- the problem -------------------------------------------------------------------------------------------------------


def test_a_decay_slower_than_a_thousandth_ends_on_its_bound():
    """Losses of 3 D^-0.0005 hold a decay below 1e-3: the exponent stops there and is reported."""
    problem = one_term(3 * TOKENS**-0.0005, E=0.0)
    theta, _ = solved(problem)
    assert theta[0, 2] == pytest.approx(1e-3, rel=1e-12)
    rows = {"arch": np.array(["a"] * 40), "F": TOKENS, "D": TOKENS, "loss": 3 * TOKENS**-0.0005}
    rows["loss"] = rows["loss"] * (noisy(0.001) / noisy(0.0))
    result = fitted(Endpoints(columns=rows), "E + K*D**-c", pins={"": {"E": 0.0}}).result
    assert result.surface.coefficients["c"] == 1e-3
    assert result.certificate.at_bounds == ("c",)
    assert result.certificate.certified


@pytest.mark.parametrize("delta", [1e-3, LEAST_SQUARES])
def test_every_lane_that_meets_a_bound_ends_on_it(delta):
    """Not a rounding error beside it, where neither the bound nor an optimum could be confirmed."""
    rng = np.random.default_rng(0)
    problem = one_term(3 * TOKENS**-0.0005 * (noisy(0.001) / noisy(0.0)), E=0.0)
    start = np.repeat(projected_starts(problem, 4), 16, axis=0)
    start = start + 0.1 * rng.standard_normal(start.shape)
    weights = rng.multinomial(40, [1 / 40] * 40, size=len(start)).astype(float)
    found = minimise(Objective(problem), start, weights, delta_ladder(delta))
    beside = (found.theta[:, 2] > 1e-3) & (found.theta[:, 2] < 1e-3 + 1e-9)
    assert not beside.any()
    verdict = certify(Objective(problem), found.theta, weights, delta)
    assert verdict.certified.all()
    assert np.array_equal(verdict.at_bound[:, 2], found.theta[:, 2] == 1e-3)
    assert verdict.at_bound[:, 2].mean() > 0.5


def test_the_steepest_exponent_leaves_amplitudes_finite():
    """Decay exponents stop where K = T(mean) * mean(D)^c is still a double: c * mean ln D = 300 of the 709 that fit."""
    problem = one_term(noisy(0.003))
    mean = np.log(TOKENS).mean()
    assert problem.upper[2] == pytest.approx(300 / mean, rel=1e-12)
    assert problem.upper[:2].tolist() == [np.inf, np.inf]
    law = get_law("E + A*(1-S)**b*F**-a")
    S, F = np.linspace(0.9, 0.97, 8), np.geomspace(1e8, 1e10, 8)
    signed = make_problem(law, {"S": S, "F": F}, np.linspace(3, 2, 8), np.ones(8), pins={})
    steepest = 300 / abs(np.log1p(-S).mean())
    b = law.parameters.index("b")
    assert [signed.lower[b], signed.upper[b]] == pytest.approx([-steepest, steepest], rel=1e-12)
    extreme = np.array([0.5, 0.0, problem.upper[2]])
    assert np.isfinite(problem.natural(extreme)).all()
    assert np.log(problem.natural(extreme)[1]) == pytest.approx(300 + np.log(problem.scale), rel=1e-12)


def test_pinned_values_come_back_as_they_were_given():
    """To the last bit, although the fit works with their logarithms and with losses divided by their mean."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        pins = {
            "E": float(rng.uniform(0.1, 1.5)),
            "K": float(10 ** rng.uniform(1, 6)),
            "c": float(rng.uniform(0.1, 1)),
        }
        problem = one_term(noisy(0.003), **pins)
        theta = np.where(problem.free, 1.0, problem.held)
        assert problem.natural(np.stack([theta, theta])).tolist() == [list(pins.values())] * 2


# -- what a design identifies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "levels"), [(1.04, 1), (1.06, 2), (1.12, 2)])
def test_sizes_within_five_percent_are_one_level(ratio, levels):
    law = get_law("additive")
    columns = {"F": np.array([1e9, ratio * 1e9] * 3), "D": np.geomspace(1e9, 1e11, 6)}
    tiers = np.zeros(6, dtype=int)
    assert exponent_levels(law, columns, tiers)["a"].max() + 1 == levels
    assert identify(law, columns, {}, tiers).dropped_exponents == ({"a"} if levels == 1 else set())


def one_horizon():
    """Noise-free losses 1.6 + 30 F^-0.2 + 0.25 at a single D."""
    F = np.geomspace(1e8, 1e10, 12)
    return Endpoints(
        columns={
            "arch": np.array(["a"] * 12),
            "F": F,
            "D": np.full(12, 1e10),
            "loss": 1.6 + 30 * F**-0.2 + 0.25,
        }
    )


def fitted(endpoints, law, **settings):
    (arch,) = endpoints.archs
    return fit_architecture(arch, endpoints, get_law(law), FitSettings(**settings), n_cells=len(endpoints))


def test_a_constant_term_is_identified_when_the_floor_is_pinned():
    """At one D the data term is a constant; beside a known floor of 1.6 it is 0.25, beside a free one nobody knows."""
    held = fitted(one_horizon(), "additive", pins={"": {"E": 1.6}}).result
    assert set(held.unidentified) == {"c"}  # its factor is part of K
    assert held.surface.coefficients["K"] == pytest.approx(0.25, abs=1e-9)
    free = fitted(one_horizon(), "additive").result
    assert set(free.unidentified) == {"c", "K", "E"}
    assert free.surface.coefficients["K"] == 0.0
    assert free.surface.coefficients["E"] == pytest.approx(1.85, abs=1e-6)


EXAMPLE = example_endpoints().by_arch()["smelt"]


@pytest.mark.parametrize(
    ("condition", "words", "refused"),
    [
        (54.0, None, False),
        (900.0, None, False),
        (1.1e3, "intervals are wide", False),
        (0.9e6, "intervals are wide", False),
        (1.1e6, "no interval is given", True),
        (0.9e10, "no interval is given", True),
    ],
)
def test_what_a_condition_number_allows(condition, words, refused):
    """Below a thousand nothing is said, above it intervals are wide, above a million there are none."""
    result = fitted(EXAMPLE, "sparse-additive").result
    certificate = replace(result.certificate, condition=condition)
    law = result.surface.law
    columns = {name: EXAMPLE[name] for name in law.columns}
    notes = fit_notes("smelt", law, certificate, identify(law, columns, {}, EXAMPLE.tiers), {}, {}, 66)
    said = [note.message for note in notes if note.code == "ill_conditioned"]
    assert len(said) == (words is not None)
    assert all(words in message for message in said)
    assert replace(result, certificate=certificate).intervals_refused == refused
    assert not result.intervals_refused


@pytest.mark.parametrize(
    ("condition", "status"), [(0.9e10, FitStatus.CERTIFIED), (1.1e10, FitStatus.NOT_IDENTIFIED)]
)
def test_above_ten_to_the_ten_a_direction_is_free(monkeypatch, condition, status):
    """A design with this condition number leaves a combination of parameters open, which a result must name."""
    monkeypatch.setattr(estimate, "condition_numbers", lambda *_: np.array([condition]))
    result = fitted(EXAMPLE, "sparse-additive").result
    assert result.certificate.status is status
    assert bool(result.unidentified) == (status is FitStatus.NOT_IDENTIFIED)
    assert ("not_identified" in {note.code for note in result.notes}) == bool(result.unidentified)


@pytest.mark.parametrize("delta", [1e-4, 1e-3, 1e-2])
def test_linear_zone_share_is_the_share_of_residuals_beyond_delta(delta):
    """Counted over the rows from the law's formula; above nine tenths a note says so, otherwise none does."""
    result = fitted(EXAMPLE, "sparse-additive", delta=delta).result
    E, A, K, a, b, c = result.surface.coef
    predicted = E + A * (1 - EXAMPLE.S) ** b * EXAMPLE.F**-a + K * EXAMPLE.D**-c
    share = np.mean(np.abs(np.log(predicted / EXAMPLE.loss)) > delta)
    assert result.certificate.linear_zone_share == pytest.approx(share, abs=1e-12)
    assert ("linear_zone" in {note.code for note in result.notes}) == (share > 0.9)
    assert (share > 0.9) == (delta == 1e-4)


# -- starts and engines ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("excess", [0.0, 1e-6, 1e-3])
def test_one_start_is_not_enough_for_a_certificate(monkeypatch, excess):
    """Every start but the first ends a little higher: all 256 are tried, and the fit is called lonely.

    "The same optimum" means an objective within 1e-9; ends a millionth or a thousandth higher are other points.
    """

    def only_the_first(objective, start, weights, deltas):
        best = minimise(objective, start[:1], weights[:1], deltas)
        value = np.full(len(start), best.objective[0] * (1 + excess))
        value[0] = best.objective[0]
        theta = np.repeat(best.theta, len(start), axis=0)
        if excess:  # a step along the floor that raises the objective by about that share
            step = np.geomspace(1e-9, 1e-1, 400)
            trial = best.theta + step[:, None] * (np.arange(theta.shape[1]) == 0)
            row = np.repeat(weights[:1], 400, axis=0)
            f = objective.value(trial, row, objective.problem.observed, np.full(400, deltas[-1]))
            theta[1:, 0] += step[np.searchsorted(f, best.objective[0] * (1 + excess))]
        return Optimum(theta=theta, objective=value, evaluations=np.ones(len(start), dtype=np.int64))

    monkeypatch.setattr(estimate, "minimiser", lambda settings: only_the_first)
    certificate = fitted(EXAMPLE, "sparse-additive").result.certificate
    if excess == 0:
        assert certificate.status is FitStatus.CERTIFIED
        assert certificate.starts_agreeing == certificate.starts == 64
    else:
        assert certificate.status is FitStatus.LONELY
        assert (certificate.starts_agreeing, certificate.starts) == (1, 256)


@pytest.mark.parametrize("share", [0.003, 0.01, 0.03])
def test_starts_find_a_small_term(share):
    """A term that is a hundredth of the loss starts as a hundredth of it, not as a tenth; within a factor of 1.5."""
    x = TOKENS / np.exp(np.log(TOKENS).mean())
    loss = 2.0 * (1 - share + share * x**-0.3)
    start = projected_starts(one_term(loss), 1)
    assert np.log(share / 1.5) < start[0, 1] < np.log(share * 1.5)


def test_lbfgsb_reaches_the_optimum_of_quiet_data():
    """With noise of 1e-6 the objective is 1e-11, below L-BFGS-B's absolute tolerances; still 1e-9 relative.

    Of the survey's six parameters, whose flat directions a loose stop leaves first.
    """
    paper = load_paper("smelt")
    design = example_endpoints().to_frame().drop(columns=["loss", "source"])
    rows = simulate(paper.surfaces, design, sd=1e-6, seed=1).by_arch()["smelt"]
    law = paper.surfaces["smelt"].law
    columns = {name: rows[name] for name in law.columns}
    problem = make_problem(law, columns, rows.loss, rows.weight, pins={})
    start = projected_starts(problem, 4)
    weights = np.ones((len(start), len(rows)))
    delta = delta_ladder(1e-3)
    exact = minimise(Objective(problem), start, weights, delta).objective.min()
    assert 1e-12 < exact < 1e-10
    found = minimise_lbfgsb(Objective(problem), start, weights, delta)
    np.testing.assert_allclose(found.objective, exact, rtol=1e-9)
