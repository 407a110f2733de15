"""Inputs that once gave a wrong or dishonest number, each with what must happen instead."""

from __future__ import annotations

import json

import numpy as np
import pytest

from smelt_scaling import Endpoints, ce_gain, example_endpoints, fit, predict
from smelt_scaling._json import dumps
from smelt_scaling.analyses.turning import turnover
from smelt_scaling.errors import FrontierError
from smelt_scaling.frontier import Frontier
from smelt_scaling.laws import LAWS, Surface
from smelt_scaling.papers import load_paper
from smelt_scaling.resampling import bootstrap_plan
from smelt_scaling.synth import simulate

RUNS = example_endpoints()


def relabelled(**columns):
    return Endpoints(columns=dict(RUNS.columns) | columns)


@pytest.mark.parametrize("labels", [1, 2, 4])
def test_few_labels_that_span_all_scales_get_no_interval(labels):
    """Every label holds every scale, so each resample identifies the law, and yet one label has no scatter at all."""
    study = fit(relabelled(cell=np.array([f"c{i % labels}" for i in range(144)])), bootstrap=200)
    assert study.bootstrap.status == "refused"
    assert ce_gain(study, 1e21)["gain_lo"].isna().all()


def test_a_step_in_the_data_ends_on_a_bound_and_stays_finite():
    """Losses that drop once, at the smallest D, want an infinite exponent: it stops where amplitudes are doubles."""
    N = np.repeat(np.geomspace(1e8, 3e9, 8), 4)
    D = np.tile([5e9, 5.5e9, 4e10, 1e11], 8)
    noise = np.exp(0.004 * np.random.default_rng(0).standard_normal(32))
    loss = (1.69 + 406.4 * N**-0.34 + 0.3 * (D < 5.2e9) + 0.01 * (D < 6e9)) * noise
    study = fit(
        Endpoints(
            columns={"arch": np.array(["c"] * 32), "N": N, "D": D, "cell": N.astype(str), "loss": loss}
        ),
        "chinchilla",
        bootstrap=100,
    )
    result = study["c"]
    assert "beta" in result.certificate.at_bounds
    assert np.isfinite(result.surface.coef).all()
    assert np.isfinite(study.draws["c"].surface.coef).all()
    json.loads(dumps(study.to_dict()))
    assert "at_bound" in {note.code for note in result.notes}


def test_a_third_architecture_does_not_change_the_resamples_of_a_pair():
    pair = {"a": np.array(list("uvwx")), "b": np.array(list("uvwy"))}
    alone = bootstrap_plan(pair, replicates=20, seed=3)
    third = bootstrap_plan(pair | {"c": np.array([f"z{i}" for i in range(30)])}, replicates=20, seed=3)
    assert (third.counts["c"].sum(axis=1) == 30).all()
    own = np.concatenate([third.counts["a"], third.counts["b"][:, -1:]], axis=1)
    assert (own.sum(axis=1) == 5).all()  # five labels of the pair, drawn five times, whatever the third has
    assert alone.paired
    assert third.paired


@pytest.mark.slow
def test_the_point_fit_does_not_stop_in_a_local_optimum():
    """A world of tripled noise in which the five best starts of the grid share one wrong optimum (found by review)."""
    paper = load_paper("smelt")
    design = RUNS.to_frame().drop(columns=["loss", "source"])
    for seed in range(6):
        noisy = simulate(
            paper.surfaces, design, sd={"baseline": 0.0174, "smelt": 0.0298}, cell_share=0.0, seed=seed
        )
        quick, thorough = fit(noisy, bootstrap=0), fit(noisy, bootstrap=0, starts="thorough")
        for arch in quick.archs:
            assert quick[arch].objective <= thorough[arch].objective * (1 + 1e-9), (seed, arch)


def test_a_gain_of_one_is_unreachable_and_no_budget_overflows():
    """A reference that hardly improves with compute: the multiplier is finite and beyond any budget."""
    law = LAWS["additive"]
    slow = Frontier(Surface(law=law, coef=[1.0, 2.0, 2.0, 1e-3, 1e-3]))
    fast = Frontier(Surface(law=law, coef=[1.0, 20.0, 20.0, 0.2, 0.2]))
    turn = turnover(fast, slow, None)
    assert turn["sparsity"] is None
    study = fit(RUNS, "additive", bootstrap=60, pins={"baseline": {"a": 1e-3}})
    table = ce_gain(study, [1e20, 1e24], target="smelt", reference="baseline")
    assert table.loc[table["unreachable"], "gain"].isna().all()
    assert (table["gain"].dropna() < 1).all()


def test_predict_refuses_sizes_beside_the_only_one_that_was_run():
    one_size = fit(RUNS.select(RUNS["scale"] == "600M"), bootstrap=0)
    near = predict(one_size, {"F": 4.2e9, "D": 1e11, "S": 0.947}, archs=("baseline",))
    assert np.isfinite(near["loss"]).all()
    with pytest.raises(FrontierError, match="no prediction"):
        predict(one_size, {"F": 4.2e10, "D": 1e11, "S": 0.947})


