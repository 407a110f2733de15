"""One line of a diagnosis: what was looked at, what was found, and what to do about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["VERDICTS", "Finding", "Verdict", "records"]

Verdict = Literal["fine", "caution", "serious", "unknown"]

#: Best first; "unknown" is for what the table cannot tell, with the remedy that would.
VERDICTS = ("fine", "unknown", "caution", "serious")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of a diagnosis.

    Parameters
    ----------
    part : str
        The analysis that found it, such as ``influence``.
    check : str
        What was looked at, in a few words.
    value : str
        What was found, as people print it, with units.
    verdict : {"fine", "unknown", "caution", "serious"}
        How bad that is for the headline gain.
    remedy : str
        What to do about it; empty if fine.
    """

    part: str
    check: str
    value: str
    verdict: Verdict
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dict(vars(self))


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame with None where a number is missing."""
    return [
        {
            str(name): None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in frame.to_dict("records")
    ]
