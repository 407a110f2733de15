"""MLflow file stores, written out file by file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Block, Event, Facts, Flaw
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers import READERS
from smelt_scaling.ingest.sources import find_sources

META = """\
artifact_uri: file:///runs/1/abc/artifacts
end_time: null
experiment_id: '1'
lifecycle_stage: active
run_id: abc
run_name: 'it''s dense: 200M'
start_time: 1700000000000
status: 3
"""
EXPERIMENT = """\
artifact_location: file:///runs/1
experiment_id: '1'
lifecycle_stage: active
name: sweep
"""
LOSS = "".join(f"{1_700_000_000_000 + 1000 * step} {3 - step / 8} {step}\n" for step in range(20))


def store(folder: Path, files: dict[str, str], meta: str = META) -> Path:
    for name, text in {"meta.yaml": meta, "tags/mlflow.user": "me", "params/lr": "0.1", **files}.items():
        path = folder / "1" / "abc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "1" / "meta.yaml").write_text(EXPERIMENT, encoding="utf-8")
    return folder


def read(folder: Path, keys: Keys = Keys(families=("*",))) -> list[Event]:  # noqa: B008
    found = []
    for source in find_sources([folder]):
        (name,) = (name for name, reader in READERS.items() if reader.sniff(source.head(), source.path))
        assert name == "mlflow_store"
        found += list(READERS[name].read(source, keys))
    return found


def rows(events: list[Event]) -> list[tuple[float, dict[str, float]]]:
    return [
        (
            float(step),
            {key: float(column[i]) for key, column in block.values.items() if column[i] == column[i]},
        )
        for block in events
        if isinstance(block, Block)
        for i, step in enumerate(block.step)
    ]


def flaws(events: list[Event]) -> dict[str, int]:
    return {event.code: event.count for event in events if isinstance(event, Flaw)}


def test_metrics_are_joined_by_step(tmp_path: Path) -> None:
    """The evaluation of step 1 ends after training step 2 was logged: no restart, and one row with its step."""
    files = {
        "metrics/train/loss": "1000 3.5 0\n2000 3.25 1\n3000 nan 2\n",
        "metrics/eval/c4/loss": "3500 3.0 1\n",
        "metrics/lr": "1000 0.1 0 data digest\n2000 inf 1 data digest\n",
    }
    facts, block = read(store(tmp_path, files))
    assert facts == Facts(
        run="it's dense: 200M", values={"id": "abc", "status": "finished", "created": 1.7e9}
    )
    assert rows([block]) == [
        (0, {"train/loss": 3.5, "lr": 0.1}),
        (1, {"train/loss": 3.25, "eval/c4/loss": 3.0, "lr": np.inf}),
        (2, {"train/loss": np.inf}),
    ]
    assert isinstance(block, Block)
    assert block.time is not None
    assert block.time.tolist() == [1.0, 3.5, 3.0]


def test_a_step_that_goes_back_begins_a_new_piece(tmp_path: Path) -> None:
    files = {
        "metrics/loss": "1000 3.5 0\n2000 3.25 1\n3000 3.0 2\n9000 3.5 1\n9500 3.25 2\n9900 3.0 3\n",
        "metrics/eval": "2500 8 1\n9200 9 1\n",
    }
    assert rows(read(store(tmp_path, files))) == [
        (0, {"loss": 3.5}),
        (1, {"loss": 3.25, "eval": 8.0}),
        (2, {"loss": 3.0}),
        (1, {"loss": 3.5, "eval": 9.0}),
        (2, {"loss": 3.25}),
        (3, {"loss": 3.0}),
    ]


def test_keys_are_filtered(tmp_path: Path) -> None:
    files = {"metrics/loss": "1000 3.5 0\n", "metrics/system/cpu": "1000 3.5 0\n"}
    assert rows(read(store(tmp_path, files), Keys())) == [(0, {"loss": 3.5})]


@pytest.mark.parametrize(
    ("status", "expected"), [(1, "running"), (2, "running"), (3, "finished"), (4, "crashed"), (5, "crashed")]
)
def test_status(tmp_path: Path, status: int, expected: str) -> None:
    (facts,) = read(store(tmp_path, {}, META.replace("status: 3", f"status: {status}")))
    assert isinstance(facts, Facts)
    assert facts.values["status"] == expected


def test_names(tmp_path: Path) -> None:
    """The tag is the name that MLflow shows; older stores have no other, and `run_uuid` for `run_id`."""
    old = META.replace("run_id", "run_uuid").replace("run_name", "name")
    (tagged,) = read(store(tmp_path / "a", {"tags/mlflow.runName": "d/e: f"}, old))
    (untagged,) = read(store(tmp_path / "b", {}, old))
    assert isinstance(tagged, Facts)
    assert isinstance(untagged, Facts)
    assert (tagged.run, untagged.run) == ("d/e: f", "abc")


def test_deleted_runs_are_not_read(tmp_path: Path) -> None:
    deleted = META.replace("active", "deleted")
    assert flaws(read(store(tmp_path, {"metrics/loss": LOSS}, deleted))) == {"deleted_run": 1}


def test_artifacts_belong_to_their_run(tmp_path: Path) -> None:
    """An artifact may look like a log of another kind, or like a run."""
    files = {"artifacts/main.log": "s:0 tel:10.9\n", "artifacts/inner/meta.yaml": META, "metrics/loss": LOSS}
    assert len(find_sources([store(tmp_path, files)])) == 2  # the experiment's meta.yaml, and the run's


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        (
            META.replace("run_id", "run"),
            r"abc/meta.yaml: a run's file without its run_id; copy the file again",
        ),
        (META.replace("status: 3", "status: 9"), r"abc/meta.yaml: status 9 is none of 1, 2, 3, 4, 5"),
    ],
)
def test_a_damaged_run_is_one_line(tmp_path: Path, meta: str, message: str) -> None:
    with pytest.raises(IngestError, match=message):
        read(store(tmp_path, {}, meta))


def test_the_file_of_a_run_alone_is_not_the_run(tmp_path: Path) -> None:
    with pytest.raises(
        IngestError, match=r"meta.yaml: the metrics of a run lie beside this file; name the run's folder"
    ):
        read(store(tmp_path, {"metrics/loss": LOSS}) / "1" / "abc" / "meta.yaml")


def test_torn_and_strange_lines_are_counted(tmp_path: Path) -> None:
    events = read(store(tmp_path, {"metrics/loss": "1000 3.5 0\nx\n\n2000 3.2"}))
    assert rows(events) == [(0, {"loss": 3.5})]
    assert flaws(events) == {"torn_line": 1, "unread_lines": 1}


@settings(max_examples=60)
@given(st.integers(0, len(LOSS)), st.lists(st.integers(0, 19), max_size=3), st.integers(0, 19))
def test_cut_missing_and_repeated_lines(
    tmp_path_factory: pytest.TempPathFactory, cut: int, missing: list[int], repeated: int
) -> None:
    lines = LOSS[: len(LOSS) - cut].splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    kept = [line for number, line in enumerate(lines) if number not in missing]
    kept[repeated:repeated] = (
        kept[repeated : repeated + 1] if kept[repeated : repeated + 1] == whole[-1:] else []
    )
    events = read(store(tmp_path_factory.mktemp("a"), {"metrics/loss": "".join(kept)}))
    expected = [float(line.split()[2]) for line in kept if line.endswith("\n")]
    assert [step for step, _ in rows(events)] == expected
    assert all(values == {"loss": 3 - step / 8} for step, values in rows(events))
    assert flaws(events) == ({} if all(line.endswith("\n") for line in kept) else {"torn_line": 1})
