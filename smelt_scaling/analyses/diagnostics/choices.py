"""Choices that a study could have made otherwise: of the estimator, with all rows in place, and of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.diagnostics.deletion import Arm, arms_of, put, with_starts
from smelt_scaling.analyses.diagnostics.headline import refitted
from smelt_scaling.analyses.diagnostics.parts import dense_tier, parts_of
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note
from smelt_scaling.fitting.conventions import COUNTS
from smelt_scaling.fitting.outliers import outlying
from smelt_scaling.study import Study

__all__ = ["DELTAS", "Choice", "Kind", "estimator_choices", "row_choices"]

Mask = NDArray[np.bool_]
Kind = Literal["estimator", "rows", "question"]

#: A count of FLOPs that is dearer to one architecture than to another by more than this is another question.
ALIKE = 0.1
#: Huber thresholds of the panel, from nearly least absolute deviations to least squares.
DELTAS: tuple[float | Literal["auto"], ...] = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, float("inf"), "auto")


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """One way to make the fits of a study.

    Parameters
    ----------
    group, name : str
        What is chosen, and how.
    kind : {"estimator", "rows", "question"}
        Another way to the same answer, other rows, or an answer to another question.
    is_default : bool
        Whether it is what the study did.
    make : callable or None
        Returns the study made so; None if that cannot be.
    reason : str
        Why it cannot be.
    left_out : int
        Rows that it leaves out.
    """

    group: str
    name: str
    kind: Kind
    is_default: bool = False
    make: Callable[[], Study] | None = None
    reason: str = ""
    left_out: int = 0


def estimator_choices(study: Study) -> list[Choice]:
    """Return the choices of the estimator that leave the law and the rows as they are.

    Huber thresholds, the residual, the weights of cells, and what counts as training FLOPs (or parameters), as far as
    the table has other columns for it. A count that prices the architectures apart by over 10 % (6 N_act of a model
    that passes twice through its layers) answers another question.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> choices = estimator_choices(fit(example_endpoints(), bootstrap=0))
    >>> [(choice.name, choice.kind) for choice in choices if choice.group == "flops"]
    [('F of the table', 'estimator'), ('6 N', 'estimator'), ('6 N_act (baseline ×0.96, smelt ×0.63)', 'question')]
    """
    settings = study.settings
    deltas = list(DELTAS)
    if settings.delta not in deltas:
        numbers = [delta for delta in (*deltas, settings.delta) if delta != "auto"]
        deltas = [*sorted(numbers), "auto"]
    found = [
        _setting(study, "delta", "auto" if delta == "auto" else f"{delta:g}", delta=delta) for delta in deltas
    ]
    unit = study.bootstrap.unit
    found += [
        _setting(study, "residual", "of ln(loss)", residual="log"),
        _setting(study, "residual", "of the loss", residual="raw"),
        _setting(study, "weights", "rows count by their weight", cell_weights="rows"),
        _setting(study, "weights", f"each {unit} counts the same", cell_weights="equal"),
    ]
    return found + _counts(study)


def _setting(study: Study, group: str, name: str, **changed: Any) -> Choice:
    (key, value), *_ = changed.items()
    default = getattr(study.settings, key) == value
    make = partial(_itself, study) if default else partial(refitted, with_starts(study), **changed)
    return Choice(group=group, name=name, kind="estimator", is_default=default, make=make)


def _itself(study: Study) -> Study:
    return study


def _counts(study: Study) -> list[Choice]:
    """Return what else the size in the law could be counted by: FLOPs as logged, or multiples of parameters."""
    law, rows, ratio = study.law, study.endpoints, study.settings.flops_per_param
    size = next((name for name in ("F", "N", "N_act") if name in law.columns), None)
    if size is None:
        return []
    of_flops = size == "F"
    own = "F of the table" if of_flops else f"{ratio:g} {size}"
    default = partial(_itself, study)
    found = [Choice(group="flops", name=own, kind="estimator", is_default=True, make=default)]
    others = {f"{ratio:g} {name}": (name, ratio if of_flops else 1.0) for name in COUNTS}
    others["F of the table"] = ("F", 1 / ratio)
    held = _held_of_size(study, size)
    for name, (column, factor) in others.items():
        if name == own or column not in rows:
            continue
        share = factor * rows[column] / rows[size]
        by_arch = {arch: float(np.median(share[rows.arch == arch])) for arch in rows.archs}
        apart = max(by_arch.values()) > (1 + ALIKE) * min(by_arch.values())
        shares = ", ".join(f"{arch} ×{value:.2g}" for arch, value in by_arch.items())
        found.append(
            Choice(
                group="flops",
                name=f"{name} ({shares})" if apart else name,
                kind="question" if apart else "estimator",
                make=None if held else partial(_recounted, study, size, column, factor),
                reason=f"{held} is held with --pin, which says nothing of another count" if held else "",
            )
        )
    return found


def _held_of_size(study: Study, size: str) -> str:
    """Return the parameters of the term in size that are held: they belong to one count."""
    of_size = {
        name
        for term in study.law.parsed.terms
        for power in term.powers
        if size in power.feature.names
        for name in (term.amplitude, power.exponent)
    }
    pinned = {name for fit in study.fits.values() for name in fit.pinned}
    return ", ".join(sorted(str(name) for name in of_size & pinned))


def _recounted(study: Study, size: str, column: str, factor: float) -> Study:
    rows = study.endpoints
    columns = {**rows.columns, size: factor * rows[column]}
    columns.pop("C", None)  # of the other count
    recounted = Endpoints(columns=columns, source=rows.source, notes=rows.notes, tiers=rows.tiers)
    return refitted(with_starts(study), recounted)


def row_choices(study: Study) -> tuple[list[Choice], list[Note]]:
    """Return the choices that leave rows out: outliers, the dense tier, sizes at the ends, horizons, sparsity tiers.

    Returns
    -------
    list of Choice
        In that order.
    list of Note
        Where levels were joined.
    """
    arms = arms_of(study)
    parts, notes = parts_of(study)
    dense = dense_tier(study.endpoints)
    out = [("dense", "dense tier out", dense)] if dense is not None else []
    for which, part in (("smallest", parts["size"][0]), ("largest", parts["size"][-1])):
        out.append(("size", f"{which} out ({part.name})", part.rows))
    for by in ("horizon", "sparsity"):
        out += [(by, f"{part.name} out", part.rows) for part in parts.get(by, ())]
    without = {
        arch: arm.without([rows for *_, rows in out]) for arch, arm in arms.items()
    }  # all in one batch
    found = [*_outliers(study, arms), *_dense(study)]
    for i, (group, name, rows) in enumerate(out):
        make = partial(put, study, {arch: own[i] for arch, own in without.items()})
        found.append(Choice(group=group, name=name, kind="rows", make=make, left_out=int(rows.sum())))
    return found, notes


def _outliers(study: Study, arms: Mapping[str, Arm]) -> list[Choice]:
    itself = partial(_itself, study)
    if study.settings.drop_outliers:
        why = "what was left out is not in the study; fit again without --drop-outliers"
        return [
            Choice(group="outliers", name="kept", kind="rows", reason=why),
            Choice(group="outliers", name="out", kind="rows", is_default=True, make=itself),
        ]
    rows = study.endpoints
    far = np.zeros(len(rows), dtype=bool)
    for arm in arms.values():
        far[arm.rows] = outlying(arm.fitted, rows.select(arm.rows))
    count = int(far.sum())
    make = partial(_selected, study, ~far) if count else itself
    name = "out" if count else "out (there is none)"
    return [
        Choice(group="outliers", name="kept", kind="rows", is_default=True, make=itself),
        Choice(group="outliers", name=name, kind="rows", make=make, left_out=count),
    ]


def _selected(study: Study, kept: Mask) -> Study:
    return refitted(with_starts(study), study.endpoints.select(kept))


def _dense(study: Study) -> list[Choice]:
    """Return the study's own choice of tiers: the dense one in, or a tier excluded, of which nothing is known."""
    itself = partial(_itself, study)
    if dense_tier(study.endpoints) is not None:
        return [Choice(group="dense", name="dense tier in", kind="rows", is_default=True, make=itself)]
    excluded = [note for note in study.all_notes if note.code == "excluded_tier"]
    if not excluded:
        return []
    why = f"not in the study: {excluded[0].message}; fit again without that option"
    return [
        Choice(group="dense", name="excluded tier in", kind="rows", reason=why),
        Choice(group="dense", name="excluded tier out", kind="rows", is_default=True, make=itself),
    ]
