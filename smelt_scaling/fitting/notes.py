"""The caveats of a point estimate, in words."""

from __future__ import annotations

from collections.abc import Mapping

from smelt_scaling.engine.design import (
    CONDITION_REFUSE_INTERVALS,
    CONDITION_SINGULAR,
    CONDITION_WARN,
    Identified,
    moving_together,
)
from smelt_scaling.errors import Note, info, warning
from smelt_scaling.fitting.result import Certificate
from smelt_scaling.laws import AdditiveLaw

__all__ = ["dense_tier_notes", "fit_notes"]


def fit_notes(
    arch: str,
    law: AdditiveLaw,
    certificate: Certificate,
    found: Identified,
    unidentified: Mapping[str, str],
    held: Mapping[str, str],
    degrees_of_freedom: int,
) -> tuple[Note, ...]:
    """Return the notes of one architecture's fit, most serious first."""
    notes = [
        warning("not_identified", f"{arch}: {n} is not identified: {why}") for n, why in unidentified.items()
    ]
    if "S" in found.only_at:
        hint = "; for dense models use --law additive" if found.only_at["S"] == 0 else ""
        message = f"{arch}: the surface holds at S = {found.only_at['S']:.4g} only{hint}"
        notes.append(warning("not_identified", message))
    if found.collinear:
        pair = " and ".join(found.collinear)
        together = moving_together(law, found.collinear)
        message = f"{pair} cannot be told apart: in this design {together}; no interval is given"
        notes.append(warning("collinear", f"{arch}: {message}"))
    if degrees_of_freedom == 0:
        message = "as many parameters as endpoints: the fit interpolates, with no residual left"
        notes.append(warning("ill_conditioned", f"{arch}: {message}"))
    if CONDITION_WARN < certificate.condition <= CONDITION_SINGULAR:
        refused = certificate.condition > CONDITION_REFUSE_INTERVALS
        effect = "no interval is given" if refused else "intervals are wide"
        message = f"condition number {certificate.condition:.2g} (good designs: about 50): {effect}"
        notes.append(warning("ill_conditioned", f"{arch}: {message}"))
    for name in certificate.at_bounds:
        if name == law.floor:
            message = f"{name} ended at 0: not identified, these data do not show where the loss levels off"
            notes.append(warning("floor_at_zero", f"{arch}: {message}"))
        else:
            notes.append(warning("at_bound", f"{arch}: {name} ended on a bound"))
    if not certificate.certified:
        notes.append(warning("not_certified", f"{arch}: {certificate.status.value}"))
    if certificate.linear_zone_share > 0.9 and degrees_of_freedom > 0:
        share = f"{certificate.linear_zone_share:.0%} of residuals exceed delta"
        notes.append(info("linear_zone", f"{arch}: {share}: close to least absolute deviations"))
    if held:
        shown = ", ".join(f"{name} = {value}" for name, value in sorted(held.items()))
        notes.append(info("pinned", f"{arch}: held by the user: {shown}", len(held)))
    return tuple(notes)


def dense_tier_notes(arch: str, rmse: float, without: float | None) -> list[Note]:
    """Say what a dense tier does to the fit of the sparse ones, where both are there."""
    if without is None:
        return []
    message = (
        f"{arch}: a tier at S = 0 beside sparse ones: RMSE {rmse:.3g} with it, {without:.3g} over the others; "
        "to fit the others alone: --exclude-tier 0"
    )
    return [info("dense_tier", message)]
