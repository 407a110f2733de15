"""What was found in a set of logs: endpoints, where each comes from, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smelt_scaling._json import dumps, finite_or_none
from smelt_scaling._schema import counted
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note
from smelt_scaling.ingest.sources import sha256

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LogEndpoints"]


@dataclass(frozen=True, kw_only=True, eq=False)
class LogEndpoints:
    """Endpoints read from logs, and everything that was not taken.

    Parameters
    ----------
    endpoints : Endpoints
        One row per annealed end of a run.
    manifest : DataFrame
        One row per endpoint: ``run, branch, step, tokens, loss, key, evidence, rows, files``; the loss as it was logged
        under that key, whatever its unit.
    left_out : DataFrame
        One row per end that is no endpoint: ``run, branch, step, loss, code, reason``.
    long : mapping of str to DataFrame
        Long tables by name of the family: the columns of the endpoints, ``subset`` and ``value``.
    counts : mapping of str to int
        ``files, runs, segments, rows, endpoints, left_out``.
    notes : tuple of Note
        What the reader must know; those of the endpoints included.
    """

    endpoints: Endpoints
    manifest: pd.DataFrame
    left_out: pd.DataFrame
    long: Mapping[str, pd.DataFrame]
    counts: Mapping[str, int]
    notes: tuple[Note, ...]

    def summary(self) -> str:
        """Return the counts in one line."""
        names = {"files": "file", "runs": "run", "segments": "piece", "rows": "row"}
        read = ", ".join(counted(self.counts[name], one) for name, one in names.items())
        left = counted(self.counts["left_out"], "end")
        return f"{read}: {counted(self.counts['endpoints'], 'endpoint')}, {left} left out"

    def manifest_json(self, argv: Sequence[str] = ()) -> str:
        """Return the manifest as strict JSON: a record per endpoint, what was left out, files with their sha256.

        Parameters
        ----------
        argv : sequence of str
            The command that read the logs, to be recorded.
        """
        files = sorted({path for paths in self.manifest["files"] for path in paths})
        return dumps(
            {
                "schema_version": 1,
                "argv": list(argv),
                "digest": self.endpoints.digest,
                "counts": dict(self.counts),
                "endpoints": _plain_rows(self.manifest),
                "left_out": _plain_rows(self.left_out),
                "files": [{"path": path, "sha256": sha256(path)} for path in files],
                "notes": [note.to_dict() for note in self.notes],
            }
        )


def _plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as plain values; a number that is missing is null."""
    return [
        {str(name): finite_or_none(cell) if isinstance(cell, float) else cell for name, cell in row.items()}
        for row in frame.to_dict("records")
    ]
