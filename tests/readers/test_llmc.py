"""llm.c: both losses of a step, restarts that the file appends, later columns, torn and foreign lines."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.readers.llmc import LLMC

LOG = """\
s:0 tel:11.0316
s:0 trl:11.0312 lr:0.000001 norm:21.27
s:1 trl:10.9800 lr:0.000002 norm:19.12
s:250 tel:6.5021
s:250 eval:0.2504
s:250 trl:6.4900 lr:0.000214 norm:1.02
"""


def test_losses_by_kind_and_step(logs):
    assert logs.claimed(LOG) == ["llmc"]
    log = logs.read(LLMC, LOG, "log124M/main.log")
    assert log.runs == {"log124M"}
    assert log.column("val loss") == [(0, 11.0316), (250, 6.5021)]
    assert log.column("train loss") == [(0, 11.0312), (1, 10.98), (250, 6.49)]
    assert log.column("lr") == [(0, 1e-6), (1, 2e-6), (250, 2.14e-4)]
    assert (log.facts, log.flaws) == ({}, {})


def test_an_appended_restart_stays_in_the_order_of_the_file(logs):
    again = LOG + "s:200 trl:6.6000 lr:0.000214 norm:1.0\ns:250 tel:6.4888\n"
    log = logs.read(LLMC, again)
    assert [step for step, _ in log.rows][-3:] == [250, 200, 250]
    assert log.column("val loss")[-1] == (250, 6.4888)


def test_a_diverged_run_shows(logs):
    log = logs.read(LLMC, LOG + "s:251 trl:-nan lr:0.000215 norm:nan\ns:252 trl:inf lr:0.0002 norm:nan\n")
    assert log.column("train loss")[-2:] == [(251, math.inf), (252, math.inf)]


def test_torn_and_foreign_lines_are_counted(logs):
    log = logs.read(LLMC, LOG + "Segmentation fault\ns:251 trl:6.4.1\ns:251 trl:6.4")
    assert log.flaws == {"torn_line": 1, "unread_lines": 2}
    assert log.rows[-1][0] == 250


def test_a_script_before_the_records_is_no_part_of_them(logs):
    script = "import torch\nf.write('s:%d tel:%f')\n" + "=" * 100 + "\n"
    assert logs.claimed(script) == []
    assert logs.claimed(script + LOG) == ["llmc"]
    log = logs.read(LLMC, script + LOG)
    assert log.rows == logs.read(LLMC, LOG).rows
    assert log.flaws == {}


def test_a_file_of_one_torn_line_is_refused(logs):
    with pytest.raises(IngestError, match="one.log: no whole llm.c record: nothing was logged"):
        logs.read(LLMC, "s:0 tel:11.03")


def test_last_evaluation_of_a_real_run(logs, real_data):
    path = real_data / "formats" / "llmc" / "2024-06-06_AdamW.log"
    log = logs.read(LLMC, path.read_bytes(), str(path))
    assert logs.claimed(path.read_bytes()) == ["llmc"]
    assert log.column("val loss")[-1] == (9536, 3.275959)  # read off the file
    assert len(log.rows) == 9612  # wc -l
    assert log.flaws == {}


@settings(max_examples=60)
@given(data=st.data())
def test_damage(logs, data):
    logs.damaged(LLMC, LOG * 3, data)
