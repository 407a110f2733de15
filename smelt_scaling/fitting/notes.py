"""The caveats of a point estimate, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from smelt_scaling.engine.design import (
    CONDITION_REFUSE_INTERVALS,
    CONDITION_SINGULAR,
    CONDITION_WARN,
    Identified,
)
from smelt_scaling.errors import Note
from smelt_scaling.fitting.result import Certificate
from smelt_scaling.laws import AdditiveLaw

__all__ = ["fit_notes"]


def fit_notes(
    arch: str,
    law: AdditiveLaw,
    certificate: Certificate,
    found: Identified,
    unidentified: Mapping[str, str],
    pins: Mapping[str, float],
    degrees_of_freedom: int,
) -> tuple[Note, ...]:
    """Return the notes of one architecture's fit, most serious first."""
    notes: list[Note] = []

    def add(code: str, severity: Literal["info", "warning"], message: str, count: int = 1) -> None:
        notes.append(Note(code=code, severity=severity, message=f"{arch}: {message}", count=count))

    for name, reason in unidentified.items():
        add("not_identified", "warning", f"{name} is not identified: {reason}")
    for column, value in found.only_at.items():
        if column == "S":
            add("not_identified", "warning", f"the surface holds at S = {value:.4g} only")
    if degrees_of_freedom == 0:
        add(
            "ill_conditioned",
            "warning",
            "as many parameters as endpoints: the fit interpolates, with no residual left",
        )
    if CONDITION_WARN < certificate.condition <= CONDITION_SINGULAR:
        verdict = (
            "no interval is given"
            if certificate.condition > CONDITION_REFUSE_INTERVALS
            else "intervals are wide"
        )
        add(
            "ill_conditioned",
            "warning",
            f"condition number {certificate.condition:.2g} (good designs: about 50): {verdict}",
        )
    for name in certificate.at_bounds:
        if name == law.floor:
            add(
                "floor_at_zero",
                "warning",
                f"{name} ended at 0: these data do not identify the irreducible loss",
            )
        else:
            add("at_bound", "warning", f"{name} ended on its lower bound")
    if not certificate.certified:
        add("not_certified", "warning", certificate.status.value)
    if certificate.linear_zone_share > 0.9 and degrees_of_freedom > 0:
        add(
            "linear_zone",
            "info",
            f"{certificate.linear_zone_share:.0%} of residuals exceed delta: close to least absolute deviations",
        )
    if pins:
        add(
            "pinned",
            "info",
            "held by the user: " + ", ".join(f"{k} = {v:g}" for k, v in sorted(pins.items())),
            len(pins),
        )
    return tuple(notes)
