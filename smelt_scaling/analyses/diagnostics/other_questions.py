"""The same fits, asked otherwise: at another S, or with coefficients rounded as people print them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._derive import TIER_GAP
from smelt_scaling.analyses.claims import perturbed_values
from smelt_scaling.analyses.diagnostics.headline import Headline
from smelt_scaling.analyses.gain import gain_of
from smelt_scaling.analyses.rounding import moved_by_rounding
from smelt_scaling.analyses.view import view_of
from smelt_scaling.endpoints import default_sparsities
from smelt_scaling.errors import SmeltScalingError
from smelt_scaling.laws import Surface
from smelt_scaling.study import Study

__all__ = ["DIGITS", "digit_rows", "row_of", "sparsity_rows"]

Array = NDArray[np.float64]
Row = dict[str, Any]

#: Significant digits to which people round the coefficients they print.
DIGITS = (4, 3)


def row_of(m: float | None, default: float, *, reason: str, **columns: Any) -> Row:
    """Return a row with the gain of a multiplier m, and its change against the study's own."""
    gain, own = gain_of(m), gain_of(default)
    if m is not None and gain is None and not reason:
        reason = "the reference never reaches the loss of the target"
    return {
        **{name: columns[name] for name in ("group", "choice", "kind", "is_default")},
        "gain": gain,
        "change": None if gain is None or own is None else gain - own,
        "multiplier": None if gain is None or m is None else float(np.exp(m)),
        "gain_rounding": columns.get("gain_rounding"),
        "left_out": columns.get("left_out", 0),
        "certified": columns["certified"],
        "reason": reason or None,
    }


def sparsity_rows(study: Study, headline: Headline, default: float) -> list[Row]:
    """Evaluate the same fits at other values of S: elsewhere within its tier, and at other tiers."""
    if headline.sparsity is None:
        return []
    rows, at = study.endpoints, headline.sparsity
    tiers, medians = np.unique(rows.tiers), default_sparsities(rows)
    distance = np.abs(np.log1p(-rows.S) - np.log1p(-at))
    own = rows.tiers[distance.argmin()] if "S" in rows and distance.min() <= TIER_GAP else None
    tried = [(f"S = {at:.4g}, as asked", at, "estimator", True)]
    if at in medians:
        tried = [(f"S = {at:.4g}, median of the tier", at, "estimator", True)]
    for arch in (headline.target, headline.reference):
        there = (rows.tiers == own) & (rows.arch == arch)
        if there.any():
            median = float(default_sparsities(rows.select(there))[0])
            tried.append((f"S = {median:.4g}, median of {arch}", median, "estimator", False))
    tried.append((f"S = {at:.2g}, to a percent", round(at, 2), "estimator", False))
    tried += [
        (f"S = {s:.4g}, another tier", float(s), "question", False)
        for tier, s in zip(tiers, medians, strict=False)  # a table without S has no medians
        if tier != own
    ]
    found = []
    for name, value, kind, own_choice in tried:
        m, reason = None, ""
        try:
            m = replace(headline, sparsity=value).of(study)
        except SmeltScalingError as error:
            reason = str(error)
        found.append(
            row_of(
                m,
                default,
                group="S",
                choice=name,
                kind=kind,
                is_default=own_choice,
                certified=True,
                reason=reason,
            )
        )
    return found


def digit_rows(study: Study, headline: Headline, default: float) -> list[Row]:
    """Evaluate coefficients rounded as people print them, and how far the digits let the gain move."""
    view = view_of(study)
    sides = [view.side(arch) for arch in (headline.target, headline.reference)]
    columns = {"group": "digits", "kind": "question", "certified": True}
    found = [row_of(default, default, choice="all digits", is_default=True, reason="", **columns)]

    def gain(target: Surface, reference: Surface) -> Array:
        surfaces = {headline.target: target, headline.reference: reference}
        m = headline.of_surfaces(surfaces, view.flops_per_param)
        return np.where(np.isfinite(m), -np.expm1(-np.where(np.isfinite(m), m, 0.0)), np.nan)

    for digits in DIGITS:
        printed = [_printed(side.surface, digits) for side in sides]
        points = [Surface(law=stack.law, coef=stack.coef[0]) for stack in printed]
        reason, m, moved = "", None, None
        try:
            surfaces = dict(zip((headline.target, headline.reference), points, strict=True))
            m = float(headline.of_surfaces(surfaces, view.flops_per_param))
            stacked = [
                replace(side, surface=point, rounded=stack)
                for side, point, stack in zip(sides, points, printed, strict=True)
            ]
            bound = moved_by_rounding(stacked, gain)
            moved = None if bound is None or not np.isfinite(bound) else float(bound)
        except SmeltScalingError as error:
            reason = str(error)
        name = f"{digits} significant digits"
        found.append(
            row_of(m, default, choice=name, is_default=False, reason=reason, gain_rounding=moved, **columns)
        )
    return found


def _printed(surface: Surface, digits: int) -> Surface:
    """Return coefficients as printed, then each alone half a unit of its last digit up, and down, as draws."""
    texts = {name: f"{value:.{digits - 1}e}" for name, value in surface.coefficients.items()}
    values = perturbed_values(texts)
    return Surface(law=surface.law, coef=np.stack([values[name] for name in surface.law.parameters], axis=-1))
