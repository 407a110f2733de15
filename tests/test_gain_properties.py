"""What a gain must satisfy whatever the data, how often a fit is the optimum, and what a design cannot tell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from smelt_scaling.analyses import ce_gain
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.engine.design import condition_numbers
from smelt_scaling.engine.newton import delta_ladder, minimise
from smelt_scaling.engine.objective import Objective
from smelt_scaling.engine.problem import make_problem
from smelt_scaling.errors import FitError, FrontierError
from smelt_scaling.fitting import FitSettings, fit_architecture
from smelt_scaling.frontier import Frontier, log_multiplier
from smelt_scaling.ingest.tidy import read_endpoints
from smelt_scaling.laws import LAWS, Surface
from smelt_scaling.papers import load_paper
from smelt_scaling.papers.example import example_design, example_endpoints
from smelt_scaling.study import Study, fit
from smelt_scaling.synth import simulate

BUDGETS = [1e20, 1e21, 1e22]
PAPER = load_paper("smelt")
SD = {
    "baseline": 1.044 * 0.00554,
    "smelt": 1.044 * 0.00952,
}  # published rmse, freed of 6 parameters in 72 rows


def world(seed: int) -> Endpoints:
    """The survey's design with noise drawn anew."""
    return simulate(PAPER.surfaces, example_design(PAPER), sd=SD, seed=seed)


@pytest.fixture(scope="module")
def study() -> Study:
    return fit(example_endpoints(), bootstrap=400)


def gains(runs: Endpoints, budgets: object = None) -> NDArray[np.float64]:
    frame = ce_gain(fit(runs, bootstrap=0), BUDGETS if budgets is None else budgets)
    return frame["gain"].to_numpy(dtype=float)


# -- how often the fit is the optimum ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_every_replicate_is_certified(seed: int) -> None:
    """5 seeds x 500 replicates x 2 architectures: each refit has a certificate, without exception."""
    drawn = fit(example_endpoints(), bootstrap=500, seed=seed)
    assert [len(d) for d in drawn.draws.values()] == [500, 500]
    assert all(d.certified.all() for d in drawn.draws.values())
    assert drawn.bootstrap.certified_share == 1.0
    assert drawn.certified


@pytest.mark.slow
def test_fit_equals_the_best_of_many_random_starts() -> None:
    """In at least 49 of 50 simulated worlds no random start of 64 ends lower than the default fit (1e-9 relative).

    A world counts if the fits of both architectures do. The worlds share their design, so the starts of all of them
    are one block: a residual of logarithms does not change with the unit of the loss, each world's mean.
    """
    rng = np.random.default_rng(20)
    law, worlds, starts = PAPER.surfaces["smelt"].law, 50, 64
    runs = [world(seed).by_arch() for seed in range(worlds)]
    as_good = np.ones(worlds, dtype=bool)
    for arch in SD:
        rows = [one[arch] for one in runs]
        results = [fit_architecture(arch, one, law, FitSettings(), n_cells=12).result for one in rows]
        columns = {name: rows[0][name] for name in law.columns}
        assert all(np.array_equal(one[name], columns[name]) for one in rows for name in law.columns)
        problem = make_problem(law, columns, rows[0].loss, rows[0].weight, pins={})
        losses = np.log([one.loss for one in rows])
        observed = np.repeat(losses - losses.mean(axis=1, keepdims=True), starts, axis=0)
        lanes = worlds * starts
        # in these coordinates losses are about 1: floor, ln terms at the centre of the design, exponents
        start = np.column_stack([
            rng.uniform(0.0, 0.95, lanes),
            np.log(rng.uniform(0.01, 1.0, (lanes, 2))),
            rng.uniform(0.05, 1.5, lanes), rng.uniform(-0.3, 1.0, lanes), rng.uniform(0.05, 1.5, lanes),
        ])  # fmt: skip
        weights = np.ones((lanes, len(rows[0])))
        found = minimise(Objective(problem), start, weights, delta_ladder(1e-3), observed=observed)
        lowest = found.objective.reshape(worlds, starts).min(axis=1)
        ours = np.array([result.objective for result in results])
        as_good &= ours <= lowest * (1 + 1e-9)
        # the two sides are comparable: in most worlds random starts reach the same optimum to its last digits
        assert np.mean(np.abs(ours / lowest - 1) < 1e-9) > 0.5
    assert as_good.sum() >= 49


