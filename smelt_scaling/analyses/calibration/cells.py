"""Tests whose sample is the cell: endpoints of a cell share their luck, so they are no independent observations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FEWEST_CELLS",
    "CellTest",
    "Clusters",
    "cell_differences",
    "clusters",
    "compare_cells",
    "flip_test",
    "holm",
    "naive_mean",
    "wilson",
]

Array = NDArray[np.float64]
Labels = NDArray[np.str_]

#: With fewer cells than this, over 1 % of resamples would hold two cells or fewer.
FEWEST_CELLS = 7
#: Values that differ by less, relatively, are equal.
ROUNDING = 1e-12
#: Up to so many cells every pattern of signs is tried; beyond, that many random ones.
ENUMERATED = 16
PATTERNS = 1 << ENUMERATED


@dataclass(frozen=True, kw_only=True)
class CellTest:
    """A t test on cell means.

    Parameters
    ----------
    estimate : float
        Mean over cells of the difference of the cell means, target minus reference.
    lo, hi : float
        The t interval of that mean; NaN as p.
    p : float
        Two-sided; NaN with fewer than two cells, or cells without any spread.
    cells : int
        Cells of the target.
    paired : bool
        Whether it compared the same cells of both.
    """

    estimate: float
    lo: float
    hi: float
    p: float
    cells: int
    paired: bool


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """How alike the values of a cell are.

    Parameters
    ----------
    icc : float
        Intraclass correlation by one-way analysis of variance; NaN where nothing varies.
    design_effect : float
        1 + (m - 1) max(icc, 0) with m the average size of a cell: by how much the variance of a mean exceeds that of
        independent values. With no variation at all icc counts as 1, the worst there is.
    """

    icc: float
    design_effect: float


def compare_cells(
    target: Array, target_cell: Labels, reference: Array, reference_cell: Labels, level: float = 0.95
) -> CellTest:
    """Test whether residuals of the target differ from those of the reference, with cells as the sample.

    Cells that both have are compared pair by pair (Student's t, cells - 1 degrees of freedom). Where fewer than two are
    shared, the means of all cells are compared as two samples (Welch).

    Examples
    --------
    >>> cell = np.array(["x", "x", "y", "z"])
    >>> test = compare_cells(np.array([1.0, 3.0, 1.0, 3.0]), cell, np.zeros(4), cell)
    >>> test.estimate, round(test.p, 4), test.cells
    (2.0, 0.0742, 3)
    """
    from scipy.stats import ttest_1samp, ttest_ind

    shared = cell_differences(target, target_cell, reference, reference_cell)
    if len(shared) > 1:
        one, other = np.array(list(shared.values())), np.empty(0)
        found: Any = ttest_1samp(one, 0.0) if _scatter(one) else None
        estimate = float(one.mean())
    else:
        one, other = (
            np.array(list(_cell_means(values, cell).values()))
            for values, cell in ((target, target_cell), (reference, reference_cell))
        )
        testable = min(len(one), len(other)) > 1 and (_scatter(one) or _scatter(other))
        found = ttest_ind(one, other, equal_var=False) if testable else None
        estimate = float(one.mean() - other.mean()) if len(one) and len(other) else np.nan
    ends = (np.nan, np.nan) if found is None else found.confidence_interval(level)
    return CellTest(
        estimate=estimate,
        lo=float(ends[0]),
        hi=float(ends[1]),
        p=np.nan if found is None else float(found.pvalue),
        cells=len(one),
        paired=len(shared) > 1,
    )


def cell_differences(
    target: Array, target_cell: Labels, reference: Array, reference_cell: Labels
) -> dict[str, float]:
    """Return the difference of the means of each cell that both have."""
    one, other = _cell_means(target, target_cell), _cell_means(reference, reference_cell)
    return {label: one[label] - other[label] for label in one if label in other}


def naive_mean(values: Array, level: float) -> tuple[float, float, float]:
    """Return the t interval of a mean and its two-sided p as if every endpoint were independent.

    Examples
    --------
    >>> [round(float(x), 4) for x in naive_mean(np.array([1.0, 2.0, 4.0, 7.0]), 0.95)]
    [-0.71, 7.71, 0.0773]
    """
    from scipy.stats import t

    n = len(values)
    if n < 2 or np.ptp(values) == 0:
        return np.nan, np.nan, np.nan
    mean, se = float(values.mean()), float(values.std(ddof=1)) / np.sqrt(n)
    half = float(t.ppf(0.5 + level / 2, n - 1)) * se
    return mean - half, mean + half, float(2 * t.sf(abs(mean) / se, n - 1))


def flip_test(differences: Array, seed: int = 0) -> float:
    """Return the two-sided p of a mean under random signs of the cells; never below 2 ** (1 - cells).

    All patterns of signs up to 16 cells, a seeded sample of them beyond.

    Examples
    --------
    >>> flip_test(np.array([1.0, 2.0, 3.0]))
    0.25
    """
    cells = len(differences)
    if cells < 2 or not np.any(differences):
        return np.nan
    observed = abs(differences.sum()) * (1 - 1e-12)
    if cells <= ENUMERATED:
        patterns = 1.0 - 2.0 * ((np.arange(1 << cells)[:, None] >> np.arange(cells)) & 1)
        return float(np.mean(np.abs(patterns @ differences) >= observed))
    rng = np.random.default_rng(seed)
    patterns = rng.choice((-1.0, 1.0), size=(PATTERNS - 1, cells))
    return float((1 + np.sum(np.abs(patterns @ differences) >= observed)) / PATTERNS)


def clusters(values: Array, cell: Labels) -> Clusters:
    """Return the intraclass correlation and the design effect of values in cells.

    Examples
    --------
    >>> found = clusters(np.array([1.0, 1.0, 0.0, 0.0]), np.array(["x", "x", "y", "y"]))
    >>> found.icc, found.design_effect
    (1.0, 2.0)
    """
    _, index, sizes = np.unique(cell, return_inverse=True, return_counts=True)
    n, groups = len(values), len(sizes)
    if groups < 2 or n == groups:
        return Clusters(icc=np.nan, design_effect=n / max(groups, 1))
    means = np.bincount(index, values) / sizes
    between = float(np.sum(sizes * (means - values.mean()) ** 2)) / (groups - 1)
    within = float(np.sum((values - means[index]) ** 2)) / (n - groups)
    size = (n - float(np.sum(sizes**2)) / n) / (groups - 1)
    total = between + (size - 1) * within
    icc = (between - within) / total if total > 0 else np.nan
    return Clusters(icc=icc, design_effect=1 + (size - 1) * (1.0 if np.isnan(icc) else max(icc, 0.0)))


def wilson(rate: float, n: float, level: float) -> tuple[float, float]:
    """Return Wilson's interval of a share (Wilson 1927); ``n`` may be an effective number.

    Examples
    --------
    >>> [round(end, 3) for end in wilson(1.0, 96, 0.95)], [round(end, 3) for end in wilson(29 / 30, 30, 0.95)]
    ([0.962, 1.0], [0.833, 0.994])
    """
    from scipy.stats import norm

    z2 = float(norm.ppf(0.5 + level / 2)) ** 2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def holm(p: Array) -> Array:
    """Return p-values adjusted by Holm's step-down method; NaN is not of the family.

    Examples
    --------
    >>> holm(np.array([0.01, np.nan, 0.04, 0.03])).round(3).tolist()
    [0.03, nan, 0.06, 0.06]
    """
    from statsmodels.stats.multitest import multipletests

    adjusted = np.full(len(p), np.nan)
    known = ~np.isnan(p)
    if known.any():
        adjusted[known] = multipletests(p[known], method="holm")[1]
    return adjusted


def _scatter(values: Array) -> bool:
    """Whether values differ by more than rounding."""
    return bool(np.ptp(values) > ROUNDING * np.abs(values).max())


def _cell_means(values: Array, cell: Labels) -> dict[str, float]:
    labels, index = np.unique(cell, return_inverse=True)
    means = np.bincount(index, values, len(labels)) / np.bincount(index, minlength=len(labels))
    return dict(zip(labels.tolist(), means.tolist(), strict=True))
