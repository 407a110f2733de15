"""Floor and amplitudes at given exponents: the batched fit against SciPy, one problem at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls

from smelt_scaling.engine.amplitudes import fit_amplitudes

Array = NDArray[np.float64]
DELTA = 1e-3


def huber(residual: Array, delta: float) -> Array:
    size = np.abs(residual)
    return np.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))


def world(replicates: int = 2) -> tuple[Array, Array, Array]:
    """Return columns, losses of five subsets (the last without a second term) and weights of the survey's shape."""
    rng = np.random.default_rng(1)
    F, D = np.geomspace(6e8, 1e10, 12).repeat(6), np.tile(np.geomspace(2e10, 2e11, 6), 12)
    cell = np.arange(12).repeat(6)
    a, c = 0.37 + 0.02 * rng.standard_normal(replicates), 0.66 + 0.02 * rng.standard_normal(replicates)
    basis = np.stack([np.ones((replicates, 72)), F ** -a[:, None], D ** -c[:, None]], axis=2)
    shape = np.array(
        [[0.7, 900, 1.5e6], [1.3, 1300, 2e6], [1.9, 1500, 2.2e6], [0.0, 6000, 1e6], [2.0, 1500, 0.0]]
    )
    loss = shape @ np.stack([np.ones(72), F**-0.37, D**-0.66])
    loss = loss * np.exp(0.003 * rng.standard_normal((5, 12))[:, cell] + 0.002 * rng.standard_normal((5, 72)))
    weights = rng.multinomial(12, np.full(12, 1 / 12), size=replicates)[:, cell].astype(float)
    return basis, loss, weights


def solved(
    basis: Array, loss: Array, weights: Array, delta: float, log_residual: bool
) -> tuple[Array, float]:
    """Minimise with L-BFGS-B in scaled coordinates, down a ladder of thresholds, each started thrice from the last."""
    unit = np.average(basis / loss[:, None], axis=0, weights=weights)
    X = basis / unit
    root = np.sqrt(weights)
    beta = nnls(X / loss[:, None] * root[:, None], root)[0]

    def f(beta: Array, d: float) -> tuple[float, Array]:
        m = np.maximum(X @ beta, 1e-300)
        r = np.log(m / loss) if log_residual else m - loss
        slope = weights * np.clip(r, -d, d) / (m if log_residual else 1.0)
        return 1e4 * float(np.sum(weights * huber(r, d))), 1e4 * (slope @ X)

    for d in np.geomspace(max(0.1, delta), delta, 8):
        for _ in range(2):
            options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-13, "maxcor": 20}
            beta = minimize(
                f, beta, args=(d,), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 3, options=options
            ).x
    return beta / unit, f(beta, delta)[0] / 1e4


@pytest.mark.parametrize("log_residual", [True, False])
def test_every_lane_is_the_optimum_that_scipy_finds(log_residual: bool) -> None:
    basis, loss, weights = world()
    found = fit_amplitudes(basis, loss, weights, delta=DELTA, log_residual=log_residual)
    assert found.certified.all()
    for r in range(len(basis)):
        for s in range(len(loss)):
            residual = basis[r] @ found.coef[r, s]
            residual = np.log(residual / loss[s]) if log_residual else residual - loss[s]
            value = float(np.sum(weights[r] * huber(residual, DELTA)))
            assert found.objective[r, s] == pytest.approx(value, rel=1e-12)  # rounding of one sum of 72 terms
            _, best = solved(basis[r], loss[s], weights[r], DELTA, log_residual)
            # L-BFGS-B ends within 1e-9 of the optimum at these tolerances, and never below it
            assert value == pytest.approx(best, rel=1e-9)
            assert value <= best * (1 + 1e-12)


def test_a_term_that_is_not_there_ends_at_zero() -> None:
    basis, loss, weights = world()
    found = fit_amplitudes(basis, loss, weights, delta=DELTA)
    for r in range(len(basis)):
        for s, name in ((3, 0), (4, 2)):
            at, _ = solved(basis[r], loss[s], weights[r], DELTA, True)
            assert (found.coef[r, s, name] == 0) == (at[name] <= 1e-9 * abs(at).max())


def test_least_squares_is_that_of_nnls() -> None:
    basis, loss, weights = world(1)
    found = fit_amplitudes(basis, loss, weights, delta=np.inf, log_residual=False)
    root = np.sqrt(weights[0])
    for s in range(len(loss)):
        expected = nnls(basis[0] * root[:, None], loss[s] * root)[0]
        # both solve a 3 x 3 system of condition 1e4 in doubles
        np.testing.assert_allclose(found.coef[0, s], expected, rtol=1e-9, atol=1e-9)


def test_noise_free_losses_are_recovered_and_missing_ones_weigh_nothing() -> None:
    basis, _, weights = world()
    truth = np.array([1.2, 1000.0, 2e6])
    loss = (basis @ truth)[:, None, :].copy()
    loss[:, 0, ::5] = np.nan
    found = fit_amplitudes(basis, loss, weights, delta=DELTA)
    # condition 1e4 times the rounding of a loss
    np.testing.assert_allclose(found.coef[:, 0], np.tile(truth, (2, 1)), rtol=1e-9)


def test_lanes_do_not_depend_on_their_company() -> None:
    basis, loss, weights = world(40)
    start = fit_amplitudes(basis[:1], loss, weights[:1], delta=DELTA).shares[0]
    together = fit_amplitudes(basis, loss, weights, delta=DELTA, start=start)
    alone = fit_amplitudes(basis[7:9], loss, weights[7:9], delta=DELTA, start=start)
    assert np.array_equal(alone.coef, together.coef[7:9])


@pytest.mark.parametrize("log_residual", [True, False])
def test_the_start_does_not_matter(log_residual: bool) -> None:
    basis, loss, weights = world()
    options: dict[str, Any] = {"delta": DELTA, "log_residual": log_residual}
    one = fit_amplitudes(basis, loss, weights, **options)
    other = fit_amplitudes(basis, loss, weights, **options, start=np.tile([0.1, 0.8, 0.1], (5, 1)))
    np.testing.assert_allclose(other.objective, one.objective, rtol=1e-9)
