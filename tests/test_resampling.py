"""Plans, pairing, degenerate resamples and interval ends."""

from __future__ import annotations

import numpy as np
import pytest

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.papers import load_paper
from smelt_scaling.papers.example import example_endpoints
from smelt_scaling.resampling import bootstrap_plan, jackknife_plan, jackknife_t_interval, percentile_interval
from smelt_scaling.study import fit


def test_draw_i_is_numpys_multinomial_of_its_own_child_seed():
    """Counts restated from the definition: Multinomial(U, 1/U) over sorted labels from a child seed per draw."""
    labels = {"a": np.array(["x", "y", "z", "z"]), "b": np.array(["w", "x"])}
    plan = bootstrap_plan(labels, replicates=5, seed=11)
    union = ["w", "x", "y", "z"]
    for i in range(5):
        rng = np.random.default_rng(np.random.SeedSequence(11, spawn_key=(i,)))
        counts = dict(zip(union, rng.multinomial(4, [0.25] * 4), strict=True))
        assert plan.counts["a"][i].tolist() == [counts["x"], counts["y"], counts["z"]]
        assert plan.counts["b"][i].tolist() == [counts["w"], counts["x"]]
    assert plan.paired


def test_draws_do_not_depend_on_how_many_there_are():
    labels = {"a": np.array(list("abcdefgh"))}
    few, many = (bootstrap_plan(labels, replicates=n, seed=1).counts["a"] for n in (10, 100))
    assert np.array_equal(few, many[:10])


def test_without_a_common_label_architectures_are_drawn_apart():
    plan = bootstrap_plan(
        {"a": np.array(["x", "y", "z"]), "b": np.array(["p", "q", "r"])}, replicates=50, seed=0
    )
    assert not plan.paired
    assert (plan.counts["a"].sum(axis=1) == 3).all()
    assert (plan.counts["b"].sum(axis=1) == 3).all()
    assert not np.array_equal(plan.counts["a"], plan.counts["b"])


def test_jackknife_leaves_each_label_of_the_union_out_once():
    plan = jackknife_plan({"a": np.array(["x", "y"]), "b": np.array(["y", "z"])})
    assert plan.counts["a"].tolist() == [[0, 1], [1, 0], [1, 1]]
    assert plan.counts["b"].tolist() == [[1, 1], [0, 1], [1, 0]]


def test_interval_ends_are_order_statistics_with_infinities_on_top():
    draws = np.concatenate([np.arange(1.0, 1990.0), np.full(11, np.inf)])  # 2000 draws
    rng = np.random.default_rng(0)
    lo, hi = percentile_interval(rng.permutation(draws), 0.95)
    assert (float(lo), float(hi)) == (50.0, 1951.0)
    lo, hi = percentile_interval(rng.permutation(np.concatenate([draws[:1940], np.full(60, np.inf)])), 0.95)
    assert (float(lo), float(hi)) == (50.0, np.inf)
    assert percentile_interval(np.arange(38.0), 0.95) is None  # k = floor(39 * .025) = 0
    assert percentile_interval(np.arange(39.0), 0.95) is not None


def test_jackknife_of_a_mean_is_students_interval():
    """For a mean the jackknife is the textbook t interval (SciPy's)."""
    from scipy.stats import t

    x = np.array([3.1, 2.7, 5.5, 4.0, 3.3, 4.4])
    left_out = (x.sum() - x) / (len(x) - 1)
    lo, hi = jackknife_t_interval(np.array(x.mean()), left_out, 0.9)
    expected = t.interval(0.9, len(x) - 1, loc=x.mean(), scale=x.std(ddof=1) / np.sqrt(len(x)))
    assert (float(lo), float(hi)) == pytest.approx(expected, rel=1e-12)
    assert jackknife_t_interval(np.array(1.0), np.array([1.0, np.inf]), 0.9) is None


@pytest.fixture(scope="module")
def small_study():
    return fit(example_endpoints(), bootstrap=128, seed=4)


def test_paired_architectures_share_their_counts(small_study):
    a, b = (small_study.draws[arch] for arch in small_study.archs)
    assert a.labels == b.labels
    assert np.array_equal(a.counts, b.counts)
    assert small_study.bootstrap.paired


