"""Tables of steps: one content in every format, runs interleaved or shuffled, ambiguity, odd cells and damage."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Block, Event, Facts, Flaw
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers.step_table import STEP_TABLE
from smelt_scaling.ingest.sources import Source

Columns = dict[str, list[Any]]

#: Two runs, interleaved; one has a decay branch, one diverges; a restart goes back once.
ROWS: Columns = {
    "run": ["a", "b", "a", "b", "a", "a", "a", "b"],
    "branch": [None, None, None, None, None, "d1", "d1", None],
    "phase": ["stable", "stable", "stable", "stable", "stable", "decay", "decay", "stable"],
    "step": [1, 1, 2, 2, 3, 3, 4, 2],
    "tokens": [10, 10, 20, 20, 30, 30, 40, 20],
    "eval/loss": [5.0, 6.0, 4.0, math.nan, None, 3.5, 3.25, 5.5],
    "grad_norm": [1.0] * 8,
}
#: (run, branch) -> step, tokens, loss, annealed; read off the rows above.
CURVES = {
    ("a", ""): [(1, 10, 5.0, 0), (2, 20, 4.0, 0), (3, 30, None, 0)],
    ("a", "d1"): [(3, 30, 3.5, 1), (4, 40, 3.25, 1)],
    ("b", ""): [(1, 10, 6.0, 0), (2, 20, math.inf, 0), (2, 20, 5.5, 0)],
}
FORMATS = ("csv", "semicolon", "quoted", "jsonl", "parquet", "feather", "stream")


def packed(columns: Columns, form: str) -> bytes:
    """Write a table by means that are not the reader's."""
    names = list(columns)
    rows = list(zip(*columns.values(), strict=True))
    if form == "jsonl":
        return "".join(
            json.dumps({n: v for n, v in zip(names, row, strict=True) if v is not None}) + "\n"
            for row in rows
        ).encode()
    if form in ("csv", "semicolon", "quoted"):
        quote, separator = ('"' if form == "quoted" else ""), (";" if form == "semicolon" else ",")
        lines = [names, *([("" if cell is None else cell) for cell in row] for row in rows)]
        return "".join(
            separator.join(f"{quote}{cell}{quote}" for cell in line) + "\n" for line in lines
        ).encode()
    table = pa.table({name: pa.array(cells) for name, cells in columns.items()})
    sink = io.BytesIO()
    if form == "parquet":
        pq.write_table(table, sink, compression="zstd")
    elif form == "feather":
        pa.feather.write_feather(table, sink)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def source(data: bytes) -> Source:
    return Source(path="log", name="folder/log", size=len(data), opener=lambda: io.BytesIO(data))


def read(data: bytes | str, keys: Keys | None = None) -> list[Event]:
    return list(STEP_TABLE.read(source(data.encode() if isinstance(data, str) else data), keys or Keys()))


def curves(events: list[Event], *names: str) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    found: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for block in events:
        if isinstance(block, Block):
            none = np.full(len(block.step), np.nan)
            columns = [block.step, *(block.values.get(name, none) for name in names)]
            rows = [tuple(None if x != x else x for x in row) for row in zip(*columns, strict=True)]
            found.setdefault((block.run, block.branch), []).extend(rows)
    return found


def flaws(events: list[Event]) -> list[tuple[str, int, str]]:
    return [(event.code, event.count, event.run) for event in events if isinstance(event, Flaw)]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_says_the_same(form: str) -> None:
    data = packed(ROWS, form)
    assert STEP_TABLE.sniff(data[:65536], "log")
    events = read(data)
    assert curves(events, "tokens", "eval/loss", "annealed") == CURVES
    assert flaws(events) == []
    assert not [key for block in events if isinstance(block, Block) for key in block.values if "norm" in key]
    bare = {key: column for key, column in ROWS.items() if key in ("step", "eval/loss")}
    assert set(curves(read(packed(bare, form)))) == {("folder/log", "")}


