"""From a study and losses of parts to their multipliers: what `domains` and `sources` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._schema import counted
from smelt_scaling.analyses.gain import choose_pair
from smelt_scaling.analyses.remarks import gain_notes
from smelt_scaling.analyses.splits.fits import fit_parts
from smelt_scaling.analyses.splits.gains import Gains, Multipliers, multipliers
from smelt_scaling.analyses.view import IntervalKind, Side, View, check_budgets, grid_of, view_of
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, UsageError, info, warning
from smelt_scaling.resampling import Draws
from smelt_scaling.study import Study

__all__ = ["Question", "answer", "ask", "correlation_rows", "part_notes"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """What is compared, where, and with which replicates.

    Parameters
    ----------
    study, view : Study, View
        The fits of the whole evaluation.
    pair : (Side, Side)
        Target and reference.
    replicates : pair of Draws or None
        Theirs.
    budget, sparsity : array (J,)
        Points.
    forced : tuple of str
        In what the losses differ.
    notes : tuple of Note
        Caveats so far.
    level, interval
        As asked for.
    """

    study: Study
    view: View
    pair: tuple[Side, Side]
    replicates: tuple[Draws, Draws] | None
    budget: Array
    sparsity: Array | None
    forced: tuple[str, ...]
    notes: tuple[Note, ...]
    level: float
    interval: IntervalKind

    @property
    def archs(self) -> tuple[str, str]:
        """Target and reference."""
        return self.pair[0].arch, self.pair[1].arch

    @property
    def marks(self) -> dict[str, str]:
        """What stands in every row of a comparison that was forced."""
        return {"forced": ", ".join(self.forced)} if self.forced else {}


def ask(
    study: Study,
    losses: Endpoints,
    budgets: ArrayLike,
    *,
    target: str | None,
    reference: str | None,
    sparsities: ArrayLike | None,
    level: float,
    interval: IntervalKind,
    force: bool,
) -> Question:
    """Settle what is compared.

    Raises
    ------
    UsageError, DataError, FrontierError
        As `ce_gain`; also if there is no study, or the losses are no table.
    """
    if not isinstance(study, Study):
        raise UsageError(
            f"source of type {type(study).__name__}: parts of an evaluation need the runs themselves; fit(endpoints) "
            "makes a study of them"
        )
    if not isinstance(losses, Endpoints):
        raise UsageError(
            f"losses of type {type(losses).__name__}: read a long table with read_endpoints(path), or a frame with "
            "Endpoints.from_frame(frame)"
        )
    if interval == "wild-cr3":
        raise UsageError(
            "interval wild-cr3: it draws signs of the residuals of the whole, not of its parts; use percentile or "
            "jackknife-t"
        )
    view = view_of(study)
    target, reference, notes = choose_pair(view, target, reference)
    pair = (view.side(target), view.side(reference))
    forced = view.require_comparable(pair, force=force)
    view.require_frontier(pair)
    budget, sparsity = grid_of(check_budgets(budgets), view.sparsity_grid(sparsities, pair))
    drawn = [side.replicates(interval) for side in pair]
    both = None if drawn[0] is None or drawn[1] is None else (drawn[0], drawn[1])
    return Question(
        study=study,
        view=view,
        pair=pair,
        replicates=both,
        budget=budget,
        sparsity=sparsity,
        forced=forced,
        notes=tuple(notes),
        level=level,
        interval=interval,
    )


def answer(
    question: Question, losses: Mapping[str, Array], drawn_losses: Mapping[str, Array] | None = None
) -> Gains:
    """Fit the parts of both architectures and return their multipliers.

    Parameters
    ----------
    question : Question
        What is compared.
    losses : mapping of str to array (G, n)
        Architecture -> losses of its parts.
    drawn_losses : mapping of str to array (R, G, n), optional
        The same in every replicate, where sources are resampled.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):  # as in the fit of the whole
        fits = tuple(
            fit_parts(
                question.study,
                side,
                losses[side.arch],
                None if question.replicates is None else question.replicates[i],
                None if drawn_losses is None else drawn_losses[side.arch],
            )
            for i, side in enumerate(question.pair)
        )
    at = (question.budget, question.sparsity)
    wholes = (question.pair[0].surface, question.pair[1].surface)
    point = multipliers(question.view, wholes, (fits[0].surface, fits[1].surface), *at)
    drawn: Multipliers | None = None
    if question.replicates is not None and fits[0].drawn is not None and fits[1].drawn is not None:
        wholes = (question.replicates[0].surface, question.replicates[1].surface)
        drawn = multipliers(question.view, wholes, (fits[0].drawn, fits[1].drawn), *at)
    return Gains(
        view=question.view,
        pair=question.pair,
        fits=(fits[0], fits[1]),
        budget=question.budget,
        sparsity=question.sparsity,
        point=point,
        drawn=drawn,
        level=question.level,
        interval=question.interval,
    )


