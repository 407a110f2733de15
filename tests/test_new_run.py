"""The interval of one new run: its parts, what it refuses, and how often it contains a run that is made."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from smelt_scaling import (
    Endpoints,
    FrontierError,
    Surface,
    UsageError,
    example_endpoints,
    fit,
    load_paper,
    notes_of,
    predict,
)
from smelt_scaling.analyses.diagnostics import noise_anatomy
from smelt_scaling.cli import run
from smelt_scaling.reporting import show_table
from smelt_scaling.synth import simulate

RUNS = example_endpoints()
PAPER = load_paper("smelt")
AT = {"F": 3e9, "D": 1e11, "S": 0.947}


@pytest.fixture(scope="module")
def study():
    return fit(RUNS, bootstrap=400)


def still(study, draws=4000):
    """Return a study whose draws are its point fits, so that only the noise of a run is left."""
    held = {
        arch: replace(
            own,
            surface=Surface(law=study.law, coef=np.tile(study[arch].surface.coef, (draws, 1))),
            certified=np.ones(draws, dtype=bool),
            degenerate=np.zeros(draws, dtype=bool),
            improved=np.zeros(draws, dtype=bool),
            at_bound=np.zeros((draws, 6), dtype=bool),
            objective=np.zeros(draws),
            counts=np.ones((draws, 12), dtype=np.int16),
        )
        for arch, own in study.draws.items()
    }
    return replace(study, draws=held)


def test_noise_has_the_spread_of_a_cell_effect_and_of_run_noise(study):
    """ln(loss) is normal with variance between + within: ends at 1.96 sd, to 4 % with 4000 draws."""
    parts = noise_anatomy(study)
    table = predict(still(study), AT, new_run=True)
    for row, noise in zip(table.to_dict("records"), parts.to_dict("records"), strict=True):
        sd = np.hypot(noise["sd_between"], noise["sd_within"])
        for end, sign in (("lo", -1), ("hi", 1)):
            assert np.log(row[f"loss_run_{end}"] / row["loss"]) == pytest.approx(sign * 1.96 * sd, rel=0.06)
        assert row["loss_lo"] == row["loss_hi"] == pytest.approx(row["loss"], rel=1e-12)


def test_a_new_run_scatters_more_than_the_surface_and_changes_nothing_else(study):
    plain, run = predict(study, AT), predict(study, AT, new_run=True)
    for name in plain.columns:
        assert plain[name].tolist() == run[name].tolist()
    assert (run["loss_run_lo"] < run["loss_lo"]).all()
    assert (run["loss_run_hi"] > run["loss_hi"]).all()
    assert run.columns.tolist()[4:9] == ["loss", "loss_lo", "loss_hi", "loss_run_lo", "loss_run_hi"]
    notes = [note for note in notes_of(run) if note.code == "new_run"]
    assert len(notes) == 2
    assert "0.003 by its cell, 0.0035 within (12 cell labels)" in notes[1].message
    assert "one new run" in show_table(run)


def test_the_command_gives_what_the_library_gives(study, tmp_path, capsys):
    study.save(tmp_path / "study")
    argv = ["predict", "--study", str(tmp_path / "study"), "--at", "F=3e9,D=1e11,S=.947", "--new-run"]
    assert run([*argv, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    for name in ("loss_run_lo", "loss", "loss_run_hi"):
        assert [row[name] for row in rows] == predict(study, AT, new_run=True)[name].tolist()
    assert run([*argv, "--interval", "jackknife-t"]) == 2
    assert run(["predict", "--published", "smelt", "--at", "F=3e9,D=1e11,S=.947", "--new-run"]) == 4


def test_one_point_does_not_depend_on_the_others(study):
    alone = predict(study, AT, new_run=True, archs="smelt")
    among = predict(study, {**AT, "D": [2e11, 1e11]}, new_run=True)
    again = among[(among["arch"] == "smelt") & (among["D"] == 1e11)]
    assert alone["loss_run_lo"].tolist() == again["loss_run_lo"].tolist()
    shuffled = fit(Endpoints.from_frame(RUNS.to_frame().sample(frac=1.0, random_state=0)), bootstrap=400)
    assert predict(shuffled, AT, new_run=True).to_json() == predict(study, AT, new_run=True).to_json()


def test_without_draws_or_with_a_t_interval_it_refuses(study):
    with pytest.raises(FrontierError, match="there are no draws .no replicates were asked for"):
        predict(fit(RUNS, bootstrap=0), AT, new_run=True)
    with pytest.raises(FrontierError, match="published coefficients come without draws"):
        predict(PAPER, AT, new_run=True)
    with pytest.raises(UsageError, match="--new-run with --interval jackknife-t"):
        predict(study, AT, new_run=True, interval="jackknife-t")
    few = RUNS.select(np.isin(RUNS["cell"], np.unique(RUNS["cell"])[:4]))
    with pytest.raises(FrontierError, match="4 cell labels of at least 5"):
        predict(still_of_few(few), {"C": 1e20}, new_run=True)


def still_of_few(rows):
    """Return a study of few cells that has draws nevertheless, as a saved one may."""
    whole = fit(rows, "power-c", bootstrap=0)
    return replace(whole, draws=whole.jackknife)


def test_cells_that_hold_one_run_each_are_not_split_and_it_is_said():
    last = RUNS.select(RUNS.D.max() == RUNS.D)
    study = fit(last, "power-c", bootstrap=60)
    table = predict(study, {"C": 1e21}, new_run=True)
    (first, _) = [note for note in notes_of(table) if note.code == "noise_not_split"]
    assert "no cell was run twice" in first.message
    # the residual standard deviation with n - 3 degrees of freedom
    E, A, a = study["smelt"].surface.coef
    own = last.by_arch()["smelt"]
    residual = np.log(own.loss / (E + A * own.C**-a))
    (said,) = [
        note for note in notes_of(table) if note.code == "new_run" and note.message.startswith("smelt")
    ]
    J = (
        np.stack([np.ones(12), own.C**-a, -A * own.C**-a * np.log(own.C)], axis=1)
        / (E + A * own.C**-a)[:, None]
    )
    rest = residual - J @ np.linalg.lstsq(J, residual, rcond=None)[0]
    assert f"{np.sqrt(rest @ rest / 9):.2g} in all" in said.message


def test_cells_that_do_not_differ_are_said_to_be_taken_so():
    runs = simulate(PAPER.surfaces, RUNS.to_frame(), sd=0.006, cell_share=0.0, seed=2)
    codes = {note.code for note in notes_of(predict(fit(runs, bootstrap=100), AT, new_run=True))}
    assert "no_cell_effect" in codes


def test_wild_draws_carry_a_new_run_as_well():
    study = fit(RUNS, bootstrap=200, wild=True)
    table = predict(study, AT, new_run=True, interval="wild-cr3")
    assert (table["loss_run_hi"] > table["loss_hi"]).all()


def test_a_run_that_is_made_lies_in_its_interval_and_often_outside_the_surfaces():
    """24 worlds of the example's baseline with 80 % of the variance between cells, and a run of a cell of its own.

    The whole measurement is a benchmark; here the counts may not contradict 93 % and 70 % at one in a thousand.
    """
    design = RUNS.by_arch()["baseline"].to_frame()
    rng = np.random.default_rng(0)
    inside = {"loss": 0, "loss_run": 0}
    for seed in range(24):
        runs = simulate(PAPER.surfaces, design, sd=0.00578, cell_share=0.8, seed=seed)
        row = predict(fit(runs, bootstrap=100, seed=seed, starts=8), AT, new_run=True).iloc[0]
        made = float(PAPER.surfaces["baseline"].loss(**AT)) + 0.00578 * rng.standard_normal()
        for name in inside:
            inside[name] += bool(row[f"{name}_lo"] <= made <= row[f"{name}_hi"])
    assert inside["loss_run"] >= binom.ppf(0.001, 24, 0.93)
    assert inside["loss"] <= binom.ppf(0.999, 24, 0.7)
