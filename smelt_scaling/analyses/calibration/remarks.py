"""What must be known about a calibration: each caveat once, with its count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from smelt_scaling._schema import counted
from smelt_scaling.analyses.calibration.curve import Calibration
from smelt_scaling.analyses.calibration.scores import Scores
from smelt_scaling.errors import Note, info, warning

__all__ = ["calibration_notes", "few_cells_note", "gathered", "table_notes"]

#: Below this share of the sigmoid its asymptotes are a guess.
LEAST_COVERED = 0.5
#: With less of the variance explained a score has nothing to do with the loss, or goes the other way.
RELATED = 0.1
#: A monotone curve that explains so much more variance says that the sigmoid has the wrong shape.
MISFIT = 0.02
#: A rank correlation of scores and losses beyond this, in the direction of worse, is no scatter.
INVERSE = 0.5
#: Of more metrics than this, alike notes are one.
APART = 3


def table_notes(scores: Scores, target: str, reference: str, *, fewest: int) -> list[Note]:
    """Return notes on the table as a whole."""
    notes = []
    one, other = (set(scores.cell[scores.arch == arch].tolist()) for arch in (target, reference))
    if not one & other:
        message = (
            f"{scores.source}: {target} and {reference} share no {scores.unit}: their cells are two samples"
        )
        notes.append(warning("unpaired", message))
    elif one ^ other:
        lone = sorted(one ^ other)
        shown = ", ".join(lone[:5]) + (", ..." if len(lone) > 5 else "")
        notes.append(
            warning("unmatched_cells", f"{scores.source}: of one architecture only: {shown}", len(lone))
        )
    fewer = min(len(one), len(other))
    if fewer < fewest:
        notes.append(few_cells_note(fewer, fewest))
    if np.all(np.isnan(scores.chance)):
        message = f"{scores.source}: no column chance, so wins above chance are not counted apart"
        notes.append(info("no_chance", message))
    return notes


def few_cells_note(cells: int, fewest: int, where: str = "") -> Note:
    """Return the note on too few cells of the table, or of one metric."""
    message = f"{where}{counted(cells, 'cell')}: no intervals, since they resample cells and need {fewest}"
    return warning("few_cells", f"{message}; p-values are of t tests on so few", cells)


def calibration_notes(
    metric: str,
    found: Calibration,
    pooled: Mapping[str, Any],
    won: Sequence[Mapping[str, Any]],
    averaged: int,
) -> list[Note]:
    """Return notes on one metric."""
    notes = []
    rho = _rank_correlation(found)
    if rho * found.fitted.sigmoid.sign > INVERSE:
        way, option = ("rise", "add") if rho > 0 else ("fall", "leave it out of")
        message = (
            f"{metric}: scores of the reference {way} with the loss (rank correlation {rho:.2f}), so the curve is flat "
            f"and residuals mean nothing; {option} --lower-better {metric}, or leave the metric out"
        )
        notes.append(warning("inverse_scores", message))
    held = {"floor": "its floor", "span": "its span", "slope": "its slope", "midpoint": "its midpoint"}
    bound = [word for word, on in zip(held.values(), found.fitted.at_bound[0], strict=True) if on]
    if bound:
        message = (
            f"{metric}: {', '.join(bound)} ended on a bound: over these losses it is effectively exponential"
        )
        notes.append(warning("calibration_at_bound", f"{message} or straight"))
    if found.r2 < RELATED:
        less = found.fitted.sigmoid.sign < 0
        way, remedy = (
            ("rise", "leave it out of") if less else ("fall", "if less of it is better, name it with")
        )
        message = f"{metric}: R2 {max(found.r2, 0.0):.3f}: scores of the reference do not {way} with its loss"
        notes.append(warning("flat_calibration", f"{message}; {remedy} --lower-better"))
    stuck = 0 if found.draws is None else int((~found.draws.converged).sum())
    if stuck:
        message = f"{metric}: {counted(stuck, 'curve')} of resamples not converged, and kept"
        notes.append(warning("curves_unconverged", message, stuck))
    if found.covered < LEAST_COVERED:
        message = f"{metric}: the reference covers {found.covered:.0%} of the sigmoid, so its asymptotes are a guess"
        notes.append(warning("weak_asymptotes", message))
    if found.r2_isotonic - found.r2 > MISFIT:
        message = f"{metric}: R2 {found.r2:.3f}, but {found.r2_isotonic:.3f} for the best monotone curve"
        notes.append(warning("sigmoid_misfit", message))
    if pooled["n_outside"]:
        message = (
            f"{metric}: {pooled['n_outside']} of {pooled['n']} endpoints of the target lie outside the losses of the "
            f"reference ({found.window[0]:.4g} to {found.window[1]:.4g})"
        )
        notes.append(warning("outside_calibration", message, pooled["n_outside"]))
    ties = won[0]["ties"]
    if ties:
        message = (
            f"{metric}: {counted(ties, 'tie')} of {won[0]['n']} pairs, counted apart and half in the rate"
        )
        notes.append(info("ties", message, ties))
    if averaged:
        message = f"{metric}: {counted(averaged, 'repeat')} of a cell and horizon averaged in the win counts"
        notes.append(info("averaged_repeats", message, averaged))
    return notes


def _rank_correlation(found: Calibration) -> float:
    """Return Spearman's correlation of the reference's scores with its losses; neither is constant."""
    from scipy.stats import spearmanr

    return float(spearmanr(found.loss, found.score).statistic)


def gathered(notes: Sequence[Note]) -> list[Note]:
    """Return the notes with those of one code on many metrics as one: the first, and how many more.

    Examples
    --------
    >>> few = [info("ties", f"{metric}: 2 ties", 2) for metric in "abcde"]
    >>> [(note.message, note.count) for note in gathered(few)]
    [('a: 2 ties; and 4 more metrics alike', 10)]
    """
    by_code: dict[str, list[Note]] = {}
    for note in notes:
        by_code.setdefault(note.code, []).append(note)
    kept: list[Note] = []
    for alike in by_code.values():
        if len(alike) <= APART:
            kept += alike
            continue
        message = f"{alike[0].message}; and {len(alike) - 1} more metrics alike"
        kept.append(replace(alike[0], message=message, count=sum(note.count for note in alike)))
    return kept
