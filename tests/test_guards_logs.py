"""Every note code of logs, raised by the least that raises it, and gone after the remedy that its explanation names."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from smelt_scaling.errors import NOTE_CODES, Note
from smelt_scaling.ingest import Rules, read_logs
from smelt_scaling.note_codes import STAGES

Scenario = Callable[[Path], tuple[Note, ...]]

LOG = "run,step,tokens,lr,eval/loss\nr,1,1e9,1,3.5\nr,2,2e9,1,3.25\nr,3,4e9,0.01,3\n"
OTHER = LOG.replace("\nr,", "\ns,")
TABLE = "run,arch,F\nr,a,6e8\n"
STEPS = "run,arch,F,tokens_per_step\nr,a,6e8,1e9\n"


def read(
    *logs: str, table: str | None = TABLE, files: Mapping[str, str] | None = None, **options: Any
) -> Scenario:
    """Return a reading of CSV logs, of one run where none is given, or of files by name, with a table of runs."""

    def scenario(folder: Path) -> tuple[Note, ...]:
        named = files or {f"log{number}.csv": text for number, text in enumerate(logs or (LOG,))}
        for name, text in named.items():
            path = folder / "logs" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        runs = None
        if table is not None:
            runs = folder / "runs.csv"
            runs.write_text(table, encoding="utf-8")
        return read_logs([folder / "logs"], runs=runs, **options).notes

    return scenario


def two(table: str = TABLE) -> str:
    """Return the table with a second run s that is like r."""
    header, row = table.splitlines()
    return f"{header}\n{row}\ns{row.removeprefix('r')}\n"


def lines(*records: Mapping[str, Any], end: str = "\n") -> dict[str, str]:
    return {"r.jsonl": "\n".join(map(json.dumps, records)) + end}


RECORDS = [{"step": step, "tokens": 1e9 * step, "eval/loss": 4 - step / 4} for step in (1, 2, 3)]


def history(steps: Iterator[int] | range | list[int]) -> dict[str, str]:
    """Return a run as the API of Weights & Biases gives it, with so many rows of 2000."""
    rows = [{"_step": int(step), "eval/loss": 3 - int(step) / 4000} for step in steps]
    run = {"id": "r", "name": "r", "state": "finished", "config": {}, "summary": {}, "history": rows}
    return {"run.json": json.dumps(run)}


SAMPLE = sorted(np.random.default_rng(0).choice(2000, 500, replace=False).tolist())


def golden(*values: float) -> dict[str, str]:
    series = {str(step): value for step, value in enumerate(values, 1)}
    metric = {"start_step": 1, "end_step": 3, "step_interval": 1, "values": series}
    return {"r.json": json.dumps({"lm loss": metric})}


def store(stage: str) -> dict[str, str]:
    """Return an MLflow file store of runs r and s; s is at this stage of its life."""
    files = {}
    for run, own in (("r", "active"), ("s", stage)):
        files[f"1/{run}/meta.yaml"] = (
            f"artifact_uri: file:///1/{run}\nexperiment_id: '1'\nlifecycle_stage: {own}\nrun_id: {run}\n"
            f"run_name: {run}\nstart_time: 1700000000000\nstatus: 3\n"
        )
        files[f"1/{run}/metrics/eval_loss"] = "1700000000000 3.5 1\n1700000001000 3.25 2\n1700000002000 3 3\n"
    return files


def server(*, evaluated: bool) -> Scenario:
    """Return a reading of runs r and s on a server, of which s may have no row with a loss."""

    class Run:
        summary_metrics: Mapping[str, Any] = {}
        created_at = "2023-11-14T22:13:20Z"
        state = "finished"

        def __init__(self, name: str, key: str) -> None:
            self.id = self.name = name
            self.key = key
            self.history_keys = {"keys": {key: {}, "_step": {}}, "lastStep": 3}

        def scan_history(self, keys: Any = None, **_: Any) -> Iterator[dict[str, Any]]:
            for step in (1, 2, 3):
                row = {"_step": step, self.key: 4 - step / 4}
                if keys is None or all(key in row for key in keys):
                    yield {key: row[key] for key in keys or row}

    def scenario(folder: Path) -> tuple[Note, ...]:
        runs = [Run("r", "eval/loss"), Run("s", "eval/loss" if evaluated else "accuracy")]
        table = folder / "runs.csv"
        table.write_text(two(STEPS) if evaluated else STEPS, encoding="utf-8")
        api = SimpleNamespace(
            runs=lambda *_, **__: runs,
            run=lambda path: next(one for one in runs if path.endswith(f"/{one.id}")),
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "wandb", SimpleNamespace(Api=lambda **_: api))
            error = type("Error", (Exception,), {})
            patch.setitem(sys.modules, "wandb.errors", SimpleNamespace(Error=error))
            return read_logs(["wandb://team/sweep"], runs=table).notes

    return scenario


def chart(*header: str) -> dict[str, str]:
    rows = [
        ",".join(f'"{step}"' if not n else f'"{4 - step / 4}"' for n in range(len(header)))
        for step in (1, 2, 3)
    ]
    return {"chart.csv": "\n".join([",".join(f'"{name}"' for name in header), *rows]) + "\n"}


RESTARTED = LOG + "r,2,2e9,1,3.75\nr,3,4e9,0.01,3\n"
UNEVALUATED = "run,step,tokens,train/loss,eval/loss\ns,1,1e9,3.5,\ns,50,5e10,3,3.1\ns,100,1e11,2.9,\n"
PIECES = (
    "run,step,tokens,loss\nr1,1,1e9,3.5\nr1,2,2e9,3.25\n",
    "run,step,tokens,loss\nr2,3,1e9,3\nr2,4,2e9,2.75\n",
)
APART = "run,log,arch,F,start_tokens\nr,r1,a,6e8,\nr,r2,a,6e8,{}\n"
GAP = "run,step,tokens,loss\nr,{0},{0}e9,3.5\nr,{1},{1}e9,3.25\n"
SHUFFLED = "run,step,tokens,loss{}\n" + "".join(
    f"s,{9 - s},{9 - s}e9,{s}.0{{}}\ns,9,9e9,{s}.5{{}}\n" for s in range(9)
)

#: Code -> (the least that raises it, the same after the remedy).
SCENARIOS: dict[str, tuple[Scenario, Scenario]] = {
    "loss_key": (read(), read(mapping={"loss": "eval/loss"})),
    "no_evaluation": (
        read(LOG, OTHER.replace("eval/loss", "train/loss"), table=two()),
        read(LOG, OTHER, table=two()),
    ),
    "no_final_evaluation": (
        read(LOG, UNEVALUATED, table=two()),
        read(LOG, UNEVALUATED.replace("2.9,", "2.9,3"), table=two()),
    ),
    "sampled_history": (
        read(files=history([*SAMPLE[:-1], 1999]), table="run,arch,F,tokens_per_step,planned_steps\nr,a,6e8,1e9,1999\n"),
        read(files=history(range(2000)), table=STEPS),
    ),
    "overlap_disagreement": (read(RESTARTED), read(RESTARTED, overlap_tolerance=0.6)),
    "trajectory": (read(trajectory=True), read()),
    "smoothed": (read(rules=Rules(smooth=0.4)), read(rules=Rules(smooth=0.0))),
    "counter_reset": (read(*PIECES, table=APART.format("")), read(*PIECES, table=APART.format("2e9"))),
    "missing_rows": (
        read(GAP.format(1, 2), GAP.format(9, 10)),
        read(GAP.format(1, 2), GAP.format(9, 10), GAP.format(4, 7)),
    ),
    "tokens_mismatch": (
        read(table=STEPS),
        read(table=STEPS.replace("1e9", "1333333333")),
    ),
    "torn_line": (read(files=lines(*RECORDS, end='\n{"step": 4, "ev')), read(files=lines(*RECORDS))),
    "unread_lines": (read(files=lines(RECORDS[0], *RECORDS[1:], end="\nSaved.\n")), read(files=lines(*RECORDS))),
    "damaged_records": (read(files=golden(3.5, 3.25), table=STEPS), read(files=golden(3.5, 3.25, 3), table=STEPS)),
    "deleted_run": (
        read(files=store("deleted"), table=STEPS),
        read(files=store("active"), table=two(STEPS)),
    ),
    "empty_run": (server(evaluated=False), server(evaluated=True)),
    "unread_files": (read(LOG, "Monday: started.\n"), read(LOG, OTHER, table=two())),
    "unread_cells": (read(LOG.replace("1e9,1", "1e9,warm")), read(LOG.replace("1e9,1", "1e9,"))),
    "ambiguous": (
        read(LOG, SHUFFLED.format("", *[""] * 18)),
        read(LOG, SHUFFLED.format(",time", *(f",{1_700_000_100 - n}" for n in range(18))), table=two()),
    ),
    "ambiguous_name": (
        read(files=chart("Step", "r - x - loss"), table=STEPS.replace("r,", "r - x,")),
        read(files=chart("Step", "r - x - loss"), table=STEPS.replace("r,", "r - x,"), mapping={"loss": "loss"}),
    ),
    "repeated_name": (
        read(files=chart("Step", "r - loss", "r - loss"), table=two(STEPS).replace("s,", "r [2],")),
        read(files=chart("Step", "r - loss", "s - loss"), table=two(STEPS)),
    ),
    "grouped_mean": (
        read(files=chart("Step", "Group: r - loss"), table=STEPS.replace("r,", "Group: r,")),
        read(files=chart("Step", "r - loss"), table=STEPS),
    ),
    "not_annealed": (
        read(LOG, OTHER.replace("0.01", "0.2"), table=two()),
        read(LOG, OTHER.replace("0.01", "0.2"), table=two(), rules=Rules(annealed=0.3)),
    ),
    "unfinished": (
        read(LOG, OTHER.replace("0.01", "1"), table="run,arch,F,planned_steps\nr,a,6e8,3\ns,a,6e8,9\n"),
        read(LOG, OTHER, table="run,arch,F,planned_steps\nr,a,6e8,3\ns,a,6e8,3\n"),
    ),
    "diverged": (read(LOG, OTHER.replace(",3\n", ",NaN\n"), table=two()), read(LOG, OTHER, table=two())),
}  # fmt: skip


@pytest.mark.parametrize("code", SCENARIOS)
def test_every_note_of_logs_is_raised_by_its_scenario(code: str, tmp_path: Path) -> None:
    notes = SCENARIOS[code][0](tmp_path)
    (note,) = [note for note in notes if note.code == code] or pytest.fail(
        f"{code} is not among {[note.code for note in notes]}"
    )
    assert note.count >= 1
    assert "\n" not in note.message
    assert note.severity in NOTE_CODES[code].severity.split(" or ")


@pytest.mark.parametrize("code", SCENARIOS)
def test_the_remedy_of_a_note_of_logs_takes_it_away(code: str, tmp_path: Path) -> None:
    assert code not in {note.code for note in SCENARIOS[code][1](tmp_path)}


#: Codes whose test stands among the traps of log folders.
IN_TRAPS = {
    "thinned": "test_a_thinned_trajectory_says_so_and_keeps_its_end",
    "unreadable_files": "test_unreadable_logs_stop_the_reading_unless_they_may_be_skipped",
    "replaced_log": "test_two_runs_under_one_name_are_named",
    "unproven_end": "test_a_plan_or_a_status_proves_an_end",
    "negative_loss": "test_losses_that_are_not_positive_are_left_out",
    "no_tokens": "test_evaluations_before_the_first_count_are_left_out_of_a_trajectory",
}


def test_every_code_of_logs_has_a_scenario() -> None:
    codes = {*STAGES["Reading logs"], *STAGES["Logs that are tables"]}
    assert codes <= {*SCENARIOS, *IN_TRAPS} <= set(NOTE_CODES)
    traps = (Path(__file__).parent / "test_log_traps.py").read_text(encoding="utf-8")
    for code, test in IN_TRAPS.items():
        body = traps.partition(f"def {test}(")[2].partition("\ndef ")[0]
        assert f'"{code}"' in body, test
