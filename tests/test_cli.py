"""The command line: every command, format and exit code, and that it says what the library says."""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from smelt_scaling import (
    allocate,
    ce_gain,
    design_report,
    domains,
    example_endpoints,
    fit,
    load_study,
    predict,
    read_endpoints,
)
from smelt_scaling import sources as source_groups
from smelt_scaling.analyses.budgets import round_budgets
from smelt_scaling.cli import app, run
from smelt_scaling.errors import UsageError
from smelt_scaling.papers import load_paper

#: Published surfaces, gains at (sparsity, budget) and budgets of equal loss, computed by independent code from the
#: printed coefficients; six digits and more, so 1e-5 is their precision.
PUBLISHED_GAINS = {
    (0.846, 1e20): (0.09908, 1.109973e20, 1.97181062),
    (0.846, 1e21): (0.17996, 1.219451e21, 1.74294748),
    (0.846, 1e22): (0.23434, 1.306062e22, 1.61432792),
    (0.947, 1e20): (0.07815, 1.084776e20, 1.92202037),
    (0.947, 1e21): (0.15799, 1.187638e21, 1.71496569),
    (0.947, 1e22): (0.20907, 1.264333e22, 1.59860235),
    (0.969, 1e20): (0.06728, 1.072136e20, 1.89880823),
    (0.969, 1e21): (0.14646, 1.171598e21, 1.70192062),
    (0.969, 1e22): (0.19562, 1.243200e22, 1.59127110),
}
#: Their peaks and zero crossings, same source.
PUBLISHED_TURNOVER = {
    0.846: (8.1948e22, 0.25320, [1.0908e19, 1.8243e25]),
    0.947: (5.4924e22, 0.22227, [1.6889e19, 8.8302e24]),
    0.969: (4.4915e22, 0.20623, [2.1262e19, 6.0516e24]),
}

