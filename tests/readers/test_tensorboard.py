"""TensorBoard event files: real T5X ones, synthetic ones byte by byte, and damage of every kind."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest._crc32c import crc32c, masked
from smelt_scaling.ingest.events import Block, Event, Facts, Flaw, Resumed
from smelt_scaling.ingest.keys import Keys, is_evaluation, is_loss
from smelt_scaling.ingest.readers import READERS
from smelt_scaling.ingest.sources import find_sources

EVERYTHING = Keys(families=("*",))


def slow_crc32c(data: bytes) -> int:
    """CRC-32C bit by bit, from its polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def slow_mask(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return (
        length
        + struct.pack("<I", slow_mask(slow_crc32c(length)))
        + data
        + struct.pack("<I", slow_mask(slow_crc32c(data)))
    )


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number: int, data: bytes | int) -> bytes:
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(time: float, step: int, *values: bytes, more: bytes = b"") -> bytes:
    summary = field(5, b"".join(field(1, value) for value in values)) if values else b""
    return record(b"\x09" + struct.pack("<d", time) + field(2, step) + more + summary)


def simple(tag: str, value: float) -> bytes:
    return field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def tensor(tag: str, dtype: int, value: bytes, *, plugin: str = "scalars") -> bytes:
    metadata = field(9, field(1, field(1, plugin.encode())))
    return field(1, tag.encode()) + metadata + field(8, field(1, dtype) + field(2, b"") + value)


FIRST = record(b"\x09" + struct.pack("<d", 100.0) + field(3, b"brain.Event:2"))
ROWS = [event(100.0 + step, step, simple("loss", 3.0 - step / 8)) for step in range(20)]
FILE = FIRST + b"".join(ROWS)
PLACES = st.integers(0, len(FILE) - 1)


def read(folder: Path, keys: Keys = EVERYTHING) -> list[Event]:
    (source,) = find_sources([folder])
    assert READERS["tensorboard"].sniff(source.head(), source.path)
    return list(READERS["tensorboard"].read(source, keys))


def write(folder: Path, data: bytes, name: str = "events.out.tfevents.1700000000.host") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return folder


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


def test_crc32c_of_published_messages() -> None:
    """RFC 3720, appendix B.4."""
    messages = [bytes(32), b"\xff" * 32, bytes(range(32)), bytes(range(31, -1, -1))]
    assert crc32c(messages).tolist() == [0x8A9136AA, 0x62A8AB43, 0x46DD794E, 0x113FDB5C]


@given(st.lists(st.binary(max_size=70), max_size=9))
def test_crc32c_is_that_of_its_polynomial(messages: list[bytes]) -> None:
    assert crc32c(messages).tolist() == [slow_crc32c(message) for message in messages]
    assert masked(crc32c(messages)).tolist() == [slow_mask(slow_crc32c(message)) for message in messages]


@pytest.mark.parametrize("size", [65_535, 65_536, 200_000])
def test_crc32c_of_a_long_message(size: int) -> None:
    message = bytes(np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8))
    assert crc32c([message, b"a"]).tolist() == [slow_crc32c(message), 0xC1D04330]


def test_rows_facts_and_steps(tmp_path: Path) -> None:
    data = (
        FIRST
        + event(101.0, 7, simple("loss", 2.5), simple("acc", 0.5))
        + event(102.0, 7, simple("lr", 0.25))
        + event(103.0, 7, simple("loss", 2.25))  # logged twice at one step: two rows
        + event(104.0, 2**63 - 1, simple("loss", float("nan")))
    )
    facts, block = read(write(tmp_path / "sweep" / "a", data))
    assert facts == Facts(run="a", values={"created": 100.0})
    assert isinstance(block, Block)
    assert rows([block]) == [
        (7, {"loss": 2.5, "acc": 0.5, "lr": 0.25}),
        (7, {"loss": 2.25}),
        (2.0**63, {"loss": np.inf}),
    ]
    assert block.time is not None
    assert block.time.tolist() == [102.0, 103.0, 104.0]


def test_keys_are_filtered_and_other_plugins_left(tmp_path: Path) -> None:
    numbers = (
        simple("loss", 2.5),
        simple("grad_norm", 1.0),
        tensor("hist/loss", 1, b"", plugin="histograms"),
    )
    folder = write(tmp_path, FIRST + event(101.0, 7, *numbers))
    assert rows(read(folder, Keys())) == [(7, {"loss": 2.5})]


