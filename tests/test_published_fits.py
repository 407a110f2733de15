"""Fits that others published, reproduced on their data: objectives, coefficients, standard errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.fitting import FitResult
from smelt_scaling.frontier import Frontier
from smelt_scaling.ingest.tidy import read_endpoints
from smelt_scaling.study import Study, fit


def only(study: Study) -> FitResult:
    (result,) = study.fits.values()
    return result


# -- Chinchilla's digitised runs (Besiroglu et al. 2024) -------------------------------------------------------------


@pytest.fixture(scope="module")
def chinchilla(real_data: Path) -> pd.DataFrame:
    return pd.read_csv(real_data / "sets" / "chinchilla_epoch.csv")


@pytest.fixture(scope="module")
def kept(chinchilla: pd.DataFrame) -> pd.DataFrame:
    """Their 240 rows: the five largest losses are left out."""
    kept = chinchilla[chinchilla["loss"] < chinchilla["loss"].nlargest(5).min()]
    assert len(kept) == 240
    assert kept["epoch_keep"].all()
    return kept[["N", "D", "loss"]]


@pytest.fixture(scope="module")
def drawn(kept: pd.DataFrame) -> Study:
    return fit(Endpoints.from_frame(kept), "chinchilla", bootstrap=4000, seed=0, resample="row")


def test_case_31_chinchilla_240_rows(kept: pd.DataFrame) -> None:
    """Objective <= 1.0182741e-3 (the optimum to 8 digits) and five coefficients to 4 digits."""
    result = only(fit(Endpoints.from_frame(kept), "chinchilla", bootstrap=0))
    assert result.objective <= 1.0182741e-3
    assert result.objective == pytest.approx(1.018274018e-3, rel=1e-9)  # ten typed digits
    typed = {"E": 1.817218, "A": 477.826, "B": 2143.417, "alpha": 0.347311, "beta": 0.367172}
    assert result.surface.coefficients == pytest.approx(typed, rel=1e-5)
    assert result.certificate.certified


def test_chinchilla_245_rows(chinchilla: pd.DataFrame) -> None:
    """With the five outliers: objective 1.8260105e-3 and a beta of .453 instead of .367."""
    result = only(fit(Endpoints.from_frame(chinchilla[["N", "D", "loss"]]), "chinchilla", bootstrap=0))
    assert result.objective == pytest.approx(1.826010523e-3, rel=1e-9)
    typed = {"E": 1.891338, "A": 495.726, "B": 12845.61, "alpha": 0.349313, "beta": 0.453049}
    assert result.surface.coefficients == pytest.approx(typed, rel=1e-5)


@pytest.mark.parametrize("published", ["epoch", "tex"])
def test_published_coefficients_are_not_the_optimum(kept: pd.DataFrame, published: str) -> None:
    """Their headline point and Hoffmann's have objectives 1.018644705e-3 and 1.231162603e-3: not lower than ours."""
    from smelt_scaling.engine.objective import Objective
    from smelt_scaling.engine.problem import make_problem
    from smelt_scaling.laws import LAWS
    from smelt_scaling.papers import load_paper

    columns = {name: kept[name].to_numpy() for name in ("N", "D")}
    problem = make_problem(LAWS["chinchilla"], columns, kept["loss"].to_numpy(), np.ones(240), pins={})
    theta = problem.centred(load_paper("chinchilla").surfaces[published].coef[None])
    f = Objective(problem).value(theta, np.ones((1, 240)), problem.observed, np.array([1e-3]))[0]
    # Epoch's exponents are printed to 5 digits, which moves the objective by 1e-4 of itself; the TeX ones to 8
    typed, rel = {"epoch": (1.018644705e-3, 2e-4), "tex": (1.231162603e-3, 1e-6)}[published]
    assert f == pytest.approx(typed, rel=rel)
    assert f > 1.0182741e-3


def test_near_lad_limit_is_their_headline_point(kept: pd.DataFrame) -> None:
    """At delta = 1e-6 the fit is their published 1.81686, 482.006, 2085.434, .34781, .36585 (to .02 %)."""
    result = only(fit(Endpoints.from_frame(kept), "chinchilla", bootstrap=0, delta=1e-6))
    typed = {"E": 1.81686, "A": 482.006, "B": 2085.434, "alpha": 0.34781, "beta": 0.36585}
    assert result.surface.coefficients == pytest.approx(typed, rel=5e-4)


