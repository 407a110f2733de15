"""From the pieces of a run to one run: in which order they came, and which rows a restart superseded.

A later piece wins from its first step on: what an earlier one says from there is superseded, be it better or not. The
order comes from what the log states (place in one file, time, parent), or from steps that do not overlap; pieces whose
order nothing tells, and that disagree, are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import Note, info, warning
from smelt_scaling.formatting import format_number
from smelt_scaling.ingest.condense import Last, Mark, Segment, decay_ended
from smelt_scaling.ingest.counters import continued, mended, shifted
from smelt_scaling.ingest.keys import is_context
from smelt_scaling.ingest.names import listed
from smelt_scaling.ingest.order import in_order, largest_difference

__all__ = ["OVERLAP_TOLERANCE", "Stitched", "stitch"]

Floats = NDArray[np.float64]
Series = Mapping[str, tuple[Floats, Floats]]

#: Nats by which two pieces may differ at one step: a rerun of the same batches differs by rounding only.
OVERLAP_TOLERANCE = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class Stitched:
    """One run, or one branch of it, as it ended up.

    Parameters
    ----------
    run, branch : str
        Whose it is.
    marks : tuple of Mark
        Ends of decays in order of step; the last one is the end of the run.
    series : mapping of str to ((n,) array, (n,) array)
        Steps (ascending) and values of each key, thinned.
    pieces : tuple of Segment
        What it was made of, in order, steps and tokens counted from the start of the run.
    superseded : int
        Marks left out because a later piece went over them again.
    notes : tuple of Note
        What the reader must know.
    """

    run: str
    branch: str
    marks: tuple[Mark, ...]
    series: Series
    pieces: tuple[Segment, ...]
    superseded: int
    notes: tuple[Note, ...]

    @property
    def end(self) -> Mark:
        """The last mark."""
        return self.marks[-1]

    @property
    def furthest(self) -> float:
        """The highest step of all pieces; above that of the end if a restart went back and stopped sooner."""
        return max(piece.last_step for piece in self.pieces)

    @property
    def lr_peak(self) -> float:
        """The highest learning rate of all pieces; NaN if none is logged."""
        peaks = [piece.lr_peak for piece in self.pieces if not math.isnan(piece.lr_peak)]
        return max(peaks, default=math.nan)

    def before(self, key: str | None, step: float) -> float:
        """Return the last value of a series up to a step; NaN if there is none."""
        steps, values = self.series.get(key or "", (np.empty(0), np.empty(0)))
        place = int(np.searchsorted(steps, step, side="right")) - 1
        return float(values[place]) if place >= 0 else math.nan


def stitch(
    segments: Iterable[Segment],
    *,
    tokens_key: str | None = None,
    tolerance: float = OVERLAP_TOLERANCE,
) -> Stitched:
    """Join the segments of one run and branch.

    Parameters
    ----------
    segments : iterable of Segment
        All of one run and branch, in any order.
    tokens_key : str, optional
        The key that counts tokens, to mend a counter that a restart set back.
    tolerance : float
        Nats by which a loss may differ where pieces overlap before a note says so.

    Returns
    -------
    Stitched
        The run as it ended up.

    Raises
    ------
    IngestError
        If the order of the pieces cannot be told, or a step counter that began again cannot be continued.
    """
    streams = [_chained(stream, tokens_key, tolerance) for stream in _streams(list(segments))]
    return streams[0] if len(streams) == 1 else _overlaid(streams)


def _streams(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Group pieces by what they log: files that share no measured key run side by side, and none restarts the other.

    Training and evaluation are often logged to files of their own. Counters and learning rates may stand in both.
    """
    groups: list[tuple[set[str], list[Segment]]] = []
    for segment in segments:
        keys = {key for key in segment.series if not is_context(key)} or set(segment.series)
        related = [group for group in groups if group[0] & keys]
        joined = (
            keys.union(*(names for names, _ in related)),
            [*(s for _, own in related for s in own), segment],
        )
        groups = [group for group in groups if not any(group is other for other in related)] + [joined]
    return [own for _, own in groups]


def _overlaid(streams: Sequence[Stitched]) -> Stitched:
    """Put streams side by side: at each mark of one, what the others had said up to there."""
    series: dict[str, tuple[Floats, Floats]] = {}
    for key in {key for stream in streams for key in stream.series}:
        own = [stream.series[key] for stream in streams if key in stream.series]
        steps, place = np.unique(np.concatenate([steps for steps, _ in own]), return_index=True)
        series[key] = steps, np.concatenate([values for _, values in own])[place]
    end = max(stream.end.step for stream in streams)
    inner = {mark.step for stream in streams for mark in stream.marks[:-1]}
    marks = []
    for step in sorted({*(at for at in inner if at < end), end}):
        lasts: dict[str, Last] = {}
        for stream in streams:
            mark = next((mark for mark in reversed(stream.marks) if mark.step <= step), None)
            known = {} if mark is None or mark.step < step and mark is not stream.end else dict(mark.lasts)
            lasts |= {
                **_said(stream.series, Mark(step=step, lasts={}), np.nextafter(step, math.inf)),
                **known,
            }
        marks.append(Mark(step=step, lasts=lasts))
    return Stitched(
        run=streams[0].run,
        branch=streams[0].branch,
        marks=tuple(marks),
        series=series,
        pieces=tuple(piece for stream in streams for piece in stream.pieces),
        superseded=sum(stream.superseded for stream in streams),
        notes=tuple(note for stream in streams for note in stream.notes),
    )


