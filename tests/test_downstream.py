"""Downstream scores at equal loss: the curve, residuals by cells, wins; truth from SciPy, statsmodels and by hand."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import isotonic_regression, least_squares
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from smelt_scaling import downstream, example_endpoints, notes_of, read_scores, show_table
from smelt_scaling.analyses import gadre_forecast
from smelt_scaling.analyses.calibration import Scores, simulate_scores
from smelt_scaling.analyses.calibration.cells import clusters, flip_test, holm, wilson
from smelt_scaling.analyses.calibration.curve import calibrate
from smelt_scaling.analyses.calibration.sigmoid import Sigmoid, fit_sigmoid, refit_sigmoid
from smelt_scaling.analyses.calibration.wins import win_rows
from smelt_scaling.cli import run
from smelt_scaling.errors import DataError, UsageError

CORE = Sigmoid(floor=0.05, span=0.6, slope=4.5, midpoint=1.75, sign=1)
MMLU = Sigmoid(floor=0.25, span=0.45, slope=12.0, midpoint=1.72, sign=1)
RUNS = example_endpoints()
TABLE = simulate_scores(RUNS, {"core": CORE, "mmlu": MMLU}, sd=0.006, excess={"smelt": 0.006}, seed=1)
PAIR = {"target": "smelt", "reference": "baseline"}


@pytest.fixture(scope="module")
def scores() -> Scores:
    return Scores.from_frame(TABLE.assign(chance=TABLE["metric"].map({"core": 0.0, "mmlu": 0.25})))


@pytest.fixture(scope="module")
def found(scores: Scores) -> pd.DataFrame:
    return downstream(scores, **PAIR, bootstrap=60, level=0.9)


def endpoints_of(metric: str, arch: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = TABLE[(TABLE["metric"] == metric) & (TABLE["arch"] == arch)].sort_values(["cell", "D"])
    return rows["loss"].to_numpy(), rows["score"].to_numpy(), rows["cell"].to_numpy()


def sigmoid_of(theta: np.ndarray, x: np.ndarray, sign: int = 1) -> np.ndarray:
    """Write the formula out: floor + span / (1 + exp(sign * slope * (loss - midpoint)))."""
    floor, ln_span, ln_slope, midpoint = theta
    return floor + np.exp(ln_span) / (1 + np.exp(sign * np.exp(ln_slope) * (x - midpoint)))


def by_scipy(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray, sign: int = 1, slopes: tuple[float, ...] = (2.0, 6.0)
) -> tuple[float, np.ndarray]:
    """Return cost and parameters of SciPy's trust region from several starts, with the documented bounds."""
    wide, tall = np.ptp(x), np.ptp(y)
    lower = [-np.inf, np.log(0.3 * tall), np.log(0.2 / wide), x.min() - 2 * wide]
    upper = [np.inf, np.log(20 * tall), np.log(60 / wide), x.min() + 3 * wide]
    root = np.sqrt(weight)
    best = min(
        (
            least_squares(
                lambda t: root * (sigmoid_of(t, x, sign) - y),
                np.clip(
                    [y.min() - 0.1 * tall, np.log(1.2 * tall), np.log(slope / wide), x.min() + share * wide],
                    lower,
                    upper,
                ),
                bounds=(lower, upper),
                xtol=1e-14,
                ftol=1e-14,
                gtol=1e-14,
            )
            for share in (-0.5, 0.2)
            for slope in slopes
        ),
        key=lambda result: result.cost,
    )
    return 2 * best.cost, best.x


# -- the curve ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("metric", ["core", "mmlu"])
def test_the_fit_is_that_of_scipy_and_every_start_finds_it(metric: str, sign: int) -> None:
    x, y, _ = endpoints_of(metric, "baseline")
    y = sign * y
    fitted, agreeing = fit_sigmoid(x, y, sign)
    cost, theta = by_scipy(x, y, np.ones_like(x), sign)
    # two optimisers end where a step lowers the cost by about 1e-11 of it
    assert fitted.cost[0] == pytest.approx(cost, rel=1e-8)
    assert fitted.sigmoid.score(x)[0] == pytest.approx(sigmoid_of(theta, x, sign), abs=1e-5)
    assert agreeing >= 6
    assert fitted.converged[0]


def test_refits_of_resamples_are_fits_to_repeated_rows() -> None:
    x, y, cell = endpoints_of("core", "baseline")
    _, index = np.unique(cell, return_inverse=True)
    counts = np.random.default_rng(0).multinomial(12, np.full(12, 1 / 12), size=6)[:, index].astype(float)
    found = refit_sigmoid(x, y, 1, counts, fit_sigmoid(x, y, 1)[0].theta[0])
    assert found.converged.all()
    for cost, weight in zip(found.cost, counts, strict=True):
        repeated = np.repeat(np.arange(len(x)), weight.astype(int))
        # the bounds are those of all rows in one, of the repeated rows in the other: never above SciPy's
        assert cost <= by_scipy(x[repeated], y[repeated], np.ones(len(repeated)))[0] * (1 + 1e-6)


