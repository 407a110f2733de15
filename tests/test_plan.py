"""Plans of further runs: information, noise, candidates, what a sum buys, and power.

The figures of the example's design come from a separate program that builds each cell's covariance and solves it
densely; they are quoted with the digits it printed. Its noise of ln L is 0.0055/1.95 for the baseline and 0.0095/1.95
for smelt.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from smelt_scaling import (
    Endpoints,
    Frontier,
    FrontierError,
    Surface,
    UsageError,
    example_endpoints,
    fit,
    load_paper,
    notes_of,
    plan,
    read_design,
    show_table,
)
from smelt_scaling.analyses.diagnostics import Headline
from smelt_scaling.analyses.planning.candidates import Candidate, candidate_information
from smelt_scaling.analyses.planning.design import design_of
from smelt_scaling.analyses.planning.estimator import huber_moments, huber_variance
from smelt_scaling.analyses.planning.evidence import Evidence, evidence_of
from smelt_scaling.analyses.planning.information import Spread, cell_information, variance_of
from smelt_scaling.analyses.planning.jacobian import gain_gradients, log_loss_jacobian
from smelt_scaling.analyses.planning.noise import Noise, Residuals, cell_correlation, variance_components
from smelt_scaling.analyses.planning.power import cells_needed, found_from, power_of
from smelt_scaling.analyses.planning.schedule import Schedule
from smelt_scaling.analyses.planning.sequence import buy
from smelt_scaling.analyses.planning.worlds import Worlds, detectable, shifted, simulated_power
from smelt_scaling.cli import run
from smelt_scaling.laws import get_law

RUNS = example_endpoints()
SURFACES = load_paper("smelt").surfaces
LAW = SURFACES["smelt"].law
PAIR = ("smelt", "baseline")
DESIGN = design_of(RUNS, LAW, PAIR)
FREE = np.ones(12, dtype=bool)
HORIZONS = DESIGN.horizons
#: Printed losses of the separate program's noise: 0.0055/1.95 and 0.0095/1.95 of ln L.
LOSSES = (1.95, 1.95)
SD = (0.0095, 0.0055)


def headline(budget: float = 1e21) -> Headline:
    return Headline(target="smelt", reference="baseline", budget=budget, sparsity=0.947)


def noise(icc: float, sd: tuple[float, float] = SD, pair: float = 0.0) -> Noise:
    return Noise(sd=sd, icc=icc, pair_correlation=pair, sources={})


def gradient(budget: float) -> np.ndarray:
    return np.concatenate(gain_gradients(headline(budget), SURFACES, 6.0))


def jacobians() -> list[np.ndarray]:
    return [
        log_loss_jacobian(SURFACES[arch], columns) for arch, columns in zip(PAIR, DESIGN.columns, strict=True)
    ]


def known(budget: float, of: Noise) -> Evidence:
    """Evidence of the example's design with the noise of ln L that the separate program has."""
    cells = cell_information(jacobians(), DESIGN.cell, 12, of.spread(LOSSES))
    se = float(np.sqrt(variance_of(cells.sum(axis=0), gradient(budget), FREE)))
    return Evidence(
        m=float(headline(budget).of_surfaces(SURFACES)),
        gradient=gradient(budget),
        free=FREE,
        cells=cells,
        losses=LOSSES,
        se=se,
        se_factor=1.0,
    )


def pair_of(size: float, sparsity: float, horizons: tuple[float, ...]) -> Candidate:
    cost = 2 * size * Schedule(decay=1e10).tokens(horizons)
    return Candidate(F=size, S=sparsity, horizons=horizons, cost=cost, in_box=False)


def with_pairs(evidence: Evidence, of: Noise, *pairs: Candidate) -> float:
    more = candidate_information(pairs, (SURFACES["smelt"], SURFACES["baseline"]), of, LOSSES, 6.0)
    return float(evidence.se_with(more.sum(axis=0)))


# -- derivatives and information ---------------------------------------------------------------------------------------


