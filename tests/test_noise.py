"""The noise of a study: variance components, tests and covariances against other libraries, formulas and truths."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from smelt_scaling import Endpoints, UsageError, example_endpoints, fit, load_paper, load_study
from smelt_scaling.analyses.anova import analysis_of_variance
from smelt_scaling.analyses.diagnostics import (
    cluster_covariance,
    noise_anatomy,
    refitted,
)
from smelt_scaling.analyses.diagnostics.noise_findings import noise_anatomy_findings
from smelt_scaling.analyses.diagnostics.noise_tests import neighbours, spread_rows
from smelt_scaling.analyses.diagnostics.shared_noise import pair_row
from smelt_scaling.analyses.linear_problem import linearised
from smelt_scaling.analyses.variance import variance_components
from smelt_scaling.reporting.diagnostics.noise import noise_anatomy_grids
from smelt_scaling.reporting.document import Document
from smelt_scaling.reporting.text import to_text
from smelt_scaling.synth import simulate

RUNS = example_endpoints()
SURFACES = load_paper("smelt").surfaces


@pytest.fixture(scope="module")
def study():
    return fit(RUNS, bootstrap=0)


@pytest.fixture(scope="module")
def anatomy(study):
    return noise_anatomy(study)


def data_of(model):
    return model.residual, model.basis, model.cell, model.weight


def uneven(seed=0, rows=61):
    """Return a regression with cells of unequal size and unequal weights."""
    rng = np.random.default_rng(seed)
    cell = np.sort(rng.integers(0, 9, rows))
    weight = rng.uniform(0.5, 2.0, rows)
    X = np.column_stack([np.ones(rows), rng.standard_normal((rows, 2))])
    y = rng.standard_normal(9)[cell] + rng.standard_normal(rows) / np.sqrt(weight)
    return y, X, cell, weight


def whitened(X, weight):
    return np.linalg.qr(np.sqrt(weight)[:, None] * X)[0]


# -- variance components -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["baseline", "smelt"])
@pytest.mark.parametrize("reml", [True, False])
def test_components_are_those_of_a_mixed_model(study, arch, reml):
    """statsmodels' optimiser stops within about 1e-5 of the optimum on data with clear cell effects."""
    model = linearised(study, arch)
    found = variance_components(*data_of(model), reml=reml)
    scale = model.residual.std()
    other = sm.MixedLM(model.residual / scale, model.jacobian, groups=model.cell).fit(reml=reml)
    assert other.converged
    assert found.sd_between == pytest.approx(scale * np.sqrt(other.cov_re[0, 0]), rel=1e-4)
    assert found.sd_within == pytest.approx(scale * np.sqrt(other.scale), rel=1e-4)
    effects = np.array([scale * other.random_effects[cell].iloc[0] for cell in range(12)])
    np.testing.assert_allclose(found.effects, effects, atol=1e-4 * scale)


def test_components_of_uneven_weighted_cells_maximise_the_dense_likelihood():
    """A normal density with the full covariance matrix, maximised by Nelder and Mead; xatol 1e-9 of ln(sd)."""
    y, X, cell, weight = uneven()
    Z = (cell[:, None] == np.arange(9)).astype(float)

    def negative(v, reml):
        V = np.exp(2 * v[0]) * Z @ Z.T + np.diag(np.exp(2 * v[1]) / weight)
        inner = X.T @ np.linalg.solve(V, X)
        rest = y - X @ np.linalg.solve(inner, X.T @ np.linalg.solve(V, y))
        density = multivariate_normal(np.zeros(len(y)), V).logpdf(rest)
        return -density + (0.5 * np.linalg.slogdet(inner)[1] if reml else 0.0)

    for reml in (True, False):
        best = minimize(
            negative,
            [0.0, 0.0],
            args=(reml,),
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000},
        )
        found = variance_components(y, whitened(X, weight), cell, weight, reml=reml)
        assert [found.sd_between, found.sd_within] == pytest.approx(np.exp(best.x), rel=1e-6)


