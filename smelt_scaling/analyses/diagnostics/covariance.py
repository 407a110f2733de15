"""Cluster-robust covariance of a fit's coefficients: linearised standard errors that let runs of a cell go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.linear_problem import Linearised, linearised
from smelt_scaling.study import Study

__all__ = ["ClusterCovariance", "cluster_covariance", "standard_errors"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterCovariance:
    """Covariance of the centred coordinates of one fit.

    Parameters
    ----------
    names : tuple of str
        Coefficients that were fitted and are on no bound; an amplitude stands for the logarithm of its term at the
        centre of the runs, divided by the mean loss, and the floor is divided by the mean loss.
    theta : array (p,)
        Their values.
    covariance : array (p, p) or None
        None where it cannot be formed.
    reason : str
        Why not; empty otherwise.
    df : int
        Cells less one: degrees of freedom of t.
    bread : {"least squares", "plug-in"}
        Whether every row has curvature 1, or those within delta only (the derivative of Huber's psi).
    """

    names: tuple[str, ...]
    theta: Array
    covariance: Array | None
    reason: str
    df: int
    bread: str


def cluster_covariance(study: Study, arch: str) -> ClusterCovariance:
    r"""Return the sandwich covariance of one architecture's fit, rows of a cell kept together.

    .. math:: V = \tfrac{G}{G-1}\tfrac{n-1}{n-p} B^{-1} \Big(\sum_g s_g s_g'\Big) B^{-1}, \quad
       s_g = \sum_{i \in g} w_i \psi(r_i) J_i, \quad B = \sum_i w_i \psi'(r_i) J_i J_i'

    (Cameron and Miller 2015, equations 11 and 12). For least squares it is that of
    ``statsmodels.OLS(-r, J).fit(cov_type="cluster", cov_kwds={"groups": cell})``. For Huber's objective B counts the
    rows within delta only: with a small delta these are few, and B is as noisy as they are few. It is a linearisation
    at the fit and knows nothing of what two architectures share: standard errors to look at beside the intervals.

    Parameters
    ----------
    study : Study
        What is fitted.
    arch : str
        The architecture.

    Raises
    ------
    UsageError
        If ``study`` is not one, or has no such architecture.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> found = cluster_covariance(fit(example_endpoints(), bootstrap=0, delta=float("inf")), "smelt")
    >>> found.names, found.df, found.bread
    (('E', 'A', 'K', 'a', 'b', 'c'), 11, 'least squares')
    >>> (found.covariance.diagonal()[3:] ** 0.5).round(3).tolist()
    [0.024, 0.008, 0.027]
    """
    return _covariance(linearised(study, arch))


def _covariance(model: Linearised) -> ClusterCovariance:
    problem, fit = model.problem, model.fit
    # residuals and derivatives as the objective has them: of the logarithm, or of the loss over the mean loss
    if problem.log_residual:
        r, J, delta = -model.residual, model.jacobian, fit.delta
    else:
        predicted = problem.predicted(model.theta) / problem.scale
        r, J, delta = (
            predicted - problem.observed,
            predicted[:, None] * model.jacobian,
            fit.delta / problem.scale,
        )
    n, p, cells = *J.shape, len(model.cells)
    inside = np.abs(r) <= delta
    weighted = model.weight[:, None] * J
    bread = (weighted * inside[:, None]).T @ J
    by_row = weighted * np.clip(r, -delta, delta)[:, None]
    scores = np.stack([np.bincount(model.cell, column, cells) for column in by_row.T], axis=1)
    reason, covariance = "", None
    norms = np.sqrt(np.where(bread.diagonal() > 0, bread.diagonal(), 1.0))
    if cells <= p:
        reason = f"{cells} cells for {p} coefficients: the sandwich has no rank; add cells"
    elif n <= p or np.linalg.cond(bread / np.outer(norms, norms)) > 1e12:
        reason = (
            f"{int(inside.sum())} of {n} residuals within delta leave a direction without curvature; "
            "see --delta auto"
        )
    else:
        inverse = np.linalg.inv(bread / np.outer(norms, norms)) / np.outer(norms, norms)
        factor = cells / (cells - 1) * (n - 1) / (n - p)
        covariance = factor * inverse @ scores.T @ scores @ inverse
    return ClusterCovariance(
        names=model.names,
        theta=model.theta[model.free],
        covariance=covariance,
        reason=reason,
        df=cells - 1,
        bread="least squares" if inside.all() else "plug-in",
    )


def standard_errors(model: Linearised, level: float) -> list[dict[str, Any]]:
    """Return coefficients with linearised, cluster-robust standard errors and t intervals, one row each.

    The floor and the terms at the centre of the runs are in the unit of the loss; exponents as they are.
    """
    from scipy.stats import t

    found, law, scale = _covariance(model), model.problem.law, model.problem.scale
    rows = []
    half = float(t.ppf(0.5 + level / 2, found.df)) if found.df > 0 else np.nan
    for k, name in enumerate(found.names):
        row: dict[str, Any] = {
            "arch": model.fit.arch,
            "coefficient": name,
            "at": "",
            "value": float(found.theta[k]),
        }
        term = name in law.amplitudes
        if term:
            row |= {"at": "term at the centre of the runs", "value": float(np.exp(found.theta[k]) * scale)}
        elif name == law.floor:
            row["value"] *= scale
        row |= {
            "se": None,
            "lo": None,
            "hi": None,
            "df": found.df,
            "bread": found.bread,
            "reason": found.reason,
        }
        if found.covariance is not None:
            se = float(np.sqrt(max(found.covariance[k, k], 0.0)))
            own = row["value"] * se if term else scale * se if name == law.floor else se
            if term:
                lo, hi = (float(row["value"] * np.exp(sign * half * se)) for sign in (-1, 1))
            else:
                lo, hi = row["value"] - half * own, row["value"] + half * own
            row |= {"se": own, "lo": lo, "hi": hi}
        rows.append(row)
    return rows