def moved(surface: Surface, i: int, step: float) -> Surface:
    """Return a surface one coordinate away: the logarithm of an amplitude, else the value."""
    coef = surface.coef.copy()
    coef[i] = coef[i] * np.exp(step) if LAW.parameters[i] in LAW.amplitudes else coef[i] + step
    return Surface(law=surface.law, coef=coef)


def test_derivatives_are_those_of_the_loss_and_of_the_gain() -> None:
    step = 1e-6  # central differences err by its square and by rounding over it, about 1e-9 of values near 1
    columns = {name: values[:7] for name, values in DESIGN.columns[0].items()}
    at = SURFACES["smelt"]
    slopes = [
        (np.log(moved(at, i, step).loss(**columns)) - np.log(moved(at, i, -step).loss(**columns)))
        / (2 * step)
        for i in range(6)
    ]
    assert log_loss_jacobian(at, columns) == pytest.approx(np.stack(slopes, axis=1), rel=1e-6, abs=1e-8)
    for arch, found in zip(PAIR, gain_gradients(headline(), SURFACES, 6.0), strict=True):
        changes = [
            [
                float(headline().of_surfaces({**SURFACES, arch: moved(SURFACES[arch], i, s * step)}))
                for s in (1, -1)
            ]
            for i in range(6)
        ]
        assert found == pytest.approx(
            np.array([(a - b) / (2 * step) for a, b in changes]), rel=1e-6, abs=1e-7
        )


def test_derivatives_of_a_law_in_parameters_without_a_closed_frontier() -> None:
    law = get_law("E + A*N**-a + B*N**-e + K*D**-c")
    pair = {"t": Surface(law=law, coef=[1.6, 300.0, 5.0, 300.0, 0.34, 0.31, 0.12])}
    pair["r"] = Surface(law=law, coef=[1.6, 330.0, 5.0, 310.0, 0.34, 0.31, 0.12])
    at = Headline(target="t", reference="r", budget=1e21, sparsity=None)
    found = gain_gradients(at, pair, 6.0)[0]
    coef, step = pair["t"].coef, 1e-4
    for i in (0, 4):  # the minimum along a budget is found to about 1e-9, so differences err by 1e-5
        ends = [
            float(at.of_surfaces({**pair, "t": Surface(law=law, coef=coef + s * step * np.eye(7)[i])}))
            for s in (1, -1)
        ]
        assert found[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-3)


def dense(jacobian: list[np.ndarray], cell: list[np.ndarray], spread: Spread) -> np.ndarray:
    """J' V^-1 J with every covariance written out."""
    rows = [(a, k) for a in range(2) for k in cell[a]]
    covariance = np.zeros((len(rows), len(rows)))
    for (i, (a, k)), (j, (b, other)) in itertools.product(enumerate(rows), enumerate(rows)):
        if k == other:
            r = 1.0 if a == b else spread.correlation
            covariance[i, j] = r * spread.cell_sd[a] * spread.cell_sd[b] + (i == j) * spread.row_sd[a] ** 2
    size = jacobian[0].shape[1]
    whole = np.zeros((len(rows), 2 * size))
    whole[: len(cell[0]), :size], whole[len(cell[0]) :, size:] = jacobian
    return whole.T @ np.linalg.solve(covariance, whole)


@pytest.mark.parametrize("correlation", [0.0, 0.6, 1.0])
def test_information_is_that_of_the_whole_covariance(correlation: float) -> None:
    rng = np.random.default_rng(0)
    cell = [np.array([0, 0, 1, 1, 1, 3]), np.array([0, 1, 1, 2, 2])]  # cells 2 and 3 are of one architecture
    jacobian = [rng.standard_normal((len(own), 3)) for own in cell]
    spread = Spread(row_sd=(0.3, 0.5), cell_sd=(0.7, 0.4), correlation=correlation)
    found = cell_information(jacobian, cell, 4, spread)
    assert found.shape == (4, 6, 6)
    # solves of small well-conditioned matrices
    assert found.sum(axis=0) == pytest.approx(dense(jacobian, cell, spread), rel=1e-10, abs=1e-10)
    if correlation == 0:
        j, s_c, s_r = jacobian[0][2:5], 0.7, 0.3
        ones = j.sum(axis=0)
        block = (j.T @ j - s_c**2 / (s_r**2 + 3 * s_c**2) * np.outer(ones, ones)) / s_r**2
        assert found[1][:3, :3] == pytest.approx(block, rel=1e-12)


