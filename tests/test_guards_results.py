"""Guards of resampling, studies and analyses: settings that survive, thresholds, interval ends, and every note.

Interval ends and counts are recomputed from the draws with the law's formula written out here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import huber
from scipy.stats import t

from smelt_scaling import (
    Endpoints,
    ModelConfig,
    Note,
    allocate,
    ce_gain,
    compare_levels,
    default_sparsities,
    design_report,
    domains,
    downstream,
    example_endpoints,
    fit,
    flops_report,
    length_gains,
    load_study,
    match_budgets,
    notes_of,
    plan,
    predict,
    probe_report,
    read_endpoints,
    shot_gaps,
)
from smelt_scaling import sources as source_groups
from smelt_scaling.accounting import Lengths
from smelt_scaling.accounting.huggingface import from_huggingface
from smelt_scaling.analyses.budgets import budgets_or_default
from smelt_scaling.analyses.calibration import Scores
from smelt_scaling.analyses.diagnostics import rollout, row_influence
from smelt_scaling.analyses.models import NamedModel, open_model
from smelt_scaling.analyses.reproduction import reproduce
from smelt_scaling.analyses.turning import turnover
from smelt_scaling.cli.sources import open_source
from smelt_scaling.engine import certificate
from smelt_scaling.engine.newton import delta_ladder, minimise
from smelt_scaling.errors import NOTE_CODES, FrontierError
from smelt_scaling.fitting import FitSettings, estimate, fit_architecture
from smelt_scaling.frontier import Frontier
from smelt_scaling.laws import LAWS, Surface, get_law
from smelt_scaling.note_codes import STAGES
from smelt_scaling.papers import load_paper
from smelt_scaling.resampling import bootstrap_plan, refit, replicates
from smelt_scaling.study import run
from smelt_scaling.synth import simulate

RUNS = example_endpoints()
PAPER = load_paper("smelt")
TOKENS = np.geomspace(1e9, 1e12, 40)
NOISY = (1.7 + 2.4e3 * TOKENS**-0.38) * np.exp(0.003 * np.random.default_rng(0).standard_normal(40))


@pytest.fixture(scope="module")
def study():
    return fit(RUNS, bootstrap=200)


# -- interval ends -----------------------------------------------------------------------------------------------------


def coefficients(study, arch, interval):
    """Return the point (6, 1) and the replicates (6, R) of one architecture."""
    drawn = (study.draws if interval == "percentile" else study.jackknife)[arch]
    return study[arch].surface.coef[:, None], drawn.surface.coef.T


def expected_ends(point, drawn, interval):
    """k-th smallest and largest of 200 with k = floor(201 * 0.025) = 5; or the jackknife's t interval."""
    if interval == "percentile":
        ordered = np.sort(drawn)
        return ordered[4], ordered[-5]
    groups = len(drawn)
    assert groups == 12
    se = np.sqrt((groups - 1) / groups * np.sum((drawn - drawn.mean()) ** 2))
    half = t.ppf(0.975, groups - 1) * se
    return point - half, point + half


@pytest.mark.parametrize("interval", ["percentile", "jackknife-t"])
def test_interval_of_a_prediction_is_that_of_the_formula(study, interval):
    F, D, S = 3e9, 2e11, 0.93
    table = predict(study, {"F": F, "D": D, "S": S}, interval=interval)
    for row in table.itertuples():
        point, drawn = (
            E + A * (1 - S) ** b * F**-a + K * D**-c
            for E, A, K, a, b, c in coefficients(study, row.arch, interval)
        )
        assert row.loss == pytest.approx(point[0], rel=1e-12)
        ends = expected_ends(point[0], drawn, interval)
        assert (row.loss_lo, row.loss_hi) == pytest.approx(ends, rel=1e-11)
        assert row.draws == len(drawn)


@pytest.mark.parametrize("interval", ["percentile", "jackknife-t"])
def test_intervals_of_an_allocation_are_those_of_the_formula(study, interval):
    """F* = (a Q C^c / (c K))^(1/(a+c)) with Q = A (1-S)^b; t intervals are symmetric on the logarithm."""
    C, S = 1e21, 0.93
    table = allocate(study, C, sparsities=S, interval=interval)
    for row in table.to_dict("records"):
        both = []
        for E, A, K, a, b, c in coefficients(study, row["arch"], interval):
            flops = (a * A * (1 - S) ** b * C**c / (c * K)) ** (1 / (a + c))
            loss = E + A * (1 - S) ** b * flops**-a + K * (C / flops) ** -c
            both.append(
                {
                    "flops_per_token": flops,
                    "tokens": C / flops,
                    "dense_params": flops / 6,
                    "tokens_per_param": 6 * C / flops**2,
                    "loss": loss,
                }
            )
        for name, point in both[0].items():
            assert row[name] == pytest.approx(point[0], rel=1e-11)
            ends = np.exp(expected_ends(np.log(point[0]), np.log(both[1][name]), interval))
            assert [row[f"{name}_lo"], row[f"{name}_hi"]] == pytest.approx(ends, rel=1e-9), name


def log_multipliers(study, C, S):
    """Return ln(C_ref/C) of every draw of smelt against baseline, from the closed form written out here."""
    values = []
    for arch in ("smelt", "baseline"):
        E, A, K, a, b, c = study.draws[arch].surface.coef.T
        Q, s = A * (1 - S) ** b, a + c
        G = (a * Q / (c * K)) ** (1 / s)
        values.append((E, Q * G**-a + K * G**c, a * c / s))
    (E, P, gamma), (E_ref, P_ref, gamma_ref) = values
    return np.log((E + P * C**-gamma - E_ref) / P_ref) / -gamma_ref - np.log(C)


@pytest.mark.parametrize("arch", ["smelt", "baseline"])
def test_uncertified_replicates_stay_and_the_note_says_what_they_move(study, arch):
    """The six highest of 200 draws, of one architecture, lose their certificate: kept, counted and weighed."""
    C, S = 1e21, 0.93
    m = log_multipliers(study, C, S)
    bad = np.argsort(m)[-6:]
    certified = np.ones(200, dtype=bool)
    certified[bad] = False
    spoiled = replace(study, draws={**study.draws, arch: replace(study.draws[arch], certified=certified)})
    table = ce_gain(spoiled, C, sparsities=S, target="smelt", reference="baseline")
    kept = 1 - np.exp(-np.sort(m)[[4, -5]])
    assert table.loc[0, ["gain_lo", "gain_hi"]].tolist() == pytest.approx(kept, abs=1e-9)
    left = np.sort(m[certified])  # 194: k = floor(195 * .025) = 4
    move = 100 * np.abs(1 - np.exp(-left[[3, -4]]) - kept).max()
    (note,) = (note for note in notes_of(table) if note.code == "uncertified_draws")
    assert note.count == 6
    assert note.message.endswith(f"moves an interval end by up to {move:.2g} points")
    clean = ce_gain(study, C, sparsities=S)
    assert "uncertified_draws" not in {note.code for note in notes_of(clean)}


