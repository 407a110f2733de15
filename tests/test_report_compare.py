"""Two reports held against each other: every number with its tolerance, and nothing but numbers and words."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from smelt_scaling import load_paper
from smelt_scaling.cli import run
from smelt_scaling.errors import StudyError, UsageError
from smelt_scaling.reporting.build import build_report
from smelt_scaling.reporting.compare import (
    TOLERANCES,
    compare_reports,
    difference_lines,
    shared_tables,
)

HEAD = "arch,budget,gain,gain_lo,gain_hi,mc_error,support,zero_crossings,state\n"
ROW = 'smelt,1e+21,0.158,0.1,0.25,0.004,"[{""code"": ""out_F"", ""factor"": 1.5}]",1e+19; 2e+25,fitted\n'


def folder(path: Path, **tables: str) -> Path:
    """Write a report of these tables."""
    (path / "tables").mkdir(parents=True)
    for name, text in tables.items():
        (path / "tables" / f"{name}.csv").write_text(text, encoding="utf-8")
    names = {f"tables/{name}.csv": "" for name in tables}
    (path / "manifest.json").write_text(json.dumps({"files": names}), encoding="utf-8")
    return path


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., list[str]]:
    def compare(old: str, new: str, **tolerances: float) -> list[str]:
        shutil.rmtree(tmp_path, ignore_errors=True)
        before = folder(tmp_path / "before", gain=HEAD + ROW)
        after = folder(tmp_path / "after", gain=(HEAD + ROW).replace(old, new, 1))
        return difference_lines(compare_reports(before, after, tolerances=tolerances))

    return compare


# One part in a million for points, in a thousand for ends of intervals, a fifth for Monte-Carlo errors: what the module
# promises. Each pair stands on either side of its tolerance.
@pytest.mark.parametrize(
    ("old", "within", "beyond"),
    [
        ("0.158", "0.15800015", "0.1580002"),
        ("1e+21", "1.0000009e+21", "1.0000011e+21"),
        (",0.1,", ",0.10009,", ",0.10011,"),
        ("0.25", "0.25024", "0.25026"),
        ("0.004", "0.0049", "0.0051"),
        ("1.5}", "1.5000014}", "1.5000016}"),
        ("2e+25", "2.0000019e+25", "2.0000021e+25"),
    ],
)
def test_every_column_has_its_tolerance(
    lines: Callable[..., list[str]], old: str, within: str, beyond: str
) -> None:
    assert lines(old, within) == []
    assert len(lines(old, beyond)) == 1


def test_numbers_about_zero_differ_by_their_difference(tmp_path: Path) -> None:
    before = folder(tmp_path / "before", gain="gain\n0\n")
    for value, found in (("9e-10", 0), ("-9e-10", 0), ("1.1e-9", 1)):  # 1e-6 of 1e-3
        after = folder(tmp_path / value, gain=f"gain\n{value}\n")
        assert len(compare_reports(before, after)) == found


def test_the_longest_ending_of_a_name_rules(lines: Callable[..., list[str]]) -> None:
    assert lines(",0.1,", ",0.105,", gain_lo=0.1) == []
    assert lines("0.25", "0.255", gain_lo=0.1) == [
        "tables/gain.csv: row 1 (arch smelt, budget 1e+21), gain_hi: 0.25 -> 0.255 (allowed 0.001, relative)"
    ]
    assert lines("0.25", "0.255", _hi=0.1) == []
    assert lines("0.158", "0.158000001", gain=0.0) != []


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("fitted", "pinned", "state: fitted -> pinned"),
        ("0.158", "", "gain: 0.158 -> empty"),
        ("0.158", "nan", "gain: 0.158 -> nan"),
        (",0.1,", ",,", "gain_lo: 0.1 -> empty"),
        (
            "out_F",
            "out_D",
            'support: [{"code": "out_F", "factor": 1.5}] -> [{"code": "out_D", "factor": 1.5}]',
        ),
        ("1e+19; 2e+25", "1e+19", "zero_crossings: 1e+19; 2e+25 -> 1e+19"),
        ("mc_error", "error", "mc_error: 0.004 -> (no column)"),
    ],
)
def test_what_is_no_number_must_be_equal(
    lines: Callable[..., list[str]], old: str, new: str, line: str
) -> None:
    said = lines(old, new)
    assert said[0].startswith(f"tables/gain.csv: row 1 (arch smelt, budget 1e+21), {line}")


def test_rows_and_tables_that_come_or_go(tmp_path: Path) -> None:
    before = folder(tmp_path / "before", gain=HEAD + ROW + ROW, lost="a\n1\n")
    after = folder(tmp_path / "after", gain=HEAD + ROW, added="a\n1\n")
    assert difference_lines(compare_reports(before, after)) == [
        "tables/lost.csv: table: there -> missing",
        "tables/added.csv: table: missing -> there",
        "tables/gain.csv: rows: 2 -> 1",
    ]
    (before / "tables/lost.csv").unlink()  # left out of what is committed
    assert [one.table for one in compare_reports(before, after)] == ["tables/added.csv", "tables/gain.csv"]
    assert shared_tables(before, after) == ["tables/gain.csv"]


def test_of_a_table_that_is_all_different_the_first_rows_are_shown(tmp_path: Path) -> None:
    before = folder(tmp_path / "before", gain="gain\n" + "1\n" * 20)
    after = folder(tmp_path / "after", gain="gain\n" + "2\n" * 20)
    said = difference_lines(compare_reports(before, after))
    assert said[0] == "tables/gain.csv: row 1, gain: 1 -> 2 (allowed 1e-06, relative)"
    assert said[-1] == "tables/gain.csv: 12 more"
    assert len(said) == 9


def test_pictures_are_not_compared(tmp_path: Path) -> None:
    paper = load_paper("smelt")
    build_report(paper, tmp_path / "svg", formats=("svg",))
    build_report(paper, tmp_path / "none", formats=())
    assert compare_reports(tmp_path / "svg", tmp_path / "none") == []
    assert len(shared_tables(tmp_path / "svg", tmp_path / "none")) == 7  # 2 tables, turning points, 4 figures


def test_a_folder_without_a_report_and_a_tolerance_that_is_none(tmp_path: Path) -> None:
    there = folder(tmp_path / "there", gain=HEAD)
    with pytest.raises(StudyError, match=r"holds no report \(manifest.json is missing\)"):
        compare_reports(tmp_path / "nowhere", there)
    for text in ("{", "[]", '{"files": 3}'):
        (tmp_path / "broken").mkdir(exist_ok=True)
        (tmp_path / "broken/manifest.json").write_text(text, encoding="utf-8")
        with pytest.raises(StudyError, match="is no list of the files of a report"):
            compare_reports(tmp_path / "broken", there)
    for value in (-1.0, float("nan")):
        with pytest.raises(UsageError, match="must be 0 or more"):
            compare_reports(there, there, tolerances={"gain": value})
    assert TOLERANCES["lo"] == TOLERANCES["hi"] == 1e-3


def test_the_exit_code_says_whether_a_number_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    call = ["report", "--published", "smelt", "--figures", "none", "-o"]
    assert run([*call, "old"]) == 0
    capsys.readouterr()
    assert run([*call, "new", "--compare", "old"]) == 0
    assert capsys.readouterr().out == "no number moved: 7 tables agree with old\n"
    path = tmp_path / "old/tables/gain.csv"
    text = path.read_text(encoding="utf-8")
    gain = next(cell for cell in text.splitlines()[1].split(",") if cell.startswith("0.09"))
    path.write_text(text.replace(gain, str(1.01 * float(gain)), 1), encoding="utf-8")
    assert run([*call, "new", "--compare", "old"]) == 1
    out, said = capsys.readouterr()
    assert out.startswith("tables/gain.csv: row 1 (target smelt, budget 1e+20, sparsity 0.846), gain: 0.1")
    assert out.endswith("(allowed 1e-06, relative)\n")
    assert said.endswith("error: 1 difference from old\n")
    assert run([*call, "new", "--compare", "old", "--allow", "gain=0.02"]) == 0
