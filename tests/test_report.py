"""A report holds the library's numbers in every format, byte for byte the same for the same runs."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from smelt_scaling import Endpoints, Study, allocate, ce_gain, example_endpoints, fit, load_paper
from smelt_scaling.analyses.curves import frontier_curve, gain_curve, residual_rows, surface_grid
from smelt_scaling.cli import run
from smelt_scaling.errors import StudyError, UsageError
from smelt_scaling.papers import Paper
from smelt_scaling.reporting import render_frame, render_study
from smelt_scaling.reporting.build import SAVED, Report, build_report
from smelt_scaling.reporting.figures.axes import log_axis
from smelt_scaling.reporting.figures.draws import GainReplicates, draws_figure
from smelt_scaling.reporting.figures.style import new_figure, styled
from smelt_scaling.reporting.records import frame_of_record, read_record
from smelt_scaling.reporting.sheet import contact_sheet

RUNS = example_endpoints()
PAPER = load_paper("smelt")
TABLES = ("gain", "optima", "coefficients")
FIGURES = ("gain", "frontier", "tokens", "surface", "residuals", "draws")
ENDINGS = ("tex", "md", "html", "csv")


@pytest.fixture(scope="module")
def study() -> Study:
    return fit(RUNS, bootstrap=100)


@pytest.fixture(scope="module")
def report(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return build_report(study, tmp_path_factory.mktemp("report"))


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def numbers(rows: Sequence[dict[str, str]], column: str) -> list[float]:
    return [float(row[column] or "nan") for row in rows]


def plain(source: Study | Paper, folder: Path, **options: Any) -> Report:
    """Build a report without figures' files, which is quick: every figure is drawn, and its numbers are written."""
    return build_report(source, folder, formats=(), **options)


def why(report: Report) -> dict[str, str]:
    """Return what is absent, but for the results that nobody saved."""
    return {name: reason for name, reason in report.absent.items() if name not in SAVED}


# ------------------------------------------------------------------ what is written


def test_every_table_and_figure_is_there_in_every_format(report: Report) -> None:
    assert (report.tables, set(report.figures)) == (TABLES, set(FIGURES))
    expected = {f"tables/{name}.{ending}" for name in TABLES for ending in ENDINGS}
    expected |= {f"figures/{name}.{ending}" for name in FIGURES for ending in ("pdf", "svg", "png", "csv")}
    expected |= {"tables/gain-turnover.csv", "tables/gain-fairness.csv", "report.md", "manifest.json"}
    assert set(content(report.folder)) == expected
    starts = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}
    for name in FIGURES:
        for ending, start in starts.items():
            assert (report.folder / f"figures/{name}.{ending}").read_bytes().startswith(start)


def test_tables_hold_the_numbers_of_the_library(report: Report, study: Study) -> None:
    budgets = [1e20, 1e21]  # the powers of ten within the runs, which cover 1.33e19 to 2.21e21
    for name, frame in (("gain", ce_gain(study, budgets)), ("optima", allocate(study, budgets))):
        rows = rows_of(report.folder / f"tables/{name}.csv")
        assert list(rows[0]) == list(frame.columns)
        for column in frame.select_dtypes("number"):
            assert np.array_equal(numbers(rows, column), frame[column].to_numpy(float), equal_nan=True)
    rows = rows_of(report.folder / "tables/coefficients.csv")
    fitted = {
        (row["arch"], row["parameter"]): float(row["value"]) for row in rows if row["state"] == "fitted"
    }
    for arch in study.archs:
        for name, value in zip(study.law.parameters, study[arch].surface.coef, strict=True):
            assert fitted[arch, name] == value


def test_figures_come_with_the_numbers_they_draw(report: Report, study: Study) -> None:
    folder = report.folder / "figures"
    gain, along = gain_curve(study), frontier_curve(study)
    for column in ("gain", "gain_lo", "gain_hi", "gain_together_lo"):
        assert np.array_equal(numbers(rows_of(folder / "gain.csv"), column), gain[column], equal_nan=True)
    assert numbers(rows_of(folder / "frontier.csv"), "loss") == along["loss"].tolist()
    assert (
        numbers(rows_of(folder / "tokens.csv"), "tokens_per_param_hi")
        == along["tokens_per_param_hi"].tolist()
    )
    grid = [value for arch in study.archs for value in surface_grid(study, arch, 0.947)["loss"]]
    # the middle tier of the example is 0.947 to three digits; the loss moves by less than this with the rest
    assert numbers(rows_of(folder / "surface.csv"), "loss") == pytest.approx(grid, abs=1e-3)
    rows = rows_of(folder / "residuals.csv")
    assert sorted(numbers(rows, "loss")) == sorted(RUNS.loss.tolist())
    assert numbers(rows, "residual_log") == residual_rows(study)["residual_log"].tolist()
    draws = rows_of(folder / "draws.csv")
    assert len(draws) == 100
    assert study.draws is not None
    assert numbers(draws, "a_smelt") == study.draws["smelt"].surface.coef[:, 3].tolist()


