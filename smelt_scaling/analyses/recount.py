r"""FLOPs counted anew: what a gain is if the table's other account of FLOPs is the right one.

A law counts the FLOPs of a run in one way: F D, or 6 N D, or C. The table may hold another account of them: C that was
measured beside an F that was declared, F beside N. If the FLOPs of architecture j are :math:`\phi_j` times those that
the law counts, then its frontier at C spends :math:`C/\phi_j` as the law counts, and

.. math:: m'(C) = m(C / \phi_t) + \ln\phi_r - \ln\phi_t,

with m = ln(C_ref / C) of the fits as they are. This is exact where :math:`\phi_j` is one number for all runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.budget_pairs import BudgetPairs
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.frontier import Frontier, log_multiplier

__all__ = ["Recount", "other_account", "recount_of"]

Array = NDArray[np.float64]

#: Less is what rounding a printed C leaves, and moves a gain by less than half a point.
LEAST = 0.005


@dataclass(frozen=True, kw_only=True)
class Recount:
    """How many times the FLOPs that a law counts each architecture spends by the table's other account.

    Parameters
    ----------
    account : str
        The ratio, such as ``C/(F*D)``.
    target, reference : float
        Geometric means over the pairs.
    pairs : int
        How many have both.
    """

    account: str
    target: float
    reference: float
    pairs: int

    def log_multiplier(
        self, target: Frontier, reference: Frontier, log_budget: Array, sparsity: Array | None
    ) -> Array:
        """Return m = ln(C_ref / C) of budgets in FLOPs of the other account; as `frontier.log_multiplier`."""
        m = log_multiplier(target, reference, log_budget - np.log(self.target), sparsity)
        return np.asarray(m + (np.log(self.reference) - np.log(self.target)))


def other_account(
    endpoints: Endpoints, law_columns: Iterable[str], flops_per_param: float = 6.0
) -> tuple[str, Array] | None:
    """Return the table's other account of FLOPs over that of the law, row by row, with its name; None without one.

    Parameters
    ----------
    endpoints : Endpoints
        The table.
    law_columns : iterable of str
        What the law is in.
    flops_per_param : float
        F = flops_per_param * N, for laws in N.

    Examples
    --------
    >>> runs = Endpoints.from_frame(
    ...     {"arch": ["a"], "F": [6e9], "D": [1e10], "C": [6.18e19], "N": [1e9], "loss": [2.5]})
    >>> [(name, ratio.round(6).tolist()) for name, ratio in (
    ...     other_account(runs, ("F", "D")), other_account(runs, ("N", "D"), 5.0), other_account(runs, ("C",)))]
    [('C/(F*D)', [1.03]), ('F/(5*N)', [1.2]), ('F*D/C', [0.970874])]
    """
    law, there = set(law_columns), endpoints.columns
    if "F" in law:
        return ("C/(F*D)", endpoints["C"] / (endpoints.F * endpoints.D)) if {"C", "D"} <= set(there) else None
    if size := next((name for name in ("N", "N_act") if name in law), None):
        counted = flops_per_param * endpoints[size]
        if "F" in there:
            return f"F/({flops_per_param:g}*{size})", endpoints.F / counted
        if {"C", "D"} <= set(there):
            return f"C/({flops_per_param:g}*{size}*D)", endpoints["C"] / (counted * endpoints.D)
        return None
    if {"C", "F", "D"} <= set(there):
        return "F*D/C", endpoints.F * endpoints.D / endpoints["C"]
    return None


def recount_of(pairs: BudgetPairs) -> Recount | None:
    """Return how the accounts differ between two architectures; None where they do not, or there is but one."""
    found = pairs.ratios.get("recount")
    if found is None:
        return None
    known = np.isfinite(found.target) & np.isfinite(found.reference)
    if not known.any():
        return None
    target, reference = (float(np.log(side[known]).mean()) for side in (found.target, found.reference))
    if abs(target - reference) <= LEAST:
        return None
    return Recount(
        account=found.column,
        target=float(np.exp(target)),
        reference=float(np.exp(reference)),
        pairs=int(known.sum()),
    )