@pytest.mark.parametrize(
    ("dtype", "value", "number"),
    [
        (1, field(4, struct.pack("<f", 1.5)), 1.5),
        (1, field(5, struct.pack("<f", 1.5)), 1.5),  # packed
        (1, b"\x2d" + struct.pack("<f", 1.5), 1.5),  # not packed
        (2, b"\x31" + struct.pack("<d", 0.1), 0.1),
        (3, field(7, 2**64 - 5), -5.0),
        (9, field(10, varint(2**40)), 2.0**40),
        (14, field(13, 0x4049), 3.140625),  # the bfloat16 nearest to pi
        (14, field(4, b"\x49\x40"), 3.140625),
        (19, field(13, 0x4248), 3.140625),  # the half nearest to pi
        (22, field(16, 2**32 - 1), 2.0**32 - 1),
        (23, field(17, varint(2**62)), 2.0**62),
        (1, b"", 0.0),  # a tensor without values holds zeros
    ],
)
def test_tensors_of_one_number(tmp_path: Path, dtype: int, value: bytes, number: float) -> None:
    folder = write(tmp_path, FIRST + event(101.0, 3, tensor("loss", dtype, value)))
    assert rows(read(folder)) == [(3, {"loss": number})]


def test_files_of_a_folder_are_one_run_in_the_order_of_their_wall_time(tmp_path: Path) -> None:
    """The names of the files mislead; the times of their first events do not. A start that logged nothing is silent."""
    later = record(b"\x09" + struct.pack("<d", 200.0) + field(3, b"brain.Event:2"))
    stub = record(b"\x09" + struct.pack("<d", 150.0) + field(3, b"brain.Event:2"))
    folder = tmp_path / "run"
    write(folder, later + event(201.0, 10, simple("loss", 2.0)), "events.out.tfevents.1.host")
    write(folder, stub, "events.out.tfevents.2.host")
    write(folder, FILE, "events.out.tfevents.3.host")
    facts, first, resumed, second = read(tmp_path / "run")
    assert (facts, resumed) == (Facts(run="run", values={"created": 100.0}), Resumed(run="run"))
    assert [step for step, _ in rows([first, second])] == [*range(20), 10]


def test_a_session_start_is_a_restart(tmp_path: Path) -> None:
    start = event(120.0, 12, more=field(7, field(1, 1)))
    _, first, resumed, second = read(
        write(tmp_path / "a", FILE + start + event(121.0, 13, simple("loss", 2.0)))
    )
    assert resumed == Resumed(run="a", step=12)
    assert rows([second]) == [(13, {"loss": 2.0})]
    assert len(rows([first])) == 20


def test_runs_are_named_as_tensorboard_names_them(tmp_path: Path) -> None:
    for name in ("sweep/a", "sweep/b/eval", "top"):
        write(tmp_path / "logs" / name, FILE)
    write(tmp_path / "logs", FILE)
    assert sorted(source.name for source in find_sources([tmp_path / "logs"])) == [
        "logs",
        "sweep/a",
        "sweep/b/eval",
        "top",
    ]
    (alone,) = find_sources([tmp_path / "logs" / "top" / "events.out.tfevents.1700000000.host"])
    assert alone.name == "top"


def test_runs_of_several_folders_are_told_apart(tmp_path: Path) -> None:
    """The shell passes ``logs/*`` as single folders; each has its runs under the same names."""
    for number, name in enumerate(("a/train", "b/train", "b/deep/train")):
        write(tmp_path / name, FILE, f"events.out.tfevents.{number}.host")
    assert sorted(source.name for source in find_sources([tmp_path / "a", tmp_path / "b"])) == [
        "a/train",
        "b/train",
        "deep/train",
    ]


def test_train_and_validation_folders_are_two_runs(tmp_path: Path) -> None:
    """Keras writes these two; only T5X's layout says that they are one model."""
    for name in ("train", "validation"):
        write(tmp_path / name, FILE)
    assert [source.name for source in find_sources([tmp_path])] == ["train", "validation"]


