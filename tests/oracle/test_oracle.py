"""Our readers against the real ones: on recorded files always, on new files where the real packages are installed."""

from __future__ import annotations

import importlib.util
import json
import math
import os
from collections.abc import Iterator
from inspect import Parameter, signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from smelt_scaling.accounting import Lengths, flops_per_token, make_ledger
from smelt_scaling.accounting.huggingface import FAMILIES, read_huggingface
from smelt_scaling.ingest.events import Block, Event, Facts, Flaw, Resumed
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers import READERS
from smelt_scaling.ingest.sources import find_sources

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
EVERYTHING = Keys(families=("*",))
STATUS = {"FINISHED": "finished", "RUNNING": "running", "FAILED": "crashed", "KILLED": "crashed"}


def package(name: str) -> Any:
    """Import one of the real packages; set SMELT_ORACLE where they must be there."""
    if "SMELT_ORACLE" not in os.environ:
        return pytest.importorskip(name, reason="a package of the extra oracle is not installed")
    return importlib.import_module(name)


def script(name: str) -> ModuleType:
    """Load one of the scripts beside this file."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(folder: Path) -> dict[str, list[Event]]:
    """Return the events of every log in a folder, by path within it."""
    found = {}
    for source in find_sources([folder]):
        (name,) = [name for name, reader in READERS.items() if reader.sniff(source.head(), source.path)]
        events = list(READERS[name].read(source, EVERYTHING))
        found[Path(source.path).relative_to(folder).as_posix()] = events
    return found


def series(events: list[Event]) -> dict[str, list[tuple[float, float]]]:
    """Return the values of every key as (step, value), in order; NaN is "absent"."""
    found: dict[str, list[tuple[float, float]]] = {}
    for block in (event for event in events if isinstance(event, Block)):
        for key, column in block.values.items():
            of_key = zip(block.step.tolist(), column.tolist(), strict=True)
            found.setdefault(key, []).extend((step, x) for step, x in of_key if not math.isnan(x))
    return found


def said(answer: dict[str, list[list[Any]]]) -> dict[str, list[tuple[float, float]]]:
    """Return a recorded answer in the same form: what is not finite is inf with us."""
    return {
        key: [(float(step), math.inf if isinstance(value, str) else float(value)) for step, value in values]
        for key, values in answer.items()
        if values
    }


def files(tmp_path: Path, module: str, real: str, *, anew: bool) -> tuple[Path, dict[str, Any]]:
    """Return a folder of files and what the real reader says of them."""
    if not anew:
        answer = json.loads((RECORDED / f"{real}.json").read_text(encoding="utf-8"))
        return RECORDED / real, answer["runs"]
    made = tmp_path / "made"
    made.mkdir()
    producer = script(module)
    producer.make(made)
    return made, producer.answers(made)


@pytest.fixture(params=["recorded", pytest.param("anew", marks=pytest.mark.oracle)])
def anew(request: pytest.FixtureRequest) -> bool:
    return request.param == "anew"


def test_event_files_hold_what_tensorboard_reads(tmp_path: Path, anew: bool) -> None:
    if anew:
        package("tensorboard")
    folder, answers = files(tmp_path, "make_tensorboard", "tensorboard", anew=anew)
    runs = {events[0].run: events for events in read(folder).values()}  # type: ignore[union-attr]
    assert {run: series(events) for run, events in runs.items()} == {
        run: said(a) for run, a in answers.items()
    }
    assert not [event for events in runs.values() for event in events if isinstance(event, Flaw)]
    resumed = {run: sum(isinstance(event, Resumed) for event in events) for run, events in runs.items()}
    assert resumed == {"restarted": 1, "sessions": 1, "diverged": 0, "dtypes": 0, "tensors": 0}
    # answers of tensorboard, by eye: the two starts hold 41 and 31 steps, the last value is 2 + 3/61 + .01
    assert len(answers["restarted"]["train/loss"]) == 41 + 31
    assert answers["restarted"]["train/loss"][-1] == [60, pytest.approx(2.0591803, abs=1e-7)]  # a float32


def test_file_stores_hold_what_mlflow_reads(tmp_path: Path, anew: bool) -> None:
    if anew:
        package("mlflow")
    folder, answers = files(tmp_path, "make_mlflow", "mlflow-skinny", anew=anew)
    by_run = {events[0].run: events for events in read(folder).values() if events}  # type: ignore[union-attr]
    (flaw,) = by_run.pop("thrown away")
    assert isinstance(flaw, Flaw)
    assert flaw.code == "deleted_run"
    assert {run: series(events) for run, events in by_run.items()} == {
        run: said(answer["metrics"]) for run, answer in answers.items()
    }
    for run, (facts, *_) in by_run.items():
        assert isinstance(facts, Facts)
        answer = answers[run]
        assert facts.values == {
            "id": answer["id"],
            "status": STATUS[answer["status"]],
            "created": answer["start_time"] / 1000,
        }


def test_run_files_hold_what_wandb_reads(tmp_path: Path, anew: bool) -> None:
    if anew:
        package("wandb")
    folder, answers = files(tmp_path, "make_wandb", "wandb", anew=anew)
    found = {path: events for path, events in read(folder).items() if events}
    assert set(found) == set(answers)
    for path, (facts, *events) in found.items():
        answer = answers[path]
        expected = {key: values for key, values in said(answer["series"]).items() if not key.startswith("_")}
        if (
            answer["series"]["_step"][-1][0] == 70
        ):  # the second start sets this in the summary, after its last step
            expected["test/loss"] = [(70.0, 2.5)]
        assert series(events) == expected
        assert isinstance(facts, Facts)
        assert facts.run == answer["name"]
        status = "crashed" if answer["exit_code"] else "finished"
        assert facts.values == {
            "id": answer["id"],
            "created": pytest.approx(answer["started"]),
            "status": status,
        }
        assert not [event for event in events if isinstance(event, Flaw)]


@pytest.mark.oracle
def test_the_real_wandb_has_what_the_cloud_reader_calls() -> None:
    wandb = package("wandb")
    from wandb.apis.public import Run

    def accepts(function: Any, *names: str) -> Iterator[bool]:
        taken = signature(function).parameters
        return (
            name in taken or any(p.kind is Parameter.VAR_KEYWORD for p in taken.values()) for name in names
        )

    assert all(accepts(wandb.Api.runs, "path", "order"))
    assert all(accepts(wandb.Api.run, "path"))
    assert all(accepts(Run.scan_history, "keys", "page_size"))
    assert all(isinstance(getattr(Run, name), property) for name in ("id", "name", "state"))
    one = Run.__new__(Run)  # what the server sends under camel-case names is found under others
    one._lazy = False
    one._attrs = {
        "historyKeys": {"keys": {}},
        "createdAt": "2026-01-01T00:00:00Z",
        "summaryMetrics": {"loss": 2.5},
    }
    assert one.history_keys == {"keys": {}}
    assert one.created_at == "2026-01-01T00:00:00Z"
    assert one.summary_metrics == {"loss": 2.5}
    assert issubclass(wandb.errors.CommError, wandb.errors.Error)
    assert signature(wandb.Api).parameters["overrides"].default is None


def test_configurations_hold_what_transformers_counts(tmp_path: Path, anew: bool) -> None:
    """Parameters of every family on the meta device, and FLOPs of tiny models as torch counts them."""
    if anew:
        package("torch")
        package("transformers")
    folder, runs = files(tmp_path, "make_transformers", "transformers", anew=anew)
    length = script("make_transformers").LENGTH
    for name, counted in runs.items():
        config, _ = read_huggingface(folder / f"{name}.json")
        ledger = make_ledger(config)
        assert ledger.parameters(embedding="all") == counted["parameters"], name
        if "forward_flops" in counted:  # every matrix and the head, and scores without a causal discount
            flops = flops_per_token(ledger, "palm", Lengths.of(length)) / 3 * length
            assert flops == counted["forward_flops"], name
    assert {name.removeprefix("tiny ") for name in runs if name.startswith("tiny ")} == {*FAMILIES} - {
        "kimi_k2"
    }