def test_wide_tables_of_a_run_are_read_by_their_own_names() -> None:
    text = (
        "_step,_timestamp,throughput/total_tokens,train/CrossEntropyLoss,eval/pile/CrossEntropyLoss,"
        "eval/downstream/piqa_acc,optim/learning_rate_group0\n"
        "1,1700000000.5,4194304,9.5,,,0.001\n"
        "2,1700000001.5,8388608,,9.0,0.5,\n"
    )
    [block] = read(text)
    assert isinstance(block, Block)
    assert set(block.values) == {
        "throughput/total_tokens",
        "train/CrossEntropyLoss",
        "eval/pile/CrossEntropyLoss",
        "optim/learning_rate_group0",
    }
    assert block.time is not None
    assert block.time.tolist() == [1700000000.5, 1700000001.5]
    family = read(text, Keys(families=("eval/downstream/*",)))
    assert curves(family, "eval/downstream/piqa_acc")["folder/log", ""][1] == (2.0, 0.5)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_columns_that_hold_one_value_all_through_a_run_are_facts(form: str) -> None:
    columns: Columns = {
        "run": ["a", "b", "a", "b"],
        "step": [1, 1, 2, 2],
        "loss": [4.0, 5.0, 3.0, 4.5],
        "arch": ["x", "y", "x", "y"],
        "F": [6e9, 7e9, 6e9, 7e9],
        "batch_size": [8, 8, 16, 8],  # grows in run a
        "seed": [None, None, 1, None],
        "tokens_per_s": [9.0, 9.0, 9.0, 9.0],  # of a moment
    }
    facts = {
        event.run: dict(event.values) for event in read(packed(columns, form)) if isinstance(event, Facts)
    }
    assert facts["a"] == {"arch": "x", "F": 6e9, "seed": "1"}
    assert facts["b"] == {"arch": "y", "F": 7e9, "batch_size": 8.0}


def test_a_last_line_without_an_end_is_whole_where_all_cells_are_quoted() -> None:
    text = '"step","loss"\n"1","3.0"\n"2","2.5"'
    assert curves(read(text), "loss") == {("folder/log", ""): [(1, 3.0), (2, 2.5)]}
    assert flaws(read(text)) == []
    assert flaws(read(text[:-1])) == [("torn_line", 1, "")]


def test_nested_records_are_flattened() -> None:
    text = '{"step": 1, "eval": {"c4": {"loss": 3.5}}}\n{"step": 2, "train": {"loss": "NaN"}}\n'
    found = curves(read(text), "eval/c4/loss", "train/loss")
    assert found == {("folder/log", ""): [(1.0, 3.5, None), (2.0, None, math.inf)]}


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        (["2024-01-01T00:00:01Z", "2024-01-01T00:00:02Z"], [1704067201.0, 1704067202.0]),
        ([1704067201, 1704067202.5], [1704067201.0, 1704067202.5]),
    ],
    ids=["iso", "seconds"],
)
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_times_are_seconds_since_1970(cells: list[Any], seconds: list[float], form: str) -> None:
    [block] = read(packed({"step": [1, 2], "time": cells, "loss": [3.0, 2.0]}, form))
    assert isinstance(block, Block)
    assert block.time is not None
    assert block.time.tolist() == seconds


def test_seconds_since_the_start_are_no_times() -> None:
    [block, flaw] = read("step,time,loss\n1,0.5,3\n2,1.5,2\n")
    assert isinstance(block, Block)
    assert block.time is not None
    assert np.isnan(block.time).all()
    assert flaw == Flaw(
        code="unread_cells",
        message="column time: 2 cells hold no time in seconds since 1970 and were taken as empty",
        count=2,
    )


# -- order -------------------------------------------------------------------------------------------------------------


