"""Counters of steps and tokens that a restart set back: continued where the log tells by how much, else refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import IngestError, Note, warning
from smelt_scaling.formatting import format_number
from smelt_scaling.ingest.condense import Last, Mark, Segment
from smelt_scaling.ingest.keys import is_loss

__all__ = ["continued", "mended", "shifted"]

Floats = NDArray[np.float64]
Series = Mapping[str, tuple[Floats, Floats]]


def shifted(piece: Segment, tokens_key: str | None) -> Segment:
    """Count steps and tokens of a piece from the start of the run, where its facts say what came before."""
    steps, tokens = (float(piece.facts.get(name, 0.0)) for name in ("start_step", "start_tokens"))
    return _moved(piece, steps, tokens, tokens_key)


def _moved(piece: Segment, steps: float, tokens: float, tokens_key: str | None) -> Segment:
    if not steps and not tokens:
        return piece

    def last(key: str, old: Last) -> Last:
        more = tokens if key == tokens_key else 0.0
        return replace(old, step=old.step + steps, value=old.value + more, tokens=old.tokens + tokens)

    return replace(
        piece,
        first_step=piece.first_step + steps,
        last_step=piece.last_step + steps,
        marks=tuple(
            Mark(step=mark.step + steps, lasts={key: last(key, old) for key, old in mark.lasts.items()})
            for mark in piece.marks
        ),
        series={
            key: (at + steps, values + (tokens if key == tokens_key else 0.0))
            for key, (at, values) in piece.series.items()
        },
    )


def continued(
    before: Segment, series: Series, piece: Segment, tokens_key: str | None
) -> tuple[Segment, list[Note]]:
    """Continue a counter that a restart set back, where the other counter went on and tells by how much."""
    again = piece.first_step <= min(steps[0] for steps, _ in series.values()) < before.last_step
    line = _line(series, piece, tokens_key)
    if line is None:
        if again:
            _refuse_counter(before, series, piece)
        return piece, []
    steps, tokens, (at, now) = line
    expected = _extended(at, steps, tokens)
    counted = 0.95 * expected if at <= steps[-1] else float(tokens[-1])
    if at > steps[0] and now < counted:
        what, shift = f"tokens from {format_number(now)} again at step {at:g}", (0.0, expected - now)
    elif again and now > 2 * expected:
        what, shift = (
            f"steps from {at:g} again at {format_number(now)} tokens",
            (_extended(now, tokens, steps) - at, 0.0),
        )
    else:
        if again:
            _refuse_counter(before, series, piece)
        return piece, []
    message = (
        f"{piece.source}: run {piece.run} counts {what}: continued from what the pieces before it had counted"
        + _other_rate(_rate(*piece.series[tokens_key or ""]) / _rate(steps, tokens))
    )
    return _moved(piece, *shift, tokens_key), [warning("counter_reset", message)]


def mended(piece: Segment, tokens_key: str | None) -> tuple[Segment, list[Note]]:
    """Continue a counter of tokens that falls within a piece: a resumed run whose steps went on, logged to one file.

    The series is thinned, so that the count is exact to one distance of kept rows.
    """
    if tokens_key is None or tokens_key not in piece.series:
        return piece, []
    end = piece.marks[-1].lasts[tokens_key]
    steps, tokens = piece.series[tokens_key]
    if end.step > steps[-1]:
        steps, tokens = np.append(steps, end.step), np.append(tokens, end.value)
    falls = 1 + np.flatnonzero(np.diff(tokens) < 0)
    if not falls.size:
        return piece, []
    counted, more = tokens.copy(), np.zeros(len(tokens))
    for fall in falls.tolist():
        slope = (counted[fall - 1] - counted[0]) / max(steps[fall - 1] - steps[0], 1.0)
        added = counted[fall - 1] + slope * (steps[fall] - steps[fall - 1]) - counted[fall]
        counted[fall:] += added
        more[fall:] += added

    def total(step: float, value: float) -> float:
        """Add what came before; between the kept rows around a fall, the value tells on which side it lies."""
        place = int(np.searchsorted(steps, step, side="right")) - 1
        after = min(place + 1, len(steps) - 1)
        fallen = after in falls and value < tokens[place]
        return value + float(more[after if fallen else max(place, 0)])

    def last(key: str, old: Last) -> Last:
        value = total(old.step, old.value) if key == tokens_key else old.value
        return replace(old, value=value, tokens=total(old.step, old.tokens))

    first = int(falls[0])
    message = (
        f"{piece.source}: run {piece.run} counts tokens from {format_number(tokens[first])} again at step "
        f"{steps[first]:g}: continued from the {format_number(tokens[first - 1])} before"
    )
    kept = len(piece.series[tokens_key][0])
    return replace(
        piece,
        marks=tuple(
            Mark(
                step=mark.step,
                lasts={
                    key: old if math.isnan(old.step) else last(key, old) for key, old in mark.lasts.items()
                },
            )
            for mark in piece.marks
        ),
        series={**piece.series, tokens_key: (piece.series[tokens_key][0], counted[:kept])},
    ), [warning("counter_reset", message, len(falls))]


def _line(
    series: Series, piece: Segment, tokens_key: str | None
) -> tuple[Floats, Floats, tuple[float, float]] | None:
    """Return tokens against steps so far, and the first point of a piece; None if that is no rising line."""
    if tokens_key is None or tokens_key not in series or tokens_key not in piece.series:
        return None
    steps, tokens = series[tokens_key]
    at, now = piece.series[tokens_key]
    rising = len(steps) > 1 and steps[-1] > steps[0] and tokens[-1] > tokens[0]
    return (steps, tokens, (float(at[0]), float(now[0]))) if rising else None


def _rate(steps: Floats, tokens: Floats) -> float:
    return float((tokens[-1] - tokens[0]) / (steps[-1] - steps[0])) if steps[-1] > steps[0] else math.nan


def _other_rate(ratio: float) -> str:
    """Say that a counter goes on at another rate: each device counts for itself, or the batch size changed."""
    if not ratio > 0 or 0.75 <= ratio <= 4 / 3:
        return ""
    return f"; tokens per step are {ratio:.3g} times those before: check the batch size and what is counted"


def _extended(x: float, xs: Floats, ys: Floats) -> float:
    """Interpolate, and go on beyond the last point at the mean slope."""
    beyond = max(x - xs[-1], 0.0)
    return float(np.interp(x, xs, ys) + beyond * (ys[-1] - ys[0]) / (xs[-1] - xs[0]))


def _refuse_counter(before: Segment, series: Series, piece: Segment) -> None:
    """Refuse a step counter that began again while the training went on: the loss starts where it had come to."""
    for key, (steps, values) in series.items():
        if key not in piece.series or len(values) < 2 or not is_loss(key):
            continue
        at, first = piece.series[key][0][0], piece.series[key][1][0]
        if abs(first - values[-1]) < abs(first - float(np.interp(at, steps, values))) / 4:
            raise IngestError(
                f"{piece.source}: run {piece.run} counts steps from {piece.first_step:g} again, though {key} goes on "
                f"from where it was ({format_number(values[-1])} at step {before.last_step:g}): state start_step "
                "(and start_tokens) of this piece in the table of runs"
            )
