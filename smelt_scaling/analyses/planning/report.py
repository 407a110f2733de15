"""Which pair of runs narrows the gain's interval most, in all and per FLOP, and which gains a design finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.frames import Carried
from smelt_scaling.analyses.gain import gain_of
from smelt_scaling.analyses.planning.candidates import (
    Candidate,
    box_of,
    candidate_information,
    candidates_in,
)
from smelt_scaling.analyses.planning.evidence import Evidence
from smelt_scaling.analyses.planning.information import log_determinant
from smelt_scaling.analyses.planning.intent import Intent, intent_of
from smelt_scaling.analyses.planning.power import width_of
from smelt_scaling.analyses.planning.schedule import Schedule, ScheduleKind
from smelt_scaling.analyses.planning.sequence import MOST_PAIRS, buy
from smelt_scaling.analyses.planning.tables import needed_rows, power_rows, simulated_rows
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, UsageError, info, merge_notes, warning
from smelt_scaling.papers import Paper
from smelt_scaling.resampling import tail_rank
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plan"]

Array = NDArray[np.float64]

#: Numbers of cells in the table of power, as multiples of those there are.
TIMES = (1, 2, 4, 8)


def plan(
    source: Study | Paper,
    *,
    design: Endpoints | None = None,
    target: str | None = None,
    reference: str | None = None,
    budget: float | None = None,
    sparsity: float | None = None,
    noise: float | Mapping[str, float] | None = None,
    icc: float | None = None,
    pair_correlation: float | None = None,
    se_factor: float | None = None,
    extend: float = 1.0,
    box: Mapping[str, tuple[float, float]] | None = None,
    horizons: Sequence[float] | None = None,
    schedule: ScheduleKind = "wsd",
    decay: float = 0.1,
    fund: float | None = None,
    cells: Sequence[int] | None = None,
    worlds: int = 0,
    bootstrap: int = 400,
    seed: int = 0,
    level: float = 0.95,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Say which pair of runs, one of each architecture, would narrow the interval of the gain most.

    The law is linearised at its surfaces, and the error of ln(C_ref / C) follows from the information that runs with
    this noise hold (`cell_information`). Every candidate is a new cell.

    Parameters
    ----------
    source : Study or Paper
        Fitted or published surfaces.
    design : Endpoints, optional
        Runs that are made or planned, instead of those of the study; published surfaces need them. Losses are not
        looked at.
    target, reference, budget, sparsity
        The one gain that is planned for, as of `headline_of`.
    noise : float or mapping of str to float, optional
        Standard deviation of an endpoint's loss about its surface; estimated from the residuals by default.
    icc, pair_correlation : float, optional
        Share of the noise that endpoints of a cell have in common, and the correlation of that between the two
        architectures; estimated by default.
    se_factor : float, optional
        Standard error of the fits that are made over that of generalised least squares; by default the asymptotic one
        of the Huber fits at this noise.
    extend : float
        Widen the box of candidates, which is what the runs of both cover, by this factor in F, D and 1 - S.
    box : mapping of str to (float, float), optional
        Bounds of F, D or S in place of those.
    horizons : sequence of float, optional
        Tokens of the endpoints of a new run; by default those of the runs.
    schedule : {"wsd", "independent"}
        Whether the endpoints of a run share a trunk, or are runs of their own.
    decay : float
        Length of a decay of ``wsd``: below 1 a share of the horizon, else tokens.
    fund : float, optional
        FLOPs to spend: list the pairs to buy, one after another.
    cells : sequence of int, optional
        Numbers of cells whose power is asked for: by default 1, 2, 4 and 8 times those there are. The present cells
        are taken equally often, and what is left is spread evenly over them, by size and then by S.
    worlds : int
        Simulated worlds per gain in which the reported interval is made; 0 for the formula alone.
    bootstrap, seed : int
        Resamples of each world, and the seed of the worlds.
    level : float
        Nominal coverage of intervals.
    progress : callable, optional
        Called with (worlds done, worlds in all).

    Returns
    -------
    DataFrame
        One row per candidate, those that shrink the standard error most first: ``F`` (FLOPs/token), ``S``,
        ``horizons`` (list, tokens), ``cost`` (training FLOPs of both), ``se_before, se_after`` (of m = ln(C_ref / C)
        as it is reported), ``reduction`` (1 - se_after/se_before), ``reduction_per_flop``, ``width_before,
        width_after`` (of the t_{G-1} interval of the gain, a fraction), ``dlogdet`` (growth of the ln determinant of
        the information of both surfaces), ``in_box`` (within what the runs of both cover).
        ``.attrs`` holds ``notes``, ``settings``, ``sequence`` (what ``fund`` buys), ``power`` and ``needed``.

    Raises
    ------
    UsageError, DataError
        If an argument is invalid, or the noise is neither stated nor to be estimated.
    FrontierError
        If the gain does not exist, or the runs do not identify it.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> table = plan(fit(example_endpoints(), bootstrap=0), noise={"smelt": .0095, "baseline": .0055}, icc=.7)
    >>> best = table.iloc[0]
    >>> f"F={best.F:.3g} S={best.S} {len(best.horizons)} horizons: {best.reduction:.0%} off the standard error"
    'F=1.02e+10 S=0.969 6 horizons: 14% off the standard error'
    """
    import pandas as pd
    from threadpoolctl import threadpool_limits

    _check(fund, se_factor, worlds, bootstrap, cells, horizons, level)
    how = Schedule(kind=schedule, decay=decay)
    with threadpool_limits(limits=1):  # equal bytes, and two threads are slower on matrices this small
        intent = intent_of(
            source,
            design=design,
            target=target,
            reference=reference,
            budget=budget,
            sparsity=sparsity,
            noise=noise,
            icc=icc,
            pair_correlation=pair_correlation,
            level=level,
        )
        present = len(intent.design.labels)
        evidence = intent.evidence(se_factor=se_factor)
        bounds = box_of(intent.design.support, extend=extend, bounds=box)
        candidates = candidates_in(bounds, intent.design, how, tiers=intent.tiers, horizons=horizons)
        _require_held_sparsity(intent, candidates)
        information = candidate_information(
            candidates, intent.pair, intent.noise, evidence.losses, intent.settings.flops_per_param
        )
        rows = _rows(evidence, candidates, information, present, level)
        sequence = Carried()
        if fund is not None:
            sequence = _sequence(evidence, candidates, information, fund, present, level)
        numbers = list(cells or (present * times for times in TIMES))
        power = power_rows(intent, evidence, numbers, level, se_factor)
    if worlds:
        power += simulated_rows(
            intent,
            evidence,
            list(cells or (present,)),
            worlds=worlds,
            bootstrap=bootstrap,
            seed=seed,
            level=level,
            progress=progress,
        )
    notes = merge_notes(intent.notes, _notes(rows, sequence, fund))
    rows.sort(key=lambda row: (-row["reduction"], row["cost"]))
    frame = pd.DataFrame(rows)
    frame.attrs = {
        "notes": [note.to_dict() for note in notes],
        "settings": _settings(intent, evidence, how, bounds, level)
        | {"se_factor_source": "stated" if se_factor is not None else "asymptotic, of the Huber fits"}
        | {"fund": fund, "worlds": worlds, "bootstrap": bootstrap if worlds else None, "seed": seed},
        "sequence": sequence,
        "power": power,
        "needed": needed_rows(intent, evidence, level),
    }
    return frame


