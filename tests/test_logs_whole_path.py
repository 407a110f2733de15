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
from smelt_scaling.ingest import Rules, read_logs
from smelt_scaling.papers.example import example_endpoints
from smelt_scaling.papers.example_logs import write_example_logs

COLUMNS = ["arch", "scale", "cell", "trunk", "run", "F", "S", "D", "loss", "N", "N_act", "source"]


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


def test_endpoints_from_simulated_logs_stay_marked_as_simulated(sweep: Path) -> None:
    notes = read_logs([sweep / "logs"], runs=sweep / "runs.csv").notes
    assert [note.count for note in notes if note.code == "simulated"] == [144]


def _log(
    path: Path, *, status: str = "finished", rate: float = 0.0, key: str = "eval/loss", **more: Any
) -> Path:
    """Write a run of five steps that ends at a share of its peak rate; ``more`` is of every row."""
    rows = [
        {"step": n, "lr": 1.0 if n < 5 else rate, key: 3.0 - n / 10, "status": status} for n in range(1, 6)
    ]
    path.write_text("".join(json.dumps({"run": path.stem, **row, **more}) + "\n" for row in rows))
    return path


def _refused(*logs: Path, **options: Any) -> str:
    with pytest.raises(IngestError) as raised:
        read_logs(list(logs), **options)
    return str(raised.value)


def test_the_option_that_is_proposed_takes_the_ends_that_were_left_out(tmp_path: Path) -> None:
    """An end above 10 % of the peak rate needs another rate and no unfinished runs; taking the advice works."""
    high = _log(tmp_path / "a.jsonl", rate=0.8, tokens=1e9, N=1e8)
    said = _refused(high)
    assert "no endpoint in 1 end of runs (a: not_annealed" in said
    assert "--annealed" in said
    assert "--include-unfinished" not in said
    assert read_logs([high], rules=Rules(annealed=0.9)).counts["endpoints"] == 1


def test_nobody_is_told_to_take_the_last_good_loss_of_a_diverged_run(tmp_path: Path) -> None:
    diverged = _log(tmp_path / "a.jsonl", tokens=1e9, N=1e8)
    diverged.write_text(diverged.read_text().replace("2.5,", '"NaN",'))
    said = _refused(diverged)
    assert "(a: diverged" in said
    assert said.endswith("add logs of runs that did not")
    assert "--include-unfinished" not in said
    assert "--annealed" not in said


def test_what_logs_lack_is_to_be_stated_in_the_table_of_runs(tmp_path: Path) -> None:
    """Also F: an option of the table of endpoints cannot name what no log holds."""
    said = _refused(_log(tmp_path / "a.jsonl")).splitlines()
    assert [line.split(" (")[0] for line in said] == [
        "no tokens in the logs of 1 run",
        "no F, N or N_act of any run: "
        "an endpoint needs the training FLOPs per token or the parameters; "
        "state one for all in the table of runs, --runs",
    ]
    assert all("--runs-template runs.csv" in line for line in said)
    (tmp_path / "runs.csv").write_text("run,tokens_per_step,N\na,0.5M,124M\n")
    found = read_logs([tmp_path / "a.jsonl"], runs=tmp_path / "runs.csv")
    (row,) = found.endpoints.to_frame().to_dict("records")
    assert (row["D"], row["N"]) == (5 * 500_000, 124_000_000)
    parsed = [note.message.partition(": ")[2] for note in found.notes if note.code == "parsed_numbers"]
    read = "1 cell with a suffix or thousands separators read as numbers"
    assert parsed == [f"column tokens_per_step, {read}", f"column N, {read}"]


def test_a_decimal_comma_in_the_table_of_runs_is_counted(tmp_path: Path) -> None:
    log = _log(tmp_path / "a.jsonl", tokens=1e9)
    (tmp_path / "runs.csv").write_text("run;F;S\na;7,5e8;0,25\n")
    found = read_logs([log], runs=tmp_path / "runs.csv")
    (row,) = found.endpoints.to_frame().to_dict("records")
    assert (row["F"], row["S"]) == (7.5e8, 0.25)
    assert "decimal_comma" in {note.code for note in found.notes}