@pytest.mark.parametrize("seed", [1, 3, 5, 7])
def test_little_cell_effect_is_found_where_gradient_steps_stop_early(study, seed):
    """Neither a dense grid of lambda nor statsmodels' answer has a higher restricted likelihood; cells are uneven."""
    frame = RUNS.to_frame()
    keep = np.sort(np.random.default_rng(seed).choice(len(frame), 100, replace=False))
    sd = {"baseline": 0.006, "smelt": 0.0105}
    runs = simulate(SURFACES, frame.iloc[keep], sd=sd, cell_share=0.1, seed=seed)
    model = linearised(refitted(study, runs, delta=float("inf")), "smelt")
    y, X, n = model.residual / model.residual.std(), model.jacobian, len(model.residual)
    Z = (model.cell[:, None] == np.arange(len(model.cells))).astype(float)

    def deviance(ratio):
        V = np.eye(n) + ratio * Z @ Z.T
        inner = X.T @ np.linalg.solve(V, X)
        rest = y - X @ np.linalg.solve(inner, X.T @ np.linalg.solve(V, y))
        df = n - X.shape[1]
        return (
            df * np.log(rest @ np.linalg.solve(V, rest))
            + np.linalg.slogdet(V)[1]
            + np.linalg.slogdet(inner)[1]
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = sm.MixedLM(y, X, groups=model.cell).fit(reml=True)
    found = variance_components(*data_of(model))
    theirs = [0.0, other.cov_re[0, 0] / other.scale, *np.geomspace(1e-4, 1e2, 60)]
    assert deviance(found.ratio) <= min(map(deviance, theirs)) + 1e-8


def test_interval_of_the_share_ends_where_the_restricted_likelihood_has_fallen_by_chi2():
    """-2 ln of the restricted likelihood, written with dense matrices, is 3.841 above its minimum at the ends."""
    y, X, cell, weight = uneven(3)
    Z = (cell[:, None] == np.arange(9)).astype(float)

    def deviance(share):
        V = share / (1 - share) * Z @ Z.T + np.diag(1 / weight)
        inner = X.T @ np.linalg.solve(V, X)
        rest = y - X @ np.linalg.solve(inner, X.T @ np.linalg.solve(V, y))
        df = len(y) - 3
        return (
            df * np.log(rest @ np.linalg.solve(V, rest))
            + np.linalg.slogdet(V)[1]
            + np.linalg.slogdet(inner)[1]
        )

    found = variance_components(y, whitened(X, weight), cell, weight)
    lowest = deviance(found.icc)
    assert 0 < found.icc_lo < found.icc < found.icc_hi < 1
    for end in (found.icc_lo, found.icc_hi):
        assert deviance(end) - lowest == pytest.approx(3.841459, abs=1e-4)


def test_restricted_likelihood_recovers_cell_effects_and_the_full_one_is_too_low(study):
    """The survey's design, sd .006 nats and .8 of it between cells, is .0028 and .0014 of ln(loss).

    Known from simulation: .00285 by the restricted and .00230 by the full likelihood, a ratio of .81; that of the
    coefficients of four cells among 12, sqrt(8 / 12), is .816. 200 linear worlds; three Monte-Carlo standard errors.
    """
    model = linearised(study, "baseline")
    rng = np.random.default_rng(5)
    between, within = 0.0028, 0.0014
    sums = {True: [], False: []}
    shares, covered = [], []
    for _ in range(200):
        y = between * rng.standard_normal(12)[model.cell] + within * rng.standard_normal(72)
        for reml, own in sums.items():
            found = variance_components(y, model.basis, model.cell, model.weight, reml=reml)
            own.append(found.sd_between**2)
            if reml:
                shares.append(found.icc)
                covered.append(found.icc_lo <= 0.8 <= found.icc_hi)
    variance = {reml: np.mean(own) for reml, own in sums.items()}
    error = 3 * np.std(sums[True]) / np.sqrt(200)
    assert variance[True] == pytest.approx(between**2, abs=error)
    assert np.sqrt(variance[False] / variance[True]) == pytest.approx(0.816, abs=0.02)
    assert np.median(shares) == pytest.approx(0.8, abs=0.03)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.047)