def test_a_gain_of_zero_is_not_positive():
    """The same rows under two names: every draw's gain is 0, and the share of positive ones is 0, not 1."""
    one = RUNS.by_arch()["smelt"].to_frame()
    twice = Endpoints.from_frame(pd.concat([one.assign(arch="first"), one.assign(arch="second")]))
    table = ce_gain(fit(twice, bootstrap=64), 1e21)
    assert (table["gain_positive_share"] == 0.0).all()


@pytest.fixture(scope="module")
def half_refused():
    """Two architectures, one of them at D = 20 N throughout."""
    law = LAWS["chinchilla"]
    N = np.repeat(np.geomspace(1e8, 1e10, 6), 3)
    spread = np.tile([5.0, 20.0, 80.0], 6)
    rng = np.random.default_rng(2)
    frames = []
    for arch, tokens in (("fixed", 20 * N), ("spread", spread * N)):
        loss = Surface(law=law, coef=[1.8, 480, 2000, 0.35, 0.37]).loss(N=N, D=tokens)
        noise = np.exp(0.003 * rng.standard_normal(18))
        frame = {"arch": arch, "cell": [f"c{i // 3}" for i in range(18)], "N": N, "D": tokens}
        frames.append(pd.DataFrame(frame | {"loss": loss * noise}))
    both = fit(Endpoints.from_frame(pd.concat(frames)), "chinchilla", bootstrap=50)
    assert both.jackknife is not None
    assert both["fixed"].intervals_refused
    assert not both["spread"].intervals_refused
    return both


@pytest.mark.parametrize("analysis", ["predict", "ce_gain"])
def test_a_refused_design_has_no_interval_of_any_kind(half_refused, analysis):
    """Leave-one-out fits exist for both sides, and a t interval is refused to both all the same."""
    both = half_refused
    forced = replace(  # as if the ridge had happened to look well conditioned
        both,
        fits={
            arch: replace(one, unidentified={}, certificate=both["spread"].certificate)
            for arch, one in both.fits.items()
        },
    )
    assert forced["fixed"].intervals_refused
    if analysis == "predict":
        table = predict(forced, {"N": 1e9, "D": 2e10}, interval="jackknife-t")
        assert table[["loss_lo", "loss_hi"]].isna().all(axis=None)
    else:
        table = ce_gain(forced, 1e20, target="spread", reference="fixed", interval="jackknife-t")
        assert table[["gain_lo", "gain_hi"]].isna().all(axis=None)
    assert (table["draws"] == 0).all()
    (said,) = (note.message for note in notes_of(table) if note.code == "no_interval")
    assert "ill-conditioned" in said


# -- peaks, frontiers, sparsities --------------------------------------------------------------------------------------


@pytest.mark.parametrize("S", [0.846, 0.969])
def test_a_gain_that_becomes_unreachable_has_no_peak(S):
    """Baseline against smelt grows without bound up to the edge: an edge, and no peak beside it."""
    found = turnover(Frontier(PAPER.surfaces["baseline"]), Frontier(PAPER.surfaces["smelt"]), S)
    assert found["unreachable_from"] is not None
    assert found["peak_budget"] is None
    assert found["peak_gain"] is None


def test_no_gain_has_no_peak():
    same = Frontier(PAPER.surfaces["smelt"])
    found = turnover(same, same, 0.9)
    assert (found["peak_budget"], found["zero_crossings"], found["unreachable_from"]) == (None, [], None)


def test_the_order_of_the_terms_does_not_matter():
    """The data term first, or the size term first: F* = (aA C^c/(cK))^(1/(a+c)) either way."""
    E, A, K, a, c, C = 1.5, 800.0, 1e6, 0.35, 0.6, 1e21
    flops = (a * A * C**c / (c * K)) ** (1 / (a + c))
    for formula in ("E + A*F**-a + K*D**-c", "E + K*D**-c + A*F**-a"):
        law = get_law(formula)
        values = {"E": E, "A": A, "K": K, "a": a, "c": c}
        frontier = Frontier(Surface(law=law, coef=[values[name] for name in law.parameters]))
        assert frontier.closed_form
        best = frontier.allocate(C)
        assert float(best.flops_per_token) == pytest.approx(flops, rel=1e-12)
        assert float(best.loss) == pytest.approx(E + A * flops**-a + K * (C / flops) ** -c, rel=1e-12)
        assert float(frontier.exponent) == pytest.approx(a * c / (a + c), rel=1e-12)


@pytest.mark.parametrize("exponents", [(-0.1, 0.6), (0.3, 0.0), (0.3, -0.2)])
def test_a_numeric_search_that_ends_at_the_edge_is_no_optimum(exponents):
    """A loss that falls, or is flat, all the way to one end of the iso-FLOP curve has no allocation."""
    surface = Surface(law=LAWS["additive"], coef=[1.5, 8.0, 1e3, *exponents])
    with pytest.raises(FrontierError, match="no interior optimum"):
        Frontier(surface, numeric=True).allocate(1e21)


def test_default_sparsity_is_the_median_of_medians():
    """Cells of one tier: x has .90 .90 .92 (median .90), y .94, z .93 twice and .95: median .93, and not a mean."""
    S = [0.90, 0.90, 0.92, 0.94, 0.93, 0.93, 0.95]
    rows = {
        "arch": ["a"] * 7,
        "cell": list("xxxyzzz"),
        "F": [1e9] * 7,
        "D": np.geomspace(1e9, 1e10, 7),
        "S": S,
        "loss": np.linspace(3, 2.5, 7),
    }
    runs = Endpoints.from_frame(rows)
    assert default_sparsities(runs).tolist() == [0.93]
    only_x = Endpoints.from_frame({name: values[:3] for name, values in rows.items()})
    assert default_sparsities(only_x).tolist() == [0.90]


# -- studies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        FitSettings(),
        FitSettings(pins={"": {"E": 1.44}, "smelt": {"a": 0.4, "A": 2000.0}}),
        FitSettings(delta=float("inf"), residual="raw", starts=7, engine="lbfgsb", flops_per_param=3.0),
        FitSettings(delta="auto", starts="thorough"),
    ],
)
def test_settings_come_back_from_a_folder_as_they_were(study, tmp_path, settings):
    again = load_study(replace(study, settings=settings).save(tmp_path / "study"))
    assert again.settings == settings
    assert again.settings.pins_of("smelt") == settings.pins_of("smelt")