def test_resamples_that_creep_along_a_flat_direction_reach_their_optimum() -> None:
    """Scores of much shared noise: the ends of some curves are hardly determined."""
    table = simulate_scores(RUNS, {"core": CORE}, sd=0.02, cell_share=0.9, seed=2)
    rows = table[table["arch"] == "baseline"].sort_values(["cell", "D"])
    x, y = rows["loss"].to_numpy(), rows["score"].to_numpy()
    _, index = np.unique(rows["cell"].to_numpy(), return_inverse=True)
    counts = np.random.default_rng(2).multinomial(12, np.full(12, 1 / 12), size=60)[:, index].astype(float)
    found = refit_sigmoid(x, y, 1, counts, fit_sigmoid(x, y, 1)[0].theta[0])
    assert found.converged.all()
    for j in (4, 9, 16, 20, 27):  # which take more than 200
        # never above SciPy's trust region, which has the same bounds here
        assert found.cost[j] <= by_scipy(x, y, counts[j])[0] * (1 + 1e-6)


def test_the_curve_is_monotone_whatever_the_scores() -> None:
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(1.6, 2.6, 30))
    for sign in (1, -1):
        fitted, _ = fit_sigmoid(x, rng.uniform(size=30), sign)
        assert np.all(sign * np.diff(fitted.sigmoid.score(np.linspace(1, 4, 99))[0]) <= 1e-15)


def test_the_isotonic_ceiling_is_the_best_monotone_curve(found: pd.DataFrame) -> None:
    for row in found.attrs["calibration"]:
        x, y, _ = endpoints_of(row["metric"], "baseline")
        y = y[np.argsort(x)]
        left = np.sum((isotonic_regression(y, increasing=False).x - y) ** 2)
        assert row["r2_isotonic"] == pytest.approx(1 - left / np.sum((y - y.mean()) ** 2), rel=1e-12)
        assert row["r2"] <= row["r2_isotonic"]


