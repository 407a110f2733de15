r"""Gains on parts of an evaluation, on each part's own frontier and at the allocation of the whole.

Along the optima of the whole both of its terms fall as C^-gamma, and with them those of a part, whose exponents are the
same. With y the reducible loss of the part there,

.. math:: \ln C_{ref} / C = (\ln y_r - \ln(y_t + E_t - E_r)) / \gamma_r .
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.gain import gain_of, gain_row
from smelt_scaling.analyses.splits.fits import PartFits
from smelt_scaling.analyses.splits.order import ahead_share, first_share, open_ends
from smelt_scaling.analyses.view import IntervalKind, Side, View
from smelt_scaling.frontier import Frontier, log_multiplier
from smelt_scaling.laws import Surface
from smelt_scaling.resampling import simultaneous_interval

__all__ = ["Gains", "Multipliers", "multipliers", "pair_rows", "part_rows"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Multipliers:
    """ln(C_ref / C) of G parts at J points: infinite where unreachable, NaN where a term is missing.

    Parameters
    ----------
    own, common : array (..., G, J)
        On the part's own frontier; at the allocation of the whole (NaN where that has no closed form).
    whole : array (..., J)
        Of the whole evaluation.
    """

    own: Array
    common: Array
    whole: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Gains:
    """Everything that rows are made of.

    Parameters
    ----------
    view, pair : View, (Side, Side)
        Target and reference.
    fits : (PartFits, PartFits)
        Surfaces of their parts.
    budget, sparsity : array (J,)
        Points; sparsity is None for laws without S.
    point : Multipliers
        Of the point fits.
    drawn : Multipliers or None
        Of the replicates.
    level, interval
        As asked for.
    """

    view: View
    pair: tuple[Side, Side]
    fits: tuple[PartFits, PartFits]
    budget: Array
    sparsity: Array | None
    point: Multipliers
    drawn: Multipliers | None
    level: float
    interval: IntervalKind


def multipliers(
    view: View,
    wholes: tuple[Surface, Surface],
    parts: tuple[Surface, Surface],
    budget: Array,
    sparsity: Array | None,
) -> Multipliers:
    """Return ln(C_ref / C) of every part.

    Parameters
    ----------
    view : View
        Conventions.
    wholes : pair of Surface
        Target and reference, coefficients (..., P).
    parts : pair of Surface
        Their parts, coefficients (..., G, P).
    budget, sparsity : array (J,)
        Points.
    """
    log_budget = np.log(budget)
    lacking = np.any([_lacks_a_term(surface) for surface in parts], axis=0)[..., None]
    whole = tuple(view.frontier(surface) for surface in wholes)
    own = tuple(view.frontier(_filled(surface)) for surface in parts)
    m = log_multiplier(own[0], own[1], log_budget, sparsity)
    common = np.full(m.shape, np.nan)
    if whole[0].closed_form and whole[0].allocates:
        y_target, y_reference = (
            _reducible(view, frontier, surface, budget, sparsity)
            for frontier, surface in zip(whole, parts, strict=True)
        )
        floors = [surface[surface.law.floor][..., None] for surface in parts]
        left = y_target + floors[0] - floors[1]
        with np.errstate(invalid="ignore", divide="ignore"):
            common = (np.log(y_reference) - np.log(left)) / whole[1].exponent[..., None, None]
        common = np.where(left > 0, common, np.inf)
    return Multipliers(
        own=np.where(lacking, np.nan, m),
        common=np.where(lacking, np.nan, common),
        whole=log_multiplier(whole[0], whole[1], log_budget, sparsity),
    )


def _lacks_a_term(surface: Surface) -> NDArray[np.bool_]:
    return np.asarray(~np.all([surface[name] > 0 for name in surface.law.amplitudes], axis=0))


def _filled(surface: Surface) -> Surface:
    """Put 1 for amplitudes of 0 and for what is not identified: such a frontier is not defined, and not used."""
    coef = surface.coef.copy()
    last = 1 + len(surface.law.amplitudes)
    coef[..., 1:last] = np.where(coef[..., 1:last] > 0, coef[..., 1:last], 1.0)
    coef[..., 0] = np.where(np.isnan(coef[..., 0]), 1.0, coef[..., 0])
    return Surface(law=surface.law, coef=coef)


def _reducible(
    view: View, frontier: Frontier, parts: Surface, budget: Array, sparsity: Array | None
) -> Array:
    """Return the loss of each part above its floor, where the whole is optimal: (..., G, J)."""
    best = frontier.allocate(budget, sparsity)
    size = best.flops_per_token / view.flops_per_param
    columns = {"F": best.flops_per_token, "D": best.tokens, "N": size, "N_act": size, "C": budget}
    columns |= {} if sparsity is None else {"S": sparsity}
    spread = {name: np.expand_dims(values, -2) for name, values in columns.items()}
    coef = parts.coef.copy()
    coef[..., 0] = 0.0
    return parts.law.loss_by_draw(coef, spread, 1)


def part_rows(gains: Gains, column: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return one row per point and part.

    Parameters
    ----------
    gains : Gains
        The multipliers.
    column : str
        What a part is called.
    names : tuple of str
        Their names, in the order of the parts.
    """
    rows = []
    for j, budget in enumerate(gains.budget.tolist()):
        sparsity = None if gains.sparsity is None else float(gains.sparsity[j])
        drawn = None if gains.drawn is None else gains.drawn.own[:, :, j]
        difference, apart = _from_whole(gains, j)
        own = open_ends(gains.point.own[:, j], drawn, gains.interval, gains.level)
        shared = None if gains.drawn is None else gains.drawn.common[:, :, j]
        common = open_ends(gains.point.common[:, j], shared, gains.interval, gains.level)
        ranks = _ranks(gains.point.own[:, j])
        sampled = drawn is not None and gains.interval == "percentile"
        shares = [_first(gains, j, sign) if sampled else None for sign in (1, -1)]
        for g, name in enumerate(names):
            found = None if own is None else (float(own[0][g]), float(own[1][g]))
            row = _gain_of_part(gains, g, j, budget, sparsity, found)
            at = {key: row.pop(key) for key in ("target", "reference", "budget", "sparsity")}
            m = None if drawn is None else drawn[:, g]
            rows.append(
                {
                    **at,
                    column: name,
                    **row,
                    "common_gain": gain_of(_number(gains.point.common[g, j])),
                    "common_gain_lo": None if common is None else gain_of(_number(common[0][g])),
                    "common_gain_hi": None if common is None else gain_of(_number(common[1][g])),
                    "whole_gain": gain_of(float(gains.point.whole[j])),
                    "difference": _number(difference[g]),
                    **{key: None if pair is None else _number(pair[g]) for key, pair in apart.items()},
                    "rank": ranks[g],
                    "highest_share": None if shares[0] is None else _number(shares[0][g]),
                    "lowest_share": None if shares[1] is None else _number(shares[1][g]),
                    "undefined_draws": 0 if m is None else int(np.isnan(m).sum()),
                    "draws": 0 if m is None else len(m),
                    **_coefficients(gains, g),
                }
            )
    return rows