def _check(
    fund: float | None,
    se_factor: float | None,
    worlds: int,
    bootstrap: int,
    cells: Sequence[int] | None,
    horizons: Sequence[float] | None,
    level: float,
) -> None:
    """Refuse arguments that no study could make valid."""
    if not 0 < level < 1:
        raise UsageError(f"level {level}: must lie between 0 and 1, such as 0.95")
    if fund is not None and not (fund > 0 and np.isfinite(fund)):
        raise UsageError(f"--fund {fund:g}: a positive number of FLOPs is needed, such as 1e22")
    if se_factor is not None and not (se_factor > 0 and np.isfinite(se_factor)):
        raise UsageError(f"--se-factor {se_factor:g}: a positive factor is needed, such as 1.15")
    if worlds < 0 or worlds == 1:
        raise UsageError(f"--simulate {worlds}: at least 2 worlds are needed, such as 200")
    if worlds and tail_rank(bootstrap, level) < 1:
        raise UsageError(
            f"--bootstrap {bootstrap}: too few resamples for an interval at level {level:g}; take 400 or more"
        )
    wrong = [count for count in cells or () if count < 2]
    if wrong:
        raise UsageError(f"--cells {wrong[0]}: at least 2 cells are needed for an interval")
    bad = [tokens for tokens in horizons or () if not (tokens > 0 and np.isfinite(tokens))]
    if bad or (horizons is not None and not len(horizons)):
        shown = f" {bad[0]:g}" if bad else ""
        raise UsageError(f"--horizons{shown}: tokens of endpoints are positive numbers, such as 2e10,1e11")


