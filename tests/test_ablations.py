"""Ablation tables: the survey's differences, their worth in compute, and when a level may be called the best."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from smelt_scaling import (
    DataError,
    FrontierError,
    UsageError,
    compare_levels,
    example_endpoints,
    fit,
    load_paper,
    notes_of,
    show_table,
)
from smelt_scaling.analyses.best_of import best_set, best_shares, least_difference, one_sided_dunnett

PAPER = load_paper("smelt")
ON_BASELINE = {"study": PAPER, "reference": "baseline"}
SPAN = PAPER.tables["ablation_span"]
LEVELS = list(SPAN.column("span"))


def span() -> pd.DataFrame:
    """Return the survey's span table, both sparsities."""
    rows = [
        ("span", tier, level, float(value))
        for tier in ("85", "95")
        for level, value in zip(LEVELS, SPAN.column(f"loss_{tier}"), strict=True)
    ]
    return pd.DataFrame(rows, columns=["factor", "group", "level", "value"])


def loops() -> pd.DataFrame:
    table = PAPER.tables["ablation_loops"]
    rows = [
        (level, metric, float(value))
        for metric, column in (("loss", "loss"), ("core", "dclm_core"))
        for level, value in zip(table.column("loops"), table.column(column), strict=True)
    ]
    return pd.DataFrame(rows, columns=["level", "metric", "value"])


def of(frame: pd.DataFrame, group: str, column: str) -> list[Any]:
    return frame.loc[frame["group"] == group, column].tolist()


# ------------------------------------------------------------------ the survey's tables


def test_printed_differences_and_their_worth_in_compute() -> None:
    frame = compare_levels(span(), **ON_BASELINE)
    np.testing.assert_allclose(of(frame, "85", "delta"), [0, -0.0170, -0.0188, -0.0071, -0.0123], atol=1e-12)
    np.testing.assert_allclose(of(frame, "95", "delta"), [0, -0.0211, -0.0218, -0.0191, -0.0134], atol=1e-12)
    best = {
        group: frame[(frame["group"] == group) & (frame["level"] == "50%")].iloc[0] for group in ("85", "95")
    }
    # ((L - d - E)/(L - E))^(-1/gamma) of the published surface: x1.175 (14.9 %) and x1.246 (19.7 %)
    E, a, c = 1.4439, 0.3703, 0.6594
    for group, loss, delta, printed, gain in (
        ("85", 1.9445, -0.0188, 1.175, 14.9),
        ("95", 1.8735, -0.0218, 1.246, 19.7),
    ):
        by_hand = ((loss + delta - E) / (loss - E)) ** (-(a + c) / (a * c))
        assert best[group]["multiplier"] == pytest.approx(by_hand, rel=1e-9)
        assert round(best[group]["multiplier"], 3) == printed
        assert round(100 * best[group]["gain"], 1) == gain


def test_loops_table_and_metrics_that_disagree() -> None:
    frame = compare_levels(loops(), higher=["core"], noise={"loss": 0.002, "core": 0.5}, **ON_BASELINE)
    assert frame.loc[frame["metric"] == "loss", "value"].tolist() == [1.9445, 1.9257, 1.9385, 1.9360]
    assert frame.loc[frame["metric"] == "core", "value"].tolist() == [24.92, 27.57, 27.15, 27.30]
    assert frame.loc[frame["metric"] == "core", "gain"].isna().all()  # no frontier is in units of a score
    summary = {row["metric"]: row for row in frame.attrs["summary"]}
    assert summary["loss"]["best"] == "2"
    assert summary["core"]["best"] is None
    assert summary["core"]["may_be_best"] == ["2", "3", "4"]
    other = loops()
    other.loc[(other["metric"] == "core") & (other["level"] == "4"), "value"] = 28.0
    codes = {note.code for note in notes_of(compare_levels(other, higher=["core"]))}
    assert "metrics_disagree" in codes


@pytest.mark.parametrize(
    ("group", "shares"),
    [("85", (0.99, 0.90, 0.74, 0.53)), ("95", (0.84, 0.68, 0.55, 0.40))],
)
def test_share_of_repeats_in_which_half_the_span_is_best(group: str, shares: tuple[float, ...]) -> None:
    """Known from 10^4 draws of normal level means: a Monte-Carlo error of half a point, and rounding as much."""
    for sd, expected in zip((0.0005, 0.001, 0.002, 0.0055), shares, strict=True):
        frame = compare_levels(span(), noise=sd)
        found = frame[(frame["group"] == group) & (frame["level"] == "50%")]["best_share"].item()
        assert found == pytest.approx(expected, abs=0.011)
        assert sum(of(frame, group, "best_share")) == pytest.approx(
            1.0, abs=1e-6
        )  # no level is counted twice