# -- invariances -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=8)
@given(st.floats(0.5, 1.6), st.floats(0.3, 3.0), st.floats(0.3, 3.0))
def test_gain_does_not_depend_on_units(loss_unit: float, flops_unit: float, token_unit: float) -> None:
    """Loss, F and D in other units (budgets accordingly) leave fitted gains alone.

    A certified optimum is exact to a Newton decrement of 1e-12 of the objective, 1e-6 standard errors of a gain.
    """
    frame = example_endpoints().to_frame()[["arch", "cell", "F", "S", "D", "loss"]]
    scaled = frame.assign(
        loss=frame["loss"] * loss_unit, F=frame["F"] * flops_unit, D=frame["D"] * token_unit
    )
    before = gains(Endpoints.from_frame(frame))
    after = gains(Endpoints.from_frame(scaled), np.array(BUDGETS) * flops_unit * token_unit)
    np.testing.assert_allclose(after, before, atol=2e-7)


COEFFICIENTS = st.tuples(
    st.floats(1.0, 1.8),
    st.floats(2, 4),
    st.floats(4, 8),
    st.floats(0.2, 0.6),
    st.floats(0.0, 0.4),
    st.floats(0.3, 0.9),
)


@given(COEFFICIENTS, COEFFICIENTS, st.floats(18, 25), st.floats(0.0, 0.98))
def test_gains_of_both_directions_cancel(
    first: tuple[float, ...], second: tuple[float, ...], log10_budget: float, S: float
) -> None:
    """(1 - G_ab)(1 - G_ba) = 1 when both are read off at the same loss; an unreachable side is +inf, never a number."""
    a, b = (
        Frontier(Surface(law=LAWS["sparse-additive"], coef=[E, 10**A, 10**K, *exponents]))
        for E, A, K, *exponents in (first, second)
    )
    log_budget = log10_budget * np.log(10)
    there = float(log_multiplier(a, b, log_budget, S))
    if there == np.inf:
        assert float(a.loss(np.exp(log_budget), S)) <= second[0]
        return
    back = float(log_multiplier(b, a, log_budget + there, S))
    # rounding of the loss is amplified where both curves lie close to their floors
    reducible = float(a.loss(np.exp(log_budget), S)) - max(first[0], second[0])
    if reducible > 1e-4 and abs(there) < 200:
        assert there + back == pytest.approx(0.0, abs=1e-8)


@given(COEFFICIENTS, st.floats(0.5, 2.0), st.floats(18, 25))
def test_common_factor_of_both_losses_cancels(
    coef: tuple[float, ...], factor: float, log10_budget: float
) -> None:
    """E, A and K times a factor, in both architectures: the gain stays to 1e-10."""
    E, A, K, *exponents = coef
    law = LAWS["sparse-additive"]
    pairs = [
        (
            Frontier(Surface(law=law, coef=[E * f, f * 10**A, f * 10**K, *exponents])),
            Frontier(Surface(law=law, coef=[E * f, 1.1 * f * 10**A, f * 10**K, *exponents])),
        )
        for f in (1.0, factor)
    ]
    m = [float(log_multiplier(*pair, log10_budget * np.log(10), 0.9)) for pair in pairs]
    assert m[0] == pytest.approx(m[1], abs=1e-10)
    assert m[0] > 0


