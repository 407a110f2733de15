"""What a design tells apart: correlations, regions and remedies against stated figures, densities and designs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from smelt_scaling import Endpoints, UsageError, example_endpoints, fit, load_paper
from smelt_scaling.analyses.design import design_report
from smelt_scaling.analyses.diagnostics import identifiability, refitted
from smelt_scaling.analyses.diagnostics.identified import coefficient_correlations
from smelt_scaling.analyses.diagnostics.identified_findings import identifiability_findings
from smelt_scaling.analyses.diagnostics.region import ellipse, region_of
from smelt_scaling.analyses.linear_problem import linearised
from smelt_scaling.cli import run
from smelt_scaling.reporting.diagnostics.identifiability import identifiability_grids
from smelt_scaling.reporting.document import Document
from smelt_scaling.reporting.text import to_text
from smelt_scaling.synth import simulate

RUNS = example_endpoints()
SURFACES = load_paper("smelt").surfaces


@pytest.fixture(scope="module")
def study():
    return fit(RUNS, bootstrap=100)


@pytest.fixture(scope="module")
def report(study):
    return identifiability(study)


@pytest.fixture(scope="module")
def shared_noise(study):
    """Return the baseline's model in a world of the survey's design: sd .006 nats, .8 of it between cells."""
    runs = simulate(
        SURFACES, RUNS.to_frame(), sd={"baseline": 0.006, "smelt": 0.0105}, cell_share=0.8, seed=3
    )
    return linearised(refitted(study, runs), "baseline")


def constant_total(noise=0.002):
    """Return runs of one total size, of which a growing part is active: 1 - S = n_act / N and F = 6 n_act."""
    N, rng = 2e9, np.random.default_rng(0)
    active, D = np.meshgrid([1e8, 2e8, 4e8, 8e8], [1e10, 3e10, 1e11, 3e11], indexing="ij")
    active, D = active.ravel(), D.ravel()
    S = 1 - active / N
    loss = SURFACES["smelt"].loss(F=6 * active, S=S, D=D) * np.exp(noise * rng.standard_normal(16))
    cell = [f"{a:.0e}" for a in active]
    return pd.DataFrame(
        {"arch": "moe", "cell": cell, "N": N, "N_act": active, "F": 6 * active, "S": S, "D": D, "loss": loss}
    )


# -- correlations ------------------------------------------------------------------------------------------------------


def test_correlations_on_the_published_surface(study):
    """Known for the survey's design: A-a -.989 and E-a .85 centred, A-a .999 and K-c 1.000 in natural coordinates."""
    exact = simulate(SURFACES, RUNS.to_frame(), sd=1e-7, cell_share=0.0)
    found = coefficient_correlations(linearised(refitted(study, exact), "baseline"))
    E, A, K, a, _, c = range(6)
    assert found["centred"][A, a] == pytest.approx(-0.989, abs=0.0005)
    assert found["centred"][E, a] == pytest.approx(0.85, abs=0.005)
    assert found["natural"][A, a] == pytest.approx(0.999, abs=0.0005)
    assert found["natural"][K, c] == pytest.approx(1.0, abs=0.0005)


def test_natural_correlations_are_those_of_the_natural_jacobian(study):
    """d ln m / d(E, ln A, ln K, a, b, c) written out, inverted by QR: a condition of 1e4 costs 8 digits."""
    own = RUNS.by_arch()["smelt"]
    E, A, K, a, b, c = study["smelt"].surface.coef
    size, data = A * (1 - own.S) ** b * own.F**-a, K * own.D**-c
    columns = [np.ones(72), size, data, -size * np.log(own.F), size * np.log1p(-own.S), -data * np.log(own.D)]
    J = np.stack(columns, axis=1) / (E + size + data)[:, None]
    R = np.linalg.inv(np.linalg.qr(J)[1])
    covariance = R @ R.T
    sd = np.sqrt(covariance.diagonal())
    found = coefficient_correlations(linearised(study, "smelt"))["natural"]
    np.testing.assert_allclose(found, covariance / np.outer(sd, sd), atol=1e-7)


def test_the_ridge_is_one_sentence(report):
    for row in report.to_dict("records"):
        assert row["ridge"].startswith("A and a are one number and a trade-off (correlation 0.999")
        assert row["ridge_correlation"] == pytest.approx(-0.99, abs=0.002)
        assert row["ridge"].count(". ") == 0


# -- regions -----------------------------------------------------------------------------------------------------------