def test_one_tier_holds_at_its_own_sparsities_only():
    one_tier = fit(RUNS.select(RUNS.tiers == 1), bootstrap=0)
    assert len(ce_gain(one_tier, 1e21)) == 1
    with pytest.raises(FrontierError, match="not at 0.935"):
        ce_gain(one_tier, 1e21, sparsities=[0.935, 0.947])


def test_a_single_tier_beside_three_is_compared_at_the_common_one():
    mixed = fit(RUNS.select((RUNS.arch == "smelt") | (RUNS.tiers == 1)), bootstrap=0)
    assert ce_gain(mixed, 1e21)["sparsity"].tolist() == [pytest.approx(0.947, abs=0.002)]


def test_tiers_are_pooled_over_architectures():
    """Sparsities that chain into one tier when pooled free b for neither architecture."""
    own = {"baseline": np.array([2.0, 2.4]), "smelt": np.array([2.2, 2.6])}
    S = np.array([1 - np.exp(-own[a][i % 2]) for i, a in enumerate(RUNS.arch)])
    study = fit(relabelled(S=S), bootstrap=0)
    assert all("b" in fitted.unidentified for fitted in study.fits.values())


def test_a_feature_that_holds_S_and_F_is_identified_by_F():
    F = np.repeat(np.geomspace(1e9, 1e9 * 1.25**9, 10), 3)
    D = np.tile([1e10, 5e10, 2e11], 10)
    loss = 1.5 + 500 * (0.05 * F) ** -0.4 + 1e6 * D**-0.65
    runs = Endpoints(
        columns={
            "arch": np.array(["a"] * 30),
            "F": F,
            "S": np.full(30, 0.95),
            "D": D,
            "cell": F.astype(str),
            "loss": loss,
        }
    )
    result = fit(runs, "E + A*((1-S)*F)**-a + K*D**-c", bootstrap=0)["a"]
    assert not result.unidentified
    assert result.surface.coefficients["a"] == pytest.approx(0.4, abs=1e-6)


def test_jackknife_of_one_budget_does_not_depend_on_the_others():
    study = fit(RUNS, bootstrap=0)
    alone = ce_gain(study, 1e20, interval="jackknife-t")
    beside = ce_gain(study, [1e20, 1e29], interval="jackknife-t")
    assert beside["gain_lo"].iloc[:3].tolist() == alone["gain_lo"].tolist()


def test_no_sparsity_column_is_a_dense_table():
    rows = RUNS.to_frame().drop(columns=["S"])
    study = fit(Endpoints.from_frame(rows), bootstrap=0)
    assert "sparsity_absent" in {note.code for note in study.notes}
    assert ce_gain(study, 1e21)["sparsity"].tolist() == [0.0]


@pytest.mark.parametrize(
    ("law", "pins"),
    [
        ("E + A*F**-0.37 + K*D**-0.66", None),
        ("additive", {"a": 0.37, "c": 0.66}),
        ("additive", {"E": 1.4, "A": 1000.0, "K": 1.9e6, "a": 0.37, "c": 0.66}),
    ],
)
def test_laws_without_free_exponents_are_certified(law, pins):
    study = fit(RUNS, law, bootstrap=0, pins=pins)
    assert study.certified


def test_delta_auto_survives_noise_free_data():
    paper = load_paper("smelt")
    quiet = simulate(paper.surfaces, RUNS.to_frame().drop(columns=["loss", "source"]), sd=0.0)
    study = fit(quiet, bootstrap=0, delta="auto")
    assert study["smelt"].surface.coefficients["a"] == pytest.approx(0.3892, abs=1e-6)


def test_rows_of_weight_zero_leave_no_trace_but_a_note():
    rows = RUNS.to_frame()
    far = rows.iloc[[0]].assign(D=1e15, weight=0.0)
    import pandas as pd

    study = fit(Endpoints.from_frame(pd.concat([rows.assign(weight=1.0), far])), bootstrap=0)
    plain = fit(RUNS, bootstrap=0)
    assert study["baseline"].window == plain["baseline"].window
    assert study["baseline"].objective == plain["baseline"].objective
    assert "zero_weight" in {note.code for note in study.notes}


def test_unreachable_budget_is_the_edge_not_a_grid_point():
    """The reverse direction of the published surfaces ends at 2.74e28, 1.76e28 and 1.41e28 FLOPs."""
    paper = load_paper("smelt")
    base, smelt = (Frontier(paper.surfaces[name]) for name in ("baseline", "smelt"))
    for sparsity, edge in ((0.846, 2.74e28), (0.947, 1.76e28), (0.969, 1.41e28)):
        found = turnover(base, smelt, sparsity)["unreachable_from"]
        assert found == pytest.approx(edge, rel=3e-3)  # three printed digits