def test_analysis_of_variance_is_the_f_test_of_cells_beside_the_law():
    y, X, cell, weight = uneven(1)
    Z = (cell[:, None] == np.arange(1, 9)).astype(float)
    small = sm.WLS(y, X, weights=weight).fit()
    large = sm.WLS(y, np.column_stack([X, Z]), weights=weight).fit()
    f, p, df = large.compare_f_test(small)
    table = analysis_of_variance(y, whitened(X, weight), cell, weight)
    assert (table.f, table.p, table.df_between) == pytest.approx((f, p, df), rel=1e-9)
    assert table.sd_within == pytest.approx(np.sqrt(large.mse_resid), rel=1e-10)
    assert table.sd_total == pytest.approx(np.sqrt(small.mse_resid), rel=1e-10)


def test_moments_of_the_analysis_of_variance_are_unbiased(study):
    """E[sd_between^2] by linearity: exact for normal errors unless cut at 0, which at this share hardly happens."""
    model = linearised(study, "smelt")
    rng = np.random.default_rng(6)
    found = [
        analysis_of_variance(
            0.003 * rng.standard_normal(12)[model.cell] + 0.001 * rng.standard_normal(72), *data_of(model)[1:]
        )
        for _ in range(400)
    ]
    between = np.array([table.sd_between**2 for table in found])
    assert between.mean() == pytest.approx(0.003**2, abs=3 * between.std() / 20)
    assert found[0].cells_left == pytest.approx(8.0, abs=0.05)  # 12 cells less E, A, a and b


@pytest.mark.parametrize(
    ("cells", "rows", "reason"),
    [(6, 1, "no cell was run twice"), (1, 8, "no cell effect is left"), (3, 1, "no residual degree")],
)
def test_what_cannot_be_told_apart_is_said(cells, rows, reason):
    rng = np.random.default_rng(0)
    cell = np.repeat(np.arange(cells), rows)
    X = np.linalg.qr(np.vander(np.linspace(0, 1, cells * rows), 3))[0]
    found = variance_components(rng.standard_normal(cells * rows), X, cell, np.ones(cells * rows))
    assert (found.status, found.sd_between, found.icc) == ("unknown", None, None)
    assert reason in found.reason


def test_losses_without_noise_have_none():
    runs = simulate(SURFACES, RUNS.to_frame(), sd=0.0)
    frame = noise_anatomy(fit(runs, bootstrap=0))
    assert set(frame["status"]) == {"unknown"}
    assert "hold no noise" in frame["reason"][0]
    assert noise_anatomy_findings(frame)[0].verdict == "unknown"


# -- covariance of the coefficients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("residual", ["log", "raw"])
@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_covariance_is_that_of_statsmodels(residual, weighted):
    """OLS (WLS) of the residuals on the derivatives, by cells; 1e-6 is what the optimum leaves."""
    frame = RUNS.to_frame()
    if weighted:
        frame["weight"] = np.random.default_rng(0).uniform(0.5, 2.0, len(frame))
    study = fit(Endpoints.from_frame(frame), bootstrap=0, delta=float("inf"), residual=residual)
    for arch in study.archs:
        model, found = linearised(study, arch), cluster_covariance(study, arch)
        fitted = model.own.loss * np.exp(-model.residual)
        r, J = -model.residual, model.jacobian
        if residual == "raw":
            scale = model.problem.scale
            r, J = (fitted - model.own.loss) / scale, J * (fitted / scale)[:, None]
        other = sm.WLS(-r, J, weights=model.weight).fit(
            cov_type="cluster", cov_kwds={"groups": model.cell}, use_t=True
        )
        np.testing.assert_allclose(found.covariance, other.cov_params(), rtol=1e-6)
        assert (found.df, found.bread) == (11, "least squares")


