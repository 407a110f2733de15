"""Where along the length of documents a loss improves: gain per bucket over its mean, long over short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted
from smelt_scaling.analyses.few_draws import few_draws_note
from smelt_scaling.analyses.length_table import Contrast, read_contrasts
from smelt_scaling.analyses.measured import TableLike, frame_of
from smelt_scaling.analyses.ratio_sets import RatioSet, fieller
from smelt_scaling.errors import Note, UsageError, warning
from smelt_scaling.resampling import Plan, bootstrap_plan, percentile_interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["length_gains"]

Array = NDArray[np.float64]

#: Percentiles of draws of fewer labels than this are too short.
FEW_CELLS = 6


def length_gains(
    table: TableLike,
    *,
    target: str | None = None,
    reference: str | None = None,
    split: float = 256.0,
    level: float = 0.95,
    bootstrap: int = 2000,
    seed: int = 0,
    mapping: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Tabulate how a loss improvement is spread over document lengths.

    With g_b the mean loss drop (reference minus target) in bucket b, every cell counting once, h_b = g_b / mean(g) and
    R = mean(h of long buckets) / mean(h of short ones), in which the normaliser cancels.

    Parameters
    ----------
    table : path, "-" or data frame
        One row per (contrast, cell, horizon, document, bucket) with ``loss_ref`` and ``loss_new``, or with ``arch`` and
        ``loss``. ``contrast``, ``horizon`` and ``document`` may be absent.
    target, reference : str, optional
        Architectures, where rows hold one each.
    split : float
        Upper bound of the longest short bucket, in tokens.
    level : float
        Nominal coverage.
    bootstrap, seed : int
        Draws of cells, and of documents within their bucket if losses are of documents; 0 for none.
    mapping : mapping of str to str, optional
        Column of the table for those with another name.

    Returns
    -------
    DataFrame
        ``contrast, bucket, side, cells, loss_drop, loss_drop_lo, loss_drop_hi, relative, relative_lo, relative_hi,
        relative_set, share_of_loss``. ``.attrs["ratios"]`` holds R of each contrast with its set, ``["comparisons"]``
        the ratio of the R of two contrasts.

    Raises
    ------
    DataError, UsageError
        One line per problem of the table or of an option.

    Notes
    -----
    Ratios have Fieller sets from the covariance of the cell means and t of one less than the number of cells; where a
    denominator is not told from 0 the set is unbounded, and its ``*_set`` is "outside" or "any". With documents the
    covariance of draws of documents is added.

    Examples
    --------
    >>> rows = [
    ...     {"cell": c, "bucket": b, "loss_ref": 3.0, "loss_new": 3.0 - d * (1 + e)}
    ...     for c, e in [("a", -0.1), ("b", 0.0), ("c", 0.1)] for b, d in [(256, 0.02), (512, 0.03)]
    ... ]
    >>> frame = length_gains(rows)
    >>> frame["relative"].round(3).tolist(), round(frame.attrs["ratios"][0]["ratio"], 3)
    ([0.8, 1.2], 1.5)
    """
    _check(level, bootstrap, split)
    contrasts, notes, source = read_contrasts(table, mapping, target, reference)
    plan = _plan(contrasts, bootstrap, seed) if bootstrap else None
    rows: list[dict[str, Any]] = []
    ratios: list[dict[str, Any]] = []
    drawn: dict[str, Array | None] = {}
    for contrast in contrasts:
        long = contrast.buckets > split
        if long.all() or not long.any():
            raise UsageError(
                f"{source}: --split {split:g}: all buckets of {contrast.name} ({contrast.buckets[0]:g} to "
                f"{contrast.buckets[-1]:g}) are on one side; name the longest short bucket"
            )
        drops = None if plan is None else _drawn_drops(contrast, plan)
        draws = None if plan is None or drops is None else _over_cells(contrast, plan, drops)
        mean, covariance, found = _moments(contrast, drops, source)
        notes += found
        quantile = _t(level, len(contrast.cells))
        weights = np.where(long, 1.0 / long.sum(), 0.0), np.where(long, 0.0, 1.0 / (~long).sum())
        ratio = _ratio(np.stack(weights), mean, covariance, quantile)
        ratios.append(
            {
                "contrast": contrast.name,
                **_named("ratio", ratio),
                "long": float(weights[0] @ mean),
                "short": float(weights[1] @ mean),
                "cells": len(contrast.cells),
                "documents": sum(map(len, contrast.documents)) if _has_documents(contrast) else None,
                "pairs": contrast.pairs,
            }
        )
        for b, bucket in enumerate(contrast.buckets.tolist()):
            pick = np.eye(len(mean))[b]
            half = None if covariance is None else quantile * float(np.sqrt(covariance[b, b]))
            relative = _ratio(
                np.stack([pick, np.full(len(mean), 1.0 / len(mean))]), mean, covariance, quantile
            )
            rows.append(
                {
                    "contrast": contrast.name,
                    "bucket": int(bucket),
                    "side": "long" if long[b] else "short",
                    "cells": len(contrast.cells),
                    "loss_drop": float(mean[b]),
                    "loss_drop_lo": None if half is None else float(mean[b]) - half,
                    "loss_drop_hi": None if half is None else float(mean[b]) + half,
                    **_named("relative", relative),
                    "share_of_loss": float(mean[b] / contrast.reference_loss[b]),
                }
            )
        notes += _remarks(contrast.name, mean, ratio[1])
        drawn[contrast.name] = None if draws is None else _log_ratio(draws, weights)
    comparisons, undefined = _comparisons(ratios, drawn, level)
    if comparisons:
        notes += few_draws_note(bootstrap, level)
    settings = {
        "split": split,
        "level": level,
        "interval": "fieller",
        "bootstrap": bootstrap,
        "seed": seed,
        "unit": "cell and document" if any(_has_documents(c) for c in contrasts) else "cell",
        "source": source,
    }
    return frame_of(rows, [*notes, *undefined], settings, ratios=ratios, comparisons=comparisons)


