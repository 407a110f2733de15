"""The headline gain under other choices: each row is the fit that somebody else would have made."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from smelt_scaling import Endpoints, ce_gain, example_endpoints, fit, load_paper, notes_of, show_table
from smelt_scaling.analyses.diagnostics import sensitivity
from smelt_scaling.analyses.diagnostics.panel_findings import sensitivity_findings
from smelt_scaling.cli import run
from smelt_scaling.errors import FrontierError, UsageError
from smelt_scaling.reporting.diagnostics.sensitivity import sensitivity_grids
from smelt_scaling.reporting.document import Document
from smelt_scaling.reporting.text import to_text
from smelt_scaling.study import Study

RUNS = example_endpoints()
FRAME = RUNS.to_frame()
ASKED: dict[str, Any] = {"target": "smelt", "reference": "baseline"}
BUDGET, S = 1e21, 0.947
#: Two certified fits of one problem from other starts: 1e-12 of the objective, so about its root of the optimum.
SAME = 1e-5


def study_of(frame: pd.DataFrame, law: str = "sparse-additive", **options: Any) -> Study:
    return fit(
        Endpoints.from_frame(frame, source="runs.csv"), law, **({"bootstrap": 0, "starts": 8} | options)
    )


@cache
def drawn() -> Study:
    return fit(RUNS, bootstrap=200)


@cache
def panel() -> pd.DataFrame:
    return sensitivity(drawn(), **ASKED)


def row(frame: pd.DataFrame, group: str, choice: str) -> dict[str, Any]:
    (found,) = frame[(frame["group"] == group) & frame["choice"].str.startswith(choice)].to_dict("records")
    return found


def gain_of(study: Study, budget: float = BUDGET, sparsity: float | None = S) -> float:
    return float(ce_gain(study, budget, sparsities=sparsity, **ASKED)["gain"][0])


# -- every row is the fit somebody else would have made ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "choice", "options"),
    [
        ("delta", "0.0001", {"delta": 1e-4}),
        ("delta", "inf", {"delta": float("inf")}),
        ("delta", "auto", {"delta": "auto"}),
        ("residual", "of the loss", {"residual": "raw"}),
        ("weights", "each cell", {"cell_weights": "equal"}),
    ],
)
def test_a_choice_of_the_estimator_is_that_fit(group: str, choice: str, options: dict[str, Any]) -> None:
    found = row(panel(), group, choice)
    assert found["gain"] == pytest.approx(gain_of(study_of(FRAME, **options)), abs=SAME)
    assert found["change"] == pytest.approx(found["gain"] - gain_of(drawn()), abs=1e-15)
    assert found["multiplier"] == pytest.approx(1 / (1 - found["gain"]), rel=1e-12)
    assert (found["kind"], found["is_default"], found["certified"]) == ("estimator", False, True)


def test_least_squares_is_that_of_scipy() -> None:
    """delta = inf: residuals of ln(loss) minimised by another library, the gain in closed form."""
    from scipy.optimize import least_squares

    def frontier(arch: str) -> tuple[float, float, float]:
        own = FRAME[FRAME["arch"] == arch]
        x, z, y = np.log(own["F"]), np.log1p(-own["S"]), np.log(own["D"])

        def residual(t: np.ndarray) -> np.ndarray:
            loss = t[0] + np.exp(t[1] - t[3] * (x - x.mean()) + t[4] * (z - z.mean()))
            return np.asarray(np.log(loss + np.exp(t[2] - t[5] * (y - y.mean()))) - np.log(own["loss"]))

        t = least_squares(residual, [1.4, -1.3, -1.5, 0.37, 0.15, 0.66], xtol=1e-15, ftol=1e-15, gtol=1e-15).x
        a, b, c = t[3:]
        lnA, lnK = t[1] + a * x.mean() - b * z.mean(), t[2] + c * y.mean()  # noqa: N806
        lnQ, w = lnA + b * np.log1p(-S), c / (a + c)  # noqa: N806
        lnP = np.log(a + c) + w * (lnQ - np.log(c)) + (1 - w) * (lnK - np.log(a))  # noqa: N806
        return float(t[0]), float(lnP), float(a * c / (a + c))

    (E_t, P_t, g_t), (E_r, P_r, g_r) = frontier("smelt"), frontier("baseline")  # noqa: N806
    loss = E_t + np.exp(P_t - g_t * np.log(BUDGET))
    expected = 1 - BUDGET / np.exp((P_r - np.log(loss - E_r)) / g_r)
    assert row(panel(), "delta", "inf")["gain"] == pytest.approx(expected, abs=SAME)


@pytest.mark.parametrize(
    ("group", "choice", "kept"),
    [
        ("size", "smallest out (100M)", FRAME["scale"] != "100M"),
        ("size", "largest out (1.6B)", FRAME["scale"] != "1.6B"),
        ("horizon", "D 216B out", FRAME["D"] < 2e11),
        ("sparsity", "S = 0.846 out", FRAME["S"] > 0.9),
    ],
)
def test_a_choice_of_rows_is_the_fit_to_the_rest(group: str, choice: str, kept: pd.Series[bool]) -> None:
    found = row(panel(), group, choice)
    assert found["left_out"] == int((~kept).sum())
    assert found["gain"] == pytest.approx(gain_of(study_of(FRAME[kept])), abs=SAME)


def test_the_rows_of_the_panel() -> None:
    """Every choice of the brief stands there once, the study's own marked in each group of settings."""
    groups = panel().groupby("group", sort=False)
    assert {name: len(own) for name, own in groups} == {
        **{"delta": 7, "residual": 2, "weights": 2, "flops": 3, "S": 6, "outliers": 2},
        **{"size": 2, "horizon": 6, "sparsity": 3, "digits": 3},
    }
    for name in ("delta", "residual", "weights", "flops", "S", "outliers", "digits"):
        (own,) = groups.get_group(name).query("is_default").to_dict("records")
        assert (own["change"], own["gain"]) == (0.0, gain_of(drawn()))


