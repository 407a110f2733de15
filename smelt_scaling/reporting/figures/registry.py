"""Which figures a saved result has: command -> functions of its frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from smelt_scaling.reporting.figures.drawing import Drawing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SAVED_FIGURES"]

#: Command -> functions that draw what it saved; each returns the figures that its frame has numbers for.
SAVED_FIGURES: dict[str, tuple[Callable[[pd.DataFrame], Sequence[Drawing]], ...]] = {}
