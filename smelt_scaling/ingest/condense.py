"""From a stream of rows to a few numbers per stretch of a run, so that memory does not grow with the rows.

A `Segment` is a stretch of one run (and branch) in one file whose steps go forward. Of its rows only this is kept: what
every key said last (`Last`) at its end and at each point inside where the learning rate had decayed and rises again
(`Mark`), and a thinned sample of each series, thinned by step so that overlapping segments keep the same steps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Block, Event, Facts, Flaw, Resumed
from smelt_scaling.ingest.keys import Keys, is_context

__all__ = ["SAMPLE", "Condenser", "Last", "Mark", "Segment", "decay_ended"]

Floats = NDArray[np.float64]

#: Rows kept per series of a segment.
SAMPLE = 1024
#: Decays inside one segment; more means that the learning rate of the log is no schedule.
MOST_MARKS = 4096


@dataclass(frozen=True, kw_only=True)
class Last:
    """What a key said last.

    Parameters
    ----------
    step, value : float
        The last finite value and its step; NaN if there is none.
    tokens : float
        Training tokens, if the same row says so; NaN otherwise.
    lr, annealed : float
        What the log said last of them, up to that row; NaN where it never did.
    broken : bool
        Whether the key was logged as NaN or infinite after that.
    """

    step: float = float("nan")
    value: float = float("nan")
    tokens: float = float("nan")
    lr: float = float("nan")
    annealed: float = float("nan")
    broken: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Mark:
    """The state of a segment at one of its rows."""

    step: float
    lasts: Mapping[str, Last]


@dataclass(frozen=True, kw_only=True, eq=False)
class Segment:
    """A stretch of one run in one file whose steps go forward.

    Parameters
    ----------
    run, branch : str
        Whose it is.
    source : str
        Path of the file.
    place : int
        Its place among the segments of that file.
    rows : int
        Rows it was read from.
    first_step, last_step : float
        Lowest and highest step.
    first_time, last_time : float
        Seconds since 1970; NaN if not logged.
    marks : tuple of Mark
        Ends of decays inside it, in order; the last one is its end.
    series : mapping of str to ((n,) array, (n,) array)
        Steps and finite values of each key, thinned.
    lr_peak : float
        The highest learning rate; NaN if none is logged.
    lr_ends, annealed_ends : (float, float)
        The first and the last learning rate, and whether its rows are annealed; NaN if not logged.
    facts : mapping
        What the file says of the run.
    thinned : set of str
        Keys whose series lack some of their values.
    """

    run: str
    branch: str
    source: str
    place: int
    rows: int
    first_step: float
    last_step: float
    first_time: float
    last_time: float
    marks: tuple[Mark, ...]
    series: Mapping[str, tuple[Floats, Floats]]
    lr_peak: float
    lr_ends: tuple[float, float]
    annealed_ends: tuple[float, float]
    facts: Mapping[str, float | str] = field(default_factory=dict)
    thinned: frozenset[str] = frozenset()


def decay_ended(
    lr: ArrayLike, next_lr: ArrayLike, peak: ArrayLike, annealed: ArrayLike, next_annealed: ArrayLike
) -> NDArray[np.bool_]:
    """Whether a decay ended between a row and the next: the rate had fallen to half its peak or less, and doubles.

    Where phases are logged: an annealed row before one that is not.
    """
    before, after, highest = np.asarray(lr), np.asarray(next_lr), np.asarray(peak)
    rises = (highest > 0) & (before <= highest / 2) & (after > 2 * before)
    return np.asarray(rises | ((np.asarray(annealed) == 1) & (np.asarray(next_annealed) == 0)))


@dataclass(kw_only=True, eq=False)
class _Thinned:
    """A series thinned by step: the first row of every ``stride`` steps, the stride doubling when it is full."""

    stride: float = 1.0
    steps: Floats = field(default_factory=lambda: np.empty(0))
    values: Floats = field(default_factory=lambda: np.empty(0))

    def add(self, steps: Floats, values: Floats) -> None:
        if self.stride > 1:  # most rows of a long series fall out here, before anything is copied
            bucket = np.floor(steps / self.stride)
            first = np.empty(len(steps), dtype=np.bool_)
            first[0] = not len(self.steps) or bucket[0] != np.floor(self.steps[-1] / self.stride)
            np.not_equal(bucket[1:], bucket[:-1], out=first[1:])
            steps, values = steps[first], values[first]
        self.steps, self.values = np.append(self.steps, steps), np.append(self.values, values)
        while len(self.steps) > SAMPLE:
            self.stride *= 2
            first = np.diff(np.floor(self.steps / self.stride), prepend=np.nan) != 0
            self.steps, self.values = self.steps[first], self.values[first]


@dataclass(kw_only=True, eq=False)
class _Open:
    """A segment that is being read."""

    run: str
    branch: str
    source: str
    place: int
    rows: int = 0
    first_step: float = math.inf
    last_step: float = -math.inf
    first_time: float = math.nan
    last_time: float = math.nan
    lr: float = math.nan
    lr_first: float = math.nan
    lr_peak: float = math.nan
    annealed: float = math.nan
    annealed_first: float = math.nan
    lasts: dict[str, Last] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    series: dict[str, _Thinned] = field(default_factory=dict)

    def add(self, keys: Keys, step: Floats, values: Mapping[str, Floats], time: Floats | None) -> None:
        """Add rows, cut where a decay ends, so that the mark there holds what was said before."""
        role = {name: values.get(keys.find(name, values) or "") for name in ("lr", "annealed", "tokens")}
        lr, annealed = (
            _carried(role["lr"], self.lr, len(step)),
            _carried(role["annealed"], self.annealed, len(step)),
        )
        if role["lr"] is None and role["annealed"] is None:  # nothing changes within these rows
            peak, ends = np.array([self.lr_peak]), np.zeros(0, dtype=np.bool_)
        else:
            peak = np.fmax.accumulate(np.append(self.lr_peak, lr))
            before, flag = np.append(self.lr, lr[:-1]), np.append(self.annealed, annealed[:-1])
            ends = decay_ended(before, lr, peak[:-1], flag, annealed)
        begin = 0
        for end in [*np.flatnonzero(ends).tolist(), len(step)]:
            part = slice(begin, end)
            for key, column in values.items():
                self._say(key, step[part], column[part], role["tokens"], lr, annealed, begin)
            if begin < end:
                self.first_step = min(self.first_step, float(step[part].min()))
                self.last_step = max(self.last_step, float(step[part].max()))
            if end < len(step) and self.lasts:
                self.marks.append(Mark(step=self.last_step, lasts=dict(self.lasts)))
            begin = end
        self.rows += len(step)
        self.lr, self.annealed, self.lr_peak = float(lr[-1]), float(annealed[-1]), float(peak[-1])
        self.lr_first, self.annealed_first = _first(self.lr_first, lr), _first(self.annealed_first, annealed)
        if time is not None and (known := time[np.isfinite(time)]).size:
            self.first_time = float(np.fmin(self.first_time, known[0]))
            self.last_time = float(np.fmax(self.last_time, known[-1]))
        if len(self.marks) > MOST_MARKS:
            raise IngestError(
                f"{self.source}: the learning rate of run {self.run} rises over {MOST_MARKS} times: that is no "
                "schedule; name its key with --map lr=KEY"
            )

    def _say(
        self,
        key: str,
        step: Floats,
        values: Floats,
        tokens: Floats | None,
        lr: Floats,
        annealed: Floats,
        offset: int,
    ) -> None:
        finite = np.isfinite(values)
        whole = bool(finite.all())
        last = len(values) - 1 if whole else int(np.flatnonzero(finite)[-1]) if finite.any() else -1
        if last >= 0:
            self.lasts[key] = Last(
                step=float(step[last]),
                value=float(values[last]),
                tokens=math.nan if tokens is None else float(tokens[offset + last]),
                lr=float(lr[offset + last]),
                annealed=float(annealed[offset + last]),
            )
            thinned = self.series.setdefault(key, _Thinned())
            thinned.add(*((step, values) if whole else (step[finite], values[finite])))
        if not whole and np.isinf(values[last + 1 :]).any():
            self.lasts[key] = replace(self.lasts.get(key, Last()), broken=True)

    def closed(self, facts: Mapping[str, float | str]) -> Segment:
        """Return what is kept of it."""
        return Segment(
            run=self.run,
            branch=self.branch,
            source=self.source,
            place=self.place,
            rows=self.rows,
            first_step=self.first_step,
            last_step=self.last_step,
            first_time=self.first_time,
            last_time=self.last_time,
            marks=(*self.marks, Mark(step=self.last_step, lasts=dict(self.lasts))),
            series={key: (thin.steps, thin.values) for key, thin in self.series.items()},
            lr_peak=self.lr_peak,
            lr_ends=(self.lr_first, self.lr),
            annealed_ends=(self.annealed_first, self.annealed),
            facts=dict(facts),
            thinned=frozenset(key for key, thin in self.series.items() if thin.stride > 1),
        )


def _first(known: float, values: Floats) -> float:
    if not math.isnan(known):
        return known
    finite = np.flatnonzero(np.isfinite(values))
    return float(values[finite[0]]) if finite.size else math.nan


def _carried(values: Floats | None, before: float, n: int) -> Floats:
    """Carry the last finite value forward over rows that have none."""
    if values is None:
        return np.broadcast_to(before, n)
    known = np.isfinite(values)
    if known.all():
        return values
    place = np.maximum.accumulate(np.where(known, np.arange(1, n + 1), 0))
    return np.concatenate([[before], np.where(known, values, before)])[place]


@dataclass(kw_only=True, eq=False)
class Condenser:
    """Takes the events of one file after the other; `segments` are what is kept.

    Parameters
    ----------
    keys : Keys
        Roles of the keys.

    Examples
    --------
    >>> condenser = Condenser(keys=Keys())
    >>> step, loss = np.array([1.0, 2.0, 3.0, 2.0, 3.0, 4.0]), np.array([3.0, 2.5, 2.4, 2.6, 2.45, 2.3])
    >>> condenser.take("a.log", [Block(run="a", step=step, values={"loss": loss})])
    >>> [(s.first_step, s.last_step, s.marks[-1].lasts["loss"].value) for s in condenser.segments]
    [(1.0, 3.0, 2.4), (2.0, 4.0, 2.3)]
    """

    keys: Keys
    segments: list[Segment] = field(default_factory=list)
    flaws: list[tuple[str, Flaw]] = field(default_factory=list)

    def take(self, source: str, events: Iterable[Event]) -> None:
        """Take all events of one file; its end closes its segments."""
        reading: dict[tuple[str, str], _Open] = {}
        logged: dict[tuple[str, str], dict[str, float]] = {}
        facts: dict[str, dict[str, float | str]] = {}
        done: list[_Open] = []
        place = itertools.count()

        def close(whose: tuple[str, str]) -> None:
            done.append(reading.pop(whose))
            logged.pop(whose)

        for event in events:
            if isinstance(event, Facts):
                facts.setdefault(event.run, {}).update(event.values)
            elif isinstance(event, Flaw):
                self.flaws.append((source, event))
            elif isinstance(event, Resumed):
                for whose in [whose for whose in reading if whose[0] == event.run]:
                    close(whose)
            else:
                whose = event.run, event.branch
                for part in _forward(event, logged.get(whose, {})):
                    if part.start and whose in reading:
                        close(whose)
                    if whose not in reading:
                        reading[whose] = _Open(
                            run=event.run, branch=event.branch, source=source, place=next(place)
                        )
                        logged[whose] = {}
                    step = event.step[part.rows]
                    values = {key: column[part.rows] for key, column in event.values.items()}
                    time = None if event.time is None else event.time[part.rows]
                    reading[whose].add(self.keys, step, values, time)
                    _log(logged[whose], step, values)
        for whose in list(reading):
            close(whose)
        # only now: facts may follow the rows they hold for
        self.segments += [one.closed(facts.get(one.run, {})) for one in done]


@dataclass(frozen=True)
class _Part:
    rows: slice
    start: bool


def _forward(block: Block, logged: Mapping[str, float]) -> Iterator[_Part]:
    """Split a block where a step goes back to one at which a key of that row was logged already: a restart.

    A row that merely comes late, an evaluation written after later training rows, starts nothing.
    """
    known, begin, seen, start = dict(logged), 0, 0, False
    while True:
        highest = max(known.values(), default=-math.inf)
        step = block.step[begin:]
        if step[0] >= highest and (step[1:] >= step[:-1]).all():
            break
        back = begin + np.flatnonzero(step < np.maximum.accumulate(np.append(highest, step))[:-1])
        for row in back.tolist():
            _log(known, block.step[seen:row], {key: column[seen:row] for key, column in block.values.items()})
            seen = row
            present = [key for key, column in block.values.items() if not math.isnan(column[row])]
            measured = [key for key in present if not is_context(key)]  # counters stand in late rows, too
            if any(known.get(key, -math.inf) >= block.step[row] for key in measured or present):
                break
        else:
            break
        if begin < row:
            yield _Part(slice(begin, row), start)
        known, begin, start = {}, row, True
    yield _Part(slice(begin, len(block.step)), start)


def _log(logged: dict[str, float], step: Floats, values: Mapping[str, Floats]) -> None:
    """Record the highest step at which each key was logged."""
    highest = float(step.max()) if len(step) else -math.inf
    for key, column in values.items():
        lacking = np.isnan(column)
        if not lacking.any():
            logged[key] = max(logged.get(key, -math.inf), highest)
        elif not lacking.all():
            logged[key] = max(logged.get(key, -math.inf), float(step[~lacking].max()))