def test_a_direction_that_runs_leave_open_has_no_variance() -> None:
    cells = cell_information(jacobians(), DESIGN.cell, 12, noise(0.5).spread(LOSSES))
    assert np.isinf(variance_of(cells[:2].sum(axis=0), gradient(1e21), FREE))
    fixed = FREE.copy()
    fixed[[0, 6]] = False  # known floors
    assert variance_of(cells.sum(axis=0), gradient(1e21), fixed) < variance_of(
        cells.sum(axis=0), gradient(1e21), FREE
    )


def test_correlated_cells_make_the_difference_surer() -> None:
    errors = [known(1e21, noise(0.9, pair=r)).se for r in (0.0, 0.5, 0.8)]
    assert errors == sorted(errors, reverse=True)
    assert errors[2] < 0.7 * errors[0]


# -- figures of the example's design -----------------------------------------------------------------------------------

#: Its sizes and sparsities differ from that program's by up to 0.2 %; figures are printed to three digits.
CLOSE = {"rel": 0.006}


def test_standard_errors_of_the_example() -> None:
    assert known(1e21, noise(0.7)).se == pytest.approx(0.0665, **CLOSE)
    assert known(1e22, noise(0.7)).se == pytest.approx(0.3217, **CLOSE)


@pytest.mark.parametrize(
    ("icc", "least", "cells", "power"),
    [(0.0, 0.068, 24, 1.0), (0.5, 0.114, 70, 0.98), (0.9, 0.134, 96, 0.92)],
)
def test_gains_that_normal_quantiles_find(icc: float, least: float, cells: int, power: float) -> None:
    """Least squares and normal quantiles: what 12 cells find with 80 %, cells for 5 %, power at 15.8 %."""
    se = known(1e21, noise(icc, (0.0055, 0.0055))).se
    assert 1 - np.exp(-(norm.ppf(0.975) + norm.ppf(0.8)) * se) == pytest.approx(least, abs=0.0006)
    assert norm.cdf(-np.log1p(-0.158) / se - norm.ppf(0.975)) == pytest.approx(power, abs=0.006)
    needed = 12 * ((norm.ppf(0.975) + norm.ppf(0.8)) * se / -np.log1p(-0.05)) ** 2
    assert needed == pytest.approx(cells, abs=4)  # stated with "about"
    many = 1000  # with so many cells t quantiles are normal ones
    assert power_of(0.158, se, many) == pytest.approx(power, abs=0.006)
    assert 1 - np.exp(-found_from(se, many)) == pytest.approx(least, abs=0.0008)
    assert cells_needed(0.05, se, 12) == pytest.approx(needed + 1, abs=2)  # t asks for one or two more


def test_what_new_and_repeated_runs_do() -> None:
    of = noise(0.7)
    now = known(1e22, of)
    every, two = HORIZONS, HORIZONS[:2]
    assert with_pairs(now, of, pair_of(4e10, 0.985, every)) == pytest.approx(0.1599, **CLOSE)
    assert with_pairs(now, of, pair_of(4e10, 0.985, two)) == pytest.approx(0.1798, **CLOSE)
    assert with_pairs(now, of, pair_of(2e8, 0.7, two)) == pytest.approx(0.2183, **CLOSE)
    assert pair_of(4e10, 0.985, two).cost == pytest.approx(3.278e21, rel=2e-4)
    assert pair_of(4e10, 0.985, every).cost == pytest.approx(2.125e22, rel=3e-4)
    assert pair_of(2e8, 0.7, two).cost == pytest.approx(1.639e19, rel=2e-4)
    near = known(1e21, of)
    for size, falls in ((6.3e8, 0.0002119), (4.2e9, 0.01838), (1.0e10, 0.1181)):
        # the smallest run stands at the edge of the design, where its worth is a small difference
        after = with_pairs(near, of, pair_of(size, 0.947, every))
        assert 1 - after / near.se == pytest.approx(falls, rel=0.02, abs=4e-5)