def test_another_delta_of_the_study_takes_its_place() -> None:
    frame = sensitivity(study_of(FRAME, delta=5e-3, residual="raw"), **ASKED)
    delta = frame[frame["group"] == "delta"]
    assert delta["choice"].tolist() == ["0.0001", "0.0003", "0.001", "0.003", "0.005", "0.01", "inf", "auto"]
    assert delta["is_default"].tolist() == [False] * 4 + [True] + [False] * 3
    assert row(frame, "residual", "of the loss")["is_default"]
    # all other settings of the study stay in every row
    expected = gain_of(study_of(FRAME, delta=float("inf"), residual="raw"))
    assert row(frame, "delta", "inf")["gain"] == pytest.approx(expected, abs=SAME)


# -- other questions ---------------------------------------------------------------------------------------------------


def test_other_sparsities() -> None:
    """Own medians, two digits, and the other tiers: the same fit, read at another S."""
    medians = {arch: np.median(RUNS.S[(RUNS.arch == arch) & (RUNS.tiers == 1)][::6]) for arch in RUNS.archs}
    for choice, at, kind in (
        ("S = 0.9475, median of smelt", medians["smelt"], "estimator"),
        ("S = 0.947, median of baseline", medians["baseline"], "estimator"),
        ("S = 0.95, to a percent", 0.95, "estimator"),
        ("S = 0.846, another tier", 0.846, "question"),
        ("S = 0.969, another tier", 0.969, "question"),
    ):
        found = row(panel(), "S", choice)
        assert found["kind"] == kind
        # default sparsities are medians over cells, here of three decimals
        assert found["gain"] == pytest.approx(gain_of(drawn(), sparsity=float(at)), abs=2e-4)


@pytest.mark.parametrize("digits", [3, 4])
def test_rounded_coefficients(digits: int) -> None:
    """The gain of coefficients written with so many digits, and the sum of what half a last digit of each moves it."""

    def rounded(moved: tuple[str, str, int] | None = None) -> float:
        surfaces = {}
        for arch, result in drawn().fits.items():
            values = {}
            for name, value in result.surface.coefficients.items():
                text = f"{value:.{digits - 1}e}"
                mantissa, _, power = text.partition("e")
                step = 0.5 * 10.0 ** (int(power) - digits + 1)
                sign = moved[2] if moved is not None and moved[:2] == (arch, name) else 0
                values[name] = float(text) + sign * step
            surfaces[arch] = values
        lnP, g, E = {}, {}, {}  # noqa: N806
        for arch, v in surfaces.items():
            a, c = v["a"], v["c"]
            w, lnQ = c / (a + c), np.log(v["A"]) + v["b"] * np.log1p(-S)  # noqa: N806
            E[arch], g[arch] = v["E"], a * c / (a + c)
            lnP[arch] = np.log(a + c) + w * (lnQ - np.log(c)) + (1 - w) * (np.log(v["K"]) - np.log(a))
        loss = E["smelt"] + np.exp(lnP["smelt"] - g["smelt"] * np.log(BUDGET))
        reference = np.exp((lnP["baseline"] - np.log(loss - E["baseline"])) / g["baseline"])
        return float(1 - BUDGET / reference)

    point = rounded()
    bound = sum(
        max(abs(rounded((arch, name, sign)) - point) for sign in (-1, 1))
        for arch in RUNS.archs
        for name in ("E", "A", "K", "a", "b", "c")
    )
    found = row(panel(), "digits", f"{digits} significant")
    assert found["kind"] == "question"
    # S of the headline is a median with digits of its own
    assert found["gain"] == pytest.approx(point, abs=1e-4)
    assert found["gain_rounding"] == pytest.approx(bound, rel=2e-3)


