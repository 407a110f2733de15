"""The noise that a plan assumes: how far an endpoint lies off its surface, and what cells and pairs of it share.

Stated, or estimated from the residuals of a study by the analysis of variance of cells with the columns of the Jacobian
as covariates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.anova import analysis_of_variance
from smelt_scaling.analyses.planning.information import Spread
from smelt_scaling.errors import DataError, Note, UsageError, warning

__all__ = ["Noise", "Residuals", "cell_correlation", "settled_noise", "variance_components"]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

ESTIMATED, STATED, ASSUMED = "estimated from residuals", "stated", "assumed"
#: Losses that scatter by less are noise-free but for rounding.
NO_SCATTER = 1e-9


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Noise of the endpoints of a pair.

    Parameters
    ----------
    sd : pair of float
        Standard deviation of an endpoint's loss about its surface, in the unit of the loss: target, reference.
    icc : float
        Share of its variance that the endpoints of a cell have in common, in [0, 1).
    pair_correlation : float
        Correlation of what the two architectures' endpoints in one cell have in common, in [0, 1].
    sources : mapping
        ``noise, icc, pair_correlation`` -> "estimated from residuals", "stated" or "assumed".
    """

    sd: tuple[float, float]
    icc: float
    pair_correlation: float
    sources: Mapping[str, str]

    def spread(self, losses: tuple[float, float]) -> Spread:
        """Return how the logarithms of losses scatter about these means."""
        one, other = (sd / loss for sd, loss in zip(self.sd, losses, strict=True))
        row, cell = float(np.sqrt(1 - self.icc)), float(np.sqrt(self.icc))
        return Spread(
            row_sd=(one * row, other * row),
            cell_sd=(one * cell, other * cell),
            correlation=self.pair_correlation,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Residuals:
    """Residuals of one architecture.

    Parameters
    ----------
    residual : array (n,)
        Observed minus fitted loss.
    jacobian : array (n, p)
        d L / d fitted coordinates.
    cell : int array (n,)
        Cells, of both architectures alike.
    """

    residual: Array
    jacobian: Array
    cell: Index

    @property
    def basis(self) -> Array:
        """An orthonormal basis of the columns of the Jacobian, (n, p)."""
        return np.asarray(np.linalg.qr(self.jacobian / np.linalg.norm(self.jacobian, axis=0))[0])

    def cells(self) -> tuple[Index, Array, Array, Array]:
        """Return the cells that are there, rows of each, sums of its residuals off the Jacobian, and Z'MZ."""
        present, index = np.unique(self.cell, return_inverse=True)
        q = self.basis
        sums = np.zeros((len(present), q.shape[1]))
        np.add.at(sums, index, q)
        rows = np.bincount(index).astype(np.float64)
        return (
            present,
            rows,
            np.bincount(index, self.residual - q @ (q.T @ self.residual)).astype(np.float64),
            np.diag(rows) - sums @ sums.T,
        )


def variance_components(of: Residuals) -> tuple[float, float | None]:
    """Return the variance of single rows and that of cells; None where cells cannot be told from rows.

    A cell variance below zero is zero, and the rows have all of it then.

    Examples
    --------
    >>> of = Residuals(
    ...     residual=np.array([3.0, 1.0, -1.0, -3.0]), jacobian=np.ones((4, 1)), cell=np.array([0, 0, 1, 1]))
    >>> [round(v, 9) for v in variance_components(of)]  # one-way: mean squares 2 within and 16 = 2 + 2 * 7 between
    [2.0, 7.0]
    """
    index = np.unique(of.cell, return_inverse=True)[1]
    table = analysis_of_variance(of.residual, of.basis, index, np.ones(len(index)))
    if table.sd_total is None:
        return np.nan, None
    if table.sd_between is None or table.sd_within is None:
        return table.sd_total**2, None
    return (table.sd_within**2, table.sd_between**2) if table.sd_between > 0 else (table.sd_total**2, 0.0)


def cell_correlation(one: Residuals, other: Residuals) -> float | None:
    """Return the correlation of the cell effects of two architectures; None if nothing can be said of it."""
    parts = []
    for of in (one, other):
        shared = variance_components(of)[1]
        parts.append((*of.cells(), shared))
    common, at, to = np.intersect1d(parts[0][0], parts[1][0], return_indices=True)
    if len(common) < 2 or not parts[0][4] or not parts[1][4]:
        return None
    means, inner = [], []
    for (_, rows, totals, whole, _), place in zip(parts, (at, to), strict=True):
        means.append(totals[place] / rows[place])
        inner.append(whole[np.ix_(place, place)] / rows[place][:, None])
    expected = float(np.sum(inner[0] * inner[1])) * float(np.sqrt(parts[0][4] * parts[1][4]))
    return float(np.clip(means[0] @ means[1] / expected, 0.0, 1.0)) if expected > 0 else None


def settled_noise(
    archs: tuple[str, str],
    residuals: tuple[Residuals, Residuals] | None,
    *,
    noise: float | Mapping[str, float] | None = None,
    icc: float | None = None,
    pair_correlation: float | None = None,
) -> tuple[Noise, list[Note]]:
    """Settle the noise: what is stated, else what residuals say, else what is assumed, with a note.

    Parameters
    ----------
    archs : pair of str
        Target and reference.
    residuals : pair of Residuals or None
        Of the two fits; None for published surfaces.
    noise : float or mapping of str to float, optional
        Standard deviation of an endpoint's loss, of all architectures or of each.
    icc, pair_correlation : float, optional
        As in `Noise`.

    Raises
    ------
    UsageError
        If a stated value is out of range, or neither stated nor to be estimated.
    DataError
        If the residuals do not scatter.
    """
    found = None if residuals is None else [variance_components(of) for of in residuals]
    sources = {"noise": STATED, "icc": STATED, "pair_correlation": STATED}
    notes: list[Note] = []
    if noise is not None:
        sd = _stated_sd(archs, noise)
    elif found is None:
        raise UsageError(
            "--noise: published coefficients come without residuals; state how far an endpoint scatters about its "
            "surface and what endpoints of a cell share, such as --noise 0.005 --icc 0.5"
        )
    else:
        sources["noise"] = ESTIMATED
        sd = tuple(float(np.sqrt(single + (shared or 0.0))) for single, shared in found)
        flat = [arch for arch, value in zip(archs, sd, strict=True) if not value > NO_SCATTER]
        if flat:
            raise DataError(
                f"{' and '.join(flat)}: the residuals say nothing of the noise (as many coefficients as endpoints, or "
                "no scatter at all); state it with --noise 0.005"
            )
    if icc is None:
        if found is None:
            raise UsageError(
                "--icc: published coefficients come without residuals; state the share of the noise that endpoints of "
                "a cell have in common, such as --icc 0.5"
            )
        shares = [shared / (single + shared) for single, shared in found if shared is not None]
        sources["icc"] = ESTIMATED if shares else ASSUMED
        icc = float(np.mean(shares)) if shares else 0.0
        if not shares:
            message = (
                "one endpoint per cell, or as many coefficients as cells: what endpoints of a cell share cannot be "
                "estimated and is taken as 0, the best case; state it with --icc 0.5"
            )
            notes.append(warning("noise_assumed", message))
    elif not 0 <= icc < 1:
        raise UsageError(f"--icc {icc:g}: a share in [0, 1) is needed, such as 0.5")
    if pair_correlation is None:
        estimate = None if residuals is None else cell_correlation(*residuals)
        sources["pair_correlation"] = ASSUMED if estimate is None else ESTIMATED
        pair_correlation = 0.0 if estimate is None else estimate
        if estimate is None and icc > 0:
            message = (
                "the correlation of the two architectures' cell effects is taken as 0, the worst case for a gain; "
                "state it with --pair-correlation 0.5"
            )
            notes.append(warning("noise_assumed", message))
    elif not 0 <= pair_correlation <= 1:
        raise UsageError(
            f"--pair-correlation {pair_correlation:g}: a correlation in [0, 1] is needed, such as 0.5"
        )
    settled = Noise(sd=(sd[0], sd[1]), icc=icc, pair_correlation=pair_correlation, sources=sources)
    return settled, notes


def _stated_sd(archs: tuple[str, str], noise: float | Mapping[str, float]) -> tuple[float, ...]:
    each = noise if isinstance(noise, Mapping) else dict.fromkeys(archs, noise)
    unknown = [name for name in each if name not in archs]
    missing = [arch for arch in archs if arch not in each]
    if unknown or missing:
        shown = ",".join(f"{arch}=0.005" for arch in archs)
        raise UsageError(
            f"--noise: {', '.join(map(str, unknown)) or ', '.join(missing)} "
            f"{'is none of the two' if unknown else 'is missing'}; write one number for both, or {shown}"
        )
    wrong = [value for value in each.values() if not (value > 0 and np.isfinite(value))]
    if wrong:
        raise UsageError(
            f"--noise {wrong[0]:g}: a standard deviation > 0 of the loss is needed, such as 0.005"
        )
    return tuple(float(each[arch]) for arch in archs)
