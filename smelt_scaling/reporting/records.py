"""Results that were saved, read back as the frames they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt_scaling.analyses.frames import Carried
from smelt_scaling.errors import StudyError
from smelt_scaling.reporting.raw import SCHEMA_VERSION, TABLES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["frame_of_record", "read_record"]


def read_record(path: str | Path, command: str | None = None) -> dict[str, Any]:
    """Read the JSON that a command wrote with ``-o``.

    Raises
    ------
    StudyError
        If it is no such file, of a newer schema, or of another command than the one named.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
        version, wrote = record["schema_version"], record["command"]
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StudyError(f"{path}: is no result of smelt-scaling; write one with -o") from error
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise StudyError(
            f"{path}: schema version {version} is newer than {SCHEMA_VERSION}; upgrade smelt-scaling"
        )
    kinds = {"rows": list, "notes": list, "settings": dict}
    if any(not isinstance(record.get(key), kind) for key, kind in kinds.items()):
        raise StudyError(f"{path}: lacks {', '.join(kinds)} of a result; write it again with -o")
    if command is not None and wrote != command:
        raise StudyError(f"{path}: holds what {wrote} wrote, not {command}; write it again with -o")
    return dict(record)


def frame_of_record(record: dict[str, Any]) -> pd.DataFrame:
    """Return the frame that a record was written from: rows, notes, settings and further tables.

    Examples
    --------
    >>> from smelt_scaling import ce_gain, load_paper
    >>> from smelt_scaling.reporting.raw import frame_record
    >>> frame = ce_gain(load_paper("smelt"), 1e21)
    >>> record = frame_record("ce-gain", frame, settings=frame.attrs["settings"], notes=(), provenance={})
    >>> frame_of_record(record)["gain"].tolist() == frame["gain"].tolist()
    True
    """
    import pandas as pd

    frame = pd.DataFrame(record["rows"])
    frame.attrs = {
        "notes": record["notes"],
        "settings": record["settings"],
        **{
            name: Carried(record[name]) if isinstance(record[name], list) else record[name]
            for name in TABLES
            if name in record
        },
    }
    return frame
