"""Files that make one log together: the event files of a run, the folder of an MLflow run or of a W&B run.

Decided by their paths alone, before anything is opened.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from os.path import commonprefix
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from smelt_scaling.ingest.sources import Source

__all__ = ["together"]

_EVENTS = re.compile(r"(?P<folder>(?:.*/)?)[^/]*\.tfevents\.[^/]*")
#: T5X writes one folder of event files for training and one per evaluated task: folders of one run.
_T5X = re.compile(r"(?P<model>(?:.*/)?)(?:(?P<train>train)|(?:training|inference)_eval/[^/]+)/")
#: What lies beside a ``meta.yaml`` in an MLflow file store: of a run, or of an experiment.
_MLFLOW = re.compile(r"(?:^|(?<=/))(?:metrics|params|tags|inputs|outputs|artifacts|models|datasets|traces)/")

#: The folder of a W&B run, with its run file, copies of its summary and its program's logs.
_WANDB = re.compile(r"(?P<folder>(?:.*/)?(?:offline-)?run-\d{8}_\d{6}-(?P<id>[^/]+)/).*")


def together(sources: Sequence[Source]) -> list[Source]:
    """Return one source per log: the files that belong to one are put beside it."""
    paths = {source.path.replace("\\", "/"): source for source in sources}
    groups: dict[str, list[Source]] = {}
    models = _models(paths)
    for path, source in paths.items():
        groups.setdefault(_key(path, paths.keys(), models), []).append(source)
    joined = {key: _joined(key, group) for key, group in groups.items()}
    folders: dict[str, list[str]] = {}
    for key in (key for key in joined if key.endswith("/")):
        folders.setdefault(joined[key].name, []).append(key)
    for same in (keys for keys in folders.values() if len(keys) > 1):  # of several folders that were given
        shared = commonprefix(same)
        begin = shared.rstrip("/").rfind("/") + 1 if shared in same else shared.rfind("/") + 1
        joined |= {key: replace(joined[key], name=key[begin:].rstrip("/")) for key in same}
    return list(joined.values())


def _models(paths: Iterable[str]) -> set[str]:
    """Folders of T5X models: they have event files for training and for evaluation."""
    kinds: dict[str, set[bool]] = {}
    for path in paths:
        file = _EVENTS.fullmatch(path)
        folder = file and _T5X.fullmatch(file["folder"])
        if folder:
            kinds.setdefault(folder["model"], set()).add(folder["train"] is not None)
    return {model for model, kind in kinds.items() if len(kind) == 2}


def _key(path: str, paths: Collection[str], models: Collection[str]) -> str:
    """Return what the files of one log share: their folder (which ends in a slash), or the path of one of them."""
    file = _EVENTS.fullmatch(path)
    if file:
        folder = _T5X.fullmatch(file["folder"])
        return (folder["model"] or "./") if folder and folder["model"] in models else file["folder"] or "./"
    run = _WANDB.fullmatch(path)
    if run and (log := f"{run['folder']}run-{run['id']}.wandb") in paths:
        return log
    metas = (path[: match.start()] + "meta.yaml" for match in _MLFLOW.finditer(path))
    return next((meta for meta in metas if meta in paths), path)


def _joined(key: str, group: list[Source]) -> Source:
    """Put a group behind one source: behind the one named, or behind the largest event file, which is no stub."""
    first = max(group, key=lambda source: source.size)
    if key.endswith("/"):
        name = _folder_name(first, key)
    else:
        first = next(source for source in group if source.path.replace("\\", "/") == key)
        name = first.name
    others = tuple(source for source in group if source is not first)
    return replace(first, name=name, size=sum(source.size for source in group), beside=others)


def _folder_name(source: Source, folder: str) -> str:
    """Return the folder's path within the one that was given, as TensorBoard shows runs; at the least its own name."""
    below = source.path.count("/") - (0 if folder == "./" else folder.count("/")) + 1
    within = "/".join(source.name.replace("\\", "/").split("/")[:-below])
    own = folder.rstrip("./").rpartition("/")[2]
    return within or own or (source.local.resolve().parents[below - 1].name if source.local else source.name)