def power_runs(cells, per_cell=3):
    """Runs of a law in C alone: every cell holds several budgets, so only few labels make a resample degenerate."""
    frames = []
    for arch, labels in cells.items():
        C = np.geomspace(1e17, 1e21, len(labels) * per_cell)
        noise = 0.003 * np.random.default_rng(len(labels)).standard_normal(len(C))
        cell = np.tile(labels, per_cell)
        frames.append(
            pd.DataFrame({"arch": arch, "cell": cell, "C": C, "loss": (1.6 + 88 * C**-0.095) * np.exp(noise)})
        )
    return Endpoints.from_frame(pd.concat(frames))


NAMES = [f"c{i:03d}" for i in range(201)]


@pytest.mark.parametrize(("labels", "refused"), [(5, True), (6, True), (8, False)])
def test_more_than_one_in_a_hundred_degenerate_resamples_refuse_the_bootstrap(labels, refused):
    """At most two distinct of n labels: (n + C(n,2) (2^n - 2))/n^n = 9.8 % of 5, 2.0 % of 6, 0.04 % of 8."""
    result = fit(power_runs({"a": NAMES[:labels]}), "power-c", bootstrap=400).bootstrap
    share = (labels + labels * (labels - 1) / 2 * (2**labels - 2)) / labels**labels
    assert (share > 0.01) == refused
    assert result.degenerate == pytest.approx(400 * share, abs=4 * np.sqrt(400 * share) + 1)  # binomial
    assert result.status == ("refused" if refused else "ok")


def test_a_replicate_is_degenerate_if_any_architecture_is():
    """Architecture a has 5 of the 14 labels of b: resamples that leave it two are counted, though b has plenty."""
    runs = power_runs({"a": NAMES[:5], "b": NAMES[:14]})
    result = fit(runs, "power-c", bootstrap=300, seed=3).bootstrap
    labels = runs.cells()[0]
    plan = bootstrap_plan({a: labels[runs.arch == a] for a in runs.archs}, replicates=300, seed=3)
    few = {arch: (counts > 0).sum(axis=1) <= 2 for arch, counts in plan.counts.items()}
    assert few["a"].sum() > 3
    assert not few["b"].any()
    assert result.degenerate == few["a"].sum()
    assert result.status == "refused"


@pytest.mark.parametrize(("labels", "kept"), [(21, True), (200, True), (201, False)])
def test_up_to_two_hundred_labels_are_left_out_one_by_one(labels, kept):
    drawn = fit(power_runs({"a": NAMES[:labels]}, per_cell=1), "power-c", bootstrap=0).jackknife
    assert (drawn is not None) == kept
    if kept:
        assert len(drawn["a"]) == labels


@pytest.fixture(scope="module")
def noisy_refits():
    """100 replicates of two dozen noisy runs, a few of which have local optima."""
    rng = np.random.default_rng(12)
    N, D = np.repeat(np.geomspace(1e8, 3e9, 6), 4), np.tile([5e9, 2e10, 4e10, 1e11], 6)
    loss = Surface(law=LAWS["chinchilla"], coef=[1.8, 480, 2000, 0.35, 0.37]).loss(N=N, D=D)
    runs = Endpoints.from_frame({"N": N, "D": D, "loss": loss * np.exp(0.02 * rng.standard_normal(24))})
    settings = FitSettings(starts=16)
    fitted = fit_architecture("model", runs, LAWS["chinchilla"], settings, n_cells=24)
    rows = runs.cells()[0]
    labels = tuple(np.unique(rows).tolist())
    index = np.searchsorted(np.array(labels), rows)
    counts = bootstrap_plan({"model": rows}, replicates=100, seed=2).counts["model"]
    return fitted, index, counts, refit(fitted, index, counts, labels, settings)


def test_improved_replicates_are_those_an_extra_start_lowered(noisy_refits):
    """Restated: one start at the full-data optimum, and whether the kept objective is lower by 1e-9 of itself."""
    fitted, index, counts, draws = noisy_refits
    weights = fitted.problem.weight * counts[:, index]
    start = np.repeat(fitted.theta[None], 100, axis=0)
    single = minimise(fitted.objective, start, weights, delta_ladder(1e-3)).objective
    lower = draws.objective < single * (1 - 1e-9)
    usable = ~draws.degenerate
    assert np.array_equal(draws.improved[usable], lower[usable])
    assert 1 <= lower[usable].sum() < usable.sum() / 2
    assert (draws.objective <= single * (1 + 1e-12))[usable].all()


def test_a_replicate_restarts_from_the_seed_that_suits_it_best(noisy_refits):
    """Objective of every seed under every replicate's weights, with SciPy's Huber loss; its own optimum is no seed."""
    fitted, index, counts, draws = noisy_refits
    weights = fitted.problem.weight * counts[:, index]
    theta = fitted.problem.centred(draws.surface.coef)
    seeds = theta[:32]
    observed = np.exp(fitted.problem.observed) * fitted.problem.scale
    rho = huber(1e-3, np.log(fitted.problem.predicted(seeds)) - np.log(observed))
    value = weights @ rho.T
    value[np.arange(32), np.arange(32)] = np.inf
    scores = fitted.objective.loss_of_rows(seeds, 1e-3)
    (start,) = replicates._restarts(theta, weights, seeds, scores, FitSettings())
    assert np.array_equal(start, seeds[np.argmin(value, axis=1)])
    everywhere = replicates._restarts(theta, weights, seeds, scores, FitSettings(starts="thorough"))
    assert [len(np.unique(block, axis=0)) for block in everywhere] == [1] * 32


def test_a_singular_replicate_is_degenerate(monkeypatch, noisy_refits):
    """Condition numbers above 1e10 of a resample's Jacobian: counted, with every exponent held."""
    fitted, index, counts, _ = noisy_refits
    conditions = np.where(np.arange(100) % 10 == 0, 1.1e10, 0.9e10)
    monkeypatch.setattr(replicates, "condition_numbers", lambda *_: conditions)
    degenerate, frozen = replicates.degenerate_replicates(fitted, index, counts)
    assert degenerate[::10].all()
    others = degenerate & (np.arange(100) % 10 != 0)
    monkeypatch.setattr(replicates, "condition_numbers", lambda *_: np.ones(100))
    assert np.array_equal(others[1:10], replicates.degenerate_replicates(fitted, index, counts)[0][1:10])
    assert frozen[::10].any(axis=1).all()