def test_the_page_holds_every_table_and_figure_and_every_caveat_once(report: Report) -> None:
    page = (report.folder / "report.md").read_text(encoding="utf-8")
    for name in FIGURES:
        assert f"![{name}](figures/{name}.svg)" in page
    for line in (report.folder / "tables/optima.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            assert line in page
    for note in report.notes:
        assert page.count(f"- {note.severity} `{note.code}`: ") >= 1
    assert len(set(report.notes)) == len(report.notes)
    assert "- domains, sources, lengths, " in page  # one line, as they are absent for one reason


def test_the_manifest_lists_every_file_with_its_digest(report: Report) -> None:
    import hashlib

    record = json.loads((report.folder / "manifest.json").read_text(encoding="utf-8"))
    files = content(report.folder)
    del files["manifest.json"]
    assert record["files"] == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    assert (record["tables"], record["figures"]) == (list(report.tables), list(report.figures))
    documented = (Path(__file__).parent.parent / "docs/json.md").read_text(encoding="utf-8")
    section = documented.split("## Report folder")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert {name for cell in cells for name in re.findall(r"`(\w+)", cell)} == set(record)


# ------------------------------------------------------------------ the same bytes


def test_the_same_runs_in_another_order_give_the_same_bytes(tmp_path: Path) -> None:
    frame = RUNS.to_frame()

    def written(name: str, rows: pd.DataFrame) -> dict[str, bytes]:
        study = fit(Endpoints.from_frame(rows), bootstrap=20)
        return content(build_report(study, tmp_path / name, formats=("svg",)).folder)

    before, after = written("before", frame), written("after", frame.sample(frac=1.0, random_state=1))
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == []


def test_only_the_provenance_tells_two_runs_apart(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.save(tmp_path / "study")
    monkeypatch.chdir(tmp_path)
    call = ["report", "--study", "study", "-o", "out", "--figures", "svg"]

    def written(epoch: str) -> dict[str, bytes]:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        assert run(call) == 0
        return content(tmp_path / "out")

    first, later, same = written("1000000000"), written("1100000000"), written("1000000000")
    assert first == same
    assert [name for name in first if first[name] != later[name]] == ["manifest.json"]
    one, other = (json.loads(files["manifest.json"]) for files in (first, later))
    assert one.pop("provenance")["created"] == "2001-09-09T01:46:40+00:00"  # a billion seconds
    assert other.pop("provenance")["created"] != "2001-09-09T01:46:40+00:00"
    assert one == other


# ------------------------------------------------------------------ studies of every kind


def test_published_surfaces_have_gains_optima_and_curves_but_no_runs(tmp_path: Path) -> None:
    report = plain(PAPER, tmp_path)
    assert report.tables == ("gain", "optima")
    assert report.figures == ("gain", "frontier", "tokens", "surface")
    assert why(report) == dict.fromkeys(
        ("coefficients", "residuals", "replicates"), "published surfaces come without runs"
    )
    gains = {
        (row["budget"], row["sparsity"]): float(row["gain"]) for row in rows_of(tmp_path / "tables/gain.csv")
    }
    # printed in the paper at the 85, 95 and 97 % tiers, to half a unit of its last digit and coefficients rounded
    for tier, printed in (("0.846", 0.18), ("0.947", 0.158), ("0.969", 0.147)):
        assert gains["1e+21", tier] == pytest.approx(printed, abs=0.002)
    assert "the gain peaks at 25.3 %" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_one_architecture_has_no_gain_and_everything_else(tmp_path: Path) -> None:
    report = plain(fit(RUNS.by_arch()["smelt"], bootstrap=40), tmp_path)
    assert report.tables == ("optima", "coefficients")
    assert report.figures == ("frontier", "tokens", "surface", "residuals", "draws")
    assert set(why(report)) == {"gain", "gain curve"}
    assert why(report)["gain"].startswith("one architecture (smelt): a gain compares two")
    assert set(rows_of(tmp_path / "figures/draws.csv")[0]) == {"replicate", "a_smelt", "c_smelt"}


def test_three_architectures_ask_which_two_are_compared(tmp_path: Path) -> None:
    frame = RUNS.to_frame()
    third = frame[frame["arch"] == "smelt"].assign(arch="third", loss=lambda f: 0.99 * f["loss"])
    study = fit(Endpoints.from_frame(pd.concat([frame, third])), bootstrap=0)
    assert "--target" in why(plain(study, tmp_path))["gain"]
    named = plain(study, tmp_path, target="third", reference="baseline")
    assert set(why(named)) == {"replicates"}
    assert {row["target"] for row in rows_of(tmp_path / "tables/gain.csv")} == {"third"}


def test_a_law_without_sparsity_has_one_panel_of_each(tmp_path: Path) -> None:
    study = fit(RUNS.select(RUNS.tiers == 1), law="additive", bootstrap=0)
    report = plain(study, tmp_path)
    assert set(why(report)) == {"replicates"}
    assert {row["sparsity"] for row in rows_of(tmp_path / "figures/gain.csv")} == {""}


def test_a_law_of_budgets_has_gains_and_no_optima(tmp_path: Path) -> None:
    report = plain(fit(RUNS, law="power-c", bootstrap=40), tmp_path)
    assert report.tables == ("gain", "coefficients")
    assert report.figures == ("gain", "residuals", "draws")
    assert "holds C only" in why(report)["optima"]
    assert set(rows_of(tmp_path / "figures/draws.csv")[0]) > {
        "E_smelt",
        "alpha_smelt",
    }  # one exponent, and the floor


def test_a_law_of_parameters_draws_runs_where_its_frontier_counts_them(tmp_path: Path) -> None:
    report = plain(fit(RUNS, law="chinchilla", bootstrap=0), tmp_path)
    assert set(why(report)) == {"replicates"}
    for row in rows_of(tmp_path / "figures/residuals.csv"):
        assert float(row["F"]) == pytest.approx(6 * float(row["N"]), rel=1e-15)


def test_unreachable_and_negative_gains_are_drawn(study: Study, tmp_path: Path) -> None:
    far = plain(study, tmp_path, budgets=[1e31])  # unreachable from 2.95e29, says the table of turning points
    assert why(far) == {}
    assert {row["unreachable"] for row in rows_of(tmp_path / "tables/gain.csv")} == {"true"}
    assert "unreachable" in (tmp_path / "report.md").read_text(encoding="utf-8")
    turned = plain(study, tmp_path, target="baseline", reference="smelt")
    assert why(turned) == {}
    assert min(numbers(rows_of(tmp_path / "figures/gain.csv"), "gain")) < -0.1


def test_a_study_of_which_every_budget_is_outside(study: Study, tmp_path: Path) -> None:
    assert why(plain(study, tmp_path, budgets=[1e24, 1e25])) == {}
    assert {row["extrapolated"] for row in rows_of(tmp_path / "tables/gain.csv")} == {"true"}


def test_a_refused_bootstrap_leaves_out_the_replicates_alone(tmp_path: Path) -> None:
    study = fit(RUNS.select(RUNS.tiers == 1), law="additive", bootstrap=40)
    assert study.bootstrap.status == "refused"
    report = plain(study, tmp_path)
    assert set(why(report)) == {"replicates"}
    assert "no replicates: 14 of 40 resamples" in why(report)["replicates"]


def test_coefficients_that_are_not_identified_leave_coefficients_and_residuals(tmp_path: Path) -> None:
    frame = RUNS.to_frame()
    largest = frame[frame["scale"] == frame["scale"].iloc[-1]]
    report = plain(fit(Endpoints.from_frame(largest), bootstrap=0), tmp_path)
    assert report.tables == ("coefficients",)
    assert "residuals" in report.figures
    assert "not identified" in why(report)["gain"]


def test_figures_are_written_in_the_formats_asked_for(tmp_path: Path) -> None:
    build_report(PAPER, tmp_path / "pdf", formats=("pdf",))
    endings = {path.suffix for path in (tmp_path / "pdf/figures").iterdir()}
    assert endings == {".pdf", ".csv"}
    assert "![gain](figures/gain.pdf)" in (tmp_path / "pdf/report.md").read_text(encoding="utf-8")
    plain(PAPER, tmp_path / "none")
    assert {path.suffix for path in (tmp_path / "none/figures").iterdir()} == {".csv"}
    assert "![" not in (tmp_path / "none/report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "smlet"}, "smlet"),
        ({"budgets": [-1.0]}, "budget"),
        ({"sparsities": [1.5]}, "sparsity 1.5"),
        ({"level": 95.0}, "level 95"),
    ],
)
def test_arguments_that_are_wrong_are_refused_before_anything_is_written(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        plain(PAPER, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------ what other commands saved


@pytest.fixture(scope="module")
def results(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study, and what `domains` and `diagnose` wrote beside it."""
    folder = tmp_path_factory.mktemp("results")
    study.save(folder)
    frame = RUNS.to_frame()
    parts = [
        frame.assign(domain=name, source=name, loss=k * frame["loss"])
        for name, k in (("code", 0.5), ("web", 1))
    ]
    pd.concat(parts).to_parquet(folder / "losses.parquet")
    here = ["--study", str(folder), "-o", str(folder), "--format", "json"]
    assert run(["domains", str(folder / "losses.parquet"), "--budget", "1e21", *here]) == 0
    assert run(["diagnose", "--only", "fairness,noise", *here]) == 0
    return folder


def test_saved_results_become_sections(study: Study, results: Path, tmp_path: Path) -> None:
    report = plain(study, tmp_path, saved=results)
    assert report.tables == (*TABLES, "domains", "diagnose")
    written = set(content(tmp_path))
    assert {f"tables/{name}.{ending}" for name in ("domains", "diagnose") for ending in ENDINGS} <= written
    assert {"tables/diagnose-fairness.csv", "tables/diagnose-noise.csv"} <= written
    saved = json.loads((results / "domains.json").read_text(encoding="utf-8"))
    rows = rows_of(tmp_path / "tables/domains.csv")
    assert [row["domain"] for row in rows] == [row["domain"] for row in saved["rows"]]
    assert numbers(rows, "gain") == [row["gain"] for row in saved["rows"]]
    assert report.absent["shots"].startswith(f"{results} holds no such result")


@pytest.mark.parametrize("command", ["domains", "diagnose"])
def test_a_record_is_read_back_as_it_was_shown(
    command: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "domains":
        asked = ["domains", str(results / "losses.parquet"), "--budget", "1e21"]
    else:
        asked = ["diagnose", "--only", "fairness,noise"]
    frame = frame_of_record(read_record(results / f"{command}.json", command))
    for form in ("md", "csv", "html", "latex"):
        assert run([*asked, "--study", str(results), "--format", form]) == 0
        shown = capsys.readouterr().out
        assert render_frame(command, frame, form) == shown


FOREIGN = {
    "not JSON": ("{", "is no result of smelt-scaling; write one with -o"),
    "other JSON": ('{"loss": 3}', "is no result of smelt-scaling; write one with -o"),
    "a list": ("[1, 2]", "is no result of smelt-scaling; write one with -o"),
    "no rows": ('{"schema_version": 1, "command": "domains"}', "lacks rows, notes, settings of a result"),
    "newer": ('{"schema_version": 99, "command": "domains"}', "schema version 99 is newer than 1"),
    "another command": (
        '{"schema_version": 1, "command": "shots", "rows": [], "notes": [], "settings": {}}',
        "holds what shots wrote, not domains",
    ),
    "other rows": (
        '{"schema_version": 1, "command": "domains", "rows": [{"a": 1}], "notes": [], "settings": {}}',
        "its rows are not those of domains",
    ),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_file_that_is_no_result_is_one_line_and_the_rest_stands(case: str, tmp_path: Path) -> None:
    text, message = FOREIGN[case]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/domains.json").write_text(text, encoding="utf-8")
    report = plain(PAPER, tmp_path / "out", saved=tmp_path / "in")
    assert message in report.absent["domains"]
    assert "\n" not in report.absent["domains"]
    assert report.tables == ("gain", "optima")
    assert not list((tmp_path / "out/tables").glob("domains*"))


def test_a_folder_of_results_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="is no folder; commands write results into one with -o DIR"):
        plain(PAPER, tmp_path, saved=tmp_path / "nowhere")


# ------------------------------------------------------------------ the command


def test_the_command_says_what_it_wrote_and_what_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["report", "--published", "smelt", "-o", "out", "--figures", "png", "--contact-sheet"]) == 0
    out, said = capsys.readouterr()
    assert out == ""
    said = re.sub(r"\s+", " ", said)
    assert "wrote out: 2 tables, 4 figures, report.md, manifest.json" in said
    assert "not in it: coefficients, residuals, replicates: published surfaces come without runs" in said
    assert said.count("not in it:") == 2
    assert imread("out/contact_sheet.png").shape[1] == pytest.approx(
        2 * 6.9 * 200, abs=1
    )  # two pages at 200 dpi


def test_reproduce_leaves_the_published_tables_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", "smelt", "-o", "out", "--format", "csv"]) == 0
    shown = capsys.readouterr().out
    assert (tmp_path / "out/tables/reproduce.csv").read_text(encoding="utf-8") == shown
    record = json.loads((tmp_path / "out/manifest.json").read_text(encoding="utf-8"))
    assert record["tables"] == ["reproduce", "gain", "optima"]
    assert record["figures"] == ["gain", "frontier", "tokens", "surface"]
    printed = {
        row["budget"] for row in csv.DictReader(io.StringIO((tmp_path / "out/tables/gain.csv").read_text()))
    }
    assert printed == {"1e+20", "1e+21", "1e+22"}  # those of the printed table
    assert (tmp_path / "out/reproduce.json").is_file()
    for paper in (
        "chinchilla",
        "marin",
    ):  # no pair, no range of budgets: the reproduction, and what else there is
        assert run(["reproduce", paper, "-o", paper]) == 0
        assert json.loads((tmp_path / paper / "manifest.json").read_text())["tables"][0] == "reproduce"


def test_a_contact_sheet_needs_pictures(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"holds no report \(manifest.json is missing\)"):
        contact_sheet(tmp_path)
    plain(PAPER, tmp_path)
    with pytest.raises(StudyError, match="holds no PNG figure for a contact sheet"):
        contact_sheet(tmp_path)


# ------------------------------------------------------------------ figures


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (2.5e10, 9e10, ["3\\times10^{10}", "5\\times10^{10}"]),
        (2e10, 9e10, ["2\\times10^{10}", "3\\times10^{10}", "5\\times10^{10}"]),
        (2e10, 2.2e11, ["3\\times10^{10}", "10^{11}"]),
        (1e18, 1e22, ["10^{18}", "10^{19}", "10^{20}", "10^{21}", "10^{22}"]),
    ],
)
def test_a_short_logarithmic_axis_has_labels_between_powers_of_ten(
    low: float, high: float, labels: list[str]
) -> None:
    with styled():
        figure, (ax,) = new_figure()
        ax.set_xscale("log")
        ax.set_xlim(low, high)
        log_axis(ax.xaxis)
        figure.draw_without_rendering()
        shown = [
            text.get_text().replace(" ", "")
            for text, at in zip(ax.get_xticklabels(), ax.get_xticks(), strict=True)
            if low <= at <= high
        ]
    assert [re.sub(r"\$|\\mathdefault\{(.*)\}", r"\1", text) for text in shown] == labels


def test_replicates_that_are_all_unreachable_are_counted() -> None:
    gain = GainReplicates(gains=np.full(9, np.nan), point=None, ends=(None, None), headline="1e31 FLOPs")
    draws = np.array([0.1, 0.2, np.nan] * 3)
    with styled():
        drawing = draws_figure(gain, {"a": (draws, draws, 0.1, 0.1)}, names=("x", "y"), reference=None)
        drawing.figure.draw_without_rendering()
    words = [text.get_text() for ax in drawing.figure.axes for text in ax.texts]
    assert words == ["9 of 9\nunreachable"]
    assert drawing.rows[0] == {"replicate": 0, "gain": None, "x_a": 0.1, "y_a": 0.1}
    assert drawing.rows[2]["x_a"] is None


# ------------------------------------------------------------------ HTML and LaTeX tables agree with the page


def test_the_coefficients_are_those_of_render_study(report: Report, study: Study) -> None:
    for form, ending in (("latex", "tex"), ("md", "md"), ("html", "html")):
        text = (report.folder / f"tables/coefficients.{ending}").read_text(encoding="utf-8")
        assert text == render_study(study, form)
