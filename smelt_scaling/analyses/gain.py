"""Compute-efficiency gain: how much compute the target saves at equal loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._json import finite_or_none
from smelt_scaling.analyses.beside import Comparison, columns_beside, reachable
from smelt_scaling.analyses.fairness import audit_of
from smelt_scaling.analyses.frames import finish_frame
from smelt_scaling.analyses.pairing import pair_names
from smelt_scaling.analyses.remarks import gain_notes
from smelt_scaling.analyses.side import SAMPLED
from smelt_scaling.analyses.support import outside
from smelt_scaling.analyses.turning import turnover
from smelt_scaling.analyses.view import (
    IntervalKind,
    Side,
    View,
    check_budgets,
    common_window,
    ends,
    grid_of,
    view_of,
)
from smelt_scaling.errors import Note, UsageError
from smelt_scaling.frontier import Frontier, log_multiplier
from smelt_scaling.papers import Paper
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ce_gain", "choose_pair", "gain_of", "gain_row", "shares_of"]

Array = NDArray[np.float64]


def ce_gain(
    study: Study | Paper,
    budgets: ArrayLike,
    *,
    target: str | None = None,
    reference: str | None = None,
    sparsities: ArrayLike | None = None,
    level: float = 0.95,
    interval: IntervalKind = "percentile",
    force: bool = False,
    tolerance: Mapping[str, float] | None = None,
    sensitivity: bool = False,
) -> pd.DataFrame:
    """Tabulate the compute that the target saves relative to the reference.

    At a target budget C the target's frontier reaches a loss L*; the reference's frontier reaches it at C_ref.
    The gain is 1 - C/C_ref and the multiplier C_ref/C. Both architectures are evaluated at the same sparsity.

    Parameters
    ----------
    study : Study or Paper
        Fitted or published surfaces.
    budgets : array-like
        Training FLOPs of the target.
    target, reference : str, optional
        Architectures. With exactly two, the first by case-folded name is the reference unless named.
    sparsities : array-like, optional
        By default the median of each sparsity tier over cells.
    level : float
        Nominal coverage of the interval.
    interval : {"percentile", "jackknife-t", "wild-cr3"}
        Order statistics of the bootstrap draws, a t interval of leave-one-label-out fits, or order statistics of the
        wild draws, if the study has them.
    force : bool
        Compare losses of different tokenizers, evaluation sets or domains nevertheless; every row is marked.
    tolerance : mapping of str to float, optional
        Largest deviations between paired budgets, as for `audit_fairness`.
    sensitivity : bool
        Fit anew under other Huber thresholds, residuals, weights and counts of FLOPs, and give the range of each gain.

    Returns
    -------
    DataFrame
        One row per budget and sparsity: ``target, reference, budget, sparsity, gain, gain_lo, gain_hi, multiplier,
        multiplier_lo, multiplier_hi, reference_budget, loss, unreachable, hi_unreachable, extrapolated, support,
        unreachable_draws, draws, gain_positive_share``. Gains are fractions. Where the source knows more:
        ``gain_rounding`` (how far the digits of printed coefficients let the gain move), ``noise_equivalent_gain``
        (what one standard deviation of repeated runs is worth), ``time_multiplier`` with its ends (wall-clock, where
        both architectures have tokens_per_s), ``gain_at_matched_flops`` with its ends (FLOPs counted by the table's
        other account, where it has one), ``forced`` (in what the losses differ). With draws:
        ``gain_together_lo``, ``gain_together_hi`` (an interval for all rows at once) and ``gain_lo_error``,
        ``gain_hi_error`` (Monte-Carlo standard errors of the ends). ``.attrs`` holds ``notes``,
        ``turnover``, ``settings`` and, of a study, ``fairness``: the audit of the two budgets, a row per quantity.
        ``gain_hi_error`` (Monte-Carlo standard errors of the ends). With ``sensitivity``: ``sensitivity_lo,
        sensitivity_hi``, None where a choice puts the loss out of reach. ``.attrs`` holds ``notes``,
        ``turnover`` and ``settings``.

    Raises
    ------
    UsageError
        If an architecture, budget, sparsity, level or tolerance is invalid.
        If an architecture, budget, sparsity or level is invalid, or published coefficients are to be fitted anew.
    DataError
        If the two losses are of different tokenizers, evaluation sets or domains, and nothing forces a number, or
        of different units.
    FrontierError
        If a surface is not identified or not certified.

    Examples
    --------
    >>> from smelt_scaling.papers import load_paper
    >>> table = ce_gain(load_paper("smelt"), [1e20, 1e21], target="smelt", reference="baseline")
    >>> table["gain"].round(5).tolist()
    [0.09908, 0.07815, 0.06728, 0.17996, 0.15799, 0.14646]
    """
    view = view_of(study)
    target, reference, notes = choose_pair(view, target, reference)
    pair = (view.side(target), view.side(reference))
    forced = view.require_comparable(pair, force=force)
    view.require_frontier(pair)
    audit = audit_of(study, target, reference, tolerance) if isinstance(study, Study) else None
    if audit is None and tolerance:
        raise UsageError(
            "tolerance: published surfaces come without runs whose budgets could be compared; leave it out"
        )
    grid = view.sparsity_grid(sparsities, pair)
    budget, sparsity = grid_of(check_budgets(budgets), grid)
    frontiers = (view.frontier(pair[0].surface), view.frontier(pair[1].surface))
    drawn, certified = _paired_draws(view, pair, interval)
    log_budget = np.log(budget)
    m = reachable(log_multiplier(frontiers[0], frontiers[1], log_budget, sparsity))
    m_drawn = None if drawn is None else reachable(log_multiplier(drawn[0], drawn[1], log_budget, sparsity))
    found = ends(m, m_drawn, interval, level)
    moved = 0.0
    if m_drawn is not None and found is not None and not certified.all():
        moved = _largest_move(found, ends(m, m_drawn[certified], interval, level))
    loss = frontiers[0].loss(budget, sparsity)
    rows = []
    for j, value in enumerate(budget.tolist()):
        at = None if sparsity is None else float(sparsity[j])
        pair_ends = None if found is None else (float(found[0][j]), float(found[1][j]))
        row = gain_row(view, pair, value, at, float(loss[j]), float(m[j]), pair_ends)
        rows.append(row | shares_of(None if m_drawn is None else m_drawn[:, j], interval))
    beside, more = columns_beside(
        Comparison(
            view=view,
            pair=pair,
            budget=budget,
            sparsity=sparsity,
            m=m,
            frontiers=frontiers,
            m_drawn=m_drawn,
            drawn=drawn,
            loss=loss,
            forced=forced,
            level=level,
            interval=interval,
            recount=None if audit is None else audit.recount,
        )
    )
    tried = {}
    if sensitivity:
        from smelt_scaling.analyses.diagnostics.beside_gain import choice_columns

        ranges, said, count = choice_columns(study, (target, reference), budget, sparsity, m)
        beside |= ranges
        more += said
        tried = {"sensitivity_choices": count}
    rows = [row | {name: values[j] for name, values in beside.items()} for j, row in enumerate(rows)]
    notes += more
    if audit is not None:
        notes += audit.notes
    turning = [turnover(frontiers[0], frontiers[1], at) for at in grid]
    notes += gain_notes(
        view,
        rows,
        pair,
        turning,
        interval,
        drawn=drawn is not None,
        uncertified=int((~certified).sum()),
        moved=moved,
    )
    frame = finish_frame(
        rows, view, notes, level=level, interval=interval, target=target, reference=reference, **tried
    )
    frame.attrs["turnover"] = turning
    if audit is not None:
        frame.attrs["fairness"] = audit.rows
    frame.attrs["window"] = common_window(
        pair
    )  # marks peaks and crossings that lie beyond the runs of either
    return frame


def choose_pair(view: View, target: str | None, reference: str | None) -> tuple[str, str, list[Note]]:
    """Settle which architecture of a view is compared with which; as `pair_names`."""
    return pair_names(view.sides, target, reference)


def _paired_draws(
    view: View, pair: tuple[Side, Side], interval: IntervalKind
) -> tuple[tuple[Frontier, Frontier] | None, NDArray[np.bool_]]:
    """Return the frontiers of both sides' replicates, and in which replicates both are certified."""
    target, reference = (side.replicates(interval) for side in pair)
    if target is None or reference is None:
        return None, np.empty(0, dtype=bool)
    both = (view.frontier(target.surface), view.frontier(reference.surface))
    return both, target.certified & reference.certified