def test_a_study_counts_replicates_without_a_certificate(monkeypatch):
    """Two refits of each architecture lose theirs: four of 2 x 64, kept, and a share of 124/128."""

    def spoiled(fitted, *args, **options):
        draws = refit(fitted, *args, **options)
        return replace(draws, certified=np.arange(len(draws)) > 1)

    monkeypatch.setattr(run, "refit", spoiled)
    drawn = fit(RUNS, bootstrap=64)
    assert drawn.bootstrap.certified_share == 124 / 128
    (note,) = (note for note in drawn.notes if note.code == "uncertified_draws")
    assert note.count == 4
    assert len(drawn.draws["smelt"]) == 64


def test_leave_one_out_fits_that_hold_a_parameter_are_counted(study):
    """Three of twelve for one architecture, five for the other: the larger number, and only for the t interval."""
    spoiled = {
        arch: replace(draws, degenerate=np.arange(12) < count)
        for (arch, draws), count in zip(study.jackknife.items(), (3, 5), strict=True)
    }
    held = replace(study, jackknife=spoiled)
    (note,) = (n for n in gain_notes(held, interval="jackknife-t") if n.code == "degenerate_draws")
    assert note.count == 5
    assert "degenerate_draws" not in {n.code for n in gain_notes(held)}


# -- every note --------------------------------------------------------------------------------------------------------


def table(**columns):
    """A small valid table with some columns replaced; None takes one out."""
    base = {"arch": ["a", "a"], "F": [1e9, 2e9], "D": [2e10, 4e10], "loss": [3.0, 2.5]} | columns
    return {name: values for name, values in base.items() if values is not None}


def read(*, units=None, flops=None, mapping=None, **columns):
    return Endpoints.from_frame(table(**columns), units=units, flops=flops, mapping=mapping).notes


def changed(**columns):
    return Endpoints(columns=dict(RUNS.columns) | columns)


def one_term_notes(loss, pins=None, **options):
    rows = {"arch": np.array(["a"] * 40), "F": TOKENS, "D": TOKENS, "loss": loss}
    options = {"bootstrap": 0} | options
    return fit(Endpoints(columns=rows), "E + K*D**-c", pins=pins, **options).all_notes


def gain_notes(source, budgets=1e21, **options):
    return notes_of(ce_gain(source, budgets, **options))


def ladder(**options):
    rows = {"C": [2.19e17, 1.70e18, 9.00e18], "loss": [3.7404, 3.3834, 3.1230]}
    return fit(Endpoints.from_frame(rows), "power-c", bootstrap=0, **options).all_notes


def budgets_run(count):
    C = np.geomspace(1e18, 1e22, count)
    noise = 0.003 * np.random.default_rng(0).standard_normal(count)
    return fit(
        Endpoints.from_frame({"C": C, "loss": 1.5 + 80 * C**-0.1 + noise}), "power-c", bootstrap=0, starts=4
    )


def in_parameters(tokens):
    N = np.repeat(np.geomspace(1e8, 1e10, 4), 2)
    D = tokens(N)
    loss = Surface(law=LAWS["chinchilla"], coef=[1.8, 480, 2000, 0.35, 0.37]).loss(N=N, D=D)
    loss = loss * np.exp(0.003 * np.random.default_rng(0).standard_normal(8))
    return fit(
        Endpoints.from_frame({"N": N, "D": D, "loss": loss}), "chinchilla", bootstrap=0, starts=4
    ).all_notes


def csv_with_commas():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.csv"
        path.write_text("arch;F;D;loss\na;1e9;2e10;3,25\na;2e9;4e10;2,75\n")
        return read_endpoints(path).notes


def stopped_at_the_start():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimate, "minimiser", lambda _: lambda *args: minimise(*args, max_iterations=0))
        return fit_architecture(
            "smelt", RUNS.by_arch()["smelt"], get_law("sparse-additive"), FitSettings(), n_cells=12
        ).result.notes


def with_an_uncertified_draw():
    drawn = fit(RUNS, bootstrap=64)
    one = replace(drawn.draws["smelt"], certified=np.arange(64) > 0)
    return gain_notes(replace(drawn, draws={**drawn.draws, "smelt": one}))


def labelled(rule):
    return fit(changed(cell=np.array([rule(arch, cell) for arch, cell in zip(RUNS.arch, RUNS["cell"], strict=True)])),
               bootstrap=1).notes  # fmt: skip


def overtrained():
    """Only the runs with many tokens per parameter."""
    tokens = RUNS.D * 6 / RUNS.F
    return gain_notes(fit(RUNS.select(tokens > np.quantile(tokens, 0.5)), bootstrap=0), 1e20)


def opened_after(change: Callable[[Path], None]) -> tuple[Note, ...]:
    """Fit a file, do something to it, and open the study again."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs.csv"
        RUNS.to_frame().to_csv(runs, index=False)
        study = fit(read_endpoints(runs), bootstrap=0).save(Path(folder) / "study")
        change(runs)
        return open_source(study, None).notes


#: Three rows of one run, at three horizons.
THREE = {
    "arch": ["a"] * 3,
    "run": ["r"] * 3,
    "F": [1e9] * 3,
    "D": [1e10, 2e10, 4e10],
    "loss": [3.0, 2.5, 2.25],
}


def long_losses(**changes):
    """Losses of three sources of two domains at the example's endpoints; changes by source and row."""
    frames = []
    for number, (domain, source) in enumerate((("code", "c0"), ("code", "c1"), ("web", "w0"))):
        wave = 0.001 * np.sin(np.arange(len(RUNS)) * (number + 1))
        loss = RUNS.loss * (0.5 + 0.3 * number) * np.exp(wave)
        frames.append(RUNS.to_frame().assign(domain=domain, source=source, loss=loss))
    table = pd.concat(frames, ignore_index=True)
    return table.assign(**{name: change(table) for name, change in changes.items()})


def split_notes(call=domains, bootstrap=0, rows=lambda table: slice(None), study=None, **changes):
    """Ask for the gains of parts; the test of shared exponents runs without draws."""
    table = long_losses(**changes)
    losses = Endpoints.from_frame(table[rows(table)])
    whole = fit(RUNS, bootstrap=bootstrap) if study is None else study
    return notes_of(call(whole, losses, 1e21, sparsities=0.947))


def grouped(*args, **kwargs):
    return source_groups(*args, groups=2, **kwargs)


def steep_web(table):
    """Make one source fall faster with size, so that it shares no exponents with the whole."""
    return table["loss"] * np.where(table["source"] == "w0", 1 + (table["F"] / 1e8) ** -0.8, 1.0)


def uncertified_parts():
    """Pretend that the derivatives confirm nothing: what is left to see is that the note says so."""
    whole = fit(RUNS, bootstrap=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate, "DECREMENT", -1.0)
        patch.setattr(certificate, "NOISE_FREE", 0.0)
        return split_notes(study=whole)