def test_a_replicate_is_the_weighted_refit(small_study):
    """Replicate 3, refitted from scratch on rows repeated as often as their cell was drawn."""
    rows = small_study.endpoints.by_arch()["smelt"]
    draws = small_study.draws["smelt"]
    times = draws.counts[3][np.searchsorted(np.array(draws.labels), rows.cells()[0])]
    repeated = {name: np.repeat(values, times) for name, values in rows.columns.items()}
    again = fit(Endpoints(columns=repeated), bootstrap=0)["smelt"]
    assert again.objective == pytest.approx(draws.objective[3], rel=1e-9)
    np.testing.assert_allclose(
        again.surface.coef, draws.surface.coef[3], rtol=1e-4
    )  # 1e-9 in f is about 1e-5 here


def _few_cells(count):
    """The example cut down to some of its cells."""
    rows = example_endpoints()
    cells = np.unique(rows["cell"])[:: 12 // count][:count]
    return rows.select(np.isin(rows["cell"], cells))


def test_few_cells_refuse_the_bootstrap_and_keep_point_and_jackknife():
    """With 6 cells over 2 % of resamples keep at most two distinct ones: intervals are refused, not the fit."""
    from smelt_scaling.analyses import ce_gain, notes_of

    study = fit(_few_cells(6), bootstrap=400)
    assert study.bootstrap.status == "refused"
    assert study.draws is None
    assert study.summary().splitlines()[0].startswith("NO BOOTSTRAP INTERVALS")
    assert "--interval jackknife-t" in study.bootstrap.reason
    table = ce_gain(study, 1e21)
    assert table["gain"].notna().all()
    assert table["gain_lo"].isna().all()
    assert "no_interval" in {note.code for note in notes_of(table)}
    assert ce_gain(study, 1e21, interval="jackknife-t")["gain_lo"].notna().all()


def test_missing_a_size_tier_is_not_degenerate(small_study):
    """About one replicate in eight of a 4 x 3 grid lacks a size (12.5 %): kept, none is degenerate."""
    draws = small_study.draws["baseline"]
    sizes = np.array([label.split("/")[0] for label in draws.labels])
    present = np.array(
        [[draws.counts[r][sizes == s].sum() > 0 for s in np.unique(sizes)] for r in range(len(draws))]
    )
    missing = (~present.all(axis=1)).mean()
    assert 0.04 < missing < 0.22  # 4 (3/4)^12 = .127 less overlaps; binomial spread of 128 draws
    assert draws.degenerate.sum() == 0


def test_degenerate_draws_hold_the_lost_exponent():
    """One sparsity left in a resample: b stays at its full-data value, and the draw is flagged."""
    from smelt_scaling.fitting import FitSettings, fit_architecture
    from smelt_scaling.laws import get_law
    from smelt_scaling.resampling import refit

    rows = example_endpoints().by_arch()["baseline"]
    fitted = fit_architecture("baseline", rows, get_law("sparse-additive"), FitSettings(), n_cells=12)
    labels = tuple(np.unique(rows["cell"]).tolist())
    index = np.searchsorted(np.array(labels), rows["cell"])
    one_tier = np.array([3 * label.endswith("95%") for label in labels], dtype=np.int16)
    counts = np.stack([one_tier, np.ones(12, dtype=np.int16)])
    draws = refit(fitted, index, counts, labels, FitSettings())
    assert draws.degenerate.tolist() == [True, False]
    full = fitted.result.surface
    assert draws.surface["b"][0] == full["b"]
    assert draws.surface["a"][0] != full["a"]
    assert draws.certified.all()


def test_bootstrap_centres_on_the_published_truth():
    """On noise-free data every replicate is the truth, so both interval ends are the published gain."""
    from smelt_scaling.analyses import ce_gain
    from smelt_scaling.synth import simulate

    paper = load_paper("smelt")
    design = example_endpoints().to_frame().drop(columns=["loss", "source"])
    quiet = simulate(paper.surfaces, design, sd=0.0)
    study = fit(quiet, bootstrap=64)
    assert study.bootstrap.certified_share == 1.0
    row = ce_gain(study, 1e21, sparsities=0.846).iloc[0]
    for name in ("gain", "gain_lo", "gain_hi"):
        assert row[name] == pytest.approx(0.17996, abs=1e-5)  # published coefficients, five digits