def test_six_n_is_a_budget_in_another_unit() -> None:
    """Where F is 1.5 x 6 N for both, 1e21 FLOPs of 6 N are 1.5e21 as logged: the same gain, exactly."""
    frame = FRAME.assign(N=FRAME["F"] / 9).drop(columns="N_act")
    study = study_of(frame)
    found = row(sensitivity(study, **ASKED), "flops", "6 N")
    assert found["kind"] == "estimator"
    assert found["gain"] == pytest.approx(gain_of(study, 1.5e21), abs=SAME)


def test_a_count_that_is_dearer_to_one_is_another_question() -> None:
    """6 N_act of a model that passes through its layers twice is no second opinion on the same compute."""
    found = row(panel(), "flops", "6 N_act")
    assert found["kind"] == "question"
    shares = FRAME.assign(share=6 * FRAME["N_act"] / FRAME["F"]).groupby("arch")["share"].median()
    assert f"baseline ×{shares['baseline']:.2g}, smelt ×{shares['smelt']:.2g}" in found["choice"]
    expected = gain_of(study_of(FRAME.assign(F=6 * FRAME["N_act"])))
    assert found["gain"] == pytest.approx(expected, abs=SAME)
    between = panel().attrs["ranges"][0]
    assert between["gain_hi"] < found["gain"]


def test_a_held_parameter_says_nothing_of_another_count() -> None:
    study = study_of(FRAME, pins={"smelt": {"a": 0.38}})
    found = row(sensitivity(study, **ASKED), "flops", "6 N_act")
    assert (np.isnan(found["gain"]), "a is held with --pin" in found["reason"]) == (True, True)


# -- the dense tier and outliers ---------------------------------------------------------------------------------------


@cache
def with_dense() -> pd.DataFrame:
    """The example with a dense tier that obeys another law: its losses are 5 % above."""
    dense = FRAME[FRAME["S"] < 0.9].assign(S=0.0, cell=lambda f: f["scale"] + "/dense", source="x")
    return pd.concat([FRAME.assign(source="x"), dense.assign(loss=1.05 * dense["loss"])])


def test_the_dense_tier_in_and_out() -> None:
    study = study_of(with_dense())
    frame = sensitivity(study, budget=BUDGET, sparsity=S, **ASKED)
    assert row(frame, "dense", "dense tier in")["is_default"]
    out = row(frame, "dense", "dense tier out")
    assert out["gain"] == pytest.approx(gain_of(study_of(FRAME)), abs=SAME)
    assert out["left_out"] == 48


def test_an_excluded_tier_is_unknown_and_says_so() -> None:
    endpoints = Endpoints.from_frame(with_dense(), source="runs.csv").exclude_tier(0)
    frame = sensitivity(fit(endpoints, bootstrap=0), budget=BUDGET, sparsity=S, **ASKED)
    missing = row(frame, "dense", "excluded tier in")
    assert np.isnan(missing["gain"])
    assert "48 rows with S from 0 to 0 left out" in missing["reason"]
    assert row(frame, "dense", "excluded tier out")["is_default"]
    assert "choices_without_gain" in {note.code for note in notes_of(frame)}


def test_outliers_in_and_out() -> None:
    """One loss 20 % too high: the row without it is that of --drop-outliers."""
    frame = FRAME.assign(loss=np.where(np.arange(len(FRAME)) == 80, 1.2, 1.0) * FRAME["loss"])
    found = row(sensitivity(study_of(frame), **ASKED), "outliers", "out")
    dropped = study_of(frame, drop_outliers=True)
    assert (found["left_out"], found["gain"]) == (1, pytest.approx(gain_of(dropped), abs=SAME))
    again = sensitivity(dropped, **ASKED)
    assert row(again, "outliers", "out")["is_default"]
    assert "without --drop-outliers" in row(again, "outliers", "kept")["reason"]


# -- ranges, findings, refusals ----------------------------------------------------------------------------------------