def of_a_new_run(share, horizons=6):
    """Return the notes of the interval of one new run, where cells hold a share of the noise."""
    runs = simulate(PAPER.surfaces, RUNS.to_frame(), sd=0.006, cell_share=share, seed=2)
    rows = runs.select(np.isin(runs.D, np.unique(runs.D)[-horizons:]))
    law, at = (
        ("power-c", {"C": 1e21}) if horizons == 1 else ("sparse-additive", {"F": 3e9, "S": 0.947, "D": 1e11})
    )
    return notes_of(predict(fit(rows, law, bootstrap=100), at, new_run=True))


def planned(runs, **options):
    """Return the notes of a plan from a study of runs; from published surfaces for None."""
    if runs is None:
        return notes_of(plan(PAPER, design=RUNS, **options))
    return notes_of(plan(fit(runs, bootstrap=0), **options))


def probed(bootstrap=0, **columns):
    """Probe six documents of one cell; some columns replaced."""
    plain = {"probe": "sink", "cell": "c", "doc": list("abcdef"), "position": 9, "value": 0.5}
    return notes_of(probe_report(pd.DataFrame(plain | columns), bootstrap=bootstrap))


TINY = ModelConfig(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=16, d_ff=96)

#: Code -> the least that raises it.
SCENARIOS: dict[str, Callable[[], tuple[Note, ...]]] = {
    "ignored_columns": lambda: read(mood=["good", "bad"]),
    "trimmed_text": lambda: read(arch=[" a", "a "]),
    "unit_converted": lambda: read(D=[20.0, 40.0], units={"D": "B"}),
    "negative_sparsity": lambda: read(S=[-0.01, 0.0]),
    "derived_flops": lambda: read(F=None, N=[1e9, 2e9], flops="6N"),
    "sparsity_absent": lambda: fit(
        Endpoints.from_frame(RUNS.to_frame().drop(columns="S")), bootstrap=0
    ).notes,
    "zero_weight": lambda: fit(changed(weight=(np.arange(144) > 0) + 0.0), bootstrap=0).notes,
    "excluded_tier": lambda: RUNS.exclude_tier(0.846).notes,
    "arch_absent": lambda: read(arch=None),
    "similar_names": lambda: read(arch=["a", "A"]),
    "empty_columns": lambda: read(S=[None, None]),
    "parsed_numbers": lambda: read(D=["20B", "40B"]),
    "decimal_comma": csv_with_commas,
    "derived_tokens": lambda: read(D=None, C=[2e19, 8e19]),
    "not_identified": lambda: fit(RUNS.select(RUNS.tiers == 1), bootstrap=0).all_notes,
    "collinear": lambda: in_parameters(lambda N: 20 * N),
    "ill_conditioned": ladder,
    "at_bound": lambda: one_term_notes(3 * TOKENS**-0.0005, pins={"E": 0.0}),
    "floor_at_zero": lambda: one_term_notes(-0.4 + 30.0 * TOKENS**-0.1),
    "not_certified": stopped_at_the_start,
    "linear_zone": lambda: one_term_notes(NOISY, delta=1e-5),
    "pinned": lambda: ladder(pins={"E": 1.6}),
    "unpaired": lambda: labelled(lambda arch, cell: f"{arch} {cell}"),
    "unmatched_cells": lambda: labelled(
        lambda arch, cell: f"{arch} {cell}" if cell.startswith("100M") else cell
    ),
    "row_resampling": lambda: in_parameters(lambda N: 1e10 * (1 + np.arange(8) % 2)),
    "bootstrap_refused": lambda: fit(power_runs({"a": NAMES[:3]}), "power-c", bootstrap=50).notes,
    "degenerate_draws": lambda: fit(power_runs({"a": NAMES[:7]}), "power-c", bootstrap=600).notes,
    "uncertified_draws": with_an_uncertified_draw,
    "draws_at_bound": lambda: one_term_notes(-0.4 + 30.0 * TOKENS**-0.1, bootstrap=4),
    "interval_coverage": lambda: fit(RUNS, bootstrap=0, delta=float("inf")).notes,
    "sampling_only": lambda: gain_notes(fit(RUNS, bootstrap=64)),
    "default_reference": lambda: gain_notes(PAPER),
    "extrapolated": lambda: gain_notes(PAPER, 1e26),
    "far_extrapolated": lambda: gain_notes(PAPER, 1e27),
    "estimator_range": lambda: gain_notes(fit(RUNS, bootstrap=0, starts=4), sensitivity=True),
    "choices_without_gain": lambda: gain_notes(fit(RUNS, bootstrap=0, starts=4, pins={"a": 0.38}), sensitivity=True),
    "levels_joined": lambda: notes_of(rollout(budgets_run(20))),
    "no_headline": lambda: notes_of(rollout(budgets_run(8))),
    "one_step_influence": lambda: notes_of(row_influence(budgets_run(401))),
    "frontier_outside_design": overtrained,
    "unreachable": lambda: gain_notes(PAPER, 1e29, target="baseline", reference="smelt"),
    "turnover": lambda: gain_notes(PAPER),
    "flops_per_param": lambda: in_parameters(lambda N: 1e10 * (1 + np.arange(8) % 2)),
    "flops_mismatch": lambda: fit(
        Endpoints.from_frame(table(N=[1e9, 2e9], F=[9e9, 1.8e10])), "E + A*N**-0.3", bootstrap=0
    ).notes,
    "support_unknown": lambda: notes_of(allocate(load_paper("chinchilla"), 1e21)),
    "rounded_coefficients": lambda: gain_notes(PAPER),
    "noise_equivalent_gain": lambda: gain_notes(fit(changed(D=np.repeat(RUNS.D[::2], 2)), bootstrap=0)),
    "not_distinguishable": lambda: gain_notes(fit(RUNS, bootstrap=64), 3e19),
    "forced_comparison": lambda: gain_notes(fit(changed(tokenizer=RUNS.arch), bootstrap=0), force=True),
    "no_time_multiplier": lambda: gain_notes(fit(changed(tokens_per_s=4e14 / RUNS.F), bootstrap=0), 1e23),
    "unfair_budget": lambda: gain_notes(fit(changed(kv=1.0 + (RUNS.arch == "smelt")), bootstrap=0)),
    "unaudited_budgets": lambda: notes_of(design_report(changed(cell=RUNS["run"]))),
    "recounted_flops": lambda: notes_of(design_report(changed(C=RUNS.C * (1 + 0.03 * (RUNS.arch == "smelt"))))),
    "no_interval": lambda: gain_notes(fit(RUNS, bootstrap=0)),
    "stale_study": lambda: opened_after(lambda runs: runs.write_text("arch,F\n")),
    "input_missing": lambda: opened_after(Path.unlink),
    "not_recomputed": lambda: notes_of(reproduce(PAPER)),
    "new_run": lambda: of_a_new_run(0.5),
    "noise_not_split": lambda: of_a_new_run(0.5, horizons=1),
    "no_cell_effect": lambda: of_a_new_run(0.0),
    "default_budgets": lambda: budgets_or_default([], PAPER)[1],
    "nonfinite": lambda: read(loss=[3.0, np.inf]),
    "diverged": lambda: read(**THREE | {"loss": [3.0, 2.5, np.nan], "run": ["r", "s", "s"]}),
    "unfinished": lambda: read(status=["finished", "crashed"]),
    "provisional": lambda: read(status=["finished", "crashed"], include_unfinished=True),
    "not_annealed": lambda: read(phase=["decay", "stable"]),
    "duplicate_rows": lambda: read(**THREE | {"D": [1e10] * 3, "loss": [3.0, 3.0, 3.0]}),
    "conflicting_rows": lambda: read(**THREE | {"D": [1e10] * 3, "loss": [3.0, 3.01, 3.0]}),
    "repeats": lambda: read(F=[1e9, 1e9], D=[1e10, 1e10], loss=[3.0, 3.01]),
    "high_loss": lambda: read(loss=[13.0, 9.0]),
    "mixed_units": lambda: read(S=[0.9, 86.0], units={"S": "percent"}),
    "flops_convention": lambda: read(N=[3e8, 7e8]),
    "active_parameters": lambda: read(S=[0.9, 0.9], N_act=[1e9, 3e9]),
    "repeated_data": lambda: read(unique_tokens=[1e9, 1e9]),
    "tokens_per_step": lambda: read(**THREE | {"step": [1e4, 2e4, 1e6]}),
    "outlier": lambda: fit(changed(loss=RUNS.loss * np.where(np.arange(144) == 7, 1.5, 1.0)), bootstrap=0).all_notes,
    "dropped_outliers": lambda: fit(
        changed(loss=RUNS.loss * np.where(np.arange(144) == 7, 1.5, 1.0)), bootstrap=0, drop_outliers=True
    ).all_notes,
    "dense_tier": lambda: fit(changed(S=np.where(RUNS.tiers == 0, 0.0, RUNS.S)), bootstrap=0).all_notes,
    "parameter_count": lambda: fit(RUNS, "chinchilla", bootstrap=0).all_notes,
    "effective_tokens": lambda: fit(changed(unique_tokens=RUNS.D / 2), bootstrap=0, data_law="repeated").notes,
    "low_precision": lambda: fit(changed(loss=np.round(RUNS.loss, 2)), bootstrap=0).all_notes,
    "seed_noise": lambda: fit(changed(D=np.repeat(RUNS.D[::2], 2)), bootstrap=0).all_notes,
    "incomparable_losses": lambda: fit(changed(tokenizer=RUNS.arch), bootstrap=0).notes,
    "missing_scores": lambda: scored(score=np.where(np.arange(144) == 5, np.nan, 0.5 - RUNS.loss / 10)),
    "inverse_scores": lambda: scored(score=RUNS.loss / 10),
    "early_scores": lambda: scored(step=np.full(144, 9.0), value_step=np.full(144, 8.0)),
    "few_cells": lambda: scored(cell=np.where(RUNS.F < 1.5e9, "small", "large"), D=np.arange(144.0) + 1),
    "no_chance": lambda: scored(),
    "outside_calibration": lambda: scored(),
    "weak_asymptotes": lambda: scored(score=np.exp(-RUNS.loss)),
    "calibration_at_bound": lambda: scored(score=np.exp(-RUNS.loss)),
    "flat_calibration": lambda: scored(score=RUNS.loss / 10),
    "curves_unconverged": lambda: stopped_curves(),
    "sigmoid_misfit": lambda: scored(score=0.5 - RUNS.loss / 10 + 0.2 * (RUNS.loss < 2.1) + 0.2 * (RUNS.loss < 1.8)),
    "ties": lambda: scored(score=np.round(0.5 - RUNS.loss / 10, 2)),
    "averaged_repeats": lambda: scored(D=np.repeat(RUNS.D[::2], 2), run=[f"r{i}" for i in range(144)]),
    "unpaired_rows": lambda: notes_of(shot_gaps(scores() + [{**scores()[0], "task": "z"}])),
    "too_few_units": lambda: notes_of(length_gains(buckets()[:2])),
    "incomplete_buckets": lambda: notes_of(length_gains(buckets()[:-1])),
    "few_draws": lambda: notes_of(shot_gaps(scores(), bootstrap=10)),
    "uneven_items": lambda: notes_of(shot_gaps([{**row, "n_items": 9 + j} for j, row in enumerate(scores())])),
    "mixed_signs": lambda: notes_of(length_gains(buckets(short=0.02, long=-0.01))),
    "unbounded_ratio": lambda: notes_of(length_gains(buckets(short=0.0))),
    "undefined_ratios": lambda: notes_of(length_gains(buckets(short=0.0) + buckets(contrast="other"))),
    "incomplete_tasks": lambda: notes_of(shot_gaps(scores()[:-2], drop_incomplete=True)),
    "items_unknown": lambda: notes_of(shot_gaps(scores(n_items=None))),
    "score_floor": lambda: notes_of(shot_gaps([{**row, "score": 0.0} for row in scores()])),
    "noise_assumed": lambda: planned(None, noise=0.005, icc=0.5),
    "unmeasured_candidates": lambda: planned(RUNS, extend=2.0),
    "weights_ignored": lambda: planned(changed(weight=1.0 + np.arange(144) % 2)),
    "other_design": lambda: planned(RUNS, design=RUNS),
    "fund_left": lambda: planned(RUNS, fund=1e15),
    "default_level": lambda: notes_of(compare_levels(levels(2.0, 1.9))),
    "noise_unknown": lambda: notes_of(compare_levels(levels(2.0, 1.9))),
    "unresolved_best": lambda: notes_of(compare_levels(levels(2.0, 1.9), noise=0.1)),
    "noise_disagrees": lambda: notes_of(compare_levels(seeds(), noise=1e-4)),
    "tied_best": lambda: notes_of(compare_levels(levels(2.0, 1.9, 1.9))),
    "metrics_disagree": lambda: notes_of(
        compare_levels(levels(2.0, 1.9, metric="loss") + levels(3.0, 3.1, metric="nll"))
    ),
    "unmatched_budgets": lambda: notes_of(
        compare_levels([{**row, "flops_ratio": 1.0 + j} for j, row in enumerate(levels(2.0, 1.9))])
    ),
    "no_replicates": lambda: notes_of(
        compare_levels([{**row, "seed": j} for j, row in enumerate(levels(2.0, 1.9) + levels(2.01))])
    ),
    "shared_exponents": split_notes,
    "missing_losses": lambda: split_notes(rows=lambda t: slice(1, None)),
    "unmatched_losses": lambda: split_notes(
        study=fit(RUNS.select(RUNS.D.min() < RUNS.D), bootstrap=0)
    ),
    "part_at_zero": lambda: split_notes(loss=lambda t: np.where(t["source"] == "w0", 2.0, t["loss"])),
    "part_unidentified": lambda: split_notes(rows=lambda t: (t["source"] != "w0") | (t["cell"] == t["cell"].iloc[0])),
    "undefined_draws": lambda: split_notes(
        bootstrap=64, rows=lambda t: (t["source"] != "w0") | (t["scale"] == "200M")
    ),
    "parts_uncertified": uncertified_parts,
    "sharing_doubtful": lambda: split_notes(loss=steep_web),
    "single_source": split_notes,
    "residual_correlation": split_notes,
    "sorted_on_estimates": lambda: split_notes(grouped),
    "tied_sources": lambda: split_notes(grouped, loss=lambda t: RUNS.loss[np.arange(len(t)) % len(RUNS)]),
    "undefined_values": lambda: probed(value=[0.5] * 5 + [np.nan]),
    "unnormalised_attention": lambda: probed(unnormalised=[0, 0, 0, 0, 0, 2]),
    "certain_rows": lambda: probed(position=[0, 1, 2, 3, 4, 5]),
    "scale_unstated": lambda: probed(probe="write_norm"),
    "mixed_scale": lambda: probed(probe="write_norm", scaled=["yes"] * 3 + ["no"] * 3),
    "few_probed_cells": probed,
    "empty_draws": lambda: probed(100, control=[0.2] + [np.nan] * 5),
    "few_documents": lambda: probed(doc="a", position=[1, 2, 3, 4, 5, 6]),
    "broken_order": lambda: probed(probe="attention_cosine", part=["V"] * 3 + ["input"] * 3),
    "simulated": lambda: simulate(PAPER.surfaces, RUNS.to_frame().drop(columns=["loss", "source"]), sd=0.0).notes,
    "not_counted": lambda: from_huggingface(
        {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 8, "vocab_size": 9,
         "audio_config": {"hidden_size": 8}}
    )[1],
    "inferred_dimensions": lambda: open_model("smelt:baseline/200M/95%").notes,
    "sequence_length": lambda: notes_of(flops_report(NamedModel(name="tiny", config=TINY))),
    "long_documents": lambda: notes_of(
        flops_report(NamedModel(name="tiny", config=TINY), documents=Lengths.of(8192))
    ),
    "no_vocabulary": lambda: notes_of(flops_report(NamedModel(name="tiny", config=TINY))),
    "no_match": lambda: notes_of(match_budgets("smelt:baseline/100M/0%")),
}  # fmt: skip


