"""What a difference of loss is worth in compute: read off the frontier of a reference architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt_scaling.analyses.support import outside
from smelt_scaling.analyses.view import view_of
from smelt_scaling.errors import FrontierError, Note, UsageError
from smelt_scaling.frontier import Frontier
from smelt_scaling.papers import Paper
from smelt_scaling.study import Study

__all__ = ["Worth", "worth_of"]

#: Budgets of two sparsities that agree so closely are one.
SAME = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Worth:
    """A frontier to read budgets off.

    Parameters
    ----------
    arch, law : str
        Whose frontier it is.
    frontier : Frontier
        Loss to budget.
    sparsities : tuple of float or None
        Where it is evaluated; several where the answer must not depend on it.
    window : mapping
        Column -> (smallest, largest) of its runs, as far as known.
    notes : tuple of Note
        Caveats of the surface.
    """

    arch: str
    law: str
    frontier: Frontier
    sparsities: tuple[float | None, ...]
    window: Mapping[str, tuple[float, float]]
    notes: tuple[Note, ...]

    @staticmethod
    def nothing() -> dict[str, Any]:
        """Return the columns where nothing is known."""
        names = ("multiplier", "multiplier_lo", "multiplier_hi", "gain", "gain_lo", "gain_hi")
        flags: dict[str, Any] = {
            "unreachable": False,
            "hi_unreachable": False,
            "extrapolated": None,
            "support": [],
        }
        return dict.fromkeys(names) | flags

    def log_multiplier(self, loss: float, delta: float) -> float:
        """Return ln of the compute that the reference needs for ``loss + delta`` over that for ``loss``.

        Raises
        ------
        FrontierError
            If the reference never reaches ``loss``.
        UsageError
            If it depends on the sparsity, and none was named.
        """
        found = [
            np.log(self.frontier.budget_for(np.array([loss, loss + delta]), S=at)) for at in self.sparsities
        ]
        if not np.isfinite(found[0][0]):
            raise FrontierError(
                f"{self.arch}: its frontier never reaches the loss {loss:g} of the level compared with; name another "
                "--reference, or check that both losses are of one evaluation"
            )
        m = [float(pair[1] - pair[0]) for pair in found]
        if np.isfinite(m[0]) and max(m) - min(m) > SAME:
            raise UsageError(
                f"{self.arch}: what a loss is worth depends on S under law {self.law}; name one with --sparsity"
            )
        return m[0]

    def support(self, *losses: float) -> list[dict[str, Any]]:
        """Say how far the budgets of some losses lie outside the runs: of the farthest, at the nearest sparsity."""
        farthest: list[dict[str, Any]] = []
        for loss in losses:
            budgets = [float(self.frontier.budget_for(loss, S=at)) for at in self.sparsities]
            found = [outside(self.window, arch=self.arch, C=budget) for budget in budgets]
            farthest = max(farthest, min(found, key=_factor), key=_factor)
        return farthest

    def columns(self, loss: float, delta: float, ends: tuple[float | None, float | None]) -> dict[str, Any]:
        """Return multiplier and gain with their ends, and their support; a lower loss is worth more."""
        m = self.log_multiplier(loss, delta)
        hi, lo = (None if end is None else self.log_multiplier(loss, end) for end in ends)
        named = {"": m, "_lo": lo, "_hi": hi}
        support = self.support(loss, loss + delta)
        reached = {end: value for end, value in named.items() if value is not None and np.isfinite(value)}
        return {
            **{f"multiplier{end}": float(np.exp(reached[end])) if end in reached else None for end in named},
            **{
                f"gain{end}": float(-np.expm1(-reached[end])) + 0.0 if end in reached else None
                for end in named
            },
            "unreachable": not np.isfinite(m),
            "hi_unreachable": hi is not None and not np.isfinite(hi),
            "extrapolated": bool(support) if "C" in self.window else None,
            "support": support,
        }


def _factor(support: list[dict[str, Any]]) -> float:
    return max((item["factor"] for item in support), default=1.0)


def worth_of(source: Study | Paper, reference: str | None, sparsity: float | None) -> Worth:
    """Take the frontier of one architecture of a study or paper.

    Raises
    ------
    UsageError
        If there are several architectures and none is named.
    FrontierError
        If its frontier is not identified or not certified.
    """
    view = view_of(source)
    if reference is None:
        if len(view.sides) > 1:
            raise UsageError(
                f"{len(view.sides)} architectures ({', '.join(view.sides)}): name the one that was ablated "
                "with --reference"
            )
        reference = next(iter(view.sides))
    side = view.side(reference)
    grid = view.sparsity_grid(sparsity, (side,))
    view.require_frontier((side,))
    return Worth(
        arch=reference,
        law=view.law.name,
        frontier=view.frontier(side.surface),
        sparsities=tuple(grid),
        window=side.window,
        notes=view.notes,
    )