def many(steps: list[int], runs: list[str] | None = None, **more: list[Any]) -> Columns:
    columns: Columns = {"step": steps, "loss": [1000.0 - step for step in steps], **more}
    return {"run": runs, **columns} if runs else columns


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_restart_keeps_the_order_of_the_file(form: str) -> None:
    steps = [*range(80), *range(60, 120)]
    [run] = curves(read(packed(many(steps), form))).values()
    assert [row[0] for row in run] == steps


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("n", [12, 500, 70000])
def test_shuffled_rows_come_out_in_order(form: str, n: int) -> None:
    steps = np.random.default_rng(0).permutation(n).tolist()
    runs = ["a", "b"] * (n // 2)
    found = curves(read(packed(many(steps, runs), form)), "loss")
    for name, offset in (("a", 0), ("b", 1)):
        own = sorted(steps[offset::2])
        assert found[name, ""] == [(step, 1000.0 - step) for step in own]


def test_newest_first_is_turned_round() -> None:
    [run] = curves(read(packed(many(list(range(100))[::-1]), "csv"))).values()
    assert [row[0] for row in run] == list(range(100))


def test_shuffled_rows_with_times_keep_their_restart() -> None:
    steps = [*range(80), *range(60, 120)]  # as logged
    order = np.random.default_rng(0).permutation(len(steps))
    shuffled = many([steps[i] for i in order], time=[1.7e9 + i for i in order])
    shuffled["loss"] = [float(i) for i in order]
    [run] = curves(read(packed(shuffled, "csv")), "loss").values()
    assert run == [(step, float(i)) for i, step in enumerate(steps)]


def test_two_values_at_a_step_of_shuffled_rows_are_ambiguous() -> None:
    steps = [5, 1, 4, 2, 3, 0, 5, 6, 1]
    losses = [3.0, 9.0, 3.5, 8.0, 7.0, 9.5, 2.0, 1.5, 9.0]
    other: Columns = {"run": ["b"], "step": [1], "loss": [4.0]}
    both = {
        key: [*column, *other[key]]
        for key, column in {"run": ["a"] * 9, "step": steps, "loss": losses}.items()
    }
    events = read(packed(both, "csv"))
    assert flaws(events) == [("ambiguous", 1, "a")]  # step 5; the two rows of step 1 agree
    assert list(curves(events)) == [("b", "")]
    losses[6] = 3.0
    assert flaws(read(packed({"run": ["a"] * 9, "step": steps, "loss": losses}, "csv"))) == []


def test_train_and_evaluation_rows_of_a_step_do_not_contend() -> None:
    text = "step,train/loss,eval/loss\n3,3,\n1,5,\n3,,3.5\n2,4,\n1,,5.5\n0,9,\n"
    events = read(text)
    assert flaws(events) == []
    [run] = curves(events, "train/loss", "eval/loss").values()
    assert [row[0] for row in run] == [0, 1, 1, 2, 3, 3]


def test_order_that_turns_to_disorder_is_refused() -> None:
    steps = [*range(9000), *np.random.default_rng(0).permutation(9000).tolist()]
    runs = ["a"] * len(steps)
    with pytest.raises(
        IngestError, match=r"^log: run 'a': rows are in order at first and shuffled later, .* sort"
    ):
        read(packed(many([*steps], runs), "jsonl"))


# -- what cannot be read -----------------------------------------------------------------------------------------------


def test_no_column_of_steps_says_how_to_name_one() -> None:
    text = "it,loss\n1,3.0\n2,2.5\n"
    with pytest.raises(IngestError, match=r"^log: no column of steps among it, loss: .* --map step=COLUMN$"):
        read(text)
    named = read(text, Keys(named={"step": "it"}))
    assert curves(named, "loss") == {("folder/log", ""): [(1, 3.0), (2, 2.5)]}


def test_steps_counted_in_tokens_are_tokens_too() -> None:
    found = read("tokens,loss\n1000,3.0\n", Keys(named={"step": "tokens"}))
    assert curves(found, "tokens") == {("folder/log", ""): [(1000, 1000)]}


def test_odd_cells_and_rows_are_counted() -> None:
    text = "# a comment\nrun,step,loss\na,1,3.0\na,2,high\na,,2.5\n,3,2.4\na,4\na,5,n/a\na,6,2.0\na,7,1.9"
    events = read(text)
    assert curves(events, "loss") == {("a", ""): [(1, 3.0), (2, None), (5, None), (6, 2.0)]}
    assert sorted(flaws(events)) == [
        ("torn_line", 1, ""),
        ("unread_cells", 1, ""),
        ("unread_lines", 1, ""),
        ("unread_lines", 1, ""),
        ("unread_lines", 1, ""),
    ]
    lines = '{"step": 1, "loss": 3.0}\nnothing\n{"loss": 2.0}\n{"step": 2, "loss": "bad"}\n{"step": 3, "lo'
    assert sorted(flaws(read(lines))) == [
        ("torn_line", 1, ""),
        ("unread_cells", 1, ""),
        ("unread_lines", 1, ""),
        ("unread_lines", 1, ""),
    ]


def test_bytes_that_are_no_text_cost_one_cell() -> None:
    data = b"run,step,loss\na,1,3.0\na,2,2.\xff\na,3,2.0\n"
    assert curves(read(data), "loss") == {("a", ""): [(1, 3.0), (2, None), (3, 2.0)]}


def test_names_stay_as_they_are() -> None:
    runs = ["NaN", "None", "007", " x2 中文", "lr=1,wd=2"]
    text = "run,step,loss\n" + "".join(f'"{run}",1,3.0\n' for run in runs)
    assert [run for run, _ in curves(read("\ufeff" + text))] == runs
    numbers = read(packed({"run_id": [7, 7], "step": [1, 2], "loss": [3.0, 2.0]}, "parquet"))
    assert list(curves(numbers)) == [("7", "")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("step,loss\nx,3.0\n", r"^log: no row has a number in column step"),
        ("step,loss,step\n1,3.0,1\n", r"^log: column step is there twice: rename or drop"),
        ("step,loss", r"^log: broken table \(no whole line\)"),
    ],
    ids=["steps", "twice", "header"],
)
def test_what_says_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(IngestError, match=message):
        read(text)