def test_equal_losses_have_one_value_on_the_isotonic_curve() -> None:
    """By hand: losses 1, 1, 2, 3, 4, 5 with scores .8, .6 at 1 pool to .7, which leaves .02 of the variance."""
    x = np.array([1.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    y = np.array([0.8, 0.6, 0.5, 0.4, 0.3, 0.2])
    found = calibrate(x, y, np.arange(6).astype(str), sign=1, where="t", level=0.95)
    assert found.r2_isotonic == pytest.approx(1 - 0.02 / np.sum((y - y.mean()) ** 2), rel=1e-12)


def test_share_of_the_sigmoid_covered_and_profile_of_its_ends() -> None:
    x = np.linspace(1.4, 2.4, 60)
    truth = Sigmoid(floor=0.2, span=0.6, slope=8.0, midpoint=1.8, sign=1)
    y = truth.score(x) + 0.01 * np.random.default_rng(0).standard_normal(60)
    found = calibrate(x, y, np.arange(60).astype(str), sign=1, where="t", level=0.95)
    # of the truth: expit(8 * .4) - expit(-8 * .6) = .9608 - .0082
    assert found.covered == pytest.approx(0.9526, abs=0.02)
    for (lo, hi), true in ((found.floor_profile, 0.2), (found.ceiling_profile, 0.8)):
        assert lo < true < hi
    # at an end of the profile the F test is just significant: SciPy refits with the floor held there
    limit = found.fitted.cost[0] * (1 + stats.f.ppf(0.95, 1, 56) / 56)
    for end in found.floor_profile:
        held = least_squares(lambda t, end=end: sigmoid_of([end, *t], x) - y, [np.log(0.6), np.log(8), 1.8])
        # the crossing is interpolated on a grid whose steps are a third of the distance
        assert 2 * held.cost == pytest.approx(limit, rel=0.02)


def test_a_curve_without_an_end_says_so() -> None:
    """An exponential has no upper asymptote: nothing bounds it, a parameter is at its bound, little is covered."""
    frame = TABLE[TABLE["metric"] == "core"].assign(score=lambda f: 0.8 * np.exp(-3 * (f["loss"] - 1.6)))
    frame["score"] += 0.001 * np.random.default_rng(0).standard_normal(len(frame))
    table = downstream(Scores.from_frame(frame), **PAIR, bootstrap=0)
    (row,) = table.attrs["calibration"]
    assert row["ceiling_hi"] is None
    assert row["at_bounds"] == ["span"]
    assert row["covered"] < 0.5
    assert {"weak_asymptotes", "calibration_at_bound"} <= {note.code for note in notes_of(table)}


@pytest.mark.parametrize(("lower", "said"), [([], "do not fall"), (["core"], "do not rise")])
def test_scores_that_go_the_other_way_are_said(lower: list[str], said: str) -> None:
    """An error rate taken for an accuracy, and the reverse: the best monotone curve is a constant, R2 0."""
    core = TABLE[TABLE["metric"] == "core"]
    turned = core if lower else core.assign(score=1 - core["score"])
    table = downstream(Scores.from_frame(turned, lower_better=lower), **PAIR, bootstrap=0)
    assert table["r2"][0] == pytest.approx(0.0, abs=1e-6)
    (note,) = [note for note in notes_of(table) if note.code == "flat_calibration"]
    assert said in note.message
    assert "--lower-better" in note.message


def test_asymptotes_at_chance(scores: Scores) -> None:
    table = downstream(scores, **PAIR, metrics=["mmlu"], bootstrap=0, asymptotes="chance")
    (row,) = table.attrs["calibration"]
    assert (row["floor"], row["ceiling"]) == pytest.approx((0.25, 1.0), rel=1e-14)
    x, y, _ = endpoints_of("mmlu", "baseline")
    held = least_squares(
        lambda t: sigmoid_of([0.25, np.log(0.75), *t], x) - y, [np.log(6.0), 1.6], ftol=1e-14, xtol=1e-14
    )
    assert row["midpoint"] == pytest.approx(held.x[1], abs=1e-6)


# -- residuals by cells ------------------------------------------------------------------------------------------------


def test_residuals_and_tests_are_those_of_the_points(found: pd.DataFrame) -> None:
    """Cell means of the residuals, a paired t test on them, and Holm, with pandas, SciPy and statsmodels."""
    points = pd.DataFrame(found.attrs["points"])
    within = points[~points["outside"]]
    means = within.groupby(["metric", "scale", "cell", "arch"])["residual"].mean().unstack()
    raw = []
    for row in found.to_dict("records"):
        own = points[(points["metric"] == row["metric"]) & (points["arch"] == "smelt")]
        cells = means.loc[row["metric"]]
        if row["scale"] != "all":
            own, cells = own[own["scale"] == row["scale"]], cells.loc[[row["scale"]]]
        assert row["residual"] == pytest.approx(own["residual"].mean(), abs=1e-15)
        test = stats.ttest_rel(cells["smelt"], cells["baseline"])
        assert (row["p_cell"], row["n_cells"]) == (pytest.approx(test.pvalue, rel=1e-9), len(cells))
        ends = test.confidence_interval(0.9)
        assert (row["difference_lo"], row["difference_hi"]) == pytest.approx(ends, rel=1e-9)
        # three cells of a scale are too few to resample
        assert (row["draws"], pd.isna(row["residual_lo"])) == ((60, False) if len(cells) == 12 else (0, True))
        naive = stats.ttest_1samp(own["residual"], 0)
        assert row["p_naive"] == pytest.approx(naive.pvalue, rel=1e-9)
        interval = naive.confidence_interval(0.9)
        assert (row["residual_naive_lo"], row["residual_naive_hi"]) == pytest.approx(interval, rel=1e-9)
        raw.append(test.pvalue)
    for whole in (True, False):
        rows = (found["scale"] == "all") == whole
        expected = multipletests(np.array(raw)[rows], method="holm")[1]
        assert found.loc[rows, "p_holm"].tolist() == pytest.approx(expected.tolist(), rel=1e-9)


def test_cells_that_are_not_shared_are_two_samples(found: pd.DataFrame) -> None:
    renamed = TABLE.assign(cell=TABLE["cell"].where(TABLE["arch"] == "baseline", "own " + TABLE["cell"]))
    table = downstream(Scores.from_frame(renamed), **PAIR, bootstrap=0)
    points = pd.DataFrame(found.attrs["points"]).query("metric == 'core' and not outside")
    means = points.groupby(["cell", "arch"])["residual"].mean().unstack()
    test = stats.ttest_ind(means["smelt"], means["baseline"], equal_var=False)
    assert table.loc[0, "p_cell"] == pytest.approx(test.pvalue, rel=1e-9)
    ends = test.confidence_interval(0.95)
    assert table.loc[0, ["difference_lo", "difference_hi"]].tolist() == pytest.approx(list(ends), rel=1e-9)
    assert "unpaired" in {note.code for note in notes_of(table)}
    assert table.attrs["wins"][0]["n"] == 0
    assert table.attrs["wins"][0]["rate"] is None


def test_the_trend_is_a_regression_of_cells_on_scales(found: pd.DataFrame) -> None:
    points = pd.DataFrame(found.attrs["points"]).query("metric == 'core' and not outside")
    means = points.groupby(["scale", "cell", "arch"])["residual"].mean().unstack()
    rank = means.index.get_level_values("scale").map({"100M": 0, "200M": 1, "600M": 2, "1.6B": 3})
    line = stats.linregress(rank, means["smelt"] - means["baseline"])
    assert found.loc[0, ["trend", "p_trend"]].tolist() == pytest.approx([line.slope, line.pvalue], rel=1e-9)


def test_the_interval_calibrates_anew_in_every_resample(found: pd.DataFrame) -> None:
    """Every replicate by hand: its seeded counts, a fit by SciPy, the weighted mean residual; then order statistics."""
    x, y, cell = endpoints_of("core", "baseline")
    x_target, y_target, cell_target = endpoints_of("core", "smelt")
    labels = np.unique(cell)
    means = []
    for i in range(60):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0, spawn_key=(i,))))
        count = dict(zip(labels, rng.multinomial(12, np.full(12, 1 / 12)), strict=True))
        weight, weight_target = (np.array([count[c] for c in cells], float) for cells in (cell, cell_target))
        theta = by_scipy(x, y, weight, slopes=(2.0,))[1]
        means.append(np.average(y_target - sigmoid_of(theta, x_target), weights=weight_target))
    ordered = np.sort(means)
    # k = floor(61 * .05) = 3; two optimisers agree on fitted values to about 1e-6
    assert found.loc[0, ["residual_lo", "residual_hi"]].tolist() == pytest.approx(
        [ordered[2], ordered[-3]], abs=2e-6
    )
    assert found.loc[0, "draws"] == 60


