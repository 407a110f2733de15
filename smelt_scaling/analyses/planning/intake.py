"""Tables of runs that are made or only planned: a design needs no losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import merge_notes
from smelt_scaling.ingest.tidy import read_table

__all__ = ["read_design"]

#: Stands where a planned run has no loss yet; a plan does not look at it.
NO_LOSS = 2.0


def read_design(
    path: str | Path,
    *,
    mapping: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    flops: str | None = None,
) -> Endpoints:
    r"""Read a table of runs for `plan`: that of `read_endpoints`, in which the column ``loss`` may be missing.

    Parameters
    ----------
    path, mapping, units, flops
        As for `read_endpoints`.

    Returns
    -------
    Endpoints
        With losses that mean nothing where there are none.

    Raises
    ------
    IngestError
        If the file cannot be read as a table.
    DataError, UsageError
        As `Endpoints.from_frame`.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "planned.csv"
    >>> _ = path.write_text("arch,cell,F,S,D\nours,a,6e8,0.9,1e10\nbase,a,6e8,0.9,1e10\n")
    >>> read_design(path).archs
    ('base', 'ours')
    >>> folder.cleanup()
    """
    frame, notes = read_table(path, mapping=mapping)
    if "loss" not in frame.columns and "loss" not in (mapping or {}):
        frame = frame.assign(loss=NO_LOSS)
    source = "<stdin>" if str(path) == "-" else str(path)
    runs = Endpoints.from_frame(
        frame, source=source, mapping=mapping, units=units, flops=flops, include_unfinished=True
    )
    return replace(runs, notes=merge_notes(runs.notes, notes))
