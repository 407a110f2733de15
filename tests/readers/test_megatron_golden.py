"""Golden values: both shapes, promised steps that are missing, NaN."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.readers.megatron_golden import MEGATRON_GOLDEN

GOLDEN = """\
{
  "lm loss": {"start_step": 1, "end_step": 9, "step_interval": 2,
    "values": {"1": 10.5, "3": 10.25, "7": 9.75, "9": "nan"}},
  "num-zeros": {"start_step": 1, "end_step": 9, "step_interval": 2, "values": {"1": 2274.0}},
  "validation lm loss": {"start_step": 3, "end_step": 9, "step_interval": 3, "values": [9.5, 9.25, 9.0]}
}
"""


def test_series_become_rows(logs):
    assert logs.claimed(GOLDEN) == ["megatron_golden"]
    log = logs.read(MEGATRON_GOLDEN, GOLDEN)
    assert log.column("lm loss") == [(1, 10.5), (3, 10.25), (7, 9.75), (9, math.inf)]
    assert log.column("validation lm loss") == [(3, 9.5), (6, 9.25), (9, 9.0)]
    assert [step for step, _ in log.rows] == [1, 3, 6, 7, 9]
    assert log.flaws == {"damaged_records": 1}  # lm loss at step 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOLDEN[:150], "no whole JSON document"),
        (
            GOLDEN.replace('"step_interval": 2', '"step_interval": 0'),
            "metric lm loss: a metric needs start_step",
        ),
        (GOLDEN.replace('"3": 10.25', '"three": 10.25'), "values by step"),
        ('{"num-zeros": {"start_step": 1}}', "no metric that is a loss"),
    ],
)
def test_what_is_no_golden_file_is_refused(logs, content, message):
    with pytest.raises(IngestError, match=message):
        logs.read(MEGATRON_GOLDEN, content)


def test_a_real_file(logs, real_data):
    content = (real_data / "formats" / "megatron_golden_json" / "bert_mcore_tp2_pp2_resume.json").read_bytes()
    log = logs.read(MEGATRON_GOLDEN, content)
    assert logs.claimed(content) == ["megatron_golden"]
    assert log.column("lm loss")[-1] == (100, 8.98151)  # read off the file
    assert (len(log.rows), log.flaws) == (100, {})


@settings(max_examples=80)
@given(data=st.data())
def test_damage(logs, data):
    logs.damaged(MEGATRON_GOLDEN, GOLDEN, data)