def test_a_sum_buys_at_least_what_a_plain_greedy_list_does() -> None:
    """4.4e21 FLOPs took 0.322 to 0.184 at 1e22 and 0.0665 to 0.0454 at 1e21 in the separate program."""
    of = noise(0.7)
    sets = (HORIZONS, HORIZONS[-1:], HORIZONS[:2])
    sizes = (2e8, 6.3e8, 1.33e9, 2.5e9, 4.2e9, 1e10, 2e10, 4e10)
    pairs = [pair_of(*one) for one in itertools.product(sizes, (0.7, 0.846, 0.947, 0.969, 0.985), sets)]
    more = candidate_information(pairs, (SURFACES["smelt"], SURFACES["baseline"]), of, LOSSES, 6.0)
    for budget, published in ((1e22, 0.184), (1e21, 0.0454)):
        bought = buy(known(budget, of), pairs, more, 4.4e21)
        assert sum(pairs[i].cost for i in bought.pairs) <= 4.4e21 * (1 + 1e-9)
        assert list(bought.se) == sorted(bought.se, reverse=True)
        assert bought.se[-1] <= published
        chosen = [pairs[i] for i in bought.pairs]
        assert bought.se[-1] == pytest.approx(with_pairs(known(budget, of), of, *chosen), rel=1e-9)


# -- the fits that are made --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_moments_of_clipped_residuals_are_integrals(correlation: float) -> None:
    spread = Spread(row_sd=(1.0, 2.0), cell_sd=(1.5, 1.0), correlation=correlation)
    delta = (0.8, 2.5)
    slope, square, shared = huber_moments(delta, spread)

    x, weight = (
        np.linspace(-7, 7, 1401),
        0.01,
    )  # a plain sum; the clipped functions have kinks, hence about 1e-5
    density = weight * norm.pdf(x)

    def mean(a: int, b: int, rho: float) -> float:
        """Integrate the product over two normals of correlation rho, each clipped at its own bound."""
        sd = [float(np.hypot(spread.row_sd[i], spread.cell_sd[i])) for i in (a, b)]
        other = rho * x[:, None] + np.sqrt(1 - rho**2) * x[None, :]
        both = [np.clip(sd[0] * x, -delta[a], delta[a]), np.clip(sd[1] * other, -delta[b], delta[b])]
        return float(density @ (both[0][:, None] * both[1]) @ density)

    total = [spread.row_sd[i] ** 2 + spread.cell_sd[i] ** 2 for i in (0, 1)]
    assert slope[0] == pytest.approx(2 * norm.cdf(delta[0] / np.sqrt(total[0])) - 1, rel=1e-12)
    assert square[1] == pytest.approx(mean(1, 1, 1.0), abs=3e-5)
    within = spread.cell_sd[0] ** 2 / total[0]
    assert shared[0, 0] == pytest.approx(mean(0, 0, within), abs=3e-5)
    between = correlation * spread.cell_sd[0] * spread.cell_sd[1] / np.sqrt(total[0] * total[1])
    assert shared[0, 1] == pytest.approx(mean(0, 1, between), abs=3e-5)


def test_least_squares_of_independent_rows_costs_nothing_and_huber_its_known_share() -> None:
    spread = noise(0.0).spread(LOSSES)
    g, cells = gradient(1e21), DESIGN.cell
    best = variance_of(cell_information(jacobians(), cells, 12, spread).sum(axis=0), g, FREE)
    variance = partial(huber_variance, jacobians(), cells, 12, g, FREE, spread=spread)
    assert variance(delta=(np.inf, np.inf)) == pytest.approx(best, rel=1e-8)
    # a threshold far below the scatter is least absolute deviations, whose variance is pi/2 times as large
    assert variance(delta=(1e-7, 1e-7)) / best == pytest.approx(np.pi / 2, rel=1e-3)


def test_without_resamples_there_is_no_interval() -> None:
    of = noise(0.5, (0.0055, 0.0055))
    (found,) = simulated_power(DESIGN, SURFACES["baseline"], headline(), of, [0.1], worlds=2, bootstrap=0)
    assert np.isnan(found.lower).all()
    assert found.found == 0


