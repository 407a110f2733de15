"""Which pairs of runs could be made next: sizes, sparsities and horizons inside a box, and what each would tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.planning.design import Design
from smelt_scaling.analyses.planning.information import cell_information
from smelt_scaling.analyses.planning.jacobian import log_loss_jacobian, row_columns
from smelt_scaling.analyses.planning.noise import Noise
from smelt_scaling.analyses.planning.schedule import Schedule
from smelt_scaling.errors import UsageError
from smelt_scaling.laws import Surface

__all__ = ["Candidate", "box_of", "candidate_information", "candidates_in", "levels"]

Array = NDArray[np.float64]
Range = tuple[float, float]

#: Levels of a column inside what was run, and beyond it on either side.
INSIDE, BEYOND = 5, 2
#: So many horizons of the table are taken as they are; more are thinned to levels.
HORIZONS = 8
#: A bound this close to that of the runs, relatively, is theirs.
TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A pair of runs that could be made, one of each architecture.

    Parameters
    ----------
    F : float
        Training FLOPs per token.
    S : float or None
        Sparsity.
    horizons : tuple of float
        Tokens of its endpoints, ascending.
    cost : float
        Training FLOPs of both.
    in_box : bool
        Whether all of it lies within what the runs of both cover.
    """

    F: float
    S: float | None
    horizons: tuple[float, ...]
    cost: float
    in_box: bool


def box_of(
    support: Mapping[str, Range], *, extend: float = 1.0, bounds: Mapping[str, Range] | None = None
) -> dict[str, Range]:
    """Return the box of candidates: what the runs cover, widened by a factor; stated bounds replace it.

    The factor of S is that of 1 - S.

    Raises
    ------
    UsageError
        If a bound names no column of the runs or is not in order, or the runs of the two have no range in common.

    Examples
    --------
    >>> box_of({"F": (1e9, 1e10), "S": (0.8, 0.96)}, extend=2, bounds={"F": (1e9, 4e10)})
    {'F': (1000000000.0, 40000000000.0), 'S': (0.6, 0.98)}
    """
    if not (extend >= 1 and np.isfinite(extend)):
        raise UsageError(f"--extend {extend:g}: a factor of 1 or more is needed, such as 2")
    unknown = [name for name in bounds or {} if name not in support]
    if unknown:
        raise UsageError(
            f"--box {unknown[0]}: the plan is made in {', '.join(support)}; write F=1e9..4e10,S=0.7..0.985"
        )
    box = {}
    for name, (low, high) in support.items():
        if bounds and name in bounds:
            low, high = bounds[name]
            top = 1.0 if name == "S" else np.inf
            bottom = 0.0 if name == "S" else np.finfo(float).tiny
            if not (bottom <= low <= high < top):
                rule = "0 <= LOW <= HIGH < 1" if name == "S" else "0 < LOW <= HIGH"
                raise UsageError(f"--box {name}={low:g}..{high:g}: {rule} is needed")
        elif low > high:
            raise UsageError(
                f"--box: the runs of the two architectures have no {name} in common; state it with {name}=LOW..HIGH"
            )
        elif extend > 1 and name == "S":
            low, high = round(max(0.0, 1 - (1 - low) * extend), 12), round(1 - (1 - high) / extend, 12)
        else:
            low, high = low / extend, high * extend
        box[name] = (float(low), float(high))
    return box


def levels(box: Range, support: Range, inside: Sequence[float] = ()) -> list[float]:
    """Return the levels to try, evenly spaced in the logarithm: within the runs, then beyond them on either side.

    Parameters
    ----------
    box : pair of float
        Bounds; positive.
    support : pair of float
        What was run.
    inside : sequence of float
        Levels within the runs; evenly spaced ones by default.

    Examples
    --------
    >>> [round(x, 3) for x in levels((1.0, 64.0), (1.0, 16.0))]
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    """
    low, high = max(box[0], support[0]), min(box[1], support[1])
    if low > high:
        return _spaced(*box, INSIDE)
    kept = [x for x in inside if low * (1 - TOLERANCE) <= x <= high * (1 + TOLERANCE)]
    found = kept or (_spaced(low, high, INSIDE) if high > low else [low])
    if box[0] < low * (1 - TOLERANCE):
        found = [*_spaced(box[0], low, BEYOND + 1)[:-1], *found]
    if box[1] > high * (1 + TOLERANCE):
        found = [*found, *_spaced(high, box[1], BEYOND + 1)[1:]]
    return found


def _spaced(low: float, high: float, count: int) -> list[float]:
    return [float(x) for x in np.geomspace(low, high, count)]


def candidates_in(
    box: Mapping[str, Range],
    design: Design,
    schedule: Schedule,
    *,
    tiers: Sequence[float] = (),
    horizons: Sequence[float] | None = None,
) -> list[Candidate]:
    """Return every combination of size, sparsity and a set of horizons inside a box.

    The sets are the first two horizons, the first half, all of them, and the last alone: of the runs, and of a box
    that is wider.

    Parameters
    ----------
    box : mapping
        As of `box_of`.
    design : Design
        The runs.
    schedule : Schedule
        What horizons cost.
    tiers : sequence of float
        Sparsities of the runs.
    horizons : sequence of float, optional
        Instead of those of the runs.
    """
    support = design.support
    sizes = levels(box["F"], support["F"])
    dense: list[float | None] = [None]
    if "S" in box:
        wide = levels(
            (1 - box["S"][1], 1 - box["S"][0]),
            (1 - support["S"][1], 1 - support["S"][0]),
            [1 - tier for tier in tiers],
        )
        dense = [round(1 - value, 12) for value in reversed(wide)]
    present = design.horizons if len(design.horizons) <= HORIZONS else ()
    inside = [levels(support["D"], support["D"], present), levels(box["D"], support["D"], present)]
    sets: dict[tuple[float, ...], None] = {}
    for chosen in inside if horizons is None else [horizons]:
        every = tuple(sorted({float(tokens) for tokens in chosen}))
        sets |= dict.fromkeys([every[:2], every[: (len(every) + 1) // 2], every, every[-1:]])

    def known(name: str, low: float, high: float) -> bool:
        bottom, top = support[name]
        return bottom * (1 - TOLERANCE) <= low and high <= top * (1 + TOLERANCE)

    return [
        Candidate(
            F=size,
            S=sparsity,
            horizons=chosen,
            cost=2 * size * schedule.tokens(chosen),
            in_box=known("F", size, size)
            and known("D", chosen[0], chosen[-1])
            and (sparsity is None or known("S", sparsity, sparsity)),
        )
        for size in sizes
        for sparsity in dense
        for chosen in sets
    ]


def candidate_information(
    candidates: Sequence[Candidate],
    surfaces: tuple[Surface, Surface],
    noise: Noise,
    losses: tuple[float, float],
    flops_per_param: float,
) -> Array:
    """Return what each candidate would add to the information, shape (K, 2P, 2P); every one is a new cell."""
    rows = [(k, one, tokens) for k, one in enumerate(candidates) for tokens in one.horizons]
    index = np.array([k for k, _, _ in rows])
    columns = row_columns(
        np.array([one.F for _, one, _ in rows]),
        np.array([tokens for *_, tokens in rows]),
        None if candidates[0].S is None else np.array([one.S for _, one, _ in rows], dtype=np.float64),
        flops_per_param,
    )
    jacobians = [log_loss_jacobian(surface, columns) for surface in surfaces]
    return cell_information(jacobians, (index, index), len(candidates), noise.spread(losses))
