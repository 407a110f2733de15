"""Ablation tables: differences in units of run noise, what they are worth in compute, and which level is the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.ablation_table import Comparison, read_comparisons
from smelt_scaling.analyses.best_of import best_set, best_shares, least_difference
from smelt_scaling.analyses.compute_worth import Worth, worth_of
from smelt_scaling.analyses.measured import TableLike, frame_of
from smelt_scaling.analyses.remarks import support_note
from smelt_scaling.analyses.replicate_tests import dunnett_rows, tukey_rows
from smelt_scaling.errors import Note, UsageError, info, warning
from smelt_scaling.formatting import format_number
from smelt_scaling.papers import Paper
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare_levels"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Standard deviation of repeated runs.

    Parameters
    ----------
    sd : float or None
        None where nothing says.
    source : str
        "stated", "repeated runs" or "".
    df : float
        Degrees of freedom; infinite for a stated one.
    """

    sd: float | None
    source: str = ""
    df: float = np.inf


def compare_levels(
    table: TableLike,
    *,
    against: str | float | None = None,
    noise: float | Mapping[str, float] | None = None,
    higher: str | Sequence[str] = (),
    lower: str | Sequence[str] = (),
    study: Study | Paper | None = None,
    reference: str | None = None,
    sparsity: float | None = None,
    level: float = 0.95,
    mapping: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Tabulate an ablation.

    Parameters
    ----------
    table : path, "-" or data frame
        One row per (factor, group, level, seed, metric) with its ``value``.
    against : str or float, optional
        Level that others are compared with; the first of each comparison by default.
    noise : float or mapping of str to float, optional
        Standard deviation of repeated runs, of the metric loss or by metric. By default that of the seeds in the table,
        pooled over levels.
    higher, lower : str or sequence of str
        Metrics of which more, or less, is better; of losses, perplexities and errors it is less.
    study : Study or Paper, optional
        Whose frontier says what a difference of loss is worth in compute.
    reference : str, optional
        Architecture of that frontier.
    sparsity : float, optional
        Where the frontier is evaluated; needed only by laws in which it matters.
    level : float
        Nominal coverage, and the share at which a level is called the best.
    mapping : mapping of str to str, optional
        Column of the table for those with another name.

    Returns
    -------
    DataFrame
        ``factor, group, metric, level, runs, value, delta, delta_lo, delta_hi, delta_in_noise, multiplier,
        multiplier_lo, multiplier_hi, gain, gain_lo, gain_hi, unreachable, hi_unreachable, extrapolated, support,
        best_share, may_be_best, flops_ratio``.
        ``.attrs["summary"]`` holds noise, least detectable difference and the best level of each comparison,
        ``["dunnett"]`` and ``["tukey"]`` the tests of repeated runs.

    Raises
    ------
    DataError, UsageError, FrontierError
        One line per problem.

    Notes
    -----
    With one run per level and no noise stated, nobody knows what a run scatters: ``best_share`` and ``best`` are null.
    Compute worth: ``((L_ref + delta - E)/(L_ref - E))^(-1/gamma)`` on the frontier of the reference.

    Examples
    --------
    >>> from smelt_scaling.papers import load_paper
    >>> runs = {"level": ["0%", "33%", "50%"], "value": [1.9445, 1.9275, 1.9257]}
    >>> frame = compare_levels(runs, noise=0.002, study=load_paper("smelt"), reference="baseline")
    >>> frame["delta"].round(4).tolist(), frame["gain"].round(3).tolist(), frame["best_share"].round(2).tolist()
    ([0.0, -0.017, -0.0188], [0.0, 0.136, 0.149], [0.0, 0.26, 0.74])
    """
    if not 0 < level < 1:
        raise UsageError(f"level {level}: must lie between 0 and 1, such as 0.95")
    comparisons, notes, source = read_comparisons(
        table, mapping=mapping, against=against, higher=_several(higher), lower=_several(lower)
    )
    stated = _stated(noise, comparisons)
    worth = None if study is None else worth_of(study, reference, sparsity)
    if worth is None and (reference is not None or sparsity is not None):
        raise UsageError("--reference, --sparsity: of which frontier? name a study or a paper as well")
    rows: list[dict[str, Any]] = []
    summary: list[dict[str, Any]] = []
    dunnett: list[dict[str, Any]] = []
    tukey: list[dict[str, Any]] = []
    for item in comparisons:
        known = _noise(item, stated)
        shares, possible = _best(item, known, level)
        rows += _rows(item, known, shares, possible, worth, level)
        summary.append(_summary(item, known, shares, possible, level))
        dunnett += dunnett_rows(item, level)
        tukey += tukey_rows(item, level)
    notes += _remarks(comparisons, summary, level)
    if worth is not None:
        notes += support_note([row for row in rows if row["metric"].casefold() == "loss"])
    settings = {
        "against": None if against is None else str(against),
        "noise": dict(stated),
        "level": level,
        "frontier": None if worth is None else worth.arch,
        "law": None if worth is None else worth.law,
        "source": source,
    }
    return frame_of(
        rows,
        [*notes, *(() if worth is None else worth.notes)],
        settings,
        summary=summary,
        dunnett=dunnett,
        tukey=tukey,
    )


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _stated(
    noise: float | Mapping[str, float] | None, comparisons: Sequence[Comparison]
) -> Mapping[str, float]:
    stated = {} if noise is None else dict(noise) if isinstance(noise, Mapping) else {"loss": float(noise)}
    metrics = {item.metric for item in comparisons}
    for name, sd in stated.items():
        if name not in metrics:
            raise UsageError(
                f"--noise {name}={sd:g}: no metric {name!r}; choose from {', '.join(sorted(metrics))}"
            )
        if not (sd > 0 and np.isfinite(sd)):
            raise UsageError(
                f"--noise {name}={sd:g}: a standard deviation of runs is positive and finite, such as 0.002"
            )
    return stated


def _noise(item: Comparison, stated: Mapping[str, float]) -> Noise:
    """Return the noise that was stated, or the one of the seeds, pooled over levels."""
    return Noise(sd=stated[item.metric], source="stated") if item.metric in stated else _repeated(item)


def _repeated(item: Comparison) -> Noise:
    df = float(item.counts.sum() - len(item.runs))
    square = float(sum(np.sum((runs - runs.mean()) ** 2) for runs in item.runs))
    if df < 1 or square == 0:
        return Noise(sd=None)
    return Noise(sd=float(np.sqrt(square / df)), source="repeated runs", df=df)


def _apart(own: Noise, stated: float) -> bool:
    """Whether runs that scatter by a stated standard deviation would rarely (1 %) show that of the table."""
    from scipy.stats import chi2

    tail = float(chi2.sf(own.df * (own.sd or 0.0) ** 2 / stated**2, own.df))
    return min(tail, 1 - tail) < 0.005


def _best(item: Comparison, known: Noise, level: float) -> tuple[Array | None, NDArray[np.bool_] | None]:
    if known.sd is None:
        return None, None
    ranked = -item.values if item.higher else item.values
    se = known.sd / np.sqrt(item.counts)
    return best_shares(ranked, se, known.df), best_set(ranked, se, level, known.df)


def _rows(
    item: Comparison,
    known: Noise,
    shares: Array | None,
    possible: NDArray[np.bool_] | None,
    worth: Worth | None,
    level: float,
) -> list[dict[str, Any]]:
    values, counts = item.values, item.counts
    start = float(values[item.against])
    rows = []
    for j, name in enumerate(item.levels):
        delta = float(values[j]) - start
        half = None
        if known.sd is not None and j != item.against:
            half = least_difference(known.sd, level, known.df, int(counts[j]), int(counts[item.against]))
        ends = (None, None) if half is None else (delta - half, delta + half)
        of_loss = worth if item.metric.casefold() == "loss" else None
        rows.append(
            {
                "factor": item.factor,
                "group": item.group,
                "metric": item.metric,
                "level": name,
                "runs": int(counts[j]),
                "value": float(values[j]),
                "delta": delta,
                "delta_lo": ends[0],
                "delta_hi": ends[1],
                "delta_in_noise": None if known.sd is None else delta / known.sd,
                **(Worth.nothing() if of_loss is None else of_loss.columns(start, delta, ends)),
                "best_share": None if shares is None else float(shares[j]),
                "may_be_best": None if possible is None else bool(possible[j]),
                "flops_ratio": None if item.flops_ratio is None else float(item.flops_ratio[j]),
            }
        )
    return rows


def _summary(
    item: Comparison, known: Noise, shares: Array | None, possible: NDArray[np.bool_] | None, level: float
) -> dict[str, Any]:
    values = item.values
    lowest = values.max() if item.higher else values.min()
    leading = [name for name, value in zip(item.levels, values, strict=True) if value == lowest]
    top = None if shares is None else int(np.argmax(shares))
    clear = top is not None and shares is not None and shares[top] >= level and possible is not None
    return {
        "factor": item.factor,
        "group": item.group,
        "metric": item.metric,
        "against": item.levels[item.against],
        "better": "higher" if item.higher else "lower",
        "noise": known.sd,
        "noise_source": known.source,
        "df": None if np.isinf(known.df) else known.df,
        "least_difference": None if known.sd is None else least_difference(known.sd, level, known.df),
        "leading": leading,
        "best": item.levels[top] if clear and top is not None else None,
        "best_share": None if top is None or shares is None else float(shares[top]),
        "may_be_best": []
        if possible is None
        else [name for name, may in zip(item.levels, possible, strict=True) if may],
    }


def _remarks(
    comparisons: Sequence[Comparison], summary: Sequence[Mapping[str, Any]], level: float
) -> list[Note]:
    notes = []
    unknown = [item.name for item, said in zip(comparisons, summary, strict=True) if said["noise"] is None]
    if unknown:
        example = f"--noise {comparisons[0].metric}=SD"
        message = (
            f"{'; '.join(unknown[:4])}: no level is called the best, because nothing says what runs scatter"
        )
        message += f"; run levels again with other seeds (column seed), or state it with {example}"
        notes.append(warning("noise_unknown", message, len(unknown)))
    for item, said in zip(comparisons, summary, strict=True):
        own = _repeated(item)
        if said["noise_source"] == "stated" and own.sd is not None and _apart(own, said["noise"]):
            message = (
                f"{item.name}: the repeated runs scatter by {format_number(own.sd, 3)}, not by the stated "
            )
            message += f"{format_number(said['noise'], 3)}; Dunnett and Tukey take what they scatter"
            notes.append(warning("noise_disagrees", message))
        if said["noise"] is not None and said["best"] is None:
            share, which = said["best_share"], ", ".join(said["may_be_best"])
            message = f"{item.name}: no level is best in {100 * level:g} % of repeats"
            message += f" (the leading one in {100 * share:.0f} %); may be best: {which}"
            notes.append(info("unresolved_best", message))
        if len(said["leading"]) > 1:
            notes.append(info("tied_best", f"{item.name}: {', '.join(said['leading'])} share the best value"))
        if item.flops_ratio is not None and np.any(np.abs(np.log(item.flops_ratio)) > np.log(1.01)):
            off = item.flops_ratio[np.argmax(np.abs(np.log(item.flops_ratio)))]
            message = f"{item.name}: FLOPs differ by a factor of up to {format_number(float(off), 3)}"
            notes.append(warning("unmatched_budgets", message))
    if any((item.counts > 1).any() and (item.counts < 2).any() for item in comparisons):
        names = [item.name for item in comparisons if (item.counts > 1).any() and (item.counts < 2).any()]
        message = f"{'; '.join(names[:4])}: no Tukey test, which needs two runs of every level"
        notes.append(info("no_replicates", message, len(names)))
    leaders: dict[tuple[str, str], dict[str, list[str]]] = {}
    for item, said in zip(comparisons, summary, strict=True):
        leaders.setdefault((item.factor, item.group), {})[item.metric] = said["leading"]
    for (factor, group), by_metric in leaders.items():
        if len({tuple(sorted(names)) for names in by_metric.values()}) > 1:
            listed = ", ".join(f"{'/'.join(names)} by {metric}" for metric, names in by_metric.items())
            where = ", ".join(part for part in (factor, group) if part)
            notes.append(info("metrics_disagree", f"{where + ': ' if where else ''}the best is {listed}"))
    return notes