def test_contour_lies_where_the_dense_likelihood_ratio_is_chi2(shared_noise):
    """The normal density of ln L with its full covariance, the rest maximised by Nelder and Mead: 5.99 above."""
    model = shared_noise
    own, cells = model.own, (model.cell[:, None] == np.arange(12)).astype(float)
    both = cells @ cells.T

    def negative(v, a, c):
        E, lnA, lnK, b, s, t = v
        if E < 0:
            return 1e9
        m = (
            E
            + np.exp(lnA - a * (np.log(own.F) - 21) + b * (np.log1p(-own.S) + 3))
            + np.exp(lnK - c * (np.log(own.D) - 25))
        )
        V = np.exp(2 * s) * both + np.exp(2 * t) * np.eye(72)
        rest = np.log(own.loss) - np.log(m)
        return 0.5 * (np.linalg.slogdet(V)[1] + rest @ np.linalg.solve(V, rest))

    def best(a, c):
        E, A, K, _, b, _ = model.fit.surface.coef
        start = [E, np.log(A) - a * 21 - b * 3, np.log(K) - c * 25, b, -5.9, -6.6]
        start[1] = np.log(A) - model.fit.surface.coef[3] * 21 - 3 * b
        start[2] = np.log(K) - model.fit.surface.coef[5] * 25
        options = {"xatol": 1e-8, "fatol": 1e-9, "maxiter": 20000, "maxfev": 20000, "adaptive": True}
        found = minimize(negative, start, args=(a, c), method="Nelder-Mead", options=options)
        return minimize(negative, found.x, args=(a, c), method="Nelder-Mead", options=options).fun

    region = region_of(model, ("a", "c"), 0.95)
    assert region.closed.all()
    lowest = best(*region.centre)
    for point in region.contour[[0, 17, 36]]:
        assert 2 * (best(*point) - lowest) == pytest.approx(5.9915, abs=0.01)


def test_tokens_are_sharp_and_sizes_are_not(shared_noise):
    """Known for such worlds: a is loose by about .05 to either side, and c, a contrast within cells, is not."""
    region = region_of(shared_noise, ("a", "c"), 0.95)
    half = (region.contour.max(axis=0) - region.contour.min(axis=0)) / 2
    assert half[0] == pytest.approx(0.05, abs=0.02)
    assert half[1] / region.centre[1] < 0.6 * half[0] / region.centre[0]


def test_ellipse_holds_its_share_of_the_draws():
    draws = np.random.default_rng(0).multivariate_normal([0.4, 0.7], [[4e-4, 1e-4], [1e-4, 9e-4]], 1000)
    contour = ellipse(draws, 0.95)
    from matplotlib.path import Path

    assert Path(contour).contains_points(draws).sum() == pytest.approx(950, abs=3)  # a polygon of 48 corners
    spread = np.sqrt(5.9915 * np.array([4e-4, 9e-4]))
    np.testing.assert_allclose((contour.max(axis=0) - contour.min(axis=0)) / 2, spread, rtol=0.08)
    assert ellipse(draws[:10], 0.95) is None


def test_frame_carries_both_contours(study, report):
    points = pd.DataFrame(report.attrs["regions"])
    assert set(points["contour"]) == {"profile likelihood", "draws"}
    row = report.iloc[1]
    own = points[(points["arch"] == "smelt") & (points["contour"] == "draws")]
    assert (row["size_draws_lo"], row["size_draws_hi"]) == (own["size"].min(), own["size"].max())
    assert row["size_lo"] < row["size"] < row["size_hi"]
    assert (row["size_exponent"], row["token_exponent"]) == ("a", "c")
    without = identifiability(refitted(study))
    assert without["size_draws_lo"].tolist() == [None, None]
    assert without["size_lo"].tolist() == report["size_lo"].tolist()


# -- designs -----------------------------------------------------------------------------------------------------------


def test_one_total_size_leaves_size_and_sparsity_collinear_everywhere():
    """F and S move together along N = const: check, fit and the diagnosis say so, and how to part them."""
    runs = Endpoints.from_frame(constant_total())
    fix = "S and F move together, as with one total size N of which only the active part varies: vary N at a fixed S"
    design = design_report(runs)
    assert design["verdict"][0] == "not identified"
    assert any(fix in remedy for remedy in design["remedies"][0])
    study = fit(runs, bootstrap=50)
    assert study["moe"].collinear == ("b", "a")
    assert study.bootstrap.status == "refused"
    (note,) = [note for note in study.all_notes if note.code == "collinear"]
    assert fix in note.message
    report = identifiability(study)
    assert report["collinear"][0] == ["b", "a"]
    assert any(fix in text for text in report["fixes"][0])
    assert "cannot be told apart" in report["region_reason"][0]
    finding = identifiability_findings(report)[0]
    assert finding.verdict == "serious"
    assert fix in finding.remedy