def test_identical_architectures_gain_exactly_nothing() -> None:
    """The same rows under two names: 0 exactly at every budget and, with paired resampling, the interval [0, 0]."""
    one = example_endpoints().by_arch()["smelt"].to_frame()
    twice = pd.concat([one.assign(arch="first"), one.assign(arch="second")])
    drawn = fit(Endpoints.from_frame(twice), bootstrap=200)
    assert drawn.bootstrap.paired
    for interval in ("percentile", "jackknife-t"):
        frame = ce_gain(drawn, [1e18, *BUDGETS, 1e26], interval=interval)
        assert (frame[["gain", "gain_lo", "gain_hi"]] == 0.0).all(axis=None)
        assert (frame[["multiplier", "multiplier_lo", "multiplier_hi"]] == 1.0).all(axis=None)
        assert frame["reference_budget"].tolist() == frame["budget"].tolist()


# -- bytes -------------------------------------------------------------------------------------------------------------


def saved(study: Study, folder: Path) -> tuple[bytes, dict[str, object]]:
    study.save(folder)
    text = json.loads((folder / "study.json").read_text())
    del text["provenance"]
    return (folder / "draws.parquet").read_bytes(), text


def test_row_and_column_order_change_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shuffled rows, reordered columns, files joined the other way round: the same bytes of draws and study."""
    frame = example_endpoints().to_frame()
    reversed_files = pd.concat([frame[frame["arch"] == arch] for arch in ("smelt", "baseline")])
    shuffled = frame.sample(frac=1, random_state=5)[list(frame.columns[::-1])]
    results = []
    for name, table in (("first", frame), ("joined", reversed_files), ("shuffled", shuffled)):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)  # messages name the file as it was given
        table.to_csv("runs.csv", index=False, float_format="%.17g")
        results.append(saved(fit(read_endpoints("runs.csv"), bootstrap=100), Path("study")))
    for draws, text in results[1:]:
        assert draws == results[0][0]
        assert text == results[0][1]


def test_first_draws_do_not_depend_on_how_many_follow(study: Study) -> None:
    """The first 256 of 256 draws and of 400 are equal to the last bit; so are those of another run."""
    fewer = fit(example_endpoints(), bootstrap=256)
    for arch, draws in study.draws.items():
        np.testing.assert_array_equal(fewer.draws[arch].counts, draws.counts[:256])
        np.testing.assert_array_equal(fewer.draws[arch].surface.coef, draws.surface.coef[:256])
    other = fit(example_endpoints(), bootstrap=256, seed=1)
    assert not np.array_equal(other.draws["smelt"].counts, fewer.draws["smelt"].counts)


# -- intervals and unreachable draws -----------------------------------------------------------------------------------


def multipliers(study: Study, budget: float, S: float) -> NDArray[np.float64]:
    """ln(C_ref/C) of every draw, from the formulas rather than the frontier code."""
    values = []
    for arch in ("smelt", "baseline"):
        E, A, K, a, b, c = study.draws[arch].surface.coef.T
        Q, s = A * (1 - S) ** b, a + c
        G = (a * Q / (c * K)) ** (1 / s)
        values.append((E, Q * G**-a + K * G**c, a * c / s))
    (E, P, gamma), (E_ref, P_ref, gamma_ref) = values
    excess = E + P * budget**-gamma - E_ref
    return np.where(
        excess > 0, np.log(np.maximum(excess, 1e-300) / P_ref) / -gamma_ref - np.log(budget), np.inf
    )


@pytest.mark.parametrize(("level", "k"), [(0.95, 10), (0.80, 40)])
def test_interval_ends_are_order_statistics(study: Study, level: float, k: int) -> None:
    """400 draws: the k-th smallest and largest, k = floor(401 (1 - level)/2), for gain and multiplier alike."""
    frame = ce_gain(study, BUDGETS, target="smelt", reference="baseline", level=level)
    for row in frame.itertuples():
        m = np.sort(multipliers(study, row.budget, row.sparsity))
        lo, hi = m[k - 1], m[400 - k]
        assert [row.multiplier_lo, row.multiplier_hi] == pytest.approx([np.exp(lo), np.exp(hi)], rel=1e-9)
        assert [row.gain_lo, row.gain_hi] == pytest.approx([1 - np.exp(-lo), 1 - np.exp(-hi)], abs=1e-9)
        assert row.gain_positive_share == np.mean(m > 0)
        assert 1 - 1 / row.multiplier_lo == pytest.approx(row.gain_lo, abs=1e-14)


def with_floors(study: Study, floors: NDArray[np.float64]) -> Study:
    """Give the reference's draws other floors."""
    draws = study.draws["baseline"]
    coef = draws.surface.coef.copy()
    coef[:, 0] = floors
    changed = replace(draws, surface=Surface(law=study.law, coef=coef))
    return replace(study, draws={**study.draws, "baseline": changed})