def test_without_noise_no_winner_is_named_and_the_way_to_one_is() -> None:
    frame = compare_levels(span())
    assert frame[["best_share", "may_be_best", "delta_lo", "delta_in_noise"]].isna().all().all()
    assert all(row["best"] is None and row["least_difference"] is None for row in frame.attrs["summary"])
    (note,) = [note for note in notes_of(frame) if note.code == "noise_unknown"]
    assert "--noise loss=SD" in note.message
    assert "column seed" in note.message
    assert "not to be said" in show_table(frame)


def test_differences_in_units_of_noise_and_the_least_detectable_one() -> None:
    frame = compare_levels(span(), noise=0.002)
    assert of(frame, "85", "delta_in_noise")[2] == pytest.approx(-9.4)
    assert frame.attrs["summary"][0]["least_difference"] == pytest.approx(
        2.77 * 0.002, rel=1e-3
    )  # 1.96 sqrt(2) sd
    row = frame.iloc[2]
    assert row["delta_hi"] - row["delta"] == pytest.approx(2.772 * 0.002, rel=1e-3)
    assert frame.attrs["summary"][0]["best"] is None
    assert "unresolved_best" in {note.code for note in notes_of(frame)}
    assert compare_levels(span(), noise=0.0005).attrs["summary"][0]["best"] == "50%"
    worth = compare_levels(span(), noise=0.002, **ON_BASELINE).iloc[2]
    assert worth["gain_lo"] < worth["gain"] < worth["gain_hi"]


# ------------------------------------------------------------------ repeated runs


def repeated(
    levels: tuple[float, ...] = (0.0, -0.02, -0.021), runs: int = 4, sd: float = 0.002
) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        (f"l{j}", str(seed), 1.95 + shift + sd * rng.normal())
        for j, shift in enumerate(levels)
        for seed in range(runs)
    ]
    return pd.DataFrame(rows, columns=["level", "seed", "value"])


def test_noise_of_seeds_is_the_pooled_standard_deviation() -> None:
    table = repeated()
    frame = compare_levels(table)
    variance = table.groupby("level")["value"].var(ddof=1).mean()  # equal numbers of runs
    (row,) = frame.attrs["summary"]
    assert row["noise"] == pytest.approx(np.sqrt(variance), rel=1e-12)
    assert (row["noise_source"], row["df"]) == ("repeated runs", 9)
    assert frame["runs"].tolist() == [4, 4, 4]


def test_dunnett_and_tukey_are_those_of_scipy() -> None:
    from scipy.stats import dunnett, tukey_hsd

    table = repeated()
    runs = [part["value"].to_numpy() for _, part in table.groupby("level")]
    frame = compare_levels(table)
    expected = dunnett(*runs[1:], control=runs[0])
    found = frame.attrs["dunnett"]
    np.testing.assert_allclose(
        [row["p_adjusted"] for row in found], expected.pvalue, atol=2e-3
    )  # its own integral
    by_pair = {(row["level"], row["against"]): row for row in frame.attrs["tukey"]}
    tukey = tukey_hsd(*runs)
    assert by_pair["l0", "l1"]["p_adjusted"] == pytest.approx(tukey.pvalue[0, 1], rel=1e-9)
    assert by_pair["l0", "l1"]["difference"] == pytest.approx(runs[0].mean() - runs[1].mean(), rel=1e-12)
    assert found[0]["difference_hi"] < 0
    text = show_table(frame)
    assert "Dunnett" in text
    assert "adjusted P" in text


def test_a_level_without_repeats_has_dunnett_and_no_tukey() -> None:
    table = repeated()
    frame = compare_levels(table[(table["level"] != "l2") | (table["seed"] == "0")])
    assert len(frame.attrs["dunnett"]) == 2
    assert frame.attrs["tukey"] == []
    assert "no_replicates" in {note.code for note in notes_of(frame)}


