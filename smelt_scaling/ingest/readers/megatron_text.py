"""Output of Megatron-LM and what descends from it: Megatron-DeepSpeed, GPT-NeoX.

Format: ``training_log`` and ``evaluate_and_print_results`` of megatron/training/training.py, the arguments that
megatron/training/arguments.py prints, and the words of checkpointing.py. A job's file may begin with anything, hold
several starts of the run, and put a rank before each line. A cell counts where its closing ``|`` is there.

A training line leaves its loss out when every iteration was skipped, and when the mean is NaN. The second is what it
says where no iteration was skipped, or some were NaN: such a loss is infinite here. Perplexities are not read, for
they are exp(loss), clipped. Batches grow during a ramp-up, so tokens come from the counters of the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isnan
from typing import Any

from smelt_scaling.ingest.events import Event, Facts, Reader, Resumed, Rows, logged_number
from smelt_scaling.ingest.keys import Keys, is_evaluation, is_loss
from smelt_scaling.ingest.readers._shared import chooser, finite, line_flaws, no_rows
from smelt_scaling.ingest.sources import Source, text_lines

__all__ = ["MEGATRON_TEXT"]

_SIGNATURE = re.compile(
    rb"iteration +\d+/ *\d+ \| |-{8,} arguments -{8,}|(loss|results) at iteration \d+[^|\n]* \| l[mM][_ ]loss"
)
_TRAIN = re.compile(r"\biteration +(\d{1,15})/ *(\d{1,15}) \|", re.ASCII)
_EVALUATION = re.compile(
    r"(\S+) (?:loss|results) at (?:iteration (\d{1,15})|the end of training)([^|]*)\|(.*)", re.ASCII
)
_ARGUMENT = re.compile(r"(?:\S+:)? +(\w+) \.{2,} (\S.*)$")
_LOADED = re.compile(r"[Ll]oad(?:ing|ed) .*checkpoint .*\biteration (\d{1,15})\b", re.ASCII)
_PLANNED = re.compile(r"setting training iterations to (\d{1,15})$", re.ASCII)
_PARAMETERS = re.compile(r"estimated model parameters: ([\d.]{1,20})$", re.ASCII)
_STARTED = re.compile(r"\[before the start of training step\] datetime: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_ARGUMENTS = frozenset({"seq_length", "global_batch_size", "rampup_batch_size", "train_iters", "seed"})


@dataclass(kw_only=True, eq=False)
class _State:
    """What was said so far."""

    rows: Rows
    arguments: dict[str, str] = field(default_factory=dict)
    facts: dict[str, float | str] = field(default_factory=dict)
    restarted: bool = False
    loaded: float | None = None
    read: int = 0
    cut: int = 0
    step: float = 0.0
    consumed: tuple[float, dict[str, str | float]] = (0.0, {})  # at a step
    chosen: Callable[[Mapping[str, Any]], dict[str, Any]]
    losses: dict[str, str] = field(default_factory=dict)
    planned: str = ""

    def state(self, **facts: float | str) -> Iterator[Event]:
        """Yield facts that are new."""
        new = {name: value for name, value in facts.items() if self.facts.get(name) != value}
        if new:
            self.facts |= new
            yield from self.rows.take()
            yield Facts(run=self.rows.run, values=new)

    def add(self, step: float, values: Mapping[str, str | float]) -> Iterator[Event]:
        """Add a row, after the restart that was announced before it."""
        if self.restarted or self.loaded is not None:
            yield from self.rows.take()
            yield Resumed(run=self.rows.run, step=self.loaded)
            self.restarted, self.loaded = False, None
        self.read, self.step = self.read + 1, step
        garbled = [name for name, value in values.items() if isnan(logged_number(value))]
        self.cut += bool(garbled)
        if self.rows.add(step, values):
            yield from self.rows.take()


def _sniff(head: bytes, name: str) -> bool:
    return _SIGNATURE.search(head) is not None


def _read(source: Source, keys: Keys) -> Iterator[Event]:
    state = _State(rows=Rows(run=source.name), chosen=chooser(keys))
    torn = 0
    for _, line, whole in text_lines(source):
        if "|" not in line:
            torn += not whole and bool(line.strip())
            if whole:
                yield from _said(state, line)
        elif len(parts := _TRAIN.split(line)) > 1:
            # Processes that print at once leave several records on one line.
            for place in range(1, len(parts), 3):
                yield from _train(state, *parts[place : place + 3])
        elif (" loss at " in line or " results at " in line) and (match := _EVALUATION.search(line)):
            yield from _evaluation(state, match)
    if not state.read:
        raise no_rows(source, "no iteration and no evaluation")
    yield from state.rows.take()
    yield from line_flaws(
        state.rows.run, torn, state.cut, "cut off or garbled within: that value was not read"
    )


def _split_cells(state: _State, text: str) -> dict[str, str]:
    """Split ``name: value | name: value |``; what follows the last bar is no whole cell."""
    *cells, rest = text.split("|")
    state.cut += bool(rest.strip())
    found = (cell.rpartition(":") for cell in cells)
    return {name.strip(): value for name, _, value in found}


def _train(state: _State, at: str, of: str, text: str) -> Iterator[Event]:
    if of != state.planned:
        state.planned = of
        yield from state.state(planned_steps=float(of))
    cells = _split_cells(state, text)
    values = state.chosen(cells)
    losses = values.keys() & state.losses.keys() or {name for name in values if is_loss(name)}
    state.losses |= dict.fromkeys(losses, "nan")
    if not losses and (
        finite(cells.get("number of nan iterations"))
        or finite(cells.get("number of skipped iterations")) == 0
    ):
        values |= state.losses
    step, consumed = float(at), state.chosen(_tokens(cells, state.arguments))
    state.consumed = step, consumed
    yield from state.add(step, values | consumed)


def _tokens(cells: Mapping[str, str], arguments: Mapping[str, str]) -> dict[str, str | float]:
    """Return tokens so far: as logged, or from the samples where all have the length that the arguments say."""
    if "consumed tokens" in cells:
        return {"consumed tokens": cells["consumed tokens"]}
    samples, length = finite(cells.get("consumed samples")), finite(arguments.get("seq_length"))
    if samples is None or length is None or "curriculum seqlen" in cells or "global batch size" not in cells:
        return {}  # a line without its batch may be cut before its tokens
    return {"tokens": samples * length}


def _evaluation(state: _State, match: re.Match[str]) -> Iterator[Event]:
    """Read an evaluation; tokens are those of a training line at the same step."""
    step = float(match[2]) if match[2] else state.step
    where = _set(match[1], match[3])
    cells = {
        f"{where}/{name.removesuffix(' value')}": value
        for name, value in _split_cells(state, match[4]).items()
        if "ppl" not in name.casefold()
    }
    at, consumed = state.consumed
    yield from state.add(step, state.chosen(cells) | (consumed if step == at else {}))


def _set(name: str, more: str) -> str:
    """Name the data of an evaluation: "validation", "validation-web", "test", or what the log calls them."""
    if bracket := re.search(r"\[(.+)\]", more):
        name = f"{name}-{bracket[1]}"
    if "test" in more.split():
        return re.sub("^valid(ation)?", "test", name)
    return name if is_evaluation(name) else f"validation/{name}"


def _said(state: _State, line: str) -> Iterator[Event]:
    """Read a line that holds no cells: an argument, a restart, a number of iterations or parameters."""
    if " .." in line:
        if (match := _ARGUMENT.match(line)) and match[1] in _ARGUMENTS:
            state.arguments[match[1]] = match[2]
    elif "- end of arguments -" in line:
        yield from state.state(**_argument_facts(state.arguments))
    elif "- arguments -" in line:
        state.arguments, state.restarted = {}, state.read > 0
    elif "iteration" in line:
        if match := _LOADED.search(line):
            state.loaded = float(match[1])
        elif match := _PLANNED.search(line):
            yield from state.state(planned_steps=float(match[1]))
    elif match := _PARAMETERS.search(line):
        billions = finite(match[1])
        if billions:
            yield from state.state(N=float(round(billions * 1e9)))
    elif "created" not in state.facts and (match := _STARTED.search(line)):
        # The zone of the clock is not logged; UTC puts the files of one cluster in the right order.
        try:
            started = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            return
        yield from state.state(created=started.timestamp())


def _argument_facts(arguments: dict[str, str]) -> dict[str, float | str]:
    """Return what the arguments say; of a batch that grows they say no single size."""
    length, batch = finite(arguments.get("seq_length")), finite(arguments.get("global_batch_size"))
    steps = finite(arguments.get("train_iters"))
    constant = arguments.get("rampup_batch_size", "None") == "None"
    facts = {
        "planned_steps": steps,
        "sequence_length": length,
        "batch_size": batch if constant else None,
        "tokens_per_step": length * batch if constant and length and batch else None,
    }
    stated: dict[str, float | str] = {name: value for name, value in facts.items() if value is not None}
    return stated | ({"seed": arguments["seed"]} if "seed" in arguments else {})


MEGATRON_TEXT = Reader(
    title="Megatron output",
    sniff=_sniff,
    read=_read,
    known_by="lines `iteration N/ M | ... |`",
    states=("seed", "created", "planned_steps", "tokens_per_step", "sequence_length", "batch_size", "N"),
)
