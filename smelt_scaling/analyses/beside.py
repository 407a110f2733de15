"""What stands beside a gain where the source knows it: rounding, noise, time, other FLOPs, a forced pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted
from smelt_scaling.analyses.interval_ends import ends_beside
from smelt_scaling.analyses.recount import Recount
from smelt_scaling.analyses.rounding import moved_by_rounding, rounding_note
from smelt_scaling.analyses.side import SAMPLED
from smelt_scaling.analyses.view import IntervalKind, Side, View, ends
from smelt_scaling.errors import Note, info, warning
from smelt_scaling.formatting import format_number, format_percent
from smelt_scaling.frontier import Frontier, log_multiplier
from smelt_scaling.laws import Surface

__all__ = ["Comparison", "columns_beside", "reachable"]

Array = NDArray[np.float64]
Columns = dict[str, list[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """A gain as far as it is computed: the rows of its table and the multipliers of each.

    Parameters
    ----------
    view : View
        Where the surfaces come from.
    pair : (Side, Side)
        Target and reference.
    budget, sparsity : (rows,) array
        Of every row; no sparsity for laws without S.
    m : (rows,) array
        ln(C_ref / C_tgt), infinite where unreachable.
    frontiers : (Frontier, Frontier)
        Of the points.
    m_drawn, drawn
        The same of the replicates, with a leading axis; None without.
    loss : (rows,) array
        Loss of the target.
    forced : tuple of str
        In what the losses differ, although the comparison was asked for.
    level, interval
        As asked for.
    recount : Recount or None
        How the table's other account of FLOPs differs between the two.
    """

    view: View
    pair: tuple[Side, Side]
    budget: Array
    sparsity: Array | None
    m: Array
    frontiers: tuple[Frontier, Frontier]
    m_drawn: Array | None
    drawn: tuple[Frontier, Frontier] | None
    loss: Array
    forced: tuple[str, ...]
    level: float
    interval: IntervalKind
    recount: Recount | None = None


#: ln(C_ref / C_tgt) at which a gain is 1 to the last bit of a double.
OUT_OF_REACH = 53 * np.log(2.0)


def reachable(m: Array) -> Array:
    """Count a multiplier so large that the gain rounds to 1 as unreachable: nobody can name that budget."""
    return np.where(m < OUT_OF_REACH, m, np.inf)


def columns_beside(comparison: Comparison) -> tuple[Columns, list[Note]]:
    """Return the further columns of a table of gains, and their notes; no column where the source knows nothing."""
    columns: Columns = {}
    notes: list[Note] = []
    for part in (_forced, _ends, _rounding, _noise, _time, _matched):
        more, said = part(comparison)
        columns |= more
        notes += said
    return columns, notes


def _values(array: Array) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in array]


def _forced(comparison: Comparison) -> tuple[Columns, list[Note]]:
    """Mark a comparison of losses that are not comparable."""
    if not comparison.forced:
        return {}, []
    target, reference = comparison.pair
    what = ", ".join(
        f"{name} ({'+'.join(target.measured_on[name])} of {target.arch}, "
        f"{'+'.join(reference.measured_on[name])} of {reference.arch})"
        for name in comparison.forced
    )
    message = (
        f"forced: the losses differ in {what} and are not comparable; this is no compute saved at equal loss"
    )
    rows = len(comparison.budget)
    return {"forced": [", ".join(comparison.forced)] * rows}, [warning("forced_comparison", message, rows)]


def _ends(comparison: Comparison) -> tuple[Columns, list[Note]]:
    """Say how the intervals hold for all rows at once, and against other draws."""
    if comparison.m_drawn is None or comparison.interval not in SAMPLED:
        return {}, []
    return ends_beside(comparison.m_drawn, comparison.level), []


def _rounding(comparison: Comparison) -> tuple[Columns, list[Note]]:
    """Bound each gain by the digits of printed coefficients."""
    view, log_budget = comparison.view, np.log(comparison.budget)

    def gain(target: Surface, reference: Surface) -> Array:
        frontiers = view.frontier(target), view.frontier(reference)
        m = reachable(log_multiplier(*frontiers, log_budget, comparison.sparsity))
        with np.errstate(over="ignore"):
            found = -np.expm1(-m)
        return np.where(np.isfinite(found) & np.isfinite(m), found, np.nan)

    moved = moved_by_rounding(comparison.pair, gain)
    if moved is None:
        return {}, []
    known = moved[np.isfinite(moved)]
    unknown = len(moved) - len(known)
    effects = (
        [("a gain", f"{format_number(100 * known.max(), 2)} points (column gain_rounding)")]
        if len(known)
        else []
    )
    rest = (
        f"in {counted(unknown, 'row')} nothing bounds the gain, since within it the loss may be out of reach"
    )
    return {"gain_rounding": _values(moved)}, rounding_note(effects, len(moved), rest if unknown else "")


def _noise(comparison: Comparison) -> tuple[Columns, list[Note]]:
    """Say what one standard deviation of repeats is worth in compute.

    A target that is better by chance, by one standard deviation s, seems to save what the reference needs to go from
    L + s to L: ln C moves by ln(1 + s/(L - E))/gamma, to first order s/(gamma (L - E)).
    """
    repeats = [side.repeats for side in comparison.pair if side.repeats is not None]
    if not repeats:
        return {}, []
    free = sum(found.free for found in repeats)
    sd = float(np.sqrt(sum(found.free * found.sd**2 for found in repeats) / free))
    reference, loss, at = comparison.frontiers[1], comparison.loss, comparison.sparsity
    with np.errstate(invalid="ignore", divide="ignore"):
        m = np.log(reference.budget_for(loss, at)) - np.log(reference.budget_for(loss + sd, at))
    gain = np.where(np.isfinite(m), -np.expm1(-m), np.nan)
    known = gain[np.isfinite(gain)]
    if not len(known):
        return {"noise_equivalent_gain": _values(gain)}, []
    low, high = format_percent(float(known.min())), format_percent(float(known.max()))
    worth = low if low == high else f"{low} to {high}"
    rows, settings = sum(found.rows for found in repeats), sum(found.settings for found in repeats)
    message = (
        f"one standard deviation of repeats ({sd:.2g} {comparison.view.loss_unit.split('/')[0]}; {rows} rows of "
        f"{settings} settings) is worth {worth} of compute here; context, no test: the interval is one"
    )
    return {"noise_equivalent_gain": _values(gain)}, [info("noise_equivalent_gain", message, rows)]


def _time(comparison: Comparison) -> tuple[Columns, list[Note]]:
    """Turn compute into wall-clock time where both architectures have a measured throughput."""
    target, reference = comparison.pair
    if target.throughput is None or reference.throughput is None:
        return {}, []
    names = ("time_multiplier", "time_multiplier_lo", "time_multiplier_hi")
    rows = len(comparison.budget)
    if not all(frontier.allocates for frontier in comparison.frontiers):
        message = f"law {comparison.view.law.name} has no F*, so tokens_per_s says nothing of wall-clock time"
        return {name: [None] * rows for name in names}, [warning("no_time_multiplier", message, rows)]
    parts = _log_time(comparison, comparison.frontiers, comparison.m)
    time = np.where(np.isinf(comparison.m), np.inf, parts[0] + comparison.m)
    lo = hi = np.full(rows, np.nan)
    if comparison.drawn is not None and comparison.m_drawn is not None:
        drawn = _log_time(comparison, comparison.drawn, comparison.m_drawn)[0] + comparison.m_drawn
        drawn = np.where(np.isinf(comparison.m_drawn), np.inf, drawn)
        # a replicate whose optimum was not measured has no place in the order, so there is no interval
        unknown = np.isnan(drawn).any(axis=0) | np.isnan(time)
        filled = [np.where(np.isnan(values), 0.0, values) for values in (time, drawn)]  # infinity stays
        found = ends(filled[0], filled[1], comparison.interval, comparison.level)
        if found is not None:
            lo, hi = np.where(unknown, np.nan, np.exp(np.stack(found)))
    notes = []
    for side, speed in zip(comparison.pair, parts[1:], strict=True):
        outside = int((np.isnan(speed) & np.isfinite(comparison.m)).sum())
        if outside:
            message = (
                f"{side.arch}: in {outside} of {rows} rows the optimum lies outside the FLOPs per token, or the "
                "sparsity, at which tokens_per_s was measured: no wall-clock multiplier there"
            )
            notes.append(warning("no_time_multiplier", message, outside))
    with np.errstate(over="ignore"):
        columns = dict(zip(names, map(_values, (np.exp(time), lo, hi)), strict=True))
    return columns, notes


def _log_time(
    comparison: Comparison, frontiers: tuple[Frontier, Frontier], m: Array
) -> tuple[Array, Array, Array]:
    """Return ln(Phi_tgt/Phi_ref), ln Phi_tgt, ln Phi_ref at the optima; NaN outside the measured sizes."""
    log_c = np.broadcast_to(np.log(comparison.budget), m.shape)
    at = comparison.sparsity
    speeds = []
    for side, frontier, spent in zip(comparison.pair, frontiers, (np.zeros_like(m), m), strict=True):
        budget = log_c + np.where(np.isfinite(spent), spent, 0.0)  # unreachable: no budget, and m says so
        assert side.throughput is not None
        speeds.append(side.throughput.log_speed_at(frontier.log_flops(budget, at), at))
    return speeds[0] - speeds[1], speeds[0], speeds[1]


def _matched(comparison: Comparison) -> tuple[Columns, list[Note]]:
    """Give the gain by the table's other account of FLOPs, where it has one that differs; the audit says so."""
    recount, at = comparison.recount, comparison.sparsity
    if recount is None:
        return {}, []
    log_budget = np.log(comparison.budget)
    m = reachable(recount.log_multiplier(*comparison.frontiers, log_budget, at))
    drawn = comparison.drawn
    m_drawn = None if drawn is None else reachable(recount.log_multiplier(*drawn, log_budget, at))
    found = ends(m, m_drawn, comparison.interval, comparison.level) or (np.full(len(m), np.nan),) * 2
    names = ("gain_at_matched_flops", "gain_at_matched_flops_lo", "gain_at_matched_flops_hi")
    with np.errstate(over="ignore"):
        gains = [np.where(np.isfinite(values), -np.expm1(-values), np.nan) for values in (m, *found)]
    return dict(zip(names, map(_values, gains), strict=True)), []