def scored(**columns):
    """Return the notes of a comparison of scores that fall with the loss, with some columns replaced."""
    frame = RUNS.to_frame()[["arch", "cell", "scale", "D", "loss"]]
    frame = frame.assign(metric="m", score=1 / (1 + np.exp(6 * (RUNS.loss - 1.9)))).assign(**columns)
    return notes_of(downstream(Scores.from_frame(frame), target="smelt", reference="baseline", bootstrap=40))


def stopped_curves():
    """Stop every fit of a curve after one iteration."""
    from smelt_scaling.analyses.calibration import sigmoid

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sigmoid, "ITERATIONS", 1)
        return scored()


def buckets(short=0.02, long=0.03, contrast="x"):
    """Return losses of four cells in two length buckets; cells differ, so that a mean has an error."""
    return [
        {"contrast": contrast, "cell": cell, "bucket": bucket, "loss_ref": 3.0, "loss_new": 3.0 - gain - luck}
        for cell, luck in (("a", 0.002), ("b", -0.001), ("c", 0.001), ("d", -0.002))
        for bucket, gain in ((256, short), (512, long))
    ]


def scores(n_items=100):
    """Return scores of two architectures on two tasks at two numbers of examples."""
    known = {} if n_items is None else {"n_items": n_items}
    return [
        {"arch": arch, "task": task, "k": k, "score": 0.3 + 0.1 * (arch == "b"), **known}
        for task in ("x", "y")
        for k in (0, 1)
        for arch in ("a", "b")
    ]


