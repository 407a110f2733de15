"""What one note code says of itself."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NoteCode"]


class NoteCode(NamedTuple):
    """What a note code means and what to do about it.

    Parameters
    ----------
    severity : str
        ``info`` states a fact, ``warning`` asks the reader to act or to qualify the number; a code that may be either
        is ``info or warning``.
    meaning : str
        What happened: one sentence.
    remedy : str
        When it is harmless, when it is not, and the flag or action that mends it: one or two sentences.
    """

    severity: str
    meaning: str
    remedy: str