@pytest.mark.parametrize("arch", ["baseline", "smelt"])
def test_a_metric_of_few_cells_has_no_interval_and_says_so(arch: str) -> None:
    """Twelve cells have core; of one architecture two alone have mmlu, of which a resample often holds one or none."""
    few = sorted(TABLE["cell"].unique())[:2]
    kept = (TABLE["metric"] == "core") | (TABLE["arch"] != arch) | TABLE["cell"].isin(few)
    table = downstream(Scores.from_frame(TABLE[kept]), **PAIR, bootstrap=60)
    rows = table[table["scale"] == "all"].set_index("metric")
    assert rows["draws"].to_dict() == {"core": 60, "mmlu": 0}
    assert rows["residual_lo"].isna().to_dict() == {"core": False, "mmlu": True}
    assert table.attrs["calibration"][1]["converged_share"] is None
    (note,) = [note for note in notes_of(table) if note.code == "few_cells"]
    assert note.message.startswith("mmlu: 2 cells: no intervals")


def test_differences_of_cells_that_are_rounding_have_no_test() -> None:
    """Scores without noise, an excess of .01: every cell differs by it, to the last bits."""
    exact = simulate_scores(RUNS, {"core": CORE}, sd=0.0, excess={"smelt": 0.01})
    row = downstream(Scores.from_frame(exact), **PAIR, bootstrap=0).iloc[0]
    assert row["difference"] == pytest.approx(0.01, abs=1e-9)
    assert pd.isna(row["p_cell"])


def test_rows_outside_the_reference_are_counted_and_averaged_apart(found: pd.DataFrame) -> None:
    low, high = endpoints_of("core", "baseline")[0].min(), endpoints_of("core", "baseline")[0].max()
    points = pd.DataFrame(found.attrs["points"])
    own = points[(points["metric"] == "core") & (points["arch"] == "smelt")]
    beyond = ~own["loss"].between(low, high)
    row = found.iloc[0]
    assert row["n_outside"] == beyond.sum() == 2
    assert row["residual_outside"] == pytest.approx(own.loc[beyond, "residual"].mean(), rel=1e-12)
    assert row["residual_inside"] == pytest.approx(own.loc[~beyond, "residual"].mean(), rel=1e-12)
    assert row["support"] == [
        {"code": "out_loss", "arch": "baseline", "factor": pytest.approx(low / own["loss"].min())}
    ]


def test_intraclass_correlation_is_that_of_the_analysis_of_variance() -> None:
    """Balanced cells of 6: icc = (F - 1) / (F + 5) with SciPy's F."""
    values = np.random.default_rng(0).standard_normal((16, 6)) + np.random.default_rng(1).normal(size=(16, 1))
    F = stats.f_oneway(*values).statistic
    found = clusters(values.ravel(), np.repeat(np.arange(16), 6).astype(str))
    assert found.icc == pytest.approx((F - 1) / (F + 5), rel=1e-12)
    assert found.design_effect == pytest.approx(1 + 5 * (F - 1) / (F + 5), rel=1e-12)


def test_holm_leaves_what_is_unknown_out_of_the_family() -> None:
    assert holm(np.array([0.01, np.nan, 0.02])).tolist() == pytest.approx([0.02, np.nan, 0.02], nan_ok=True)


def test_the_excess_is_found_and_its_absence_is_not(scores: Scores) -> None:
    """The truth is an excess of .006 in the target alone."""
    rows = downstream(scores, **PAIR, bootstrap=0)
    whole = rows[rows["scale"] == "all"]
    assert whole["residual"].tolist() == pytest.approx([0.006, 0.006], abs=0.003)  # sd of a mean: about .0013
    assert (whole["p_holm"] < 0.05).all()
    nothing = Scores.from_frame(simulate_scores(RUNS, {"core": CORE}, sd=0.006, seed=5))
    assert downstream(nothing, **PAIR, bootstrap=0)["p_cell"][0] > 0.05