# -- noise -------------------------------------------------------------------------------------------------------------


def residuals(
    rng: np.random.Generator, effects: np.ndarray, cell: np.ndarray, sd: float, j: np.ndarray
) -> Residuals:
    """Residuals of a least-squares fit of noise: what is off the columns of the Jacobian."""
    drawn = effects[cell] + sd * rng.standard_normal(len(cell))
    q = np.linalg.qr(j)[0]
    return Residuals(residual=drawn - q @ (q.T @ drawn), jacobian=j, cell=cell)


def test_variance_components_and_their_correlation_are_unbiased() -> None:
    """Unequal cells, six coefficients fitted; without allowing for them the cell variance would be a third too low."""
    rng = np.random.default_rng(3)
    cells = [np.repeat(np.arange(12), rng.integers(3, 8, 12)) for _ in range(2)]
    jacobian = [rng.standard_normal((len(cell), 6)) + rng.standard_normal((12, 6))[cell] for cell in cells]
    found, correlation = [], []
    for _ in range(400):
        u = rng.standard_normal((2, 12))
        effects = (2.0 * u[0], 3.0 * (0.6 * u[0] + 0.8 * u[1]))
        pair = [residuals(rng, effects[a], cells[a], (1.5, 1.0)[a], jacobian[a]) for a in range(2)]
        found.append([variance_components(of) for of in pair])
        r = cell_correlation(*pair)
        correlation.append(0.0 if r is None else r)
    means = np.mean(found, axis=0)
    # three standard errors of 400 draws: a cell variance on about 8 degrees of freedom scatters by half its size
    assert means[:, 0] == pytest.approx([2.25, 1.0], rel=0.05)
    assert means[:, 1] == pytest.approx([4.0, 9.0], rel=0.09)
    assert np.median(correlation) == pytest.approx(0.6, abs=0.08)


def test_what_lies_along_the_coefficients_is_no_noise() -> None:
    """Huber's residuals are not those of least squares: they keep some of J, which the expectations leave out."""
    rng = np.random.default_rng(4)
    cell = np.repeat(np.arange(12), 6)
    jacobian = rng.standard_normal((72, 6)) + rng.standard_normal((12, 6))[cell]
    plain = [residuals(rng, rng.standard_normal(12), cell, 0.8, jacobian) for _ in range(2)]
    moved = [replace(of, residual=of.residual + jacobian @ rng.standard_normal(6)) for of in plain]
    for of, other in zip(plain, moved, strict=True):
        assert variance_components(other) == pytest.approx(variance_components(of), rel=1e-9)
    assert cell_correlation(*moved) == pytest.approx(cell_correlation(*plain), rel=1e-9, abs=1e-12)


def test_rows_without_cells_say_nothing_of_cells() -> None:
    of = Residuals(residual=np.array([1.0, -1, 1, -1]), jacobian=np.ones((4, 1)), cell=np.arange(4))
    assert variance_components(of) == (pytest.approx(4 / 3), None)
    assert cell_correlation(of, of) is None


def test_cells_that_the_coefficients_use_up_say_nothing_of_cells() -> None:
    """A mean for each of four cells of five runs: what is left is within, 20 - 4 degrees of freedom."""
    cell = np.repeat(np.arange(4), 5)
    drawn = np.random.default_rng(0).standard_normal(20)
    inside = drawn - np.array([drawn[cell == k].mean() for k in range(4)])[cell]
    of = Residuals(residual=inside, jacobian=np.eye(4)[cell], cell=cell)
    assert variance_components(of) == (pytest.approx(inside @ inside / 16), None)


def test_noise_of_a_simulated_study_is_found_again(study) -> None:
    """The example: sd 1.044 (0.00952, 0.00554), of which cells share half; one set of 12 cells is within 15 %."""
    settings = plan(study).attrs["settings"]
    assert settings["noise"]["smelt"] == pytest.approx(1.044 * 0.00952, rel=0.15)
    assert settings["noise"]["baseline"] == pytest.approx(1.044 * 0.00554, rel=0.15)
    assert settings["icc"] == pytest.approx(0.5, abs=0.2)
    assert 0 <= settings["pair_correlation"] <= 1
    assert {settings[f"{name}_source"] for name in ("noise", "icc", "pair_correlation")} == {
        "estimated from residuals"
    }