def gain_row(
    view: View,
    pair: tuple[Side, Side],
    budget: float,
    sparsity: float | None,
    loss: float,
    m: float,
    found: tuple[float, float] | None,
) -> dict[str, Any]:
    """Return the columns of one gain: the multiplier m = ln(C_ref / C) with its ends, and where it is extrapolated."""
    target, reference = pair
    lo, hi = found if found is not None else (None, None)
    reference_budget = budget * float(np.exp(m)) if np.isfinite(m) else None
    support = _support(view, target, budget, sparsity)
    if reference_budget:  # one too small for a double has no optimum
        support += _support(view, reference, reference_budget, sparsity)
    return {
        "target": target.arch,
        "reference": reference.arch,
        "budget": budget,
        "sparsity": sparsity,
        "gain": gain_of(m),
        "gain_lo": gain_of(lo),
        "gain_hi": gain_of(hi),
        "multiplier": _multiplier(m),
        "multiplier_lo": _multiplier(lo),
        "multiplier_hi": _multiplier(hi),
        "reference_budget": reference_budget,
        "loss": loss,
        "unreachable": bool(np.isinf(m)),
        "hi_unreachable": hi is not None and bool(np.isinf(hi)),
        "extrapolated": bool(support) if target.window and reference.window else None,
        "support": support,
    }


