"""Megatron output: batches that grow, restarts, ranks in front, losses left out, every wording of an evaluation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.keys import Keys, is_evaluation
from smelt_scaling.ingest.readers.megatron_text import MEGATRON_TEXT

ARGUMENTS = """\
0: ------------------------ arguments ------------------------
0:   global_batch_size ............................... 512
0:   load ............................................ checkpoints/a
0:   rampup_batch_size ............................... None
0:   seed ............................................ 1234
0:   seq_length ...................................... 2048
0:   train_iters ..................................... None
0: -------------------- end of arguments ---------------------
"""
START = "0: setting training iterations to 3000\n0: estimated model parameters: 0.353824768\n"
BEGIN = "0: [before the start of training step] datetime: 2022-10-19 23:59:21 \n"
#: Of Megatron-DeepSpeed, with consumed tokens and seconds.
TRAIN = """\
0:  iteration      200/    3000 | consumed samples:        25600 | consumed tokens:     52428800 | elapsed time per iteration (s): 3.83 | learning rate: 3.880E-05 | global batch size:   128 | lm loss: 9.392835E+00 | loss scale: 262144.0 | grad norm: 1.677 | number of skipped iterations:  15 | number of nan iterations:   0 |
0: time (ms) | forward-compute: 1482.79 | optimizer: 39.93
0: -----------------------------------------------------------------------------------------
0: valid loss at iteration 200 | lm loss value: 7.707579E+00 | lm loss PPL: 2.225148E+03 | 
0: -----------------------------------------------------------------------------------------
0: valid loss at iteration 300 | lm loss value: 6.903625E+00 | lm loss PPL: 9.958787E+02 | 
0:  iteration      400/    3000 | consumed samples:        51200 | consumed tokens:    104857600 | elapsed time per iteration (s): 4.20 | learning rate: 8.053E-05 | global batch size:   128 | lm loss: 6.932479E+00 | loss scale: 131072.0 | number of skipped iterations:   0 | number of nan iterations:   0 |
"""  # noqa: E501, W291
LOG = ARGUMENTS + START + BEGIN + TRAIN


def line(step, loss="", skipped=0, nan=0):
    """Write a line of Megatron-LM, with milliseconds and without consumed tokens."""
    cell = f" lm loss: {loss} |" if loss else ""
    return (
        f" [2026-04-27 00:00:02] iteration {step:8d}/{3000:8d} | consumed samples: {step * 4:12d} | elapsed time per "
        f"iteration (ms): 3171.3 | learning rate: 1.000000E-04 | global batch size:     4 |{cell} loss scale: 1.0 | "
        f"number of skipped iterations: {skipped:3d} | number of nan iterations: {nan:3d} |\n"
    )


def test_losses_and_consumed_tokens(logs):
    assert logs.claimed(LOG) == ["megatron_text"]
    log = logs.read(MEGATRON_TEXT, LOG)
    assert log.column("lm loss") == [(200, 9.392835), (400, 6.932479)]
    assert log.column("learning rate") == [(200, 3.88e-5), (400, 8.053e-5)]
    assert log.column("valid/lm loss") == [(200, 7.707579), (300, 6.903625)]
    # an evaluation has tokens where a training line of its step says them
    assert log.column("consumed tokens") == [(200, 52428800), (200, 52428800), (400, 104857600)]
    assert log.flaws == {}


def test_what_the_log_states(logs):
    assert logs.read(MEGATRON_TEXT, LOG).facts == {
        "planned_steps": 3000,
        "sequence_length": 2048,
        "batch_size": 512,
        "tokens_per_step": 512 * 2048,
        "seed": "1234",
        "N": 353824768,
        "created": 1666223961,  # date -u -d '2022-10-19 23:59:21' +%s
    }


def test_a_growing_batch_has_no_size(logs):
    growing = LOG.replace(
        "rampup_batch_size ............................... None",
        "rampup_batch_size ... ['128', '128', '2_000_000']",
    )
    facts = logs.read(MEGATRON_TEXT, growing).facts
    assert "batch_size" not in facts
    assert "tokens_per_step" not in facts


def test_tokens_from_samples_and_the_length_of_sequences(logs):
    log = logs.read(MEGATRON_TEXT, ARGUMENTS + line(10, "9.5E+00"))
    assert log.column("tokens") == [(10, 40 * 2048)]
    assert logs.read(MEGATRON_TEXT, line(10, "9.5E+00")).column("tokens") == []
    shorter = line(10, "9.5E+00").replace(" loss scale:", " curriculum seqlen:   64 | loss scale:")
    assert logs.read(MEGATRON_TEXT, ARGUMENTS + shorter).column("tokens") == []


def test_a_missing_loss_is_unknown_when_all_was_skipped_and_broken_when_it_was_nan(logs):
    content = "".join(
        [
            line(10, skipped=10),
            line(20, "9.5E+00", skipped=8),
            line(30),  # a mean that is NaN is not printed
            line(40, "9.25E+00"),
            line(50, skipped=10, nan=10),
            line(60, skipped=10),
        ]
    )
    log = logs.read(MEGATRON_TEXT, content)
    assert len(log.rows) == 6
    assert log.column("lm loss") == [(20, 9.5), (30, math.inf), (40, 9.25), (50, math.inf)]


@pytest.mark.parametrize(
    ("text", "key", "step"),
    [
        (" validation loss at iteration 7 | lm loss value: 2.5E+00 | lm loss PPL: 1.2E+01 | ", "validation/lm loss", 7),
        (" validation loss at iteration 7 on validation set | lm loss value: 2.5E+00 | ", "validation/lm loss", 7),
        (" validation loss at iteration 7 on test set | lm loss value: 2.5E+00 | ", "test/lm loss", 7),
        (" validation-w loss at iteration 7 on validation set | lm loss value: 2.5E+00 |", "validation-w/lm loss", 7),
        ("0: validation loss at iteration 7 [code] | lm loss value: 2.5E+00 |", "validation-code/lm loss", 7),
        ("[default7]: oscar-en loss at iteration 7 | lm loss value: 2.5E+00 | ", "validation/oscar-en/lm loss", 7),
        (" validation loss at the end of training for val data | lm loss value: 2.5E+00 | ", "validation/lm loss", 5),
        (" validation loss at the end of training for test data | LM loss: 2.5E+00 | LM PPL: 12.1", "test/LM loss", 5),
        (" validation results at iteration 7 | lm_loss value: 2.5 | lm_loss_ppl value: 12 | ", "validation/lm_loss", 7),
    ],
)  # fmt: skip
def test_wordings_of_evaluations(logs, text, key, step):
    content = line(5, "9.5E+00") + text + "\n"
    assert logs.claimed(content) == ["megatron_text"]
    log = logs.read(MEGATRON_TEXT, content)
    assert log.rows[1:] == [(step, {key: 2.5})]
    assert is_evaluation(key)


def test_several_sets_between_training_lines_have_no_tokens(logs):
    sets = "".join(f" validation-{name} loss at iteration 7 | lm loss value: 2.5E+00 |\n" for name in "ab")
    log = logs.read(MEGATRON_TEXT, ARGUMENTS + line(5, "9.5E+00") + sets)
    assert log.column("tokens") == [(5, 20 * 2048)]
    assert log.rows[1:] == [(7, {"validation-a/lm loss": 2.5}), (7, {"validation-b/lm loss": 2.5})]


def test_a_lone_evaluation_is_recognised(logs):
    assert logs.claimed(" validation loss at iteration 7 | lm loss value: 2.5E+00 | \n") == ["megatron_text"]


def test_restarts_are_announced_once_with_their_step(logs):
    loaded = "0:  loading checkpoint from checkpoints/a at iteration 200\n"
    done = "0:   successfully loaded checkpoint from checkpoints/a [ t 1/1, p 1/1 ] at iteration 200\n"
    again = LOG + ARGUMENTS.replace("512", "256") + START + loaded + done + BEGIN + TRAIN
    log = logs.read(MEGATRON_TEXT, again)
    assert log.resumed == [(4, 200)]
    assert log.facts["tokens_per_step"] == 256 * 2048
    assert logs.read(MEGATRON_TEXT, LOG + LOG).resumed == [(4, None)]
    assert logs.read(MEGATRON_TEXT, ARGUMENTS + loaded + TRAIN).resumed == [(0, 200)]


def test_records_on_one_line_and_cut_lines(logs):
    joined = line(10, "9.5E+00").rstrip("\n") + "[Rank 3] memory" + line(20, "9.25E+00")
    log = logs.read(MEGATRON_TEXT, joined + line(30, "9.125E+00").partition("5E+00")[0] + "\n0:  iteration ")
    assert log.column("lm loss") == [(10, 9.5), (20, 9.25)]
    assert [step for step, _ in log.rows] == [10, 20, 30]
    assert log.flaws == {"unread_lines": 2, "torn_line": 1}  # one cut by another process, one at 9.12


def test_a_garbled_value_is_counted(logs):
    log = logs.read(MEGATRON_TEXT, line(10, "9.5[Rank 3]E+00") + line(20, "9.25E+00"))
    assert log.column("lm loss") == [(20, 9.25)]
    assert log.flaws == {"unread_lines": 1}


def test_only_named_keys_are_kept(logs):
    log = logs.read(MEGATRON_TEXT, LOG, keys=Keys(named={"loss": "valid/lm loss"}))
    assert log.column("lm loss") == []
    assert log.column("valid/lm loss")[-1] == (300, 6.903625)


def test_a_job_that_never_trained_is_refused(logs):
    assert logs.claimed(ARGUMENTS) == ["megatron_text"]
    with pytest.raises(IngestError, match="no iteration and no evaluation"):
        logs.read(MEGATRON_TEXT, ARGUMENTS + START)


def test_a_real_blow_up_shows(logs, real_data):
    content = (real_data / "formats" / "megatron_stdout" / "blowup-4-alibi-nods.out").read_bytes()
    log = logs.read(MEGATRON_TEXT, content)
    assert logs.claimed(content) == ["megatron_text"]
    # read off the file
    assert log.rows[-1] == (2600, {"valid/lm loss": 20.20264, "consumed tokens": 681574400})
    assert log.column("lm loss")[-1] == (2600, 15.6765)
    assert log.column("lm loss")[7] == (1600, 11.0733)
    assert log.facts["planned_steps"] == 148693
    assert "tokens_per_step" not in log.facts
    assert log.flaws == {}


def test_a_real_short_run(logs, real_data):
    content = (real_data / "formats" / "megatron_stdout" / "bigscience_gpt2_n8.out").read_bytes()
    log = logs.read(MEGATRON_TEXT, content)
    assert logs.claimed(content) == ["megatron_text"]
    # read off the file; tokens are 800 samples of 1024
    assert log.rows[-1] == (200, {"validation/lm loss": 7.645013, "tokens": 819200})
    assert log.rows[0] == (10, {"learning rate": 0, "tokens": 40960})
    assert log.column("lm loss")[0] == (20, 12.10588)
    assert log.facts["planned_steps"] == 1000
    assert log.flaws == {}


@settings(max_examples=100)
@given(data=st.data())
def test_damage(logs, data):
    logs.damaged(MEGATRON_TEXT, LOG + line(500, "6.5E+00"), data)
