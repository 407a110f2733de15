"""The main job as an object: settings, notes, saving, loading, refusing."""

from __future__ import annotations

import json

import numpy as np
import pytest

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import DataError, FitError, StudyError, UsageError
from smelt_scaling.papers.example import example_endpoints
from smelt_scaling.study import fit, load_study


@pytest.fixture(scope="module")
def study():
    return fit(example_endpoints(), bootstrap=64, seed=2)


def test_save_and_load_is_bit_identical(study, tmp_path):
    folder = study.save(tmp_path / "study")
    again = load_study(folder)
    for arch in study.archs:
        assert np.array_equal(again[arch].surface.coef, study[arch].surface.coef)
        assert again[arch].to_dict() == study[arch].to_dict()
        for mine, theirs in ((study.draws, again.draws), (study.jackknife, again.jackknife)):
            for name in ("certified", "degenerate", "improved", "at_bound", "objective", "counts"):
                assert np.array_equal(getattr(mine[arch], name), getattr(theirs[arch], name)), name
            assert np.array_equal(mine[arch].surface.coef, theirs[arch].surface.coef)
    assert again.endpoints.digest == study.endpoints.digest
    assert again.summary() == study.summary()
    second = again.save(tmp_path / "second")
    for file in ("study.json", "draws.parquet", "endpoints.parquet"):
        assert (folder / file).read_bytes() == (second / file).read_bytes()


def test_json_is_strict_and_holds_the_documented_keys(study, tmp_path):
    text = (study.save(tmp_path / "s") / "study.json").read_text()
    data = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert data["schema_version"] == 1
    assert data["command"] == "fit"
    assert {"arch", "law", "formula", "coefficients", "objective", "rmse", "rmse_log", "n", "n_cells"} <= set(
        data["fits"][0]
    )
    assert set(data["fits"][0]["coefficients"]) == {"E", "A", "K", "a", "b", "c"}
    assert {"status", "decrement", "starts", "starts_agreeing", "at_bounds", "linear_zone_share"} <= set(
        data["fits"][0]["certificate"]
    )
    assert data["bootstrap"]["certified_share"] == 1.0
    assert data["provenance"]["endpoints_digest"] == study.endpoints.digest


def test_keys_added_by_a_later_minor_version_are_passed_over(study, tmp_path):
    folder = study.save(tmp_path / "study")
    data = json.loads((folder / "study.json").read_text())
    for item in (data, data["settings"], data["bootstrap"], data["fits"][0], data["fits"][0]["certificate"]):
        item["added_later"] = 1
    (folder / "study.json").write_text(json.dumps(data))
    assert load_study(folder).summary() == study.summary()


def test_parameters_may_not_shadow_the_table_of_draws():
    with pytest.raises(UsageError, match="objective is a column of the table of draws"):
        fit(example_endpoints(), "E + objective*(1-S)**b*F**-a + K*D**-c", bootstrap=0)


def test_save_refuses_a_folder_that_is_no_study(study, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("precious")
    with pytest.raises(StudyError, match="not empty"):
        study.save(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir()] == ["thesis"]  # nothing is left aside


def test_saving_over_a_study_keeps_what_lies_beside_it(study, tmp_path):
    folder = study.save(tmp_path / "study")
    (folder / "ce-gain.json").write_text("{}")
    study.save(folder)
    assert (folder / "ce-gain.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda p: (p / "study.json").unlink(), "holds no study"),
        (lambda p: (p / "draws.parquet").unlink(), "incomplete"),
        (lambda p: (p / "study.json").write_text("{"), "cannot be read"),
        (lambda p: (p / "study.json").write_text('{"schema_version": 99}'), "newer"),
    ],
)
def test_load_refuses_damage_in_one_line(study, tmp_path, spoil, message):
    folder = study.save(tmp_path / "study")
    spoil(folder)
    with pytest.raises(StudyError, match=message) as caught:
        load_study(folder)
    assert "\n" not in str(caught.value)


def test_endpoints_without_F_name_both_remedies():
    rows = example_endpoints().to_frame().drop(columns=["F", "S"])
    with pytest.raises(DataError, match="--law chinchilla") as caught:
        fit(Endpoints.from_frame(rows), bootstrap=0)
    assert "--flops 6N" in str(caught.value)


