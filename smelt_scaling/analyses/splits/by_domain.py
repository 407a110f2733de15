"""Compute saved on each domain of an evaluation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling.analyses.frames import Carried, finish_frame
from smelt_scaling.analyses.splits.gains import pair_rows, part_rows
from smelt_scaling.analyses.splits.losses import Parts, match_parts, mixed, token_weights
from smelt_scaling.analyses.splits.question import Question, answer, ask, correlation_rows, part_notes
from smelt_scaling.analyses.splits.sharing import sharing_rows
from smelt_scaling.analyses.view import IntervalKind
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, info, warning
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["domains"]

Array = NDArray[np.float64]
Aggregate = Literal["equal", "tokens"]


def domains(
    study: Study,
    losses: Endpoints,
    budgets: ArrayLike,
    *,
    target: str | None = None,
    reference: str | None = None,
    sparsities: ArrayLike | None = None,
    aggregate: Aggregate = "equal",
    test_sharing: bool = True,
    level: float = 0.95,
    interval: IntervalKind = "percentile",
    force: bool = False,
) -> pd.DataFrame:
    """Tabulate the compute that the target saves on each domain.

    A domain's surface has the exponents of the architecture's fit of the whole evaluation, and a floor and amplitudes
    of its own. A replicate takes the study's cells and exponents for all domains and both architectures at once, and
    where a domain has several sources resamples those as well.

    Parameters
    ----------
    study : Study
        Fits of the whole evaluation.
    losses : Endpoints
        One row per endpoint of the study and source, with the columns ``domain`` and, where domains have several,
        ``source``.
    budgets, target, reference, sparsities, level, interval, force
        As in `ce_gain`; parts have no wild-cr3 intervals.
    aggregate : {"equal", "tokens"}
        Whether the sources of a domain count alike, or by their column ``eval_tokens``.
    test_sharing : bool
        Compare with exponents of each domain's own, cell by cell left out.

    Returns
    -------
    DataFrame
        One row per budget, sparsity and domain: ``target, reference, budget, sparsity, domain, sources``, the gain on
        the domain's own frontier with its ends, multiplier and support as in `ce_gain`; ``common_gain`` for models
        trained at the optimum of the whole; ``whole_gain`` and the paired ``difference`` from it, with ends for each
        domain alone (``_lo, _hi``) and for all at once (``_all_lo, _all_hi``); ``rank``; the shares of draws in which
        the domain comes first and last; floors, amplitudes and log RMSE of both sides; ``at_zero``. ``.attrs`` holds
        ``pairs`` (paired differences of every two domains), ``sharing`` and ``correlation`` (of residuals).

    Raises
    ------
    DataError
        If the losses do not belong to the study's endpoints, a domain lacks one architecture, or a row repeats another.
    UsageError, FrontierError
        As in `ce_gain`.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> runs = example_endpoints()
    >>> both = [runs.to_frame().assign(domain=d, loss=runs.loss * k) for d, k in (("code", 0.5), ("web", 1.0))]
    >>> import pandas as pd
    >>> losses = Endpoints.from_frame(pd.concat(both))
    >>> table = domains(fit(runs, bootstrap=0), losses, 1e21, sparsities=0.947, test_sharing=False)
    >>> table["domain"].tolist(), bool(abs(table["gain"][0] - table["gain"][1]) < 1e-9)
    (['code', 'web'], True)
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
    names = tuple(sorted(set(parts.domains)))
    member = np.array([[of == name for of in parts.domains] for name in names])
    share = member * token_weights(parts, aggregate)
    whole = {arch: mixed(loss, share) for arch, loss in parts.loss.items()}
    resampled = _resampled(question, parts, share)
    gains = answer(question, whole, resampled)
    sizes = dict(zip(names, member.sum(axis=1).tolist(), strict=True))
    rows = [
        {**row, "sources": sizes[row["domain"]], **question.marks}
        for row in part_rows(gains, "domain", names)
    ]
    sharing = sharing_rows(study, question.pair, whole, "domain", names) if test_sharing else []
    correlation = correlation_rows(gains, names)
    notes = [*parts.notes, *part_notes(question, gains, rows, "domain")]
    notes += _domain_notes(sizes, sharing, correlation, level)
    if resampled is not None:  # more than cells
        said = (
            "intervals hold the sampling of cells, and of sources within their domains, under this law only"
        )
        notes = [replace(note, message=said) if note.code == "sampling_only" else note for note in notes]
    frame = finish_frame(
        rows,
        question.view,
        notes,
        level=level,
        interval=interval,
        target=question.archs[0],
        reference=question.archs[1],
        aggregate=aggregate,
        sources_resampled=resampled is not None,
        losses=parts.source,
    )
    frame["rank"] = frame["rank"].astype("Int64")  # an absent one does not make the others floats
    frame.attrs["pairs"] = Carried(pair_rows(gains, names))
    frame.attrs["sharing"] = Carried(sharing)
    frame.attrs["correlation"] = Carried(correlation)
    return frame


def _resampled(question: Question, parts: Parts, share: Array) -> dict[str, Array] | None:
    """Return the losses of every replicate with the sources of each domain resampled; None where none has two.

    The same sources are taken for both architectures. Draw i has a child of the seed of its own.
    """
    several = (share > 0).sum(axis=1) > 1
    if question.replicates is None or question.interval != "percentile" or not several.any():
        return None
    replicates = len(question.replicates[0])
    times = np.zeros((replicates, *share.shape))
    members = [np.flatnonzero(row) for row in share > 0]
    for i in range(replicates):
        # three numbers in the key: cells are drawn with one or two
        key = np.random.SeedSequence(question.study.bootstrap.seed, spawn_key=(i, 0, 0))
        rng = np.random.Generator(np.random.PCG64(key))
        for g, own in enumerate(members):
            times[i, g, own] = rng.multinomial(len(own), np.full(len(own), 1.0 / len(own)))
    drawn = {}
    for arch, loss in parts.loss.items():
        lacking = np.isnan(mixed(loss, share))
        filled = np.where(np.isfinite(loss), loss, 0.0)
        drawn[arch] = np.where(lacking, np.nan, mixed(filled, times * share))
    return drawn


def _domain_notes(
    sizes: dict[str, int], sharing: list[dict[str, Any]], correlation: list[dict[str, Any]], level: float
) -> list[Note]:
    notes = []
    single = [name for name, count in sizes.items() if count == 1]
    if single and len(single) < len(sizes):
        message = f"one source, which is not resampled: {', '.join(single[:6])}"
        notes.append(info("single_source", message, len(single)))
    doubtful = [row for row in sharing if row["p_value_holm"] < 1 - level]
    if doubtful:
        shown = ", ".join(
            f"{row['domain']} of {row['arch']} (P = {row['p_value_holm']:.2g})" for row in doubtful[:6]
        )
        message = (
            f"exponents of their own predict left-out cells better, so the shared ones are in doubt: {shown}"
        )
        notes.append(warning("sharing_doubtful", message, len(doubtful)))
    known = [row["correlation"] for row in correlation if row["correlation"] is not None]
    if known:
        message = (
            f"residuals of two domains correlate by {min(known):.2f} to {max(known):.2f} "
            f"(mean {np.mean(known):.2f}): what they share cancels in differences"
        )
        notes.append(info("residual_correlation", message, len(known)))
    return notes