def test_huber_covariance_counts_curvature_within_delta_only(study):
    """The sandwich written out row by row, with psi = clip and psi' = 1 within delta."""
    model, found = linearised(study, "smelt"), cluster_covariance(study, "smelt")
    bread, scores = np.zeros((6, 6)), np.zeros((12, 6))
    for r, J, cell in zip(-model.residual, model.jacobian, model.cell, strict=True):
        bread += np.outer(J, J) * (abs(r) <= 1e-3)
        scores[cell] += J * min(max(r, -1e-3), 1e-3)
    inverse = np.linalg.inv(bread)
    by_hand = 12 / 11 * 71 / 66 * inverse @ scores.T @ scores @ inverse
    np.testing.assert_allclose(found.covariance, by_hand, rtol=1e-6)
    assert found.bread == "plug-in"


def test_a_covariance_without_rank_is_none_with_its_reason():
    few = fit(RUNS.select(np.isin(RUNS["cell"], np.unique(RUNS["cell"])[:5])), bootstrap=0)
    found = cluster_covariance(few, "smelt")
    assert found.covariance is None
    assert "5 cells for 6 coefficients" in found.reason
    errors = noise_anatomy(few).attrs["errors"]
    assert {row["se"] for row in errors} == {None}


# -- tests of the residuals --------------------------------------------------------------------------------------------


def test_correlation_of_neighbouring_horizons_is_morans_with_exact_moments(study):
    """The formulas of Cliff and Ord with dense matrices, and their mean over 2000 draws of independent noise."""
    model = linearised(study, "baseline")
    found = neighbours(model)
    W = np.zeros((72, 72))
    D = model.columns["D"]
    for cell in range(12):
        rows = np.flatnonzero(model.cell == cell)
        rows = rows[np.argsort(D[rows])]
        for one, other in zip(rows, rows[1:], strict=False):
            W[one, other] = W[other, one] = 1.0
    Z = (model.cell[:, None] == np.arange(12)).astype(float)
    X = np.column_stack([Z, model.jacobian])
    M = np.eye(72) - X @ np.linalg.pinv(X)
    k = np.linalg.matrix_rank(X)
    e = M @ model.residual
    S0 = W.sum()
    mean = 72 / S0 * np.trace(M @ W) / (72 - k)
    square = 72**2 / S0**2 * (2 * np.trace(M @ W @ M @ W) + np.trace(M @ W) ** 2) / ((72 - k) * (74 - k))
    value = 72 / S0 * e @ W @ e / (e @ e)
    assert (found.correlation, found.expected, found.links) == pytest.approx((value, mean, 60), rel=1e-8)
    assert found.p == pytest.approx(2 * norm.sf(abs(value - mean) / np.sqrt(square - mean**2)), rel=1e-6)
    noise = np.random.default_rng(0).standard_normal((2000, 72)) @ M
    drawn = 72 / S0 * np.einsum("ri,ij,rj->r", noise, W, noise) / np.sum(noise**2, axis=1)
    assert drawn.mean() == pytest.approx(mean, abs=3 * drawn.std() / np.sqrt(2000))


def test_branches_that_inherit_from_each_other_are_seen():
    """Noise that walks along a run: neighbours correlate far beyond what a common cell explains."""
    frame = RUNS.to_frame().sort_values(["arch", "cell", "D"]).reset_index(drop=True)
    rng = np.random.default_rng(2)
    exact = np.concatenate(
        [SURFACES[arch].loss(F=own["F"], S=own["S"], D=own["D"]) for arch, own in frame.groupby("arch")]
    )
    walk = np.zeros((24, 6))
    for j in range(6):
        walk[:, j] = (0.9 * walk[:, j - 1] if j else 0.0) + 0.003 * rng.standard_normal(24)
    frame["loss"] = exact + walk.ravel()
    rows = noise_anatomy(fit(Endpoints.from_frame(frame), bootstrap=0))
    assert (rows["horizon_correlation"] > rows["horizon_expected"] + 0.15).all()
    assert (rows["horizon_p"] < 0.05).all()