def test_fewer_endpoints_than_parameters_is_an_error():
    rows = example_endpoints().by_arch()["baseline"].select([0, 13, 26, 39, 53])
    with pytest.raises(FitError, match="5 endpoints for 6 parameters"):
        fit(rows, bootstrap=0)


@pytest.mark.parametrize(
    "arguments",
    [
        {"law": "chinchila"},
        {"delta": 0.0},
        {"starts": 0},
        {"bootstrap": -1},
        {"pins": {"Z": 1.0}},
        {"pins": {"E": -1.0}},
        {"pins": {"nobody": {"E": 1.0}}},
        {"flops_per_param": 0.0},
    ],
)
def test_invalid_settings_are_usage_errors(arguments):
    with pytest.raises(UsageError):
        fit(example_endpoints(), **({"bootstrap": 0} | arguments))


def test_pins_are_held_exactly_and_reported():
    held = fit(example_endpoints(), bootstrap=64, pins={"E": 1.44, "smelt": {"a": 0.4, "A": 2000.0}})
    base, smelt = held["baseline"], held["smelt"]
    assert base.surface.coefficients["E"] == pytest.approx(1.44, rel=1e-15)
    assert smelt.surface.coefficients["A"] == pytest.approx(2000.0, rel=1e-13)
    assert smelt.surface.coefficients["a"] == 0.4
    assert dict(smelt.pinned) == {"E": 1.44, "a": 0.4, "A": 2000.0}
    assert np.allclose(held.draws["smelt"].surface["A"], 2000.0, rtol=1e-13)
    assert base.certificate.certified
    assert smelt.certificate.certified
    free = fit(example_endpoints(), bootstrap=0)
    assert base.objective > free["baseline"].objective
    assert "pinned" in {note.code for note in base.notes}


def test_pinning_at_the_optimum_changes_nothing():
    free = fit(example_endpoints(), bootstrap=0)["baseline"]
    value = free.surface.coefficients["A"]
    again = fit(example_endpoints(), bootstrap=0, pins={"baseline": {"A": value}})["baseline"]
    assert again.objective == pytest.approx(free.objective, rel=1e-9)
    np.testing.assert_allclose(again.surface.coef, free.surface.coef, rtol=1e-4)


def test_delta_auto_is_the_stated_multiple_of_a_robust_scale():
    """delta = 1.345 * median|r| / 0.6745 over the residuals of the fit at 1e-3, each restated here."""
    rows = example_endpoints()
    first = fit(rows, bootstrap=0)["smelt"]
    auto = fit(rows, bootstrap=0, delta="auto")
    own = rows.by_arch()["smelt"]
    residual = np.log(first.surface.loss(F=own.F, S=own.S, D=own.D)) - np.log(own.loss)
    assert auto["smelt"].delta == pytest.approx(
        1.345 * np.median(np.abs(residual)) / 0.6744897501960817, rel=1e-6
    )
    assert "interval_coverage" in {note.code for note in auto.notes}


def test_rmse_has_no_degrees_of_freedom_correction(study):
    own = study.endpoints.by_arch()["baseline"]
    residual = study["baseline"].surface.loss(F=own.F, S=own.S, D=own.D) - own.loss
    assert study["baseline"].rmse == pytest.approx(np.sqrt(np.mean(residual**2)), rel=1e-12)