def _check(level: float, bootstrap: int, split: float) -> None:
    if not 0 < level < 1:
        raise UsageError(f"level {level}: must lie between 0 and 1, such as 0.95")
    if bootstrap < 0:
        raise UsageError(f"bootstrap {bootstrap}: a number of draws, such as 2000, or 0 for none")
    if not split > 0:
        raise UsageError(f"split {split:g}: a number of tokens, such as 256")


def _t(level: float, cells: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.5 + level / 2, cells - 1)) if cells > 1 else float("nan")


def _has_documents(contrast: Contrast) -> bool:
    return any(len(names) > 1 for names in contrast.documents)


def _plan(contrasts: Sequence[Contrast], replicates: int, seed: int) -> Plan:
    """Draw cells, the same for contrasts that share them, and the documents of each bucket, independently of cells."""
    labels = {f"cells of {c.name}": np.array([f"cell {name}" for name in c.cells]) for c in contrasts}
    for c in contrasts:
        for bucket, names in zip(c.buckets.tolist(), c.documents, strict=True):
            if len(names) > 1:
                drawn = np.array([f"document {bucket:g} {name}" for name in names])
                labels[f"{bucket:g} of {c.name}"] = drawn
    return bootstrap_plan(labels, replicates=replicates, seed=seed)


def _drawn_drops(contrast: Contrast, plan: Plan) -> Array:
    """Return the loss drops of each cell over the documents of every draw, (R, n_cells, B).

    A cell of whose documents none is drawn keeps its mean: what is left out is no scatter of documents.
    """
    drawn = []
    for bucket, drops, mean in zip(
        contrast.buckets.tolist(), contrast.drops, contrast.by_cell.T, strict=True
    ):
        counts = plan.counts.get(f"{bucket:g} of {contrast.name}")
        if counts is None:
            drawn.append(np.broadcast_to(mean, (plan.replicates, len(mean))))
            continue
        there, documents = np.isfinite(drops), counts.astype(np.float64)
        total, weight = documents @ np.where(there, drops, 0.0).T, documents @ there.T.astype(np.float64)
        drawn.append(np.where(weight > 0, total / np.maximum(weight, 1.0), mean))
    return np.stack(drawn, axis=2)


def _over_cells(contrast: Contrast, plan: Plan, drops: Array) -> Array:
    """Return the loss drops of every draw of cells, (R, B), a cell once each time it is drawn; NaN without any."""
    counts = plan.counts[f"cells of {contrast.name}"].astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.einsum("rc,rcb->rb", counts, drops) / counts.sum(axis=1)[:, None])


