"""Run files written by wandb offline, and what its own message classes say they hold."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

STEPS = 40
LONG = 70_000  # characters of one record: more than two blocks of 32 KiB


def make(folder: Path) -> None:
    """Write a run that is resumed, one that diverges and crashes, and a long one."""
    os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
    import wandb

    def start(name: str, run_id: str, **options: Any) -> Any:
        quiet = {"console": "off", "disable_git": True, "x_disable_meta": True, "x_disable_stats": True}
        settings = wandb.Settings(host="host", program="train.py", root_dir=str(folder), **quiet)
        return wandb.init(
            project="sweep",
            name=name,
            id=run_id,
            dir=str(folder),
            settings=settings,
            reinit="create_new",
            **options,
        )

    run = start("dense 200M", "resumed1", config={"layers": 12})
    for step in range(0, STEPS + 1, 10):
        run.log({"train/loss": loss(step), "nested": {"loss": loss(step) + 0.5, "text": "fine"}}, step=step)
        run.log({"eval/loss": loss(step) + 0.1, "lr": 1e-3}, step=step)
    run.finish()
    run = start("dense 200M", "resumed1", resume="allow")
    for step in range(30, 2 * STEPS, 10):
        run.log({"train/loss": loss(step) + 0.01}, step=step)
    run.summary["test/loss"] = 2.5
    run.finish()

    run = start("diverged", "diverged1")
    for step, value in enumerate((3.0, math.inf, math.nan, -math.inf)):
        run.log({"loss": value}, step=step)
    run.finish(exit_code=1)

    run = start("long", "long1", config={"prompt": "x" * LONG})
    for step in range(STEPS):
        run.log({"train/loss": loss(step)}, step=step)
    run.finish()

    for path in folder.glob(
        "wandb/*run-*/*"
    ):  # only the run files are of interest, and the long one packs well
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name == "run-long1.wandb":
            path.with_suffix(".wandb.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
            path.unlink()


def loss(step: int) -> float:
    """Return a loss that falls."""
    return 2.0 + 3.0 / (1 + step)


def records(path: Path) -> list[Any]:
    """Return the messages of a run file, parsed by wandb's own classes; the framing is LevelDB's, written out."""
    from wandb.proto.wandb_internal_pb2 import Record

    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    at, begun, found = 7, b"", []
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        crc, size, kind = struct.unpack_from("<IHB", data, at)
        assert crc == zlib.crc32(data[at + 6 : at + 7 + size])
        begun, at = begun + data[at + 7 : at + 7 + size], at + 7 + size
        if kind in (1, 4):
            found.append(Record.FromString(begun))
            begun = b""
    return found


def answers(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what wandb's classes read: file -> run, exit code, and the values of each key as [step, value]."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("wandb/*run-*/*.wandb*")):
        one: dict[str, Any] = {"exit_code": None, "series": {}}
        for record in records(path):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                started = record.run.start_time.ToNanoseconds() / 1e9
                one |= {"id": record.run.run_id, "name": record.run.display_name, "started": started}
            elif kind == "exit":
                one["exit_code"] = record.exit.exit_code
            elif kind == "history":
                for item in record.history.item:
                    value = json.loads(item.value_json)
                    if isinstance(value, float | int):
                        key = ".".join(item.nested_key) or item.key
                        value = value if math.isfinite(value) else str(value)
                        one["series"].setdefault(key, []).append([record.history.step.num, value])
        found[path.relative_to(folder).as_posix()] = one
    return found
