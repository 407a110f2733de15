"""The wild cluster bootstrap against a slow, literal one written with SciPy, and its guards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import least_squares

from smelt_scaling import ce_gain, fit, load_study, notes_of
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.fitting import FitSettings
from smelt_scaling.fitting.estimate import Fitted, fit_architecture
from smelt_scaling.laws import get_law
from smelt_scaling.papers.example import example_endpoints
from smelt_scaling.resampling import Draws, jackknife_plan, refit
from smelt_scaling.resampling.plans import Plan
from smelt_scaling.resampling.wild import refit_wild, wild_plan, wild_refusal

Array = NDArray[np.float64]
LAW = get_law("sparse-additive")


def prepared(
    endpoints: Endpoints, settings: FitSettings
) -> tuple[dict[str, Fitted], dict[str, NDArray[np.str_]]]:
    labels, _ = endpoints.cells()
    by_arch = {arch: labels[endpoints.arch == arch] for arch in endpoints.archs}
    fitted = {
        arch: fit_architecture(arch, rows, LAW, settings, n_cells=len(set(by_arch[arch])))
        for arch, rows in endpoints.by_arch().items()
    }
    return fitted, by_arch


def left_out(
    fitted: dict[str, Fitted], by_arch: dict[str, NDArray[np.str_]], settings: FitSettings
) -> dict[str, Draws]:
    plan = jackknife_plan(by_arch)
    return {
        arch: refit(
            one,
            np.searchsorted(plan.labels[arch], by_arch[arch]),
            plan.counts[arch],
            plan.labels[arch],
            settings,
        )
        for arch, one in fitted.items()
    }


def surface(theta: Array, x: Array) -> Array:
    """ln loss of E, ln A, ln K, a, b, c at columns ln F, ln(1-S), ln D, each centred."""
    floor, log_a, log_k, a, b, c = theta
    return np.log(np.exp(floor) + np.exp(log_a + b * x[:, 1] - a * x[:, 0]) + np.exp(log_k - c * x[:, 2]))


def literal(x: Array, y: Array, weight: Array, start: Array, delta: float) -> Array:
    """Minimise sum w rho(y - ln m) by SciPy, to its last digits; weights are 0 or 1."""

    def residual(theta: Array) -> Array:
        return weight * (surface(theta, x) - y)

    tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "max_nfev": 20_000}
    robust = {"loss": "huber", "f_scale": delta} if np.isfinite(delta) else {}
    return np.asarray(least_squares(residual, start, method="trf", x_scale="jac", **tight, **robust).x)


@pytest.mark.parametrize(("delta", "replicates", "tolerance"), [(np.inf, 8, 1e-6), (0.004, 4, 1e-5)])
def test_it_equals_a_slow_literal_one(delta: float, replicates: int, tolerance: float) -> None:
    """Tolerances: SciPy's differences of losses see a coefficient to about 1e-7, less where residuals are linear."""
    endpoints = example_endpoints()
    settings = FitSettings(delta=delta)
    fitted, by_arch = prepared(endpoints, settings)
    plan = wild_plan(by_arch, replicates=replicates, seed=3)
    without = left_out(fitted, by_arch, settings)
    arch = "baseline"
    rows = endpoints.by_arch()[arch]
    found = refit_wild(
        fitted[arch], np.searchsorted(plan.labels[arch], by_arch[arch]), plan, without[arch], settings
    )
    assert found.certified.all()
    x = np.stack([np.log(rows.F), np.log1p(-rows.S), np.log(rows.D)], axis=1)
    x -= x.mean(axis=0)
    y, weight = np.log(rows.loss), rows.weight
    full = literal(x, y, weight, np.array([0.3, -1.5, -1.5, 0.3, 0.2, 0.5]), delta)
    residual = np.empty(len(y))
    for cell in np.unique(by_arch[arch]):
        own = by_arch[arch] == cell
        residual[own] = y[own] - surface(literal(x, y, weight * ~own, full, delta), x)[own]
    for replicate in range(replicates):
        sign = dict(zip(plan.labels[arch], plan.counts[arch][replicate], strict=True))
        drawn = surface(full, x) + np.array([sign[cell] for cell in by_arch[arch]]) * residual
        expected = literal(x, drawn, weight, full, delta)
        coefficients = dict(zip(LAW.parameters, found.surface.coef[replicate], strict=True))
        got = [np.log(coefficients["E"]), coefficients["a"], coefficients["b"], coefficients["c"]]
        np.testing.assert_allclose(got, expected[[0, 3, 4, 5]], rtol=tolerance, atol=tolerance)


