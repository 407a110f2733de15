"""Tidy frames with their caveats: what every analysis returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.analyses.view import IntervalKind, View
from smelt_scaling.errors import Note, merge_notes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Carried", "finish_frame", "notes_of", "records", "with_nones"]


class Carried(list[dict[str, Any]]):
    """Rows of a further table in the attrs of a frame, handed on as they are.

    pandas copies attrs, all that is in them, with every column and row that it returns.
    """

    def __deepcopy__(self, memo: object) -> Carried:
        """Return the very rows."""
        return self


def finish_frame(
    rows: Sequence[Mapping[str, Any]],
    view: View,
    notes: Iterable[Note],
    *,
    level: float,
    interval: IntervalKind,
    **more: Any,
) -> pd.DataFrame:
    """Return rows as a frame whose ``attrs`` hold ``notes`` and ``settings`` as plain JSON values.

    Parameters
    ----------
    rows : sequence of mapping
        Rows with equal keys.
    view : View
        What they were made from; its notes travel with every result.
    notes : iterable of Note
        Caveats of these rows.
    level, interval
        As asked for.
    **more
        Further settings.
    """
    import pandas as pd

    frame = pd.DataFrame(list(rows))
    frame.attrs = {
        "notes": [note.to_dict() for note in merge_notes(view.notes, notes)],
        "settings": {
            "law": view.law.name,
            "formula": view.law.formula,
            **more,
            "level": level,
            "interval": interval,
            "flops_per_param": view.flops_per_param,
            "loss_unit": view.loss_unit,
        },
    }
    return frame


def with_nones(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with None where pandas put NaN for a value that is absent."""
    absent = frame.isna()
    lacking = {name: object for name in frame.columns if absent[name].any()}
    return frame.astype(lacking).where(~absent, None) if lacking else frame


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def notes_of(frame: pd.DataFrame) -> tuple[Note, ...]:
    """Return the notes of a frame that an analysis returned.

    pandas drops them when frames are concatenated, and keeps them through filters and selections.

    Examples
    --------
    >>> from smelt_scaling.analyses import ce_gain
    >>> from smelt_scaling.papers import load_paper
    >>> [note.code for note in notes_of(ce_gain(load_paper("smelt"), 1e22))][:2]
    ['no_interval', 'extrapolated']
    """
    return tuple(Note(**item) for item in frame.attrs.get("notes", ()))
