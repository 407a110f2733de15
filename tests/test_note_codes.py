"""Every note code says what it means and what to do, and what it says exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from smelt_scaling import errors
from smelt_scaling.analyses.calibration.score_rules import SCORE_COLUMNS
from smelt_scaling.cli import app, run
from smelt_scaling.endpoints import COLUMNS
from smelt_scaling.laws import LAWS
from smelt_scaling.note_codes import NOTE_CODES, STAGES

ROOT: Any = typer.main.get_command(app)
OPTIONS = {spelled for command in ROOT.commands.values() for p in command.params for spelled in p.opts}
CODES = sorted(NOTE_CODES)


def test_errors_hands_on_the_same_codes() -> None:
    assert errors.NOTE_CODES is NOTE_CODES
    assert sum(len(codes) for codes in STAGES.values()) == len(NOTE_CODES)  # none stands in two stages


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_explained_in_plain_sentences(code: str) -> None:
    severity, meaning, remedy = NOTE_CODES[code]
    assert severity in ("info", "warning", "info or warning")
    assert re.fullmatch(r"[a-z_]+", code)
    for text in (meaning, remedy):
        assert re.match(r"[A-Z]", text)
        assert re.search(r"[.?]$", text)
        assert "  " not in text
    assert len(meaning) <= 120
    assert 1 <= len(re.findall(r"[.?](?: |$)", remedy)) <= 3
    assert len(remedy) <= 260


@pytest.mark.parametrize("code", CODES)
def test_what_a_remedy_names_exists(code: str) -> None:
    remedy = NOTE_CODES[code].remedy
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", remedy):
        assert option in OPTIONS, option
    for column in re.findall(r"--(?:map|unit) (\w+)=", remedy):
        assert column == "NAME" or column in {**COLUMNS, **SCORE_COLUMNS}, column
    for law in re.findall(r"--law ([a-z][a-z-]*)", remedy):
        assert law in LAWS, law


def test_explain_prints_meaning_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "collinear", "[at_bound]"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    first, second = out.split("\n\n")
    for code, text in (("collinear", first), ("at_bound", second)):
        said = NOTE_CODES[code]
        assert " ".join(text.split()) == f"{code} (warning) {said.meaning} What to do: {said.remedy}"


def test_explain_lists_every_code_under_its_stage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line in STAGES] == list(STAGES)
    assert [line.split()[0] for line in lines if re.match(r"  \w", line)] == list(NOTE_CODES)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("colinear", "'colinear': no such note code; did you mean collinear"),
        ("Not-Certified", "'Not-Certified': no such note code; did you mean not_certified"),
        ("zzz", "'zzz': no such note code; smelt-scaling explain lists them all"),
    ],
)
def test_an_unknown_code_is_one_line(typed: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "pinned", typed]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error: {answer}")
    assert err.count("\n") == 1


def test_a_warning_points_to_its_explanation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where a warning was printed, and only there."""
    monkeypatch.chdir(tmp_path)
    hint = "what to do about a warning: smelt-scaling explain CODE"
    assert run(["ce-gain", "--published", "smelt", "-b", "1e24"]) == 0
    assert hint in capsys.readouterr().err.splitlines()
    assert run(["ce-gain", "--published", "smelt", "-b", "1e21", "--format", "csv"]) == 0
    err = capsys.readouterr().err
    assert "warning [" in err or hint not in err
    Path("runs.csv").write_text("C,loss\n1e18,3.5\n1e19,3\n1e20,2.7\n1e21,2.5\n")
    assert run(["fit", "runs.csv", "--law", "power-c", "--bootstrap", "0"]) == 0
    out = capsys.readouterr().out
    assert "warning [row_resampling]" in out
    assert hint in out.splitlines()