def test_a_level_of_equal_runs_is_tested_without_a_warning() -> None:
    """Pooled variance by hand: (0 + .5) / 2 with 2 degrees of freedom, so t = .5 / sqrt(.25) = 1."""
    from scipy.stats import t

    table = pd.DataFrame({"level": list("aabb"), "seed": [1, 2, 1, 2], "value": [1.0, 1.0, 1.0, 2.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = compare_levels(table)
    for name in ("dunnett", "tukey"):
        assert frame.attrs[name][0]["p_adjusted"] == pytest.approx(2 * t.sf(1, 2), abs=1e-3)  # one comparison


def test_critical_values_are_those_of_the_published_tables() -> None:
    """Dunnett (1955), table 1a: one-sided 95 % points of the t with equal correlation 1/2, printed to two digits."""
    for others, df, printed in [
        (1, 10, 1.81),
        (2, 10, 2.15),
        (4, 10, 2.47),
        (2, np.inf, 1.92),
        (4, np.inf, 2.16),
    ]:
        assert one_sided_dunnett(0.95, others, df) == pytest.approx(printed, abs=0.011)
    assert least_difference(1.0, 0.95, df=9) == pytest.approx(2.262 * np.sqrt(2), rel=1e-3)  # t table


def test_critical_values_of_unequal_numbers_of_runs_are_those_of_the_multivariate_normal() -> None:
    """Differences from one value share its error: their correlation is v / sqrt((v + v_i) (v + v_j))."""
    from scipy.stats import multivariate_normal

    for runs in ([100, 1, 1, 1, 1], [1, 100, 100, 100], [2, 1, 5, 3]):
        error = 1 / np.sqrt(runs)
        d = one_sided_dunnett(0.95, error[1:] / error[0])
        total = error[0] ** 2 + error[1:] ** 2
        covariance = error[0] ** 2 / np.sqrt(np.outer(total, total))
        np.fill_diagonal(covariance, 1.0)
        found = multivariate_normal(cov=covariance, seed=0).cdf(np.full(len(total), d))
        assert found == pytest.approx(0.95, abs=2e-4)  # its integral is random at the fifth digit


def test_the_best_level_stays_in_the_set_whatever_its_number_of_runs() -> None:
    """The best of five equal levels has 100 runs, the others one: 4000 worlds know 95 % to .35 points."""
    rng = np.random.default_rng(4)
    error = np.array([0.1, 1.0, 1.0, 1.0, 1.0])
    worlds = rng.normal(size=(4000, 5)) * error
    d = one_sided_dunnett(0.95, error[1:] / error[0])
    held = (worlds[:, :1] - worlds[:, 1:] <= d * np.hypot(error[0], error[1:])).all(axis=1).mean()
    assert held == pytest.approx(0.95, abs=3 * 0.0035)
    assert (
        best_set(worlds[0], error, 0.95)[0]
        == (worlds[0, 0] - worlds[0, 1:] <= d * np.hypot(error[0], error[1:])).all()
    )


def test_best_set_holds_the_best_at_its_level() -> None:
    """400 worlds of three levels: the truly best one is in the set in at least 95 % of them, Monte-Carlo error 1.1."""
    rng = np.random.default_rng(2)
    hits = sum(best_set(rng.normal([0.0, 0.1, 1.0], 1.0), np.ones(3), 0.95)[0] for _ in range(400))
    assert hits / 400 >= 0.95 - 0.022


def test_shares_of_two_levels_are_the_normal_distribution() -> None:
    from scipy.stats import norm

    shares = best_shares([1.0, 1.3], [0.2, 0.1])
    assert shares[0] == pytest.approx(norm.cdf(0.3 / np.hypot(0.2, 0.1)), abs=1e-6)
    assert best_shares([1.0, 1.3], [0.2, 0.1], df=3)[0] < shares[0]  # an sd from few runs says less


# ------------------------------------------------------------------ the frontier


def test_a_fitted_study_gives_the_worth_of_its_own_surface() -> None:
    study = fit(example_endpoints(), bootstrap=0)
    frame = compare_levels(span(), study=study, reference="baseline")
    E, A, K, a, b, c = study["baseline"].surface.coef
    by_hand = ((1.9257 - E) / (1.9445 - E)) ** (-(a + c) / (a * c))
    assert frame.iloc[2]["multiplier"] == pytest.approx(by_hand, rel=1e-9)
    assert frame.attrs["settings"]["frontier"] == "baseline"


def test_a_loss_below_the_floor_is_never_reached() -> None:
    table = pd.DataFrame({"level": ["x", "y"], "value": [1.5, 1.40]})
    row = compare_levels(table, **ON_BASELINE).iloc[1]
    assert row["unreachable"]
    assert row["gain"] is None or np.isnan(row["gain"])
    with pytest.raises(FrontierError, match="never reaches the loss 1.4"):
        compare_levels(table, against="y", **ON_BASELINE)


def test_losses_that_the_runs_of_the_frontier_never_had_are_flagged() -> None:
    """Budgets by hand from the published surface, at the sparsity where the runs come nearest."""
    E, A, K, a, b, c = 1.4439, 1.366e3, 1.975e6, 0.3703, 0.1530, 0.6594
    frame = compare_levels(pd.DataFrame({"level": ["x", "y"], "value": [1.60, 1.58]}), **ON_BASELINE)
    (low, high), s = PAPER.windows["baseline"]["C"], a + c

    def budget(loss: float, sparsity: float) -> float:
        Q = A * (1 - sparsity) ** b
        G = (a * Q / (c * K)) ** (1 / s)
        return float(((loss - E) / (Q * G**-a + K * G**c)) ** (-s / (a * c)))

    for row, loss in zip(frame.to_dict("records"), (1.60, 1.58), strict=True):
        nearest = min(budget(loss, sparsity) for sparsity in PAPER.sparsities)
        assert row["extrapolated"]
        assert row["support"] == [
            {"code": "out_C", "arch": "baseline", "factor": pytest.approx(nearest / high, rel=1e-6)}
        ]
    assert "extrapolated" in {note.code for note in notes_of(frame)}
    assert "†" in show_table(frame)
    inside = compare_levels(span(), **ON_BASELINE)
    assert low < budget(1.9445, 0.846) < budget(1.8517, 0.947) < high
    assert not inside["extrapolated"].any()
    assert not compare_levels(span())["support"].any()


# ------------------------------------------------------------------ tables as they are


def test_ties_budgets_and_the_default_level_are_said() -> None:
    table = pd.DataFrame(
        {"level": ["0", "1", "2"], "value": [2.0, 1.9, 1.9], "flops_ratio": [1.0, 1.0, 1.2], "note": "x"}
    )
    frame = compare_levels(table, noise=0.01)
    codes = {note.code for note in notes_of(frame)}
    assert codes == {"tied_best", "unmatched_budgets", "default_level", "unresolved_best", "ignored_columns"}
    assert frame["best_share"].tolist()[1] == pytest.approx(0.5, abs=1e-6)
    assert "default_level" not in {note.code for note in notes_of(compare_levels(table, against="1"))}
    assert compare_levels(table, against="1")["delta"].tolist() == pytest.approx([0.1, 0.0, 0.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(value=1.9), "a constant metric"),
        (lambda f: f[f["level"] == "0%"], "one level"),
        (lambda f: pd.concat([f, f.head(1)]), "--map seed=COLUMN"),
        (lambda f: f.assign(value=np.where(f["level"] == "0%", np.inf, f["value"])), "column value, 2 rows"),
        (lambda f: f.assign(value="high"), "not a number"),
        (lambda f: f.drop(columns="level"), "no column level"),
        (lambda f: f.assign(flops_ratio=0.0), "column flops_ratio"),
    ],
)
def test_a_bad_table_gets_clear_lines(change: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        compare_levels(change(span()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"against": "51%"}, "no level '51%'"),
        ({"noise": 0.0}, "positive and finite"),
        ({"noise": {"core": 1.0}}, "no metric 'core'"),
        ({"higher": ["core"]}, "no metric 'core'"),
        ({"higher": ["loss"], "lower": ["loss"]}, "both name it"),
        ({"level": 95.0}, "between 0 and 1"),
        ({"study": PAPER}, "with --reference"),
        ({"reference": "baseline"}, "of which frontier"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((UsageError, DataError), match=message):
        compare_levels(span(), **options)


def test_a_metric_without_a_direction_is_refused() -> None:
    with pytest.raises(UsageError, match="metric core: nothing says which way is better"):
        compare_levels(loops())


def test_the_command_says_what_the_function_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from smelt_scaling.cli import run
    from smelt_scaling.reporting.raw import plain_rows

    monkeypatch.chdir(tmp_path)
    span().to_csv("span.csv", index=False)
    command = ["ablations", "span.csv", "--noise", "0.002", "--published", "smelt", "--reference", "baseline"]
    assert run([*command, "--format", "json", "-o", "out"]) == 0
    record = json.loads(capsys.readouterr().out)
    frame = compare_levels("span.csv", noise=0.002, **ON_BASELINE)
    assert record["rows"] == plain_rows(frame)
    assert record["summary"] == json.loads(json.dumps(frame.attrs["summary"]))
    assert record["provenance"]["frontier"]["published"] == "smelt"
    assert len(pd.read_parquet("out/ablations.parquet")) == 10
    for form in ("table", "md", "csv", "latex"):
        assert run([*command, "--format", form]) == 0
        assert "14.9" in capsys.readouterr().out or form == "csv"


def test_output_shown_in_help_is_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import typer

    from smelt_scaling.cli import app, run

    monkeypatch.chdir(tmp_path)
    span().assign(group=lambda f: f["group"] + "%").to_csv("span.csv", index=False)
    group: Any = typer.main.get_command(app)
    block = group.commands["ablations"].help.partition("Example:\n")[2].partition("\n\n")[0]
    first, *lines = [line[2:] for line in block.splitlines()]
    assert run(first.removeprefix("$ smelt-scaling ").split()) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line != "..." and line.rstrip() not in out] == []
