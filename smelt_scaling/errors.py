"""Exceptions, notes and statuses: everything the library says when a number is refused or needs a caveat.

An exception means "no number"; a note means "a number, and this is what you must know about it". The library never
prints, logs or warns: results carry their notes, and the command line decides how to show them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from smelt_scaling.note_codes import NOTE_CODES

__all__ = [
    "CAPTIONED",
    "NOTE_CODES",
    "DataError",
    "FitError",
    "FrontierError",
    "IngestError",
    "Note",
    "SmeltScalingError",
    "StudyError",
    "SupportError",
    "UsageError",
    "info",
    "merge_notes",
    "warning",
]


class SmeltScalingError(Exception):
    """Root of the errors a user can cause and mend; ``exit_code`` is what the command line ends with."""

    exit_code = 3


class UsageError(SmeltScalingError):
    """An argument that no data could make valid: an unknown law, a negative budget, an unnamed reference."""

    exit_code = 2


class DataError(SmeltScalingError):
    """A table whose values, columns or units break a rule of the endpoint schema."""


class IngestError(SmeltScalingError):
    """A file that cannot be read as the format it claims to be."""


class StudyError(SmeltScalingError):
    """A study folder that is missing, incomplete or written by a newer version."""


class FitError(SmeltScalingError):
    """A fit that cannot be made: too few endpoints, or nothing left to estimate."""

    exit_code = 4


class FrontierError(SmeltScalingError):
    """A frontier quantity the surface does not define: no interior optimum, or an unidentified coefficient."""

    exit_code = 4


class SupportError(FrontierError):
    """A quantity outside the support of the design, when the user asked to be strict about it."""

    exit_code = 5


#: Codes of notes that no table goes without, whatever its format: they stand in its caption.
CAPTIONED = frozenset({"provisional", "pinned", "effective_tokens"})


@dataclass(frozen=True, kw_only=True)
class Note:
    """One caveat that travels with a result.

    Parameters
    ----------
    code : str
        A key of `NOTE_CODES`; stable across versions.
    severity : {"info", "warning"}
        ``info`` states a fact, ``warning`` asks the reader to act or to qualify the number.
    message : str
        One line: what, where, and what to do about it.
    count : int
        How many rows, draws or cells it concerns.

    Examples
    --------
    >>> Note(code="unpaired", severity="warning", message="no common cell").to_dict()
    {'code': 'unpaired', 'severity': 'warning', 'message': 'no common cell', 'count': 1}
    """

    code: str
    severity: Literal["info", "warning"]
    message: str
    count: int = 1

    def __post_init__(self) -> None:
        if self.code not in NOTE_CODES:
            raise ValueError(f"unknown note code {self.code!r}: add it to NOTE_CODES")

    def to_dict(self) -> dict[str, Any]:
        """Return the note as plain JSON values."""
        return {"code": self.code, "severity": self.severity, "message": self.message, "count": self.count}


def info(code: str, message: str, count: int = 1) -> Note:
    """Return a note that states a fact."""
    return Note(code=code, severity="info", message=message, count=count)


def warning(code: str, message: str, count: int = 1) -> Note:
    """Return a note that asks the reader to act or to qualify the number."""
    return Note(code=code, severity="warning", message=message, count=count)


def merge_notes(*groups: Iterable[Note]) -> tuple[Note, ...]:
    """Join groups of notes, warnings first, dropping exact repeats and keeping the order otherwise.

    Examples
    --------
    >>> a = Note(code="pinned", severity="info", message="E = 1.6")
    >>> b = Note(code="unpaired", severity="warning", message="no common cell")
    >>> [n.code for n in merge_notes([a], [b, a])]
    ['unpaired', 'pinned']
    """
    unique = dict.fromkeys(note for group in groups for note in group)
    return tuple(sorted(unique, key=lambda note: note.severity != "warning"))
