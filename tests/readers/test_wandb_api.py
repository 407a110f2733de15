"""W&B runs as JSON: every shape of history, one name per key, what configurations state, samples, divergence."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.keys import Keys, is_evaluation
from smelt_scaling.ingest.readers.wandb_api import WANDB_API

#: One series per key, a nested summary, and NaN as text.
RUN = {
    "id": "lv1miaj6",
    "name": "small",
    "path": ["team", "project", "lv1miaj6"],
    "created_at": "2025-04-18T00:30:15Z",
    "state": "crashed",
    "config": {
        "trainer.seed": 3,
        "optimizer.scheduler": "{'lr': 0.001, 'decay_steps': 1800}",
        "data": {"value": {"context_length": 2048}, "desc": None},
    },
    "history": {
        "train/.loss": {"_step": [50, 100, 150], "train/.loss": [8.5, 7.25, "NaN"]},
        "val/.dclm_loss": {"_step": [100], "val/.dclm_loss": [7.5]},
        "train/.optimizer/lr": {"_step": [50, 100, 150], "train/.optimizer/lr": [1e-4, 2e-4, 3e-4]},
    },
    "summary": {
        "_step": 150,
        "_timestamp": 1744937605.25,
        "dataset/": {"global_batch_size": 512, "num_train_steps": 1800},
        "model/": {"num_params": 1000000},
        "train/": {"loss": "NaN", "optimizer/lr": 3e-4},
        "val/": {"dclm_loss": 7.5},
    },
}
ROWS = [
    {"_step": 0, "_timestamp": 1000.5, "loss": 3.5, "lr": 0.1},
    {"_step": 1, "_timestamp": 1001.5, "val/loss": 3.25},
    {"_step": 2, "_timestamp": 1002.5, "loss": None, "val/loss": "Infinity"},
]


def text(document):
    return json.dumps(document, indent=1)


def test_series_and_summary_are_one_table(logs):
    assert logs.claimed(text(RUN)) == ["wandb_api"]
    log = logs.read(WANDB_API, text(RUN))
    assert log.runs == {"small"}
    # the summary only repeats the last values: no evaluation moves to the step of the summary
    assert log.rows == [
        (50, {"train/.loss": 8.5, "train/.optimizer/lr": 1e-4}),
        (100, {"train/.loss": 7.25, "train/.optimizer/lr": 2e-4, "val/.dclm_loss": 7.5}),
        (150, {"train/.loss": math.inf, "train/.optimizer/lr": 3e-4}),
    ]
    assert Keys().find("lr", ["train/.optimizer/lr"]) == "train/.optimizer/lr"
    assert log.flaws == {}


def test_a_value_that_only_the_summary_has_is_the_last_row(logs):
    log = logs.read(WANDB_API, text({**RUN, "summary": {"_step": 1800, "val/": {"dclm_loss": 3.5}}}))
    assert log.rows[-1] == (1800, {"val/.dclm_loss": 3.5})


def test_what_the_run_states(logs):
    assert logs.read(WANDB_API, text(RUN)).facts == {
        "id": "lv1miaj6",
        "status": "crashed",
        "created": 1744936215,  # date -u -d 2025-04-18T00:30:15Z +%s
        "planned_steps": 1800,
        "batch_size": 512,
        "sequence_length": 2048,
        "tokens_per_step": 512 * 2048,
        "N": 1000000,
        "seed": "3",
    }


@pytest.mark.parametrize(
    "config",
    [
        {"context_length": 2048, "gradient_accumulation_steps": 4},  # counted in the batch, or not
        {"context_length": 2048, "eval": {"seq_len": 4096}},  # two lengths
        {"global_batch_size": 256, "context_length": 2048},  # two batches, with that of the summary
        {},
    ],
)
def test_tokens_per_step_are_not_guessed(logs, config):
    assert "tokens_per_step" not in logs.read(WANDB_API, text({**RUN, "config": config})).facts


@pytest.mark.parametrize(
    "history",
    [
        ROWS,
        {
            "_step": [0, 1, 2],
            "loss": [3.5, None, None],
            "lr": [0.1, None, None],
            "val/loss": [None, 3.25, "Infinity"],
        },
        {
            "_step": {"0": 0, "1": 1, "2": 2},
            "loss": {"0": 3.5, "1": None, "2": None},
            "lr": {"0": 0.1, "1": None, "2": None},
            "val/loss": {"0": None, "1": 3.25, "2": "Infinity"},
        },
    ],
)
def test_rows_and_columns_are_the_same_history(logs, history):
    content = text({"id": "a1", "config": {}, "summary": {}, "history": history})
    assert logs.claimed(content) == ["wandb_api"]
    log = logs.read(WANDB_API, content)
    assert log.rows == [(0, {"loss": 3.5, "lr": 0.1}), (1, {"val/loss": 3.25}), (2, {"val/loss": math.inf})]
    assert log.runs == {"a1"}


def test_a_plain_list_of_rows(logs):
    assert logs.claimed(text(ROWS)) == ["wandb_api"]
    log = logs.read(WANDB_API, text([*ROWS, {"loss": 1.0}, None]), "runs/small.json")
    assert log.runs == {"runs/small"}
    assert log.times == [1000.5, 1001.5, 1002.5]
    assert log.flaws == {"unread_lines": 2}


def test_a_list_of_runs(logs):
    crashed = {"name": "crashed", "config": {}, "summary": {}, "history": []}
    content = text([RUN, {**RUN, "name": "large", "history": ROWS}, crashed])
    assert logs.claimed(content) == ["wandb_api"]
    log = logs.read(WANDB_API, content)
    assert log.runs == {"small", "large", "crashed"}
    assert log.flaws == {"unread_lines": 1}  # the one that logged nothing
    assert log.column("val/loss") == [(1, 3.25), (2, math.inf)]


def test_a_summary_that_cannot_be_placed_is_counted(logs):
    rows = [{"_step": 2 * i, "train/global_step": 10 * i, "train/loss": 3.0} for i in range(3)]
    log = logs.read(
        WANDB_API, text({"history": rows, "config": {}, "summary": {"_step": 4, "eval/loss": 2.5}})
    )
    assert log.column("eval/loss") == []
    assert log.flaws == {"unread_lines": 1}


def test_the_step_is_the_one_of_the_trainer(logs):
    rows = [{"_step": 2 * i, "train/global_step": 10 * i, "train/loss": 3.0} for i in range(3)]
    assert [step for step, _ in logs.read(WANDB_API, text(rows)).rows] == [0, 10, 20]
    keys = Keys(named={"step": "_step"})
    assert [step for step, _ in logs.read(WANDB_API, text(rows), keys=keys).rows] == [0, 2, 4]
    rows.insert(1, {"_step": 1, "system/cpu": 0.5})
    assert [step for step, _ in logs.read(WANDB_API, text(rows)).rows] == [0, 10, 20]
    del rows[2]["train/global_step"]
    assert [step for step, _ in logs.read(WANDB_API, text(rows)).rows] == [0, 2, 4]


@pytest.mark.parametrize(
    ("count", "uneven", "sampled"),
    [
        (500, True, True),
        (500, False, False),
        (489, True, False),
        (531, True, False),
        (1000, True, True),
        (10000, True, True),
    ],
)
def test_samples_are_told_by_their_number_and_uneven_steps(logs, count, uneven, sampled):
    steps = [10 * i + (uneven and i % 3) for i in range(count)]
    steps[-1] += 5  # the last step of a run
    log = logs.read(WANDB_API, text([{"_step": step, "loss": 3.0} for step in steps]))
    assert ("sampled_history" in log.flaws) == sampled
    series = {"loss": {"_step": steps, "loss": [3.0] * count}, "val": {"_step": [3], "val": [1]}}
    assert ("sampled_history" in logs.read(WANDB_API, text({**RUN, "history": series})).flaws) == sampled


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (text(RUN)[:600], "no whole JSON document"),
        (text({**RUN, "history": 5}), "history is neither rows nor columns"),
        (
            text({**RUN, "history": {"loss": {"_step": [1, 2], "loss": [1]}}}),
            "history of loss: columns need one value per",
        ),
        (
            text({**RUN, "history": {"loss": {"_step": [1, 1], "loss": [1, 2]}}}),
            "_step must be numbers, each once",
        ),
        (text({"id": "one", "history": [], "summary": {}}), "neither history nor summary of one has _step"),
    ],
)
def test_what_is_no_run_is_refused(logs, content, message):
    with pytest.raises(IngestError, match=message):
        logs.read(WANDB_API, content)


@pytest.mark.parametrize(
    ("name", "step", "loss"),
    [
        ("bdoj7b81", 1800, 3.4713004443709843),
        ("g3n9g6gj", 2200, 3.3323826046733567),
        ("mn9q37ey", 2600, 3.2638968505640857),
        ("nd7vjsmp", 2000, 3.3857699077003764),
        ("t48byd1h", 2400, 3.2516105783480915),
        ("zfdhh9u5", 2000, 3.3817858416284823),
    ],
)
def test_last_evaluation_of_real_runs(logs, real_data, name, step, loss):
    content = (real_data / "formats" / "wandb_api_json" / f"{name}.json").read_bytes()
    assert logs.claimed(content) == ["wandb_api"]
    log = logs.read(WANDB_API, content)
    assert log.column("val/.dclm_loss")[-1] == (step, loss)  # read off the file
    assert is_evaluation("val/.dclm_loss")
    assert (log.facts["id"], log.facts["planned_steps"], log.facts["batch_size"]) == (name, step, 512)
    assert "tokens_per_step" not in log.facts  # no length of sequences is stated
    assert log.flaws == {}


def test_a_real_divergence_shows(logs, real_data):
    content = (real_data / "formats" / "wandb_api_json" / "diverged_lv1miaj6.json").read_bytes()
    log = logs.read(WANDB_API, content)
    # read off the file
    assert log.column("train/.loss_mean")[-2:] == [(600, 7.500233344685857), (650, math.inf)]
    assert log.facts["planned_steps"] == 3000
    assert log.facts["tokens_per_step"] == 64 * 16384
    assert log.column("val/.dclm_loss") == []


@settings(max_examples=100)
@given(data=st.data())
def test_damage(logs, data):
    logs.damaged(WANDB_API, text(data.draw(st.sampled_from([RUN, ROWS]))), data)
