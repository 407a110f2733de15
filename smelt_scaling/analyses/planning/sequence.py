"""What to buy with a sum of FLOPs: pairs of runs one after another, each the best given those before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.planning.candidates import Candidate
from smelt_scaling.analyses.planning.evidence import Evidence

__all__ = ["MOST_PAIRS", "Purchase", "buy"]

Array = NDArray[np.float64]

#: No list of more pairs is made: a plan of a hundred tiny runs is no plan.
MOST_PAIRS = 24
#: A pair that shrinks the standard error by less is not worth buying.
LEAST = 1e-6
#: A list that ends within this of the least error is as good: the one of the fewest pairs is taken.
NEARLY = 0.03


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """Pairs in the order in which they are bought.

    Parameters
    ----------
    pairs : tuple of int
        Positions among the candidates.
    se : tuple of float
        Standard error after each.
    """

    pairs: tuple[int, ...]
    se: tuple[float, ...]


def buy(evidence: Evidence, candidates: Sequence[Candidate], information: Array, fund: float) -> Purchase:
    """Return the shortest of three greedy lists within a sum that ends near the least error of them.

    Each next pair has the largest relative fall of the variance per FLOP; or the largest at all; or the largest per
    FLOP among pairs that cost their share of what is left, so that a large sum is spent on few pairs. (The better of
    the first two is within a constant factor of the best list where falls diminish; Leskovec et al. 2007,
    KDD, section 3.2.)
    """
    cost = np.array([one.cost for one in candidates])
    lists = [_greedy(evidence, cost, information, fund, rule) for rule in ("per_flop", "most", "share")]
    if not lists[0].pairs:
        return lists[0]
    least = min(found.se[-1] for found in lists)
    near = [found for found in lists if found.se[-1] <= least * (1 + NEARLY)]
    return min(near, key=lambda found: (len(found.pairs), found.se[-1]))


def _greedy(evidence: Evidence, cost: Array, information: Array, fund: float, rule: str) -> Purchase:
    bought = np.zeros_like(information[0])
    left, now = fund, evidence.se_reported
    pairs: list[int] = []
    errors: list[float] = []
    while len(pairs) < MOST_PAIRS:
        able = cost <= left * (1 + 1e-12)
        if rule == "share" and np.any(dear := able & (cost >= left / (MOST_PAIRS - len(pairs)))):
            able = dear
        if not able.any():
            break
        after = evidence.se_with(bought + information)
        fall = np.log(now / after)
        score = np.where(able, fall if rule == "most" else fall / cost, -np.inf)
        chosen = int(np.argmax(score))
        if fall[chosen] < LEAST:
            break
        pairs.append(chosen)
        errors.append(float(after[chosen]))
        bought, left, now = bought + information[chosen], left - cost[chosen], errors[-1]
    return Purchase(pairs=tuple(pairs), se=tuple(errors))