# -- power -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formula", [LAW.formula, "E + A*F**-a + B*F**-e + K*D**-c"])
def test_a_shifted_target_saves_exactly_what_was_asked_for(formula: str) -> None:
    law = get_law(formula)
    values = {"E": 1.44, "A": 1366.0, "B": 30.0, "K": 1.975e6, "a": 0.37, "b": 0.153, "e": 0.2, "c": 0.66}
    reference = Surface(law=law, coef=[values[name] for name in law.parameters])
    sparsity = 0.947 if "S" in law.columns else None
    for gain in (-0.2, 0.0, 0.137):
        target = shifted(reference, gain, 1e21, sparsity)
        loss = Frontier(target).loss(1e21, sparsity)
        reached = float(Frontier(reference).budget_for(loss, sparsity))
        assert 1 - 1e21 / reached == pytest.approx(gain, abs=1e-7)  # a numeric frontier's own precision


def test_detectable_gain_lies_on_the_line_between() -> None:
    def worlds(truth: float, share: float) -> Worlds:
        lower = np.where(np.arange(1000) < 1000 * share, 1.0, -1.0)
        return Worlds(truth=truth, estimate=lower, lower=lower, upper=lower + 1)

    line = [worlds(m, float(norm.cdf(m / 0.05 - 1.96))) for m in (0.1, 0.13, 0.17)]
    wanted = 1 - np.exp(-(1.96 + norm.ppf(0.8)) * 0.05)
    assert detectable(line) == pytest.approx(wanted, abs=2e-4)  # shares are whole thousandths
    assert detectable(line[:1]) is None
    assert detectable(line[2:]) is None


def test_worlds_find_what_is_large_and_not_what_is_negative() -> None:
    ask = partial(simulated_power, DESIGN, SURFACES["baseline"], headline(), noise(0.5, (0.0055, 0.0055)))
    large, negative = ask([0.5, -0.5], worlds=2, bootstrap=40)
    assert (large.found, negative.found) == (2, 0)
    again = ask([0.5], worlds=1, bootstrap=40)[0]
    assert again.lower[0] == large.lower[0]  # world i does not depend on how many there are
    row = large.row()
    assert (row["power"], row["power_hi"], row["worlds"]) == (1.0, 1.0, 2)
    assert row["power_lo"] == pytest.approx(0.025 ** (1 / 2))  # Clopper-Pearson of 2 of 2


@pytest.mark.slow
def test_reported_intervals_find_the_gain_that_the_formula_calls_detectable() -> None:
    """12 cells, ICC 0.5: the formula finds 13.1 % in 80 % of worlds.

    Simulated intervals find it somewhat less often (benchmarks/power.py); 40 worlds only tell that from a gross fault.
    """
    of = noise(0.5, (0.0055, 0.0055))
    (found,) = simulated_power(
        DESIGN, SURFACES["baseline"], headline(), of, [0.131], worlds=40, bootstrap=200, seed=7
    )
    low, high = binom.ppf([0.001, 0.999], 40, 0.8)
    assert low <= found.found <= high
    assert found.held >= binom.ppf(0.001, 40, 0.95)
    at = {"smelt": shifted(SURFACES["baseline"], 0.131, 1e21, 0.947), "baseline": SURFACES["baseline"]}
    told = evidence_of(DESIGN, at, headline(), of, delta=(1e-3, 1e-3))
    # the scatter of 40 worlds has a relative error of 1/sqrt(80) = 11 %; three of them
    assert found.estimate.std(ddof=1) == pytest.approx(told.se_reported, rel=0.34)


def test_cells_are_taken_evenly() -> None:
    assert DESIGN.labels[0].startswith("100M")
    assert DESIGN.labels[-1] == "1.6B/97%"
    assert DESIGN.times(24).tolist() == [2] * 12
    assert DESIGN.times(14).sum() == 14
    runs = Endpoints.from_frame(pd.DataFrame(DESIGN.taken(14)).assign(loss=2.0))
    assert len(np.unique(runs["cell"])) == 14
    assert len(runs) == 14 * 6 * 2


