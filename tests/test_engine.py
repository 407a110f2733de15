"""The numerical core against SciPy, statsmodels and arithmetic that is not its own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import huber

from smelt_scaling.engine.certificate import certify
from smelt_scaling.engine.cholesky import solve_held
from smelt_scaling.engine.design import condition_numbers, exponent_levels, identify, null_direction
from smelt_scaling.engine.lbfgsb import minimise_lbfgsb
from smelt_scaling.engine.newton import delta_ladder, minimise
from smelt_scaling.engine.objective import PAD, Objective
from smelt_scaling.engine.problem import LOG_ZERO, make_problem
from smelt_scaling.engine.seeds import projected_starts
from smelt_scaling.laws import get_law
from smelt_scaling.papers.example import example_endpoints


@pytest.fixture(scope="module")
def baseline():
    rows = example_endpoints().by_arch()["baseline"]
    law = get_law("sparse-additive")
    columns = {name: rows[name] for name in law.columns}
    return make_problem(law, columns, rows.loss, rows.weight, pins={}), rows, columns, law


def _tight(problem, start, delta=1e-3):
    weights = np.repeat(problem.weight[None], len(start), axis=0)
    return minimise(Objective(problem), start, weights, delta_ladder(delta)), weights


@pytest.mark.parametrize("delta", [1e-4, 1e-3, 1e-1, np.inf])
def test_objective_is_scipys_huber_of_log_residuals(baseline, delta):
    """f = sum w huber(delta, ln m - ln L), with m from the law's own formula written out here."""
    problem, rows, *_ = baseline
    coef = np.array([1.5, 900.0, 1.1e6, 0.35, 0.17, 0.63])
    E, A, K, a, b, c = coef
    m = E + A * (1 - rows.S) ** b * rows.F**-a + K * rows.D**-c
    weights = np.arange(len(rows)) % 3 + 0.0
    residual = np.log(m) - np.log(rows.loss)
    expected = np.sum(weights * (huber(delta, residual) if np.isfinite(delta) else residual**2 / 2))
    theta = problem.centred(coef[None])
    value = Objective(problem).value(theta, weights[None], problem.observed, np.array([delta]))[0]
    assert value == pytest.approx(expected, rel=1e-11)  # exp and log of order-one numbers, 72 terms


def test_objective_agrees_with_statsmodels_norm(baseline):
    """A second referee for rho: statsmodels' HuberT."""
    from statsmodels.robust.norms import HuberT

    problem, rows, *_ = baseline
    theta = problem.centred(np.array([[1.45, 1300.0, 1.9e6, 0.368, 0.15, 0.657]]))
    residual = np.log(problem.predicted(theta[0])) - np.log(rows.loss)
    rho = Objective(problem).loss_of_rows(theta, 1e-3)[0]
    np.testing.assert_allclose(rho, HuberT(1e-3).rho(residual), rtol=1e-9, atol=1e-18)


def test_long_tables_are_summed_in_slices(baseline):
    """More rows than one slice: every row repeated 150 times gives 150 times the objective and derivatives."""
    problem, rows, columns, law = baseline
    times = 150  # 10,800 rows, more than one slice of 8,192
    long = make_problem(
        law,
        {name: np.tile(values, times) for name, values in columns.items()},
        np.tile(rows.loss, times),
        np.tile(rows.weight, times),
        pins={},
    )
    theta = problem.centred(np.array([[1.5, 900.0, 1.1e6, 0.35, 0.17, 0.63]]))
    delta = np.array([1e-2])
    one = Objective(problem).derivatives(theta, problem.weight[None], problem.observed, delta)
    many = Objective(long).derivatives(theta, long.weight[None], long.observed, delta)
    for short, repeated in zip(one, many, strict=True):
        np.testing.assert_allclose(repeated, times * short, rtol=1e-9)


@pytest.mark.parametrize("log_residual", [True, False])
def test_single_lane_gradient_is_the_batched_one(baseline, log_residual):
    _, rows, columns, law = baseline
    problem = make_problem(law, columns, rows.loss, rows.weight, pins={}, log_residual=log_residual)
    objective, delta = Objective(problem), np.array([2e-3])
    theta = problem.centred(np.array([[1.5, 900.0, 1.1e6, 0.35, 0.17, 0.63]]))
    weights = (np.arange(len(rows)) % 3 + 0.0)[None]
    f, g, _ = objective.derivatives(theta, weights, problem.observed, delta)
    value, gradient = objective.gradient(theta, weights, problem.observed, delta)
    assert value == pytest.approx(f[0], rel=1e-12)
    np.testing.assert_allclose(gradient, g[0], rtol=1e-10, atol=1e-15)


