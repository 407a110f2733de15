"""The main job: endpoints -> certified fits -> draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, UsageError, info, merge_notes
from smelt_scaling.fitting import FitSettings, Fitted, fit_screened, with_conventions
from smelt_scaling.fitting.pins import Pins, require_own_evaluation, settle_pins
from smelt_scaling.laws import REPEAT_CONSTANT, AdditiveLaw, get_law
from smelt_scaling.resampling import Draws, Plan, bootstrap_plan, jackknife_plan, refit
from smelt_scaling.resampling.replicates import degenerate_replicates
from smelt_scaling.resampling.wild import refit_wild, wild_plan, wild_refusal
from smelt_scaling.study.model import Bootstrap, Study
from smelt_scaling.study.provenance import describe_run
from smelt_scaling.study.remarks import answered, study_notes, why_not_by_row

__all__ = ["fit", "weighted_rows"]

Labels = NDArray[np.str_]

#: With more labels than this, leave-one-out fits would cost more than the bootstrap and say no more.
JACKKNIFE_LIMIT = 200

#: Above this share of degenerate replicates a bootstrap interval is refused.
DEGENERATE_LIMIT = 0.01


#: A resample of no more distinct labels than this says nothing of how labels scatter.
FEWEST_LABELS = 2


def fit(
    endpoints: Endpoints,
    law: str | AdditiveLaw = "sparse-additive",
    *,
    bootstrap: int = 2000,
    wild: bool = False,
    seed: int = 0,
    delta: float | Literal["auto"] = 1e-3,
    residual: Literal["log", "raw"] = "log",
    pins: Pins | None = None,
    starts: int | Literal["thorough"] = 64,
    resample: str | None = None,
    engine: Literal["newton", "lbfgsb"] = "newton",
    flops_per_param: float = 6.0,
    drop_outliers: bool = False,
    cell_weights: Literal["rows", "equal"] = "rows",
    data_law: Literal["fresh", "repeated"] = "fresh",
    repeat_constant: float = REPEAT_CONSTANT,
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
    wild : bool
        Whether to draw as many replicates of the wild cluster bootstrap, too.
    seed : int
        Seed of the resampling. Equal rows, seed and environment give equal bytes.
    delta : float or "auto"
        Huber threshold; ``inf`` is least squares.
    residual : {"log", "raw"}
        Residual of the logarithm of the loss, or of the loss.
    pins : mapping, optional
        Parameters to hold: ``{"E": 1.6}`` for every architecture, ``{"smelt": {"E": 1.6}}`` for one. A value may name
        the evaluation set that it belongs to, ``{"E": (1.6, "paloma/macro")}``, which must be the table's.
    starts : int or "thorough"
        Starts of the point fit; ``"thorough"`` also restarts every replicate from eight other optima.
    resample : {"cell", "trunk", "run", "row"}, optional
        The unit to resample; by default the first the table names. Single rows are resampled unasked only if no
        column of the file, read or not, seems to name runs and repeats.
    engine : {"newton", "lbfgsb"}
        Optimiser.
    flops_per_param : float
        F = flops_per_param * N, for laws in N.
    drop_outliers : bool
        Leave out endpoints over 5 robust standard deviations off a first fit, and fit again, once. Otherwise they are
        kept, and the note `outlier` says what the fit would be without them.
    cell_weights : {"rows", "equal"}
        "equal" gives every resampled unit of an architecture the same total weight, shared among its rows in proportion
        to the column ``weight``.
    data_law : {"fresh", "repeated"}
        "repeated" fits the law to what tokens are worth if seen once, from the column ``unique_tokens``; D of every
        result counts such tokens then, and compute stays what was spent.
    repeat_constant : float
        R_D* of the latter; see `smelt_scaling.laws.effective_amount`.
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

    if not isinstance(endpoints, Endpoints):
        raise UsageError(
            f"endpoints of type {type(endpoints).__name__}: read a file with read_endpoints(path), "
            "or a frame with Endpoints.from_frame(frame)"
        )
    for name, count in (("bootstrap", bootstrap), ("seed", seed)):
        if not isinstance(count, int | np.integer) or count < 0:
            raise UsageError(f"{name} {count!r}: must be a whole number of 0 or more")
    endpoints.require_one_law()
    provenance = describe_run(endpoints)  # before the fit: the file may change while it runs
    law = get_law(law)
    held, tags = settle_pins(pins, endpoints.archs)
    settings = FitSettings(
        delta=delta,
        residual=residual,
        pins=held,
        pin_tags=tags,
        starts=starts,
        engine=engine,
        flops_per_param=flops_per_param,
        drop_outliers=drop_outliers,
        cell_weights=cell_weights,
        data_law=data_law,
        repeat_constant=repeat_constant,
    )
    require_own_evaluation(endpoints, settings)
    endpoints, ignored = weighted_rows(endpoints)
    with threadpool_limits(limits=1):  # two BLAS threads are up to 16 times slower on matrices this small
        screened = {
            arch: fit_screened(arch, rows, law, settings, resample=resample)
            for arch, rows in endpoints.by_arch().items()
        }
        # rows are sorted by architecture first
        endpoints = endpoints.select(np.concatenate([kept for _, kept in screened.values()]))
        fitted = {
            arch: with_conventions(screened[arch][0], rows, settings, resample=resample)
            for arch, rows in endpoints.by_arch().items()
        }
        labels, unit = endpoints.cells(resample)
        by_arch = {arch: labels[endpoints.arch == arch] for arch in endpoints.archs}
        repeated = why_not_by_row(endpoints) if resample is None and unit == "row" else ""
        jackknife = None if repeated else _jackknife(fitted, by_arch, settings)
        draws, summary = _bootstrap(fitted, by_arch, unit, bootstrap, seed, settings, progress, repeated)
        signed = None
        if wild:
            signed, reason = _wild(fitted, by_arch, jackknife, bootstrap, seed, settings)
            summary = replace(summary, no_wild=reason)
    return Study(
        law=law,
        fits={arch: one.result for arch, one in fitted.items()},
        draws=draws,
        jackknife=jackknife,
        wild=signed,
        bootstrap=summary,
        settings=settings,
        endpoints=endpoints,
        provenance=provenance,
        notes=merge_notes(
            answered(endpoints.notes, settings),
            ignored,
            study_notes(law, endpoints, settings, summary, by_arch),
        ),
    )


def weighted_rows(endpoints: Endpoints) -> tuple[Endpoints, list[Note]]:
    """Leave out rows of weight 0, which would otherwise widen the window and fill labels."""
    unused = endpoints.weight == 0
    count = int(unused.sum())
    if count == 0:
        return endpoints, []
    return endpoints.select(~unused), [
        info("zero_weight", f"{counted(count, 'row')} of weight 0 left out of the fit", count)
    ]


def _indices(plan: Plan, labels: Mapping[str, Labels]) -> dict[str, NDArray[np.intp]]:
    """Return, per architecture, the position of each row's label among the plan's labels."""
    return {arch: np.searchsorted(np.array(plan.labels[arch]), own) for arch, own in labels.items()}


def _jackknife(
    fitted: Mapping[str, Fitted], labels: Mapping[str, Labels], settings: FitSettings
) -> dict[str, Draws] | None:
    plan = jackknife_plan(labels)
    if plan.replicates > JACKKNIFE_LIMIT:
        return None
    index = _indices(plan, labels)
    return {
        arch: refit(one, index[arch], plan.counts[arch], plan.labels[arch], settings)
        for arch, one in fitted.items()
    }


def _wild(
    fitted: Mapping[str, Fitted],
    labels: Mapping[str, Labels],
    left_out: Mapping[str, Draws] | None,
    replicates: int,
    seed: int,
    settings: FitSettings,
) -> tuple[dict[str, Draws] | None, str]:
    """Draw the wild cluster bootstrap, or say why there is none."""
    if left_out is None:
        return None, "too many labels to leave each out"
    if not replicates:
        return None, "no replicates were asked for"
    plan = wild_plan(labels, replicates=replicates, seed=seed)
    if reason := wild_refusal(plan, left_out):
        return None, reason
    index = _indices(plan, labels)
    return {
        arch: refit_wild(one, index[arch], plan, left_out[arch], settings) for arch, one in fitted.items()
    }, ""


def _bootstrap(
    fitted: Mapping[str, Fitted],
    labels: Mapping[str, Labels],
    unit: str,
    replicates: int,
    seed: int,
    settings: FitSettings,
    progress: Callable[[int, int], None] | None,
    repeated: str,
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
        if one.result.intervals_refused:
            return None, outcome(
                "refused",
                f"{arch}: {one.result.why_no_interval}, so no interval means anything",
            )
    if repeated:
        return None, outcome("refused", repeated)
    index = _indices(plan, labels)
    screened = {
        arch: degenerate_replicates(one, index[arch], plan.counts[arch]) for arch, one in fitted.items()
    }
    few = [(plan.counts[arch] > 0).sum(axis=1) <= FEWEST_LABELS for arch in fitted]
    degenerate = int(np.any([*few, *(lost for lost, _ in screened.values())], axis=0).sum())
    if degenerate > DEGENERATE_LIMIT * replicates:
        fewest = min(len(own) for own in plan.labels.values())
        way = "; --interval jackknife-t gives one" if fewest > FEWEST_LABELS else ""
        reason = (
            f"{degenerate} of {replicates} resamples ({degenerate / replicates:.1%}) of "
            f"{counted(fewest, f'{unit} label')} keep too few distinct labels or cannot identify every parameter{way}"
        )
        return None, outcome("refused", reason, degenerate=degenerate)
    draws: dict[str, Draws] = {}
    done, total = 0, replicates * len(fitted)

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    for arch, one in fitted.items():
        draws[arch] = refit(
            one,
            index[arch],
            plan.counts[arch],
            plan.labels[arch],
            settings,
            screened=screened[arch],
            progress=advance,
        )
    return draws, outcome("ok", "", draws, degenerate)
