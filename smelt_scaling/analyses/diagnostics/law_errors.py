"""How well laws predict model sizes that they were not fitted to: each size left out, and the next from all smaller.

Errors inside the runs hardly tell laws apart; errors on a size left out do, because there a wrong shape shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.calibration.cells import flip_test, holm
from smelt_scaling.analyses.diagnostics.law_candidates import STUDY, Candidate
from smelt_scaling.analyses.diagnostics.law_questions import SIZE, questions_of
from smelt_scaling.analyses.diagnostics.parts import size_levels
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.engine.certificate import certify
from smelt_scaling.engine.newton import delta_ladder, minimise
from smelt_scaling.engine.tied import Stacked, Tied, free_tie
from smelt_scaling.errors import FitError, SmeltScalingError
from smelt_scaling.fitting import Fitted, fit_architecture
from smelt_scaling.fitting.steps import prepare
from smelt_scaling.formatting import format_quantity
from smelt_scaling.laws import AdditiveLaw, Surface
from smelt_scaling.resampling.replicates import degenerate_replicates
from smelt_scaling.study import Study

__all__ = ["SCHEMES", "Split", "Trial", "law_rows", "run_trials", "size_tiers", "splits_of"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SCHEMES = ("each size left out", "next size from all smaller")
#: More sizes than this are joined to so many groups of neighbours.
MOST_TIERS = 8
#: A fit that takes more Newton steps slides along a valley: the sizes that are left do not say where it ends.
MOST_STEPS = 200
#: A rollout starts with so many sizes; one would not tell how the loss falls with size.
FEWEST_SIZES = 2

SAME, BETTER, WORSE = "within noise", "predicts better", "predicts worse"
#: Sign flips of n cells give no P below 2^(1-n): with few cells no difference could be called one.
TOO_FEW = "too few cells"


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Sizes to fit, and one to predict."""

    scheme: str
    fitted: Mask
    predicted: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """A law fitted to every split.

    Parameters
    ----------
    candidate : Candidate
        The law.
    parameters : int
        Number of parameters fitted to the architectures together; 0 where there is no fit.
    surfaces : mapping of str to Surface
        Architecture -> a surface of every split, as draws.
    reasons : tuple of str
        Why a split has none; empty where it has.
    """

    candidate: Candidate
    parameters: int
    surfaces: Mapping[str, Surface]
    reasons: tuple[str, ...]


def size_tiers(rows: Endpoints, law: AdditiveLaw) -> tuple[NDArray[np.intp], list[str]]:
    """Return the tier of each row, smallest first, and their names: by ``scale``, or by the law's own size.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints
    >>> from smelt_scaling.laws import LAWS
    >>> size_tiers(example_endpoints(), LAWS["sparse-additive"])[1]
    ['100M', '200M', '600M', '1.6B']
    """
    measure = next((name for name in (*SIZE, "C") if name in law.columns), "D")
    size = rows[measure]
    if "scale" in rows:
        names, level = np.unique(rows["scale"], return_inverse=True)
    else:
        level = size_levels(np.log(size))
        names = np.array(
            [f"{measure} {format_quantity(float(np.median(size[level == k])))}" for k in np.unique(level)]
        )
    order = np.argsort([np.median(size[level == k]) for k in range(len(names))], kind="stable")
    groups = np.array_split(order, min(len(order), MOST_TIERS))
    tier = np.empty(len(order), dtype=np.intp)
    for number, own in enumerate(groups):
        tier[own] = number
    joined = [str(names[own[0]]) + (f" to {names[own[-1]]}" if len(own) > 1 else "") for own in groups]
    return tier[level], joined


