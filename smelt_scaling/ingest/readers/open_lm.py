"""Model files of open_lm experiments: ``hyperparameters``, and ``results`` of checkpoints on validation sets.

Format: ``exp_data/models/*.json`` of mlfoundations/scaling, written by dcnlp from open_lm's evaluations. The validation
set is told only by a path: the folder of its files names it. Tokens are those planned, and hold for the checkpoint that
``checkpoint_url`` names; checkpoints are numbered by epoch, which is all the file says of their step. Standard errors
are the half width of the 95 % interval over sequences, by 1.96.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Event, Facts, Flaw, Reader, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers._shared import finite, json_document, no_rows, text_of
from smelt_scaling.ingest.sources import Source

__all__ = ["OPEN_LM"]

_SIGNATURE = re.compile(rb'"open_lm_(version|args)"\s*:')
_CHECKPOINT = re.compile(r"(?:epoch|step)_(\d{1,15})(?!.*(?:epoch|step)_\d)", re.ASCII)
_QUANTILE = 1.959963984540054  # 97.5 % of the normal distribution


def _sniff(head: bytes, name: str) -> bool:
    return head.lstrip().startswith(b"{") and _SIGNATURE.search(head) is not None


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    document = json_document(source)
    model = document if isinstance(document, dict) else {}
    run = text_of(model.get("name")) or source.name
    settings = model.get("hyperparameters")
    settings = settings if isinstance(settings, dict) else {}
    stated = {
        "planned_tokens": finite(settings.get("tokens")),
        "batch_size": finite(settings.get("global_bs")),
        "N": finite(settings.get("params")),
    }
    facts: dict[str, float | str] = {name: value for name, value in stated.items() if value is not None}
    if "seed" in settings:
        facts["seed"] = str(settings["seed"])
    yield Facts(run=run, values=facts)

    final = _step(model.get("checkpoint_url"))
    results = model.get("results")
    table: dict[float, dict[str, Any]] = {}
    sets: dict[str, str] = {}  # key -> path of the validation set
    lacking = 0
    for result in results if isinstance(results, list) else ():
        at = result.get("checkpoint_path", model.get("checkpoint_url")) if isinstance(result, dict) else None
        if (step := _step(at)) is None:
            lacking += 1
            continue
        row = table.setdefault(step, {})
        key = _key(result, sets)
        if not keys.wanted(key):
            continue
        if row.setdefault(key, result.get("loss")) != result.get("loss"):
            raise IngestError(f"{source.path}: two losses of {key} at {at}: drop the stale result")
        row[f"{key}_se"] = _standard_error(result)
    if not table:
        raise no_rows(source, "no result of a numbered checkpoint")
    rows = Rows(run=run)
    for step in sorted(table):
        rows.add(step, {**table[step], "tokens": stated["planned_tokens"] if step == final else None})
    yield from rows.take()
    if lacking:
        yield Flaw(
            code="unread_lines",
            message=f"{lacking} results name no numbered checkpoint",
            count=lacking,
            run=run,
        )


def _step(checkpoint: Any) -> float | None:
    match = _CHECKPOINT.search(text_of(checkpoint))
    return float(match[1]) if match else None


def _key(result: Mapping[str, Any], sets: dict[str, str]) -> str:
    """Name a validation set by the folder of its files; by the whole path where another has that name."""
    paths = result.get("val_data")
    path = PurePosixPath(text_of(paths[0] if isinstance(paths, list) and paths else paths))
    key = f"eval/{path.parent.name or path.stem}/loss"
    return key if sets.setdefault(key, str(path)) == str(path) else f"eval/{path}/loss"


def _standard_error(result: Mapping[str, Any]) -> float | None:
    low, high = finite(result.get("loss_sequences_lower_95")), finite(result.get("loss_sequences_upper_95"))
    return None if low is None or high is None else (high - low) / (2 * _QUANTILE)


OPEN_LM = Reader(
    title="open_lm model file",
    sniff=_sniff,
    read=_read,
    known_by="a JSON object with `open_lm_version` or `open_lm_args`",
    states=("seed", "planned_tokens", "batch_size", "N"),
)