@pytest.mark.parametrize(
    ("delta", "typed"),
    [(1e-2, [1.8381, 538.8, 2905.6, 0.3544, 0.3815]), (1e-1, [1.8646, 593.3, 4875.6, 0.3603, 0.4059])],
)
def test_sensitivity_to_delta(kept: pd.DataFrame, delta: float, typed: list[float]) -> None:
    result = only(fit(Endpoints.from_frame(kept), "chinchilla", bootstrap=0, delta=delta))
    np.testing.assert_allclose(result.surface.coef, typed, rtol=2e-4)  # typed to four digits


def test_published_standard_errors(drawn: Study) -> None:
    """4000 row resamples: SE of E, A, alpha, beta, ln B within 10 % of the published ones.

    The Monte-Carlo error of a standard error from 4000 draws is 1.1 %; theirs came from a looser optimiser.
    """
    surface = next(iter(drawn.draws.values())).surface
    found = {name: float(surface[name].std(ddof=1)) for name in ("E", "A", "alpha", "beta")}
    found["ln B"] = float(np.log(surface["B"]).std(ddof=1))
    published = {"E": 0.0257, "A": 124.5, "alpha": 0.0154, "beta": 0.0206, "ln B": 0.421}
    assert found == pytest.approx(published, rel=0.10)
    assert drawn.bootstrap.certified_share == 1.0
    assert drawn.bootstrap.unit == "row"


def test_published_interval_ends(drawn: Study) -> None:
    """95 % intervals of their 4000 resamples; ends agree within 10 % of the interval's width (A, B: of ln)."""
    surface = next(iter(drawn.draws.values())).surface
    published = {
        "E": (1.769, 1.871),
        "alpha": (0.317, 0.373),
        "beta": (0.331, 0.415),
        "A": (285.2, 743.6),
        "B": (1042.4, 5810.3),
    }
    for name, ends in published.items():
        scale = np.log if name in "AB" else np.asarray
        found = np.quantile(scale(surface[name]), [0.025, 0.975])
        np.testing.assert_allclose(found, scale(ends), atol=0.1 * np.ptp(scale(ends)), err_msg=name)


def test_tokens_in_billions_give_the_same_answer(kept: pd.DataFrame) -> None:
    """--unit D=B: equal to the conversion's rounding, 1e-16 times the condition of the problem squared."""
    billions = kept.assign(D=kept["D"] / 1e9)
    first = only(fit(Endpoints.from_frame(kept), "chinchilla", bootstrap=0))
    second = only(fit(Endpoints.from_frame(billions, units={"D": "B"}), "chinchilla", bootstrap=0))
    assert second.objective == pytest.approx(first.objective, rel=1e-11)
    np.testing.assert_allclose(second.surface.coef, first.surface.coef, rtol=1e-8)


def test_shuffled_rows_give_the_same_bytes(kept: pd.DataFrame, tmp_path: Path) -> None:
    """Row order changes no byte of the draws, nor of the study but its provenance."""
    shuffled = kept.sample(frac=1, random_state=3)
    for name, frame in (("first", kept), ("second", shuffled)):
        endpoints = Endpoints.from_frame(frame)
        fit(endpoints, "chinchilla", bootstrap=200, resample="row").save(tmp_path / name)
    read = [json.loads((tmp_path / name / "study.json").read_text()) for name in ("first", "second")]
    for study in read:
        del study["provenance"]
    assert read[0] == read[1]
    one, two = ((tmp_path / name / "draws.parquet").read_bytes() for name in ("first", "second"))
    assert one == two


# -- Gemstones (McLeish et al. 2025) -----------------------------------------------------------------------------------

#: Published file stem -> data set; "_512x" is the width-512 part.
GEMSTONES = ["cool_begin", "cool_end", "hot", "hot_100b+", "hot_100b+_512x", "hot_sampled_like_chinchilla",
             "slim_chinchilla"]  # fmt: skip
WITHOUT_EMBEDDINGS = ("cool_begin", "cool_end", "hot", "hot_100b+")


def gemstones(folder: Path, stem: str, parameters: str) -> pd.DataFrame:
    name = "hot_100bplus" if stem.startswith("hot_100b+") else stem
    path = folder / "sets" / f"gemstones_{name}"
    parquet = path.with_suffix(".parquet")
    frame = pd.read_parquet(parquet) if parquet.exists() else pd.read_csv(path.with_suffix(".csv"))
    if stem.endswith("_512x"):
        frame = frame[frame["width"] == 512]
    return frame[[parameters, "D", "loss"]].rename(columns={parameters: "N"})


#: Published file of every fit that is compared: 7 data sets, 4 of them with and without embeddings, at two deltas.
COMPARED = [
    f"parameters_delta-{-round(np.log10(delta))}/approach_3_parameters_grid_search_0_{stem}{suffix}.json"
    for delta in (1e-3, 1e-4)
    for stem in GEMSTONES
    for suffix in ("", "_no_embeds")
    if suffix == "" or stem in WITHOUT_EMBEDDINGS
]