def pair_rows(gains: Gains, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the paired difference of every two parts, at every point."""
    rows = []
    for j, budget in enumerate(gains.budget.tolist()):
        point = _as_gain(gains.point.own[:, j])
        drawn = None if gains.drawn is None else _as_gain(gains.drawn.own[:, :, j])
        for g, one in enumerate(names):
            for h in range(g + 1, len(names)):
                apart = np.array([point[g] - point[h]])
                moved = None if drawn is None else (drawn[:, g] - drawn[:, h])[:, None]
                found = open_ends(apart, moved, gains.interval, gains.level)
                sampled = drawn is not None and gains.interval == "percentile"
                rows.append(
                    {
                        "budget": budget,
                        "sparsity": None if gains.sparsity is None else float(gains.sparsity[j]),
                        "one": one,
                        "other": names[h],
                        "difference": _number(apart[0]),
                        "difference_lo": None if found is None else _number(found[0][0]),
                        "difference_hi": None if found is None else _number(found[1][0]),
                        "ahead_share": ahead_share(drawn[:, g], drawn[:, h])
                        if sampled and drawn is not None
                        else None,
                    }
                )
    return rows


def _gain_of_part(
    gains: Gains, g: int, j: int, budget: float, sparsity: float | None, found: tuple[float, float] | None
) -> dict[str, Any]:
    """Return the columns of a gain; the support is that of the part's own optimum, or of the whole without one."""
    m = float(gains.point.own[g, j])
    pair = gains.pair
    if not np.isnan(m):
        surfaces = [Surface(law=fit.surface.law, coef=fit.surface.coef[g]) for fit in gains.fits]
        pair = (replace(pair[0], surface=surfaces[0]), replace(pair[1], surface=surfaces[1]))
    loss = float(gains.view.frontier(pair[0].surface).loss(budget, sparsity))
    row = gain_row(gains.view, pair, budget, sparsity, loss, m, found)
    if np.isnan(m):
        row["loss"] = None
    return row


def _first(gains: Gains, j: int, sign: int) -> Array | None:
    """Return the shares of draws in which a part comes first or last of those that have a gain."""
    if gains.drawn is None:
        return None
    defined = ~np.isnan(gains.point.own[:, j])
    shares = np.full(len(defined), np.nan)
    shares[defined] = first_share(gains.drawn.own[:, defined, j], sign)
    return shares


def _from_whole(gains: Gains, j: int) -> tuple[Array, dict[str, Array | None]]:
    """Return each part's gain less that of the whole, with ends for each alone and for all at once."""
    point = _as_gain(gains.point.own[:, j]) - _as_gain(gains.point.whole[j])
    nothing = {f"difference_{end}": None for end in ("lo", "hi", "all_lo", "all_hi")}
    if gains.drawn is None:
        return point, dict(nothing)
    drawn = _as_gain(gains.drawn.own[:, :, j]) - _as_gain(gains.drawn.whole[:, j])[:, None]
    alone = open_ends(point, drawn, gains.interval, gains.level)
    defined = ~np.isnan(point)
    whole = gains.interval == "percentile" and defined.any() and not np.isnan(drawn[:, defined]).any()
    every = simultaneous_interval(np.where(defined, drawn, 0.0), gains.level) if whole else None
    return point, {
        "difference_lo": None if alone is None else alone[0],
        "difference_hi": None if alone is None else alone[1],
        "difference_all_lo": None if every is None else np.where(defined, every[0], np.nan),
        "difference_all_hi": None if every is None else np.where(defined, every[1], np.nan),
    }


def _as_gain(m: Array) -> Array:
    """Return gains; one that is unreachable is all of the compute, so that differences have ends."""
    return np.asarray(-np.expm1(-m))


def _ranks(m: Array) -> list[int | None]:
    """Return ranks, 1 for the largest; equal gains share the better one."""
    known = m[~np.isnan(m)]
    return [None if np.isnan(value) else 1 + int((known > value).sum()) for value in m]


def _coefficients(gains: Gains, g: int) -> dict[str, Any]:
    """Return floors and amplitudes, how well they fit, and which stand at 0."""
    row: dict[str, Any] = {}
    zero = []
    for role, side, fit in zip(("target", "reference"), gains.pair, gains.fits, strict=True):
        law = fit.surface.law
        for name in (law.floor, *law.amplitudes):
            row[f"{role}_{name}"] = _number(fit.surface[name][g])
            zero += [f"{side.arch} {name}"] if fit.surface[name][g] == 0 else []
        known = fit.residual[g][np.isfinite(fit.residual[g])]
        row[f"{role}_rmse_log"] = float(np.sqrt(np.mean(known**2))) if len(known) else None
    return {**row, "at_zero": zero}


def _number(value: Any) -> float | None:
    number = float(value)
    return number if np.isfinite(number) else None