def test_lanes_do_not_depend_on_their_company(baseline):
    """Bits of a lane are the same alone, in a full block and in a block of another size."""
    problem, *_ = baseline
    objective = Objective(problem)
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 3, (3 * PAD, len(problem.weight))).astype(float)
    theta = np.repeat(projected_starts(problem, 1), len(weights), axis=0)
    ladder = delta_ladder(1e-3)
    together = minimise(objective, theta, weights, ladder)
    some = rng.choice(len(weights), 70, replace=False)
    apart = minimise(objective, theta[some], weights[some], ladder)
    assert np.array_equal(apart.theta, together.theta[some])
    alone = minimise(objective, theta[:1], weights[:1], ladder)
    assert np.array_equal(alone.theta, together.theta[:1])


def test_newton_and_lbfgsb_agree_from_the_same_start(baseline):
    """Full data, same start: objectives agree to 1e-9 (the goal that parity with the paper's optimiser needs)."""
    for arch, rows in example_endpoints().by_arch().items():
        law = get_law("sparse-additive")
        problem = make_problem(law, {n: rows[n] for n in law.columns}, rows.loss, rows.weight, pins={})
        start = projected_starts(problem, 1)
        found, weights = _tight(problem, start)
        scipy = minimise_lbfgsb(Objective(problem), start, weights, delta_ladder(1e-3))
        assert scipy.objective[0] == pytest.approx(found.objective[0], rel=1e-9), arch


def test_certificate_refuses_what_scipy_calls_success(baseline):
    """Default L-BFGS-B in natural log coordinates reports success; the derivatives say otherwise."""
    problem, rows, *_ = baseline

    def natural(x):
        E, log_a, log_k, a, b, c = x
        m = (
            E
            + np.exp(log_a - a * np.log(rows.F) + b * np.log1p(-rows.S))
            + np.exp(log_k - c * np.log(rows.D))
        )
        return np.sum(huber(1e-3, np.log(np.maximum(m, 1e-9)) - np.log(rows.loss)))

    start = np.array([1.6, np.log(400.0), np.log(4e5), 0.3, 0.2, 0.55])
    stopped = minimize(natural, start, method="L-BFGS-B")
    assert stopped.success
    coef = np.array([stopped.x[0], *np.exp(stopped.x[1:3]), *stopped.x[3:]])
    verdict = certify(Objective(problem), problem.centred(coef[None]), problem.weight[None], 1e-3)
    assert not verdict.certified[0]
    found, _ = _tight(problem, projected_starts(problem, 5))
    assert stopped.fun > 1.05 * found.objective.min()


def test_certificate_confirms_the_optimum_and_its_perturbation_fails(baseline):
    problem, *_ = baseline
    found, weights = _tight(problem, projected_starts(problem, 5))
    good = certify(Objective(problem), found.theta, weights, 1e-3)
    assert good.certified.all()
    assert (good.decrement <= 1e-12).all()
    moved = certify(Objective(problem), found.theta + 1e-4, weights, 1e-3)
    assert not moved.certified.any()


def test_floor_bound_is_held_with_the_right_sign():
    """Data from a law with a negative floor: E ends on 0, the gradient pushes outwards, and the fit is certified."""
    D = np.geomspace(1e9, 1e12, 40)
    loss = -0.4 + 30.0 * D**-0.1
    problem = make_problem(get_law("E + K*D**-c"), {"D": D}, loss, np.ones(40), pins={})
    found, weights = _tight(problem, projected_starts(problem, 5))
    verdict = certify(Objective(problem), found.theta, weights, 1e-3)
    assert found.theta[:, 0].tolist() == [0.0] * len(found.theta)
    assert verdict.at_bound[:, 0].all()
    assert verdict.certified.all()


def test_bounded_optimum_equals_scipys(baseline):
    """A pinned-to-bound problem solved by SciPy's bounded optimiser from many starts is not lower than ours."""
    D, F = (x.ravel() for x in np.meshgrid(np.geomspace(1e9, 1e11, 6), np.geomspace(1e8, 1e10, 5)))
    rng = np.random.default_rng(5)
    loss = (0.02 + 3.0 * F**-0.05 + 12.0 * D**-0.12) * np.exp(0.01 * rng.standard_normal(len(D)))
    law = get_law("additive")
    problem = make_problem(law, {"F": F, "D": D}, loss, np.ones(len(D)), pins={})
    objective = Objective(problem)
    found, _ = _tight(problem, projected_starts(problem, 16))
    starts = np.column_stack(
        [rng.uniform(0, 1, 30), rng.uniform(-3, 0, (30, 2)), rng.uniform(0.01, 1, (30, 2))]
    )
    other = minimise_lbfgsb(objective, starts, np.ones((30, len(D))), np.array([1e-3]))
    assert found.objective.min() <= other.objective.min() * (1 + 1e-9)