def _moments(contrast: Contrast, drops: Array | None, source: str) -> tuple[Array, Array | None, list[Note]]:
    """Return the loss drop of each bucket and the covariance of these means; None if there is no telling.

    What cells scatter and what documents scatter add up. Draws of cells would be too narrow by one in n_cells.
    """
    by_cell = contrast.by_cell
    mean = by_cell.mean(axis=0)
    n = len(by_cell)
    if n < 2:
        message = f"{source}: contrast {contrast.name}: one cell ({contrast.cells[0]}), so no interval"
        return mean, None, [warning("too_few_units", message)]
    covariance = np.atleast_2d(np.cov(by_cell, rowvar=False)) / n
    if not _has_documents(contrast):
        return mean, covariance, []
    if drops is None:
        message = f"{source}: contrast {contrast.name}: per-document losses need draws for an interval"
        return mean, None, [warning("too_few_units", message)]
    return mean, covariance + np.cov(drops.mean(axis=1), rowvar=False), []


def _ratio(
    weights: Array, mean: Array, covariance: Array | None, quantile: float
) -> tuple[float | None, RatioSet]:
    parts = weights @ mean
    point = float(parts[0] / parts[1]) if parts[1] != 0 else None
    if covariance is None:
        return point, RatioSet(kind="none")
    return point, fieller(parts, weights @ covariance @ weights.T, quantile)


def _named(name: str, ratio: tuple[float | None, RatioSet]) -> dict[str, Any]:
    point, found = ratio
    return {name: point, f"{name}_lo": found.lo, f"{name}_hi": found.hi, f"{name}_set": found.kind}


def _remarks(name: str, mean: Array, ratio: RatioSet) -> list[Note]:
    notes = []
    if (mean > 0).any() and (mean <= 0).any():
        mixed = int((mean <= 0).sum())
        message = (
            f"{name}: the loss does not fall in {mixed} of {len(mean)} buckets, so relative gains mean little"
        )
        notes.append(warning("mixed_signs", message, mixed))
    if ratio.kind in ("outside", "any"):
        message = f"{name}: the gain on short documents is not told from 0, so long/short is {ratio.words()}"
        notes.append(warning("unbounded_ratio", message))
    return notes


def _log_ratio(draws: Array, weights: tuple[Array, Array]) -> Array:
    """Return ln R of each draw; NaN where a mean is not positive."""
    long, short = draws @ weights[0], draws @ weights[1]
    defined = (long > 0) & (short > 0)
    return np.log(np.where(defined, long, np.nan)) - np.log(np.where(defined, short, np.nan))


def _comparisons(
    ratios: Sequence[Mapping[str, Any]], drawn: Mapping[str, Array | None], level: float
) -> tuple[list[dict[str, Any]], list[Note]]:
    """Compare contrasts two by two on the log scale; draws in which a ratio is undefined allow no interval."""
    rows, notes = [], []
    for first, second in combinations(ratios, 2):
        one, other = (drawn[str(side["contrast"])] for side in (first, second))
        lo = hi = None
        if one is not None and other is not None:
            apart = one - other
            undefined = int((~np.isfinite(apart)).sum())
            ends = None if undefined else percentile_interval(apart, level)
            if ends is not None:
                lo, hi = float(np.exp(ends[0])), float(np.exp(ends[1]))
            if undefined:
                message = f"{first['contrast']} over {second['contrast']}: a ratio is undefined in {undefined} draws"
                notes.append(warning("undefined_ratios", message, undefined))
        if lo is not None and (cells := min(first["cells"], second["cells"])) < FEW_CELLS:
            message = f"{first['contrast']} over {second['contrast']}: {counted(cells, 'cell')}, so the interval is "
            notes.append(warning("too_few_units", f"{message}too short"))
        parts = (first["long"], first["short"], second["long"], second["short"])
        rows.append(
            {
                "contrast": first["contrast"],
                "other": second["contrast"],
                "ratio_of_ratios": first["ratio"] / second["ratio"] if min(parts) > 0 else None,
                "ratio_of_ratios_lo": lo,
                "ratio_of_ratios_hi": hi,
            }
        )
    return rows, notes