def _chained(segments: Sequence[Segment], tokens_key: str | None, tolerance: float) -> Stitched:
    """Join pieces that follow each other."""
    counted = [mended(piece, tokens_key) for piece in in_order(segments, tolerance)]
    pieces = [shifted(piece, tokens_key) for piece, _ in counted]
    whole = pieces[0]
    marks, series, superseded = list(whole.marks), dict(whole.series), 0
    notes = [note for _, own in counted for note in own]
    for number, raw in enumerate(pieces[1:], 1):
        before = pieces[number - 1]
        piece, went_on = continued(before, series, raw, tokens_key)
        pieces[number] = piece
        notes += [*went_on, *_disagreement(series, piece, tolerance), *_gap(before, piece)]
        notes += _replaced(pieces[:number], piece)
        if not _decay_ended(before, piece):
            marks.pop()  # the piece just stopped there
        kept = [mark for mark in marks if mark.step < piece.first_step]
        superseded += len(marks) - len(kept)
        said = _said(series, before.marks[-1], piece.first_step)
        marks = [*kept, *(replace(mark, lasts={**said, **mark.lasts}) for mark in piece.marks)]
        series = _joined(series, piece)
    return Stitched(
        run=whole.run,
        branch=whole.branch,
        marks=tuple(marks),
        series=series,
        pieces=tuple(pieces),
        superseded=superseded,
        notes=tuple(notes),
    )


def _said(series: Series, end: Mark, step: float) -> dict[str, Last]:
    """Return what each key had said last before a step, for those that a later piece does not log."""
    lasts = {key: replace(last, broken=False) for key, last in end.lasts.items() if last.step < step}
    for key, (steps, values) in series.items():
        place = int(np.searchsorted(steps, step)) - 1
        if key not in lasts and place >= 0:
            lasts[key] = Last(step=float(steps[place]), value=float(values[place]))
    return lasts


def _decay_ended(before: Segment, piece: Segment) -> bool:
    (_, lr), (_, annealed) = before.lr_ends, before.annealed_ends
    if piece.first_step < before.last_step:
        return False
    return bool(decay_ended(lr, piece.lr_ends[0], before.lr_peak, annealed, piece.annealed_ends[0]))


def _joined(series: Series, piece: Segment) -> dict[str, tuple[Floats, Floats]]:
    """Append the series of a piece; what was said from its first step on is superseded, for every key."""
    joined: dict[str, tuple[Floats, Floats]] = {}
    for key in {**series, **piece.series}:
        steps, values = series.get(key, (np.empty(0), np.empty(0)))
        before = steps < piece.first_step
        more, new = piece.series.get(key, (np.empty(0), np.empty(0)))
        joined[key] = np.append(steps[before], more), np.append(values[before], new)
    return joined


def _disagreement(series: Series, piece: Segment, tolerance: float) -> list[Note]:
    apart, key, step = largest_difference(series, piece)
    if apart <= tolerance:
        return []
    message = (
        f"{piece.source}: run {piece.run} was resumed from step {piece.first_step:g} and {key} differs by up to "
        f"{format_number(apart)} from the rows it supersedes (at step {step:g}): the later rows stand"
    )
    return [warning("overlap_disagreement", message)]


def _replaced(before: Sequence[Segment], piece: Segment) -> list[Note]:
    """Say that nothing from before is left: a fresh start, a second logger, or two runs of one name."""
    if piece.first_step > min(one.first_step for one in before):
        return []
    others = {one.source for one in before} - {piece.source}
    whose = listed(others) if others else "the rows above"
    what = f"begins again at step {piece.first_step:g}; nothing is left of {whose}"
    return [warning("replaced_log", f"{piece.source}: run {piece.run} {what}")]


def _gap(before: Segment, piece: Segment) -> list[Note]:
    lacking = piece.first_step - before.last_step
    usual = max((before.last_step - before.first_step) / max(before.rows - 1, 1), 1.0)
    if lacking <= 3 * usual:
        return []
    message = (
        f"run {piece.run}: no rows between step {before.last_step:g} and {piece.first_step:g} "
        f"({piece.source} begins there): a piece of the run may be missing"
    )
    return [info("missing_rows", message)]