def test_cholesky_solve_matches_numpy_with_held_coordinates():
    rng = np.random.default_rng(0)
    raw = rng.standard_normal((50, 6, 6))
    matrix = raw @ raw.transpose(0, 2, 1) + 0.1 * np.eye(6)
    rhs, step = rng.standard_normal((50, 6)), rng.standard_normal((50, 6))
    held = rng.random((50, 6)) < 0.3
    x, positive = solve_held(matrix, rhs, held, step)
    assert positive.all()
    for k in range(50):
        free = ~held[k]
        expected = step[k].copy()
        right = rhs[k][free] - matrix[k][np.ix_(free, held[k])] @ step[k][held[k]]
        expected[free] = np.linalg.solve(matrix[k][np.ix_(free, free)], right)
        np.testing.assert_allclose(
            x[k], expected, rtol=1e-8, atol=1e-10
        )  # condition of the draws is below 1e4


def test_cholesky_flags_indefinite_matrices():
    matrix = np.array([np.diag([1.0, -1.0]), np.diag([1.0, 2.0]), [[1.0, 1.0], [1.0, 1.0]]])
    _, positive = solve_held(matrix, np.ones((3, 2)), np.zeros((3, 2), dtype=bool), np.zeros((3, 2)))
    assert positive.tolist() == [False, True, False]


def test_projected_starts_recover_a_noise_free_law_nearly():
    """On noise-free data the best grid point is already close: within the grid's spacing of the true exponents."""
    law = get_law("chinchilla")
    N, D = (x.ravel() for x in np.meshgrid(np.geomspace(1e8, 1e10, 5), np.geomspace(1e9, 1e11, 5)))
    truth = np.array([1.69, 406.4, 410.7, 0.34, 0.28])
    loss = truth[0] + truth[1] * N ** -truth[3] + truth[2] * D ** -truth[4]
    problem = make_problem(law, {"N": N, "D": D}, loss, np.ones(25), pins={})
    start = problem.natural(projected_starts(problem, 1))[0]
    spacing = (4.0 / 0.02) ** (1 / 15)  # 16 geometric steps from .02 to 4
    assert truth[3] / spacing < start[3] < truth[3] * spacing
    assert truth[4] / spacing < start[4] < truth[4] * spacing


def test_natural_and_centred_are_inverse(baseline):
    problem, *_ = baseline
    coef = np.array([[1.4439, 1.366e3, 1.975e6, 0.3703, 0.1530, 0.6594], [0.0, 1e-3, 1e9, 0.01, -0.2, 2.0]])
    np.testing.assert_allclose(problem.natural(problem.centred(coef)), coef, rtol=1e-12)
    zero = problem.natural(problem.centred(np.array([[1.0, 0.0, 5.0, 0.3, 0.1, 0.5]])))
    assert zero[0, 1] == 0.0
    assert problem.centred(np.array([[1.0, 0.0, 5.0, 0.3, 0.1, 0.5]]))[0, 1] == LOG_ZERO


def test_levels_merge_what_is_within_five_percent():
    law = get_law("additive")
    columns = {"F": np.array([1e9, 1.03e9, 2e9, 4e9]), "D": np.array([1e10, 1.001e10, 1.002e10, 1.003e10])}
    levels = exponent_levels(law, columns, np.zeros(4, dtype=int))
    assert levels["a"].tolist() == [2, 2, 1, 0]  # a falls with ln F, so the largest F has the lowest level
    assert levels["c"].tolist() == [0, 0, 0, 0]
    found = identify(law, columns, {}, np.zeros(4, dtype=int))
    assert found.dropped_exponents == {"c"}
    assert found.dropped_terms == {"K"}
    assert set(found.reasons) == {"c", "K", "E"}


def test_null_direction_names_the_collinear_parameters():
    """D proportional to F: capacity and data terms trade off, and the two exponents lead the list."""
    F = np.geomspace(1e8, 1e10, 12)
    law = get_law("additive")
    problem = make_problem(
        law, {"F": F, "D": 20 * F}, 1.7 + 30 * F**-0.2 + 40 * (20 * F) ** -0.2, np.ones(12), pins={}
    )
    theta = problem.centred(np.array([1.7, 30.0, 40.0, 0.2, 0.2]))
    assert condition_numbers(problem, theta, problem.weight[None])[0] > 1e10
    assert {"A", "K"} & set(null_direction(problem, theta))
