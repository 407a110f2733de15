"""Choices that a study could have made otherwise: of the estimator, with all rows in place, and of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.diagnostics.deletion import Arm, arms_of, put, with_starts
from smelt_scaling.analyses.diagnostics.headline import refitted
from smelt_scaling.analyses.diagnostics.parts import Part, dense_tier, parts_of
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, SmeltScalingError
from smelt_scaling.fitting import fit_screened
from smelt_scaling.fitting.conventions import COUNTS
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
    >>> [(choice.name, choice.kind) for choice in choices if choice.group == "flops"]  # doctest: +NORMALIZE_WHITESPACE
    [('F of the table', 'estimator'), ('6 N', 'estimator'), ('6 N_act (baseline ×0.93, smelt ×0.65)', 'question')]
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
    sizes = parts["size"]
    ends = [("smallest", sizes[0]), ("largest", sizes[-1])]
    found = [*_outliers(study), *_dense(study, arms)]
    found += [_part(study, arms, "size", f"{which} out ({part.name})", part) for which, part in ends]
    found += [
        _part(study, arms, by, f"{part.name} out", part)
        for by in ("horizon", "sparsity")
        for part in parts.get(by, ())
    ]
    return found, notes


def _part(study: Study, arms: dict[str, Arm], group: str, name: str, part: Part) -> Choice:
    return Choice(
        group=group,
        name=name,
        kind="rows",
        make=partial(_without, study, arms, part.rows),
        left_out=int(part.rows.sum()),
    )


def _without(study: Study, arms: dict[str, Arm], mask: Mask) -> Study:
    return put(study, {arch: arm.without([mask])[0] for arch, arm in arms.items()})


def _outliers(study: Study) -> list[Choice]:
    if study.settings.drop_outliers:
        why = "what was left out is not in the study; fit again without --drop-outliers"
        return [
            Choice(group="outliers", name="kept", kind="rows", reason=why),
            Choice(group="outliers", name="out", kind="rows", is_default=True, make=partial(_itself, study)),
        ]
    settings = replace(with_starts(study).settings, drop_outliers=True)
    rows = study.endpoints
    usual = Choice(group="outliers", name="kept", kind="rows", is_default=True, make=partial(_itself, study))
    try:
        kept = np.concatenate(
            [
                fit_screened(arch, own, study.law, settings, resample=study.bootstrap.unit)[1]
                for arch, own in rows.by_arch().items()
            ]
        )
    except SmeltScalingError as error:  # too few rows would be left
        return [usual, Choice(group="outliers", name="out", kind="rows", reason=str(error))]
    out = int((~kept).sum())
    make = partial(refitted, with_starts(study), rows.select(kept)) if out else partial(_itself, study)
    name = "out" if out else "out (there is none)"
    return [usual, Choice(group="outliers", name=name, kind="rows", make=make, left_out=out)]


def _dense(study: Study, arms: dict[str, Arm]) -> list[Choice]:
    """Return the dense tier in and out; where the study was made without a tier, what is known of it."""
    mask = dense_tier(study.endpoints)
    excluded = [note for note in study.all_notes if note.code == "excluded_tier"]
    if mask is not None:
        own = Part(by="dense", name="", rows=mask)
        return [
            Choice(
                group="dense",
                name="dense tier in",
                kind="rows",
                is_default=True,
                make=partial(_itself, study),
            ),
            _part(study, arms, "dense", "dense tier out", own),
        ]
    if not excluded:
        return []
    why = f"not in the study: {excluded[0].message}; fit again without that option"
    return [
        Choice(group="dense", name="excluded tier in", kind="rows", reason=why),
        Choice(
            group="dense",
            name="excluded tier out",
            kind="rows",
            is_default=True,
            make=partial(_itself, study),
        ),
    ]
