"""The endpoints that a planned study will give, from a file that names its models and its schedule."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt_scaling.accounting import Lengths, get_convention
from smelt_scaling.accounting.grid import GridModel, Schedule, grid_columns
from smelt_scaling.analyses.frames import Carried
from smelt_scaling.analyses.models import NamedModel, long_documents, open_model
from smelt_scaling.errors import DataError, Note, SmeltScalingError, UsageError, merge_notes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["endpoint_grid"]

#: Keys of the file -> whether they must be there.
_TOP = {"schedule": True, "model": True, "convention": False, "doc_len": False, "kv_bytes": False}
_SCHEDULE = {
    "steps": True,
    "sequences": True,
    "sequence_length": True,
    "branch_tokens": False,
    "kind": False,
}
_MODEL = {"arch": True, "scale": True, "cell": False, "config": True, "control": False, "S": False}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


#: Key -> whether a value is one, and how it is written.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "steps": (
        lambda value: isinstance(value, list) and all(map(_count, value)),
        "a list of whole numbers of 1 or more, such as [10000, 50000]",
    ),
    "sequences": (_count, "a whole number of 1 or more"),
    "sequence_length": (_count, "a whole number of 1 or more"),
    "branch_tokens": (_number, "a number of tokens, such as 1e10"),
    "doc_len": (_number, "a number of tokens, such as 784"),
    "kv_bytes": (_count, "a whole number of bytes, such as 2 for bf16"),
    "config": (_text, "the name of a model, such as model.toml"),
    "control": (_text, "the name of a model, such as dense.toml"),
    "S": (lambda value: _number(value) and -1 < value < 1, "a fraction in [0, 1), such as 0.95"),
}


def endpoint_grid(path: str | Path) -> pd.DataFrame:
    """List the endpoints of a planned study.

    Parameters
    ----------
    path : str or Path
        A TOML file with a table ``schedule`` (``steps, sequences, sequence_length``, and ``branch_tokens``, ``kind``)
        and one ``[[model]]`` per architecture and cell (``arch, scale, config``, and ``cell``, ``control`` or ``S``);
        ``config`` and ``control`` are what `open_model` takes, relative to the file. ``convention``, ``doc_len`` and
        ``kv_bytes`` may stand before them. Instead of a file: ``smelt`` for the SMELT paper's fitted grid.

    Returns
    -------
    DataFrame
        A table of endpoints without losses: ``arch, scale, cell, trunk, run, F, S, D, N, N_act, C, kv, step``.
        ``.attrs`` holds ``notes``, ``settings`` and ``windows``: per architecture how many cells and endpoints it has,
        the range of F, D and C, and the FLOPs to train all of it.

    Raises
    ------
    DataError
        If the file breaks a rule; it names the key.

    Examples
    --------
    >>> grid = endpoint_grid("smelt")
    >>> len(grid), f"{grid['C'].min():.1e}", f"{grid['C'].max():.1e}"
    (144, '1.3e+19', '2.2e+21')
    """
    import pandas as pd

    if str(path) == "smelt":
        models, schedule, options, notes = _survey()
    else:
        models, schedule, options, notes = _read(Path(path))
    try:
        frame = pd.DataFrame(grid_columns(models, schedule, **options))
    except UsageError as error:
        raise DataError(f"{path}: {str(error).removeprefix('grid: ')}") from error
    frame.attrs = {
        "notes": [note.to_dict() for note in merge_notes(notes)],
        "settings": {
            "source": str(path),
            "convention": options["convention"],
            "document_mean": (options["lengths"] or Lengths.of(schedule.sequence_length)).mean,
            "schedule": {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in vars(schedule).items()
            },
            "tokens_trained": schedule.tokens_trained,
        },
        "windows": Carried(_window(frame, schedule)),
    }
    return frame


def _window(frame: pd.DataFrame, schedule: Schedule) -> list[dict[str, Any]]:
    rows = []
    for arch, own in frame.groupby("arch", sort=True):
        per_cell = own.groupby("cell")["F"].first()
        rows.append(
            {
                "arch": str(arch),
                "cells": int(own["cell"].nunique()),
                "endpoints": len(own),
                **{f"{name}_{end}": float(getattr(own[name], how)()) for name in "FDC" for end, how in _ENDS},
                "flops": float(per_cell.sum()) * schedule.tokens_trained,
            }
        )
    return rows


_ENDS = (("lo", "min"), ("hi", "max"))


def _survey() -> tuple[list[GridModel], Schedule, dict[str, Any], list[Note]]:
    """Return the SMELT paper's 24 fitted models and its schedule."""
    from smelt_scaling.papers import load_paper
    from smelt_scaling.papers.example import paper_grid

    models, schedule, lengths = paper_grid(load_paper("smelt"))
    notes = list(open_model(f"smelt:{models[0].config.name}").notes)
    return models, schedule, {"convention": "smelt", "lengths": lengths}, notes


