"""Cells against rows within cells, by sums of squares: the check beside likelihoods, and the degrees of freedom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Anova", "analysis_of_variance", "shared_variance"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

#: A contrast of cells of which the law leaves less than this share is none.
RANK = 1e-10


@dataclass(frozen=True, kw_only=True)
class Anova:
    """Cells against rows within cells, with the law's coefficients as covariates (Henderson's method 3).

    Parameters
    ----------
    sd_between, sd_within : float or None
        Unbiased moment estimates (0 where that of the variance is negative); None without degrees of freedom.
    f, p : float or None
        F test of no cell effects, exact for normal errors.
    df_between, df_within : int
        Degrees of freedom that the fit leaves between and within cells.
    cells_left : float
        As how many cells these scatter, of those there are: the rest went into the coefficients.
    sd_total : float or None
        Root of the residual sum of squares over all degrees of freedom: what is known where the parts are not.
    """

    sd_between: float | None
    sd_within: float | None
    f: float | None
    p: float | None
    df_between: int
    df_within: int
    cells_left: float
    sd_total: float | None

    @property
    def icc(self) -> float | None:
        """Share of the variance that rows of a cell have in common."""
        return shared_variance(self.sd_between, self.sd_within)


def shared_variance(between: float | None, within: float | None) -> float | None:
    """Return the share of the variance that rows of a cell have in common; None where it is not known."""
    if between is None or within is None or between + within == 0:
        return None
    return float(between**2 / (between**2 + within**2))


def analysis_of_variance(y: Array, X: Array, cell: Index, weight: Array) -> Anova:
    """Compare cells with rows within cells by sums of squares.

    Parameters
    ----------
    y : array (n,)
        What is explained.
    X : array (n, r)
        Orthonormal columns that span sqrt(weight) times the regressors.
    cell : int array (n,)
        Cell of each row, counted from 0.
    weight : array (n,)
        Weights of the rows.

    Notes
    -----
    With a constant as the only regressor this is the one-way analysis of variance (Searle, Casella and McCulloch 1992,
    sections 3.6 and 5.5).

    Examples
    --------
    >>> from scipy.stats import f_oneway
    >>> y, cell = np.array([1.0, 2.0, 4.0, 5.0, 9.0, 11.0, 10.0]), np.array([0, 0, 1, 1, 2, 2, 2])
    >>> table = analysis_of_variance(y, np.full((7, 1), 7**-0.5), cell, np.ones(7))
    >>> bool(np.isclose([table.f, table.p], f_oneway(y[:2], y[2:4], y[4:])).all())
    True
    """
    from scipy.stats import f as f_law

    root, cells = np.sqrt(weight), int(cell.max()) + 1
    if cells == len(y):  # every row a cell of its own: nothing to compare, and thousands of them to decompose
        rest = root * y - X @ (X.T @ (root * y))
        df = len(y) - X.shape[1]
        return Anova(
            sd_between=None,
            sd_within=None,
            f=None,
            p=None,
            df_between=max(df, 0),
            df_within=0,
            cells_left=float(max(df, 0)),
            sd_total=float(np.sqrt(rest @ rest / df)) if df > 0 else None,
        )
    sums = np.stack([np.bincount(cell, root * x, cells) for x in X.T], axis=1)
    by_weight = np.bincount(cell, weight, cells)
    left = np.diag(by_weight) - sums @ sums.T  # Z'MZ: what the law leaves of the cells
    size, direction = np.linalg.eigh(left)
    seen = size > RANK * by_weight.max()
    rest = root * y - X @ (X.T @ (root * y))
    by_cell = np.bincount(cell, root * rest, cells) @ direction[:, seen]
    df_between = int(seen.sum())
    df_within = len(y) - X.shape[1] - df_between
    total, explained = float(rest @ rest), float(np.sum(by_cell**2 / size[seen]))
    within = max((total - explained) / df_within, 0.0) if df_within > 0 else None
    variance = f = p = None
    trace = float(size[seen].sum())
    if within is not None and df_between > 0:
        variance = max((explained - within * df_between) / trace, 0.0)
        if within > 0:
            f = explained / df_between / within
            p = float(f_law.sf(f, df_between, df_within))
    df = df_between + df_within
    return Anova(
        sd_between=None if variance is None else float(np.sqrt(variance)),
        sd_within=None if within is None else float(np.sqrt(within)),
        f=f,
        p=p,
        df_between=df_between,
        df_within=max(df_within, 0),
        cells_left=trace / float(weight.sum()) * cells,
        sd_total=float(np.sqrt(total / df)) if df > 0 else None,
    )