# -- the whole ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study():
    return fit(RUNS, bootstrap=50)


def test_candidates_lie_within_the_runs_unless_asked(study) -> None:
    table = plan(study)
    assert table["in_box"].all()
    assert table["reduction"].is_monotonic_decreasing
    # both architectures' runs: of smelt from 6.48e8, of the baseline up to 1.023e10
    assert table["F"].min() == RUNS.F[RUNS.arch == "smelt"].min()
    assert table["F"].max() == RUNS.F[RUNS.arch == "baseline"].max()
    assert (table["se_after"] < table["se_before"]).all()
    assert (table["dlogdet"] > 0).all()
    wide = plan(study, box={"F": (2e8, 4e10)})
    away = wide[~wide["in_box"]]
    assert set(away["F"]) == {f for f in wide["F"] if not table["F"].min() <= f <= table["F"].max()}
    assert {"unmeasured_candidates"} <= {note.code for note in notes_of(wide)}
    assert "†" in show_table(wide)
    assert plan(study, extend=2.0)["S"].max() == pytest.approx(1 - (1 - 0.972) / 2)
    per_flop = table["reduction"] / table["cost"]
    assert table["reduction_per_flop"].to_numpy() == pytest.approx(per_flop.to_numpy(), rel=1e-12)


def test_schedules_cost_what_is_trained(study) -> None:
    apart = plan(study, schedule="independent", horizons=[2e10, 1e11])
    row = apart[apart["horizons"].map(len) == 2].iloc[0]
    assert row["cost"] == pytest.approx(2 * row["F"] * 1.2e11)
    trunk = plan(study, horizons=[2e10, 1e11])
    row = trunk[trunk["horizons"].map(len) == 2].iloc[0]
    assert row["cost"] == pytest.approx(2 * row["F"] * (0.9e11 + 0.2e10 + 0.1e11))


def test_a_plan_of_published_surfaces_needs_no_losses(tmp_path) -> None:
    frame = RUNS.to_frame()
    frame.drop(columns="loss").to_csv(tmp_path / "planned.csv", index=False)
    ask = partial(plan, load_paper("smelt"), noise=0.0055, icc=0.5, target="smelt")
    one = ask(design=read_design(tmp_path / "planned.csv"))
    other = ask(design=RUNS)
    pd.testing.assert_frame_equal(one, other)
    assert one.attrs["settings"]["gain"] == pytest.approx(
        0.15799, abs=1e-5
    )  # published, recomputed elsewhere
    rows = [row for row in one.attrs["power"] if row["icc"] == 0.5 and row["cells"] == 12]
    # 13.1 % with the reported interval, as measured elsewhere, for surfaces of these two
    assert rows[0]["detectable"] == pytest.approx(0.131, abs=0.004)
    assert {note.code for note in notes_of(one)} >= {"noise_assumed"}


def test_the_same_rows_in_any_order_give_the_same_bytes(study) -> None:
    frame = RUNS.to_frame().sample(frac=1, random_state=1)
    other = fit(Endpoints.from_frame(frame, source=RUNS.source), bootstrap=50)
    asked = [show_table(plan(one, fund=3e21), "json") for one in (study, other)]
    rows = [json.loads(text)["rows"] for text in asked]
    assert rows[0] == rows[1]