def test_ranges() -> None:
    ranges = {one["kind"]: one for one in panel().attrs["ranges"]}
    for kind in ("estimator", "rows"):
        own = panel().query("kind == @kind")["gain"]
        assert (ranges[kind]["gain_lo"], ranges[kind]["gain_hi"]) == (own.min(), own.max())
        assert ranges[kind]["failed"] == 0
    asked = ce_gain(drawn(), BUDGET, sparsities=panel().attrs["settings"]["sparsity"], **ASKED).iloc[0]
    assert [ranges["interval"][end] for end in ("gain_lo", "gain_hi")] == [asked["gain_lo"], asked["gain_hi"]]


def findings(frame: pd.DataFrame, estimator: tuple[float, float], interval: Any) -> list[str]:
    changed = frame.copy()
    lo, hi = interval or (None, None)
    changed.attrs = frame.attrs | {
        "ranges": [
            {
                "kind": "estimator",
                "gain_lo": estimator[0],
                "gain_hi": estimator[1],
                "choices": 12,
                "failed": 1,
            },
            {"kind": "rows", "gain_lo": 0.1, "gain_hi": 0.1, "choices": 12, "failed": 0},
            {"kind": "interval", "gain_lo": lo, "gain_hi": hi, "choices": 200, "failed": 0},
        ]
    }
    return [one.verdict for one in sensitivity_findings(changed)][:2]


@pytest.mark.parametrize(
    ("estimator", "interval", "verdict"),
    [
        ((0.08, 0.12), (0.0, 0.2), "fine"),
        ((0.05, 0.16), (0.0, 0.2), "caution"),
        ((0.01, 0.22), (0.0, 0.2), "serious"),
        ((-0.01, 0.02), (0.005, 0.2), "serious"),
        ((-0.01, 0.02), (-0.1, 0.2), "fine"),
        ((0.05, 0.15), None, "unknown"),
    ],
)
def test_a_range_is_judged_by_the_interval(estimator: Any, interval: Any, verdict: str) -> None:
    assert findings(panel(), estimator, interval)[0] == verdict


def test_findings_of_the_example() -> None:
    found = sensitivity_findings(panel())
    assert [one.verdict for one in found] == ["fine", "caution", "caution", "caution"]
    assert all((one.verdict == "fine") == (one.remedy == "") for one in found)
    assert "by 6 N_act" in found[2].value
    assert "points at 4 significant digits" in found[3].value


def test_grids_fit_eighty_columns() -> None:
    text = to_text(Document(title="", caption=(), grids=sensitivity_grids(panel())))
    assert max(map(len, text.splitlines())) <= 80
    for expected in ("as fitted", "largest out (1.6B)", "Rows left out", "200 draws"):
        assert expected in text


def test_equal_rows_in_any_order_give_equal_panels() -> None:
    shuffled = fit(Endpoints.from_frame(FRAME.sample(frac=1, random_state=1)), bootstrap=0)
    pd.testing.assert_frame_equal(sensitivity(shuffled, **ASKED), panel(), check_exact=True)


