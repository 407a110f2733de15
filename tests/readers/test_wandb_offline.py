"""W&B run files: framing and messages written out byte by byte, and damage of every kind."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Block, Event, Facts, Flaw, Resumed
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers import READERS
from smelt_scaling.ingest.sources import find_sources

HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 32768


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number: int, data: bytes | int) -> bytes:
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def chunk(kind: int, data: bytes) -> bytes:
    return struct.pack("<IHB", zlib.crc32(bytes([kind]) + data), len(data), kind) + data


def framed(records: list[bytes]) -> bytes:
    """Write records as LevelDB's log format has them."""
    out = HEADER
    for record in records:
        kind_first = True
        while True:
            room = BLOCK - len(out) % BLOCK
            if room < 7:
                out += bytes(room)
                room = BLOCK
            part, record = record[: room - 7], record[room - 7 :]
            out += chunk((1 if kind_first else 4) if not record else (2 if kind_first else 3), part)
            kind_first = False
            if not record:
                break
    return out


def item(key: str, value: str, *, nested: bool = True) -> bytes:
    parts = [field(2, part.encode()) for part in key.split(".")] if nested else [field(1, key.encode())]
    return field(1, b"".join(parts) + field(16, value.encode()))


def history(number: int, step: int, more: str = "", **values: str) -> bytes:
    items = [item(key.replace("__", "/"), value) for key, value in values.items()]
    own = item("_step", str(step)) + item("_timestamp", str(1.7e9 + step))
    return field(1, number) + field(2, b"".join(items) + own + field(2, field(1, step)))


def run(number: int = 1, *, name: str = "dense", more: bytes = b"") -> bytes:
    start = field(17, field(1, 1_700_000_000) + field(2, 500_000_000))
    return field(1, number) + field(17, field(1, b"id1") + field(8, name.encode()) + start + more)


def finish(number: int, code: int = 0) -> bytes:
    return field(1, number) + field(18, field(1, code) if code else b"")


def read(folder: Path, data: bytes, keys: Keys = Keys(families=("*",))) -> list[Event]:  # noqa: B008
    folder.mkdir(exist_ok=True)
    (folder / "run-id1.wandb").write_bytes(data)
    (source,) = find_sources([folder])
    assert READERS["wandb_offline"].sniff(source.head(), source.path)
    return list(READERS["wandb_offline"].read(source, keys))


def rows(events: list[Event]) -> list[tuple[float, dict[str, float]]]:
    return [
        (
            float(step),
            {key: float(column[i]) for key, column in block.values.items() if column[i] == column[i]},
        )
        for block in events
        if isinstance(block, Block)
        for i, step in enumerate(block.step)
    ]


def flaws(events: list[Event]) -> dict[str, int]:
    return {event.code: event.count for event in events if isinstance(event, Flaw)}


def test_rows_and_facts(tmp_path: Path) -> None:
    records = [
        run(),
        history(2, 0, train__loss="3.5", acc="true", note='"x"', table='{"a":1}'),
        history(3, 10, train__loss='"NaN"', lr="1e-3", **{"val.c4.loss": "2.5"}),
        run(4, name="renamed"),
        history(5, 20, train__loss="Infinity"),
        finish(6),
    ]
    facts, block = read(tmp_path, framed(records))
    assert facts == Facts(
        run="renamed", values={"id": "id1", "created": 1_700_000_000.5, "status": "finished"}
    )
    assert rows([block]) == [
        (0, {"train/loss": 3.5}),
        (10, {"train/loss": np.inf, "lr": 0.001, "val.c4.loss": 2.5}),
        (20, {"train/loss": np.inf}),
    ]
    assert isinstance(block, Block)
    assert block.time is not None
    assert block.time.tolist() == [1.7e9, 1.7e9 + 10, 1.7e9 + 20]


@pytest.mark.parametrize(
    ("last", "status"), [([], "running"), ([finish(2)], "finished"), ([finish(2, 255)], "crashed")]
)
def test_status(tmp_path: Path, last: list[bytes], status: str) -> None:
    (facts,) = read(tmp_path, framed([run(), *last]))
    assert isinstance(facts, Facts)
    assert facts.values["status"] == status


def test_resumed_and_forked(tmp_path: Path) -> None:
    more = field(14, 500) + field(18, 1) + field(23, field(1, b"id0"))
    facts, resumed, _ = read(tmp_path, framed([run(more=more), history(2, 500, loss="2.5")]))
    assert isinstance(facts, Facts)
    assert facts.values["parent"] == "id0"
    assert resumed == Resumed(run="dense", step=500.0)


def test_what_only_the_summary_holds_is_a_last_row(tmp_path: Path) -> None:
    """The summary repeats the last values of the history, or its extremes; neither is a row."""
    summary = [
        item("loss", "2.5"),
        item("eval.min", "1"),
        item("test/loss", "2.75", nested=False),
        item("_step", "9"),
    ]
    records = [run(), history(2, 10, loss="2.5", eval="2"), field(1, 3) + field(3, b"".join(summary))]
    assert rows(read(tmp_path, framed(records))) == [
        (10, {"loss": 2.5, "eval": 2.0}),
        (10, {"test/loss": 2.75}),
    ]