def test_laws_and_tables_of_every_kind(study) -> None:
    middle = RUNS.select(RUNS.tiers == 1)
    one_tier = plan(fit(middle, bootstrap=0))
    assert set(one_tier["S"]) == {0.947}
    with pytest.raises(FrontierError, match="one sparsity"):
        plan(fit(middle, bootstrap=0), extend=2)
    dense = plan(fit(middle, "additive", bootstrap=0))
    assert dense["S"].isna().all()
    assert dense["se_after"].iloc[0] == pytest.approx(one_tier["se_after"].iloc[0], rel=1e-4)
    sized = plan(fit(middle, "chinchilla", bootstrap=0))
    assert sized["F"].max() == 6 * min(middle["N"][middle.arch == arch].max() for arch in middle.archs)
    with pytest.raises(FrontierError, match="holds C only"):
        plan(fit(RUNS, "power-c", bootstrap=0))
    bare = RUNS.to_frame()[["arch", "F", "S", "D", "loss"]]
    rows = plan(fit(Endpoints.from_frame(bare), bootstrap=0))
    assert rows.attrs["settings"]["icc"] == 0
    assert "noise_assumed" in {note.code for note in notes_of(rows)}
    held = plan(fit(RUNS, bootstrap=0, pins={"E": 1.44}))
    assert held["se_before"].iloc[0] < plan(study)["se_before"].iloc[0]
    least = plan(fit(RUNS, bootstrap=0, delta=float("inf")))
    assert least.attrs["settings"]["se_factor"] < 1.05


def test_simulated_worlds_stand_beside_the_formula_and_hold_what_is_pinned() -> None:
    seen: list[tuple[int, int]] = []
    table = plan(
        fit(RUNS, bootstrap=0, pins={"smelt": {"c": 0.65}}),
        worlds=2,
        bootstrap=40,
        cells=[12],
        progress=lambda done, total: seen.append((done, total)),
    )
    rows = [row for row in table.attrs["power"] if row["method"] == "simulation"]
    assert [row["worlds"] for row in rows] == [2, 2, 2]
    assert seen == [(i, 6) for i in range(1, 7)]
    assert "simulated worlds" in show_table(table)


def test_width_is_close_to_that_of_the_study(study) -> None:
    """Asymptotics against 50 resamples of one set: the same to a third."""
    table = plan(study)
    settings = table.attrs["settings"]
    own = settings["reported_hi"] - settings["reported_lo"]
    assert table["width_before"].iloc[0] == pytest.approx(own, rel=0.33)


def test_the_command_says_what_the_library_says(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    made = fit(RUNS, bootstrap=50)
    made.save("reports/study")
    options = ["--box", "F=2e8..4e10,S=0.7..0.985", "--fund", "4.4e21", "--decay", "10B", "--cells", "12,24"]
    assert run(["plan", *options, "--format", "json", "-o", "out"]) == 0
    record = json.loads(capsys.readouterr().out)
    table = plan(made, box={"F": (2e8, 4e10), "S": (0.7, 0.985)}, fund=4.4e21, decay=1e10, cells=[12, 24])
    assert record["rows"] == table.to_dict("records")
    assert record["sequence"] == table.attrs["sequence"]
    assert record["power"] == table.attrs["power"]
    stored = pd.read_parquet("out/plan.parquet")
    assert [list(tokens) for tokens in stored["horizons"]] == table["horizons"].tolist()
    for form in ("table", "md", "csv", "latex"):
        assert run(["plan", *options, "--format", form]) == 0
        assert capsys.readouterr().out
    lines = show_table(table).splitlines()
    assert max(map(len, lines)) <= 80


def test_horizons_and_decays_are_written_as_they_are_printed(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    made = fit(RUNS, bootstrap=50)
    made.save("reports/study")
    assert run(["plan", "--horizons", "20B,1e11", "--decay", "10%", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows == plan(made, horizons=[2e10, 1e11], decay=0.1).to_dict("records")
    for wrong in (["--horizons", "long"], ["--decay", "0.1,0.2"], ["--decay", ""]):
        assert run(["plan", *wrong]) == 2
        said = capsys.readouterr().err
        assert f"error: {' '.join(wrong)}: not a number; write 2e10 or 20B" in said


def test_arguments_out_of_range_are_refused(study) -> None:
    for bad in (
        {"level": 1.5},
        {"fund": -1.0},
        {"se_factor": 0.0},
        {"worlds": 1},
        {"worlds": 5, "bootstrap": 10},
        {"cells": [1]},
        {"horizons": [-1.0]},
        {"icc": 1.0},
        {"pair_correlation": 2.0},
        {"noise": {"smelt": 0.01}},
        {"schedule": "cosine"},
    ):
        with pytest.raises(UsageError):
            plan(study, **bad)