@pytest.mark.slow
def test_where_nothing_is_cells_keep_the_level_and_endpoints_do_not() -> None:
    """The claim of the page of benchmarks, on 400 worlds of its 1000: 95 % of nominal tests lie below 7.2 %."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from benchmarks.downstream_null import rejections
    from benchmarks.recorder import recorded

    found = rejections(400, 0.5, seed=7)
    assert found["cells"] <= 0.075
    assert found["naive"] > 0.2
    assert found["sign"] > 0.1
    page = {row["share"]: row for row in recorded("downstream_null")["values"]["rows"]}
    assert page[0.5]["cells"] <= 0.07
    assert page[0.5]["naive"] > 0.2


@pytest.mark.slow
def test_endpoints_beyond_the_reference_are_left_out_of_the_test() -> None:
    """Losses 0.2 lower, so that 38 % lie outside: the error of the curve there is common to all cells."""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from benchmarks.downstream_null import rejections

    found = rejections(300, 0.5, seed=3, lower=0.2)
    assert found["every"] > 0.2
    assert found["cells"] < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300) + 0.02  # 5 %, and what the curve still errs


# -- directions, units, order ------------------------------------------------------------------------------------------


def test_an_error_rate_of_which_less_is_better_has_the_same_residuals(scores: Scores) -> None:
    plain = downstream(scores, **PAIR, bootstrap=40)
    mirrored = TABLE.assign(score=1 - TABLE["score"])
    other = downstream(
        Scores.from_frame(mirrored, lower_better=["core", "mmlu"]), **PAIR, bootstrap=40, level=0.95
    )
    for name in ("residual", "residual_lo", "p_cell", "r2", "r2_isotonic"):
        assert other[name].tolist() == pytest.approx(plain[name].tolist(), rel=1e-5, nan_ok=True)
    assert [row["wins"] for row in other.attrs["wins"] if row["pairs"] == "all"] == [
        row["wins"] for row in plain.attrs["wins"] if row["pairs"] == "all"
    ]


def test_a_perplexity_is_calibrated_on_its_logarithm() -> None:
    """ln ppl = 4 - score in another unit, and less of it is better: the residuals are those of the score."""
    core = TABLE[TABLE["metric"] == "core"]
    plain = downstream(Scores.from_frame(core), **PAIR, bootstrap=0)
    ppl = Scores.from_frame(core.assign(score=np.exp(4 - core["score"])), units={"core": "ppl"})
    assert ppl.lower_better == {"core"}
    assert downstream(ppl, **PAIR, bootstrap=0)["residual"].tolist() == pytest.approx(
        plain["residual"].tolist(), abs=1e-6
    )


def test_percent_is_a_unit_and_no_other_result(scores: Scores) -> None:
    percent = Scores.from_frame(TABLE.assign(score=100 * TABLE["score"]), units={"score": "percent"})
    assert percent.score == pytest.approx(scores.score, rel=1e-14)


def test_a_metric_that_gets_worse_with_training_is_named() -> None:
    """An error rate without its direction: the rank correlation is SciPy's, and the option that mends it is said."""
    worse = TABLE[TABLE["metric"] == "core"].assign(metric="err", score=lambda f: 1 - f["score"])
    own = worse[worse["arch"] == "baseline"]
    rho = stats.spearmanr(own["loss"], own["score"]).statistic
    (note,) = [
        note
        for note in notes_of(downstream(read_scores(worse), **PAIR, bootstrap=0))
        if note.code == "inverse_scores"
    ]
    assert f"rise with the loss (rank correlation {rho:.2f})" in note.message
    assert "add --lower-better err" in note.message
    for table, lower in ((worse, ("err",)), (TABLE, ())):
        fine = downstream(read_scores(table, lower_better=lower), **PAIR, bootstrap=0)
        assert "inverse_scores" not in {note.code for note in notes_of(fine)}
    wrong = downstream(read_scores(TABLE, lower_better=["core"]), **PAIR, metrics="core", bootstrap=0)
    assert any("leave it out of --lower-better core" in note.message for note in notes_of(wrong))


def test_percent_of_what_are_fractions_is_refused() -> None:
    """Residuals would be a hundredth of themselves; of one metric in percent beside others, nothing is refused."""
    with pytest.raises(
        DataError, match=f"no row in percent above {TABLE['score'].max():.4g}: these are fractions"
    ):
        read_scores(TABLE, units={"score": "percent"})
    mixed = TABLE.assign(score=TABLE["score"] * np.where(TABLE["metric"] == "core", 100, 1))
    np.testing.assert_allclose(  # rounding
        read_scores(mixed, units={"core": "percent"}).score, read_scores(TABLE).score, rtol=1e-12
    )


def test_a_frame_is_read_like_its_file(tmp_path: Path) -> None:
    TABLE.to_csv(tmp_path / "scores.csv", index=False)
    one, other = (
        downstream(read_scores(table), **PAIR, metrics="core", bootstrap=0)
        for table in (TABLE, tmp_path / "scores.csv")
    )
    pd.testing.assert_frame_equal(one, other)
    with pytest.raises(UsageError, match=r"scores of type DataFrame: .*read_scores\(path or frame\)"):
        downstream(TABLE)  # type: ignore[arg-type]


def test_asymptotes_that_are_held_are_not_free(scores: Scores) -> None:
    assert "any below" not in show_table(downstream(scores, **PAIR, asymptotes="chance", bootstrap=0))
    assert "held" in show_table(downstream(scores, **PAIR, asymptotes="chance", bootstrap=0))
    assert "held" not in show_table(downstream(scores, **PAIR, bootstrap=0))


def test_too_few_resamples_for_an_interval_are_said(scores: Scores) -> None:
    """The end of a 95 % interval is the 2.5 % order statistic: 39 resamples have one, 38 have none."""
    said = [
        {note.code for note in notes_of(downstream(scores, **PAIR, metrics="core", bootstrap=n))}
        for n in (38, 39, 0)
    ]
    assert ["few_draws" in codes for codes in said] == [True, False, False]


def test_progress_counts_metrics(scores: Scores) -> None:
    seen: list[tuple[int, int]] = []
    downstream(scores, **PAIR, bootstrap=0, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 2), (1, 2), (2, 2)]


