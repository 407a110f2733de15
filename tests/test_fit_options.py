"""Options of reading and fitting for tables that are unfinished, ragged, repeated or have outlying runs.

The number in a test's name is that of the case in the project's list of inputs; letters mark its kin.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from smelt_scaling import (
    Endpoints,
    Study,
    allocate,
    ce_gain,
    example_endpoints,
    fit,
    load_study,
    parameter_conventions,
    predict,
    show_table,
)
from smelt_scaling.cli import run
from smelt_scaling.errors import DataError, Note, UsageError
from smelt_scaling.fitting import FitSettings, fit_screened
from smelt_scaling.laws import REPEAT_CONSTANT, effective_amount, get_law
from smelt_scaling.laws.repeated import REPEAT_CONSTANT_PARAMETERS
from smelt_scaling.reporting import render_study

RUNS = example_endpoints()
FRAME = RUNS.to_frame().drop(columns="source")


def read(frame: Any, **options: Any) -> Endpoints:
    return Endpoints.from_frame(frame, source="runs.csv", **options)


def note(notes: Any, code: str) -> Note:
    (found,) = [one for one in notes if one.code == code]
    return found


def tables_of(study: Study) -> list[str]:
    """Every table that is made from a study, as text, markdown and LaTeX."""
    frames = [ce_gain(study, 1e21), allocate(study, 1e21), predict(study, {"F": 1e9, "S": 0.9, "D": 1e11})]
    return [study.summary()] + [
        text
        for form in ("table", "md", "latex")
        for text in (*(show_table(frame, form) for frame in frames), render_study(study, form))
    ]


# ---------------------------------------------------------------------- unfinished runs


def unfinished(horizons: int) -> pd.DataFrame:
    """The example with the last horizons of one cell of each architecture still running."""
    last = np.sort(FRAME["D"].unique())[-horizons:]
    return FRAME.assign(
        status=np.where((FRAME["cell"] == "1.6B/97%") & FRAME["D"].isin(last), "running", "finished")
    )


@pytest.mark.parametrize(
    ("horizons", "said"), [(6, "2/24 cells missing ("), (2, "2/24 cells with unfinished runs left out (")]
)
def test_case_16a_what_is_made_without_unfinished_runs_is_provisional(horizons: int, said: str) -> None:
    study = fit(read(unfinished(horizons)), bootstrap=0)
    assert len(study.endpoints) == 144 - 2 * horizons
    message = note(study.notes, "provisional").message
    assert f"PROVISIONAL: {said}1.6B/97% of baseline, 1.6B/97% of smelt)" in message
    for text in tables_of(study):
        assert text.count("PROVISIONAL") == 1, text


def test_case_16b_unfinished_runs_are_kept_on_request() -> None:
    endpoints = read(unfinished(2), include_unfinished=True)
    found = note(endpoints.notes, "provisional")
    assert (len(endpoints), found.count, found.severity) == (144, 4, "warning")
    assert "4 rows" in found.message
    assert "(running) kept" in found.message
    for text in tables_of(fit(endpoints, bootstrap=0)):
        assert text.count("PROVISIONAL") == 1, text
    assert "provisional" not in {one.code for one in read(FRAME.assign(status="done")).notes}


def test_case_16d_cells_that_are_lost_beside_unfinished_runs_that_are_kept() -> None:
    """Whoever keeps unfinished runs is still told which cells have no finite loss at all."""
    frame = unfinished(2)
    frame.loc[frame["cell"] == "100M/85%", "loss"] = np.nan
    said = note(read(frame, include_unfinished=True).notes, "provisional")
    assert "4 rows" in said.message
    assert (
        "(--include-unfinished); 2/24 cells missing (100M/85% of baseline, 100M/85% of smelt)" in said.message
    )
    assert said.count == 4 + 2


def test_case_16c_the_command_line_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    unfinished(2).to_csv("runs.csv", index=False)
    for options, rows, said in (
        ([], 140, "with unfinished runs left out"),
        (["--include-unfinished"], 144, "kept as if they were endpoints"),
    ):
        assert run(["check", "runs.csv", *options]) == 0
        assert "PROVISIONAL" in capsys.readouterr().out
        assert run(["check", "runs.csv", "--format", "json", *options]) == 0
        record = json.loads(capsys.readouterr().out)
        assert sum(row["endpoints"] for row in record["rows"]) == rows
        assert run(["fit", "runs.csv", "--bootstrap", "0", *options]) == 0
        assert said in " ".join(capsys.readouterr().out.split())
        assert run(["ce-gain", "-b", "1e21"]) == 0
        assert "PROVISIONAL" in capsys.readouterr().out


# ---------------------------------------------------------------------- ragged cells

RAGGED = (FRAME["cell"] != "600M/95%") | (FRAME["D"] == FRAME["D"].min())


def total_of_cells(frame: pd.DataFrame) -> Any:
    return frame.groupby(["arch", "cell"])["weight"].transform("sum")


def test_case_23b_equal_cells_are_a_weight_column() -> None:
    """The weights written out by hand give the same fit.

    Sums differ in their last bits; a fit is certified to a decrement of 1e-12, a step of 1e-6 in the coefficients.
    """
    frame = FRAME[RAGGED].assign(weight=1.0)
    study = fit(read(FRAME[RAGGED]), bootstrap=40, seed=1, cell_weights="equal")
    # 67 rows in 12 cells of each architecture
    by_hand = fit(read(frame.assign(weight=67 / 12 / total_of_cells(frame))), bootstrap=40, seed=1)
    for arch, one in by_hand.fits.items():
        assert study[arch].surface.coef == pytest.approx(one.surface.coef, rel=1e-6)
        assert study[arch].objective == pytest.approx(one.objective, rel=1e-9)
        assert study[arch].rmse == pytest.approx(one.rmse, rel=1e-9)
        assert study.draws[arch].surface.coef == pytest.approx(by_hand.draws[arch].surface.coef, rel=1e-6)  # type: ignore[index]
    plain = fit(read(FRAME[RAGGED]), bootstrap=0)
    assert plain["smelt"].surface.coefficients != study["smelt"].surface.coefficients


def test_case_23c_equal_cells_keep_the_proportions_of_a_weight_column() -> None:
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(FRAME))
    frame = FRAME.assign(weight=weight)[RAGGED]
    study = fit(read(frame), bootstrap=0, cell_weights="equal")
    total = frame.groupby("arch")["weight"].transform("sum")
    by_hand = fit(
        read(frame.assign(weight=frame["weight"] / total_of_cells(frame) * total / 12)), bootstrap=0
    )
    for arch, one in by_hand.fits.items():
        assert study[arch].surface.coef == pytest.approx(one.surface.coef, rel=1e-6)


def test_case_23f_notes_on_the_noise_name_the_rmse_of_the_fit() -> None:
    """One RMSE: the weighted one that the fit reports, not that of rows which count less."""
    runs = pd.concat([FRAME, FRAME[:1].assign(loss=FRAME["loss"][0] + 0.2, seed="another")])
    study = fit(read(runs.assign(weight=[1.0] * len(FRAME) + [1e-6])), bootstrap=0)
    said = note(study["baseline"].notes, "seed_noise").message
    assert f"RMSE of the fit: {study['baseline'].rmse:.2g})" in said


def test_case_23g_every_draw_of_a_unit_weighs_the_same() -> None:
    """A replicate is the fit to a table in which each draw of a cell is a cell of its own."""
    rng = np.random.default_rng(0)
    ragged = read(
        FRAME[(FRAME["arch"] == "smelt") & (rng.random(len(FRAME)) < 0.7)].drop(columns=["run", "trunk"])
    )
    draws = fit(ragged, bootstrap=20, seed=1, cell_weights="equal").draws["smelt"]  # type: ignore[index]
    frame = ragged.to_frame()
    drawn = [
        frame[frame["cell"] == label].assign(cell=f"{label} {copy}")
        for label, count in zip(draws.labels, draws.counts[0], strict=True)
        for copy in range(count)
    ]
    written_out = fit(read(pd.concat(drawn)), bootstrap=0, cell_weights="equal")["smelt"].surface
    # flat directions: objectives agree to 1e-9, coefficients to its root over the condition number
    assert written_out.coef == pytest.approx(draws.surface.coef[0], rel=1e-3)
    at = {"F": frame["F"].to_numpy(), "S": frame["S"].to_numpy(), "D": frame["D"].to_numpy()}
    assert written_out.loss(**at) == pytest.approx(draws.surface.loss(**at)[0], rel=1e-6)


def test_case_23d_counts_per_cell_are_printed(tmp_path: Path) -> None:
    study = fit(read(FRAME[RAGGED]), bootstrap=0, cell_weights="equal")
    said = " ".join(study.summary().split())
    assert (
        "endpoints per cell: baseline 1 in 600M/95%, 6 in each of 11; smelt 1 in 600M/95%, 6 in each of 11"
        in said
    )
    assert "(every cell has the same total weight)" in said
    ragged = " ".join(fit(read(FRAME[RAGGED]), bootstrap=0).summary().split())
    assert "endpoints per cell: baseline 1 in" in ragged
    assert "same total weight" not in ragged
    assert "endpoints per" not in fit(RUNS, bootstrap=0).summary()
    study.save(tmp_path / "study")
    assert load_study(tmp_path / "study").settings.cell_weights == "equal"
    with pytest.raises(UsageError, match="cell_weights 'even' is unknown; choose from rows, equal"):
        fit(RUNS, bootstrap=0, cell_weights="even")  # type: ignore[arg-type]


def test_case_23e_the_command_line_weights_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME[RAGGED].to_parquet("runs.parquet")
    assert (
        run(["fit", "runs.parquet", "--bootstrap", "0", "--weight-cells", "equal", "--format", "json"]) == 0
    )
    record = json.loads(capsys.readouterr().out)
    assert record["settings"]["cell_weights"] == "equal"
    assert record["fits"] == fit(read(FRAME[RAGGED]), bootstrap=0, cell_weights="equal").to_dict()["fits"]


# ---------------------------------------------------------------------- a dense tier beside sparse ones


def test_case_19a_rmse_with_and_without_the_dense_tier() -> None:
    """Dense runs 2 % above the law bend the fit; the RMSE over the sparse tiers is that of the printed surface."""
    dense = FRAME[FRAME["S"] < 0.9].assign(
        S=0.0, cell=lambda f: f["scale"] + "/dense", loss=lambda f: f["loss"] * 1.02
    )
    both = read(pd.concat([FRAME, dense.assign(run=dense["run"] + "/dense")]))
    study, sparse = fit(both, bootstrap=0), fit(both.exclude_tier(0), bootstrap=0)
    for arch, one in study.fits.items():
        rows = FRAME[FRAME["arch"] == arch]
        E, A, K, a, b, c = one.surface.coefficients.values()
        law = E + A * (1 - rows["S"]) ** b * rows["F"] ** -a + K * rows["D"] ** -c
        # the same sum of 72 squares by other code
        assert one.rmse_without_lowest_tier == pytest.approx(
            ((law - rows["loss"]) ** 2).mean() ** 0.5, rel=1e-9
        )
        assert one.rmse_without_lowest_tier > sparse[arch].rmse
        assert "--exclude-tier 0" in note(one.notes, "dense_tier").message
        assert f"{one.rmse_without_lowest_tier:.3g}" in note(one.notes, "dense_tier").message
        assert sparse[arch].rmse_without_lowest_tier is None
    assert "no S=0" in study.summary()
    assert "no S=0" not in sparse.summary()
    record = study.to_dict()["fits"][0]
    assert record["rmse_without_lowest_tier"] == study["baseline"].rmse_without_lowest_tier


# ---------------------------------------------------------------------- outlying runs

#: Rows of the example that were blown up: one of each architecture, and a second of the first.
BLOWN_UP = (7, 40, 100)


def blown_up() -> pd.DataFrame:
    loss = np.array(FRAME["loss"])
    loss[list(BLOWN_UP)] *= [1.5, 1.1, 5.0]
    return FRAME.assign(loss=loss)


@pytest.fixture(scope="module")
def dropped() -> Study:
    return fit(read(blown_up()), bootstrap=40, seed=3, drop_outliers=True)


def test_case_04f_dropping_outliers_is_the_fit_to_the_other_rows(dropped: Study) -> None:
    """The same coefficients and draws as of the table without those rows, to the last bit."""
    other = fit(read(blown_up().drop(index=list(BLOWN_UP))), bootstrap=40, seed=3)
    assert dropped.endpoints.digest == other.endpoints.digest
    for arch, one in other.fits.items():
        assert dropped[arch].surface.coefficients == one.surface.coefficients
        assert np.array_equal(dropped.draws[arch].surface.coef, other.draws[arch].surface.coef)  # type: ignore[index]
        assert dropped[arch].n == one.n
    assert ce_gain(dropped, 1e21)["gain"].tolist() == ce_gain(other, 1e21)["gain"].tolist()


def test_case_04g_dropped_rows_are_counted_and_named(dropped: Study) -> None:
    found = note(dropped["baseline"].notes, "dropped_outliers")
    assert (found.count, found.severity) == (2, "warning")
    for row in BLOWN_UP[:2]:
        assert f"{FRAME['cell'][row]} at D = {FRAME['D'][row]:.4g}" in found.message
    # ln(1.5) over the scatter of the example, about 0.3 %, and no other reason to be that far off
    assert "+" in found.message
    assert note(dropped["smelt"].notes, "dropped_outliers").count == 1
    assert dropped.to_dict()["settings"]["drop_outliers"] is True


@pytest.mark.parametrize(("sizes", "horizons"), [(3, 4), (4, 5)])
def test_case_04k_small_tables_without_outliers_keep_their_rows(sizes: int, horizons: int) -> None:
    """Of 20 clean tables none to two have a row over 5 standard deviations off, by Student's t at their freedom.

    P(|t| > 5) is .0016 at 7 degrees of freedom and .0002 at 15: 0.4 and 0.06 rows of the 20 tables. A robust fit
    passes through some rows exactly, and a scatter that counts them calls every second table of 12 rows outlying.
    """
    F, D = (
        axis.ravel()
        for axis in np.meshgrid(np.geomspace(3e8, 1e10, sizes), np.geomspace(1e10, 2e11, horizons))
    )
    loss = 1.5 + 1366 * F**-0.37 + 1.975e6 * D**-0.66
    flagged = 0
    for seed in range(20):
        noise = np.exp(0.003 * np.random.default_rng(seed).normal(size=len(F)))
        fitted, kept = fit_screened(
            "a",
            Endpoints.from_frame({"arch": ["a"] * len(F), "F": F, "D": D, "loss": loss * noise}),
            get_law("additive"),
            FitSettings(starts=8, drop_outliers=True),
        )
        flagged += not kept.all()
    assert flagged <= 2


def test_case_04h_kept_outliers_show_what_they_change(dropped: Study) -> None:
    """With and without: the two coefficients in the note are those of the two fits."""
    kept = fit(read(blown_up()), bootstrap=0)
    assert kept["baseline"].n == 72
    message = note(kept["baseline"].notes, "outlier").message
    for name in ("E", "a", "c"):
        before, after = (
            f"{study['baseline'].surface.coefficients[name]:.4g}".rstrip("0") for study in (kept, dropped)
        )
        assert f"{name} {before}" in message
        assert f"-> {after}" in message
    assert "the fitted losses of the others move by up to" in message
    assert "outlier" not in {one.code for one in dropped.all_notes}


def test_case_04i_one_pass_only() -> None:
    """A second sheet of outliers, hidden behind a first, is flagged and not dropped."""
    loss = np.array(FRAME["loss"])
    rng = np.random.default_rng(0)
    loss[rng.choice(72, 26, replace=False)] *= 1.02  # widens the scatter in which the next one hides
    loss[[3, 30]] *= [1.09, 4.0]
    study = fit(read(FRAME.assign(loss=loss)), bootstrap=0, drop_outliers=True)
    first = note(study["baseline"].notes, "dropped_outliers").count
    assert study["baseline"].n == 72 - first
    again = [one for one in study["baseline"].notes if one.code == "outlier"]
    assert all("the second fit is the last" in one.message for one in again)


def test_case_04j_the_command_line_drops_the_same(
    dropped: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blown_up().to_parquet("runs.parquet")
    arguments = [
        "fit",
        "runs.parquet",
        "--bootstrap",
        "40",
        "--seed",
        "3",
        "--drop-outliers",
        "--format",
        "json",
    ]
    assert run(arguments) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["fits"] == dropped.to_dict()["fits"]
    again = load_study("reports/study")
    assert again.settings.drop_outliers is True
    assert len(again.endpoints) == 141
    study = json.loads(Path("reports/study/study.json").read_text())
    del study["settings"]["drop_outliers"]  # as an older version wrote it
    Path("reports/study/study.json").write_text(json.dumps(study))
    assert load_study("reports/study").settings.drop_outliers is False


# ---------------------------------------------------------------------- held parameters

#: A published ladder with its floor held at 1.6: three budgets of one evaluation.
LADDER = pd.DataFrame(
    {"C": [2.19e17, 1.70e18, 9.00e18], "loss": [3.7404, 3.3834, 3.1230], "eval_set": "paloma/macro"}
)
LEAST_SQUARES: dict[str, Any] = {"bootstrap": 0, "delta": np.inf, "residual": "raw"}


def test_case_50a_a_pin_of_the_same_evaluation() -> None:
    """The published fit: 81.6817 and .0911845; the pin and what it belongs to stand in every table."""
    study = fit(read(LADDER), "power-c", pins={"E": (1.6, "paloma/macro")}, **LEAST_SQUARES)
    coefficients = study["model"].surface.coefficients
    assert coefficients["E"] == 1.6
    assert coefficients["A"] == pytest.approx(81.6817, abs=5e-5)
    assert coefficients["alpha"] == pytest.approx(0.0911845, abs=5e-8)
    frame = predict(study, {"C": 2.83e19})
    assert frame["loss"][0] == pytest.approx(2.97538, abs=6e-6)
    said = "model: held by the user: E = 1.6 of paloma/macro"
    for form in ("table", "md", "latex"):
        for text in (show_table(frame, form), render_study(study, form)):
            assert " ".join(text.split()).count(said) == 1
    assert " ".join(study.summary().split()).count(said) == 1
    assert study.to_dict()["settings"]["pin_tags"] == {"": {"E": "paloma/macro"}}


def test_case_50b_a_pin_of_another_evaluation_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        fit(
            read(LADDER.assign(eval_set="c4_en")),
            "power-c",
            pins={"E": (1.6, "paloma/macro")},
            **LEAST_SQUARES,
        )
    (line,) = str(caught.value).splitlines()
    assert line.startswith(
        "runs.csv: column eval_set is c4_en for model, and the pin E = 1.6 belongs to paloma/macro"
    )
    # a pin of the architecture's own comes before the common one, with its own evaluation or none
    own = {"E": (1.6, "paloma/macro"), "model": {"E": 1.5}}
    assert fit(read(LADDER.assign(eval_set="c4_en")), "power-c", pins=own, **LEAST_SQUARES)[
        "model"
    ].pinned == {"E": 1.5}
    untold = fit(
        read(LADDER.drop(columns="eval_set")), "power-c", pins={"E": (1.6, "paloma/macro")}, **LEAST_SQUARES
    )
    assert "not checked: the table names no eval_set" in note(untold.all_notes, "pinned").message


def test_case_50c_the_command_line_pins_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    LADDER.to_csv("runs.csv", index=False)
    arguments = [
        "fit",
        "runs.csv",
        "--law",
        "power-c",
        "--delta",
        "inf",
        "--residual",
        "raw",
        "--bootstrap",
        "0",
    ]
    assert run([*arguments, "--pin", "E=1.6@paloma/macro", "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    study = fit(read(LADDER), "power-c", pins={"E": (1.6, "paloma/macro")}, **LEAST_SQUARES)
    assert record["fits"] == study.to_dict()["fits"]
    assert load_study("reports/study").settings == study.settings
    assert run(["predict", "--at", "C=2.83e19"]) == 0
    assert "E = 1.6 of paloma/macro" in capsys.readouterr().out
    assert run([*arguments, "--pin", "model:E=1.6@c4_en"]) == 3
    assert "belongs to c4_en" in capsys.readouterr().err


# ---------------------------------------------------------------------- counts of parameters


@pytest.mark.parametrize("data", ["cool_end", "cool_begin", "hot"])
def test_case_11c_exponents_under_each_count_are_the_published_ones(real_data: Path, data: str) -> None:
    """Published fits of the same runs with and without embeddings; exponents agree to the flatness of the minimum."""
    frame = pd.read_csv(real_data / "sets" / f"gemstones_{data}.csv")[["N", "N_no_emb", "D", "loss"]]
    study = fit(read(frame), "chinchilla", bootstrap=0)
    table = parameter_conventions(study).set_index("parameters")
    published = pd.read_csv(real_data / "published" / "gemstones_fits.csv").set_index("file")
    for count, suffix in (("N", ""), ("N_no_emb", "_no_embeds")):
        row = published.loc[f"parameters_delta-3/approach_3_parameters_grid_search_0_{data}{suffix}.json"]
        alpha, beta = row["alpha_N"], row["beta_D"]
        assert table.loc[count, ["alpha", "beta"]].tolist() == pytest.approx([alpha, beta], abs=0.003)
        assert table.loc[count, "allocation"] == pytest.approx(beta / (alpha + beta), abs=0.003)
        assert table.loc[count, "E"] == pytest.approx(np.exp(row["logE"]), abs=0.01)
    assert table["used"].to_dict() == {"N": True, "N_no_emb": False}
    message = note(study.all_notes, "parameter_count").message
    assert "counted by column N," in message
    assert f"{table.loc['N_no_emb', 'allocation']:.3g} by N_no_emb" in message
    assert "exponents by count of parameters" in study.summary()


def test_case_11d_each_count_is_the_fit_to_that_column() -> None:
    """The same digits as fits of tables that hold one count, in N and in F = 6 N alike; saved and loaded."""
    N, D = (axis.ravel() for axis in np.meshgrid([1e8, 4e8, 1.6e9, 6.4e9], [2e9, 8e9, 3.2e10, 1e11]))
    noise = np.exp(0.003 * np.random.default_rng(0).standard_normal(16))
    frame = pd.DataFrame({"N": N, "N_no_emb": N - 3e4 * N**0.4, "D": D})
    frame["loss"] = (1.7 + 400 * N**-0.34 + 410 * D**-0.28) * noise
    both = parameter_conventions(fit(read(frame), "chinchilla", bootstrap=0)).set_index("parameters")
    in_flops = parameter_conventions(fit(read(frame, flops="6N"), "additive", bootstrap=0)).set_index(
        "parameters"
    )
    for count in ("N", "N_no_emb"):
        one = fit(read(frame[["D", "loss"]].assign(N=frame[count])), "chinchilla", bootstrap=0)["model"]
        typed = [one.surface.coefficients[name] for name in ("alpha", "beta", "E")]
        for table in (both, in_flops):
            # the step that a decrement of 1e-12 leaves
            assert table.loc[count, ["alpha", "beta", "E"]].tolist() == pytest.approx(typed, rel=1e-5)
        assert one.conventions == ()
    mapped = fit(read(frame, mapping={"N": "N_no_emb"}), "chinchilla", bootstrap=0)["model"]
    assert mapped.surface.coefficients["alpha"] == pytest.approx(both.loc["N_no_emb", "alpha"], rel=1e-5)
    assert "parameter_count" not in {one.code for one in fit(RUNS, bootstrap=0).all_notes}


def test_case_11f_one_term_of_both_has_no_allocation() -> None:
    """Of E + A N^-a D^-b every split of a budget is as good or the ends are best: no N* ~ C^x to speak of."""
    N, D = (axis.ravel() for axis in np.meshgrid([1e8, 4e8, 1.6e9], [2e9, 8e9, 3.2e10]))
    frame = {
        "arch": ["a"] * 9,
        "N": N,
        "N_no_emb": 1e-9 * N**2,
        "D": D,
        "loss": 1.7 + 400 * N**-0.2 * D**-0.1,
    }
    study = fit(Endpoints.from_frame(frame), "E + A*N**-a*D**-b", bootstrap=0)
    assert not len(parameter_conventions(study))
    assert "parameter_count" not in {one.code for one in study.all_notes}


@pytest.mark.parametrize(("pins", "told"), [({"A": 400.0}, 0), ({"alpha": 0.34}, 0), ({"E": 1.7}, 2)])
def test_case_11g_a_value_held_for_one_count_is_none_of_another(pins: dict[str, float], told: int) -> None:
    """A of N^-alpha is another number for N without embeddings; the floor is the same."""
    N, D = (axis.ravel() for axis in np.meshgrid([1e8, 4e8, 1.6e9], [2e9, 8e9, 3.2e10]))
    loss = 1.7 + 400 * N**-0.34 + 410 * D**-0.28
    runs = Endpoints.from_frame({"arch": ["a"] * 9, "N": N, "N_no_emb": 1e-9 * N**2, "D": D, "loss": loss})
    assert len(parameter_conventions(fit(runs, "chinchilla", bootstrap=0, pins=pins))) == told


def test_case_11e_conventions_are_saved(tmp_path: Path) -> None:
    study = fit(RUNS, "chinchilla", bootstrap=0)
    assert [one.parameters for one in study["smelt"].conventions] == ["N", "N_act"]
    study.save(tmp_path / "study")
    again = load_study(tmp_path / "study")
    assert again["smelt"].conventions == study["smelt"].conventions
    assert parameter_conventions(again).equals(parameter_conventions(study))
    record = json.loads((tmp_path / "study" / "study.json").read_text())
    for one in record["fits"]:  # as an older version wrote it
        del one["conventions"], one["rmse_without_lowest_tier"]
    (tmp_path / "study" / "study.json").write_text(json.dumps(record))
    assert load_study(tmp_path / "study")["smelt"].conventions == ()


# ---------------------------------------------------------------------- repeated data

#: Coefficients that huggingface/datablations publishes: ln A, ln B, ln E, alpha = beta, R_D*, R_N*.
A, B, E = np.exp([6.255414, 7.3049974, 0.6254804])
ALPHA, R_D, R_N = 0.3526596, 15.387756, 5.309743


@pytest.mark.parametrize(
    ("N", "D", "U", "published", "digits"),
    [
        (8.67e9, 178e9, 25e9, 2.2269634075087867, 1e-12),
        (6.34e9, 242e9, 25e9, 2.2256440889984477, 1e-12),
        (2.81e9, 55e9, 9e9, 2.398251, 5e-7),
    ],
)
def test_case_44a_the_published_law_of_repeated_data(
    N: float, D: float, U: float, published: float, digits: float
) -> None:
    """Losses of their own function: ours is given effective tokens and effective parameters.

    Parameters count fully up to the optimum for U unique tokens, which is G**2 U for equal exponents. The coefficients
    are printed to 7 digits and their function takes those, so that all its digits are ours.
    """
    law = get_law("chinchilla")
    needed = min(N, (A / B) ** (1 / ALPHA) * U)
    loss = law.loss(
        np.array([E, A, B, ALPHA, ALPHA]),
        N=effective_amount(N, needed, REPEAT_CONSTANT_PARAMETERS),
        D=effective_amount(D, U),
    )
    assert (REPEAT_CONSTANT, REPEAT_CONSTANT_PARAMETERS) == (R_D, R_N)
    assert float(loss) == pytest.approx(published, abs=digits)


def repeated(passes: tuple[float, ...] = (1, 2, 5, 12, 40)) -> pd.DataFrame:
    """Runs over one set of data, several times, with losses of the law in effective tokens, written out here."""
    N, U, k = (axis.ravel() for axis in np.meshgrid([1e8, 4e8, 1.6e9, 6.4e9], [4e9, 2e10], passes))
    worth = U + U * 15.387756 * (1 - np.exp(-(k - 1) / 15.387756))
    return pd.DataFrame(
        {"N": N, "D": k * U, "unique_tokens": U, "loss": 1.7 + 400 * N**-0.34 + 410 * worth**-0.28}
    )


def test_case_44b_a_fit_in_effective_tokens_finds_the_law() -> None:
    frame = repeated()
    study = fit(read(frame), "chinchilla", bootstrap=0, data_law="repeated")
    one = study["model"]
    # without noise: the truth, to the step that a decrement of 1e-12 leaves
    assert list(one.surface.coef) == pytest.approx([1.7, 400, 410, 0.34, 0.28], rel=1e-6)
    plain = fit(read(frame), "chinchilla", bootstrap=0)["model"]
    assert plain.rmse > 1e3 * one.rmse
    # D in fresh tokens, at most 20e9 (1 + R (1 - exp(-39/R))); compute as it was spent, 6 N D
    assert one.window["D"][1] == pytest.approx(2e10 * (1 + R_D * (1 - np.exp(-39 / R_D))), rel=1e-12)
    assert one.window["C"][1] == pytest.approx(6 * 6.4e9 * 8e11, rel=1e-12)
    assert study.endpoints.D.max() == 8e11
    found = {one.code: one for one in study.all_notes}
    assert "repeated_data" not in found
    assert "R = 15.3878" in found["effective_tokens"].message
    for text in (
        study.summary(),
        show_table(allocate(study, 1e21)),
        show_table(predict(study, {"N": 1e9, "D": 1e10})),
    ):
        assert "D* too, is of fresh tokens" in " ".join(text.split())


def test_case_44c_without_repetition_nothing_changes() -> None:
    frame = repeated((1, 2)).assign(unique_tokens=lambda f: f["D"])
    same = fit(read(frame), "chinchilla", bootstrap=0, data_law="repeated")["model"]
    assert (
        same.surface.coefficients == fit(read(frame), "chinchilla", bootstrap=0)["model"].surface.coefficients
    )
    columns = dict(read(frame).columns) | {"unique_tokens": 2 * read(frame).D}
    with pytest.raises(DataError, match=r"column unique_tokens, 16 of 16 values above column D"):
        fit(Endpoints(columns=columns), "chinchilla", bootstrap=0, data_law="repeated")


def test_case_44d_the_command_line_and_a_saved_study_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    repeated().to_csv("runs.csv", index=False)
    options = ["--data-law", "repeated", "--repeat-constant", "12", "--bootstrap", "0", "--format", "json"]
    assert run(["fit", "runs.csv", "--law", "chinchilla", *options]) == 0
    record = json.loads(capsys.readouterr().out)
    study = fit(read(repeated()), "chinchilla", bootstrap=0, data_law="repeated", repeat_constant=12.0)
    assert record["fits"] == study.to_dict()["fits"]
    again = load_study("reports/study")
    assert (again.settings.data_law, again.settings.repeat_constant) == ("repeated", 12.0)
    assert run(["allocate", "-b", "1e21"]) == 0
    assert "R = 12" in " ".join(capsys.readouterr().out.split())
    for key in ("data_law", "repeat_constant", "cell_weights", "drop_outliers", "pin_tags"):
        del record["settings"][key]  # as an older version wrote it
    saved = json.loads(Path("reports/study/study.json").read_text())
    Path("reports/study/study.json").write_text(json.dumps(saved | {"settings": record["settings"]}))
    assert load_study("reports/study").settings == fit(read(repeated()), "chinchilla", bootstrap=0).settings
