"""trainer_state.json: means over the run are no losses, 0 tokens are unknown tokens, predictions have no step."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.keys import is_evaluation
from smelt_scaling.ingest.readers.hf_trainer import HF_TRAINER

STATE = """\
{
  "best_metric": null,
  "global_step": 1000,
  "log_history": [
    {"epoch": 0.5, "learning_rate": 1.5e-4, "loss": 3.25, "num_input_tokens_seen": 512000, "step": 500},
    {"epoch": 0.5, "eval_loss": 3.125, "eval_runtime": 20.1, "step": 500},
    {"epoch": 1.0, "learning_rate": 0.0, "loss": NaN, "num_input_tokens_seen": 1024000, "step": 1000},
    {"epoch": 1.0, "eval_loss": 2.875, "eval_runtime": 20.1, "num_input_tokens_seen": 1024000, "step": 1000},
    {"epoch": 1.0, "step": 1000, "total_flos": 3.7e16, "train_loss": 4.5, "train_runtime": 64.1}
  ],
  "max_steps": 1000,
  "num_input_tokens_seen": 1024000
}
"""


def changed(**values):
    return json.dumps({**json.loads(STATE), **values})


def test_training_evaluation_and_tokens(logs):
    assert logs.claimed(STATE) == ["hf_trainer"]
    log = logs.read(HF_TRAINER, STATE, "runs/small/checkpoint-1000/trainer_state.json")
    assert log.runs == {"runs/small"}
    assert log.column("loss") == [(500, 3.25), (1000, math.inf)]
    assert log.column("eval_loss") == [(500, 3.125), (1000, 2.875)]
    assert log.rows[3][1] == {"eval_loss": 2.875, "num_input_tokens_seen": 1024000}
    assert log.column("train_loss") == []  # 4.5 is the mean over the run
    assert log.facts == {"planned_steps": 1000}
    assert [key for key in ("loss", "eval_loss", "eval_c4_loss") if is_evaluation(key)] == [
        "eval_loss",
        "eval_c4_loss",
    ]


def test_zero_tokens_are_unknown_tokens(logs):
    history = [{"eval_loss": 3.0, "num_input_tokens_seen": 0, "step": 5}]
    log = logs.read(HF_TRAINER, changed(log_history=history, num_input_tokens_seen=0))
    assert log.rows == [(5, {"eval_loss": 3.0})]


def test_a_plan_counted_in_epochs_is_no_plan(logs):
    assert logs.read(HF_TRAINER, changed(max_steps=-1)).facts == {}


def test_a_run_is_named_by_its_folder(logs):
    for path in ("small/trainer_state.json", "small/checkpoint-500/trainer_state.json"):
        assert logs.read(HF_TRAINER, STATE, path).runs == {"small"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (STATE[:200], r"one.log: line \d+: no whole JSON document \(.*\): it is cut off or damaged"),
        (changed(log_history={}), "log_history is no list"),
        (changed(log_history=[]), "no entry of log_history has a step"),
        (STATE.replace('"max_steps": 1000', '"global_step": 1'), "key 'global_step' stands twice"),
        (b'{"log_history": ["\xff"]}', "byte 18 is not UTF-8"),
        ("[" * 100000, "nested too deeply"),
    ],
)
def test_what_is_no_whole_state_is_refused(logs, content, message):
    with pytest.raises(IngestError, match=message):
        logs.read(HF_TRAINER, content)


def test_a_real_state(logs, real_data):
    content = (real_data / "formats" / "hf_trainer_state" / "cpt_trimmed.json").read_bytes()
    log = logs.read(HF_TRAINER, content)
    assert logs.claimed(content) == ["hf_trainer"]
    assert log.column("eval_loss")[-1] == (5490, 0.4916660189628601)  # read off the file
    assert log.column("num_input_tokens_seen") == []
    assert log.column("train_loss") == []
    assert log.facts == {"planned_steps": 5490}
    assert log.flaws == {"unread_lines": 1}  # the prediction


@settings(max_examples=80)
@given(data=st.data())
def test_damage(logs, data):
    logs.damaged(HF_TRAINER, STATE, data)