def test_messages_about_scores_name_rows_columns_and_options() -> None:
    with pytest.raises(DataError, match=r"no column metric: .*\(columns: arch, task, loss\)"):
        read_scores(pd.DataFrame({"arch": ["a"], "task": ["t"], "loss": [2.0]}))
    with pytest.raises(UsageError, match="no metric err, which --lower-better names; choose from core, mmlu"):
        read_scores(TABLE, lower_better=["err"])
    with pytest.raises(UsageError, match="no metric err, which --unit names"):
        read_scores(TABLE, units={"err": "percent"})
    with pytest.raises(DataError, match="--unit core=number \\(ppl of a perplexity\\)"):
        read_scores(TABLE.assign(score=20.0))
    with pytest.raises(
        DataError, match=r"rows 1 and 289 hold .*\), one of 3 such pairs: an endpoint"
    ):  # 288 rows
        read_scores(pd.concat([TABLE, TABLE.iloc[:3]]))
    blank = TABLE.reset_index(drop=True)
    blank.loc[[4, 9], "score"] = np.nan
    (note,) = [note for note in read_scores(blank).notes if note.code == "missing_scores"]
    assert "column score, 2 rows (first: 5) without a score" in note.message


def test_results_do_not_depend_on_the_order_of_the_rows(found: pd.DataFrame) -> None:
    shuffled = TABLE.sample(frac=1, random_state=0)
    other = downstream(Scores.from_frame(shuffled), **PAIR, bootstrap=60, level=0.9)
    # the same bytes: sums are taken in one order
    assert other.to_json() == found.to_json()
    for name in ("calibration", "points", "curve"):
        assert json.dumps(other.attrs[name]) == json.dumps(found.attrs[name])


