"""Fitting one architecture: design check, starts, optimum, certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.engine.certificate import Verdict, certify
from smelt_scaling.engine.design import (
    CONDITION_SINGULAR,
    Identified,
    condition_numbers,
    identify,
    null_direction,
)
from smelt_scaling.engine.lbfgsb import minimise_lbfgsb
from smelt_scaling.engine.newton import Optimum, delta_ladder, minimise
from smelt_scaling.engine.objective import Objective
from smelt_scaling.engine.problem import Problem, make_problem
from smelt_scaling.engine.seeds import projected_starts
from smelt_scaling.errors import DataError, FitError, UsageError, merge_notes
from smelt_scaling.fitting.notes import dense_tier_notes, fit_notes
from smelt_scaling.fitting.residuals import residual_notes, rms, sparse_rms
from smelt_scaling.fitting.result import Certificate, FitResult, FitStatus
from smelt_scaling.fitting.settings import FitSettings
from smelt_scaling.fitting.steps import prepare
from smelt_scaling.laws import AdditiveLaw, Surface

__all__ = ["Fitted", "fit_architecture", "frontier_columns", "minimiser", "problem_of"]

Array = NDArray[np.float64]

AGREE = 1e-9  # relative: two starts that end this close found the same optimum
MORE_STARTS = (16, 64, 256)  # tried in turn when too few starts agree


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """A point estimate with the problem it solved; what resampling starts from."""

    result: FitResult
    problem: Problem
    objective: Objective
    theta: Array
    delta: float
    columns: Mapping[str, Array]
    tiers: NDArray[np.intp]


def frontier_columns(law: AdditiveLaw, endpoints: Endpoints, flops_per_param: float) -> dict[str, Array]:
    """Return the law's columns, and F, D, C and TPP as its frontier counts them.

    A law in N gets F = flops_per_param * N and C = F * D, whatever other columns say, so that a budget means one thing.
    """
    columns: dict[str, Array] = {name: endpoints[name] for name in law.columns if name in endpoints}
    if "S" in law.columns:
        columns["S"] = endpoints.S
    size = next((name for name in ("F", "N", "N_act") if name in law.columns), None)
    if size is None:
        return columns
    flops = endpoints[size] if size == "F" else flops_per_param * endpoints[size]
    columns["F"] = flops
    if "D" in endpoints:
        columns |= {"D": endpoints["D"], "C": flops * endpoints["D"]}
        columns["TPP"] = endpoints["D"] * flops_per_param / flops
    return columns


def fit_architecture(
    arch: str,
    endpoints: Endpoints,
    law: AdditiveLaw,
    settings: FitSettings,
    *,
    n_cells: int,
    labels: NDArray[np.str_] | None = None,
) -> Fitted:
    """Fit one architecture.

    Parameters
    ----------
    arch : str
        Its name, for messages.
    endpoints : Endpoints
        Its endpoints only, holding every column of the law.
    law : AdditiveLaw
        The law.
    settings : FitSettings
        Choices.
    n_cells : int
        Number of resampling labels, carried into the result.
    labels : (n,) array of str, optional
        The resampling label of each row; by default those of `Endpoints.cells`.

    Raises
    ------
    DataError
        If a column of the law is missing.
    FitError
        If there are fewer endpoints than parameters to fit.
    UsageError
        If a pin names no parameter or violates a bound.
    """
    labels = endpoints.cells()[0] if labels is None else labels
    problem, found, columns = problem_of(arch, endpoints, law, settings, labels)
    pins = settings.pins_of(arch)
    free = int(problem.free.sum())
    used = int((problem.weight > 0).sum())
    if used < free:
        names = ", ".join(n for n, f in zip(law.parameters, problem.free, strict=True) if f)
        raise FitError(
            f"{arch}: {counted(used, 'endpoint')} for {counted(free, 'parameter')} ({names}); "
            "a fit needs at least as many endpoints; "
            "add endpoints or hold parameters with --pin"
        )
    objective = Objective(problem)
    delta = _choose_delta(objective, settings)
    theta, verdict, starts, agreeing = _best_of_starts(objective, delta, settings)
    weights = problem.weight[None, :]
    condition = float(condition_numbers(problem, theta, weights)[0]) if free else 1.0
    certificate = Certificate(
        status=_status(verdict, agreeing, condition),
        decrement=float(verdict.decrement[0]),
        starts=starts,
        starts_agreeing=agreeing,
        at_bounds=tuple(n for n, b in zip(law.parameters, verdict.at_bound[0], strict=True) if b),
        linear_zone_share=_linear_zone_share(problem, theta, delta),
        condition=condition,
    )
    unidentified = dict(found.reasons)
    if condition > CONDITION_SINGULAR:
        for name in null_direction(problem, theta):
            unidentified.setdefault(name, "the design leaves a combination of it with others free")
    predicted = problem.predicted(theta)
    sparse = sparse_rms(endpoints, predicted - endpoints.loss, problem.weight) if "S" in law.columns else None
    rmse = rms(predicted - endpoints.loss, problem.weight)
    scale = problem.scale**2 if settings.residual == "raw" else 1.0
    result = FitResult(
        arch=arch,
        surface=Surface(law=law, coef=problem.natural(theta)),
        certificate=certificate,
        objective=float(verdict.objective[0]) * scale,
        rmse=rmse,
        rmse_log=rms(np.log(predicted) - np.log(endpoints.loss), problem.weight),
        n=len(endpoints),
        n_cells=n_cells,
        delta=delta * (problem.scale if settings.residual == "raw" else 1.0),
        window={
            name: (float(values.min()), float(values.max()))
            for name, values in _window_columns(law, endpoints, columns, settings.flops_per_param).items()
        },
        unidentified=unidentified,
        only_at={k: v for k, v in found.only_at.items() if k == "S"},
        collinear=found.collinear,
        pinned=pins,
        notes=merge_notes(
            fit_notes(
                arch, law, certificate, found, unidentified, _held(arch, endpoints, settings), used - free
            ),
            dense_tier_notes(arch, rmse, sparse),
            residual_notes(arch, endpoints, rmse, used - free),
        ),
        loss_unit=endpoints.loss_unit,
        rmse_without_lowest_tier=sparse,
    )
    return Fitted(
        result=result,
        problem=problem,
        objective=objective,
        theta=theta,
        delta=delta,
        columns=columns,
        tiers=endpoints.tiers,
    )


def problem_of(
    arch: str, endpoints: Endpoints, law: AdditiveLaw, settings: FitSettings, labels: NDArray[np.str_]
) -> tuple[Problem, Identified, Mapping[str, Array]]:
    """Return what a fit of one architecture minimises, what its design leaves out, and the columns the law is given.

    Parameters
    ----------
    arch, endpoints, law, settings, labels
        As for `fit_architecture`.
    """
    seen = prepare(_columns(endpoints, law), endpoints, labels, settings)
    pins = settings.pins_of(arch)
    _check_pins(law, pins)
    found = identify(law, seen.columns, pins, endpoints.tiers)
    problem = make_problem(
        law,
        seen.columns,
        endpoints.loss,
        seen.weight,
        pins=pins,
        dropped_terms=found.dropped_terms,
        dropped_exponents=found.dropped_exponents,
        log_residual=settings.residual == "log",
    )
    return problem, found, seen.columns


def _window_columns(
    law: AdditiveLaw, endpoints: Endpoints, seen: Mapping[str, Array], flops_per_param: float
) -> dict[str, Array]:
    """Return the columns of a window: tokens as the law counts them, compute as it was spent."""
    columns = frontier_columns(law, endpoints, flops_per_param)
    if "D" not in seen or "D" not in columns:
        return columns
    D = seen["D"]
    return {**columns, "D": D, **({"TPP": columns["TPP"] * D / columns["D"]} if "TPP" in columns else {})}


def minimiser(settings: FitSettings) -> Any:
    """Return the optimiser of a setting: one call signature for both engines."""
    return minimise if settings.engine == "newton" else minimise_lbfgsb


def _columns(endpoints: Endpoints, law: AdditiveLaw) -> dict[str, Array]:
    columns = {name: endpoints[name] for name in law.columns if name in endpoints}
    if "S" in law.columns and "S" not in columns:
        columns["S"] = np.zeros(len(endpoints))
    missing = [name for name in law.columns if name not in columns]
    if missing:
        raise DataError(endpoints.explain_missing(*missing))
    return columns


def _held(arch: str, endpoints: Endpoints, settings: FitSettings) -> dict[str, str]:
    """Return held values as text, with what they belong to and whether the table says that it is that."""
    unknown = "" if "eval_set" in endpoints.measured_on else " (not checked: the table names no eval_set)"
    of = {name: f" of {tag}{unknown}" for name, tag in settings.pin_tags_of(arch).items()}
    return {name: f"{value:g}{of.get(name, '')}" for name, value in settings.pins_of(arch).items()}


def _check_pins(law: AdditiveLaw, pins: Mapping[str, float]) -> None:
    for name, value in pins.items():
        if name not in law.parameters:
            known = ", ".join(law.parameters)
            raise UsageError(f"pin {name}={value:g}: no parameter of law {law.name}; choose from {known}")
        positive = name == law.floor or name in law.amplitudes or name in law.decays
        if not np.isfinite(value) or (positive and value < 0):
            raise UsageError(f"pin {name}={value}: must be finite{' and not negative' if positive else ''}")


def _choose_delta(objective: Objective, settings: FitSettings) -> float:
    """Return delta on the scale of the problem's residuals."""
    raw_scale = objective.problem.scale if settings.residual == "raw" else 1.0
    if settings.delta != "auto":
        return float(settings.delta) / raw_scale
    first = _best_of_starts(objective, 1e-3 / raw_scale, settings)[0]
    residual = np.abs(_residuals(objective.problem, first))
    # the normal's 75 % quantile turns a median into a standard deviation; noise-free data have none
    return max(1.345 * float(np.median(residual)) / 0.6744897501960817, 1e-9)