def test_least_squares_matches_scipys():
    """delta = inf, raw residuals: the same minimum as scipy.optimize.least_squares with tight tolerances."""
    from scipy.optimize import least_squares

    rows = example_endpoints().by_arch()["baseline"]
    ours = fit(rows, bootstrap=0, delta=float("inf"), residual="raw")["baseline"]

    def residual(x):
        E, log_a, log_k, a, b, c = x
        m = (
            E
            + np.exp(log_a - a * (np.log(rows.F) - 21) + b * np.log1p(-rows.S))
            + np.exp(log_k - c * (np.log(rows.D) - 25))
        )
        return m - rows.loss

    start = [1.5, -1.0, -2.0, 0.4, 0.2, 0.7]
    theirs = least_squares(residual, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert ours.objective == pytest.approx(theirs.cost, rel=1e-10)
    np.testing.assert_allclose(ours.surface.coef[[0, 3, 4, 5]], theirs.x[[0, 3, 4, 5]], rtol=1e-5)


def test_weights_act_like_repeated_rows():
    rows = example_endpoints().to_frame()
    weight = 1.0 + np.arange(len(rows)) % 3
    weighted = fit(Endpoints.from_frame(rows.assign(weight=weight)), bootstrap=0)
    # columns as they are: reading a table would merge the copies
    copies = rows.loc[np.repeat(rows.index, weight.astype(int))]
    repeated = fit(Endpoints(columns={name: copies[name].to_numpy() for name in copies}), bootstrap=0)
    for arch in weighted.archs:
        assert weighted[arch].objective == pytest.approx(repeated[arch].objective, rel=1e-9)


def test_lbfgsb_engine_reaches_the_same_certified_optimum():
    newton = fit(example_endpoints(), bootstrap=0)
    scipy = fit(example_endpoints(), bootstrap=0, engine="lbfgsb")
    for arch in newton.archs:
        assert scipy[arch].objective == pytest.approx(newton[arch].objective, rel=1e-9)


def test_progress_reaches_the_total_and_never_falls():
    seen: list[tuple[int, int]] = []
    fit(example_endpoints(), bootstrap=101, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (202, 202)


def test_summary_fits_a_screen_and_names_what_matters(study):
    lines = study.summary().splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 40
    text = "\n".join(lines)
    for needle in (
        "E ",
        "gamma",
        "certified, 64/64 starts",
        "window C",
        "12 cell labels (paired)",
        "simulated",
    ):
        assert needle in text


def test_saving_survives_interruption_and_company(study, tmp_path, monkeypatch):
    """A save that dies leaves the old study and the files beside it as they were."""
    from smelt_scaling.study import store

    folder = study.save(tmp_path / "study")
    (folder / "figure.png").write_bytes(b"precious")
    before = (folder / "study.json").read_bytes()

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "_write_endpoints", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.save(folder)
    assert (folder / "study.json").read_bytes() == before
    assert (folder / "figure.png").read_bytes() == b"precious"
    assert sorted(p.name for p in folder.iterdir()) == [
        "draws.parquet",
        "endpoints.parquet",
        "figure.png",
        "study.json",
    ]
    assert load_study(folder).archs == study.archs


def test_a_half_replaced_folder_is_refused(study, tmp_path):
    folder = study.save(tmp_path / "study")
    other = fit(example_endpoints(), bootstrap=70, seed=9).save(tmp_path / "other")
    (folder / "draws.parquet").write_bytes((other / "draws.parquet").read_bytes())
    with pytest.raises(StudyError, match="saved with"):
        load_study(folder)


def test_saving_into_the_working_folder_and_through_a_link(study, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    study.save(".")
    assert load_study(".").archs == study.archs
    (tmp_path / "link").symlink_to(tmp_path / "here")
    study.save(tmp_path / "link")
    assert load_study(tmp_path / "here").archs == study.archs


@pytest.mark.parametrize(
    "arguments",
    [
        {"residual": "lgo"},
        {"engine": "bfgs"},
        {"seed": -1},
        {"delta": "foo"},
        {"starts": "many"},
        {"bootstrap": 1.5},
    ],
)
def test_misspelt_settings_are_refused(arguments):
    with pytest.raises(UsageError):
        fit(example_endpoints(), **({"bootstrap": 0} | arguments))


def test_a_path_in_place_of_endpoints_names_the_reader():
    with pytest.raises(UsageError, match="read_endpoints"):
        fit("runs.parquet")


def test_draws_are_read_only(study):
    with pytest.raises(ValueError, match="read-only"):
        study.draws["smelt"].counts[0] = 9


def test_frames_travel_through_parquet_with_their_notes(study, tmp_path):
    import pandas as pd

    from smelt_scaling import allocate, ce_gain, notes_of, predict

    for name, frame in (
        ("gain", ce_gain(study, 1e21)),
        ("allocation", allocate(study, 1e21)),
        ("prediction", predict(study, {"F": 1e9, "D": 1e11, "S": 0.947})),
    ):
        frame.to_parquet(tmp_path / name)
        assert notes_of(pd.read_parquet(tmp_path / name)) == notes_of(frame)
        assert notes_of(frame)


def test_a_law_in_parameters_says_when_the_table_counts_other_flops():
    """6 N_act is right within 10 % for one architecture and 1.6 times off for the looped one."""
    study = fit(example_endpoints(), "E + A*(1-S)**b*N_act**-a + K*D**-c", bootstrap=0)
    (note,) = [note for note in study.notes if note.code == "flops_mismatch"]
    assert "for smelt" in note.message
