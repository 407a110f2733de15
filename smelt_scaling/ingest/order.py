"""In which order the pieces of a run came: from what the logs state, or from steps that do not overlap."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain, product

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.condense import Segment
from smelt_scaling.ingest.keys import is_loss

__all__ = ["in_order", "largest_difference"]

Floats = NDArray[np.float64]


def in_order(segments: Sequence[Segment], tolerance: float) -> list[Segment]:
    """Sort the pieces of a run by when they were written; without times, those of one file keep their places.

    Parameters
    ----------
    segments : sequence of Segment
        Of one run, branch and stream.
    tolerance : float
        Nats by which pieces may differ at one step if nothing tells their order.

    Returns
    -------
    list of Segment
        Earliest first.

    Raises
    ------
    IngestError
        If pieces disagree where they overlap, and nothing tells which came later.
    """
    files: dict[str, list[Segment]] = {}
    for segment in sorted(segments, key=lambda one: (one.source, one.place)):
        files.setdefault(segment.source, []).append(segment)
    groups = list(files.values())
    times = {segment.first_time for segment in segments}
    if len(times) == len(segments) and not any(map(math.isnan, times)):
        if _at_once(groups) and _disagreeing(groups, tolerance) is None:
            return [segment for group in _furthest_last(groups) for segment in group]
        return sorted(segments, key=lambda one: one.first_time)
    if len(groups) > 1:
        groups = (
            _by_parents(groups)
            or _by_creation(groups)
            or _by_steps(groups)
            or _by_agreement(groups, tolerance)
        )
    return [segment for group in groups for segment in group]


def _by_parents(groups: list[list[Segment]]) -> list[list[Segment]]:
    """Follow the chain of parents, if there is one chain that holds every file."""
    ids = {str(group[0].facts["id"]): group for group in groups if "id" in group[0].facts}
    parents = {name: str(group[0].facts.get("parent", "")) for name, group in ids.items()}
    firsts = [name for name, parent in parents.items() if parent not in ids]
    children = {parent: name for name, parent in parents.items() if parent in ids}
    if len(ids) != len(groups) or len(firsts) != 1 or len(children) != len(groups) - 1:
        return []
    chain = [firsts[0]]
    while chain[-1] in children:
        chain.append(children[chain[-1]])
    return [ids[name] for name in chain] if len(chain) == len(groups) else []


def _by_creation(groups: list[list[Segment]]) -> list[list[Segment]]:
    """Sort by when a piece was created, if every file says so and no two agree."""
    starts = [float(group[0].facts.get("created", math.nan)) for group in groups]
    if any(map(math.isnan, starts)) or len(set(starts)) < len(starts):
        return []
    return [groups[place] for place in np.argsort(starts).tolist()]


def _by_steps(groups: list[list[Segment]]) -> list[list[Segment]]:
    """Sort by step if no two files overlap."""
    lowest = [min(one.first_step for one in group) for group in groups]
    highest = [max(one.last_step for one in group) for group in groups]
    order = np.argsort(lowest, kind="stable").tolist()
    apart = all(highest[a] < lowest[b] for a, b in zip(order, order[1:], strict=False))
    return [groups[place] for place in order] if apart else []


def _by_agreement(groups: list[list[Segment]], tolerance: float) -> list[list[Segment]]:
    """Any order does where files overlap and agree."""
    apart = _disagreeing(groups, tolerance)
    if apart is not None:
        one, two = apart
        names = " and ".join(sorted({one.source, two.source}))
        raise IngestError(
            f"run {one.run}: {names} log the same steps with other losses, and nothing tells which came later: add a "
            "column created (seconds since 1970) or parent to the table of runs, or leave the stale file out"
        )
    return _furthest_last(groups)


def _furthest_last(groups: list[list[Segment]]) -> list[list[Segment]]:
    return sorted(groups, key=lambda group: (group[-1].last_step, group[0].source))


def _disagreeing(groups: list[list[Segment]], tolerance: float) -> tuple[Segment, Segment] | None:
    """Return two pieces of different files that log other losses at one step, if there are any."""
    ordered = _furthest_last(groups)
    for place, group in enumerate(ordered):
        for one, two in product(group, chain.from_iterable(ordered[place + 1 :])):
            if largest_difference(one.series, two)[0] > tolerance or one.branch != two.branch:
                return one, two
    return None


def _at_once(groups: list[list[Segment]]) -> bool:
    """Whether files were written at the same time: one run with two loggers, none of which restarts the other."""
    spans = sorted((min(s.first_time for s in own), max(s.last_time for s in own)) for own in groups)
    return any(two[0] < one[1] for one, two in zip(spans, spans[1:], strict=False))


def largest_difference(
    series: Mapping[str, tuple[Floats, Floats]], piece: Segment
) -> tuple[float, str, float]:
    """Return the largest difference of a loss at a step that both log: (difference, key, step)."""
    worst = (0.0, "", math.nan)
    for key, (steps, values) in piece.series.items():
        if key not in series or not is_loss(key):
            continue
        _, mine, theirs = np.intersect1d(series[key][0], steps, return_indices=True)
        if len(mine):
            apart = np.abs(series[key][1][mine] - values[theirs])
            if apart.max() > worst[0]:
                worst = float(apart.max()), key, float(steps[theirs[apart.argmax()]])
    return worst
