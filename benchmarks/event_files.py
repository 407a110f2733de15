"""How fast the scalars of an event file are read, with the checksums of every record checked."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.recorder import spread, table, timed

TITLE = "Event files"
GOAL = 1e5  # scalars per second
SCALARS = 200_000


def write_events(path: Path, scalars: int) -> None:
    """Write a file as loggers do, one event per scalar, of two tags in turn."""
    from smelt_scaling.ingest._crc32c import crc32c, masked

    first = b"\x09" + struct.pack("<d", 1.7e9) + b"\x1a\x0dbrain.Event:2"
    events = [first]
    for number in range(scalars):
        tag = (b"train/loss", b"learning_rate")[number % 2]
        value = b"\x0a" + bytes([len(tag)]) + tag + b"\x15" + struct.pack("<f", 3 / (1 + number))
        summary = b"\x0a" + bytes([len(value)]) + value
        step = number // 2
        varint = bytes([step & 127 | 128, step >> 7 & 127 | 128, step >> 14])
        events.append(
            b"\x09"
            + struct.pack("<d", 1.7e9 + step)
            + b"\x10"
            + varint
            + b"\x2a"
            + bytes([len(summary)])
            + summary
        )
    lengths = [struct.pack("<Q", len(event)) for event in events]
    of_lengths, of_events = masked(crc32c(lengths)), masked(crc32c(events))
    parts = zip(lengths, of_lengths, events, of_events, strict=True)
    path.write_bytes(b"".join(a + struct.pack("<I", b) + c + struct.pack("<I", d) for a, b, c, d in parts))


def measure(scalars: int = SCALARS, repeats: int = 5) -> dict[str, Any]:
    """Read one file several times."""
    from smelt_scaling.ingest._tfrecord import Lost, records
    from smelt_scaling.ingest.events import Block
    from smelt_scaling.ingest.keys import Keys
    from smelt_scaling.ingest.readers import READERS
    from smelt_scaling.ingest.sources import chunks, find_sources

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.out.tfevents.1700000000.host"
        write_events(path, scalars)
        (source,) = find_sources([folder])
        megabytes = path.stat().st_size / 1e6
        framing, reading = [], []
        for _ in range(repeats):
            framing.append(timed(lambda: sum(1 for _ in records(chunks(source), Lost())))[1])
            events, clock = timed(lambda: list(READERS["tensorboard"].read(source, Keys())))
            reading.append(clock)
            found = sum(
                int((x == x).sum()) for e in events if isinstance(e, Block) for x in e.values.values()
            )
            if found != scalars:
                raise RuntimeError(f"{found} of {scalars} scalars were read")
    return {
        "scalars": scalars,
        "megabytes": megabytes,
        "repeats": repeats,
        "checked": spread(clock.cpu for clock in framing),
        "read": spread(clock.cpu for clock in reading),
    }


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    rows = [
        [name, f"{values[key]['min']:.2f}", f"{values['scalars'] / values[key]['min']:,.0f}"]
        for name, key in (
            ("records, both checksums of each", "checked"),
            ("all of reading", "read"),
        )
    ]
    text = (
        f"One event file of {values['scalars']:,} scalars, one event each ({values['megabytes']:.0f} MB), read "
        f"{values['repeats']} times in one process, in CPU seconds. The goal is {GOAL:,.0f} a second."
    )
    return text + "\n\n" + table(["what", "CPU s, min", "scalars per s"], rows)