def test_sniffs_tables_with_steps_or_losses_only() -> None:
    assert STEP_TABLE.sniff(b"it,loss\n1,3.0\n", "")
    assert STEP_TABLE.sniff(b'{"step": 1, "loss": 3.0}\n', "a.jsonl")
    for head in (
        b"",
        b"a,b\n1,2\n",
        b"\0\1\2,\0\n",
        b'"Step","a - loss","a - loss__MIN"\n"1","2","2"\n',
        b'"Step","a - loss"\n"1","2"\n',
        b'{"step": 1, "perplexity": 3.0}\n{"step": 2, "perplexity": 3.0}\n',
        b'{"_step": 1, "loss": 3.0}\n',  # one object alone is a summary
        b'{"kind": "run", "schema": "smelt-train/1"}\n{"step": 1}\n',
        b"[1]\n[2]\n",
        b"step 3: train loss 4.0, val loss 4.1\niter 3: loss 4.0, time 3ms\n",
    ):
        assert not STEP_TABLE.sniff(head, "")


@settings(max_examples=60)
@given(st.sampled_from(FORMATS), st.floats(0, 1, exclude_max=True))
def test_a_cut_file_has_no_other_rows(form: str, share: float) -> None:
    data = packed(ROWS, form)
    whole = {(lane, row) for lane, rows in CURVES.items() for row in rows}
    try:
        found = curves(read(data[: int(share * len(data))]), "tokens", "eval/loss", "annealed")
    except IngestError:
        return
    assert {(lane, row) for lane, rows in found.items() for row in rows} <= whole


@settings(max_examples=150)
@given(st.sampled_from(["csv", "quoted", "jsonl"]), st.data())
def test_damaged_lines_end_in_rows_flaws_or_one_line(form: str, data: st.DataObject) -> None:
    raw = packed(ROWS, form)
    lines = raw.splitlines(keepends=True)
    kind = data.draw(st.sampled_from(["flip", "drop", "repeat"]))
    i = data.draw(st.integers(1, len(lines) - 1))
    if kind == "flip":
        place = data.draw(st.integers(0, len(raw) - 1))
        damaged = raw[:place] + bytes([data.draw(st.integers(0, 255))]) + raw[place + 1 :]
    else:
        damaged = b"".join(lines[:i] + (lines[i : i + 1] * 2 if kind == "repeat" else []) + lines[i + 1 :])
    whole = {(lane, row) for lane, rows in CURVES.items() for row in rows}
    try:
        found = curves(read(damaged), "tokens", "eval/loss", "annealed")
    except IngestError:
        return
    if kind != "flip":  # without checksums a changed digit is another number
        assert {(lane, row) for lane, rows in found.items() for row in rows} <= whole


@settings(max_examples=150)
@given(st.sampled_from(["parquet", "feather", "stream"]), st.data())
def test_damaged_binary_tables_end_in_rows_or_one_line(form: str, data: st.DataObject) -> None:
    raw = bytearray(packed(ROWS, form))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    if STEP_TABLE.sniff(bytes(raw), ""):  # without checksums a changed digit is another number
        try:
            events = read(bytes(raw))
        except IngestError as error:
            assert "\n" not in str(error)  # noqa: PT017
            return
        blocks = [event for event in events if isinstance(event, Block)]
        assert all(np.isfinite(block.step).all() for block in blocks)
        assert all(len(column) == len(block.step) for block in blocks for column in block.values.values())


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    """Of a file in order only what belongs to one batch is alive, whatever the number of batches."""
    table = pa.table({"step": np.arange(1_000_000), "loss": np.linspace(9.0, 2.0, 1_000_000)})
    path = tmp_path / "log.parquet"
    pq.write_table(table, path, row_group_size=50_000)
    before, peak, n = pa.total_allocated_bytes(), 0, 0
    one = Source(path=str(path), name="log", size=path.stat().st_size, opener=lambda: path.open("rb"))
    for event in STEP_TABLE.read(one, Keys()):
        assert isinstance(event, Block)
        n += len(event.step)
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert n == 1_000_000
    assert peak < table.nbytes / 4  # a few of twenty groups of rows
