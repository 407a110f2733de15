"""modded-nanogpt: the script in front says nothing, times change their unit, the plan stands in every line."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.readers.modded_nanogpt import MODDED_NANOGPT

SCRIPT = """\
import torch
batch_size = 8*64*1024 # tokens per step
# s:0 tel:10.9 was the old format; val_loss: is printed below
print0(f"step:{step}/{train_steps} val_loss:{val_loss:.4f} train_time:{t:.0f}ms step_avg:{t/n:.2f}ms")
"""
LOG = (
    SCRIPT
    + "=" * 100
    + """
Running pytorch 2.6.0 compiled for CUDA 12.6
step:0/1480 val_loss:10.8258 train_time:0ms step_avg:nanms
step:1/1480 train_time:23287ms step_avg:nanms
step:125/1480 val_loss:4.6300 train_time:19.979s step_avg:159.83ms
step:126/1480 train_loss:4.5900 train_time:20.1s step_avg:159.83ms
step:1480/1480 val_loss:3.2760 train_time:236750ms step_avg:161.05ms
peak memory allocated: 33 MiB
"""
)


def test_steps_after_the_script(logs):
    assert logs.claimed(LOG) == ["modded_nanogpt"]
    assert logs.claimed(SCRIPT) == []
    log = logs.read(MODDED_NANOGPT, LOG)
    assert log.column("val_loss") == [(0, 10.8258), (125, 4.63), (1480, 3.276)]
    assert log.column("train_loss") == [(126, 4.59)]
    assert log.facts == {"planned_steps": 1480}
    assert log.flaws == {}


def test_divergence_and_a_torn_end(logs):
    log = logs.read(MODDED_NANOGPT, LOG + "step:1481/1480 val_loss:nan train_time:1ms\nstep:1482/1480 val_lo")
    assert log.column("val_loss")[-1] == (1481, math.inf)
    assert log.flaws == {"torn_line": 1}


def test_a_script_without_a_log_is_refused(logs):
    with pytest.raises(IngestError, match="no whole step line"):
        logs.read(MODDED_NANOGPT, SCRIPT)


@pytest.mark.parametrize(
    ("name", "rows", "last"),
    [
        ("2024-12-08_UNetValueEmbedsTweaks.txt", 1493, (1480, 3.2760)),
        ("2026_track3_psgd.txt", 29, (3400, 3.27739)),
    ],
)
def test_last_evaluation_of_real_runs(logs, real_data, name, rows, last):
    content = (real_data / "formats" / "modded_nanogpt" / name).read_bytes()
    log = logs.read(MODDED_NANOGPT, content)
    assert logs.claimed(content) == ["modded_nanogpt"]
    assert log.column("val_loss")[-1] == last  # read off the file
    assert log.facts == {"planned_steps": last[0]}
    assert len(log.rows) == rows  # grep -c ^step:
    assert log.flaws == {}


@settings(max_examples=60)
@given(data=st.data())
def test_damage(logs, data):
    logs.damaged(MODDED_NANOGPT, LOG, data)