@pytest.mark.parametrize(
    ("study", "error", "said"),
    [
        (lambda: load_paper("smelt"), UsageError, "published coefficients cannot be fitted again"),
        (lambda: study_of(FRAME[FRAME["arch"] == "smelt"]), UsageError, "a gain compares two"),
        (
            lambda: study_of(FRAME[FRAME["D"] > 2e11]),
            FrontierError,
            "no frontier, because c, K, E not identified",
        ),
    ],
)
def test_what_has_no_gain_is_refused_in_one_line(study: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        sensitivity(study())
    assert "\n" not in str(caught.value)


def test_losses_of_two_tokenizers_are_refused() -> None:
    from smelt_scaling.errors import DataError

    with pytest.raises(DataError, match="tokenizer differs"):
        sensitivity(study_of(FRAME.assign(tokenizer=FRAME["arch"])), **ASKED)


# -- other laws and tables ---------------------------------------------------------------------------------------------


def test_a_law_in_parameters_by_the_flops_of_the_table() -> None:
    """chinchilla counts 6 N; with F of the table in its place it is the same law in F / 6."""
    frame = FRAME.assign(N=FRAME["F"] / 9, scale="s").drop(columns=["N_act", "S", "cell", "scale"])
    study = study_of(frame, "chinchilla")
    panel = sensitivity(study, budget=1e20, **ASKED)
    assert row(panel, "flops", "6 N")["is_default"]
    expected = gain_of(study_of(frame.assign(N=FRAME["F"] / 6), "chinchilla"), 1e20, None)
    assert row(panel, "flops", "F of the table")["gain"] == pytest.approx(expected, abs=SAME)
    assert "S" not in set(panel["group"])


def test_a_table_without_cells_scales_or_horizons() -> None:
    """Sizes are levels of F then, and the table names no other count of FLOPs."""
    bare = FRAME[["arch", "F", "D", "S", "loss"]]
    seen: list[tuple[int, int]] = []
    panel = sensitivity(study_of(bare), progress=lambda *done: seen.append(done), **ASKED)
    assert seen == [(i, 25) for i in range(1, 26)]
    assert panel[panel["group"] == "size"]["choice"].tolist()[0].startswith("smallest out (F ")
    assert panel["gain"].notna().all()


def test_two_tiers_of_which_one_is_left_out() -> None:
    """The tier that is left answers at its own S, and the other tier's S has no answer: a row with its reason."""
    study = study_of(FRAME[FRAME["S"] < 0.96])
    panel = sensitivity(study, sparsity=S, **ASKED)
    assert row(panel, "sparsity", "S = 0.846 out")["gain"] == pytest.approx(
        gain_of(study_of(FRAME[(FRAME["S"] > 0.9) & (FRAME["S"] < 0.96)])), abs=1e-4
    )
    lost = row(panel, "sparsity", "S = 0.947 out")
    assert np.isnan(lost["gain"])
    assert "one sparsity" in lost["reason"]


# -- beside every gain of a table --------------------------------------------------------------------------------------


def test_the_range_beside_a_gain_is_that_of_the_panel() -> None:
    """Of delta, residual, weights and FLOPs; S is a column of its own there."""
    at = panel().attrs["settings"]["sparsity"]
    table = ce_gain(drawn(), [BUDGET, 1e20], sparsities=[at, 0.969], sensitivity=True, **ASKED)
    own = panel()[panel()["group"].isin(["delta", "residual", "weights", "flops"])].query(
        "kind == 'estimator'"
    )
    assert table["sensitivity_lo"][0] == pytest.approx(own["gain"].min(), abs=1e-12)
    assert table["sensitivity_hi"][0] == pytest.approx(own["gain"].max(), abs=1e-12)
    assert (table["sensitivity_lo"] <= table["gain"]).all()
    assert (table["sensitivity_hi"] >= table["gain"]).all()
    assert table.attrs["settings"]["sensitivity_choices"] == 9
    (said,) = [note for note in notes_of(table) if note.code == "estimator_range"]
    assert "not in it: 6 N_act" in said.message
    plain = ce_gain(drawn(), [BUDGET, 1e20], sparsities=[at, 0.969], **ASKED)
    pd.testing.assert_frame_equal(table[plain.columns], plain)


def test_the_caption_states_the_range() -> None:
    table = ce_gain(drawn(), BUDGET, sparsities=S, sensitivity=True, **ASKED)
    lo, hi = (100 * table[f"sensitivity_{end}"][0] for end in ("lo", "hi"))
    for form in ("table", "md"):
        text = " ".join(show_table(table, form).split())
        assert "range of the point estimate over 9 further fits" in text
        assert f"[{lo:.1f}" in text
        assert f"{hi:.1f}" in text
    assert "other choices" not in show_table(ce_gain(drawn(), BUDGET, sparsities=S, **ASKED))


def test_an_unreachable_choice_has_no_upper_end() -> None:
    """Far out the floors decide, and they differ between estimators."""
    table = ce_gain(drawn(), 1e29, sparsities=S, sensitivity=True, **ASKED)
    assert table["sensitivity_hi"].isna().all()
    assert "unreachable]" in show_table(table)


def test_published_coefficients_have_no_range() -> None:
    with pytest.raises(UsageError, match="cannot be fitted again, so --sensitivity says nothing"):
        ce_gain(load_paper("smelt"), BUDGET, sensitivity=True, **ASKED)


def test_a_choice_that_cannot_be_made_is_said() -> None:
    study = study_of(FRAME, pins={"a": 0.38})
    table = ce_gain(study, BUDGET, sparsities=S, sensitivity=True, **ASKED)
    (said,) = [note for note in notes_of(table) if note.code == "choices_without_gain"]
    assert "a is held with --pin" in said.message


def test_the_command_prints_the_same(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    drawn().save(tmp_path / "study")
    argv = ["ce-gain", "--study", str(tmp_path / "study"), "--budget", "1e21", "--sparsity", "0.947"]
    assert run([*argv, "--sensitivity", "--target", "smelt", "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    table = ce_gain(drawn(), BUDGET, sparsities=S, sensitivity=True, **ASKED)
    for name in ("sensitivity_lo", "sensitivity_hi"):
        assert record["rows"][0][name] == table[name][0]
    assert record["settings"]["sensitivity_choices"] == 9