COMMANDS = [
    *("example", "endpoints", "check", "fit", "ce-gain", "allocate", "predict", "domains", "sources"),
    *("downstream", "lengths", "shots", "ablations", "probes", "diagnose", "plan"),
    *("flops", "match", "grid", "report", "reproduce", "explain"),
]
HEAVY = ["matplotlib", "numpy", "pandas", "pyarrow", "scipy", "statsmodels"]


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))

    @property
    def said(self) -> str:
        """Standard error, unwrapped."""
        return " ".join(self.err.split())


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*argv: str) -> Result:
        code = run(argv)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example's runs and a study of them, for reading only."""
    path = tmp_path_factory.mktemp("cli")
    before = Path.cwd()
    os.chdir(path)
    try:
        assert run(["example"]) == 0
        assert run(["fit", "runs.parquet", "--bootstrap", "50"]) == 0
    finally:
        os.chdir(before)
    return path


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def python(
    *argv: str, cwd: Path | None = None, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    root = str(Path(__file__).resolve().parent.parent)
    env = {**os.environ, "PYTHONPATH": root, **environment}
    return subprocess.run(
        [sys.executable, *argv], cwd=cwd, env=env, input=stdin, capture_output=True, check=False
    )


# ------------------------------------------------------------------ help


def test_every_command_is_there_and_documented() -> None:
    group: Any = typer.main.get_command(app)
    assert list(group.commands) == COMMANDS
    for command in group.commands.values():
        assert f"$ smelt-scaling {command.name}" in command.help
        assert all(getattr(parameter, "help", "x") for parameter in command.params)


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_fits_80_columns_and_has_no_escapes_in_a_pipe(
    cli: Any, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    result = cli(*command, "--help")
    assert result.code == 0
    assert "\x1b" not in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_help_is_wrapped_once(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text that comes wrapped is wrapped again at 80 columns, with single words on lines of their own."""
    monkeypatch.setenv("COLUMNS", "80")
    group: Any = typer.main.get_command(app)
    for name in COMMANDS:
        shown = [line.strip() for line in cli(name, "--help").out.partition("╭")[0].splitlines()]
        for paragraph in group.commands[name].help.split("\n\n"):
            wanted = (
                paragraph.removeprefix("\b").strip().splitlines()
                if paragraph.startswith(("\b", " "))
                else textwrap.wrap(paragraph, 78, break_on_hyphens=False)
            )
            assert [line for line in wanted if line.strip() not in shown] == [], name


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from smelt_scaling.cli import run; code = run(['ce-gain', '--help']); "
        f"print([name for name in {HEAVY} if name in sys.modules], code)"
    )
    done = python("-c", code)
    assert done.stdout.decode().splitlines()[-1] == "[] 0", done.stderr.decode()


def help_example(command: str) -> tuple[list[str], list[str]]:
    """Return the arguments and the lines of output that a command's help shows."""
    group: Any = typer.main.get_command(app)
    block = group.commands[command].help.partition("Example:\n")[2].partition("\n\n")[0]
    first, *rest = [line[2:] for line in block.splitlines()]
    return first.removeprefix("$ smelt-scaling ").split(), [line for line in rest if line != "..."]


@pytest.mark.parametrize("command", ["check", "ce-gain", "allocate", "predict", "explain"])
@pytest.mark.usefixtures("here")
def test_output_shown_in_help_is_real(cli: Any, command: str) -> None:
    argv, lines = help_example(command)
    assert lines
    result = cli(*argv)
    assert result.code == 0
    assert not [line for line in lines if line.rstrip() not in result.out.splitlines()]


def test_version(cli: Any) -> None:
    from smelt_scaling import __version__

    assert cli("--version").out == f"smelt-scaling {__version__}\n"


# ------------------------------------------------------------------ published numbers


def test_published_gains_are_those_of_independent_code(cli: Any) -> None:
    result = cli(
        "ce-gain",
        "--published",
        "smelt",
        "--budget",
        "1e20,1e21",
        "--budget",
        "1e22 FLOPs",
        "--format",
        "json",
    )
    record = result.json()
    rows = {(row["sparsity"], row["budget"]): row for row in record["rows"]}
    assert rows.keys() == PUBLISHED_GAINS.keys()
    for key, (gain, budget, loss) in PUBLISHED_GAINS.items():
        assert rows[key]["gain"] == pytest.approx(gain, abs=1e-5)
        assert rows[key]["reference_budget"] == pytest.approx(budget, rel=1e-5)
        assert rows[key]["loss"] == pytest.approx(loss, abs=1e-7)
        assert (rows[key]["target"], rows[key]["reference"]) == ("smelt", "baseline")
        assert (rows[key]["gain_lo"], rows[key]["draws"]) == (None, 0)
    for item in record["turnover"]:
        peak, gain, zeros = PUBLISHED_TURNOVER[item["sparsity"]]
        assert item["peak_budget"] == pytest.approx(peak, rel=1e-4)
        assert item["peak_gain"] == pytest.approx(gain, abs=1e-5)
        assert item["zero_crossings"] == pytest.approx(zeros, rel=1e-4)
    assert record["provenance"]["published"] == "smelt"


def test_tokens_per_parameter_of_the_paper(cli: Any) -> None:
    rows = cli(
        "allocate", "--published", "smelt", "-b", "1e21", "--sparsity", "85%,95%,97%", "--format", "json"
    ).json()["rows"]
    found = {(row["arch"], row["sparsity"]): round(row["tokens_per_param"]) for row in rows}
    assert list(found.values()) == [56, 78, 91, 56, 75, 86]  # as printed in the paper


def test_reproduce_agrees_with_every_paper(cli: Any) -> None:
    for paper in ("smelt", "chinchilla", "marin"):
        result = cli("reproduce", paper, "--format", "csv")
        assert result.code == 0, result.err
        verdicts = {row["agrees"] for row in csv.DictReader(io.StringIO(result.out))}
        assert "true" in verdicts
        assert "false" not in verdicts
    table = cli("reproduce", "smelt").out
    assert " 0 differ" in table.splitlines()[0]
    assert max(map(len, table.splitlines())) <= 80


def test_reproduce_exits_1_on_a_difference(cli: Any, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from smelt_scaling.analyses import reproduction

    real = reproduction.reproduce

    def altered(paper: Any) -> Any:
        frame = real(paper)
        row = frame.index[frame["agrees"].map(lambda value: value is not None)][0]
        frame.loc[row, "agrees"] = False
        return frame

    monkeypatch.setattr(reproduction, "reproduce", altered)
    result = cli("reproduce", "smelt", "-o", "reports")
    assert result.code == 1
    assert "  NO\n" in result.out
    assert "1 differ" in result.out
    assert "error: 1 of" in result.err
    rows = json.loads((empty / "reports" / "reproduce.json").read_text(encoding="utf-8"))["rows"]
    assert [row["agrees"] for row in rows].count(False) == 1


# ------------------------------------------------------------------ example, check


def test_example_says_that_it_is_simulated_and_replaces_nothing(cli: Any, empty: Path) -> None:
    result = cli("example", "-o", "sub/runs.parquet")
    assert (result.code, result.out) == (0, "")
    assert "SIMULATED" in result.err
    before = (empty / "sub" / "runs.parquet").read_bytes()
    again = cli("example", "-o", "sub/runs.parquet", "--seed", "1")
    assert (again.code, again.err) == (
        2,
        "error: sub/runs.parquet: exists and is not replaced; choose another -o, or add --force\n",
    )
    assert (empty / "sub" / "runs.parquet").read_bytes() == before
    assert cli("example", "-o", "sub/runs.parquet", "--seed", "1", "--force").code == 0
    assert (empty / "sub" / "runs.parquet").read_bytes() != before


def test_example_into_a_place_that_cannot_be_written(cli: Any, empty: Path) -> None:
    (empty / "file").write_text("x")
    result = cli("example", "-o", "file/runs.parquet")
    assert result.code == 2
    assert re.fullmatch(
        r"error: file/runs\.parquet: cannot be written \(.*\); choose another -o\n", result.err
    )


@pytest.mark.usefixtures("here")
def test_check_counts_the_design(cli: Any) -> None:
    record = cli("check", "runs.parquet", "--format", "json").json()
    for row in record["rows"]:  # 4 scales x 3 tiers x 6 horizons
        counts = [row[key] for key in ("endpoints", "cells", "scales", "tiers", "horizons", "parameters")]
        assert counts == [72, 12, 4, 3, 6, 6]
        assert row["unidentified"] == []
    assert record["settings"]["unit"] == "cell"
    # the evaluation grid that the paper's own table needs
    assert record["settings"]["sparsities"] == pytest.approx([0.846, 0.947, 0.969], abs=5e-4)
    assert record["provenance"]["input_sha256"]
    assert {note["code"] for note in record["notes"]} >= {"simulated"}


def test_check_reads_standard_input_with_maps_and_units(empty: Path) -> None:
    table = b"model,size,tokens,val/ce\n" + b"".join(
        f"a,{n}e9,{d},{2 + 1 / n + 1 / d}\n".encode() for n in (1, 2, 4) for d in (1, 2, 4)
    )
    argv = ["-m", "smelt_scaling", "check", "-", "--law", "additive", "--format", "json"]
    argv += ["--map", "arch=model,F=size", "--map", "D=tokens,loss=val/ce", "--unit", "D=B"]
    done = python(*argv, cwd=empty, stdin=table)
    assert done.returncode == 0, done.stderr.decode()
    record = json.loads(done.stdout)
    (row,) = record["rows"]
    assert (row["endpoints"], row["D_lo"], row["D_hi"], row["C_hi"]) == (9, 1e9, 4e9, 1.6e19)
    assert record["settings"]["unit"] == "row"
    assert {note["code"] for note in record["notes"]} >= {"unit_converted", "row_resampling"}


def test_check_says_what_cannot_be_identified(cli: Any, empty: Path) -> None:
    rows = "\n".join(f"a,{n}e9,0.9,2e10,{2 + 1 / n}" for n in (1, 2, 4))
    (empty / "runs.csv").write_text(f"arch,F,S,D,loss\n{rows}\n")
    result = cli("check", "runs.csv")
    assert result.code == 0
    assert re.search(r"not identified +K, E, b, c|not identified +b, c, K, E", result.out)
    assert "warning [not_identified] a: b is not identified" in result.said


def test_bad_data_exits_3_with_one_line_per_problem(cli: Any, empty: Path) -> None:
    (empty / "runs.csv").write_text("arch,F,S,D,loss\na,1e9,94.6,2e10,2.5\na,1e9,90,-1,2.5\n")
    for command in (["check"], ["fit"]):
        result = cli(*command, "runs.csv")
        assert (result.code, result.out) == (3, "")
        lines = result.err.splitlines()
        assert len(lines) == 2
        assert all(line.startswith("error: runs.csv: ") for line in lines)
        assert "--unit S=percent" in result.err
    assert cli("fit", "none.csv").err == "error: none.csv: no such file; check the path\n"
    (empty / "n.csv").write_text("arch,N,D,loss\na,1e9,2e10,2.5\n")
    missing = cli("check", "n.csv")
    assert missing.code == 3
    assert "--law chinchilla" in missing.err
    assert "--flops 6N" in missing.err


# ------------------------------------------------------------------ fit


@pytest.mark.usefixtures("empty")
def test_fit_prints_a_summary_that_ends_with_the_next_command(cli: Any, folder: Path) -> None:
    result = cli("fit", str(folder / "runs.parquet"), "--bootstrap", "0", "-o", "my study")
    assert result.code == 0
    assert result.err == ""
    assert re.search(r"certified, (\d+)/\1 starts", result.out)
    last = result.out.splitlines()[-1]
    assert last == "next: smelt-scaling ce-gain --budget 1e21 --study 'my study'"
    assert cli("ce-gain", "--budget", "1e21", "--study", "my study").code == 0


@pytest.mark.usefixtures("empty")
def test_fit_json_is_the_documented_record(cli: Any, folder: Path) -> None:
    argv = ["fit", str(folder / "runs.parquet"), "--bootstrap", "50", "--format", "json", "-o", "s"]
    record = cli(*argv).json()
    assert list(record)[:3] == ["schema_version", "command", "settings"]
    assert record["provenance"]["argv"] == ["smelt-scaling", *argv]
    assert record["provenance"]["input_sha256"]
    study = load_study("s").to_dict()
    for key in ("settings", "fits", "bootstrap", "notes"):
        assert record[key] == study[key]
    again = cli(*argv).json()
    del record["provenance"], again["provenance"]
    assert json.dumps(record) == json.dumps(again)


def test_defaults_of_the_command_line_are_those_of_the_library() -> None:
    from smelt_scaling.cli.parse import parse_delta, parse_starts

    group: Any = typer.main.get_command(app)

    def typed(command: str) -> dict[str, Any]:
        return {p.name: getattr(p.default, "value", p.default) for p in group.commands[command].params}

    def library(function: Callable[..., Any]) -> dict[str, Any]:
        parameters = inspect.signature(function).parameters.values()
        return {p.name: p.default for p in parameters if p.default is not p.empty}

    options, defaults = typed("fit"), library(fit)
    options["delta"], options["starts"] = parse_delta(options["delta"]), parse_starts(options["starts"])
    shared = [
        "delta",
        "starts",
        "bootstrap",
        "seed",
        "flops_per_param",
        "drop_outliers",
        "data_law",
        "repeat_constant",
        "residual",
        "engine",
        "law",
        "resample",
    ]
    assert {name: options[name] for name in shared} == {name: defaults[name] for name in shared}
    assert (options["pin"], defaults["pins"]) == (None, None)
    assert options["weight_cells"] == defaults["cell_weights"]
    for command, function in {"ce-gain": ce_gain, "allocate": allocate, "predict": predict}.items():
        options, defaults = typed(command), library(function)
        assert (options["level"], options["interval"]) == (defaults["level"], defaults["interval"])
    for command, function in {"domains": domains, "sources": source_groups}.items():
        options, defaults = typed(command), library(function)
        shared = ["level", "interval", "aggregate", "force"] + ["groups", "sort_at", "split_sample"] * (
            command == "sources"
        )
        assert {name: options[name] for name in shared} == {name: defaults[name] for name in shared}
    options, defaults = typed("check"), library(design_report)
    assert options.items() >= defaults.items()


@pytest.mark.usefixtures("empty")
def test_fit_options_reach_the_library(cli: Any, folder: Path) -> None:
    argv = ["--bootstrap", "0", "--seed", "7", "--delta", "inf", "--residual", "raw", "--starts", "3"]
    argv += ["--pin", "E=1.44", "--pin", "smelt:E=1.45", "--resample", "trunk", "--flops-per-param", "5.5"]
    argv += ["--engine", "lbfgsb", "--exclude-tier", "0.97", "--law", "E + A*(1-S)**b*F**-a + K*D**-c"]
    argv += [
        "--weight-cells",
        "equal",
        "--drop-outliers",
        "--pin",
        "smelt:a=.34@c4",
        "--repeat-constant",
        "12",
    ]
    record = cli("fit", str(folder / "runs.parquet"), *argv, "--format", "json").json()
    assert record["settings"] == {
        "law": "E + A*(1-S)**b*F**-a + K*D**-c",
        "formula": "E + A*(1-S)**b*F**-a + K*D**-c",
        "delta": "inf",
        "residual": "raw",
        "pins": {"": {"E": 1.44}, "smelt": {"E": 1.45, "a": 0.34}},
        "pin_tags": {"smelt": {"a": "c4"}},
        "starts": 3,
        "engine": "lbfgsb",
        "flops_per_param": 5.5,
        "drop_outliers": True,
        "cell_weights": "equal",
        "data_law": "fresh",
        "repeat_constant": 12.0,
    }
    assert (record["bootstrap"]["seed"], record["bootstrap"]["unit"]) == (7, "trunk")
    assert [fit["n"] for fit in record["fits"]] == [48, 48]
    assert "excluded_tier" in {note["code"] for note in record["notes"]}


@pytest.mark.parametrize("form", ["md", "csv", "latex"])
@pytest.mark.usefixtures("empty")
def test_fit_in_other_formats(cli: Any, folder: Path, form: str) -> None:
    result = cli("fit", str(folder / "runs.parquet"), "--bootstrap", "50", "--format", form)
    assert result.code == 0
    assert {"md": "| | baseline | smelt |", "csv": "arch,parameter,value,lo,hi,state", "latex": r"\toprule"}[
        form
    ] in re.sub(" +", " ", result.out)


def test_fit_refuses_a_folder_that_is_no_study_before_it_fits(cli: Any, folder: Path, empty: Path) -> None:
    (empty / "mine").mkdir()
    (empty / "mine" / "thesis.tex").write_text("x")
    result = cli("fit", str(folder / "runs.parquet"), "-o", "mine")
    assert result.code == 3
    assert "mine: is not empty and holds no study.json, so it will not be replaced" in result.err
    assert [path.name for path in (empty / "mine").iterdir()] == ["thesis.tex"]
    assert cli("fit", str(folder / "runs.parquet"), "-o", "mine/thesis.tex").code == 3


@pytest.mark.usefixtures("empty")
def test_an_uncertified_fit_is_shown_and_exits_4(
    cli: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from smelt_scaling import study
    from smelt_scaling.fitting import estimate

    status = estimate.FitStatus.LONELY
    monkeypatch.setattr(estimate, "_status", lambda *_: status)
    assert study.fit(example_endpoints(), bootstrap=0).certified is False
    result = cli("fit", str(folder / "runs.parquet"), "--bootstrap", "0")
    assert result.code == 4
    assert "lonely" in result.out
    asked = f"next: smelt-scaling fit {folder / 'runs.parquet'} --bootstrap 0 --starts thorough"
    assert result.out.splitlines()[-1] == asked
    assert f"error: smelt: {status.value}" in result.err
    refused = cli("ce-gain", "-b", "1e21")
    assert (refused.code, refused.out) == (4, "")
    assert "not certified" in refused.err


def test_too_few_endpoints_exit_4(cli: Any, empty: Path) -> None:
    rows = "\n".join(f"a,{f}e9,{s},{d}e10,2.5" for f, s, d in ((1, 0.5, 1), (2, 0.9, 2), (4, 0.5, 4)))
    (empty / "runs.csv").write_text(f"arch,F,S,D,loss\n{rows}\n")
    result = cli("fit", "runs.csv")
    assert result.code == 4
    assert "3 endpoints for 6 parameters" in result.err


# ------------------------------------------------------------------ analyses of a study


@pytest.mark.usefixtures("here")
def test_command_line_and_notebook_give_equal_numbers(cli: Any) -> None:
    record = cli(
        "ce-gain", "-b", "1e20,1e21", "--target", "smelt", "--level", ".9", "--format", "json"
    ).json()
    frame = ce_gain(load_study("reports/study"), [1e20, 1e21], target="smelt", level=0.9)
    assert len(record["rows"]) == len(frame) == 6
    for row, (_, expected) in zip(record["rows"], frame.iterrows(), strict=True):
        assert list(row) == list(frame.columns)
        assert row == dict(expected)
    assert record["turnover"] == frame.attrs["turnover"]
    assert record["settings"] == frame.attrs["settings"]


def without_provenance(record: dict[str, Any]) -> str:
    """Return a record as text, in which equal numbers are equal to the last bit."""
    return json.dumps({key: value for key, value in record.items() if key != "provenance"})


@pytest.mark.usefixtures("here")
def test_a_fit_from_a_notebook_is_the_fit_of_the_command_line(cli: Any, tmp_path: Path) -> None:
    argv = ["fit", "runs.parquet", "--bootstrap", "50", "--format", "json", "-o", str(tmp_path / "study")]
    study = fit(read_endpoints("runs.parquet"), bootstrap=50)
    assert without_provenance(study.to_dict()) == without_provenance(cli(*argv).json())


@pytest.mark.parametrize("interval", ["percentile", "jackknife-t"])
@pytest.mark.usefixtures("here")
def test_analyses_from_a_notebook_are_those_of_the_command_line(cli: Any, interval: str) -> None:
    study = fit(read_endpoints("runs.parquet"), bootstrap=50)
    options = {"level": 0.9, "interval": interval}
    frames = {
        "ce-gain -b 1e20,1e21": ce_gain(study, [1e20, 1e21], **options),
        "allocate -b 1e21 --sparsity .9,.95": allocate(study, 1e21, sparsities=[0.9, 0.95], **options),
        "predict --at F=1e10,D=100B,S=.947": predict(study, {"F": 1e10, "D": 1e11, "S": 0.947}, **options),
    }
    for command, frame in frames.items():
        record = cli(*command.split(), "--level", "0.9", "--interval", interval, "--format", "json").json()
        assert json.dumps(record["rows"]) == json.dumps(frame.to_dict(orient="records"))
        assert record["notes"] == frame.attrs["notes"]
        assert record["settings"] == frame.attrs["settings"]
        assert record.get("turnover") == frame.attrs.get("turnover")


@pytest.mark.usefixtures("here")
def test_a_design_from_a_notebook_is_that_of_the_command_line(cli: Any) -> None:
    record = cli("check", "runs.parquet", "--format", "json").json()
    frame = design_report(read_endpoints("runs.parquet"))
    assert json.dumps(record["rows"]) == json.dumps(frame.to_dict(orient="records"))
    assert record["notes"] == frame.attrs["notes"]


@pytest.mark.usefixtures("here")
def test_json_is_the_same_but_for_provenance(cli: Any) -> None:
    argv = ["ce-gain", "-b", "1e21", "--format", "json"]
    first, second = cli(*argv).json(), cli(*argv, "--interval", "percentile").json()
    provenance = first.pop("provenance")
    second.pop("provenance")
    assert json.dumps(first) == json.dumps(second)
    assert provenance["argv"] == ["smelt-scaling", *argv]
    assert provenance["study"] == "reports/study"
    assert provenance["input_sha256"] == provenance["fit"]["input_sha256"]
    assert provenance["versions"]["numpy"]


@pytest.mark.usefixtures("here")
def test_a_study_introduces_itself_and_notes_stay_off_standard_output(cli: Any) -> None:
    result = cli("ce-gain", "-b", "1e21")
    assert re.match(r"study reports/study, fitted \d{4}-\d\d-\d\dT\S+: baseline, smelt\n", result.err)
    notes = [line for line in result.err.splitlines()[1:] if not line.startswith(" ")]
    kinds = [line.split(" ")[0] for line in notes]
    assert kinds == sorted(kinds, key=lambda kind: kind != "warning")
    assert "[simulated]" in result.err
    assert "--reference smelt --target baseline" in result.said
    assert "[" in result.out
    assert "warning" not in result.out
    assert "sampling of cells under this law only" in " ".join(result.out.split())


@pytest.mark.parametrize("form", ["table", "md", "csv", "json", "latex"])
@pytest.mark.parametrize(
    "command",
    [["ce-gain", "-b", "1e21"], ["allocate", "-b", "1e21"], ["predict", "--at", "F=1e10,D=100B,S=.947"]],
)
@pytest.mark.usefixtures("here")
def test_every_analysis_in_every_format(cli: Any, command: list[str], form: str) -> None:
    result = cli(*command, "--format", form)
    assert result.code == 0
    if form == "json":
        assert result.json()["command"] == command[0]
    if form == "csv":
        assert csv.DictReader(io.StringIO(result.out)).fieldnames
    if form == "table":
        assert max(map(len, result.out.splitlines())) <= 80
    assert ("simulated" in result.out) == (form in ("md", "json", "latex"))
    assert result.out.endswith("\n")


@pytest.mark.usefixtures("here")
def test_budgets_by_default_are_powers_of_ten_within_the_runs(cli: Any) -> None:
    record = cli("ce-gain", "--format", "json").json()
    # the runs cover 1.3e19 to 2.2e21 FLOPs
    assert sorted({row["budget"] for row in record["rows"]}) == [1e20, 1e21]
    (note,) = [note for note in record["notes"] if note["code"] == "default_budgets"]
    assert "--budget 1e20,1e21" in note["message"]


@pytest.mark.parametrize(
    ("window", "expected"),
    [((1e20, 1e22), [1e20, 1e21, 1e22]), ((2e18, 8e18), [4e18]), ((1.01e20, 9.9e20), [3e20])],
)
def test_round_budgets(window: tuple[float, float], expected: list[float]) -> None:
    assert round_budgets(*window) == expected


@pytest.mark.usefixtures("here")
def test_an_analysis_leaves_files_for_a_report(cli: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    out = tmp_path / "new" / "folder"
    result = cli("allocate", "-b", "1e21", "-o", str(out), "--arch", "smelt")
    assert result.code == 0
    assert sorted(path.name for path in out.iterdir()) == ["allocate.json", "allocate.parquet"]
    record = json.loads((out / "allocate.json").read_text(encoding="utf-8"))
    assert record["command"] == "allocate"
    assert pq.read_table(out / "allocate.parquet").to_pylist() == record["rows"]
    assert {row["arch"] for row in record["rows"]} == {"smelt"}
    (tmp_path / "file").write_text("x")
    assert cli("allocate", "-b", "1e21", "-o", str(tmp_path / "file")).code == 2


@pytest.mark.usefixtures("here")
def test_strict_refuses_what_lies_outside_the_runs(cli: Any) -> None:
    result = cli("ce-gain", "-b", "1e21,1e22", "--sparsity", "0.947", "--strict", "--format", "json")
    assert (result.code, result.out) == (5, "")
    assert re.search(
        r"error: 1 of 2 rows lie outside the runs, the farthest in C ×\d\.\d \(baseline\)", result.err
    )
    assert cli("ce-gain", "-b", "1e21", "--sparsity", "0.947", "--strict").code == 0


@pytest.mark.usefixtures("here")
def test_reference_and_target_swap(cli: Any) -> None:
    record = cli("ce-gain", "-b", "1e21", "--reference", "smelt", "--format", "json").json()
    assert {(row["target"], row["reference"]) for row in record["rows"]} == {("baseline", "smelt")}
    assert all(row["gain"] < 0 for row in record["rows"])


@pytest.mark.usefixtures("here")
def test_predict_at_several_points(cli: Any) -> None:
    argv = [
        "predict",
        "--published",
        "smelt",
        "--at",
        "F=1e10,D=1e11,S=.947",
        "--at",
        "S=0.947,D=200B,F=1e10",
    ]
    rows = cli(*argv, "--format", "json").json()["rows"]
    # E + A (1 - S)^b F^-a + K D^-c by hand, from the printed coefficients of smelt
    by_hand = 1.4493 + 1963 * (1 - 0.947) ** 0.1460 * 1e10**-0.3892 + 5.264e6 * 1e11**-0.7011
    (found,) = [row["loss"] for row in rows if row["arch"] == "smelt" and row["D"] == 1e11]
    assert found == pytest.approx(by_hand, rel=1e-12)
    assert [row["D"] for row in rows] == [1e11, 2e11] * 2


@pytest.mark.usefixtures("empty")
def test_without_a_study_both_remedies_are_named(cli: Any) -> None:
    for command in (["ce-gain"], ["allocate", "-b", "1e21"], ["predict", "--at", "F=1e9,D=1e9,S=0"]):
        result = cli(*command)
        assert (result.code, result.out) == (3, "")
        assert "reports/study: no study here" in result.err
        assert "smelt-scaling fit runs.parquet" in result.err
        assert "--published smelt" in result.err
    assert cli("ce-gain", "--study", "elsewhere").code == 3


def test_a_study_older_than_its_input_says_so(
    cli: Any, folder: Path, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty / "runs.csv").write_bytes((folder / "runs.parquet").read_bytes())
    assert cli("fit", "runs.csv", "--bootstrap", "0").code == 0
    assert "stale_study" not in cli("ce-gain", "-b", "1e21").err
    (empty / "runs.csv").write_bytes((folder / "runs.parquet").read_bytes() + b"\n")
    result = cli("ce-gain", "-b", "1e21")
    assert result.code == 0
    assert "warning [stale_study] runs.csv changed after reports/study was fitted" in result.said
    notes = cli("ce-gain", "-b", "1e21", "--format", "json").json()["notes"]
    assert "stale_study" in [note["code"] for note in notes]
    (empty / "elsewhere").mkdir()
    monkeypatch.chdir(empty / "elsewhere")
    said = cli("ce-gain", "-b", "1e21", "--study", "../reports/study").said
    assert f"smelt-scaling fit {empty / 'runs.csv'} -o ../reports/study" in said
    monkeypatch.chdir(empty)
    (empty / "runs.csv").unlink()  # nothing to compare with
    result = cli("ce-gain", "-b", "1e21")
    assert "stale_study" not in result.err
    assert "note [input_missing] runs.csv: no longer there" in result.said
    assert "cannot be checked" in result.said


@pytest.mark.usefixtures("here")
def test_a_percentage_is_a_point_too(cli: Any) -> None:
    same = [
        cli("predict", "--at", f"F=1e10,D=100B,S={typed}", "--format", "json").json()["rows"]
        for typed in ("90%", "0.9", "90 %")
    ]
    assert same[0] == same[1] == same[2]


@pytest.mark.usefixtures("here")
def test_where_a_saving_turns_is_marked_outside_the_runs(cli: Any) -> None:
    said = " ".join(cli("ce-gain", "-b", "1e21", "--published", "smelt").out.split())
    assert "the runs cover C from 1.3e19 to 2.2e21" in said
    # outside 1.3e19 to 2.2e21: all three peaks and the far crossings, and one of the near ones
    assert "0.846 8.19e22 † 25.3 % 1.09e19 †, 1.82e25 †" in said
    assert "0.947 5.49e22 † 22.2 % 1.69e19, 8.83e24 †" in said
    window = [row["C_lo"] for row in cli("check", "runs.parquet", "--format", "json").json()["rows"]]
    assert f"the runs cover C from {max(window):.2e}".replace("e+", "e") in " ".join(
        cli("ce-gain", "-b", "1e21").out.split()
    )
    pair = ["--published", "chinchilla", "--target", "epoch", "--reference", "rounded"]
    unknown = " ".join(cli("ce-gain", *pair, "-b", "1e21").out.split())
    assert "which budgets the runs cover is not known" in unknown
    record = cli("ce-gain", "-b", "1e21", "--format", "json").json()
    assert "window" not in record


def test_an_absurd_budget_is_called_one(cli: Any) -> None:
    argv = ["ce-gain", "--published", "smelt", "--sparsity", "0.947", "--format", "json"]
    notes = {note["code"]: note for note in cli(*argv, "-b", "1e21,2.3e24,1e30").json()["notes"]}
    # the paper's runs end at 2.2e21: 2.3e24 is 1045 times that, 1e30 is 4.55e8 times
    assert notes["far_extrapolated"]["count"] == 2
    assert notes["far_extrapolated"]["severity"] == "warning"
    assert "over 1000x outside" in notes["far_extrapolated"]["message"]
    near = cli(*argv, "-b", "1e23").json()["notes"]
    assert "far_extrapolated" not in {note["code"] for note in near}
    low = cli("allocate", "--published", "smelt", "-b", "1e12", "--format", "json").json()["notes"]
    assert "far_extrapolated" in {note["code"] for note in low}


def test_a_folder_that_is_no_study_gets_a_name_that_works(cli: Any, folder: Path, empty: Path) -> None:
    (empty / "full").mkdir()
    (empty / "full" / "thesis.tex").write_text("x")
    (empty / "full" / "study").mkdir()
    result = cli("ce-gain", "--study", "full")
    assert result.code == 3
    assert result.err.endswith("smelt-scaling fit runs.parquet -o full/study-2\n")
    assert cli("fit", str(folder / "runs.parquet"), "--bootstrap", "0", "-o", "full/study-2").code == 0
    (empty / "vacant").mkdir()
    assert cli("ce-gain", "--study", "vacant").err.endswith("-o vacant\n")
    assert "is a file" in cli("ce-gain", "--study", "full/thesis.tex").err


def test_fit_says_what_it_replaces_and_replaces_nothing_of_others(
    cli: Any, folder: Path, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = ["fit", str(folder / "runs.parquet"), "--bootstrap", "0", "-o", "s"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert cli(*argv).err == ""
    assert cli(*argv).err == "replaced the study of 1970-01-02T00:00:00+00:00 in s\n"
    before = {path.name: path.read_bytes() for path in (empty / "s").iterdir()}
    for text in (
        '{"title": "a study of mine"}',
        "[]",
        "not json",
        '{"command": "fit", "schema_version": "x"}',
    ):
        (empty / "s" / "study.json").write_text(text)
        result = cli(*argv)
        assert (result.code, result.out) == (3, "")
        assert "s/study.json: was not written by smelt-scaling, so it is not replaced" in result.err
        assert (empty / "s" / "study.json").read_text() == text
    assert (empty / "s" / "draws.parquet").read_bytes() == before["draws.parquet"]


@pytest.mark.parametrize("name", ["runs.csv", "runs.jsonl", "RUNS.PARQUET"])
@pytest.mark.usefixtures("empty")
def test_the_example_is_written_as_its_name_says(cli: Any, name: str) -> None:
    assert cli("example", "-o", name).code == 0
    assert read_endpoints(name).digest == example_endpoints().digest


@pytest.mark.usefixtures("empty")
def test_the_example_refuses_a_name_that_says_nothing(cli: Any) -> None:
    for name in ("runs.xlsx", "runs"):
        result = cli("example", "-o", name)
        assert result.code == 2
        assert "end it in .parquet, .csv, .jsonl" in result.err
        assert not Path(name).exists()


def test_flags_take_no_value_and_every_paper_is_named(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from smelt_scaling.papers import PAPERS

    monkeypatch.setenv("COLUMNS", "200")
    for command in (["example"], ["ce-gain"], []):
        lines = cli(*command, "--help").out.splitlines()
        assert not [line for line in lines if "bool" in line.lower() and "--help" not in line]
    text = " ".join(cli("ce-gain", "--help").out.split())
    assert all(name in text.partition("--published PAPER")[2][:120] for name in PAPERS)


def test_check_says_that_sparsity_is_absent(cli: Any, empty: Path) -> None:
    example_endpoints().to_frame().drop(columns="S").to_csv("dense.csv", index=False)
    assert "note [sparsity_absent]" in cli("check", "dense.csv").said
    assert "sparsity_absent" not in cli("check", "dense.csv", "--law", "additive").said


def run_next(cli: Any, out: str) -> Result:
    """Run the command that a fit ends with."""
    last = out.splitlines()[-1]
    result: Result = cli(*shlex.split(last.removeprefix("next: smelt-scaling ")))
    return result


@pytest.mark.usefixtures("empty")
def test_after_a_refused_bootstrap_the_next_command_has_an_interval(cli: Any) -> None:
    frame = example_endpoints().to_frame()
    kept = sorted(frame["cell"].unique())[:5]
    frame[frame["cell"].isin(kept)].to_csv("few.csv", index=False)
    result = cli("fit", "few.csv", "--bootstrap", "100")
    assert result.code == 0
    assert re.fullmatch(
        r"next: smelt-scaling ce-gain --budget \S+ --study reports/study --interval jackknife-t",
        result.out.splitlines()[-1],
    )
    answer = run_next(cli, result.out)
    assert answer.code == 0
    assert "jackknife-t intervals" in answer.out


def test_the_next_command_never_fails_at_once(cli: Any, empty: Path) -> None:
    frame = example_endpoints().to_frame()
    frame.to_csv("runs.csv", index=False)
    # one horizon: the amplitude of D is not identified, so nothing can be said but what the design lacks
    frame[frame["D"] == frame["D"].max()].to_csv("once.csv", index=False)
    cases = {
        ("runs.csv", "E + A*F**-a"): ("no gain: ", "predict --at F="),  # no D, no optimum
        ("runs.csv", "power-c"): ("", "ce-gain --budget 1e21"),
        ("once.csv", "sparse-additive"): ("nothing can be asked of this study: ", "check once.csv"),
        ("once.csv", "E + A*(1-S)**b*F**-a"): ("no gain: ", "predict --at S="),
    }
    for (name, law), (why, asked) in cases.items():
        result = cli("fit", name, "--bootstrap", "0", "--law", law, "-o", "s")
        assert result.code == 0, result.err
        after = result.out.partition("study saved in s\n")[2]
        assert after.startswith(why or "next: ")
        assert f"next: smelt-scaling {asked}" in after
        assert max(map(len, after.splitlines()[:-1]), default=0) <= 80
        assert run_next(cli, result.out).code == 0


def test_the_next_command_reads_the_table_with_the_options_of_the_fit(cli: Any, empty: Path) -> None:
    """A table of one horizon in parameters, renamed: without these options it would be refused at once."""
    frame = example_endpoints().to_frame()
    once = frame[frame["D"] == frame["D"].max()].drop(columns="F").assign(status="running")
    once.rename(columns={"loss": "val/ce"}).to_csv("my runs.csv", index=False)
    options = ["--flops", "6N", "--map", "loss=val/ce", "--include-unfinished"]
    result = cli("fit", *options, "my runs.csv", "--bootstrap", "0", "-o", "s")
    words = "--map loss=val/ce --flops 6N --include-unfinished"
    assert result.out.splitlines()[-1] == f"next: smelt-scaling check 'my runs.csv' {words}"
    assert run_next(cli, result.out).code == 0


@pytest.mark.parametrize("command", ["ce-gain --published smelt 2>&1", "--help", "ce-gain --help 2>&1"])
def test_a_reader_that_goes_away_is_141(command: str) -> None:
    root = str(Path(__file__).resolve().parent.parent)
    script = f"{shlex.quote(sys.executable)} -m smelt_scaling {command} | true; exit ${{PIPESTATUS[0]}}"
    # wait for the reader to be gone before anything is written
    script = script.replace(
        " -m ",
        " -c 'import sys, time, runpy; time.sleep(0.3); "
        'runpy.run_module("smelt_scaling", run_name="__main__", alter_sys=True)\' ',
        1,
    )
    script = script.replace("smelt_scaling ce-gain", "ce-gain").replace("smelt_scaling --help", "--help")
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, "PYTHONPATH": root}, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (141, b"")


# ------------------------------------------------------------------ usage


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["ce-gain", "-b", "0"], "--budget 0: training FLOPs are a positive number, such as 1e21"),
        (["ce-gain", "-b", "-1e21"], "--budget -1e21"),
        (["ce-gain", "-b", "1e21,inf"], "--budget inf"),
        (["ce-gain", "-b", "1e21,many"], "--budget many"),
        (["ce-gain", "-b", "1e21", "--sparsity", "x"], "--sparsity x: not a number"),
        (["ce-gain", "-b", "1e21", "--sparsity", "95"], "a fraction in [0, 1)"),
        (["ce-gain", "-b", "1e21", "--sparsity", "94.5"], "is written 0.945 or 94.5%"),
        (["ce-gain", "-b", "1e21", "--sparsity", "1"], "--sparsity 1: a fraction in [0, 1) is needed"),
        (["ce-gain", "-b", "1e21", "--level", "95"], "level 95.0: must lie between 0 and 1"),
        (["ce-gain", "-b", "1e21", "--target", "nobody"], "choose from baseline, smelt"),
        (["ce-gain", "--study", "x"], "name one of them"),
        (["predict", "--at", "F=1e9"], "D is missing"),
        (["predict", "--at", "F=1e9,D=1e9"], "S is missing, add S=0 for a dense model"),
        (["predict", "--at", "f=1e9,D=1e9,S=0"], "needs S, F, D; f is written F"),
        (["predict", "--at", "F=1e9,D=1e9,S=0,Q=1"], "Q is not in the law"),
        (["predict", "--at", "F=1e9,D=1e9,S=0", "--at", "F=1e9"], "every point names the same columns"),
        (["predict", "--at", "F"], "write --at F=1e10,D=100B,S=.947"),
        (["predict", "--at", "F=big,D=1,S=0"], "big is not a number"),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_2(cli: Any, argv: Sequence[str], says: str) -> None:
    result = cli(*argv, "--published", "smelt")
    assert (result.code, result.out) == (2, "")
    assert says in result.err
    assert len([line for line in result.err.splitlines() if line.startswith("error: ")]) == 1


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--delta", "0"], "--delta 0: write a positive number such as 1e-3, inf or auto"),
        (["--starts", "many"], "--starts many"),
        (["--pin", "E"], "--pin E: write E=1.6"),
        (["--pin", "nobody:E=1.6"], "nobody"),
        (["--pin", "E=1.6", "--pin", "E=1.7"], "--pin: E is held at 1.6 and at 1.7; hold it once"),
        (["--pin", "smelt:E=1,smelt:E=2"], "--pin: smelt:E is held at 1 and at 2; hold it once"),
        (["--pin", "Q=1"], "no parameter of law sparse-additive; choose from E, A, K, a, b, c"),
        (["--map", "loss"], "--map loss: write --map NAME=COLUMN"),
        (["--map", "loss=a,loss=b"], "name it once"),
        (["--law", "quadratic"], "law 'quadratic' is unknown"),
        (["--flops", "2N"], "use 6N"),
        (["--bootstrap", "-5"], "0 or more"),
    ],
)
@pytest.mark.usefixtures("empty")
def test_a_wrong_option_of_fit_is_exit_2(cli: Any, folder: Path, argv: Sequence[str], says: str) -> None:
    result = cli("fit", str(folder / "runs.parquet"), *argv)
    assert (result.code, result.out) == (2, "")
    assert says in result.err


@pytest.mark.parametrize(
    "argv", [["nothing"], ["fit"], ["ce-gain", "--format", "xml"], ["ce-gain", "--nope"], ["predict"]]
)
def test_what_the_parser_refuses_is_exit_2(cli: Any, argv: Sequence[str]) -> None:
    result = cli(*argv)
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(r"error: .*\(smelt-scaling.* --help\)\n", result.err)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["fti"], "no such command 'fti'; did you mean 'fit'? (smelt-scaling --help)"),
        (["fit"], "missing argument 'RUNS': Table of endpoints: Parquet, Feather, CSV or JSON"),
        (
            ["ce-gain", "--budgte", "1"],
            "no such option: --budgte; did you mean --budget? (smelt-scaling ce-gain --h",
        ),
        (
            ["ce-gain", "--format", "xml"],
            "invalid value for '--format': 'xml' is not one of 'table', 'md', 'csv'",
        ),
        (
            ["fit", "r", "--seed", "x"],
            "invalid value for '--seed': not a whole number (smelt-scaling fit --help)",
        ),
        (
            ["ce-gain", "--level", "x"],
            "invalid value for '--level': not a number (smelt-scaling ce-gain --help)",
        ),
        (
            ["predict"],
            "missing option '--at': The law's columns: F=1e10,D=2e11,S=.947 (smelt-scaling predict --h",
        ),
        (["fit", "a", "b"], "not expected here: (b) (smelt-scaling fit --help)"),
    ],
)
def test_what_the_parser_refuses_is_one_line_with_what_would_do(
    cli: Any, argv: Sequence[str], says: str
) -> None:
    result = cli(*argv)
    assert result.err.startswith(f"error: {says}")
    assert result.err.count("\n") == 1


def test_no_command_shows_the_help_and_exits_2(cli: Any) -> None:
    result = cli()
    assert (result.code, result.err) == (2, "")
    assert "Usage: smelt-scaling" in result.out


def test_pins_that_contradict_themselves() -> None:
    from smelt_scaling.cli.parse import parse_pins

    for contradiction in (["E=1.6", "E:a=0.3"], ["E:a=0.3", "E=1.6"]):
        with pytest.raises(UsageError, match="E is the name of a parameter as well"):
            parse_pins(contradiction)
    assert parse_pins(["E=1.6", "E=1.60,ours:E=2"]) == {"E": 1.6, "ours": {"E": 2.0}}


def test_names_that_hold_commas_and_blanks(cli: Any, empty: Path) -> None:
    frame = example_endpoints().to_frame()
    frame["arch"] = frame["arch"].map({"baseline": "MoE, wide", "smelt": "MoE, wide, looped"})
    frame.to_parquet("my runs.parquet")
    wide, looped = "MoE, wide", "MoE, wide, looped"
    argv = [
        "fit",
        "my runs.parquet",
        "--bootstrap",
        "0",
        "--pin",
        f"{wide}:E=1.41",
        "--pin",
        f"{looped}:E=1.4",
    ]
    record = cli(*argv, "--format", "json").json()
    assert [one["pinned"] for one in record["fits"]] == [{"E": 1.41}, {"E": 1.4}]
    for names in ([looped], [looped, wide]):
        options = [text for name in names for text in ("--arch", name)]
        rows = cli("allocate", "-b", "1e21", *options, "--format", "json").json()["rows"]
        assert {row["arch"] for row in rows} == set(names)
    result = cli("ce-gain", "-b", "1e21", "--target", wide, "--format", "json")
    assert {(row["target"], row["reference"]) for row in result.json()["rows"]} == {(wide, looped)}
    swapped = next(
        note["message"]
        for note in cli("ce-gain", "-b", "1e21", "--format", "json").json()["notes"]
        if note["code"] == "default_reference"
    ).partition("the other way round: ")[2]
    assert cli("ce-gain", "-b", "1e21", *shlex.split(swapped)).code == 0
    example = cli("example", "-o", "new runs.parquet")
    assert example.err.splitlines()[-1] == "next: smelt-scaling fit 'new runs.parquet'"
    Path("my runs.parquet").write_bytes(Path("new runs.parquet").read_bytes())
    assert re.search(r"fit 'my runs\.parquet' -o reports/study", cli("ce-gain", "-b", "1e21").said)


# ------------------------------------------------------------------ the process around a command


def test_other_exceptions_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    from smelt_scaling import papers

    def broken(name: str) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(papers, "read_published", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        run(["ce-gain", "--published", "smelt"])


def test_an_interrupt_is_130(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from smelt_scaling import papers

    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(papers, "read_published", interrupted)
    result = cli("ce-gain", "--published", "smelt")
    assert (result.code, result.out) == (130, "")
    assert result.err == "interrupted, nothing saved\n"


def test_a_terminal_without_unicode_gets_plain_signs(tmp_path: Path) -> None:
    argv = ["-m", "smelt_scaling", "ce-gain", "--published", "smelt", "-b", "1e22"]
    done = python(*argv, cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr.decode()
    assert b"+ out_C x4.5 (smelt)" in done.stdout
    assert b"\\" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    shown = python("-m", "smelt_scaling", "fit", "--help", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert b"\\u" not in shown.stdout


def test_paper_is_needed_for_published_surfaces(cli: Any) -> None:
    result = cli("ce-gain", "--published", "nobody")
    assert (result.code, result.out) == (2, "")
    for name in ("smelt", "chinchilla"):
        assert name in result.err
    assert load_paper("smelt").windows["smelt"]["C"] == (1.3e19, 2.2e21)


def test_a_paper_without_a_window_needs_budgets(cli: Any) -> None:
    pair = ["--published", "chinchilla", "--target", "epoch", "--reference", "rounded"]
    result = cli("ce-gain", *pair)
    assert result.code == 2
    assert "--budget 1e21" in result.err
    assert cli("ce-gain", *pair, "-b", "1e21").code == 0


@pytest.mark.parametrize(
    ("law", "question"), [("additive", "allocate --budget 1e19"), ("power-c", "predict --at C=1.6e19")]
)
def test_the_next_command_of_one_architecture_runs(cli: Any, empty: Path, law: str, question: str) -> None:
    rows = "\n".join(f"a,{n}e9,{d}e9,{1.5 + n**-0.3 + d**-0.4}" for n in (2, 3, 4) for d in (8, 5, 4, 6))
    (empty / "runs.csv").write_text(f"arch,F,D,loss\n{rows}\n")
    result = cli("fit", "runs.csv", "--bootstrap", "0", "--law", law)
    assert result.code == 0, result.err
    last = result.out.splitlines()[-1]
    # the runs cover 8e18 to 3.2e19 FLOPs: 1e19 lies within, 1.6e19 in the middle
    assert last == f"next: smelt-scaling {question} --study reports/study"
    assert cli(*last.removeprefix("next: smelt-scaling ").split()).code == 0