def test_after_an_unidentified_fit_the_next_command_is_a_check(tmp_path, monkeypatch, capsys):
    """More starts would find more points of the same line of optima."""
    monkeypatch.chdir(tmp_path)
    constant_total().to_csv("moe.csv", index=False)
    assert run(["fit", "moe.csv", "--bootstrap", "0", "--starts", "8", "-o", "study"]) == 4
    assert "next: smelt-scaling check moe.csv" in capsys.readouterr().out


def test_what_the_remedy_asks_for_mends_it():
    """A second total size at the same sparsities parts the two; so does holding one of the exponents."""
    frame = constant_total()
    larger = frame.assign(N=8e9, N_act=frame["N_act"] * 4, F=frame["F"] * 4, cell=frame["cell"] + "x")
    larger["loss"] = SURFACES["smelt"].loss(**{name: larger[name].to_numpy() for name in "FSD"})
    mended = fit(Endpoints.from_frame(pd.concat([frame, larger])), bootstrap=0)
    assert mended["moe"].collinear == ()
    assert mended.certified
    held = fit(Endpoints.from_frame(frame), bootstrap=0, pins={"b": 0.146})
    assert held["moe"].collinear == ()
    assert held["moe"].surface["a"] == pytest.approx(0.3892, abs=0.1)


def test_a_floor_at_its_bound_is_an_issue_with_its_fix():
    tokens = np.tile(np.geomspace(1e9, 1e12, 8), 5)
    N = np.repeat(np.geomspace(1e8, 1e10, 5), 8)
    noise = np.exp(0.001 * np.random.default_rng(0).standard_normal(40))
    loss = (-0.4 + 20 * N**-0.1 + 30 * tokens**-0.15) * noise
    runs = Endpoints.from_frame({"cell": [f"{n:.1e}" for n in N], "N": N, "D": tokens, "loss": loss})
    report = identifiability(fit(runs, "chinchilla", bootstrap=0))
    assert report["at_bounds"][0] == ["E"]
    (issue,) = [issue for issue in report.attrs["issues"] if issue["issue"] == "bound"]
    assert "--pin E=VALUE" in issue["fix"]
    assert identifiability_findings(report)[0].verdict in ("caution", "serious")
    assert report["size_lo"][0] is None or report["size_lo"][0] < report["size"][0]


@pytest.mark.parametrize(
    ("rows", "law", "options"),
    [
        (RUNS, "power-c", {}),
        (RUNS, "chinchilla", {}),
        (RUNS.select(RUNS.arch == "smelt"), "sparse-additive", {"pins": {"a": 0.39}}),
        (RUNS.select(RUNS.tiers == 1), "sparse-additive", {}),
        (Endpoints.from_frame(RUNS.to_frame().drop(columns=["cell", "scale"])), "sparse-additive", {}),
        (Endpoints.from_frame(constant_total()), "sparse-additive", {}),
        (simulate(SURFACES, RUNS.to_frame(), sd=0.0), "sparse-additive", {}),
    ],
)
def test_every_law_and_design_is_reported_without_nan(rows, law, options):
    seen = []
    frame = identifiability(fit(rows, law, bootstrap=0, **options), progress=lambda *step: seen.append(step))
    assert seen[-1] == (len(rows.archs),) * 2
    values = [v for row in frame.to_dict("records") for v in row.values()]
    values += [
        v for name in ("correlations", "regions", "issues") for row in frame.attrs[name] for v in row.values()
    ]
    assert all(value is None or not isinstance(value, float) or np.isfinite(value) for value in values)
    assert all((row["size"] is None) == bool(row["region_reason"]) for row in frame.to_dict("records"))
    assert all(finding.verdict == "fine" or finding.remedy for finding in identifiability_findings(frame))
    text = to_text(Document(title="", caption=(), grids=identifiability_grids(frame)))
    assert max(map(len, text.splitlines())) <= 80
    assert "nan" not in text


def test_refusals_are_one_line(study):
    for call in (
        lambda: identifiability(load_paper("smelt")),
        lambda: identifiability(study, reference="nobody"),
        lambda: identifiability(study, level=0.0),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert "\n" not in str(caught.value)
