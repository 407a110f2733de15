"""What one cell, size, horizon or sparsity tier does to the headline gain, and how well the rest predicts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from smelt_scaling.analyses.diagnostics.deletion import Arm, Without, arms_of
from smelt_scaling.analyses.diagnostics.headline import Headline
from smelt_scaling.analyses.diagnostics.held_out import (
    BOTH,
    errors_on,
    multiplier_of,
    settings_of,
    settled,
)
from smelt_scaling.analyses.diagnostics.interval import headline_row
from smelt_scaling.analyses.diagnostics.parts import MOST_CELLS, Part, parts_of
from smelt_scaling.analyses.diagnostics.single_rows import row_influence_rows
from smelt_scaling.analyses.diagnostics.stopping import rollout_rows
from smelt_scaling.analyses.frames import Carried, finish_frame
from smelt_scaling.analyses.gain import gain_of
from smelt_scaling.analyses.view import IntervalKind, view_of
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["influence"]

Row = dict[str, Any]


def influence(
    study: Study,
    *,
    target: str | None = None,
    reference: str | None = None,
    budget: float | None = None,
    sparsity: float | None = None,
    level: float = 0.95,
    interval: IntervalKind = "percentile",
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Leave out each cell, size, horizon and sparsity tier in turn.

    Only what lies outside tells of the world outside: a law whose exponents drift predicts a cell among its neighbours
    without bias, and the largest size too high or too low. So errors have a sign here.

    Parameters
    ----------
    study : Study
        Fitted architectures; with one alone there is no gain, and the rest stands.
    target, reference, budget, sparsity : optional
        The headline gain; see `headline_of`.
    level, interval
        Of the interval beside it, as in `ce_gain`.
    progress : callable, optional
        Called with (parts left out, parts in all).

    Returns
    -------
    DataFrame
        For every part, a row without its rows of each architecture, and one without those of ``both``: ``by`` (cell,
        size, horizon, sparsity), ``part, arch, rows`` (left out), ``gain`` (a fraction) and ``change`` of it,
        ``mean_error, rms_error`` (ln(predicted) - ln(observed) on what was left out, negative where the prediction is
        too low), ``rms_in`` (on the rows fitted), ``ratio`` of the two root mean squares, ``certified`` and ``reason``
        (why a number is missing). ``.attrs`` holds ``notes``, ``settings``, the ``headline`` with its interval (where
        there is one), and further tables: ``coefficients``
        (``by, part, arch, parameter, value, change``, of the floor and the exponents), ``rollout`` and
        ``row_influence`` (the rows of these functions).

    Raises
    ------
    UsageError
        If an argument is invalid, there are several architectures and none is named, or the coefficients are
        published ones.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> table = influence(fit(example_endpoints(), bootstrap=0))
    >>> top = table.query("by == 'size' and part == '1.6B' and arch == 'both'").iloc[0]
    >>> int(top["rows"]), f"{top['change']:.4f} {top['mean_error']:.4f} {top['ratio']:.2f}"
    (36, '0.0920 0.0034 1.74')
    """
    own, headline, notes = settled(study, target, reference, budget, sparsity)
    arms = arms_of(own)
    parts, said = parts_of(own)
    default = None if headline is None else headline.of(own)
    groups = [
        [part for part in some if by != "cell" or len(some) <= MOST_CELLS] for by, some in parts.items()
    ]
    total, done = sum(map(len, groups)), 0
    rows: list[Row] = []
    coefficients: list[Row] = []
    if len(parts["cell"]) > MOST_CELLS:
        rows.append(_too_many(len(parts["cell"])))
    for group in groups:
        without = {arch: arm.without([part.rows for part in group]) for arch, arm in arms.items()}
        for i, part in enumerate(group):
            fits = {arch: own_fits[i] for arch, own_fits in without.items()}
            rows += _part_rows(own, arms, part, fits, headline, default)
            coefficients += [row for arch in arms for row in _coefficients(own, part, arch, fits[arch])]
        done += len(group)
        if progress is not None:
            progress(done, total)
    singles, more = row_influence_rows(own, arms, headline)
    frame = finish_frame(
        rows,
        view_of(own),
        [*notes, *said, *more],
        level=level,
        interval=interval,
        **settings_of(headline),
    )
    if headline is not None:
        frame.attrs["headline"] = headline_row(study, headline, level=level, interval=interval)
    frame.attrs["coefficients"] = Carried(coefficients)
    frame.attrs["rollout"] = Carried(rollout_rows(own, arms, parts["size"], headline))
    frame.attrs["row_influence"] = Carried(singles)
    return frame


def _too_many(count: int) -> Row:
    empty = ("gain", "change", "mean_error", "rms_error", "rms_in", "ratio", "certified")
    reason = f"over {MOST_CELLS} cells: none is left out alone"
    return {
        "by": "cell",
        "part": f"{count} cells",
        "arch": BOTH,
        "rows": 0,
        **dict.fromkeys(empty),
        "reason": reason,
    }


def _part_rows(
    study: Study,
    arms: dict[str, Arm],
    part: Part,
    fits: dict[str, Without],
    headline: Headline | None,
    default: float | None,
) -> list[Row]:
    """Return the rows of one part: without each architecture's share of it, and without both."""
    found = []
    for arch in [*arms, *([BOTH] if len(arms) > 1 else [])]:
        some = {name: one for name, one in fits.items() if arch in (BOTH, name)}
        errors, why = errors_on(arms, some, {name: one.out for name, one in some.items()})
        m, why_no_gain = multiplier_of(study, headline, some)
        gain, own = gain_of(m), gain_of(default)
        if m is not None and gain is None:
            why_no_gain = "the reference never reaches the loss of the target"
        found.append(
            {
                "by": part.by,
                "part": part.name,
                "arch": arch,
                "rows": int(sum(one.out.sum() for one in some.values())),
                "gain": gain,
                "change": None if gain is None or own is None else gain - own,
                **errors,
                "certified": all(
                    one.result is not None and one.result.certificate.certified for one in some.values()
                ),
                "reason": why or why_no_gain or None,
            }
        )
    return found


def _coefficients(study: Study, part: Part, arch: str, one: Without) -> list[Row]:
    """Return the floor and the exponents of one architecture without a part."""
    if one.result is None or not one.out.any():
        return []
    before = study[arch].surface.coefficients
    return [
        {
            "by": part.by,
            "part": part.name,
            "arch": arch,
            "parameter": name,
            "value": value,
            "change": None if value is None else value - before[name],
        }
        for name in (study.law.floor, *study.law.exponents)
        for value in [None if name in one.result.unidentified else one.result.surface.coefficients[name]]
    ]