def levels(*values, **more):
    """Return one run of each level."""
    return [{"level": f"l{j}", "value": value, **more} for j, value in enumerate(values)]


def seeds():
    """Return two runs of each of two levels, which scatter by 0.007."""
    return [{**row, "seed": j} for j in (0, 1) for row in levels(2.0 + 0.01 * j, 1.9 + 0.01 * j)]


def asked_of_three_labels():
    """Predict from a study whose bootstrap was refused for its few labels."""
    few = fit(power_runs({"a": NAMES[:3]}), "power-c", bootstrap=50)
    return notes_of(predict(few, {"C": 1e19}, interval="jackknife-t"))


#: Code -> its scenario after the remedy that the note's explanation names.
REMEDIED: dict[str, Callable[[], tuple[Note, ...]]] = {
    "ignored_columns": lambda: read(mood=["good", "bad"], mapping={"domain": "mood"}),
    "negative_sparsity": lambda: read(S=[0.0, 0.0]),
    "derived_flops": lambda: read(F=None, N=[1e9, 2e9], flops_seen=[6e9, 1.2e10], mapping={"F": "flops_seen"}),
    "sparsity_absent": lambda: fit(
        Endpoints.from_frame(RUNS.to_frame().drop(columns="S")), "additive", bootstrap=0
    ).notes,
    "arch_absent": lambda: read(arch=None, model=["a", "b"], mapping={"arch": "model"}),
    "similar_names": lambda: read(arch=["a", "a"]),
    "diverged": lambda: read(
        **THREE | {"loss": [3.0, 2.5, np.nan], "run": ["r", "s", "s"], "phase": ["decay"] * 3}
    ),
    "unfinished": lambda: read(status=["finished", "finished"]),
    "not_annealed": lambda: read(phase=["decay", "decay"]),
    "duplicate_rows": lambda: read(**THREE | {"D": [1e10] * 3, "loss": [3.0] * 3, "run": ["r", "s", "t"]}),
    "repeats": lambda: read(F=[1e9, 1e9], D=[1e10, 1e10], loss=[3.0, 3.01], seed=["0", "1"]),
    "high_loss": lambda: read(loss=[13.0, 9.0], units={"loss": "nats"}),
    "mixed_units": lambda: read(S=[90.0, 86.0], units={"S": "percent"}),
    "flops_convention": lambda: read(N=[3e8, 7e8], flops="6N"),
    "active_parameters": lambda: read(S=[0.9, 0.9], N_act=[1e9, 3e9], flops="6N"),
    "not_identified": lambda: fit(RUNS.select(RUNS.tiers == 1), "additive", bootstrap=0).all_notes,
    "collinear": lambda: in_parameters(lambda N: 20 * N * (1 + np.arange(8) % 2)),
    "floor_at_zero": lambda: one_term_notes(-0.4 + 30.0 * TOKENS**-0.1, pins={"E": 0.5}),
    "not_certified": lambda: fit_architecture(
        "smelt", RUNS.by_arch()["smelt"], get_law("sparse-additive"), FitSettings(starts="thorough"), n_cells=12
    ).result.notes,
    "linear_zone": lambda: one_term_notes(NOISY, delta="auto"),
    "outlier": lambda: fit(
        changed(
            loss=RUNS.loss * np.where(np.arange(144) == 7, 1.5, 1.0), weight=(np.arange(144) != 7) + 0.0
        ),
        bootstrap=0,
    ).all_notes,
    "incomparable_losses": lambda: fit(changed(tokenizer=np.array(["bpe"] * 144)), bootstrap=0).notes,
    "unpaired": lambda: labelled(lambda arch, cell: cell),
    "interval_coverage": lambda: fit(RUNS, bootstrap=0, delta=1e-3).notes,
    "default_reference": lambda: gain_notes(PAPER, target="smelt", reference="baseline"),
    "extrapolated": lambda: gain_notes(PAPER, 1e21),
    "far_extrapolated": lambda: gain_notes(PAPER, 1e21),
    "choices_without_gain": lambda: gain_notes(fit(RUNS, bootstrap=0, starts=4), sensitivity=True),
    "levels_joined": lambda: notes_of(rollout(budgets_run(8))),
    "no_headline": lambda: notes_of(rollout(fit(RUNS, bootstrap=0, starts=4))),
    "unreachable": lambda: gain_notes(PAPER, 1e21, target="baseline", reference="smelt"),
    "flops_mismatch": lambda: fit(
        Endpoints.from_frame(table(N=[1e9, 2e9], F=[9e9, 1.8e10])), "E + A*N**-0.3", bootstrap=0, flops_per_param=9
    ).notes,
    "sorted_on_estimates": lambda: split_notes(partial(grouped, split_sample=True)),
    "scale_unstated": lambda: probed(probe="write_norm", scaled="no"),
    "mixed_scale": lambda: probed(probe="write_norm", scaled="yes"),
    "few_probed_cells": lambda: probed(cell=list("abcdef")),
    "few_documents": probed,
    "empty_draws": lambda: probed(100, control=0.2),
    "no_interval": asked_of_three_labels,
    "no_chance": lambda: scored(chance=np.full(144, 0.0)),
    "few_cells": lambda: scored(),
    "flat_calibration": lambda: notes_of(
        downstream(
            Scores.from_frame(
                RUNS.to_frame()[["arch", "cell", "D", "loss"]].assign(metric="m", score=RUNS.loss / 10),
                lower_better=["m"],
            ),
            bootstrap=0,
        )
    ),
    "averaged_repeats": lambda: scored(),
    "noise_not_split": lambda: of_a_new_run(0.5),
    "no_cell_effect": lambda: of_a_new_run(0.9),
    "row_resampling": lambda: fit(
        Endpoints.from_frame(RUNS.to_frame().drop(columns=["cell", "scale", "trunk"]).assign(trial_id=RUNS["cell"])),
        bootstrap=50,
    ).notes,
    "inverse_scores": lambda: scored(),
    "default_budgets": lambda: budgets_or_default([1e21], PAPER)[1],
    "unpaired_rows": lambda: notes_of(shot_gaps(scores())),
    "too_few_units": lambda: notes_of(length_gains(buckets())),
    "unbounded_ratio": lambda: notes_of(length_gains(buckets())),
    "undefined_ratios": lambda: notes_of(length_gains(buckets() + buckets(contrast="other"))),
    "incomplete_tasks": lambda: notes_of(shot_gaps(scores()[:-2], shots=[0], drop_incomplete=True)),
    "items_unknown": lambda: notes_of(shot_gaps(scores())),
    "noise_assumed": lambda: planned(None, noise=0.005, icc=0.5, pair_correlation=0.3),
    "unmeasured_candidates": lambda: planned(RUNS),
    "fund_left": lambda: planned(RUNS, fund=1e21),
    "few_draws": lambda: notes_of(shot_gaps(scores(), bootstrap=100)),
    "uneven_items": lambda: notes_of(shot_gaps(scores())),
    "default_level": lambda: notes_of(compare_levels(levels(2.0, 1.9), against="l0")),
    "noise_unknown": lambda: notes_of(compare_levels(levels(2.0, 1.9), noise=0.1)),
    "unresolved_best": lambda: notes_of(compare_levels(levels(2.0, 1.9), noise=0.001)),
    "noise_disagrees": lambda: notes_of(compare_levels(seeds())),
}  # fmt: skip