# -- wins --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wins", "n", "published", "p"),
    [
        (96, 96, (0.962, 1.0), 2.5e-29),
        (83, 96, (0.782, 0.919), 1.2e-13),
        (29, 30, (0.833, 0.994), 5.8e-8),
    ],
)
def test_published_win_counts(wins: int, n: int, published: tuple[float, float], p: float) -> None:
    """Intervals and p-values of the counts as published, with statsmodels beside."""
    ends = wilson(wins / n, n, 0.95)
    assert [round(end, 3) for end in ends] == list(published)
    assert ends == pytest.approx(proportion_confint(wins, n, method="wilson"), rel=1e-12)
    cells = n // 6
    frame = pd.DataFrame(
        [
            {
                "arch": arch,
                "metric": "core",
                "cell": f"c{i % cells}",
                "D": 1e10 + 1e9 * (i // cells),
                "loss": 2.0,
                "score": 0.5 + 0.1 * (arch == "ours") * (1 if i < wins else -1),
            }
            for arch in ("base", "ours")
            for i in range(n)
        ]
    )
    ((row,), _) = win_rows(Scores.from_frame(frame), "ours", "base", "core", margin=0.1, level=0.95, seed=0)
    assert (row["wins"], row["ties"], row["n"], row["n_cells"]) == (wins, 0, n, cells)
    assert (row["rate_naive_lo"], row["rate_naive_hi"]) == pytest.approx(ends, rel=1e-12)
    assert row["p_naive"] == pytest.approx(p, rel=0.02)  # two digits are published
    assert row["rate_lo"] <= row["rate_naive_lo"]
    assert row["p_flip"] >= 2.0 ** (1 - cells) * (1 - 1e-12)
    if wins == n:  # cells alike in everything count as one pair each
        assert row["design_effect"] == 6
        assert (row["rate_lo"], row["rate_hi"]) == pytest.approx(wilson(1.0, cells, 0.95))


def test_ties_restrictions_and_repeats_by_hand() -> None:
    """Six pairs in three cells; chance .25, margin .1: the reference is above in 4 pairs, the mean of both in 5."""
    pairs = [("x", 0.50, 0.60), ("x", 0.40, 0.40), ("y", 0.36, 0.30), ("y", 0.30, 0.45), ("z", 0.26, 0.27)]
    rows = [
        {
            "arch": arch,
            "metric": "m",
            "cell": cell,
            "D": 1e10 * (i + 1),
            "loss": 2,
            "score": score,
            "run": "r",
        }
        for i, (cell, base, ours) in enumerate(pairs)
        for arch, score in (("base", base), ("ours", ours))
    ]
    # a repeat of the last endpoint of ours: the mean of .50 and .70 is what is compared
    rows += [
        {"arch": arch, "metric": "m", "cell": "z", "D": 9e10, "loss": 2, "score": score, "run": name}
        for arch, score, name in (("base", 0.40, "r"), ("ours", 0.50, "r"), ("ours", 0.70, "s"))
    ]
    scores = Scores.from_frame(pd.DataFrame(rows).assign(chance=0.25))
    (every, above, mean), averaged = win_rows(scores, "ours", "base", "m", margin=0.1, level=0.95, seed=0)
    assert averaged == 1
    assert [every[k] for k in ("wins", "ties", "losses", "n")] == [4, 1, 1, 6]
    assert every["rate"] == pytest.approx(4.5 / 6)
    assert every["p_naive"] == pytest.approx(12 / 32)  # 4 or more, or 1 or fewer, of 5
    assert [above[k] for k in ("wins", "ties", "losses", "n")] == [2, 1, 1, 4]
    assert [mean[k] for k in ("wins", "ties", "losses", "n")] == [3, 1, 0, 4]
    differences = [0.05, 0.045, 0.105]  # means of the cells
    assert every["p_flip"] == pytest.approx(
        stats.permutation_test(
            (np.array(differences),), np.mean, permutation_type="samples", n_resamples=np.inf
        ).pvalue
    )


def test_sign_flips_are_those_of_scipy_and_sampled_beyond_sixteen_cells() -> None:
    values = np.random.default_rng(4).standard_normal(10) + 0.5
    expected = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert flip_test(values) == pytest.approx(expected.pvalue, abs=1e-12)
    many = np.random.default_rng(4).standard_normal(40) + 0.3
    # t and sign flips agree on 40 normal values; the sampled share has a standard error of about .001
    assert flip_test(many) == pytest.approx(stats.ttest_1samp(many, 0).pvalue, abs=0.01)
    assert flip_test(many) == flip_test(many)


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(score=100 * f["score"]), r"in \(1, 100\].*add --unit score=percent"),
        (lambda f: f.assign(score=1e4 * f["score"]), r"--unit core=ppl for a perplexity"),
        (lambda f: f.drop(columns="metric").assign(member="m"), "no column metric.*--map metric=member"),
        (lambda f: pd.concat([f, f.iloc[[3]]]), "rows 4 and 289 hold one score each of the same endpoint"),
        (lambda f: f.assign(loss=f["loss"] - 2), "column loss, .* not > 0 and finite"),
        (lambda f: f.assign(arch=""), "column arch, 288 rows .* missing"),
        (lambda f: f.assign(chance=np.arange(len(f)) % 2 / 4), "guessing has one score per metric"),
        (lambda f: f.assign(score="many"), "not a number"),
        (lambda f: f.iloc[:0], "no row"),
    ],
)  # fmt: skip
def test_a_bad_table_is_one_line(change, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Scores.from_frame(change(TABLE), source="scores.csv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(score=f["score"].where(f["metric"] != "core", 0.5)), "all 72 scores are 0.5"),
        (
            lambda f: f[(f["metric"] != "core") | (f["arch"] != "smelt")],
            "metric core: scores of baseline only: .*add those of smelt, or leave it out with --exclude-metric",
        ),
        (lambda f: f[f["loss"].isin(f["loss"].unique()[:4]) | (f["arch"] == "smelt")], "4 distinct losses"),
        (lambda f: f.assign(tokenizer=f["arch"]), "column tokenizer differs: smelt for smelt"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_one_line(change, message: str) -> None:
    with pytest.raises(DataError, match=message):
        downstream(Scores.from_frame(change(TABLE), source="scores.csv"), **PAIR, bootstrap=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["arc"]}, "metric 'arc' is not there"),
        ({"exclude": ["core", "mmlu"]}, "no metric is left"),
        ({"margin": 10}, "a fraction in"),
        ({"level": 95}, "between 0 and 1"),
        ({"bootstrap": -1}, "number of resamples"),
        ({"asymptotes": "half"}, "choose from free, chance"),
        ({"target": "nobody"}, "'nobody' is not there"),
    ],
)
def test_a_wrong_option_is_a_usage_error(scores: Scores, options, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        downstream(scores, **{**PAIR, **options})


def test_chance_is_needed_to_hold_the_ends_there() -> None:
    with pytest.raises(DataError, match="no chance to hold the lower end at"):
        downstream(Scores.from_frame(TABLE), **PAIR, bootstrap=0, asymptotes="chance")


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_is_the_library_call(tmp_path, monkeypatch, capsys, scores: Scores) -> None:
    monkeypatch.chdir(tmp_path)
    TABLE.rename(columns={"metric": "member", "score": "value"}).to_csv("scores.csv", index=False)
    options = ["--map", "metric=member,score=value", "--reference", "baseline", "--bootstrap", "60"]
    assert run(["downstream", "scores.csv", *options, "--format", "json", "-o", "out"]) == 0
    record = json.loads(capsys.readouterr().out)
    read = read_scores("scores.csv", mapping={"metric": "member", "score": "value"})
    table = downstream(read, reference="baseline", bootstrap=60)
    for name in ("residual_lo", "difference_lo"):
        found = table[name].astype(object)
        assert [row[name] for row in record["rows"]] == found.where(found.notna(), None).tolist()
    assert record["wins"] == table.attrs["wins"]
    assert len(record["points"]) == 288
    assert len(record["curve"]) == 2 * 61
    saved = json.loads((tmp_path / "out/downstream.json").read_text())
    assert {k: v for k, v in saved.items() if k != "provenance"} == {
        k: v for k, v in record.items() if k != "provenance"
    }
    assert len(pd.read_parquet("out/downstream.parquet")) == len(table)
    assert run(["downstream", "scores.csv", *options, "--strict"]) == 5
    assert "lie outside the runs" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["table", "md", "latex", "csv"])
def test_every_format(found: pd.DataFrame, form: str) -> None:
    text = show_table(found, form)
    assert "core" in text
    assert all(len(line) <= 80 for line in text.splitlines()) or form != "table"


# -- real data ---------------------------------------------------------------------------------------------------------

