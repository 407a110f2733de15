"""Beside each gain of a table: its range over other choices of the estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted
from smelt_scaling.analyses.beside import reachable
from smelt_scaling.analyses.diagnostics.choices import Choice, estimator_choices
from smelt_scaling.analyses.diagnostics.parts import only
from smelt_scaling.analyses.gain import gain_of
from smelt_scaling.analyses.view import view_of
from smelt_scaling.errors import Note, SmeltScalingError, UsageError, info, warning
from smelt_scaling.frontier import log_multiplier
from smelt_scaling.papers import Paper
from smelt_scaling.study import Study

__all__ = ["choice_columns"]

Array = NDArray[np.float64]


def choice_columns(
    study: Study | Paper,
    pair: tuple[str, str],
    budget: Array,
    sparsity: Array | None,
    m: Array,
) -> tuple[dict[str, list[Any]], list[Note], int]:
    """Return the range of every gain over the estimators of `estimator_choices`, notes, and how many were tried.

    Parameters
    ----------
    study : Study
        What the gains were made from.
    pair : (str, str)
        Target and reference.
    budget, sparsity : (rows,) array
        Of every row; no sparsity for laws without S.
    m : (rows,) array
        ln(C_ref / C_tgt) of the study's own fits.

    Returns
    -------
    dict
        ``sensitivity_lo, sensitivity_hi``; an end is None where some choice puts the loss out of reach.
    list of Note
        What was varied, and what could not be.
    int
        Choices in the range, beside the study's own.

    Raises
    ------
    UsageError
        For published coefficients, which cannot be fitted again.
    """
    if isinstance(study, Paper):
        raise UsageError(
            f"{study.name}: published coefficients cannot be fitted again, so --sensitivity says nothing; leave it out"
        )
    rows = only(study, pair)
    choices = [choice for choice in estimator_choices(rows) if not choice.is_default]
    varied = [choice for choice in choices if choice.kind == "estimator"]
    found, failed = [m], []
    for choice in varied:
        try:
            found.append(_multipliers(choice, pair, budget, sparsity))
        except SmeltScalingError as error:
            failed.append(f"{choice.group} {choice.name}: {error}")
    lowest, highest = np.min(found, axis=0), np.max(found, axis=0)
    columns = {
        "sensitivity_lo": [gain_of(float(value)) for value in lowest],
        "sensitivity_hi": [gain_of(float(value)) for value in highest],
    }
    return columns, _notes(choices, len(found) - 1, failed), len(found) - 1


def _multipliers(choice: Choice, pair: tuple[str, str], budget: Array, sparsity: Array | None) -> Array:
    """Return ln(C_ref / C_tgt) of every row under one choice.

    Raises
    ------
    FrontierError
        If its fits have no such gain.
    """
    if choice.make is None:
        raise UsageError(choice.reason)
    view = view_of(choice.make())
    target, reference = sides = (view.side(pair[0]), view.side(pair[1]))
    view.require_frontier(sides)
    if sparsity is not None:
        view.sparsity_grid(np.unique(sparsity), sides)
    frontiers = view.frontier(target.surface), view.frontier(reference.surface)
    return reachable(log_multiplier(*frontiers, np.log(budget), sparsity))


def _notes(choices: list[Choice], tried: int, failed: list[str]) -> list[Note]:
    varied = [choice for choice in choices if choice.kind == "estimator"]
    groups = ", ".join(dict.fromkeys(choice.group.replace("flops", "FLOPs") for choice in varied))
    others = [choice.name for choice in choices if choice.kind != "estimator"]
    aside = f"; another question, so not in it: {', '.join(others)}" if others else ""
    message = (
        f"sensitivity_lo and sensitivity_hi are the range of the point gain over this fit and "
        f"{counted(tried, 'other choice')} of {groups}, all rows in place{aside}"
    )
    notes = [info("estimator_range", message, tried)]
    if failed:
        message = (
            f"{counted(len(failed), 'choice')} of {len(varied)} without a gain (first: {failed[0]}); the range is that "
            "of the rest"
        )
        notes.append(warning("choices_without_gain", message, len(failed)))
    return notes