def test_unreachable_draws_rank_highest(study: Study) -> None:
    """8 lost draws of 400 are below the 10 of the upper tail: a finite end. 12 reach it: no end, and its flag."""
    floors = study.draws["baseline"].surface["E"].copy()
    for lost in (8, 12):
        changed = floors.copy()
        changed[:lost] = 3.0  # above every loss of the target
        frame = ce_gain(with_floors(study, changed), 1e21, target="smelt", reference="baseline")
        for row in frame.itertuples():
            assert row.unreachable_draws == lost
            assert not row.unreachable  # the point estimate is what it was
            assert row.gain_positive_share >= lost / 400
            assert np.isfinite(row.gain_lo)
            assert row.hi_unreachable == (lost == 12)
        ends = frame[["gain_hi", "multiplier_hi"]]
        assert ends.isna().all(axis=None) if lost == 12 else ends.notna().all(axis=None)


def test_all_draws_unreachable(study: Study) -> None:
    """Neither end exists; the gain's point estimate stays, and 100 % is printed nowhere."""
    frame = ce_gain(with_floors(study, np.full(400, 3.0)), 1e21, target="smelt", reference="baseline")
    assert frame[["gain_lo", "gain_hi", "multiplier_lo", "multiplier_hi"]].isna().all(axis=None)
    assert frame["hi_unreachable"].all()
    assert (frame["unreachable_draws"] == 400).all()
    assert frame["gain"].between(0, 0.5).all()


# -- what a design identifies ------------------------------------------------------------------------------------------


def part(**levels: object) -> Endpoints:
    """Rows of the example whose column is one of the given values."""
    frame = example_endpoints().to_frame()
    for column, values in levels.items():
        frame = frame[frame[column].isin(np.atleast_1d(values))]
    return Endpoints.from_frame(frame)


def test_one_tier_leaves_b_out_and_holds_at_its_sparsity_only() -> None:
    cells = [f"{scale}/95%" for scale in ("100M", "200M", "600M", "1.6B")]
    drawn = fit(part(cell=cells), bootstrap=0)
    for result in drawn.fits.values():
        assert set(result.unidentified) == {"b"}
        assert result.only_at["S"] == pytest.approx(0.947, abs=0.002)
        assert result.to_dict()["coefficients"]["b"] is None
        assert result.certificate.certified
    frame = ce_gain(drawn, 1e21, target="smelt", reference="baseline")
    assert len(frame) == 1
    assert 0 < frame["gain"].iloc[0] < 0.5
    with pytest.raises(FrontierError, match="holds at S = 0.947"):
        ce_gain(drawn, 1e21, sparsities=0.846)


def test_one_horizon_identifies_no_data_term() -> None:
    frame = example_endpoints().to_frame()
    drawn = fit(part(D=frame["D"].max()), bootstrap=0)
    for result in drawn.fits.values():
        assert {"K", "c"} <= set(result.unidentified)
    with pytest.raises(FrontierError, match="not identified"):
        ce_gain(drawn, 1e21)


def test_one_scale_identifies_no_size_exponent() -> None:
    """One scale still holds two sizes 3 % apart and three sparsities: a is not fitted, and there is no frontier."""
    drawn = fit(part(scale="200M"), bootstrap=50)
    for result in drawn.fits.values():
        assert "a" in result.unidentified
    with pytest.raises(FrontierError, match="a not identified"):
        ce_gain(drawn, 1e21)