def test_spread_is_koenkers_statistic_and_the_robust_p_follows_cells(study):
    """n R^2 of squared residuals on the axis (chi2, one degree), and statsmodels' cluster t written on its own."""
    from scipy.stats import chi2

    model = linearised(study, "smelt")
    e = model.residual - model.basis @ (model.basis.T @ model.residual)
    for row in spread_rows(model, e)[:3]:
        x = model.axes[row["axis"]]
        design = np.column_stack([np.ones(72), x - x.mean()])
        beta = np.linalg.lstsq(design, e**2, rcond=None)[0]
        rest = e**2 - design @ beta
        explained = 1 - rest @ rest / np.sum((e**2 - np.mean(e**2)) ** 2)
        assert row["p"] == pytest.approx(chi2.sf(72 * explained, 1), rel=1e-8)
        scores = np.stack([np.bincount(model.cell, rest * d) for d in design.T], axis=1)
        inverse = np.linalg.inv(design.T @ design)
        covariance = 12 / 11 * 71 / 70 * inverse @ scores.T @ scores @ inverse
        from scipy.stats import t

        assert row["p_cell"] == pytest.approx(
            2 * t.sf(abs(beta[1]) / np.sqrt(covariance[1, 1]), 11), rel=1e-8
        )


def test_noise_that_grows_with_size_is_seen():
    frame = RUNS.to_frame()
    rng = np.random.default_rng(1)
    exact = np.empty(len(frame))
    for arch, own in frame.groupby("arch"):
        exact[own.index] = SURFACES[arch].loss(F=own["F"], S=own["S"], D=own["D"])
    frame["loss"] = exact + 0.001 * (frame["F"] / 1e9) * rng.standard_normal(len(frame))
    found = noise_anatomy(fit(Endpoints.from_frame(frame), bootstrap=0))
    assert set(found["spread_axis"]) == {"ln F"}
    assert (found["spread_p"] < 0.05).all()  # of cells, 12 of them, after three axes
    ratios = [row["sd_ratio"] for row in found.attrs["tests"] if row["axis"] == "ln F"]
    assert all(ratio is None or ratio > 2 for ratio in ratios)
    assert noise_anatomy_findings(found)[2].verdict == "caution"


def test_what_pairs_share_is_found_and_what_they_do_not_is_not(study):
    """Worlds with a stated correlation of the cell effects; run noise dilutes it by rho s / (s + (1 - s) / 6)."""
    inside = []
    for rho in (0.0, 0.8):
        truth = rho * 0.9 / (0.9 + 0.1 / 6)
        for seed in range(5):
            runs = simulate(
                SURFACES,
                RUNS.to_frame(),
                sd={"baseline": 0.00578, "smelt": 0.00994},
                cell_share=0.9,
                pair_correlation=rho,
                seed=seed,
            )
            again = refitted(study, runs)
            models = [linearised(again, arch) for arch in again.archs]
            row = pair_row(*models, *(variance_components(*data_of(model)) for model in models), 0.95)
            assert (row["cells"], row["rows"]) == (12, 72)
            inside.append(row["cell_correlation_lo"] <= truth <= row["cell_correlation_hi"])
            inside.append(row["row_correlation_lo"] <= 0.0 <= row["row_correlation_hi"])
    assert sum(inside) >= 16  # of 20 at 95 %: below in 3 of 1000 sets of independent intervals


def test_the_same_runs_under_two_names_share_everything():
    own = RUNS.select(RUNS.arch == "smelt").to_frame()
    both = pd.concat([own, own.assign(arch="twin")])
    (row,) = noise_anatomy(fit(Endpoints.from_frame(both), bootstrap=0)).attrs["pairs"]
    assert (row["cell_correlation"], row["row_correlation"]) == pytest.approx((1.0, 1.0), abs=1e-9)