def splits_of(sizes: int) -> list[Split]:
    """Return every split of both schemes; sizes are numbered, smallest first.

    Examples
    --------
    >>> [(one.fitted.astype(int).tolist(), one.predicted) for one in splits_of(3)]
    [([0, 1, 1], 0), ([1, 0, 1], 1), ([1, 1, 0], 2), ([1, 1, 0], 2)]
    """
    every = np.arange(sizes)
    found = [Split(scheme=SCHEMES[0], fitted=every != k, predicted=k) for k in range(sizes)]
    return found + [
        Split(scheme=SCHEMES[1], fitted=every < k, predicted=k) for k in range(FEWEST_SIZES, sizes)
    ]


def run_trials(
    study: Study,
    archs: Sequence[str],
    candidates: Sequence[Candidate],
    *,
    progress: Callable[[int], None] | None = None,
) -> tuple[list[Trial], list[dict[str, Any]]]:
    """Fit every law to every split.

    Returns
    -------
    list of Trial
        The fits.
    list of dict
        Their errors on every cell of the size left out: ``law, scheme, tier, arch, cell, error`` (mean of ln predicted
        - ln observed over the runs of the cell), ``absolute`` and ``square`` (means of its size and its square), and
        ``reason`` where a split has none.
    """
    rows = study.endpoints.select(np.isin(study.endpoints.arch, archs))
    labels = rows.cells(study.bootstrap.unit)[0]
    tier, names = size_tiers(rows, study.law)
    splits = splits_of(len(names))
    trials, errors = [], []
    for candidate in candidates:
        trials.append(_trial(study, rows, labels, tier, splits, candidate, archs))
        for number, split in enumerate(splits):
            reason = trials[-1].reasons[number]
            head = {"law": candidate.name, "scheme": split.scheme, "tier": names[split.predicted]}
            if reason:
                nothing = dict.fromkeys(("arch", "cell", "error", "absolute", "square"))
                errors.append({**head, **nothing, "reason": reason})
                continue
            for arch, surface in trials[-1].surfaces.items():
                mine = (rows.arch == arch) & (tier == split.predicted)
                own = Surface(law=candidate.law, coef=surface.coef[number])
                found = _cells(study, rows.select(mine), labels[mine], own) if mine.any() else []
                errors += [{**head, "arch": arch, **row, "reason": ""} for row in found]
        if progress is not None:
            progress(1)
    return trials, errors


def law_rows(
    trials: Sequence[Trial], errors: Sequence[Mapping[str, Any]], level: float
) -> list[dict[str, Any]]:
    """Summarise errors by law and scheme, each against the study's law over the same cells.

    A law is called better or worse only where the mean absolute errors of cells differ by more than sign flips of
    their differences would make them (the two architectures of a cell together; Holm over the laws of a scheme). The
    interval is Student's over cells. Cells of one size share a fit, so both are rather too sure than too careful. Where
    no differences of so few cells could be called better or worse, the verdict says so.

    Parameters
    ----------
    trials : sequence of Trial
        The study's law first.
    errors : sequence of mapping
        From `run_trials`.
    level : float
        Of the intervals; 1 - level is that of the verdicts.
    """
    result = []
    for scheme in SCHEMES:
        rows = [_summary(trial, [r for r in errors if r["scheme"] == scheme]) for trial in trials]
        own = _by_cell(errors, STUDY, scheme)
        compared = [row for row in rows if own and not row["reason"] and row["law"] != STUDY]
        for row in compared:
            other = _by_cell(errors, row["law"], scheme)
            row |= _difference(np.array([other[cell] - own[cell] for cell in own]), level)
        adjusted = holm(np.array([row["p"] for row in compared]))
        for row, p in zip(compared, adjusted.tolist(), strict=True):
            row["p_holm"] = p
            nothing = TOO_FEW if len(compared) * 2.0 ** (1 - len(own)) >= 1 - level else SAME
            row["verdict"] = nothing if p >= 1 - level else BETTER if row["difference"] < 0 else WORSE
        result += [{"scheme": scheme, **row} for row in rows]
    return result