@pytest.mark.parametrize("code", REMEDIED)
def test_the_remedy_of_a_note_takes_it_away(code):
    assert code not in {note.code for note in REMEDIED[code]()}


@pytest.mark.parametrize("code", SCENARIOS)
def test_every_note_is_raised_by_its_scenario(code):
    notes = SCENARIOS[code]()
    (first, *_) = [note for note in notes if note.code == code] or pytest.fail(
        f"{code} is not among {[note.code for note in notes]}"
    )
    assert first.count >= 1
    assert "\n" not in first.message
    assert first.severity in NOTE_CODES[code].severity.split(" or ")


def test_every_code_has_a_scenario():
    """The stages of logs have the same test in test_guards_logs.py; the two cover every code."""
    of_logs = {*STAGES["Reading logs"], *STAGES["Logs that are tables"]}
    assert sorted(SCENARIOS) == sorted(set(NOTE_CODES) - of_logs)


def test_a_plain_study_raises_no_warning_but_that_it_is_simulated(study):
    """The scenarios above would say nothing if every study raised every note."""
    warnings = {note.code for note in study.all_notes if note.severity == "warning"}
    assert warnings == {"simulated"}
    assert {note.code for note in study.all_notes} <= {"simulated", "draws_at_bound"}
    assert run.DEGENERATE_LIMIT < 0.05
