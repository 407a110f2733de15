"""seqio: perplexities keep their name, damaged lines are counted."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.keys import is_evaluation
from smelt_scaling.ingest.readers.seqio import SEQIO

LOG = """\
{"step": 0, "perplexity": 1.8357067157117084}
{"step": 10000, "perplexity": 1.0811766372641582, "accuracy": 0.5}
{"step": 20000, "perplexity": NaN}
"""


def test_perplexity_is_no_loss_in_nats(logs):
    assert logs.claimed(LOG)[0] == "seqio"
    log = logs.read(SEQIO, LOG)
    assert log.rows == [
        (0, {"eval/perplexity": 1.8357067157117084}),
        (10000, {"eval/perplexity": 1.0811766372641582}),
        (20000, {"eval/perplexity": math.inf}),
    ]
    assert is_evaluation("eval/perplexity")


def test_lines_of_other_logs_are_not_claimed(logs):
    assert "seqio" not in logs.claimed('{"step": 1, "loss": 2.5, "perplexity": 12.2}\n')
    assert "seqio" not in logs.claimed('{"step": 1, "accuracy": 0.5}\n')


def test_damaged_lines_are_counted(logs):
    log = logs.read(SEQIO, LOG + '{"step": 3\n[1]\n{"step": 30000, "perplex')
    assert log.flaws == {"torn_line": 1, "unread_lines": 2}
    with pytest.raises(IngestError, match="no whole record of metrics"):
        logs.read(SEQIO, '{"step": 0, "perplexity": 1.8}')


def test_last_evaluation_of_a_real_run(logs, real_data):
    content = (real_data / "formats" / "seqio_metrics_jsonl" / "base-metrics.jsonl").read_bytes()
    log = logs.read(SEQIO, content)
    assert logs.claimed(content)[0] == "seqio"
    assert log.column("eval/perplexity")[-1] == (2000000, 1.0508947232362524)  # read off the file
    assert len(log.rows) == 203  # wc -l
    assert log.flaws == {}


@settings(max_examples=60)
@given(data=st.data())
def test_damage(logs, data):
    logs.damaged(SEQIO, LOG, data)
