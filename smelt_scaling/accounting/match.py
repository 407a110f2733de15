"""Models that cost what a reference costs: every buildable shape, ranked by its worst deviation.

KV cache fixes the key-value heads, since nothing else enters it; for each of their geometries the hidden width, the
query heads and the number of experts are enumerated; the width of an expert then follows from the parameters, in
which it is linear. What is left is a list of shapes whose FLOPs are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.accounting.budgets import budgets_of
from smelt_scaling.accounting.config import Loop, ModelConfig
from smelt_scaling.accounting.conventions import Convention, get_convention
from smelt_scaling.accounting.lengths import Lengths
from smelt_scaling.accounting.shapes import Shapes
from smelt_scaling.errors import UsageError

__all__ = ["Matches", "Search", "Tolerance", "find_matches", "middle_span"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """How far each budget may deviate, as a fraction.

    The defaults are what the SMELT paper reached in its 12 sparse cells, rounded up: 3.9, 1.0 and 3.6 %.

    Parameters
    ----------
    flops, params, kv : float
        Of training FLOPs per token, of parameters without embedding and head, of the key-value cache.
    """

    flops: float = 0.04
    params: float = 0.01
    kv: float = 0.04

    def __post_init__(self) -> None:
        for name in ("flops", "params", "kv"):
            if not 0 < getattr(self, name) < 1:
                raise UsageError(
                    f"tolerance {name}={getattr(self, name):g}: a fraction between 0 and 1 is needed, such as 0.04"
                )


@dataclass(frozen=True, kw_only=True)
class Search:
    """Shapes that can be built, and how far they may leave those of the reference.

    Parameters
    ----------
    head_dim : (int, int)
        Smallest and largest width of a head.
    kv_heads : (int, int)
        Fewest and most key-value heads.
    head_dim_multiple, hidden_multiple, ffn_multiple, expert_multiple : int
        What widths and the number of experts are multiples of, for the hardware's sake.
    hidden : (float, float)
        Hidden width over that which keeps the cost of attention: the reference's times sqrt(L/L'), for L executed
        layers of the reference and L' of the match.
    queries : (float, float)
        Width of all queries over the hidden width.
    experts : (float, float)
        Number of experts over that which keeps their FLOPs and parameters: the reference's times how much more often
        a stored layer runs.
    """

    head_dim: tuple[int, int] = (64, 128)
    kv_heads: tuple[int, int] = (1, 16)
    head_dim_multiple: int = 8
    hidden_multiple: int = 64
    ffn_multiple: int = 8
    expert_multiple: int = 8
    hidden: tuple[float, float] = (0.7, 1.3)
    queries: tuple[float, float] = (0.9, 1.1)
    experts: tuple[float, float] = (0.66, 1.34)

    def __post_init__(self) -> None:
        for name in ("head_dim_multiple", "hidden_multiple", "ffn_multiple", "expert_multiple"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} {getattr(self, name)}: must be 1 or more")
        for name in ("head_dim", "kv_heads", "hidden", "queries", "experts"):
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise UsageError(f"{name} {low:g} to {high:g}: must be positive, the smaller one first")


@dataclass(frozen=True, kw_only=True, eq=False)
class Matches:
    """Shapes within tolerance, the best first.

    Parameters
    ----------
    reference : ModelConfig
        What was matched.
    shapes : Shapes
        n shapes.
    flops, params, kv : (n,) array
        Relative deviations from the reference.
    pareto : (n,) bool array
        Whether no other shape is at least as close in all three, and closer in one.
    searched : int
        Shapes whose budgets were counted.
    kv_floor : float
        Least deviation of the key-value cache that any head geometry of the search reaches.
    nearest : tuple of float, or None
        Deviations of the best shape of the search, within tolerance or not; None if no shape was counted.
    """

    reference: ModelConfig
    shapes: Shapes
    flops: Array
    params: Array
    kv: Array
    pareto: Mask
    searched: int
    kv_floor: float
    nearest: tuple[float, float, float] | None

    def __len__(self) -> int:
        return len(self.shapes)

    @property
    def deviations(self) -> Array:
        """Deviations as (n, 3): FLOPs, parameters, cache."""
        return np.stack([self.flops, self.params, self.kv], axis=1)

    def dominating(self, flops: float, params: float, kv: float) -> Mask:
        """Say which shapes are at least as close in all three budgets as given deviations, and closer in one."""
        mine, theirs = np.abs(self.deviations), np.abs([flops, params, kv])
        return np.asarray((mine <= theirs).all(axis=1) & (mine < theirs).any(axis=1))


def middle_span(layers: int, share: float) -> tuple[int, int]:
    """Return first and last layer, from 0, of the span in the middle that holds a share of the layers.

    Examples
    --------
    The SMELT paper's spans, which it counts from 1: 3 to 7 of 10, 4 to 9 of 12, 6 to 15 of 20, 8 to 22 of 30.

    >>> [middle_span(layers, 0.5) for layers in (10, 12, 20, 30)]
    [(2, 6), (3, 8), (5, 14), (7, 21)]
    """
    span = round(layers * share)
    if not 1 <= span <= layers:
        raise UsageError(
            f"span middle:{share:g} of {layers} layers: holds {span}; from 1 to {layers} are needed"
        )
    first = (layers - span) // 2
    return first, first + span - 1


def find_matches(
    reference: ModelConfig,
    *,
    loop: Loop | None = None,
    layers: int | None = None,
    tolerance: Tolerance | None = None,
    search: Search | None = None,
    convention: str | Convention = "smelt",
    lengths: Lengths,
) -> Matches:
    """Enumerate shapes that cost what a reference costs.

    Parameters
    ----------
    reference : ModelConfig
        The model to match; it may loop itself.
    loop : Loop, optional
        Loop of the match; none by default.
    layers : int, optional
        Physical layers of the match; as many as the reference by default.
    tolerance : Tolerance, optional
        How close all three budgets must be.
    search : Search, optional
        What can be built.
    convention : str or Convention
        How FLOPs are counted.
    lengths : Lengths
        What a token attends to.

    Returns
    -------
    Matches
        Sorted by the worst of the three deviations, then the second and the third (leximin).

    Raises
    ------
    UsageError
        If the reference has latent attention, whose cache these shapes do not reach, or an argument is invalid.
    """
    tolerance, search = tolerance or Tolerance(), search or Search()
    rule = get_convention(convention)
    template = _template(reference, loop, layers)
    goal = budgets_of(reference, rule, lengths)
    ratio = reference.executed_layers / template.executed_layers
    heads, floor = _key_value_heads(template, goal.cached, tolerance.kv, search)
    shapes = _shapes(template, reference, heads, ratio, search)
    if not len(shapes):
        return _ranked(reference, shapes, np.empty((0, 3)), tolerance, floor)
    # parameters are linear in the width, so the width that meets them is known
    zero, one = (shapes.with_width(np.full(len(shapes), width)).budgets(rule, lengths)[1] for width in (0, 1))
    below = np.floor((goal.parameters - zero) / (one - zero) / search.ffn_multiple).astype(np.int64)
    both = np.concatenate([below, below + 1]) * search.ffn_multiple  # never the same width twice
    doubled = shapes.select(np.tile(np.arange(len(shapes)), 2)).with_width(both)
    doubled = doubled.select(both > 0)
    counted = np.stack(doubled.budgets(rule, lengths), axis=1)
    off = counted / np.array([goal.flops, goal.parameters, goal.cached]) - 1
    return _ranked(reference, doubled, off, tolerance, floor)


def _template(reference: ModelConfig, loop: Loop | None, layers: int | None) -> ModelConfig:
    """Return the reference with the loop and depth of the match."""
    if reference.latent is not None:
        raise UsageError(
            f"{reference.name}: latent attention has no heads to match a cache with; match another one"
        )
    depth = reference.layers if layers is None else layers
    experts, windows = reference.experts, reference.windows
    if depth != reference.layers:
        if windows and len(set(windows)) > 1:
            raise UsageError(
                f"{reference.name}: its layers differ in windows, so another depth has none to take"
            )
        windows = windows[:1] * depth
        if experts is not None and experts.dense_layers:
            kept = tuple(i for i in experts.dense_layers if i < depth)
            experts = replace(experts, dense_layers=kept)
    return replace(reference, loop=loop, layers=depth, experts=experts, windows=windows, name="match")


def _key_value_heads(
    template: ModelConfig, goal: float, tolerance: float, search: Search
) -> tuple[NDArray[np.int64], float]:
    """Return (kv_heads, head_dim) within tolerance of the cache, and the least deviation of all that can be built."""
    step = search.head_dim_multiple
    low, high = search.head_dim
    widths = np.arange(-(-low // step) * step, high + 1, step)
    every = np.array(
        [(n, w) for n in range(search.kv_heads[0], search.kv_heads[1] + 1) for w in widths]
    ).reshape(-1, 2)
    if not len(every):
        raise UsageError(f"head_dim {low} to {high}: holds no multiple of {step}; widen it")
    off = np.abs(2 * template.executed_layers * every.prod(axis=1) / goal - 1)
    return every[off <= tolerance], float(off.min())


def _multiples(low: float, high: float, step: int) -> NDArray[np.int64]:
    return np.arange(max(1, int(np.ceil(low / step))), int(np.floor(high / step)) + 1) * step


def _shapes(
    template: ModelConfig,
    reference: ModelConfig,
    heads: NDArray[np.int64],
    ratio: float,
    search: Search,
) -> Shapes:
    """Enumerate hidden widths, query heads and numbers of experts for every geometry of key-value heads."""
    centre = reference.hidden * np.sqrt(ratio)
    hidden = _multiples(centre * search.hidden[0], centre * search.hidden[1], search.hidden_multiple)
    count = np.zeros(1, dtype=np.int64)
    if reference.experts is not None:
        # what a stored layer is run for: a loop leaves room for more experts, more depth does not
        runs = (template.executed_layers / template.layers) / (reference.executed_layers / reference.layers)
        usual = reference.experts.count * runs
        count = _multiples(usual * search.experts[0], usual * search.experts[1], search.expert_multiple)
        count = count[count >= reference.experts.active]
    rows = []
    for kv, width in heads.tolist():
        queries = np.arange(kv, int(hidden.max(initial=0) * search.queries[1]) // width + 1, kv)
        h, q, e = (grid.ravel() for grid in np.meshgrid(hidden, queries, count, indexing="ij"))
        sane = (q * width >= search.queries[0] * h) & (q * width <= search.queries[1] * h)
        rows.append(
            np.stack([h[sane], q[sane], np.full(sane.sum(), kv), np.full(sane.sum(), width), e[sane]])
        )
    found = np.concatenate(rows, axis=1) if rows else np.empty((5, 0), dtype=np.int64)
    return Shapes(
        template=template,
        hidden=found[0],
        heads=found[1],
        kv_heads=found[2],
        head_dim=found[3],
        experts=found[4],
        width=np.zeros(found.shape[1], dtype=np.int64),
    )


def _ranked(
    reference: ModelConfig, shapes: Shapes, off: Array, tolerance: Tolerance, floor: float
) -> Matches:
    """Sort shapes by their deviations, and keep those within tolerance."""
    sizes = np.sort(np.abs(off), axis=1)  # the worst last, which is the first key of lexsort
    ties = [getattr(shapes, name) for name in ("width", "experts", "head_dim", "kv_heads", "heads", "hidden")]
    order = np.lexsort((*ties, *sizes.T))
    nearest = off[order[0]].tolist() if len(order) else None
    allowed = [tolerance.flops, tolerance.params, tolerance.kv]
    kept = order[(np.abs(off[order]) <= allowed).all(axis=1)]
    return Matches(
        reference=reference,
        shapes=shapes.select(kept),
        flops=off[kept, 0],
        params=off[kept, 1],
        kv=off[kept, 2],
        pareto=_undominated(np.abs(off[kept])),
        searched=len(off),
        kv_floor=floor,
        nearest=None if nearest is None else (nearest[0], nearest[1], nearest[2]),
    )


def _undominated(sizes: Array) -> Mask:
    """Say which rows no other row is below in one column and not above in any."""
    keep = np.zeros(len(sizes), dtype=bool)
    front = np.empty((0, sizes.shape[1]))
    for row in np.lexsort(sizes.T[::-1]):  # what dominates a row comes before it
        beaten = (front <= sizes[row]).all(axis=1) & (front < sizes[row]).any(axis=1)
        if not beaten.any():
            keep[row] = True
            front = np.vstack([front, sizes[row]])
    return keep
