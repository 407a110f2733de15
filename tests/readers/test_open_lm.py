"""open_lm: domains from paths, standard errors from intervals, tokens of the final checkpoint only."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.readers.open_lm import OPEN_LM

MODEL = """\
{
  "name": "rpj-d=96",
  "hyperparameters": {"tokens": 8000000, "global_bs": 64, "params": 25000000, "seed": 124},
  "checkpoint_url": "rpj-d=96/checkpoints/epoch_6.pt",
  "open_lm_version": "0.0.21",
  "results": [
    {"loss": 4.5, "checkpoint_path": "rpj-d=96/checkpoints/epoch_5.pt", "val_data": ["eval/c4_val/shard-{0..9}.tar"]},
    {"loss": 4.25, "loss_sequences_lower_95": 4.2, "loss_sequences_upper_95": 4.3,
     "checkpoint_path": "rpj-d=96/checkpoints/epoch_6.pt", "val_data": ["eval/c4_val/shard-{0..9}.tar"]},
    {"loss": 3.5, "checkpoint_path": "rpj-d=96/checkpoints/epoch_6.pt", "val_data": ["eval/de-en/val_de-en_100.tar"]},
    {"loss": 3.75, "checkpoint_path": "rpj-d=96/checkpoints/epoch_6.pt", "val_data": ["other/de-en/val.tar"]},
    {"loss": 3.0, "checkpoint_path": "latest.pt", "val_data": ["eval/c4_val/0.tar"]}
  ]
}
"""


def test_domains_checkpoints_and_standard_errors(logs):
    assert logs.claimed(MODEL) == ["open_lm"]
    log = logs.read(OPEN_LM, MODEL)
    assert log.runs == {"rpj-d=96"}
    (first, early), (last, final) = log.rows
    assert (first, early) == (5, {"eval/c4_val/loss": 4.5})
    assert last == 6
    se = final.pop("eval/c4_val/loss_se")
    assert se == pytest.approx(0.1 / 2 / 1.96, rel=1e-4)  # 1.96 is the quantile to 4 digits
    assert final == {
        "eval/c4_val/loss": 4.25,
        "eval/de-en/loss": 3.5,
        "eval/other/de-en/val.tar/loss": 3.75,
        "tokens": 8e6,
    }
    assert log.facts == {"planned_tokens": 8e6, "batch_size": 64, "N": 2.5e7, "seed": "124"}
    assert log.flaws == {"unread_lines": 1}


def test_files_without_results_are_refused(logs):
    with pytest.raises(IngestError, match="no result of a numbered checkpoint"):
        logs.read(OPEN_LM, json.dumps({**json.loads(MODEL), "results": []}))
    with pytest.raises(IngestError, match="no whole JSON document"):
        logs.read(OPEN_LM, MODEL[:-9])


def test_two_losses_of_one_set_are_refused(logs):
    twice = json.loads(MODEL)
    twice["results"].append(twice["results"][1] | {"loss": 4.0})
    with pytest.raises(
        IngestError, match="two losses of eval/c4_val/loss at rpj-d=96/checkpoints/epoch_6.pt"
    ):
        logs.read(OPEN_LM, json.dumps(twice))


def test_a_real_model(logs, real_data):
    content = (real_data / "formats" / "open_lm_json" / "rpj-d=1024_l=24_h=8-32.0.json").read_bytes()
    log = logs.read(OPEN_LM, content)
    assert logs.claimed(content) == ["open_lm"]
    [(step, values)] = log.rows
    # read off the file
    assert (step, values["tokens"]) == (6, 263434403840)
    assert values["eval/openlm/loss"] == 2.2214248557885488
    assert values["eval/c4_val/loss"] == 2.7681623882618447
    assert values["eval/c4_val/loss_se"] == pytest.approx(
        (2.7709198738735163 - 2.7654619282285675) / 3.92, rel=1e-4
    )
    assert sum(key.endswith("/loss") for key in values) == 8
    assert all(math.isfinite(value) for value in values.values())
    assert log.facts["N"] == 411616256


@settings(max_examples=80)
@given(data=st.data())
def test_damage(logs, data):
    logs.damaged(OPEN_LM, MODEL, data)
