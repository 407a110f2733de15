"""Compute saved on groups of sources, from those the reference finds easy to those it finds hard."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._schema import counted
from smelt_scaling.analyses.frames import Carried, finish_frame
from smelt_scaling.analyses.gain import gain_of
from smelt_scaling.analyses.splits.fits import rows_of
from smelt_scaling.analyses.splits.gains import Gains, Multipliers, pair_rows, part_rows
from smelt_scaling.analyses.splits.losses import Parts, match_parts, mixed, token_weights
from smelt_scaling.analyses.splits.question import Question, answer, ask, part_notes
from smelt_scaling.analyses.view import IntervalKind
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import DataError, Note, UsageError, info, warning
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SORT_AT", "sources"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Aggregate = Literal["equal", "tokens"]
SortAt = Literal["last", "all"]

#: Endpoints whose mean reference loss sorts the sources.
SORT_AT = ("last", "all")


def sources(
    study: Study,
    losses: Endpoints,
    budgets: ArrayLike,
    *,
    target: str | None = None,
    reference: str | None = None,
    sparsities: ArrayLike | None = None,
    groups: int = 4,
    sort_at: SortAt = "last",
    split_sample: bool = False,
    aggregate: Aggregate = "equal",
    level: float = 0.95,
    interval: IntervalKind = "percentile",
    force: bool = False,
) -> pd.DataFrame:
    """Tabulate the compute that the target saves on groups of sources, sorted by the loss of the reference.

    Sources are sorted by loss, equal losses by name, and cut into groups of nearly equal size, larger ones first: 39
    make 10, 10, 10 and 9. Sorting by losses that the gains are made of draws the gain of the lowest group down and that
    of the highest up; with ``split_sample`` half of the resampled labels sort and the other half is fitted, then the
    other way round, and the gains are averaged. The groups are the same in every replicate.

    Parameters
    ----------
    study : Study
        Fits of the whole evaluation.
    losses : Endpoints
        One row per endpoint of the study and source, with the column ``source`` (and ``domain``, if there is one).
    budgets, target, reference, sparsities, level, interval, force
        As in `ce_gain`; parts have no wild-cr3 intervals.
    groups : int
        How many.
    sort_at : {"last", "all"}
        Sort by the mean over cells of the reference's loss at their longest horizon, or over all endpoints.
    split_sample : bool
        Sort by some labels, estimate on the others.
    aggregate : {"equal", "tokens"}
        Whether the sources of a group count alike, or by their column ``eval_tokens``.

    Returns
    -------
    DataFrame
        As `domains`, one row per budget, sparsity and ``group`` (Q1 is the group of the lowest losses), with
        ``sources`` (how many), ``loss_low`` and ``loss_high`` (the reference's, of the group). ``.attrs`` holds
        ``pairs`` (paired differences of every two groups, the contrasts) and ``members`` (each source with its group,
        the reference's loss and a gain of its own).

    Raises
    ------
    UsageError
        As `ce_gain`; if there are fewer sources than groups, or ``sort_at`` is unknown.
    DataError, FrontierError
        As `domains`.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> import pandas as pd
    >>> runs = example_endpoints()
    >>> parts = [runs.to_frame().assign(source=f"s{i}", loss=runs.loss * (1 + i / 10)) for i in range(6)]
    >>> losses = Endpoints.from_frame(pd.concat(parts))
    >>> table = sources(fit(runs, bootstrap=0), losses, 1e21, sparsities=0.947)
    >>> table["group"].tolist(), table["sources"].tolist()
    (['Q1', 'Q2', 'Q3', 'Q4'], [2, 2, 1, 1])
    """
    question = ask(
        study,
        losses,
        budgets,
        target=target,
        reference=reference,
        sparsities=sparsities,
        level=level,
        interval=interval,
        force=force,
    )
    parts = match_parts(study, losses, question.archs)
    _check(parts, groups, sort_at)
    weight = token_weights(parts, aggregate)
    every = np.ones(len(parts.loss[question.archs[1]][0]), dtype=bool)
    key = _sort_key(question, parts, sort_at, every)
    group, ties = _grouped(parts.sources, key, groups)
    if split_sample:
        gains = _crossed(question, parts, weight, groups, sort_at)
    else:
        gains = answer(question, _of_groups(parts, group, weight, groups))
    names = tuple(f"Q{number + 1}" for number in range(groups))
    members = [np.flatnonzero(group == number) for number in range(groups)]
    stated = {
        name: {"sources": len(own), "loss_low": float(key[own].min()), "loss_high": float(key[own].max())}
        for name, own in zip(names, members, strict=True)
    }
    rows = [{**row, **stated[row["group"]], **question.marks} for row in part_rows(gains, "group", names)]
    notes = [*parts.notes, *part_notes(question, gains, rows, "group"), *_sort_notes(ties, split_sample)]
    frame = finish_frame(
        rows,
        question.view,
        notes,
        level=level,
        interval=interval,
        target=question.archs[0],
        reference=question.archs[1],
        groups=groups,
        sort_at=sort_at,
        split_sample=split_sample,
        aggregate=aggregate,
        losses=parts.source,
    )
    frame["rank"] = frame["rank"].astype("Int64")  # an absent one does not make the others floats
    frame.attrs["pairs"] = Carried(pair_rows(gains, names))
    frame.attrs["members"] = Carried(_member_rows(question, parts, key, [names[g] for g in group]))
    return frame


def _check(parts: Parts, groups: int, sort_at: str) -> None:
    if sort_at not in SORT_AT:
        raise UsageError(f"sort_at {sort_at!r} is unknown; choose from {', '.join(SORT_AT)}")
    if not isinstance(groups, int | np.integer) or groups < 2:
        raise UsageError(f"groups {groups!r}: must be a whole number of 2 or more")
    if len(parts.sources) < groups:
        raise UsageError(
            f"{parts.source}: {counted(len(parts.sources), 'source')} for {groups} groups: each needs one; ask for "
            "fewer with --groups"
        )


def _sort_key(question: Question, parts: Parts, sort_at: str, rows: Mask) -> Array:
    """Return the reference's loss of every source: the mean over cells or endpoints, of the rows given.

    Of those alone at which every source has a loss: a mean that lacks small models is lower for that reason.
    """
    arch = question.archs[1]
    seen = rows_of(question.study, arch)
    loss = np.where(rows, parts.loss[arch], np.nan)
    if sort_at == "last":
        if "D" not in seen.endpoints:
            raise DataError(seen.endpoints.explain_missing("D"))
        last = np.zeros(len(rows), dtype=bool)
        for label in np.unique(seen.labels):
            own = seen.labels == label
            last |= own & (seen.endpoints.D[own].max() == seen.endpoints.D)
        loss = np.where(last, loss, np.nan)
    known = np.isfinite(loss)
    if not known.any(axis=1).all():
        name = parts.sources[int(np.argmin(known.any(axis=1)))]
        raise DataError(
            f"{parts.source}: column source, {name} has no loss of {arch} to sort it by (sort_at {sort_at}): "
            "each source needs one; evaluate it there, or leave it out"
        )
    common = known.all(axis=0)
    if not common.any():
        raise DataError(
            f"{parts.source}: no endpoint of {arch} with a loss of every source to sort them by (sort_at {sort_at}): "
            "means over other endpoints do not compare; evaluate the missing ones, or leave out sources that lack many"
        )
    return np.asarray(loss[:, common].mean(axis=1))


def _grouped(names: tuple[str, ...], key: Array, groups: int) -> tuple[NDArray[np.intp], int]:
    """Return the group of every source, and how many cuts fall between equal losses."""
    order = np.lexsort((np.array(names), key))
    parts = np.array_split(order, groups)
    group = np.empty(len(names), dtype=np.intp)
    for number, own in enumerate(parts):
        group[own] = number
    return group, sum(
        bool(key[one[-1]] == key[other[0]]) for one, other in zip(parts, parts[1:], strict=False)
    )


def _of_groups(parts: Parts, group: NDArray[np.intp], weight: Array, groups: int) -> dict[str, Array]:
    share = np.equal.outer(np.arange(groups), group) * weight
    return {arch: mixed(loss, share) for arch, loss in parts.loss.items()}


def _crossed(question: Question, parts: Parts, weight: Array, groups: int, sort_at: str) -> Gains:
    """Return gains averaged over two halves of the labels, each fitted in the groups that the other makes.

    Every second label of the sorted union is of one half, for both architectures.
    """
    labels = {arch: rows_of(question.study, arch).labels for arch in question.archs}
    union = np.unique(np.concatenate(list(labels.values())))
    halves = []
    for odd in (0, 1):
        sorting = {arch: np.searchsorted(union, own) % 2 == odd for arch, own in labels.items()}
        key = _sort_key(question, parts, sort_at, sorting[question.archs[1]])
        group, _ = _grouped(parts.sources, key, groups)
        whole = _of_groups(parts, group, weight, groups)
        halves.append(
            answer(question, {arch: np.where(sorting[arch], np.nan, of) for arch, of in whole.items()})
        )
    one, other = halves
    drawn = None
    if one.drawn is not None and other.drawn is not None:
        drawn = _between(one.drawn, other.drawn)
    fits = tuple(
        replace(
            fit,
            surface=replace(fit.surface, coef=_mean_coefficients(fit.surface.coef, second.surface.coef)),
            residual=np.where(np.isnan(fit.residual), second.residual, fit.residual),
            uncertified=fit.uncertified + second.uncertified,
        )
        for fit, second in zip(one.fits, other.fits, strict=True)
    )
    return replace(one, point=_between(one.point, other.point), drawn=drawn, fits=(fits[0], fits[1]))


def _mean_coefficients(one: Array, other: Array) -> Array:
    """Return the mean of two halves; 0 where either is 0, which leaves no gain."""
    return np.where((one == 0) | (other == 0), 0.0, (one + other) / 2)


def _between(one: Multipliers, other: Multipliers) -> Multipliers:
    """Average two gains, and return the multiplier that saves as much; unreachable where either is."""

    def average(a: Array, b: Array) -> Array:
        with np.errstate(divide="ignore"):
            mean = -np.log((np.exp(-a) + np.exp(-b)) / 2)
        return np.asarray(np.where(np.isposinf(a + b), np.inf, mean))

    return Multipliers(
        own=average(one.own, other.own), common=average(one.common, other.common), whole=one.whole
    )


def _member_rows(question: Question, parts: Parts, key: Array, groups: list[str]) -> list[dict[str, Any]]:
    """Return every source with a gain of its own, at every point; no intervals."""
    alone = answer(replace(question, replicates=None), parts.loss)
    return [
        {
            "budget": budget,
            "sparsity": None if question.sparsity is None else float(question.sparsity[j]),
            "source": name,
            "domain": parts.domains[i],
            "group": groups[i],
            "reference_loss": float(key[i]),
            "gain": None if not np.isfinite(alone.point.own[i, j]) else gain_of(float(alone.point.own[i, j])),
        }
        for j, budget in enumerate(question.budget.tolist())
        for i, name in enumerate(parts.sources)
    ]


def _sort_notes(ties: int, split_sample: bool) -> list[Note]:
    notes = []
    if ties:
        message = f"{counted(ties, 'cut')} between sources of equal loss: sorted by name"
        notes.append(info("tied_sources", message, ties))
    if not split_sample:
        message = "groups are sorted by losses that their gains are made of, which biases the outer ones"
        notes.append(warning("sorted_on_estimates", message))
    return notes
