"""What ties a report together: one page that says all, and a list of every file with its digest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt_scaling._json import dumps
from smelt_scaling.errors import Note, StudyError
from smelt_scaling.reporting.markdown import escape_markdown

if TYPE_CHECKING:
    from smelt_scaling.reporting.build import Report

__all__ = ["MANIFEST", "files_of", "write_manifest", "write_page"]

MANIFEST = "manifest.json"


def write_page(folder: Path, pages: Sequence[str], absent: Mapping[str, str], notes: Sequence[Note]) -> Path:
    """Write ``report.md``: every table and figure in order, what is absent, and every caveat once."""
    lines = ["# Report", "", *pages]
    if absent:
        lines += ["## Not in this report", ""]
        for why in dict.fromkeys(absent.values()):
            names = ", ".join(name for name, reason in absent.items() if reason == why)
            lines.append(f"- {escape_markdown(f'{names}: {why}')}")
        lines.append("")
    if notes:
        lines += ["## Notes", ""]
        lines += [f"- {note.severity} `{note.code}`: {escape_markdown(note.message)}" for note in notes]
        lines.append("")
    path = folder / "report.md"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def write_manifest(report: Report, provenance: Mapping[str, Any]) -> None:
    """Write ``manifest.json``: what was made from what, and a digest of every file.

    Where a table lay on somebody's disk stays out of it: a report is published.
    """
    from smelt_scaling.study.provenance import file_sha256

    record = {
        "schema_version": 1,
        "command": "report",
        "tables": report.tables,
        "figures": report.figures,
        "absent": report.absent,
        "files": {
            path.relative_to(report.folder).as_posix(): file_sha256(str(path))
            for path in sorted(report.files)
        },
        "provenance": {
            name: {key: item for key, item in value.items() if key != "source_path"}
            if isinstance(value, Mapping)
            else value
            for name, value in provenance.items()
        },
    }
    (report.folder / MANIFEST).write_text(dumps(record), encoding="utf-8")


def files_of(folder: str | Path, ending: str) -> dict[str, Path]:
    """Return the files of a report by their names within it, sorted; what else lies in the folder is none of it.

    Raises
    ------
    StudyError
        If there is no report, or its list of files cannot be read.
    """
    path = Path(folder) / MANIFEST
    try:
        names = json.loads(path.read_text(encoding="utf-8"))["files"]
        return {name: Path(folder) / name for name in sorted(names) if name.endswith(ending)}
    except OSError as error:
        raise StudyError(
            f"{folder}: holds no report ({MANIFEST} is missing); write one with: smelt-scaling report"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StudyError(
            f"{path}: is no list of the files of a report; write it again with: smelt-scaling report"
        ) from error
