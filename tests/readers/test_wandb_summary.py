"""wandb-summary.json: the one row of a run, its plan from its progress, averaged weights beside plain ones."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers.wandb_summary import WANDB_SUMMARY

SUMMARY = {
    "eval/loss": 2.5,
    "eval/ema/loss": 2.25,
    "eval/paloma/c4_en/bpb": 0.85,
    "train/loss": "NaN",
    "optim/learning_rate": 1e-4,
    "throughput/total_tokens": 4194304 * 75,
    "throughput/flops_per_example": 3.5e13,
    "parameter_count": 1431441408,
    "run_progress": 0.74,
    "global_step": 74,
    "_step": 74,
    "_timestamp": 1745869382.25,
    "_wandb": {"runtime": 0},
}
PATH = "wandb/run-20250428_120000-ab12cd34/files/wandb-summary.json"


def test_the_row_and_its_role(logs):
    content = json.dumps(SUMMARY)
    assert logs.claimed(content) == ["wandb_summary"]
    log = logs.read(WANDB_SUMMARY, content, PATH)
    assert log.runs == {"run-20250428_120000-ab12cd34"}
    assert log.times == [1745869382.25]
    [(step, values)] = log.rows
    assert step == 74
    assert values["train/loss"] == math.inf
    assert (values["eval/loss"], values["eval/ema/loss"], values["eval/paloma/c4_en/bpb"]) == (
        2.5,
        2.25,
        0.85,
    )
    assert Keys().find("tokens", values) == "throughput/total_tokens"
    assert Keys().find("lr", values) == "optim/learning_rate"
    assert log.facts == {"planned_steps": 100, "N": 1431441408, "status": "unfinished"}  # 74 / .74


def test_steps_count_from_zero_so_that_the_last_one_finishes(logs):
    done = {**SUMMARY, "global_step": 99, "_step": 99, "run_progress": 0.99}
    log = logs.read(WANDB_SUMMARY, json.dumps(done))
    assert log.facts["planned_steps"] == 100
    assert "status" not in log.facts


def test_a_summary_without_progress_or_step(logs):
    bare = {"_step": 5, "_runtime": 3.5, "loss": 2.5}
    assert logs.claimed(json.dumps(bare)) == ["wandb_summary"]
    log = logs.read(WANDB_SUMMARY, json.dumps(bare))
    assert (log.rows, log.facts) == ([(5, {"loss": 2.5})], {})
    with pytest.raises(
        IngestError, match="_step is no number: a summary holds for a step; name its key with --map"
    ):
        logs.read(WANDB_SUMMARY, json.dumps({"loss": 2.5}))
    with pytest.raises(IngestError, match="no whole JSON document"):
        logs.read(WANDB_SUMMARY, json.dumps(SUMMARY)[:-5])


def test_lines_of_a_history_are_not_claimed(logs):
    row = '{"_step": 5, "_runtime": 3.5, "loss": 2.5}\n'
    assert "wandb_summary" not in logs.claimed(row + row)


def test_a_real_summary(logs, real_data):
    content = (real_data / "formats" / "levanter_wandb_summary" / "wandb-summary.trimmed.json").read_bytes()
    assert logs.claimed(content) == ["wandb_summary"]
    log = logs.read(WANDB_SUMMARY, content)
    [(step, values)] = log.rows
    # read off the file
    assert (step, values["throughput/total_tokens"]) == (197429, 828081438720)
    assert (values["eval/loss"], values["eval/ema/loss"]) == (2.4618542194366455, 2.4475812911987305)
    # 197429 / 0.8280792557608906 is 238418 to the last digit
    assert log.facts == {"N": 1431441408, "planned_steps": 238418, "status": "unfinished"}


@settings(max_examples=80)
@given(data=st.data())
def test_damage(logs, data):
    logs.damaged(WANDB_SUMMARY, json.dumps(SUMMARY, indent=1), data)