def _best_of_starts(
    objective: Objective, delta: float, settings: FitSettings
) -> tuple[Array, Verdict, int, int]:
    """Run starts until two agree on the best certified optimum; return theta, its verdict, starts, agreeing."""
    problem = objective.problem
    total = 0
    for count in (settings.start_count, *(c for c in MORE_STARTS if c > settings.start_count)):
        starts = projected_starts(problem, count)
        if len(starts) < 2:  # every exponent is held, or no grid point is usable
            starts = np.concatenate([starts, _plain_start(problem, starts)])
        total = len(starts)
        weights = np.repeat(problem.weight[None, :], total, axis=0)
        found: Optimum = minimiser(settings)(objective, starts, weights, delta_ladder(delta))
        verdict = certify(objective, found.theta, weights, delta)
        order = np.lexsort((~verdict.certified, verdict.objective))
        best = order[0]
        lowest = verdict.objective[best]
        close = verdict.objective <= lowest + AGREE * lowest + 0.5 * problem.weight.sum() * 1e-24
        # among starts that found the same optimum prefer one whose derivatives confirm it
        best = next((i for i in order if close[i] and verdict.certified[i]), best)
        agreeing = int(close.sum())
        if agreeing >= 2 and verdict.certified[best]:
            break
        if condition_numbers(problem, found.theta[best], weights[:1])[0] > CONDITION_SINGULAR:
            break  # a whole line of optima: more starts find more of its points
    one = slice(best, best + 1)
    chosen = certify(objective, found.theta[one], weights[one], delta)
    return found.theta[best], chosen, total, agreeing


def _plain_start(problem: Problem, starts: Array) -> Array:
    """Return a start with half of the loss in the floor and the rest in equal terms, at the exponents of the others."""
    first = 1 + len(problem.terms)
    theta = np.full((1, len(problem.held)), 0.3)
    theta[0, 0] = 0.5
    theta[0, 1:first] = np.log(0.5 / len(problem.terms))
    if len(starts):
        theta[0, first:] = starts[0, first:]
    return np.where(problem.free, theta, np.nan_to_num(problem.held))


def _residuals(problem: Problem, theta: Array) -> Array:
    predicted = problem.predicted(theta) / problem.scale
    return (np.log(predicted) if problem.log_residual else predicted) - problem.observed


def _linear_zone_share(problem: Problem, theta: Array, delta: float) -> float:
    used = problem.weight > 0
    return float(np.mean(np.abs(_residuals(problem, theta)[used]) > delta))


def _status(verdict: Verdict, agreeing: int, condition: float) -> FitStatus:
    if condition > CONDITION_SINGULAR:
        return FitStatus.NOT_IDENTIFIED
    if not verdict.certified[0]:
        return FitStatus.NOT_CONVERGED
    return FitStatus.CERTIFIED if agreeing >= 2 else FitStatus.LONELY