def test_another_key_is_the_step(tmp_path: Path) -> None:
    records = [run(), history(2, 0, loss="3.5", **{"trainer/global_step": "400"}), history(3, 1, loss="3.25")]
    events = read(tmp_path, framed(records), Keys(named={"step": "trainer/global_step"}))
    assert rows(events) == [(400, {"loss": 3.5})]
    (flaw,) = (event for event in events if isinstance(event, Flaw))
    assert (flaw.code, flaw.message) == ("unread_lines", "1 rows have no trainer/global_step")


def test_another_version_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        IngestError, match=r"run-id1.wandb: a W&B file of another version than 0; sync it and export"
    ):
        read(tmp_path, HEADER[:-1] + b"\x01" + chunk(1, run()))


def test_nothing_readable_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match=r"run-id1.wandb: no record in it can be read; copy the file again"):
        read(tmp_path, HEADER + bytes(100))


def test_the_other_files_of_a_run_belong_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "wandb" / "run-20260101_120000-abc"
    (folder / "files").mkdir(parents=True)
    (folder / "files" / "wandb-summary.json").write_text('{"eval/loss": 2.5}')
    (folder / "run-abc.wandb").write_bytes(framed([run()]))
    (source,) = find_sources([tmp_path])
    assert source.path.endswith("run-abc.wandb")
    assert [part.path for part in source.beside] == [str(folder / "files" / "wandb-summary.json")]


# -- three blocks: records that cross them, and damage -----------------------------------------------------------------

LONG = [
    run(),
    *(history(2 + step, step, loss=str(3 - step / 1000)) for step in range(400)),
    field(1, 402) + field(5, b"x" * 40_000),  # a configuration longer than a block
    *(history(403 + step, 400 + step, loss=str(3 - step / 1000)) for step in range(400)),
    finish(803),
]
FILE = framed(LONG)
WHOLE = 800


def test_records_cross_blocks(tmp_path: Path) -> None:
    assert len(FILE) > 3 * BLOCK
    events = read(tmp_path, FILE)
    assert [step for step, _ in rows(events)] == list(range(WHOLE))
    assert not flaws(events)


@pytest.mark.parametrize("step", [7, 799])
@pytest.mark.parametrize("at", [0, 4, 5, 6, 20])  # of CRC, length, type and data
def test_a_damaged_chunk_costs_its_record_alone(tmp_path: Path, step: int, at: int) -> None:
    data = bytearray(FILE)
    record = next(
        record for record in LONG if history(0, step, loss=str(3 - step % 400 / 1000))[2:] in record
    )
    data[FILE.index(chunk(1, record)) + at] ^= 0x80
    events = read(tmp_path, bytes(data))
    assert [found for found, _ in rows(events)] == [other for other in range(WHOLE) if other != step]
    (flaw,) = (event for event in events if isinstance(event, Flaw))
    assert flaw.message == f"1 records lost in 1 damaged places, {7 + len(record)} bytes"


def test_a_damaged_part_costs_the_record_that_it_belongs_to(tmp_path: Path) -> None:
    data = bytearray(FILE)
    data[FILE.index(b"x" * 30_000) + 32_000] ^= 1
    events = read(tmp_path, bytes(data))
    assert len(rows(events)) == WHOLE
    (flaw,) = (event for event in events if isinstance(event, Flaw))
    assert flaw.message.startswith("1 records lost in 1 damaged places, 40")


def test_a_torn_end_is_counted(tmp_path: Path) -> None:
    last = 7 + len(finish(803))
    for cut in range(1, last):
        events = read(tmp_path, FILE[:-cut])
        assert len(rows(events)) == WHOLE
        assert flaws(events) == {"torn_line": 1}
        assert isinstance(events[0], Facts)
        assert events[0].values["status"] == "running"


def test_a_block_of_zeros_in_the_middle_is_counted(tmp_path: Path) -> None:
    """As after a crash of the machine: the file system knew the length, not the data."""
    data = FILE[:BLOCK] + bytes(BLOCK) + FILE[2 * BLOCK :]
    events = read(tmp_path, data)
    assert rows(events)[-1][0] == WHOLE - 1
    assert flaws(events)["damaged_records"] >= WHOLE - len(rows(events))


@settings(max_examples=60)
@given(
    st.integers(0, len(FILE) - 8),
    st.lists(st.tuples(st.integers(7, len(FILE) - 1), st.integers(1, 255)), max_size=3),
)
def test_damage_never_invents_a_row_and_is_always_counted(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(FILE)
    for at, mask in flips:
        data[at] ^= mask
    try:
        events = read(tmp_path_factory.mktemp("a"), bytes(data[: len(FILE) - cut]))
    except IngestError:
        return
    found = rows(events)
    remaining = iter(range(WHOLE))
    assert all(step in remaining and values == {"loss": 3 - step % 400 / 1000} for step, values in found)
    if not flaws(events):
        assert [step for step, _ in found] == list(range(len(found)))
        assert (len(found) < WHOLE) <= (cut > 0)