SUBSET = [
    "bigbench_operators",
    "pubmed_qa_labeled",
    "hellaswag_zeroshot",
    "boolq",
    "arc_easy",
    "coqa",
    "bigbench_dyck_languages",
    "lambada_openai",
    "bigbench_novel_concepts",
    "winograd",
    "bigbench_cs_algorithms",
    "commonsense_qa",
    "bigbench_qa_wikidata",
    "hellaswag",
    "copa",
    "squad",
    "piqa",
]
SMALL = ("d=96_l=8_h=4", "d=512_l=8_h=4", "d=576_l=24_h=8", "d=1024_l=24_h=8")


def gadre(folder: Path) -> pd.DataFrame:
    """Return the runs with their loss on C4 and the average error of the published subset of 17 tasks."""
    runs = pd.read_csv(folder / "sets/gadre_endpoints.csv")
    tasks = pd.read_parquet(folder / "sets/gadre_downstream_long.parquet")
    error = tasks[tasks["task"].isin(SUBSET)].groupby("run_id")["err"].mean()
    return runs.assign(loss=runs["loss_c4_val"], error=runs["run_id"].map(error))


def test_published_forecasts_of_overtrained_models(real_data: Path) -> None:
    """Relative errors as printed by the authors' notebook: loss .7103 and .7320 %, error 3.6365 and .0464 %."""
    runs = gadre(real_data)
    runs = runs[runs["train_dataset"] == "rpj"]
    one, small = runs["cc_mult"] == 1, runs["model"].isin(SMALL)
    roles = {
        "fit": (small & one) | ((runs["model"] == SMALL[0]) & (runs["cc_mult"] == 16)),
        "error": (runs["model"] == "open_lm_1b") & one,
        "predict": ((runs["model"] == "open_lm_1b") & (runs["cc_mult"] == 32))
        | ((runs["model"] == "open_lm_7b") & one),
    }
    runs = runs.assign(role=np.select(list(roles.values()), list(roles), "")).query("role != ''")
    found = gadre_forecast(runs).set_index("model")
    loss, error = (100 * found[f"{name}_relative_error"] for name in ("loss", "error"))
    assert [f"{loss[m]:.4f} {error[m]:.4f}" for m in ("open_lm_1b", "open_lm_7b")] == [
        "0.7103 3.6365",
        "0.7320 0.0464",
    ]
    law = found.attrs["loss_law"]
    # the digits that the authors give
    assert [round(law[name], 3) for name in ("alpha", "beta")] == [166.211, 366.687]
    assert (round(law["exponent"], 6), round(law["floor"], 6)) == (-0.272851, 1.836648)


def test_real_scores_follow_the_loss_whatever_the_training_set(real_data: Path) -> None:
    """Runs on C4 and on RedPajama, 17 tasks averaged: one curve explains the reference, monotone at best a bit more."""
    runs = gadre(real_data)
    runs = runs[runs["model"].isin(SMALL)]
    table = runs.assign(
        arch=runs["train_dataset"], scale=runs["model"], metric="subset", score=1 - runs["error"]
    )
    scores = Scores.from_frame(table[["arch", "scale", "N", "D", "loss", "metric", "score"]])
    found = downstream(scores, target="rw_original", reference="rpj", bootstrap=0)
    row = found.iloc[0]
    assert 0.95 < row["r2"] < row["r2_isotonic"] < 1
    x, y = (runs.loc[runs["train_dataset"] == "rpj", name].to_numpy() for name in ("loss", "error"))
    cost, _ = by_scipy(x, 1 - y, np.ones_like(x))
    assert row["r2"] == pytest.approx(1 - cost / np.sum((y - y.mean()) ** 2), abs=1e-6)
    assert found["scale"].tolist() == ["all", *SMALL]


def test_harness_results_become_a_table_of_scores(real_data: Path, tmp_path: Path, monkeypatch) -> None:
    """Three Pythia models at their last step, 65 tasks each; the values are read off the files."""
    monkeypatch.chdir(tmp_path)
    names = [("small", "70m", 7e7), ("small", "410m", 4.1e8), ("large", "1.4b", 1.4e9)]
    pd.DataFrame(
        [
            {"run": f"EleutherAI/pythia-v1.1-{scale}", "arch": arch, "scale": scale, "N": n}
            for arch, scale, n in names
        ]
    ).assign(tokens_per_step=2097152).to_csv("runs.csv", index=False)
    folder = str(real_data / "formats/lm_eval_v0_3")
    options = ["--map", "loss=lambada_openai/ppl", "--unit", "loss=ppl", "--long", "tasks=*/acc"]
    with contextlib.redirect_stderr(io.StringIO()):
        assert run(["endpoints", folder, *options, "--runs", "runs.csv", "-o", "ends.csv"]) == 0
    scores = read_scores("ends.tasks.csv", mapping={"metric": "member", "score": "value"})
    assert (len(scores), len(scores.metrics), scores.unit) == (195, 65, "scale")
    assert scores.scales == ("70m", "410m", "1.4b")
    at = (scores.metric == "arc_easy") & (scores.scale == "70m")
    assert scores.score[at].tolist() == [0.37373737373737376]
    assert scores.loss[at].tolist() == pytest.approx([np.log(142.42891015470678)], rel=1e-12)
    with pytest.raises(DataError, match="2 distinct losses: a curve of four parameters needs 5 or more"):
        downstream(scores, target="large", reference="small", metrics=["arc_easy"])