def shares_of(m: Array | None, interval: IntervalKind) -> dict[str, Any]:
    """Count the replicates of one row; leave-one-out fits are no sample, so shares of them say nothing."""
    sampled = m is not None and interval in SAMPLED
    return {
        "unreachable_draws": int(np.isinf(m).sum()) if sampled and m is not None else 0,
        "draws": 0 if m is None else len(m),
        "gain_positive_share": float((m > 0).mean()) if sampled and m is not None else None,
    }


def gain_of(m: float | None) -> float | None:
    """Return the gain of a multiplier ln(C_ref / C); None where it is unreachable or undefined."""
    if m is None or not np.isfinite(m):
        return None
    with np.errstate(over="ignore"):
        return finite_or_none(float(-np.expm1(-m)) + 0.0)  # + 0.0 turns -0.0 into 0.0


def _multiplier(m: float | None) -> float | None:
    return None if m is None or not np.isfinite(m) else finite_or_none(float(np.exp(m)))


def _support(view: View, side: Side, budget: float, sparsity: float | None) -> list[dict[str, Any]]:
    frontier = view.frontier(side.surface)
    if not frontier.allocates:
        return outside(side.window, arch=side.arch, C=budget)
    best = frontier.allocate(budget, sparsity)
    flops, tokens = float(best.flops_per_token), float(best.tokens)
    return outside(
        side.window,
        arch=side.arch,
        F=flops,
        D=tokens,
        C=budget,
        S=sparsity,
        TPP=tokens * view.flops_per_param / flops,
    )


def _largest_move(found: tuple[Array, Array], without: tuple[Array, Array] | None) -> float:
    if without is None:
        return float("inf")
    before, after = np.concatenate(found), np.concatenate(without)
    with np.errstate(invalid="ignore"):
        change = np.abs(np.expm1(-before) - np.expm1(-after))
    return float(np.nanmax(np.where(before == after, 0.0, change)))