def test_every_published_gemstones_fit_is_compared(real_data: Path) -> None:
    """All 22 rows of the published table, each once: none is passed over because a name is spelt otherwise."""
    published = pd.read_csv(real_data / "published" / "gemstones_fits.csv")
    assert len(COMPARED) == 22
    assert sorted(published["file"]) == sorted(COMPARED)


@pytest.mark.parametrize("file", COMPARED)
def test_gemstones(real_data: Path, file: str) -> None:
    """On every published file: their coefficients have their objective on our rows, and ours is not above it.

    Objectives are printed to 10 decimals. At 1e-3 theirs are optima, so exponents agree too, to the flatness of the
    minimum; at 1e-4 and on the small width-512 part theirs are not optimal and ours is lower.
    """
    published = pd.read_csv(real_data / "published" / "gemstones_fits.csv")
    (row,) = published[published["file"] == file].to_dict("records")
    folder, name = file.removesuffix(".json").split("/")
    delta = 10.0 ** float(folder.removeprefix("parameters_delta"))
    parameters = "N_no_emb" if name.endswith("_no_embeds") else "N"
    stem = name.removeprefix("approach_3_parameters_grid_search_0_").removesuffix("_no_embeds")
    data = gemstones(real_data, stem, parameters)
    their = (
        np.exp(row["logE"])
        + np.exp(row["logA"]) * data["N"] ** -row["alpha_N"]
        + np.exp(row["logB"]) * data["D"] ** -row["beta_D"]
    )
    r = np.abs(np.log(their / data["loss"]))
    objective = float(np.sum(np.minimum(r, delta) * (r - np.minimum(r, delta) / 2)))
    # loss and coefficients are printed to 10 decimals
    assert objective == pytest.approx(row["loss"], rel=5e-6, abs=5e-11)
    result = only(fit(Endpoints.from_frame(data), "chinchilla", bootstrap=0, delta=delta))
    assert result.certificate.certified
    assert result.objective <= row["loss"] + 5e-11
    if folder == "parameters_delta-3" and not stem.endswith("_512x"):
        assert result.objective == pytest.approx(row["loss"], rel=5e-6)
        exponents = [result.surface.coefficients[name] for name in ("alpha", "beta")]
        np.testing.assert_allclose(exponents, [row["alpha_N"], row["beta_D"]], atol=0.003)


# -- Llama 3 iso-FLOP runs (digitised by Open-Athena) ------------------------------------------------------------------


@pytest.fixture(scope="module")
def llama(real_data: Path) -> Endpoints:
    frame = pd.read_csv(real_data / "sets" / "isoflop_llama_3.csv")
    raw = frame[frame["condition"] == "raw_loss"]
    assert len(raw) == 133
    return Endpoints.from_frame(raw[["N", "D", "loss"]])


def test_llama_approach_3(llama: Endpoints) -> None:
    """Squared error of the log loss: E .6021, A 56.2, B 147.3, alpha .3068, beta .3110 as published."""
    result = only(fit(llama, "chinchilla", bootstrap=0, delta=np.inf, residual="log"))
    published = {"E": (0.6021, 4), "A": (56.2, 1), "B": (147.3, 1), "alpha": (0.3068, 4), "beta": (0.3110, 4)}
    for name, (value, decimals) in published.items():
        assert round(result.surface.coefficients[name], decimals) == value


def test_llama_variable_projection(llama: Endpoints) -> None:
    """Squared error of the loss: exponents to 8 digits of the published 16 (the data are digitised to ten)."""
    result = only(fit(llama, "chinchilla", bootstrap=0, delta=np.inf, residual="raw"))
    c = result.surface.coefficients
    assert c["alpha"] == pytest.approx(0.3100060864600114, abs=1e-8)
    assert c["beta"] == pytest.approx(0.3136430673363664, abs=1e-8)
    assert [c["E"], c["A"], c["B"]] == pytest.approx([0.6047, 59.1, 155.1], abs=0.05)
    assert 2 * result.objective == pytest.approx(2.020e-3, abs=5e-7)  # residual sum of squares
    best = Frontier(result.surface).allocate(3.8e25)
    assert float(best.flops_per_token) / 6 == pytest.approx(621.6e9, abs=0.05e9)
    assert float(best.tokens) == pytest.approx(10.2e12, abs=0.05e12)
    assert float(best.loss) == pytest.approx(0.630631, abs=5e-7)
    flops = Frontier(result.surface).allocate([1e20, 1e24]).flops_per_token
    assert np.log(flops[1] / flops[0]) / np.log(1e4) == pytest.approx(0.5029, abs=5e-5)