def test_a_sign_is_that_of_a_whole_cell_and_of_both_architectures() -> None:
    endpoints = example_endpoints()
    _, by_arch = prepared(endpoints, FitSettings())
    plan = wild_plan(by_arch, replicates=500, seed=0)
    assert plan.labels["baseline"] == plan.labels["smelt"]
    np.testing.assert_array_equal(plan.counts["baseline"], plan.counts["smelt"])
    assert set(np.unique(plan.counts["smelt"])) == {-1, 1}
    # 12 x 500 fair signs: the mean has a standard error of 0.013
    assert abs(plan.counts["smelt"].mean()) < 4 * 0.013
    more = wild_plan(by_arch, replicates=600, seed=0)
    np.testing.assert_array_equal(more.counts["smelt"][:500], plan.counts["smelt"])


def test_few_labels_take_every_pattern_once() -> None:
    labels = {"a": np.array(list("abcdefgh")), "b": np.array(list("abcdefgh"))}
    plan = wild_plan(labels, replicates=2000, seed=0)
    assert len({tuple(row) for row in plan.counts["a"].tolist()}) == 2**8 == plan.replicates


def test_architectures_without_a_common_cell_have_signs_of_their_own() -> None:
    labels = {"a": np.array([f"a{i}" for i in range(12)]), "b": np.array([f"b{i}" for i in range(12)])}
    plan = wild_plan(labels, replicates=400, seed=0)
    assert not plan.paired
    # 4800 pairs of independent signs: their mean product has a standard error of 0.0144
    assert abs((plan.counts["a"] * plan.counts["b"]).mean()) < 4 * 0.0144


def test_it_is_refused_where_it_means_nothing() -> None:
    endpoints = example_endpoints()
    fitted, by_arch = prepared(endpoints, FitSettings())
    without = left_out(fitted, by_arch, FitSettings())
    assert wild_refusal(wild_plan(by_arch, replicates=10, seed=0), without) == ""
    few = {arch: labels[np.isin(labels, np.unique(labels)[:7])] for arch, labels in by_arch.items()}
    assert "7 labels" in wild_refusal(wild_plan(few, replicates=10, seed=0), {})
    spoiled = without["smelt"]
    bad = Draws(**{**vars(spoiled), "certified": np.arange(len(spoiled)) != 4})
    plan: Plan = wild_plan(by_arch, replicates=10, seed=0)
    assert plan.labels["smelt"][4] in wild_refusal(plan, {"smelt": bad})


def test_a_study_carries_its_wild_draws_through_a_file(tmp_path: Path) -> None:
    study = fit(example_endpoints(), bootstrap=100, wild=True)
    loaded = load_study(study.save(tmp_path / "study"))
    for one in (study, loaded):
        assert one.wild is not None
        assert one.bootstrap.no_wild == ""
    before, after = (ce_gain(one, 1e21, interval="wild-cr3") for one in (study, loaded))
    assert before["gain_lo"].tolist() == after["gain_lo"].tolist()
    assert (before["gain_lo"] < before["gain"]).all()
    assert "interval_coverage" in {note.code for note in notes_of(before)}


def test_a_study_without_them_says_how_to_get_them() -> None:
    study = fit(example_endpoints(), bootstrap=0)
    table = ce_gain(study, 1e21, interval="wild-cr3")
    [note] = [note for note in notes_of(table) if note.code == "no_interval"]
    assert "--wild" in note.message
    assert table["gain_lo"].isna().all()


def test_draws_of_signs_do_not_change_those_of_cells() -> None:
    with_signs, without = (fit(example_endpoints(), bootstrap=60, wild=wild) for wild in (True, False))
    assert with_signs.draws is not None
    assert without.draws is not None
    for arch, draws in without.draws.items():
        np.testing.assert_array_equal(draws.surface.coef, with_signs.draws[arch].surface.coef)
