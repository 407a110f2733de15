"""Runs on a W&B server, with a stand-in for its API; the real one's signatures are checked with the oracles."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Block, Event, Facts, Flaw
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers import READERS
from smelt_scaling.ingest.sources import find_sources
from smelt_scaling.ingest.wandb_cloud import read_cloud

NAN = float("nan")


class Run:
    """As wandb.apis.public.Run answers: a scan of keys returns only the rows that hold all of them."""

    def __init__(self, run_id: str, rows: list[dict[str, Any]], **attributes: Any) -> None:
        self.id = run_id
        self.rows = rows
        self.name = attributes.get("name", run_id)
        self.state = attributes.get("state", "finished")
        self.created_at = attributes.get("created_at", "2023-11-14T22:13:20Z")
        self.summary_metrics = attributes.get("summary", {})
        keys = {key for row in rows for key in row}
        self.history_keys = attributes.get("history_keys", {"keys": {key: {} for key in keys}, "lastStep": 9})
        self.scans: list[list[str] | None] = []

    def scan_history(
        self,
        keys: list[str] | None = None,
        page_size: int = 1000,
        min_step: int = 0,
        max_step: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        self.scans.append(keys)
        for row in self.rows:
            if keys is None or all(key in row for key in keys):
                yield row if keys is None else {key: row[key] for key in keys}

    def history(self, *args: Any, **options: Any) -> None:
        raise AssertionError("a sample, and never asked for")


class Api:
    def __init__(self, *runs: Run) -> None:
        self.of_id = {run.id: run for run in runs}

    def run(self, path: str = "") -> Run:
        entity, project, run_id = path.split("/")
        if (entity, project) != ("team", "sweep") or run_id not in self.of_id:
            raise ValueError(
                f"Could not find run <Run {path} (not found)>"
            )  # RunNotFoundError is a ValueError
        return self.of_id[run_id]

    def runs(self, path: str | None = None, filters: Any = None, order: str = "+created_at") -> list[Run]:
        assert (path, order) == ("team/sweep", "+created_at")
        return list(self.of_id.values())


HISTORY: list[dict[str, Any]] = [
    {"_step": 0, "_timestamp": 1.7e9, "train/loss": 3.5, "grad_norm": 1.0},
    {"_step": 1, "_timestamp": 1.7e9, "train/loss": 3.25},
    {"_step": 1000, "_timestamp": 1.7e9, "eval/loss": 3.0},
    {"_step": 1001, "_timestamp": 1.7e9, "train/loss": "NaN", "eval/loss": None, "nested.loss": NAN},
]


def read(*runs: Run, address: str = "wandb://team/sweep", keys: Keys | None = None) -> list[Event]:
    return list(read_cloud(address, keys or Keys(), Api(*runs)))


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


def test_keys_are_scanned_alone_and_joined() -> None:
    run = Run(
        "id1",
        HISTORY,
        name="dense",
        summary={"train/loss": 3.25, "test": {"loss": 2.5}, "eval/loss": {"min": 1}},
    )
    events = read(run, address="wandb://team/sweep/id1")
    facts = Facts(run="dense", values={"id": "id1", "status": "finished", "created": 1.7e9})
    assert events[0] == facts
    assert rows(events) == [
        (0, {"train/loss": 3.5}),
        (1, {"train/loss": 3.25}),
        (1000, {"eval/loss": 3.0}),
        (1001, {"train/loss": np.inf, "nested.loss": np.inf}),
        (1001, {"test.loss": 2.5}),  # only the summary has it
    ]
    assert run.scans == [["_step", key] for key in ("eval/loss", "nested.loss", "train/loss")]


def test_a_run_whose_keys_are_unknown_is_scanned_whole() -> None:
    run = Run("id1", HISTORY, history_keys=None)
    assert len(rows(read(run))) == 4
    assert run.scans == [None]


@pytest.mark.parametrize(
    ("state", "status"),
    [("finished", "finished"), ("running", "running"), ("pending", "running")]
    + [(state, "crashed") for state in ("crashed", "failed", "killed", "preempted")],
)
def test_states(state: str, status: str) -> None:
    (facts, *_) = read(Run("id1", HISTORY, state=state, created_at="2023-11-14T22:13:20"))
    assert isinstance(facts, Facts)
    assert facts.values == {"id": "id1", "status": status, "created": 1.7e9}


def test_a_project_is_all_its_runs_and_empty_ones_are_named() -> None:
    events = read(
        Run("id1", HISTORY), Run("id2", [{"_step": 0, "acc": 1.0}], state="crashed"), Run("id3", HISTORY)
    )
    assert [event.run for event in events if isinstance(event, Facts)] == ["id1", "id3"]
    assert [event for event in events if isinstance(event, Flaw)] == [
        Flaw(code="empty_run", message="no row with a key to read; its state is crashed", run="id2")
    ]


def test_another_key_is_the_step() -> None:
    history = [{"_step": 0, "trainer/global_step": 400, "loss": 3.5}, {"_step": 1, "loss": 3.25}]
    events = read(Run("id1", history), keys=Keys(named={"step": "trainer/global_step"}))
    assert rows(events) == [(400, {"loss": 3.5})]
    (flaw,) = (event for event in events if isinstance(event, Flaw))
    assert (flaw.code, flaw.message) == ("unread_lines", "1 rows have no trainer/global_step")


@pytest.mark.parametrize(
    "address", ["wandb://", "wandb://team", "wandb://team/sweep/id1/history", "wandb://team//id1"]
)
def test_no_address(address: str) -> None:
    with pytest.raises(IngestError, match=rf"^{address}: no address of runs; write wandb://ENTITY/PROJECT"):
        read(address=address)


def test_no_row_is_an_error() -> None:
    with pytest.raises(
        IngestError, match=r"^wandb://team/sweep: 1 runs, none with a row that has a key to read"
    ):
        read(Run("id2", []))
    with pytest.raises(IngestError, match=r"^wandb://team/sweep: 0 runs"):
        read()


def test_an_address_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = find_sources(["wandb://team/sweep/id1"])
    (name,) = (name for name, reader in READERS.items() if reader.sniff(source.head(), source.path))
    assert (name, source.name, source.size) == ("wandb_cloud", "team/sweep/id1", 22)

    error = type("Error", (Exception,), {})
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(Api=lambda: Api(Run("id1", HISTORY))))
    monkeypatch.setitem(sys.modules, "wandb.errors", SimpleNamespace(Error=error))
    assert len(rows(list(READERS[name].read(source, Keys())))) == 4

    (missing,) = find_sources(["wandb://team/sweep/id9"])
    with pytest.raises(IngestError, match=r"id9: W&B says: Could not find run .*; check the address"):
        list(READERS[name].read(missing, Keys()))

    def refuse() -> Api:
        raise error("No API key configured. Use `wandb login` to log in.\nSecond line")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(Api=refuse))
    with pytest.raises(IngestError, match=r"id1: W&B says: No API key configured\. Use `wandb login`"):
        list(READERS[name].read(source, Keys()))


def test_without_the_package_one_line_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = find_sources(["wandb://team/sweep"])
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(IngestError) as raised:
        list(READERS["wandb_cloud"].read(source, Keys()))
    assert str(raised.value) == (
        'wandb://team/sweep: reading from a W&B server needs one more package; pip install "smelt-scaling[wandb]"'
    )


def test_a_file_that_holds_an_address_is_no_address(tmp_path: Any) -> None:
    (tmp_path / "note.txt").write_text("wandb://team/sweep")
    (source,) = find_sources([tmp_path])
    assert not READERS["wandb_cloud"].sniff(source.head(), source.path)
