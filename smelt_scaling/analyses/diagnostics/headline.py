"""The one number a diagnosis is about, and the study fitted again under other choices or without some rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.budgets import round_budgets
from smelt_scaling.analyses.pairing import pair_names
from smelt_scaling.analyses.view import check_budgets, common_window, view_of
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, SmeltScalingError, UsageError
from smelt_scaling.fitting import fit_architecture
from smelt_scaling.frontier import Frontier, log_multiplier
from smelt_scaling.laws import AdditiveLaw, Surface, get_law
from smelt_scaling.papers import Paper
from smelt_scaling.study import Study

__all__ = ["Headline", "headline_of", "headline_settings", "refitted"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Headline:
    """One gain: of a pair of architectures, at one budget and one sparsity.

    Parameters
    ----------
    target, reference : str
        Architectures.
    budget : float
        Training FLOPs of the target.
    sparsity : float or None
        At which both are evaluated; None for laws without S.
    """

    target: str
    reference: str
    budget: float
    sparsity: float | None

    def of_surfaces(self, surfaces: Mapping[str, Surface], flops_per_param: float = 6.0) -> Array:
        """Return m = ln(C_ref / C_tgt) of surfaces, or of draws of them: the shape of their leading axes.

        Infinite where the reference never reaches the loss. The gain is ``-expm1(-m)``.
        """
        target, reference = (
            Frontier(surfaces[arch], flops_per_param=flops_per_param)
            for arch in (self.target, self.reference)
        )
        at = None if self.sparsity is None else np.array([self.sparsity])
        return np.asarray(log_multiplier(target, reference, np.log([self.budget]), at)[..., 0])

    def of(self, study: Study) -> float:
        """Return m of a study's point fits.

        Raises
        ------
        FrontierError
            If a fit is not certified, or does not identify its frontier or the sparsity.

        Examples
        --------
        >>> from smelt_scaling import example_endpoints, fit
        >>> study = fit(example_endpoints(), bootstrap=0)
        >>> headline = headline_of(study)[0]
        >>> headline.budget, round(headline.sparsity, 3), round(headline.of(study), 4)
        (1e+21, 0.947, 0.0881)
        """
        view = view_of(study)
        pair = (view.side(self.target), view.side(self.reference))
        view.require_frontier(pair)
        view.sparsity_grid(None if self.sparsity is None else [self.sparsity], pair)
        surfaces = {side.arch: side.surface for side in pair}
        return float(self.of_surfaces(surfaces, view.flops_per_param))


def headline_of(
    study: Study | Paper,
    *,
    target: str | None = None,
    reference: str | None = None,
    budget: float | None = None,
    sparsity: float | None = None,
) -> tuple[Headline, list[Note]]:
    """Settle the gain that a diagnosis is about.

    Parameters
    ----------
    study : Study or Paper
        Fitted or published architectures.
    target, reference : str, optional
        As for `ce_gain`.
    budget : float, optional
        By default the largest power of ten among the budgets that the runs of both cover; about their geometric middle
        if there is none.
    sparsity : float, optional
        By default the middle one of the default sparsities at which both surfaces hold.

    Returns
    -------
    Headline
        The gain.
    list of Note
        How the pair was chosen, where that was left open.

    Raises
    ------
    UsageError
        If an argument is invalid, or no budget is common to both and none is named.
    """
    view = view_of(study)
    target, reference, notes = pair_names(view.sides, target, reference)
    pair = (view.side(target), view.side(reference))
    if budget is None:
        window = common_window(pair)
        if window is None or not window[0] <= window[1]:
            raise UsageError("budget: the runs of the two have none in common; name one with --budget 1e21")
        budget = round_budgets(*window)[-1]
    (budget,) = check_budgets(budget).tolist()
    grid = view.sparsity_grid(None if sparsity is None else [sparsity], pair)
    chosen = sorted(grid, key=lambda s: s or 0.0)[len(grid) // 2]
    return Headline(target=target, reference=reference, budget=budget, sparsity=chosen), notes


def headline_settings(
    study: Study,
    target: str | None,
    reference: str | None,
    budget: float | None,
    sparsity: float | None,
) -> tuple[dict[str, Any], list[Note]]:
    """Return the gain that a diagnosis is about as settings, for parts that hold without one.

    Where nothing is named and there is no one gain (one architecture, or several), all are None.

    Raises
    ------
    UsageError
        As `headline_of`, if any of it is named.
    """
    try:
        found, notes = headline_of(
            study, target=target, reference=reference, budget=budget, sparsity=sparsity
        )
    except SmeltScalingError:
        if (target, reference, budget, sparsity) != (None,) * 4:
            raise
        return dict.fromkeys(("target", "reference", "budget", "sparsity")), []
    return dict(vars(found)), notes


def refitted(
    study: Study,
    endpoints: Endpoints | None = None,
    *,
    law: str | AdditiveLaw | None = None,
    **changed: Any,
) -> Study:
    """Return the study with point fits made anew, without draws.

    Outliers are not looked for again: rows that a fit left out stay out.

    Parameters
    ----------
    study : Study
        What is fitted already; its settings hold unless changed.
    endpoints : Endpoints, optional
        Other rows, such as a selection of the study's.
    law : str or AdditiveLaw, optional
        Another law.
    **changed
        Settings of the fit to change, as in `FitSettings`.

    Raises
    ------
    DataError, FitError, UsageError
        As `fit` does.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> study = fit(example_endpoints(), bootstrap=0)
    >>> other = refitted(study, delta=float("inf"))
    >>> other.draws, other["smelt"].delta
    (None, inf)
    """
    from threadpoolctl import threadpool_limits

    rows = study.endpoints if endpoints is None else endpoints
    settings = replace(study.settings, **changed)
    labels, _ = rows.cells(study.bootstrap.unit)
    chosen = study.law if law is None else get_law(law)
    with threadpool_limits(limits=1):
        fits = {
            arch: fit_architecture(
                arch,
                own,
                chosen,
                settings,
                n_cells=len(np.unique(labels[rows.arch == arch])),
                labels=labels[rows.arch == arch],
            ).result
            for arch, own in rows.by_arch().items()
        }
    return replace(
        study,
        law=chosen,
        fits=fits,
        draws=None,
        jackknife=None,
        wild=None,
        settings=settings,
        endpoints=rows,
    )
