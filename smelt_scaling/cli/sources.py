"""Where an analysis takes its surfaces from: a study folder, or a published paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt_scaling.cli.options import DEFAULT_STUDY
from smelt_scaling.cli.output import talk
from smelt_scaling.errors import Note, StudyError, UsageError

if TYPE_CHECKING:
    from smelt_scaling.endpoints import Endpoints
    from smelt_scaling.papers import Paper
    from smelt_scaling.study import Study

__all__ = ["Source", "open_source", "read_runs"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """Surfaces with where they come from.

    Parameters
    ----------
    value : Study or Paper
        What the analyses take.
    provenance : dict
        For the JSON record.
    notes : tuple of Note
        Caveats of the source itself.
    """

    value: Study | Paper
    provenance: dict[str, Any]
    notes: tuple[Note, ...] = ()


def open_source(study: Path | None, published: str | None) -> Source:
    """Open the study or the paper, and say on standard error what it is.

    Raises
    ------
    StudyError
        If there is no study.
    UsageError
        If both are named, or the paper is not shipped.
    """
    if published is not None:
        if study is not None:
            raise UsageError("--study and --published: name one of them")
        from smelt_scaling.papers import load_paper

        paper = load_paper(published)
        talk(f"published surfaces of {paper.name}: {', '.join(sorted(paper.surfaces))}")
        return Source(value=paper, provenance={"published": paper.name, "title": paper.title})
    if study is None and not (DEFAULT_STUDY / "study.json").is_file():
        raise StudyError(
            f"{DEFAULT_STUDY}: no study here; fit one with: smelt-scaling fit runs.parquet, name one with --study DIR, "
            "or use published surfaces with --published smelt"
        )
    from smelt_scaling.study import load_study

    folder = study or DEFAULT_STUDY
    value = load_study(folder)
    fitted = value.provenance
    talk(f"study {folder}, fitted {fitted.get('created', 'at an unknown time')}: {', '.join(value.archs)}")
    return Source(
        value=value,
        provenance={
            "study": str(folder),
            "input_sha256": fitted.get("input_sha256"),
            "fit": dict(fitted),
        },
        notes=_stale(fitted, folder),
    )


def read_runs(
    runs: str,
    mapping: Sequence[str] | None,
    units: Sequence[str] | None,
    flops: str | None,
    exclude: Sequence[str] | None,
) -> Endpoints:
    """Read a table of endpoints with the options of the command line."""
    from smelt_scaling.cli.parse import parse_numbers, parse_pairs
    from smelt_scaling.ingest.tidy import read_endpoints

    tiers = parse_numbers("--exclude-tier", exclude)
    endpoints = read_endpoints(
        runs, mapping=parse_pairs("--map", mapping), units=parse_pairs("--unit", units), flops=flops
    )
    for sparsity in tiers:
        endpoints = endpoints.exclude_tier(sparsity)
    return endpoints


def _stale(fitted: Any, folder: Path) -> tuple[Note, ...]:
    """Say so when the table of endpoints is no longer the one that was fitted."""
    from smelt_scaling.study.provenance import file_sha256

    source, known = fitted.get("source"), fitted.get("input_sha256")
    now = file_sha256(source) if source and known else None
    if now is None or now == known:
        return ()
    return (
        Note(
            code="stale_study",
            severity="warning",
            message=f"{source} changed after {folder} was fitted; fit it again with: "
            f"smelt-scaling fit {source} -o {folder}",
        ),
    )
