"""How the headline gain moves with choices that somebody else might have made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling._schema import counted
from smelt_scaling.analyses.diagnostics.choices import Choice, estimator_choices, row_choices
from smelt_scaling.analyses.diagnostics.headline import Headline, headline_of
from smelt_scaling.analyses.diagnostics.interval import headline_row
from smelt_scaling.analyses.diagnostics.other_questions import digit_rows, row_of, sparsity_rows
from smelt_scaling.analyses.diagnostics.parts import only
from smelt_scaling.analyses.frames import Carried, finish_frame
from smelt_scaling.analyses.view import IntervalKind, view_of
from smelt_scaling.errors import Note, SmeltScalingError, UsageError, warning
from smelt_scaling.papers import Paper
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["failed_note", "sensitivity"]

Row = dict[str, Any]


def sensitivity(
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
    """Tabulate the headline gain under every choice that leaves the law as it is.

    Every row is a point fit. Choices of the estimator keep the rows in place: the Huber threshold, the residual, the
    weights, what is counted as training FLOPs, and where within its tier S is taken. Choices of rows leave some out:
    outliers, the dense tier, the smallest and the largest size, each horizon, each sparsity tier. Other questions are
    no part of either range: S of another tier, coefficients rounded as people print them, and FLOPs counted in a way
    that is dearer to one architecture than to the other.

    Parameters
    ----------
    study : Study
        Fitted architectures.
    target, reference, budget, sparsity : optional
        The headline gain; see `headline_of`.
    level, interval
        Of the interval beside it, as in `ce_gain`.
    progress : callable, optional
        Called with (choices done, choices in all).

    Returns
    -------
    DataFrame
        One row per choice: ``group, choice, kind`` (estimator, rows, question), ``is_default`` (what the study did),
        ``gain`` (a fraction), ``change`` (of it, against the study), ``multiplier``, ``gain_rounding`` (± by rounding
        each coefficient, for printed digits), ``left_out`` (rows), ``certified`` (both fits) and ``reason`` (why there
        is no gain). ``.attrs`` holds ``notes``, ``settings`` and ``ranges``: ``kind, gain_lo, gain_hi, choices,
        failed``, of both kinds of choices and of the interval.

    Raises
    ------
    UsageError
        If there is one architecture only, or an argument is invalid.
    FrontierError
        If the study has no such gain.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> panel = sensitivity(fit(example_endpoints(), bootstrap=0))
    >>> len(panel), panel.loc[panel["choice"] == "inf", ["gain", "change"]].round(4).values.tolist()
    (36, [[0.0822, -0.0021]])
    >>> [(row["kind"], round(row["gain_lo"], 3), round(row["gain_hi"], 3)) for row in panel.attrs["ranges"][:2]]
    [('estimator', 0.066, 0.091), ('rows', 0.046, 0.176)]
    """
    if isinstance(study, Paper):
        raise UsageError("published coefficients cannot be fitted again: a panel of choices needs a study")
    view = view_of(study)
    headline, notes = headline_of(study, target=target, reference=reference, budget=budget, sparsity=sparsity)
    pair = (view.side(headline.target), view.side(headline.reference))
    view.require_comparable(pair)
    default = headline.of(study)
    rows = only(study, (headline.target, headline.reference))
    choices, said = row_choices(rows)
    every = [*estimator_choices(rows), *choices]
    found: list[Row] = []
    for i, choice in enumerate(every):
        found.append(_tried(choice, headline, default))
        if progress is not None:
            progress(i + 1, len(every))
    found += sparsity_rows(rows, headline, default) + digit_rows(rows, headline, default)
    order = {"estimator": 0, "rows": 1, "question": 2}
    found.sort(key=lambda row: order[row["kind"]])
    own = headline_row(study, headline, level=level, interval=interval)
    between = [_range(found, kind) for kind in ("estimator", "rows")]
    between.append(
        {
            "kind": "interval",
            "gain_lo": own["gain_lo"],
            "gain_hi": own["gain_hi"],
            "choices": own["draws"],
            "failed": own["unreachable_draws"],
        }
    )
    notes = [*notes, *said, *failed_note(found)]
    frame = finish_frame(found, view, notes, level=level, interval=interval, **vars(headline))
    frame.attrs["ranges"] = Carried(between)
    return frame


def _tried(choice: Choice, headline: Headline, default: float) -> Row:
    if choice.make is None:
        return _row(choice, None, default, None, choice.reason)
    try:
        study = choice.make()
    except SmeltScalingError as error:
        return _row(choice, None, default, None, str(error))
    certified = all(study[arch].certificate.certified for arch in (headline.target, headline.reference))
    try:
        m = headline.of(study)
    except SmeltScalingError as error:
        return _row(choice, None, default, certified, str(error))
    return _row(choice, m, default, certified, "")


def _row(choice: Choice, m: float | None, default: float, certified: bool | None, reason: str) -> Row:
    return row_of(
        m,
        default,
        group=choice.group,
        choice=choice.name,
        kind=choice.kind,
        is_default=choice.is_default,
        left_out=choice.left_out,
        certified=certified,
        reason=reason,
    )


def _range(rows: Sequence[Row], kind: str) -> Row:
    """Return the range of the gain over the choices of a kind; the study's own is one of them."""
    own = [row for row in rows if row["kind"] == kind]
    gains = [row["gain"] for row in rows if row["gain"] is not None and row["is_default"]][:1]
    gains += [row["gain"] for row in own if row["gain"] is not None]
    return {
        "kind": kind,
        "gain_lo": min(gains, default=None),
        "gain_hi": max(gains, default=None),
        "choices": sum(not row["is_default"] for row in own),
        "failed": sum(row["gain"] is None for row in own),
    }


def failed_note(rows: Sequence[Row]) -> list[Note]:
    """Say which choices have no gain."""
    failed = [row for row in rows if row["gain"] is None]
    if not failed:
        return []
    first = failed[0]
    message = (
        f"{counted(len(failed), 'choice')} of {len(rows)} without a gain (first: {first['group']}, "
        f"{first['choice']}: {first['reason']}); the ranges are those of the rest"
    )
    return [warning("choices_without_gain", message, len(failed))]
