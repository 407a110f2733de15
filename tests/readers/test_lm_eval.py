"""lm-evaluation-harness: results of old and new versions, and where the step stands."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers.lm_eval import LM_EVAL

TASKS = Keys(families=("*/acc", "*/acc_stderr", "*/exact_match*"))
#: Layout of version 0.4 and later: EvaluationTracker.save_results_aggregated and simple_evaluate.
NEW = """\
{
  "results": {
    "arc_easy": {
      "alias": "arc_easy",
      "acc,none": 0.375,
      "acc_stderr,none": 0.0099,
      "acc_norm,none": 0.35
    },
    "gsm8k": {
      "alias": "gsm8k",
      "exact_match,strict-match": 0.25,
      "exact_match_stderr,strict-match": "N/A"
    },
    "wikitext": {"alias": "wikitext", "word_perplexity,none": 12.5}
  },
  "group_subtasks": {"arc_easy": []},
  "configs": {"arc_easy": {"task": "arc_easy", "num_fewshot": 0, "metadata": {"version": 1.0}}},
  "versions": {"arc_easy": 1.0, "gsm8k": 3.0},
  "n-shot": {"arc_easy": 0, "gsm8k": 5},
  "higher_is_better": {"arc_easy": {"acc": true, "acc_norm": true}},
  "n-samples": {"arc_easy": {"original": 2376, "effective": 2376}},
  "config": {
    "model": "hf",
    "model_args": {"pretrained": "EleutherAI/pythia-70m", "revision": "step3000"},
    "batch_size": "16",
    "random_seed": 0
  },
  "git_hash": "4e7e0d4",
  "date": 1755788214.5,
  "model_source": "hf",
  "model_name": "EleutherAI/pythia-70m",
  "model_name_sanitized": "EleutherAI__pythia-70m"
}
"""
NEW_PATH = "EleutherAI__pythia-70m/results_2026-08-21T10-56-54.123456.json"
OLD = """\
{"results": {"lambada_openai": {"ppl": 142.4, "ppl_stderr": 6.04, "acc": 0.18, "acc_stderr": 0.005}},
 "versions": {"lambada_openai": 0},
 "config": {"model": "hf-causal", "model_args": "pretrained=EleutherAI/pythia-70m,revision=main", "num_fewshot": 0}}
"""


def test_new_results(logs):
    assert logs.claimed(NEW, NEW_PATH) == ["lm_eval"]
    log = logs.read(LM_EVAL, NEW, NEW_PATH, TASKS)
    assert log.runs == {"EleutherAI/pythia-70m"}
    assert log.rows == [
        (
            3000,
            {
                "arc_easy/acc": 0.375,
                "arc_easy/acc_stderr": 0.0099,
                "gsm8k/exact_match,strict-match": 0.25,
                "wikitext/word_perplexity": 12.5,
            },
        )
    ]
    assert log.times == [1755788214.5]


def test_old_results(logs):
    assert logs.claimed(OLD, "70m_step143000.json") == ["lm_eval"]
    log = logs.read(LM_EVAL, OLD, "70m_step143000.json", TASKS)
    assert log.rows == [
        (
            143000,
            {"lambada_openai/ppl": 142.4, "lambada_openai/acc": 0.18, "lambada_openai/acc_stderr": 0.005},
        )
    ]


@pytest.mark.parametrize(
    ("model", "path", "step", "run"),
    [
        ("out/base/checkpoint-500", "out__base__checkpoint-500/results_2026-08-21.json", 500, "out/base"),
        ("out/base", "evals/iter_0005000/results.json", 5000, "out/base"),
        ("out/base", "evals/global_step7.json", 7, "out/base"),
    ],
)
def test_where_the_step_stands(logs, model, path, step, run):
    log = logs.read(LM_EVAL, OLD.replace("EleutherAI/pythia-70m,revision=main", model), path, TASKS)
    assert (log.rows[0][0], log.runs) == (step, {run})


@pytest.mark.parametrize(
    ("content", "path", "message"),
    [
        (
            OLD,
            "results.json",
            "no step in the model's revision or path, nor in the name of the file or its folder",
        ),
        (OLD[:99], "step1.json", "no whole JSON document"),
        ('{"results": {"a": {}}, "versions": {}}', "step1.json", "no metric of a task"),
    ],
)
def test_what_cannot_be_placed_is_refused(logs, content, path, message):
    with pytest.raises(IngestError, match=message):
        logs.read(LM_EVAL, content, path)


@pytest.mark.parametrize(
    ("name", "step", "arc_easy", "lambada"),
    [
        ("70m_step143000.json", 143000, 0.37373737373737376, 0.18455268775470599),
        ("1.4b_step1000.json", 1000, 0.31734006734006737, 0.0673394139336309),
    ],
)
def test_real_results(logs, real_data, name, step, arc_easy, lambada):
    path = real_data / "formats" / "lm_eval_v0_3" / name
    assert logs.claimed(path.read_bytes(), str(path)) == ["lm_eval"]
    log = logs.read(LM_EVAL, path.read_bytes(), str(path), TASKS)
    [(at, values)] = log.rows
    # read off the file
    assert (at, values["arc_easy/acc"], values["lambada_openai/acc"]) == (step, arc_easy, lambada)
    assert log.runs == {f"EleutherAI/pythia-v1.1-{name.partition('_')[0]}"}


@settings(max_examples=80)
@given(data=st.data())
def test_damage(logs, data):
    content = data.draw(st.sampled_from([NEW, json.dumps(json.loads(OLD), indent=1)]))
    logs.damaged(LM_EVAL, content, data, "step9.json")
