"""The main job: endpoints -> certified fits -> draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.engine.design import CONDITION_REFUSE_INTERVALS
from smelt_scaling.errors import UsageError, merge_notes
from smelt_scaling.fitting import FitSettings, Fitted, fit_architecture
from smelt_scaling.laws import AdditiveLaw, get_law
from smelt_scaling.resampling import Draws, Plan, bootstrap_plan, jackknife_plan, refit
from smelt_scaling.resampling.replicates import degenerate_replicates
from smelt_scaling.study.model import Bootstrap, Study
from smelt_scaling.study.provenance import describe_run
from smelt_scaling.study.remarks import study_notes

__all__ = ["fit"]

Labels = NDArray[np.str_]

#: Above this share of degenerate replicates a bootstrap interval is refused.
DEGENERATE_LIMIT = 0.01


def fit(
    endpoints: Endpoints,
    law: str | AdditiveLaw = "sparse-additive",
    *,
    bootstrap: int = 2000,
    seed: int = 0,
    delta: float | Literal["auto"] = 1e-3,
    residual: Literal["log", "raw"] = "log",
    pins: Mapping[str, float | Mapping[str, float]] | None = None,
    starts: int | Literal["thorough"] = 5,
    resample: str | None = None,
    engine: Literal["newton", "lbfgsb"] = "newton",
    flops_per_param: float = 6.0,
    progress: Callable[[int, int], None] | None = None,
) -> Study:
    """Fit every architecture and resample its experimental units.

    Parameters
    ----------
    endpoints : Endpoints
        Finished runs.
    law : str or AdditiveLaw
        A named law or a formula; one for all architectures.
    bootstrap : int
        Number of replicates; 0 for none.
    seed : int
        Seed of the resampling. Equal rows, seed and environment give equal bytes.
    delta : float or "auto"
        Huber threshold; ``inf`` is least squares.
    residual : {"log", "raw"}
        Residual of the logarithm of the loss, or of the loss.
    pins : mapping, optional
        Parameters to hold: ``{"E": 1.6}`` for every architecture, ``{"smelt": {"E": 1.6}}`` for one.
    starts : int or "thorough"
        Starts of the point fit; ``"thorough"`` also restarts every replicate from eight other optima.
    resample : {"cell", "trunk", "run", "row"}, optional
        The unit to resample; by default the first the table names.
    engine : {"newton", "lbfgsb"}
        Optimiser.
    flops_per_param : float
        F = flops_per_param * N, for laws in N.
    progress : callable, optional
        Called with (refits done, refits in all).

    Returns
    -------
    Study

    Raises
    ------
    DataError, FitError, UsageError
        If a column is missing, endpoints are too few, or an argument is invalid.

    Examples
    --------
    >>> from smelt_scaling.papers.example import example_endpoints
    >>> study = fit(example_endpoints(), bootstrap=0)
    >>> study.archs, study.certified
    (('baseline', 'smelt'), True)
    """
    from threadpoolctl import threadpool_limits

    if bootstrap < 0:
        raise UsageError(f"bootstrap {bootstrap}: must be 0 or more replicates")
    law = get_law(law)
    settings = FitSettings(
        delta=delta,
        residual=residual,
        pins=_normalise_pins(pins, endpoints.archs),
        starts=starts,
        engine=engine,
        flops_per_param=flops_per_param,
    )
    labels, unit = endpoints.cells(resample)
    by_arch = {arch: labels[endpoints.arch == arch] for arch in endpoints.archs}
    with threadpool_limits(limits=1):  # two BLAS threads are up to 16 times slower on matrices this small
        fitted = {
            arch: fit_architecture(arch, rows, law, settings, n_cells=len(np.unique(by_arch[arch])))
            for arch, rows in endpoints.by_arch().items()
        }
        jackknife = _refit_all(fitted, by_arch, jackknife_plan(by_arch), settings, None)
        draws, summary = _bootstrap(fitted, by_arch, unit, bootstrap, seed, settings, progress)
    return Study(
        law=law,
        fits={arch: one.result for arch, one in fitted.items()},
        draws=draws,
        jackknife=jackknife,
        bootstrap=summary,
        settings=settings,
        endpoints=endpoints,
        provenance=describe_run(endpoints),
        notes=merge_notes(endpoints.notes, study_notes(law, endpoints, settings, summary, by_arch)),
    )


def _normalise_pins(
    pins: Mapping[str, float | Mapping[str, float]] | None, archs: tuple[str, ...]
) -> dict[str, dict[str, float]] | None:
    """Return architecture ("" for all) -> parameter -> value."""
    result: dict[str, dict[str, float]] = {}
    for key, value in (pins or {}).items():
        if isinstance(value, Mapping):
            if key not in archs:
                raise UsageError(f"pin {key}: no such architecture; there are {', '.join(archs)}")
            result.setdefault(key, {}).update({name: float(v) for name, v in value.items()})
        else:
            result.setdefault("", {})[key] = float(value)
    return result or None


def _refit_all(
    fitted: Mapping[str, Fitted],
    labels: Mapping[str, Labels],
    plan: Plan,
    settings: FitSettings,
    progress: Callable[[int, int], None] | None,
) -> dict[str, Draws]:
    total, done = plan.replicates * len(fitted), 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    result = {}
    for arch, one in fitted.items():
        own = plan.labels[arch]
        index = np.searchsorted(np.array(own), labels[arch])
        result[arch] = refit(one, index, plan.counts[arch], own, settings, progress=advance)
    return result


def _bootstrap(
    fitted: Mapping[str, Fitted],
    labels: Mapping[str, Labels],
    unit: str,
    replicates: int,
    seed: int,
    settings: FitSettings,
    progress: Callable[[int, int], None] | None,
) -> tuple[dict[str, Draws] | None, Bootstrap]:
    plan = bootstrap_plan(labels, replicates=max(replicates, 1), seed=seed)

    def outcome(
        status: Literal["ok", "none", "refused"],
        reason: str,
        draws: Mapping[str, Draws] | None = None,
        degenerate: int = 0,
    ) -> Bootstrap:
        every = list(draws.values()) if draws else []
        return Bootstrap(
            status=status,
            reason=reason,
            replicates=replicates,
            seed=seed,
            unit=unit,
            paired=plan.paired,
            certified_share=float(np.mean([d.certified for d in every])) if every else None,
            degenerate=degenerate,
            improved_by_extra_start=float(np.mean([d.improved for d in every])) if every else None,
            at_bound={
                arch: {
                    name: int(count)
                    for name, count in zip(d.surface.law.parameters, d.at_bound.sum(axis=0), strict=True)
                    if count
                }
                for arch, d in (draws or {}).items()
            },
        )

    if replicates == 0:
        return None, outcome("none", "no replicates were asked for")
    for arch, one in fitted.items():
        condition = one.result.certificate.condition
        if not condition <= CONDITION_REFUSE_INTERVALS:
            return None, outcome(
                "refused",
                f"{arch}: condition number {condition:.2g} is above 1e6, so no interval means anything",
            )
    lost = np.zeros(replicates, dtype=bool)
    for arch, one in fitted.items():
        index = np.searchsorted(np.array(plan.labels[arch]), labels[arch])
        for lo in range(0, replicates, 4096):
            part = slice(lo, min(lo + 4096, replicates))
            lost[part] |= degenerate_replicates(one, index, plan.counts[arch][part])[0]
    degenerate = int(lost.sum())
    if degenerate > DEGENERATE_LIMIT * replicates:
        fewest = min(len(own) for own in plan.labels.values())
        reason = (
            f"{degenerate} of {replicates} resamples ({degenerate / replicates:.1%}) of {fewest} {unit} labels cannot "
            "identify every parameter; use --interval jackknife-t"
        )
        return None, outcome("refused", reason, degenerate=degenerate)
    draws = _refit_all(fitted, labels, plan, settings, progress)
    return draws, outcome("ok", "", draws, degenerate)
