"""Golden values of Megatron-LM's functional tests: per metric ``{start_step, end_step, step_interval, values}``.

Format: ``golden_values*.json`` of NVIDIA/Megatron-LM (tests/functional_tests/python_test_utils/common.py). ``values``
maps the step, as text, to a number or "nan"; in older files it is a list. Steps that the three numbers promise and
that ``values`` lacks are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Event, Flaw, Reader, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers._shared import finite, json_document, no_rows
from smelt_scaling.ingest.sources import Source

__all__ = ["MEGATRON_GOLDEN"]

_FIRST = re.compile(rb'\s*\{\s*"[^"]+"\s*:\s*\{\s*"start_step"\s*:')


def _sniff(head: bytes, name: str) -> bool:
    return _FIRST.match(head) is not None


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    metrics = json_document(source)
    table: dict[float, dict[str, Any]] = {}
    promised = lacking = 0
    for metric, series in metrics.items() if isinstance(metrics, dict) else ():
        if not keys.wanted(metric):
            continue
        steps, values = _series(source, metric, series)
        promised, lacking = promised + len(steps), lacking + len(set(steps) - set(values))
        for step, value in values.items():
            table.setdefault(step, {})[metric] = value
    if not table:
        raise no_rows(source, "no metric that is a loss, with values")
    rows = Rows(run=source.name)
    for step in sorted(table):
        if rows.add(step, table[step]):
            yield from rows.take()
    yield from rows.take()
    if lacking:
        yield Flaw(
            code="damaged_records",
            message=f"{lacking} of {promised} values that start_step, end_step and step_interval promise are missing",
            count=lacking,
            run=rows.run,
        )


def _series(source: Source, metric: str, series: Any) -> tuple[range, Mapping[float, Any]]:
    """Return the steps promised and the values by step."""
    if isinstance(series, dict):
        first, last, every = (
            finite(series.get(name)) for name in ("start_step", "end_step", "step_interval")
        )
        values = series.get("values")
        if (
            first is not None
            and last is not None
            and every is not None
            and every >= 1
            and last - first <= 1e8
        ):
            steps = range(int(first), int(last) + 1, int(every))
            if isinstance(values, list):
                return steps, dict(
                    zip(map(float, range(int(first), 1 << 62, int(every))), values, strict=False)
                )
            if isinstance(values, dict):
                by_step = {finite(step): value for step, value in values.items()}
                if None not in by_step:
                    return steps, {step: value for step, value in by_step.items() if step is not None}
    raise IngestError(
        f"{source.path}: metric {metric}: a metric needs start_step, end_step, step_interval and values by step; "
        "write the file again"
    )


MEGATRON_GOLDEN = Reader(
    title="Megatron-LM golden values",
    sniff=_sniff,
    read=_read,
    known_by="a JSON object of metrics that begin with `start_step`",
)
