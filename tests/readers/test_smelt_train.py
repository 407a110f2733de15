"""Logs of this project's own trainer: branches that repeat the trunk's steps, domains, budgets and torn files."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Block, Event, Facts, Flaw, Resumed
from smelt_scaling.ingest.keys import Keys, is_evaluation, is_loss
from smelt_scaling.ingest.readers.smelt_train import SMELT_TRAIN
from smelt_scaling.ingest.sources import Source, find_sources

LOG = """\
{"kind": "run", "schema": "smelt-train/1", "run": "a", "arch": "smelt", "budgets": {"N": 700, "N_act": 60, "F": 784.0}, "opt": {"bs": 8, "ctx": 256, "seed": 3, "horizons": [2]}}
{"kind": "train", "step": 1, "tokens": 2048, "phase": "stable", "branch": null, "lr": 0.004, "loss": 5.0, "aux": 1.2, "wall": 6.7}
{"kind": "train", "step": 2, "tokens": 4096, "phase": "stable", "branch": null, "lr": 0.004, "loss": 4.0, "wall": 7.7}
{"kind": "train", "step": 3, "tokens": 6144, "phase": "decay", "branch": 2, "lr": 0.0, "loss": 3.5, "wall": 8.7}
{"kind": "eval", "step": 3, "tokens": 6144, "phase": "final", "branch": 2, "F": 784.0, "loss": 3.4, "domains": {"code": 3.1, "docs": 3.7}, "wall": 9.7}
{"kind": "train", "step": 3, "tokens": 6144, "phase": "stable", "branch": null, "lr": 0.004, "loss": NaN, "wall": 10.7}
"""  # noqa: E501


def read(text: str | bytes, keys: Keys | None = None) -> list[Event]:
    data = text.encode() if isinstance(text, str) else text
    source = Source(path="log.jsonl", name="log", size=len(data), opener=lambda: io.BytesIO(data))
    return list(SMELT_TRAIN.read(source, keys or Keys()))


def rows(events: list[Event]) -> set[tuple[object, ...]]:
    """Every logged value as (run, branch, step, key, value)."""
    return {
        (block.run, block.branch, float(step), key, float(value))
        for block in events
        if isinstance(block, Block)
        for key, column in block.values.items()
        for step, value in zip(block.step, column, strict=True)
        if value == value
    }


def test_run_branch_and_step_tell_rows_apart() -> None:
    events = read(LOG)
    assert events[0] == Facts(
        run="a",
        values={
            "N": 700.0,
            "N_act": 60.0,
            "F": 784.0,
            "batch_size": 8.0,
            "sequence_length": 256.0,
            "tokens_per_step": 2048.0,
            "arch": "smelt",
            "seed": "3",
        },
    )
    found = rows(events)
    assert ("a", "", 2.0, "train/loss", 4.0) in found
    assert ("a", "2", 3.0, "train/loss", 3.5) in found
    assert ("a", "2", 3.0, "eval/loss", 3.4) in found
    assert ("a", "2", 3.0, "eval/docs/loss", 3.7) in found
    assert ("a", "", 3.0, "train/loss", float("inf")) in found  # a diverged step shows
    assert {value for run, branch, _, key, value in found if key == "annealed" and branch} == {1.0}
    assert {value for run, branch, _, key, value in found if key == "annealed" and not branch} == {0.0}
    assert not [event for event in events if isinstance(event, Flaw)]


def test_keys_are_classified_right() -> None:
    keys = {row[3] for row in rows(read(LOG))}
    assert {key for key in keys if is_loss(str(key))} == {
        "train/loss",
        "eval/loss",
        "eval/code/loss",
        "eval/docs/loss",
    }
    assert {key for key in keys if is_evaluation(str(key))} == {
        "eval/loss",
        "eval/code/loss",
        "eval/docs/loss",
    }
    only = rows(read(LOG, Keys(named={"loss": "eval/loss"}, families=("eval/*/loss",))))
    assert {row[3] for row in only if is_loss(str(row[3]))} == keys & {
        "eval/loss",
        "eval/code/loss",
        "eval/docs/loss",
    }


def test_a_second_header_of_a_run_is_a_restart_and_of_another_run_is_not() -> None:
    lines = LOG.splitlines(keepends=True)
    assert Resumed(run="a") in read(LOG + LOG)
    other = lines[0].replace('"run": "a"', '"run": "b"')
    events = read(LOG + other + lines[1])
    assert not [event for event in events if isinstance(event, Resumed)]
    assert ("b", "", 1.0, "train/loss", 5.0) in rows(events)


def test_damage_is_counted_or_refused() -> None:
    assert [event.code for event in read(LOG[:-40]) if isinstance(event, Flaw)] == ["torn_line"]
    broken = LOG.replace('"kind": "train", "step": 2', '"kind": "train", "step": "x"') + "nothing\n"
    flaws = [event for event in read(broken) if isinstance(event, Flaw)]
    assert [(flaw.code, flaw.count, flaw.run) for flaw in flaws] == [("unread_lines", 2, "a")]
    with pytest.raises(IngestError, match=r"^log\.jsonl: no train or eval record"):
        read(LOG.splitlines()[0])
    with pytest.raises(
        IngestError, match=r"^log\.jsonl: schema smelt-train/2: this version reads smelt-train/1; update"
    ):
        read(LOG.replace("smelt-train/1", "smelt-train/2"))


def test_sniffs_its_schema_only() -> None:
    assert SMELT_TRAIN.sniff(LOG.encode(), "")
    assert not SMELT_TRAIN.sniff(b'{"step": 1, "loss": 2.0}\n', "")
    assert not SMELT_TRAIN.sniff(b"[1]\n", "")


@settings(max_examples=150)
@given(st.data())
def test_damage_never_adds_a_row(data: st.DataObject) -> None:
    lines = LOG.splitlines(keepends=True)
    kind = data.draw(st.sampled_from(["cut", "drop", "repeat"]))
    if kind == "cut":
        damaged = LOG[: data.draw(st.integers(0, len(LOG) - 1))]
    else:
        i = data.draw(st.integers(1, len(lines) - 1))
        damaged = "".join(lines[:i] + lines[i:] * 2 if kind == "repeat" else lines[:i] + lines[i + 1 :])
    try:
        found = read(damaged)
    except IngestError:
        return
    assert rows(found) <= rows(read(LOG))


@settings(max_examples=150)
@given(st.integers(0, len(LOG) - 1), st.integers(0, 255))
def test_a_changed_byte_costs_its_own_line_at_most(place: int, byte: int) -> None:
    raw = LOG.encode()
    damaged = raw[:place] + bytes([byte]) + raw[place + 1 :]
    line = raw[:place].count(b"\n")
    if line == 0:
        return  # the header names the run of every row
    other = LOG.splitlines(keepends=True)
    untouched = "".join(text for i, text in enumerate(other) if i not in (line, line + (byte == 10)))
    # a changed line end joins two lines
    joined = raw[place] == 10
    if not joined:
        assert rows(read(untouched)) <= rows(read(damaged))


#: Read off the files with `grep '"eval"'`: branch -> step, tokens, loss, loss on code.
SAMPLES = {
    "base_pilot": {
        "350": (500, 1024000, 1.9209280076581052, 1.8295793529123072),
        "1400": (1550, 3174400, 1.6008264798627891, 1.4901625342871296),
    },
    "smelt_pilot": {
        "350": (500, 1024000, 1.984213472353833, 1.8775140586072823),
        "1400": (1550, 3174400, 1.6806702026651288, 1.5817855618207846),
    },
}


@pytest.mark.parametrize("name", SAMPLES)
def test_real_logs_end_as_their_files_say(real_data: Path, name: str) -> None:
    [source] = find_sources([real_data / "formats" / "smelt_train" / f"{name}.jsonl"])
    assert SMELT_TRAIN.sniff(source.head(), source.path)
    header = json.loads(source.head().partition(b"\n")[0])
    found = rows(list(SMELT_TRAIN.read(source, Keys())))
    for branch, (step, tokens, loss, code) in SAMPLES[name].items():
        expected = {"eval/loss": loss, "eval/code/loss": code, "tokens": tokens}
        for key, value in expected.items():
            assert (header["run"], branch, float(step), key, float(value)) in found
    assert len({row for row in found if row[3] == "train/loss"}) == 34  # train records of either file