# -- the frame ---------------------------------------------------------------------------------------------------------


def test_panel_holds_residuals_of_the_formula(study, anatomy):
    panel = [row for row in anatomy.attrs["panel"] if row["arch"] == "smelt"]
    E, A, K, a, b, c = study["smelt"].surface.coef
    own = RUNS.by_arch()["smelt"]
    fitted = E + A * (1 - own.S) ** b * own.F**-a + K * own.D**-c
    np.testing.assert_allclose([row["fitted"] for row in panel], fitted, rtol=1e-12)
    np.testing.assert_allclose([row["residual_log"] for row in panel], np.log(own.loss / fitted), atol=1e-13)
    quantiles = np.array([row["normal_quantile"] for row in panel])
    order = np.argsort([row["standardised"] for row in panel])
    np.testing.assert_allclose(quantiles[order], norm.ppf((np.arange(1, 73) - 0.375) / 72.25), atol=1e-12)
    assert np.mean([row["standardised"] ** 2 for row in panel]) == pytest.approx(1.0, abs=0.25)


def test_frame_does_not_depend_on_the_order_of_rows(study, anatomy):
    shuffled = Endpoints.from_frame(RUNS.to_frame().sample(frac=1.0, random_state=1))
    other = noise_anatomy(fit(shuffled, bootstrap=0))
    assert other.to_json() == anatomy.to_json()
    for name in ("pairs", "tests", "axes", "errors", "panel"):
        assert other.attrs[name] == anatomy.attrs[name]


def everything(frame):
    for row in frame.to_dict("records"):
        yield from row.values()
    for value in frame.attrs.values():
        if isinstance(value, list):
            yield from (item for row in value for item in row.values())


@pytest.mark.parametrize(
    ("rows", "law", "options"),
    [
        (RUNS, "power-c", {}),
        (RUNS, "additive", {}),
        (RUNS, "chinchilla", {}),
        (RUNS.select(RUNS.arch == "smelt"), "sparse-additive", {"pins": {"E": 1.4}}),
        (RUNS.select(RUNS.tiers == 1), "sparse-additive", {}),
        (RUNS.select(RUNS.D.max() == RUNS.D), "power-c", {}),
        (Endpoints.from_frame(RUNS.to_frame().drop(columns=["cell", "scale"])), "sparse-additive", {}),
        (RUNS, "sparse-additive", {"residual": "raw", "delta": 0.002}),
        (RUNS, "sparse-additive", {"cell_weights": "equal"}),
        (RUNS, "E + A*F**-0.3", {}),
    ],
)
def test_every_law_and_design_has_an_anatomy_without_nan(rows, law, options):
    frame = noise_anatomy(fit(rows, law, bootstrap=0, **options))
    assert list(frame["arch"]) == list(rows.archs)
    assert all(
        value is None or not isinstance(value, float) or np.isfinite(value) for value in everything(frame)
    )
    findings = noise_anatomy_findings(frame)
    assert all(finding.verdict == "fine" or finding.remedy for finding in findings)
    text = to_text(Document(title="", caption=(), grids=noise_anatomy_grids(frame)))
    assert max(map(len, text.splitlines())) <= 80
    assert "nan" not in text


def test_anatomy_of_a_saved_study_is_that_of_the_study(tmp_path, study, anatomy):
    study.save(tmp_path / "study")
    again = noise_anatomy(load_study(tmp_path / "study"))
    # coefficients keep every bit, so only the path to the residuals is the same again
    assert again.to_json() == anatomy.to_json()


