"""From raw logs to the gain: a sweep with crashes gives the numbers of the clean table, to the last byte."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from smelt_scaling.cli import run
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import IngestError
from smelt_scaling.ingest import read_logs
from smelt_scaling.papers.example import example_endpoints
from smelt_scaling.papers.example_logs import write_example_logs

COLUMNS = ["arch", "scale", "cell", "trunk", "run", "F", "S", "D", "loss", "N", "N_act"]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_example_logs(tmp_path_factory.mktemp("sweep"))


def test_every_endpoint_of_the_sweep_is_the_one_it_was_written_with(sweep: Path) -> None:
    found = read_logs([sweep / "logs"], runs=sweep / "runs.csv")
    frame = found.endpoints.to_frame()[COLUMNS]
    expected = example_endpoints().to_frame()[COLUMNS]
    assert frame.equals(expected)  # to the last bit
    assert found.counts["endpoints"] == 144
    assert found.counts["runs"] == 24 + 144
    assert set(found.left_out["code"]) == {"not_annealed"}  # the 24 trunks
    assert len(found.left_out) == 24
    resumed = found.manifest[found.manifest["pieces"] == 2]
    assert len(resumed) > 20
    assert all(len(files) == 2 for files in resumed["files"])


def test_the_gain_from_logs_is_the_gain_from_the_clean_table(
    sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`endpoints`, `fit`, `ce-gain` as typed by a user; the clean table goes the same way without the first."""
    clean = tmp_path / "clean.parquet"
    example_endpoints().to_frame().to_parquet(clean)
    table = tmp_path / "runs.parquet"
    assert run(["endpoints", str(sweep / "logs"), "--runs", str(sweep / "runs.csv"), "-o", str(table)]) == 0
    gains = []
    for runs in (table, clean):
        study = tmp_path / f"study-{runs.stem}"
        assert run(["fit", str(runs), "--bootstrap", "200", "-o", str(study)]) == 0
        capsys.readouterr()
        assert run(["ce-gain", "--study", str(study), "--budget", "1e20,1e21", "--format", "json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        gains.append(json.dumps([answer["rows"], answer["turnover"]]))
    assert gains[0] == gains[1]


def test_the_order_and_the_names_of_files_do_not_matter(sweep: Path, tmp_path: Path) -> None:
    digest = read_logs([sweep / "logs"], runs=sweep / "runs.csv").endpoints.digest
    rng = random.Random(3)
    files = sorted((sweep / "logs").rglob("*.jsonl"))
    numbers = list(range(len(files)))
    rng.shuffle(numbers)
    for number, file in zip(numbers, files, strict=True):
        shutil.copy(file, tmp_path / f"{number:04d}.txt")
    assert read_logs([tmp_path], runs=sweep / "runs.csv").endpoints.digest == digest


def test_one_file_of_all_runs_gives_the_same(sweep: Path, tmp_path: Path) -> None:
    """Concatenated logs: the pieces of a resumed run follow each other in one file, those of others lie between."""
    whole = tmp_path / "all.jsonl"
    files = sorted((sweep / "logs").rglob("*.jsonl"))
    whole.write_text("".join(file.read_text() for file in files))
    found = read_logs([whole], runs=sweep / "runs.csv")
    assert found.endpoints.digest == read_logs([sweep / "logs"], runs=sweep / "runs.csv").endpoints.digest


def test_a_missing_piece_is_never_a_silent_other_number(sweep: Path, tmp_path: Path) -> None:
    """Without the resumed piece a run ends in the middle of its decay: left out, with its code."""
    shutil.copytree(sweep / "logs", tmp_path / "logs")
    gone = sorted((tmp_path / "logs").rglob("*-resumed.jsonl"))[0]
    gone.unlink()
    found = read_logs([tmp_path / "logs"], runs=sweep / "runs.csv")
    assert found.counts["endpoints"] == 143
    assert len(found.left_out[found.left_out["step"] > 0]) == 25


def test_runs_without_a_row_and_rows_without_a_run_are_named(sweep: Path, tmp_path: Path) -> None:
    lines = (sweep / "runs.csv").read_text().splitlines(keepends=True)
    less = tmp_path / "less.csv"
    less.write_text("".join(lines[:-1]))
    with pytest.raises(IngestError, match=r"1 run of the logs without a row in .*less.csv \(smelt/"):
        read_logs([sweep / "logs"], runs=less)
    more = tmp_path / "more.csv"
    more.write_text("".join(lines) + lines[-1].replace("smelt/", "typo/", 1))
    with pytest.raises(IngestError, match=r"1 run of .*more.csv in no log \(typo/"):
        read_logs([sweep / "logs"], runs=more)


def test_trajectories_keep_every_evaluation_and_say_so(sweep: Path) -> None:
    found = read_logs([sweep / "logs"], runs=sweep / "runs.csv", trajectory=True)
    frame = found.endpoints.to_frame()
    assert set(frame["phase"]) == {"checkpoint"}
    assert len(frame) > 500
    assert "trajectory" in {note.code for note in found.notes}
    labels, unit = found.endpoints.cells("run")
    assert (len(set(labels)), unit) == (168, "run")


def test_the_manifest_names_files_and_their_digests(sweep: Path, tmp_path: Path) -> None:
    import hashlib

    manifest = tmp_path / "manifest.json"
    table = tmp_path / "runs.csv"
    arguments = ["endpoints", str(sweep / "logs"), "--runs", str(sweep / "runs.csv"), "-o", str(table)]
    assert run([*arguments, "--manifest", str(manifest)]) == 0
    document: dict[str, Any] = json.loads(manifest.read_text())
    assert len(document["endpoints"]) == 144
    one = document["files"][0]
    assert one["sha256"] == hashlib.sha256(Path(one["path"]).read_bytes()).hexdigest()
    assert document["digest"] == read_logs([sweep / "logs"], runs=sweep / "runs.csv").endpoints.digest
    assert Endpoints.from_frame(example_endpoints().to_frame()).digest  # the clean set is readable, too


def test_the_template_lists_every_run(sweep: Path, tmp_path: Path) -> None:
    template = tmp_path / "template.csv"
    assert run(["endpoints", str(sweep / "logs"), "--runs-template", str(template)]) == 0
    assert len(template.read_text().splitlines()) == 1 + 168


def test_a_template_has_what_a_pattern_reads_off_the_names(sweep: Path, tmp_path: Path) -> None:
    """The pattern renames runs before the table of runs is joined, so the template lists the new names."""
    template = tmp_path / "template.csv"
    pattern = "(?P<arch>[a-z]+)/(?P<cell>(?P<scale>[^/]+)/[^/]+)(/(?P<branch>[0-9]+))?"
    logs = ["endpoints", str(sweep / "logs"), "--run-pattern", pattern]
    assert run([*logs, "--runs-template", str(template)]) == 0
    first = template.read_text().splitlines()[1]
    assert first.startswith("baseline/1.6B/85%,baseline,1.6B,1.6B/85%,")
    named = "(?P<run>(?P<arch>[a-z]+)/(?P<cell>(?P<scale>[^/]+)/[^/]+))(/(?P<branch>[0-9]+))?"
    assert run([*logs[:-1], named, "--runs-template", str(template), "--force"]) == 0
    assert len(template.read_text().splitlines()) == 1 + 24  # a trunk and its branches are one run