def _require_held_sparsity(intent: Intent, candidates: Sequence[Candidate]) -> None:
    """Refuse sparsities at which a surface without an exponent of 1 - S does not hold."""
    asked = sorted({one.S for one in candidates if one.S is not None})
    if asked:
        sides = (intent.view.side(intent.headline.target), intent.view.side(intent.headline.reference))
        intent.view.sparsity_grid(asked, sides)


def _rows(
    evidence: Evidence, candidates: Sequence[Candidate], information: Array, cells: int, level: float
) -> list[dict[str, Any]]:
    after = evidence.se_with(information)
    before = evidence.se_reported
    present = evidence.cells.sum(axis=0)
    grown = log_determinant(present + information, evidence.free) - log_determinant(present, evidence.free)
    width = width_of(evidence.m, before, cells, level)
    return [
        {
            "F": one.F,
            "S": one.S,
            "horizons": list(one.horizons),
            "cost": one.cost,
            "se_before": before,
            "se_after": float(after[i]),
            "reduction": float(1 - after[i] / before),
            "reduction_per_flop": float((1 - after[i] / before) / one.cost),
            "width_before": width,
            "width_after": width_of(evidence.m, float(after[i]), cells + 1, level),
            "dlogdet": float(grown[i]),
            "in_box": one.in_box,
        }
        for i, one in enumerate(candidates)
    ]


def _sequence(
    evidence: Evidence,
    candidates: Sequence[Candidate],
    information: Array,
    fund: float,
    cells: int,
    level: float,
) -> Carried:
    bought = buy(evidence, candidates, information, fund)
    rows, spent, before = Carried(), 0.0, evidence.se_reported
    for step, (i, after) in enumerate(zip(bought.pairs, bought.se, strict=True), start=1):
        one = candidates[i]
        spent += one.cost
        rows.append(
            {
                "step": step,
                "F": one.F,
                "S": one.S,
                "horizons": list(one.horizons),
                "cost": one.cost,
                "spent": spent,
                "se_before": before,
                "se_after": after,
                "width_before": width_of(evidence.m, before, cells + step - 1, level),
                "width_after": width_of(evidence.m, after, cells + step, level),
                "in_box": one.in_box,
            }
        )
        before = after
    return rows


def _notes(rows: Sequence[Mapping[str, Any]], sequence: Carried, fund: float | None) -> list[Note]:
    notes = []
    away = sum(not row["in_box"] for row in rows)
    if away:
        message = (
            f"{away} of {len(rows)} candidates lie outside the runs: their worth trusts the law where nothing was "
            "measured"
        )
        notes.append(warning("unmeasured_candidates", message, away))
    if fund is not None and not sequence:
        least = min(row["cost"] for row in rows)
        notes.append(info("fund_left", f"no pair costs less than {least:.2g} FLOPs: nothing is bought"))
    elif fund is not None and len(sequence) == MOST_PAIRS:
        left = fund - sequence[-1]["spent"]
        notes.append(
            info("fund_left", f"the list ends after {MOST_PAIRS} pairs, which leave {left:.2g} FLOPs")
        )
    return notes


def _settings(
    intent: Intent, evidence: Evidence, how: Schedule, bounds: Mapping[str, tuple[float, float]], level: float
) -> dict[str, Any]:
    noise, headline = intent.noise, intent.headline
    lo, hi = intent.reported or (None, None)
    return {
        "law": intent.view.law.name,
        "formula": intent.view.law.formula,
        "target": headline.target,
        "reference": headline.reference,
        "budget": headline.budget,
        "sparsity": headline.sparsity,
        "gain": gain_of(evidence.m),
        "reported_lo": gain_of(lo),
        "reported_hi": gain_of(hi),
        "noise": dict(zip(intent.design.archs, noise.sd, strict=True)),
        "icc": noise.icc,
        "pair_correlation": noise.pair_correlation,
        **{f"{name}_source": said for name, said in noise.sources.items()},
        "se_least_squares": evidence.se,
        "se_factor": evidence.se_factor,
        "cells": len(intent.design.labels),
        "unit": intent.design.unit,
        "box": {name: list(ends) for name, ends in bounds.items()},
        "schedule": how.kind,
        "decay": how.decay if how.kind == "wsd" else None,
        "level": level,
        "flops_per_param": intent.settings.flops_per_param,
        "loss_unit": intent.view.loss_unit,
    }