def correlation_rows(gains: Gains, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the correlation of the residuals of every two parts, over the endpoints that both have."""
    rows = []
    for side, fit in zip(gains.pair, gains.fits, strict=True):
        for g, one in enumerate(names):
            for h in range(g + 1, len(names)):
                both = np.isfinite(fit.residual[[g, h]]).all(axis=0)
                a, b = fit.residual[g][both], fit.residual[h][both]
                spread = a.std() * b.std() if len(a) else 0.0
                # residuals of noise-free losses are rounding
                flat = spread <= 1e-24
                value = None if flat else float(np.mean((a - a.mean()) * (b - b.mean())) / spread)
                rows.append({"arch": side.arch, "one": one, "other": names[h], "correlation": value})
    return rows


def part_notes(
    question: Question, gains: Gains, rows: Sequence[Mapping[str, Any]], column: str
) -> list[Note]:
    """Return what must be known of the parts' gains."""
    of_whole = "exponents are those of the whole evaluation"
    drawn = ", estimated anew in every replicate" if gains.drawn is not None else ""
    notes = list(question.notes)
    if question.forced:
        message = f"{', '.join(question.forced)} differs: the gains are of losses that are not comparable"
        notes.append(warning("forced_comparison", message, len(rows)))
    notes.append(info("shared_exponents", f"{of_whole}{drawn}; floor and amplitudes are each {column}'s own"))
    zero = sorted({f"{row[column]} ({', '.join(row['at_zero'])})" for row in rows if row["at_zero"]})
    if zero:
        message = f"floor or amplitude at 0, no gain without an amplitude: {'; '.join(zero[:6])}"
        notes.append(warning("part_at_zero", message, len(zero)))
    lacking = sorted(
        f"{row[column]} ({side.arch})"
        for side, fit in zip(gains.pair, gains.fits, strict=True)
        for row, known in zip(rows, fit.identified, strict=False)  # every point has the parts in one order
        if not known
    )
    if lacking:
        message = (
            "no gain, because the losses do not tell floor and amplitudes apart (too few, of one cell, or of one "
            f"horizon): {', '.join(lacking[:6])}"
        )
        notes.append(warning("part_unidentified", message, len(lacking)))
    defined = [row for row in rows if row["gain"] is not None or row["unreachable"]]
    undefined = {str(row[column]): row["undefined_draws"] for row in defined if row["undefined_draws"]}
    if undefined:
        total = next(row["draws"] for row in rows)
        shown = ", ".join(f"{count} of {name}" for name, count in list(undefined.items())[:6])
        message = f"draws of {total} without a frontier, in which the gain may be anything: {shown}"
        notes.append(warning("undefined_draws", message, max(undefined.values())))
    uncertified = sum(fit.uncertified for fit in gains.fits)
    if uncertified:
        message = (
            f"{counted(uncertified, 'fit')} of a {column}, points and replicates, not certified, and kept"
        )
        notes.append(warning("parts_uncertified", message, uncertified))
    return notes + gain_notes(
        question.view,
        rows,
        question.pair,
        [],
        question.interval,
        drawn=gains.drawn is not None,
        uncertified=0,
        moved=0.0,
    )