def test_two_cells_get_a_fit_but_no_interval() -> None:
    """Half of the resamples of two cells hold one of them only: the bootstrap is refused and says what to do."""
    drawn = fit(part(cell=["100M/85%", "1.6B/97%"]), bootstrap=200)
    assert drawn.bootstrap.status == "refused"
    assert drawn.draws is None
    assert "bootstrap_refused" in {note.code for note in drawn.all_notes}


def test_fewer_endpoints_than_parameters() -> None:
    """Five endpoints for six parameters: an error that names the remedy; with one pinned, a fit without residual."""
    frame = example_endpoints().by_arch()["smelt"].to_frame()
    few = frame[frame["cell"].isin(["100M/85%", "200M/95%", "600M/97%", "1.6B/85%", "1.6B/95%"])]
    few = few.groupby("cell").nth(0).assign(D=[2e10, 6e10, 3e10, 2e11, 1e11])
    with pytest.raises(FitError, match="5 endpoints for 6 parameters") as caught:
        fit(Endpoints.from_frame(few), bootstrap=0)
    assert "--pin" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 4


def condition(surface: Surface, columns: dict[str, NDArray[np.float64]]) -> float:
    loss = surface.loss(**columns)
    problem = make_problem(surface.law, columns, loss, np.ones(len(loss)), pins={})
    return float(
        condition_numbers(problem, problem.centred(surface.coef[None])[0], np.ones((1, len(loss))))[0]
    )


def test_condition_numbers_of_known_designs() -> None:
    """The survey's grid with its published surface: 47; a 4 x 3 Chinchilla grid with the re-fitted set: 27."""
    design = example_design(PAPER)
    rows = design["arch"] == "baseline"
    survey = {name: design[name][rows] for name in ("F", "S", "D")}
    assert condition(PAPER.surfaces["baseline"], survey) == pytest.approx(47, abs=0.5)
    epoch = load_paper("chinchilla").surfaces["epoch"]
    N, D = (x.ravel() for x in np.meshgrid([7e7, 4e8, 2e9, 1e10], [5e9, 5e10, 5e11]))
    assert condition(epoch, {"N": N, "D": D}) == pytest.approx(27, abs=1.0)


def test_fixed_tokens_per_parameter_get_no_interval() -> None:
    """D = 20 N leaves one combination of both terms free: condition about 1e7, and intervals are refused."""
    epoch = load_paper("chinchilla").surfaces["epoch"]
    N = np.geomspace(7e7, 1e10, 8)
    assert 1e6 < condition(epoch, {"N": N, "D": 20 * N}) < 1e9
    frame = {"cell": [f"c{i}" for i in range(8)], "N": N, "D": 20 * N, "loss": epoch.loss(N=N, D=20 * N)}
    drawn = fit(Endpoints.from_frame(frame), "chinchilla", bootstrap=100)
    (result,) = drawn.fits.values()
    assert result.intervals_refused
    assert drawn.bootstrap.status == "refused"
    assert {"ill_conditioned", "collinear"} <= {note.code for note in drawn.all_notes}


def test_noise_does_not_hide_a_collinear_design() -> None:
    """Fixed tokens per parameter with noise: the fit may leave the ridge, the design is refused all the same."""
    epoch = load_paper("chinchilla").surfaces["epoch"]
    N = np.repeat(np.geomspace(7e7, 1e10, 12), 2)
    spread = np.tile([1.0, 1.01], 12)  # tokens per parameter within one per cent
    noise = np.exp(0.003 * np.random.default_rng(8).standard_normal(24))
    frame = {
        "cell": [f"c{i // 2:02d}" for i in range(24)],
        "N": N,
        "D": 20 * N * spread,
        "loss": epoch.loss(N=N, D=20 * N * spread) * noise,
    }
    drawn = fit(Endpoints.from_frame(frame), "chinchilla", bootstrap=100)
    (result,) = drawn.fits.values()
    assert result.collinear == ("alpha", "beta")
    assert drawn.bootstrap.status == "refused"
    assert "cannot be told apart" in drawn.bootstrap.reason
