"""The tables beside a plan: which gains a design finds, by formula and by simulation, and how many cells it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from smelt_scaling.analyses.frames import Carried
from smelt_scaling.analyses.gain import gain_of
from smelt_scaling.analyses.planning.evidence import Evidence
from smelt_scaling.analyses.planning.intent import Intent
from smelt_scaling.analyses.planning.power import POWER, cells_needed, found_from, power_of
from smelt_scaling.analyses.planning.worlds import detectable, simulated_power
from smelt_scaling.errors import UsageError

__all__ = ["GAINS", "needed_rows", "power_rows", "simulated_rows"]

#: True gains of every table of power, beside that of the surfaces.
GAINS = (0.02, 0.05, 0.1)
#: Shares of noise that cells have in common, beside the one that is planned with: what if it is another?
SHARES = (0.0, 0.5, 0.9)
#: A share this close to that is no other.
ALIKE = 0.05
#: Simulated gains, as multiples of the m that the formula calls detectable: they enclose a power of 80 %.
AROUND = (0.75, 1.0, 1.35)


def power_rows(
    intent: Intent, evidence: Evidence, cells: Sequence[int], level: float, se_factor: float | None
) -> Carried:
    """Return power by the formula: the noise planned with at every number of cells, other shares at the present one."""
    present = len(intent.design.labels)
    own = float(-np.expm1(-evidence.m))
    gains = sorted({*GAINS, *([own] if own > 0 else [])})
    rows = Carried()
    for count in cells:
        se = float(evidence.se_with(np.zeros(()), intent.design.times(count)))
        rows += _rows(count, intent.noise.icc, se, gains, level)
    for share in SHARES:
        if abs(share - intent.noise.icc) > ALIKE:
            other = intent.evidence(icc=share, se_factor=se_factor)
            rows += _rows(present, share, other.se_reported, gains, level)
    return rows


def _rows(cells: int, icc: float, se: float, gains: Sequence[float], level: float) -> list[dict[str, Any]]:
    known = bool(np.isfinite(se))
    found = gain_of(found_from(se, cells, level)) if known else None
    return [
        {
            "method": "formula",
            "cells": cells,
            "icc": icc,
            "se": se if known else None,
            "gain": gain,
            "power": power_of(gain, se, cells, level) if known else None,
            "power_lo": None,
            "power_hi": None,
            "worlds": None,
            "detectable": found,
        }
        for gain in gains
    ]


def needed_rows(intent: Intent, evidence: Evidence, level: float) -> Carried:
    """Return how many cells like the present ones find a gain with a power of 80 %."""
    own = float(-np.expm1(-evidence.m))
    return Carried(
        {
            "gain": gain,
            "power": POWER,
            "icc": intent.noise.icc,
            "cells": cells_needed(gain, evidence.se_reported, len(intent.design.labels), level),
        }
        for gain in sorted({*GAINS, *([own] if own > 0 else [])})
    )


def simulated_rows(
    intent: Intent,
    evidence: Evidence,
    cells: Sequence[int],
    *,
    worlds: int,
    bootstrap: int,
    seed: int,
    level: float,
    progress: Callable[[int, int], None] | None,
) -> Carried:
    """Return power in simulated worlds, at gains that enclose the one that is detectable by the formula.

    Raises
    ------
    UsageError
        If the fits count repeated tokens, which simulated runs do not have.
    """
    if intent.settings.data_law != "fresh":
        raise UsageError(
            "--simulate: simulated runs have no repeated tokens, but the study was fitted with --data-law repeated; "
            "leave it out"
        )
    total, done = worlds * len(AROUND) * len(cells), 0

    def advance(step: int) -> None:
        nonlocal done
        done += step
        if progress is not None:
            progress(done, total)

    rows = Carried()
    for count in cells:
        se = float(evidence.se_with(np.zeros(()), intent.design.times(count)))
        if not np.isfinite(se):
            continue
        middle = found_from(se, count, level)
        found = simulated_power(
            intent.design,
            intent.surfaces[intent.headline.reference],
            intent.headline,
            intent.noise,
            [float(-np.expm1(-middle * times)) for times in AROUND],
            cells=count,
            worlds=worlds,
            bootstrap=bootstrap,
            seed=seed,
            level=level,
            settings=intent.settings,
            pinned={arch: sorted(names) for arch, names in intent.pinned.items() if names},
            progress=advance,
        )
        best = detectable(found)
        rows += [
            {"method": "simulation", "cells": count, "icc": intent.noise.icc, "se": se}
            | one.row()
            | {"detectable": best}
            for one in found
        ]
    return rows
