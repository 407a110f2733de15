"""Which labels are resampled, how often, and what the architectures share.

The unit of resampling is a label (usually a cell: one scale at one sparsity). Labels are pooled over architectures, so
each replicate takes the same cells for both and the noise they share cancels. Draw i comes from its own child of the
seed, so it does not depend on how many draws there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Plan", "bootstrap_plan", "jackknife_plan", "label_groups"]

Counts = NDArray[np.int16]
Labels = NDArray[np.str_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """How often each label counts in each replicate.

    Parameters
    ----------
    kind : {"bootstrap", "jackknife", "wild"}
        How the counts were made.
    labels : mapping of str to tuple
        Architecture -> its own labels, sorted.
    counts : mapping of str to int array (R, U)
        Architecture -> how often each of its labels counts.
    paired : bool
        Whether any architectures share their counts.
    """

    kind: Literal["bootstrap", "jackknife", "wild"]
    labels: Mapping[str, tuple[str, ...]]
    counts: Mapping[str, Counts]
    paired: bool

    @property
    def replicates(self) -> int:
        """Number of replicates."""
        return len(next(iter(self.counts.values())))


def bootstrap_plan(labels: Mapping[str, Labels], *, replicates: int, seed: int) -> Plan:
    """Draw Multinomial(U, 1/U) counts over the union of the labels.

    Parameters
    ----------
    labels : mapping of str to str array (n,)
        Architecture -> the label of each of its rows.
    replicates : int
        Number of draws.
    seed : int
        Draw i uses ``SeedSequence(seed, spawn_key=(i,))``. Architectures without a common label, or groups of them,
        are drawn independently, each with a number of its own: ``spawn_key=(i, number)``.

    Examples
    --------
    >>> rows = np.array(["x", "y", "y", "z"])
    >>> plan = bootstrap_plan({"a": rows, "b": rows[:3]}, replicates=2, seed=0)
    >>> plan.labels["b"], plan.paired, plan.counts["a"].sum(axis=1).tolist()
    (('x', 'y'), True, [3, 3])
    """
    own = {arch: tuple(np.unique(values).tolist()) for arch, values in sorted(labels.items())}
    groups = label_groups(own)
    counts: dict[str, Counts] = {}
    for number, group in enumerate(groups):
        union = sorted({label for arch in group for label in own[arch]})
        drawn = _multinomial(len(union), replicates, seed, () if len(groups) == 1 else (number,))
        position = {label: i for i, label in enumerate(union)}
        counts |= {arch: drawn[:, [position[label] for label in own[arch]]] for arch in group}
    return Plan(kind="bootstrap", labels=own, counts=counts, paired=len(groups) < len(own))


def label_groups(own: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    """Group architectures that share labels, directly or through another; groups are resampled independently."""
    groups: list[tuple[list[str], set[str]]] = []
    for arch, values in own.items():
        joined, labels = [arch], set(values)
        for group in [g for g in groups if g[1] & labels]:
            groups.remove(group)
            joined, labels = [*group[0], *joined], labels | group[1]
        groups.append((joined, labels))
    return [sorted(archs) for archs, _ in groups]


def jackknife_plan(labels: Mapping[str, Labels]) -> Plan:
    """Leave each label of the union out once, in sorted order, from every architecture that has it."""
    own = {arch: tuple(np.unique(values).tolist()) for arch, values in sorted(labels.items())}
    union = sorted({label for values in own.values() for label in values})
    counts = {
        arch: np.array([[int(label != left_out) for label in values] for left_out in union], dtype=np.int16)
        for arch, values in own.items()
    }
    return Plan(kind="jackknife", labels=own, counts=counts, paired=len(label_groups(own)) < len(own))


def _multinomial(size: int, replicates: int, seed: int, number: tuple[int, ...]) -> Counts:
    counts = np.empty((replicates, size), dtype=np.int16)
    share = np.full(size, 1.0 / size)
    for i in range(replicates):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(i, *number))))
        counts[i] = rng.multinomial(size, share)
    return counts