def test_llama_huber(llama: Endpoints) -> None:
    """Huber 1e-3 gives another surface; the residual is a choice that changes digits."""
    result = only(fit(llama, "chinchilla", bootstrap=0))
    np.testing.assert_allclose(result.surface.coef, [0.59419, 38.33, 160.2, 0.2835, 0.3157], rtol=2e-4)


# -- Marin's three-point ladder ----------------------------------------------------------------------------------------

LADDER = {"C": [2.19e17, 1.70e18, 9.00e18], "loss": [3.7404, 3.3834, 3.1230]}


def test_pinned_three_point_fit() -> None:
    """E held at 1.6: 81.6817, .0911845, residuals -.00222 +.00598 -.00384 and 2.97538 at 2.83e19, as typed."""
    study = fit(
        Endpoints.from_frame(LADDER), "power-c", bootstrap=0, delta=np.inf, residual="raw", pins={"E": 1.6}
    )
    result = only(study)
    c = result.surface.coefficients
    assert c["E"] == 1.6
    assert c["A"] == pytest.approx(81.6817, abs=5e-5)
    assert c["alpha"] == pytest.approx(0.0911845, abs=5e-8)
    residual = np.array(LADDER["loss"]) - result.surface.loss(C=np.array(LADDER["C"]))
    np.testing.assert_allclose(residual, [-0.00222, 0.00598, -0.00384], atol=5e-6)
    assert float(result.surface.loss(C=2.83e19)) == pytest.approx(2.97538, abs=6e-6)
    assert "pinned" in {note.code for note in study.all_notes}


def test_exact_three_parameter_interpolation() -> None:
    """Three points, three parameters: .5778326, 32.62539, .05844809; the note says that nothing is left over."""
    study = fit(Endpoints.from_frame(LADDER), "power-c", bootstrap=0, delta=np.inf, residual="raw")
    result = only(study)
    np.testing.assert_allclose(result.surface.coef, [0.5778326, 32.62539, 0.05844809], rtol=2e-7)
    assert float(result.surface.loss(C=2.83e19)) == pytest.approx(2.958155, abs=5e-7)
    assert result.rmse < 1e-9
    assert "ill_conditioned" in {note.code for note in study.all_notes}


# -- xLSTM and transformer, token-parameter grid -----------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["transformer", "xlstm"])
@pytest.mark.parametrize("ceiling", [5000, 300, 100])
def test_xlstm_parametric_fits(real_data: Path, arch: str, ceiling: int) -> None:
    """Published ln A, ln B, ln E and exponents to 3-4 digits, with an objective not above theirs.

    Losses are published to 7 digits, which moves an objective of 1e-4 by up to 5e-5 of itself.
    """
    published = pd.read_csv(real_data / "published" / "xlstm_tokenparam_fits.csv")
    name = {"transformer": "llama", "xlstm": "mlstm"}[arch]
    (row,) = published[(published["model"] == name) & (published["tpp_range"] == f"0-{ceiling}")].to_dict(
        "records"
    )
    frame = pd.read_csv(real_data / "sets" / "xlstm_tokenparam.csv")
    frame = frame[(frame["arch"] == arch) & (frame["tokens_per_param"] <= ceiling)]
    study = fit(Endpoints.from_frame(frame[["arch", "N", "D", "loss"]]), "chinchilla", bootstrap=0)
    result = only(study)
    assert result.objective <= row["huber_sum"] * (1 + 5e-5)
    c = result.surface.coefficients
    assert [np.log(c["A"]), np.log(c["B"])] == pytest.approx([row["a"], row["b"]], rel=5e-4)
    assert [c["alpha"], c["beta"]] == pytest.approx([row["alpha"], row["beta"]], rel=1e-3)
    if row["e"] > -100:
        assert np.log(c["E"]) == pytest.approx(row["e"], abs=2e-3)
    else:  # published as exp(-1348): these data do not identify the floor, and the study says so
        assert c["E"] == 0.0
        assert "floor_at_zero" in {note.code for note in study.all_notes}
        assert result.certificate.at_bounds == ("E",)


def test_file_and_frame_agree(real_data: Path) -> None:
    """Reading the CSV by its path gives the fit of the frame; unread columns are noted, not lost in silence."""
    path = real_data / "sets" / "chinchilla_epoch.csv"
    endpoints = read_endpoints(path)
    assert len(endpoints) == 245
    assert only(fit(endpoints, "chinchilla", bootstrap=0)).objective == pytest.approx(
        1.826010523e-3, rel=1e-9
    )
    assert "ignored_columns" in {note.code for note in endpoints.notes}
