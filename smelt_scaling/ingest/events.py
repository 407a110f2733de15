"""What a log says, in four words: every reader turns its format into a stream of these events.

`Facts` state what holds for a whole run, a `Block` holds consecutive rows, a `Resumed` marks a restart that the log
itself announces, and a `Flaw` counts what could not be read. Rows are in the order of the file, so that a step that
goes back is a restart; nothing is sorted, merged or chosen here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from smelt_scaling.ingest.keys import Keys
    from smelt_scaling.ingest.sources import Source

__all__ = ["FACTS", "Block", "Event", "Facts", "Flaw", "Reader", "Resumed", "Rows", "logged_number"]

Floats = NDArray[np.float64]

#: What a log or a table of runs can state about a run: name -> (kind, meaning). The same names in both.
FACTS: dict[str, tuple[type, str]] = {
    "arch": (str, "architecture"),
    "scale": (str, "model size as a label"),
    "cell": (str, "design point: one (scale, sparsity)"),
    "trunk": (str, "name of the stable run that this run is a decay branch of"),
    "seed": (str, "random seed"),
    "tokenizer": (str, "tokenizer of the loss"),
    "eval_set": (str, "evaluation set of the loss"),
    "source": (str, "where the numbers come from: simulated"),
    "id": (str, "identifier of this piece of the run, where a run is logged under several"),
    "parent": (str, "identifier or name of the piece that this one continues"),
    "status": (str, "state of the run: finished, crashed, running"),
    "created": (float, "when the piece started, in seconds since 1970"),
    "planned_steps": (float, "optimiser steps at the planned end"),
    "planned_tokens": (float, "training tokens at the planned end"),
    "tokens_per_step": (float, "tokens per optimiser step"),
    "sequence_length": (float, "tokens per sequence"),
    "batch_size": (float, "sequences per optimiser step"),
    "start_step": (float, "optimiser steps taken before step 0 of this piece"),
    "start_tokens": (float, "tokens seen before token 0 of this piece: those of its trunk"),
    "F": (float, "training FLOPs per token"),
    "S": (float, "compute-equivalent sparsity"),
    "N": (float, "parameters"),
    "N_act": (float, "active parameters"),
    "unique_tokens": (float, "tokens in the training data before any is repeated"),
    "tokens_per_s": (float, "training throughput in tokens per second"),
}


def logged_number(value: Any) -> float:
    """Read a logged value so that "not logged" and "logged, but no number" stay two things.

    Parameters
    ----------
    value : object
        A number, a text ("NaN", "1.2e-3"), or None.

    Returns
    -------
    float
        The number; inf for one that was logged as NaN or infinite; NaN for anything else, which is no value at all.

    Examples
    --------
    >>> [logged_number(v) for v in (2.5, "2.5", "NaN", float("nan"), "Infinity", None, "none", True)]
    [2.5, 2.5, inf, inf, inf, nan, nan, nan]
    """
    if isinstance(value, bool) or value is None:
        return float("nan")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
    return number if isfinite(number) else float("inf")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What holds for a run as a whole.

    Parameters
    ----------
    run : str
        The run.
    values : mapping of str to float or str
        By the names of `FACTS`; later facts of the same run replace earlier ones.
    """

    run: str
    values: Mapping[str, float | str]

    def __post_init__(self) -> None:
        unknown = [name for name in self.values if name not in FACTS]
        if unknown:
            raise ValueError(f"unknown fact {unknown[0]!r}: add it to FACTS")


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Consecutive rows of one run (and decay branch), in the order of the log.

    Parameters
    ----------
    run : str
        The run.
    branch : str
        The decay branch within it; empty for the trunk, and where the log knows no branches.
    step : (n,) array of float
        Optimiser steps, finite.
    values : mapping of str to (n,) array of float
        By the keys of the log. NaN where a row lacks the key, inf where it was logged but is no finite number
        (see `logged_number`).
    time : (n,) array of float, optional
        Seconds since 1970.
    """

    run: str
    step: Floats
    values: Mapping[str, Floats]
    branch: str = ""
    time: Floats | None = None


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """A restart that the log announces: the rows that follow begin a new piece of the run."""

    run: str
    step: float | None = None


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """Something in the file that could not be read as it should; becomes a note.

    Parameters
    ----------
    code : str
        A note code.
    message : str
        What and where within the file, without its name: "line 512 is cut off".
    count : int
        How often.
    run : str
        The run concerned; empty for the file as a whole.
    """

    code: str
    message: str
    count: int = 1
    run: str = ""


Event = Facts | Block | Resumed | Flaw


@dataclass(frozen=True, kw_only=True)
class Reader:
    """One log format: how to recognise its content, and how to read it.

    Parameters
    ----------
    title : str
        The format in a few words, for people.
    sniff : callable
        ``sniff(head, name) -> bool``; ``head`` is the first 256 KiB (unpacked), ``name`` the path. By content; the
        path is for formats whose content alone cannot tell (a metric file of a folder store).
    read : callable
        ``read(source, keys) -> iterator of events``. Streams: memory does not grow with the file. Raises `IngestError`
        with one line when nothing can be read; counts a `Flaw` when a part cannot.
    sampled : bool
        Whether the format may hold a random sample of the rows in place of all.
    known_by : str
        What `sniff` looks for, for people.
    states : tuple of str
        The `FACTS` that such a log can state.
    """

    title: str
    sniff: Callable[[bytes, str], bool]
    read: Callable[[Source, Keys], Iterator[Event]]
    sampled: bool = False
    known_by: str = ""
    states: tuple[str, ...] = ()


@dataclass(kw_only=True, eq=False)
class Rows:
    """Collects rows of one run and branch and hands them out as blocks; a tool for readers of row formats.

    Examples
    --------
    >>> rows = Rows(run="a")
    >>> full = [rows.add(step, {"loss": 3.0 - step}) for step in range(3)]
    >>> rows.add(3, {"loss": "NaN", "lr": 0.1})
    False
    >>> [block] = rows.take()
    >>> block.step.tolist(), block.values["loss"].tolist(), block.values["lr"].tolist()
    ([0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, inf], [nan, nan, nan, 0.1])
    """

    run: str
    branch: str = ""
    full: int = 8192
    _step: list[float] = field(default_factory=list)
    _time: list[float] = field(default_factory=list)
    _cells: dict[str, tuple[list[int], list[float]]] = field(default_factory=dict)

    def add(self, step: float, values: Mapping[str, Any], time: float | None = None) -> bool:
        """Add a row; returns whether it is time to `take`."""
        row = len(self._step)
        self._step.append(float(step))
        self._time.append(float("nan") if time is None else float(time))
        for key, value in values.items():
            number = logged_number(value)
            if number == number:
                places, numbers = self._cells.setdefault(key, ([], []))
                places.append(row)
                numbers.append(number)
        return len(self._step) >= self.full

    def take(self) -> Iterator[Block]:
        """Yield the rows collected so far as one block, and forget them."""
        n = len(self._step)
        if not n:
            return
        values: dict[str, Floats] = {}
        for key, (places, numbers) in self._cells.items():
            column = np.full(n, np.nan)
            column[places] = numbers
            values[key] = column
        time = np.array(self._time)
        step = np.array(self._step)
        self._step, self._time, self._cells = [], [], {}
        timed = None if np.isnan(time).all() else time
        yield Block(run=self.run, branch=self.branch, step=step, values=values, time=timed)
