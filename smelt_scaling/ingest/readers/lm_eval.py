"""Results of lm-evaluation-harness: metrics of tasks, at a checkpoint that only names tell.

Format: ``results`` of lm_eval.simple_evaluate as saved by version 0.3 (one file, keys ``acc`` and ``acc_stderr``) and
by 0.4 and later (``MODEL/results_DATE.json`` of lm_eval/loggers/evaluation_tracker.py, keys ``acc,none`` with the
filter after the comma, "N/A" for no standard error). Keys are "task/metric"; the filter "none" is left out. They are
wanted where a family asks for them (``*/acc``). The step stands in the model's revision or path, or in a file or folder
name: ``step143000``, ``checkpoint-500``, ``iter_0005000``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Event, Reader, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers._shared import chooser, finite, json_document, no_rows, text_of
from smelt_scaling.ingest.sources import Source

__all__ = ["LM_EVAL"]

_FIRST = re.compile(rb'\s*\{\s*"results"\s*:\s*\{')
_SIGNATURE = re.compile(rb'_stderr(,[^"]*)?"\s*:|"versions"\s*:\s*\{')
_STEP = re.compile(r"(?:^|[/_\-.])(?:global_?)?(?:step|iter|checkpoint|ckpt)[_-]?(\d{1,15})(?!\d)", re.ASCII)


def _sniff(head: bytes, name: str) -> bool:
    return _FIRST.match(head) is not None and _SIGNATURE.search(head) is not None


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    document = json_document(source)
    record: Mapping[str, Any] = document if isinstance(document, dict) else {}
    config = record.get("config")
    arguments = _arguments(config.get("model_args") if isinstance(config, dict) else None)
    model = text_of(record.get("model_name")) or arguments.get("pretrained", "")
    places = PurePath(source.path).parts[-2:]
    found = (_STEP.search(text) for text in (arguments.get("revision", ""), model, places[-1], places[0]))
    match = next(filter(None, found), None)
    if match is None:
        raise IngestError(
            f"{source.path}: no step in the model's revision or path, nor in the name of the file or its folder: "
            "name the file like results_step1000.json"
        )
    values = dict(_metrics(record.get("results")))
    if not values:
        raise no_rows(source, "no metric of a task")
    rows = Rows(run=_STEP.sub("", model) or source.name)
    rows.add(
        float(match[1]),
        chooser(keys)(values),
        finite(record.get("date")),
    )
    yield from rows.take()


def _arguments(text: Any) -> dict[str, str]:
    """Return arguments of a model, written ``name=value,…`` or as an object."""
    if isinstance(text, dict):
        return {name: str(value) for name, value in text.items()}
    pairs = (argument.partition("=") for argument in text_of(text).split(","))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _metrics(results: Any) -> Iterator[tuple[str, Any]]:
    for task, metrics in results.items() if isinstance(results, dict) else ():
        for metric, value in metrics.items() if isinstance(metrics, dict) else ():
            if isinstance(value, int | float):
                yield f"{task}/{metric.removesuffix(',none')}", value


LM_EVAL = Reader(
    title="lm-evaluation-harness results",
    sniff=_sniff,
    read=_read,
    known_by="a JSON object with `results` first, and `versions` or `..._stderr`",
)
