"""Event files written by tensorboard itself, and what its own reader says they hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

STARTS = ((0, 40), (30, 60))  # first and last step of each start of the program: the second repeats ten steps


def make(folder: Path) -> None:
    """Write one run as loggers do: one event per scalar, then three folders more with other kinds of events."""
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary import Writer
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    def event(step: int, time: float, **scalars: float) -> Any:
        values = [
            summary_pb2.Summary.Value(tag=tag.replace("__", "/"), simple_value=x)
            for tag, x in scalars.items()
        ]
        return event_pb2.Event(wall_time=time, step=step, summary=summary_pb2.Summary(value=values))

    for number, (first, last) in enumerate(STARTS):
        writer = EventFileWriter(str(folder / "restarted"), filename_suffix=f".{number}")
        for step in range(first, last + 1):
            time = 1.7e9 + 1000 * number + step
            writer.add_event(event(step, time, train__loss=loss(step) + 0.01 * number))
            writer.add_event(event(step, time + 0.1, learning_rate=1e-3 * (1 - step / 100)))
            if step % 10 == 0:
                writer.add_event(
                    event(step, time + 0.2, val__loss=loss(step) + 0.1, val__ppl=math.exp(loss(step) + 0.1))
                )
        writer.close()

    writer = EventFileWriter(str(folder / "diverged"))
    for step, value in enumerate((3.0, 7.5, math.inf, math.nan, -math.inf)):
        writer.add_event(event(step, 1.7e9 + step, loss=value))
    writer.add_event(event(2**40, 1.7e9 + 9, loss=0.0))
    writer.close()

    tensors = Writer(str(folder / "tensors"))
    for step in range(0, 50, 5):
        tensors.add_scalar("eval/loss", loss(step), step)
    tensors.close()

    session = EventFileWriter(str(folder / "sessions"))
    session.add_event(event(0, 1.7e9, loss=3.0))
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    session.add_event(event_pb2.Event(wall_time=1.7e9 + 1, step=0, session_log=start))
    session.add_event(event(0, 1.7e9 + 2, loss=3.1))
    session.close()

    dtypes = EventFileWriter(str(folder / "dtypes"))
    for step, (name, value) in enumerate(typed()):
        summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=f"{name}/loss", tensor=value)])
        dtypes.add_event(event_pb2.Event(wall_time=1.7e9 + step, step=step, summary=summary))
    dtypes.close()

    for number, path in enumerate(
        sorted(folder.glob("*/events*"))
    ):  # this machine's name and clock are nobody's business
        path.rename(path.with_name(f"events.out.tfevents.{1_700_000_000 + number}.host.1.{number}"))


def loss(step: int) -> float:
    """Return a loss that falls."""
    return 2.0 + 3.0 / (1 + step)


def typed() -> list[tuple[str, Any]]:
    """Return tensors of one number of every type of number that tensorboard reads, and two that are no scalars."""
    import numpy as np
    from tensorboard.util.tensor_util import make_tensor_proto

    types = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16")
    made = [(name, make_tensor_proto(np.array(3, dtype=name))) for name in types]
    made += [(f"{name}_of_one", make_tensor_proto(np.full((1, 1), -2.5, dtype=name))) for name in types[:3]]
    return [*made, ("vector", make_tensor_proto(np.ones(2))), ("text", make_tensor_proto("three"))]


def answers(folder: Path) -> dict[str, dict[str, list[list[float | str]]]]:
    """Return what tensorboard reads: run -> tag -> [step, value]."""
    from tensorboard.backend.event_processing.event_accumulator import SCALARS, TENSORS, EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    found: dict[str, dict[str, list[list[float | str]]]] = {}
    for run in sorted(path for path in folder.iterdir() if path.is_dir()):
        accumulator = EventAccumulator(
            str(run), size_guidance={SCALARS: 0, TENSORS: 0}, purge_orphaned_data=False
        )
        accumulator.Reload()
        tags = accumulator.Tags()
        series = {tag: [(e.step, e.value) for e in accumulator.Scalars(tag)] for tag in tags[SCALARS]}
        for tag in tags[TENSORS]:
            arrays = [(e.step, make_ndarray(e.tensor_proto)) for e in accumulator.Tensors(tag)]
            if all(array.size == 1 and array.dtype.kind in "fiu" for _, array in arrays):
                series[tag] = [(step, float(array.reshape(-1)[0])) for step, array in arrays]
        found[run.name] = {
            tag: [[step, x if math.isfinite(x) else str(x)] for step, x in values]
            for tag, values in series.items()
        }
    return found
