"""Where an analysis takes its surfaces from: a study folder, or a published paper."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from smelt_scaling.cli.options import DEFAULT_STUDY
from smelt_scaling.cli.output import talk, wrapped
from smelt_scaling.errors import Note, StudyError, UsageError

if TYPE_CHECKING:
    from smelt_scaling.endpoints import Endpoints
    from smelt_scaling.papers import Paper
    from smelt_scaling.study import Study

__all__ = [
    "Source",
    "StudySource",
    "named_source",
    "open_losses",
    "open_source",
    "open_study",
    "read_runs",
    "replaced_study",
    "table_provenance",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """Surfaces with where they come from.

    Parameters
    ----------
    value : Study or Paper
        What the analyses take.
    provenance : dict
        For the JSON record.
    archs : tuple of str
        Names of the architectures.
    law, columns : str, tuple of str
        The law and the columns it holds.
    notes : tuple of Note
        Caveats of the source itself.
    """

    value: Study | Paper
    provenance: dict[str, Any]
    archs: tuple[str, ...]
    law: str
    columns: tuple[str, ...]
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class StudySource(Source):
    """A study with where it comes from."""

    value: Study


def open_source(study: Path | None, published: str | None) -> Source:
    """Open the study or the paper, and say on standard error what it is.

    Raises
    ------
    StudyError
        If there is no study.
    UsageError
        If both are named, or the paper is neither shipped nor a file.
    """
    if published is not None:
        if study is not None:
            raise UsageError("--study and --published: name one of them")
        from smelt_scaling.papers import PAPERS, read_published
        from smelt_scaling.study.provenance import file_sha256

        paper = read_published(published)
        talk(*wrapped(f"published surfaces of {paper.name}: {', '.join(sorted(paper.surfaces))}"))
        provenance: dict[str, Any] = {"published": paper.name, "title": paper.title}
        if published not in (*PAPERS, "-"):
            provenance["input_sha256"] = file_sha256(published)
        law = next(iter(paper.surfaces.values())).law
        return Source(
            value=paper,
            provenance=provenance,
            archs=tuple(paper.surfaces),
            law=law.name,
            columns=tuple(law.columns),
        )
    return open_study(study, or_published=True)


def open_study(study: Path | None, *, or_published: bool = False) -> StudySource:
    """Open the study, and say on standard error what it is; a paper would do as well where that is said.

    Raises
    ------
    StudyError
        If there is none.
    """
    if study is None and not (DEFAULT_STUDY / "study.json").is_file():
        raise StudyError(
            f"{DEFAULT_STUDY}: no study here; fit one with: smelt-scaling fit runs.parquet, or name one with "
            "--study DIR"
            f"{', or use published surfaces with --published smelt' if or_published else ''}"
        )
    from smelt_scaling.study import load_study

    folder = study or DEFAULT_STUDY
    if folder.exists() and not (folder / "study.json").is_file():
        raise StudyError(_no_study(folder))
    value = load_study(folder)
    fitted = value.provenance
    talk(
        *wrapped(
            f"study {folder}, fitted {fitted.get('created', 'at an unknown time')}: {', '.join(value.archs)}"
        )
    )
    return StudySource(
        value=value,
        provenance={
            "study": str(folder),
            "input_sha256": fitted.get("input_sha256"),
            "fit": dict(fitted),
        },
        archs=value.archs,
        law=value.law.name,
        columns=tuple(value.law.columns),
        notes=_stale(fitted, folder),
    )


def named_source(study: Path | None, published: str | None) -> Source | None:
    """Open the study or the paper if one is named."""
    return None if study is None and published is None else open_source(study, published)


def table_provenance(table: str) -> dict[str, Any]:
    """Return what the record of an analysis says of the table it read."""
    from smelt_scaling.study.provenance import file_sha256

    return {"source": "<stdin>" if table == "-" else table, "input_sha256": file_sha256(table)}


def _no_study(folder: Path) -> str:
    """Say that something is no study, and name a folder that `fit` would accept."""
    if not folder.is_dir():
        return f"{folder}: is a file; a study is a folder, made with: smelt-scaling fit runs.parquet"
    fresh = folder / "study" if any(folder.iterdir()) else folder
    number = 2
    while fresh != folder and fresh.exists():
        fresh, number = folder / f"study-{number}", number + 1
    return (
        f"{folder}: holds no study (study.json is missing); make one with: smelt-scaling fit runs.parquet "
        f"-o {quote(str(fresh))}"
    )


def replaced_study(folder: Path) -> str | None:
    """Return when the study that a fit is about to replace was made; None if there is none.

    Raises
    ------
    StudyError
        If its ``study.json`` is not one of ours: a fit replaces nothing that it did not write.
    """
    path = folder / "study.json"
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        ours = record["command"] == "fit" and isinstance(record["schema_version"], int)
        made = record["provenance"].get("created", "an unknown time") if ours else ""
    except (KeyError, TypeError, AttributeError, ValueError):  # ValueError: neither JSON nor UTF-8
        ours = False
    if not ours:
        raise StudyError(
            f"{path}: was not written by smelt-scaling, so it is not replaced; choose another -o"
        )
    return str(made)


def read_runs(
    runs: str,
    mapping: Sequence[str] | None,
    units: Sequence[str] | None,
    flops: str | None,
    exclude: Sequence[str] | None,
    include_unfinished: bool,
) -> Endpoints:
    """Read a table of endpoints with the options of the command line."""
    from smelt_scaling.cli.parse import parse_numbers, parse_pairs
    from smelt_scaling.ingest.tidy import read_endpoints

    if runs == "-" and sys.stdin is None:
        raise UsageError("-: standard input is closed; name a file, or pipe the table in")
    tiers = parse_numbers("--exclude-tier", exclude)
    endpoints = read_endpoints(
        runs,
        mapping=parse_pairs("--map", mapping),
        units=parse_pairs("--unit", units),
        flops=flops,
        include_unfinished=include_unfinished,
    )
    for sparsity in tiers:
        endpoints = endpoints.exclude_tier(sparsity)
    return endpoints


def open_losses(
    losses: str, mapping: Sequence[str] | None, units: Sequence[str] | None, flops: str | None
) -> Endpoints:
    """Read a long table of losses with the options of the command line."""
    return read_runs(losses, mapping, units, flops, None, True)


def _stale(fitted: Any, folder: Path) -> tuple[Note, ...]:
    """Say so when the table of endpoints is no longer the one that was fitted."""
    from smelt_scaling.study.provenance import file_sha256

    typed, path, known = (fitted.get(key) for key in ("source", "source_path", "input_sha256"))
    # the file may have been named from another folder, and folders may have moved since
    found = [name for name in (path, typed) if name and Path(name).is_file()]
    if known and path and not found:
        message = f"{typed or path}: no longer there, so whether it changed since the fit cannot be checked"
        return (Note(code="input_missing", severity="info", message=message),)
    if not known or not found or file_sha256(found[0]) == known:
        return ()
    here = typed and Path(typed).resolve() == Path(found[0]).resolve()
    source = typed if here else found[0]
    return (
        Note(
            code="stale_study",
            severity="warning",
            message=f"{source} changed after {folder} was fitted; fit it again with: "
            f"smelt-scaling fit {quote(source)} -o {quote(str(folder))}",
        ),
    )
