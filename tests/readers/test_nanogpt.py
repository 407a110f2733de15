"""nanoGPT: step and iter lines of one step, what configuration lines do and do not state, restarts, noise."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.keys import is_evaluation
from smelt_scaling.ingest.readers.nanogpt import NANOGPT

LOG = """\
Overriding config with config/train_gpt2.py:
# launch as the following
batch_size = 12
block_size = 1024
gradient_accumulation_steps = 5 * 8
max_iters = 600000
Overriding: max_iters = 2000
tokens per iteration will be: 491,520
Initializing a new model from scratch
number of parameters: 123.59M
compiling the model... (takes a ~minute)
step 0: train loss 10.9882, val loss 10.9890
iter 0: loss 10.9886, time 40737.26ms, mfu -100.00%
iter 10: loss 9.6716, time 6708.79ms, mfu 2.23%
step 2000: train loss 3.9971, val loss 4.0128
saving checkpoint to out
iter 2000: loss 4.0643, time 31799.67ms, mfu 2.05%
"""


def test_evaluations_and_batches(logs):
    assert logs.claimed(LOG) == ["nanogpt"]
    log = logs.read(NANOGPT, LOG)
    assert log.column("val loss") == [(0, 10.989), (2000, 4.0128)]
    assert log.column("train loss") == [(0, 10.9882), (2000, 3.9971)]
    assert log.column("loss") == [(0, 10.9886), (10, 9.6716), (2000, 4.0643)]
    assert [key for key in ("val loss", "train loss", "loss") if is_evaluation(key)] == ["val loss"]
    assert log.flaws == {}


def test_only_what_is_stated_is_a_fact(logs):
    facts = {"tokens_per_step": 491520, "N": 123.59e6, "planned_steps": 2000, "sequence_length": 1024}
    assert logs.read(NANOGPT, LOG).facts == facts
    older = LOG.replace("tokens per iteration will be: 491,520\n", "")
    assert logs.read(NANOGPT, older).facts == {key: facts[key] for key in facts if key != "tokens_per_step"}


def test_a_resumed_run_in_one_file_is_announced(logs):
    log = logs.read(NANOGPT, LOG + "Resuming training from out\nstep 2000: train loss 3.99, val loss 4.01\n")
    assert log.resumed == [(5, None)]
    resumed = LOG.replace("Initializing a new model from scratch", "Resuming training from out")
    assert logs.read(NANOGPT, resumed).resumed == [(0, None)]


def test_divergence_learning_rates_and_damage(logs):
    more = "iter 2010: loss nan, lr 6.0e-04, time 6.5ms, mfu 2%\nstep 2500: train loss nan, val loss nan\niter 2.5: x\n"
    log = logs.read(NANOGPT, LOG + more + "step 3000: train loss 3.1, val loss 3")
    assert log.column("val loss")[-1] == (2500, math.inf)
    assert log.column("loss")[-1] == (2010, math.inf)
    assert log.column("lr") == [(2010, 6e-4)]
    assert log.flaws == {"torn_line": 1, "unread_lines": 1}


def test_a_run_that_never_began_is_refused(logs):
    with pytest.raises(IngestError, match="no whole step or iter line"):
        logs.read(NANOGPT, LOG.partition("step 0")[0])


def test_last_is_not_best_in_a_real_run(logs, real_data):
    content = (real_data / "formats" / "nanogpt_stdout" / "train_shakespeare_like.trimmed.txt").read_bytes()
    log = logs.read(NANOGPT, content)
    assert logs.claimed(content) == ["nanogpt"]
    # read off the file: the last evaluation, and the lowest
    assert log.column("val loss")[-1] == (5000, 1.3391)
    assert min(log.column("val loss"), key=lambda row: row[1]) == (500, 0.6678)
    assert log.facts == {"planned_steps": 5000, "sequence_length": 256, "N": 10.68e6}


@settings(max_examples=60)
@given(data=st.data())
def test_damage(logs, data):
    logs.damaged(NANOGPT, LOG, data)