def _read(path: Path) -> tuple[list[GridModel], Schedule, dict[str, Any], list[Note]]:
    """Read the file of a study."""
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror or error}); give a TOML file, or smelt for the paper's own grid"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: is not TOML ({error})") from error
    _check(record, _TOP, str(path), "")
    _check(record["schedule"], _SCHEDULE, str(path), "schedule.")
    if not isinstance(record["model"], list):
        raise DataError(f"{path}: key model must be a list of tables, [[model]]")
    try:
        schedule = Schedule(**{**record["schedule"], "steps": tuple(record["schedule"]["steps"])})
    except UsageError as error:
        raise DataError(f"{path}: {error}") from error
    notes: list[Note] = []
    models = []
    for number, row in enumerate(record["model"], 1):
        where = f"model {number}."
        _check(row, _MODEL, str(path), where)
        try:
            config, control = _open(row["config"], path), _open(row.get("control"), path)
            assert config is not None
            notes += [*config.notes, *(control.notes if control else ())]
            models.append(
                GridModel(
                    arch=str(row["arch"]),
                    scale=str(row["scale"]),
                    cell=str(row.get("cell", row["scale"])),
                    config=config.config,
                    control=control.config if control else None,
                    S=row.get("S"),
                )
            )
        except SmeltScalingError as error:
            raise DataError(f"{path}: model {number}: {error}") from error
    try:
        lengths = Lengths.of(record["doc_len"]) if "doc_len" in record else None
        options: dict[str, Any] = {
            "convention": get_convention(record.get("convention", "smelt")).name,
            "lengths": lengths,
        }
    except (UsageError, ValueError, TypeError) as error:
        raise DataError(f"{path}: {error}") from error
    notes += long_documents(lengths, schedule.sequence_length)
    if "kv_bytes" in record:
        options["bytes_per_element"] = record["kv_bytes"]
    return models, schedule, options, notes


def _open(name: str | None, study: Path) -> NamedModel | None:
    """Open a model that a study names, relative to its file."""
    if name is None:
        return None
    beside = study.parent / str(name)
    return open_model(str(beside) if beside.exists() else str(name))


def _check(record: Any, known: Mapping[str, bool], source: str, prefix: str) -> None:
    """Refuse unknown and missing keys, and values of another kind."""
    if not isinstance(record, Mapping):
        raise DataError(f"{source}: key {prefix.rstrip('.')} must be a table")
    for key in record:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
            raise DataError(f"{source}: key {prefix}{key} is unknown; {hint}")
    for key, needed in known.items():
        if needed and key not in record:
            raise DataError(f"{source}: key {prefix}{key} is missing")
    for key, value in record.items():
        fits, written = _KINDS.get(key, (None, ""))
        if fits is not None and not fits(value):
            raise DataError(f"{source}: key {prefix}{key} {value!r}: must be {written}")