def test_refusals_are_one_line(study):
    for call in (
        lambda: noise_anatomy(load_paper("smelt")),
        lambda: noise_anatomy(study, target="nobody"),
        lambda: noise_anatomy(study, level=1.5),
        lambda: cluster_covariance(study, "nobody"),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_findings_of_the_example(anatomy):
    cells, seeds, shape, pairs = noise_anatomy_findings(anatomy)
    assert (cells.verdict, seeds.verdict, shape.verdict, pairs.verdict) == (
        "caution",
        "unknown",
        "fine",
        "fine",
    )
    assert "55.3 % [28.0 %, 81.8 %]" in cells.value
    frame = RUNS.to_frame().drop(columns="trunk")
    seeds = pd.concat([frame.assign(seed="0"), frame.assign(seed="1", loss=frame["loss"] * 1.0005)])
    repeated = noise_anatomy(fit(Endpoints.from_frame(seeds), bootstrap=0))
    # each pair is .0005 apart, so its standard deviation is .0005 / sqrt 2 of the loss
    expected = 0.0005 / np.sqrt(2) * np.sqrt(np.mean(RUNS.by_arch()["smelt"].loss ** 2))
    assert repeated["seed_sd"][1] == pytest.approx(expected, rel=1e-3)
    assert repeated["seed_settings"].tolist() == [72, 72]
    assert noise_anatomy_findings(repeated)[1].verdict == "caution"  # an RMSE of .008 is no matter of seeds
    coarse = noise_anatomy(
        fit(Endpoints.from_frame(RUNS.to_frame().assign(loss=np.round(RUNS.loss, 2))), bootstrap=0)
    )
    assert coarse["resolution"].tolist() == [0.01, 0.01]
    assert "export losses with more digits" in noise_anatomy_findings(coarse)[2].remedy


# -- rows of runs that repeat ------------------------------------------------------------------------------------------


def test_checkpoints_of_gemstones_are_not_resampled_one_by_one_unasked(real_data: Path):
    """199 checkpoints of 20 runs, told apart by run_id, a column of no schema name."""
    frame = pd.read_csv(real_data / "sets" / "gemstones_cool_end.csv")
    assert (len(frame), frame["run_id"].nunique()) == (199, 20)
    plain = Endpoints.from_frame(frame)
    study = fit(plain, "chinchilla", bootstrap=40)
    assert (study.bootstrap.status, study.draws, study.jackknife) == ("refused", None, None)
    for part in ("20 values in 199 rows", "--map run=run_id", "--resample row"):
        assert part in study.bootstrap.reason
    assert study.certified  # the point fit stands
    asked = fit(plain, "chinchilla", bootstrap=40, resample="row")
    assert (asked.bootstrap.status, asked.bootstrap.unit) == ("ok", "row")
    (note,) = [note for note in asked.notes if note.code == "row_resampling"]
    assert "as asked for" in note.message
    named = Endpoints.from_frame(frame, mapping={"run": "run_id"})
    assert fit(named, "chinchilla", bootstrap=40).bootstrap.unit == "run"
    (note,) = [
        note
        for note in fit(named, "chinchilla", bootstrap=40, resample="row").notes
        if note.code == "row_resampling"
    ]
    assert "199 rows are of 20 run labels" in note.message


def test_gemstones_runs_carry_most_of_the_noise(real_data: Path):
    """Checkpoints of one run share nearly all of their residual: MixedLM on the same derivatives agrees."""
    frame = pd.read_csv(real_data / "sets" / "gemstones_cool_end.csv")
    study = fit(Endpoints.from_frame(frame, mapping={"run": "run_id"}), "chinchilla", bootstrap=0)
    (row,) = noise_anatomy(study).to_dict("records")
    model = linearised(study, row["arch"])
    scale = model.residual.std()
    other = sm.MixedLM(model.residual / scale, model.jacobian, groups=model.cell).fit(reml=True)
    share = other.cov_re[0, 0] / (other.cov_re[0, 0] + other.scale)
    assert row["icc"] == pytest.approx(share, abs=1e-3)
    assert row["icc"] > 0.8
    assert row["cells_p"] < 1e-20