def test_t5x_folders_are_one_run(real_data: Path) -> None:
    """Read off the files with tensorboard's own tools: last training and evaluation rows at step 2,000,000.

    The training losses per token have the wrong sign in the file, and stay as they are logged.
    """
    events = read(real_data / "formats" / "tensorboard", Keys())
    assert events[0] == Facts(run="base", values={"created": 1691309474.0})
    found = rows(events)
    step, last = found[-1]
    per_token = "loss_per_nonpadding_target_token"
    assert step == 2_000_000
    assert last[f"training_eval/pile_r_denoiser/{per_token}"] == pytest.approx(0.9035006165504456, rel=1e-12)
    assert last[f"train/{per_token}"] == pytest.approx(-1.1132601499557495, rel=1e-12)
    assert last["train/learning_rate"] == pytest.approx(0.000707978499121964, rel=1e-12)
    # 101 evaluations and 100 training rows before the restart at 1,000,000; the stub evaluates there once
    assert [step for step, _ in found] == [
        *range(0, 10**6 + 1, 10**4),
        10**6,
        *range(10**6, 2 * 10**6 + 1, 10**4),
    ]
    assert sum(isinstance(event, Resumed) for event in events) == 2
    assert not flaws(events)
    losses = {key for key in last if is_loss(key)}
    assert {key for key in losses if is_evaluation(key)} == {
        key for key in losses if key.startswith("training_eval/")
    }
    assert not is_loss("train/non_padding_fraction/loss_weights")


def test_a_torn_end_is_counted(tmp_path: Path) -> None:
    for cut in range(1, len(ROWS[-1])):
        events = read(write(tmp_path, FILE[:-cut]))
        assert len(rows(events)) == 19
        assert flaws(events) == {"torn_line": 1}


def test_damaged_data_cost_their_record_alone(tmp_path: Path) -> None:
    data = bytearray(FILE)
    data[len(FIRST) + 5 * len(ROWS[0]) + 20] ^= 1
    events = read(write(tmp_path, bytes(data)))
    assert [step for step, _ in rows(events)] == [step for step in range(20) if step != 5]
    (flaw,) = (event for event in events if isinstance(event, Flaw))
    assert flaw.message.endswith(f"1 damaged records and 0 damaged lengths: {len(ROWS[5])} bytes not read")


@pytest.mark.parametrize("at", [0, 7, 11])
def test_after_a_damaged_length_reading_goes_on_with_the_next_certain_record(tmp_path: Path, at: int) -> None:
    data = bytearray(FILE)
    data[len(FIRST) + 5 * len(ROWS[0]) + at] ^= 64
    events = read(write(tmp_path, bytes(data)))
    assert [step for step, _ in rows(events)] == [step for step in range(20) if step != 5]
    (flaw,) = (event for event in events if isinstance(event, Flaw))
    assert flaw.message.endswith(f"0 damaged records and 1 damaged lengths: {len(ROWS[5])} bytes not read")


def test_a_file_of_zeros_at_its_end_is_counted(tmp_path: Path) -> None:
    events = read(write(tmp_path, FILE + bytes(5000)))
    assert len(rows(events)) == 20
    (flaw,) = (event for event in events if isinstance(event, Flaw))
    assert flaw.message.endswith("1 damaged lengths: 5000 bytes not read")


def test_nothing_readable_is_one_line(tmp_path: Path) -> None:
    """The first record says what the file is, and is damaged as everything after it."""
    data = bytearray(FIRST)
    data[-1] ^= 1
    with pytest.raises(IngestError, match=r"host: no event in it can be read; copy the file again$"):
        read(write(tmp_path, bytes(data)))


@settings(max_examples=150)
@given(
    st.integers(0, len(FILE) - 1),
    st.lists(st.tuples(st.integers(0, len(FILE) - 1), st.integers(1, 255)), max_size=3),
)
def test_damage_never_invents_a_row_and_is_always_counted(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(FILE)
    for at, mask in flips:
        data[at] ^= mask
    folder = write(tmp_path_factory.mktemp("a"), bytes(data[: len(FILE) - cut]))
    (source,) = find_sources([folder])
    if not READERS["tensorboard"].sniff(source.head(), source.path):
        return
    try:
        events = list(READERS["tensorboard"].read(source, EVERYTHING))
    except IngestError:
        return
    whole = rows(read(write(tmp_path_factory.mktemp("b"), FILE)))
    found = rows(events)
    complete = max(0, len(data) - cut - len(FIRST)) // len(ROWS[0])
    remaining = iter(whole)
    assert all(row in remaining for row in found)  # a subsequence of what was written
    assert flaws(events) or found == whole[:complete]
