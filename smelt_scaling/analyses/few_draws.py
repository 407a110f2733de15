"""Draws too few for an interval: said, not left for the reader to notice."""

from __future__ import annotations

from smelt_scaling._schema import counted
from smelt_scaling.errors import Note, warning
from smelt_scaling.resampling.intervals import tail_rank

__all__ = ["few_draws_note"]


def few_draws_note(draws: int, level: float) -> list[Note]:
    """Return a note if the draws that were asked for cannot give a percentile interval of this level.

    Examples
    --------
    >>> [note.message for note in few_draws_note(10, 0.95)]
    ['10 draws are too few for a 95 % interval, so there is none; ask for more with --bootstrap 2000']
    >>> few_draws_note(2000, 0.95), few_draws_note(0, 0.95)
    ([], [])
    """
    if not draws or tail_rank(draws, level):
        return []
    message = (
        f"{counted(draws, 'draw')} {'is' if draws == 1 else 'are'} too few for a {100 * level:g} % interval"
    )
    return [warning("few_draws", f"{message}, so there is none; ask for more with --bootstrap 2000")]