def _summary(trial: Trial, errors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    mine = [row for row in errors if row["law"] == trial.candidate.name]
    row: dict[str, Any] = {
        "law": trial.candidate.name,
        "formula": trial.candidate.law.formula,
        "parameters": trial.parameters or None,
        "sizes": len({one["tier"] for one in mine}),
        **dict.fromkeys(("cells", "mean_error", "rms_error", "difference", "difference_lo", "difference_hi")),
        **dict.fromkeys(("p", "p_holm")),
        "verdict": "",
        "reason": next((one["reason"] for one in mine if one["reason"]), ""),
    }
    if not mine:
        row["reason"] = f"the runs have fewer than {FEWEST_SIZES + 1} sizes of model"
    if row["reason"]:
        return row
    return row | {
        "cells": len({one["cell"] for one in mine}),
        "mean_error": float(np.mean([one["error"] for one in mine])),
        "rms_error": float(np.sqrt(np.mean([one["square"] for one in mine]))),
    }


def _by_cell(errors: Sequence[Mapping[str, Any]], law: str, scheme: str) -> dict[str, float]:
    """Return the mean absolute error of each cell, architectures together; nothing unless every split has errors."""
    found: dict[str, list[float]] = {}
    for row in errors:
        if row["law"] == law and row["scheme"] == scheme:
            if row["reason"]:
                return {}
            found.setdefault(row["cell"], []).append(row["absolute"])
    return {cell: float(np.mean(values)) for cell, values in sorted(found.items())}


def _difference(d: Array, level: float) -> dict[str, Any]:
    from scipy.stats import t

    if len(d) < 2:
        return {"difference": float(d.mean()), "p": 1.0}
    half = float(t.ppf(0.5 + level / 2, len(d) - 1)) * float(d.std(ddof=1)) / np.sqrt(len(d))
    mean = float(d.mean())
    return {
        "difference": mean,
        "difference_lo": mean - half,
        "difference_hi": mean + half,
        "p": flip_test(d) if np.any(d != 0) else 1.0,
    }


def _trial(
    study: Study,
    rows: Endpoints,
    labels: NDArray[np.str_],
    tier: NDArray[np.intp],
    splits: Sequence[Split],
    candidate: Candidate,
    archs: Sequence[str],
) -> Trial:
    """Fit a law to all rows, and from there to every split: all splits of an architecture at once."""
    if not splits:
        return Trial(candidate=candidate, parameters=0, surfaces={}, reasons=())
    fitted = []
    try:
        for arch in archs:
            mine = rows.arch == arch
            cells = len(np.unique(labels[mine]))
            fitted.append(
                fit_architecture(
                    arch, rows.select(mine), candidate.law, study.settings, n_cells=cells, labels=labels[mine]
                )
            )
        for one in fitted:
            if one.result.intervals_refused:
                raise FitError(f"{one.result.arch}: {one.result.why_no_interval}")
        counts = np.array([split.fitted for split in splits]).astype(np.int16)
        tiers = [tier[rows.arch == arch] for arch in archs]
        lost, sure, surfaces = [], [], []
        for one, own in zip(fitted, tiers, strict=True):
            gone, certified, surface = _left_out(one, own, counts)
            lost.append(gone)
            sure.append(certified)
            surfaces.append(surface)
        parameters = sum(int(one.problem.free.sum()) for one in fitted)
        if candidate.shared:
            surfaces, shared, tied = _shared(fitted, tiers, counts, [one.coef for one in surfaces])
            sure, parameters = [shared] * len(archs), parameters - tied
    except SmeltScalingError as error:
        return Trial(candidate=candidate, parameters=0, surfaces={}, reasons=(str(error),) * len(splits))
    return Trial(
        candidate=candidate,
        parameters=parameters,
        surfaces=dict(zip(archs, surfaces, strict=True)),
        reasons=tuple(_reason(archs, lost, sure, k) for k in range(len(splits))),
    )


def _left_out(
    fitted: Fitted, tier: NDArray[np.intp], counts: NDArray[np.int16]
) -> tuple[Mask, Mask, Surface]:
    """Fit one architecture to every split, from the optimum of all its rows; what is lost, certified, and found."""
    problem, delta = fitted.problem, fitted.delta
    lost, frozen = degenerate_replicates(fitted, tier, counts)
    weights = problem.weight * counts[:, tier]
    start = np.repeat(fitted.theta[None], len(counts), axis=0)
    found = minimise(
        fitted.objective, start, weights, delta_ladder(delta), frozen=frozen, max_iterations=MOST_STEPS
    )
    verdict = certify(fitted.objective, found.theta, weights, delta, frozen=frozen)
    return lost, verdict.certified, Surface(law=problem.law, coef=problem.natural(found.theta))


def _reason(archs: Sequence[str], lost: Sequence[Mask], sure: Sequence[Mask], split: int) -> str:
    for arch, gone, certified in zip(archs, lost, sure, strict=True):
        if gone[split]:
            return f"{arch}: the sizes that are left do not identify every parameter"
        if not certified[split]:
            return f"{arch}: the fit to the sizes that are left is not certified"
    return ""


def _shared(
    fitted: Sequence[Fitted],
    tiers: Sequence[NDArray[np.intp]],
    counts: NDArray[np.int16],
    alone: Sequence[Array],
) -> tuple[list[Surface], Mask, int]:
    """Fit architectures with the same exponents to every split; starts at the exponents of each, and at their mean.

    Returns the surfaces with a leading axis of splits, whether each is certified, and how many parameters are saved.
    """
    problems = [one.problem for one in fitted]
    question = questions_of(problems[0].law, problems, [one.result.arch for one in fitted])[0]
    if question.tie is None:
        raise FitError(question.reason)
    delta = fitted[0].delta
    factors = [1.0 if np.isinf(one.delta) else one.delta / delta for one in fitted]
    objective = Tied(
        Stacked(problems, factors), question.tie, np.concatenate([problem.observed for problem in problems])
    )
    weights = np.concatenate(
        [problem.weight * counts[:, own] for problem, own in zip(problems, tiers, strict=True)], axis=1
    )
    size, splits = len(problems[0].held), len(counts)
    whole = np.concatenate([p.centred(coef) for p, coef in zip(problems, alone, strict=True)], axis=1)
    first, second = whole.copy(), whole.copy()
    exponents = np.arange(1 + len(problems[0].terms), size)
    first[:, size + exponents], second[:, exponents] = whole[:, exponents], whole[:, size + exponents]
    starts = question.tie.phi(np.concatenate([whole, first, second]))
    every = np.tile(weights, (3, 1))
    found = minimise(objective, starts, every, delta_ladder(delta), max_iterations=MOST_STEPS)
    verdict = certify(objective, found.theta, every, delta)
    value = np.where(verdict.certified, verdict.objective, np.inf).reshape(3, splits)
    best = value.argmin(axis=0) * splits + np.arange(splits)
    theta = question.tie.theta(found.theta[best])
    surfaces = [
        Surface(law=problem.law, coef=problem.natural(own))
        for problem, own in zip(problems, (theta[:, :size], theta[:, size:]), strict=True)
    ]
    return surfaces, verdict.certified[best], free_tie(problems).size - question.tie.size


def _cells(study: Study, own: Endpoints, cell: NDArray[np.str_], surface: Surface) -> list[dict[str, Any]]:
    """Return the errors of one architecture's surface on its cells of the size left out."""
    columns = {name: own.S if name == "S" else own[name] for name in surface.law.columns}
    seen = prepare(columns, own, cell, study.settings).columns
    error = np.log(surface.loss(**seen)) - np.log(own.loss)
    return [
        {
            "cell": str(label),
            "error": float(error[cell == label].mean()),
            "absolute": float(np.abs(error[cell == label]).mean()),
            "square": float(np.mean(error[cell == label] ** 2)),
        }
        for label in np.unique(cell)
    ]
