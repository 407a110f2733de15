"""How far the rounding of printed coefficients can move a number computed from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.claims import rounding_effect
from smelt_scaling.analyses.view import Side
from smelt_scaling.errors import Note, info
from smelt_scaling.laws import Surface

__all__ = ["moved_by_rounding", "rounding_note"]

Array = NDArray[np.float64]


def moved_by_rounding(sides: Sequence[Side], quantity: Callable[..., Array]) -> Array | None:
    """Return the largest change of a quantity that the digits of its coefficients permit.

    Every coefficient alone is moved up and down by half a unit of its last printed digit, and the larger changes of
    all of them are added up, as in `reproduce`. A quantity that does not exist at one of them has no bound: NaN.

    Parameters
    ----------
    sides : sequence of Side
        The architectures it is computed from.
    quantity : callable
        One surface per side, of which one is a stack -> array (stack, ...).

    Returns
    -------
    array (...) or None
        None if the coefficients are not printed ones.
    """
    total: Array | None = None
    for i, side in enumerate(sides):
        if side.rounded is None:
            return None
        surfaces: list[Surface] = [other.surface for other in sides]
        surfaces[i] = side.rounded
        moved = rounding_effect(quantity(*surfaces))
        total = moved if total is None else total + moved
    return total


def rounding_note(effects: Sequence[tuple[str, str]], count: int, rest: str = "") -> list[Note]:
    """Say what rounding moves: pairs of (quantity, "by up to" text), and the rest, of which nobody can tell."""
    moves = ", ".join(f"{name} by up to {size}" for name, size in effects)
    said = "; ".join(filter(None, (f"that alone moves {moves}" if moves else "", rest)))
    return [info("rounded_coefficients", f"coefficients are rounded as printed: {said}", count)]
