"""Which row of a run is its endpoint: the last evaluation after the learning rate had decayed, never the lowest loss.

Each end of a decay, and the end of the run, either becomes an endpoint or is left out with a code and a reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from smelt_scaling._rows import FINISHED
from smelt_scaling.errors import UsageError
from smelt_scaling.formatting import format_number
from smelt_scaling.ingest.condense import Last, Mark
from smelt_scaling.ingest.keys import is_loss
from smelt_scaling.ingest.names import listed
from smelt_scaling.ingest.quantities import tokens_at
from smelt_scaling.ingest.stitching import Stitched

__all__ = ["Pick", "Roles", "Rules", "Run", "checkpoints", "select_ends"]

#: A counter may stop this share short of the plan: the last step is not always logged.
SHORT = 0.005
#: A loss this far above the lowest of its run has blown up (nats); overfitting stays well below.
BLOWN_UP = 1.0
#: Why the stable part of a run is no endpoint where its branches are: nothing is amiss.
TRUNK = "the stable run that its branches decay from"


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How endpoints are chosen.

    Parameters
    ----------
    annealed : float
        The highest share of its peak that the learning rate may have at an endpoint.
    include_unfinished : bool
        Whether runs short of their plan count too.
    smooth : float
        Share of the steps before an end over which its loss is averaged; 0 takes the last value as it is.

    Raises
    ------
    UsageError
        If a share is none.
    """

    annealed: float = 0.1
    include_unfinished: bool = False
    smooth: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.annealed <= 1:
            raise UsageError(
                f"--annealed {self.annealed:g}: a share of the peak learning rate, above 0 and at most 1, such as 0.1"
            )
        if not 0 <= self.smooth < 1:
            raise UsageError(
                f"--smooth {self.smooth:g}: a share of a run's steps, at least 0 and below 1, such as 0.02"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """A run: its stable part, its decay branches (by label), what is known of it, and whether rows are missing.

    ``trunk_of_others`` says that other runs are its decay branches.
    """

    name: str
    trunk: Stitched | None
    branches: Mapping[str, Stitched] = field(default_factory=dict)
    facts: Mapping[str, float | str] = field(default_factory=dict)
    sampled: bool = False
    trunk_of_others: bool = False

    @property
    def parts(self) -> tuple[Stitched, ...]:
        """The trunk, if any, and the branches by label."""
        return (
            *([self.trunk] if self.trunk else []),
            *(self.branches[name] for name in sorted(self.branches)),
        )

    @property
    def lr_peak(self) -> float:
        """The highest learning rate of all parts; a branch alone sees only its decay."""
        return max((part.lr_peak for part in self.parts if not math.isnan(part.lr_peak)), default=math.nan)


@dataclass(frozen=True, kw_only=True, eq=False)
class Pick:
    """An end of a run, chosen (no code) or left out.

    Parameters
    ----------
    run, branch : str
        Whose end it is.
    step, tokens, loss, lr : float
        Of the evaluation; NaN where unknown.
    code, reason : str
        Why it was left out; empty for an endpoint.
    evidence : str
        What says that the learning rate had decayed.
    phase : str
        ``checkpoint`` for a row of a trajectory; empty for an end.
    part : Stitched
        The pieces it comes from.
    lasts : mapping of str to Last
        What every key said last at this end.
    """

    run: str
    branch: str
    step: float
    tokens: float
    loss: float
    lr: float
    part: Stitched
    lasts: Mapping[str, Last]
    code: str = ""
    reason: str = ""
    evidence: str = ""
    phase: str = ""

    @property
    def label(self) -> str:
        """The run, and the branch if there is one."""
        return f"{self.run} branch {self.branch}" if self.branch else self.run


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The keys of a run that matter: its evaluation loss, its tokens, its learning rate."""

    loss: str
    tokens: str | None = None
    lr: str | None = None


def select_ends(run: Run, roles: Roles, rules: Rules) -> list[Pick]:
    """Judge every end of a run.

    Parameters
    ----------
    run : Run
        The run.
    roles : Roles
        Its keys.
    rules : Rules
        How to judge.

    Returns
    -------
    list of Pick
        One per end of a decay and one for the end of each part, in order of step.
    """
    return [pick for part in run.parts for pick in _judge_part(run, part, roles, rules)]


def checkpoints(run: Run, roles: Roles, ends: list[Pick]) -> list[Pick]:
    """Return every evaluation of the parts that have an end, as rows of a trajectory; ends left out stay so.

    Parameters
    ----------
    run, roles
        As for `select_ends`.
    ends : list of Pick
        Its answer.

    Returns
    -------
    list of Pick
        In order of step within each part, none from before the first step or, with a code, from before the first
        count of tokens. Of a piece with more than `SAMPLE` evaluations those are kept that its thinned series holds
        (see `condense`); ends are exact.
    """
    kept: list[Pick] = []
    for end in ends:
        spoiled = end.code in ("diverged", "no_evaluation", "negative_loss", "sampled_history")
        if spoiled or any(one.part is end.part for one in kept):
            kept += [end] if spoiled else []
            continue
        own = [one.lasts.get(roles.loss, Last()) for one in ends if one.part is end.part]
        for step, value in _evaluations(end.part, roles.loss, own):
            last = Last(step=step, value=value)
            at_end = step == end.step
            kept.append(
                replace(
                    end,
                    step=step,
                    loss=value,
                    tokens=end.tokens if at_end else tokens_at(run.facts, end.part, last, roles.tokens),
                    lr=end.lr if at_end else end.part.before(roles.lr, step),
                    lasts={roles.loss: last},
                    code="",
                    reason="",
                    phase="checkpoint",
                )
            )
    return [_uncounted(pick, roles) for pick in kept]


def _evaluations(part: Stitched, loss_key: str, ends: list[Last]) -> list[tuple[float, float]]:
    """Return (step, loss) of the evaluations after step 0 that are kept: those of a thinned series, and the ends."""
    steps, values = part.series.get(loss_key, (np.empty(0), np.empty(0)))
    known = dict(zip(steps.tolist(), values.tolist(), strict=True)) | {last.step: last.value for last in ends}
    return sorted((step, value) for step, value in known.items() if step > 0)


def _uncounted(pick: Pick, roles: Roles) -> Pick:
    """Leave out an evaluation from before the first count of tokens, where there is one."""
    first = pick.part.series.get(roles.tokens or "", (np.empty(0),))[0]
    if pick.code or not first.size or not math.isnan(pick.tokens):
        return pick
    return replace(
        pick, code="no_tokens", reason=f"{roles.tokens} begins at step {first[0]:g}, after step {pick.step:g}"
    )


def _judge_part(run: Run, part: Stitched, roles: Roles, rules: Rules) -> Iterator[Pick]:
    loss_key, before = roles.loss, math.nan
    for mark in part.marks:
        last = mark.lasts.get(loss_key, Last())
        count = mark.lasts.get(roles.tokens or "", Last())
        if math.isnan(last.tokens) and count.step == last.step:
            last = replace(last, tokens=count.value)  # in a row of its own, yet of this very step
        if math.isnan(last.lr):  # logged in rows, or files, of their own
            last = replace(last, lr=part.before(roles.lr, last.step))
        if math.isnan(last.annealed):
            last = replace(last, annealed=part.before("annealed", last.step))
        final = mark is part.end
        code, reason, evidence = _verdict(run, part, mark, last, roles, final, rules)
        if code and not final and code != "no_final_evaluation":
            continue  # a decay in the middle that ends above the threshold is no end at all
        if last.step == before and not code:
            continue  # nothing was evaluated since the decay before
        before = last.step
        yield Pick(
            run=run.name,
            branch=part.branch,
            step=last.step,
            tokens=tokens_at(run.facts, part, last, roles.tokens),
            loss=_smoothed(part, last, loss_key, rules.smooth),
            lr=last.lr,
            part=part,
            lasts=mark.lasts,
            code=code,
            reason=reason,
            evidence=evidence,
        )


def _smoothed(part: Stitched, last: Last, loss_key: str, share: float) -> float:
    """Average the losses within a share of the steps up to an evaluation."""
    if not share or loss_key not in part.series:
        return last.value
    steps, values = part.series[loss_key]
    within = values[(steps > (1 - share) * last.step) & (steps <= last.step)]
    return float(within.mean()) if len(within) else last.value


def _verdict(
    run: Run, part: Stitched, mark: Mark, last: Last, roles: Roles, final: bool, rules: Rules
) -> tuple[str, str, str]:
    """Return (code, reason, evidence) of an end; no code for an endpoint."""
    loss_key, lr_key = roles.loss, roles.lr
    broken = sorted(key for key, said in mark.lasts.items() if said.broken and is_loss(key))
    if broken:
        finite = mark.lasts[broken[0]].step
        since = "was never finite" if math.isnan(finite) else f"is not finite after step {finite:g}"
        return "diverged", f"{broken[0]} {since}", ""
    is_trunk = (bool(run.branches) or run.trunk_of_others) and not part.branch
    if math.isnan(last.value):
        return ("not_annealed", TRUNK, "") if is_trunk else ("no_evaluation", _unsaid(mark, loss_key), "")
    if last.value <= 0:
        return "negative_loss", f"{loss_key} is {format_number(last.value)} at step {last.step:g}", ""
    if last.step <= 0 and not last.tokens > 0:
        return "no_evaluation", f"{loss_key} was logged before the first step only", ""
    if reason := _blown_up(part, last, loss_key):
        return "diverged", reason, ""
    annealed, evidence = _annealed(run, part, last, rules)
    # a branch that decayed is done, whatever became of its run
    ended = annealed and (part.branch or evidence == "phase")
    if final and not ended and not rules.include_unfinished and (reason := _short_of_plan(run, part, mark)):
        return "unfinished", reason, ""
    if annealed is not True and final and is_trunk:
        return "not_annealed", TRUNK, ""
    if annealed is False:
        return "not_annealed", evidence, ""
    if not final and (reason := _between_rates(mark, last, lr_key)):
        return "no_final_evaluation", reason, ""
    if final and not annealed and not rules.include_unfinished and (reason := _went_back(run, part, mark)):
        return "unfinished", reason, ""
    if annealed is None and last.step < mark.step - max(SHORT * mark.step, 1):
        reason = f"the last {loss_key} is of step {last.step:g}, the run goes on to step {mark.step:g}"
        return "no_final_evaluation", reason, ""
    if run.sampled and final and not (_by_plan(run) and last.step == mark.step):
        reason = "the log is a sample of the rows, and nothing says that it holds the last"
        return "sampled_history", reason, ""
    return "", "", evidence or _by_plan(run) or _by_status(run)


def _unsaid(mark: Mark, loss_key: str) -> str:
    others = sorted(key for key in mark.lasts if is_loss(key))
    return f"{loss_key} was never logged" + (f", but {listed(others)} was" if others else "")


def _between_rates(mark: Mark, last: Last, lr_key: str | None) -> str:
    """Say that an evaluation lies where the rate may have risen again: after its last low value, before a high one."""
    low = mark.lasts.get(lr_key or "", Last()).step
    if not last.step > low + 1:
        return ""
    return (
        f"the learning rate was logged at step {low:g} and has risen by its next row: whether the evaluation at step "
        f"{last.step:g} came before that is not logged"
    )


def _went_back(run: Run, part: Stitched, mark: Mark) -> str:
    """Say that a run had come further before a restart, where no plan says that it ended as it should."""
    if _by_plan(run) or _by_status(run) or part.furthest <= mark.step + max(SHORT * part.furthest, 1):
        return ""
    return f"a restart set it back, and it stops at step {mark.step:g}, though it had come to {part.furthest:g} before"


def _annealed(run: Run, part: Stitched, last: Last, rules: Rules) -> tuple[bool | None, str]:
    """Say whether the learning rate had decayed at an evaluation, and what says so; None if nothing does."""
    if not math.isnan(last.annealed):
        return last.annealed == 1, "phase" if last.annealed == 1 else "its phase is stable"
    peak = run.lr_peak
    if not math.isnan(last.lr) and not math.isnan(peak) and _varies(part, last, peak):
        share = last.lr / peak
        if share <= rules.annealed * 1.001:  # rates are logged with four digits or so
            return True, f"learning rate at {share:.3g} of its peak"
        return False, f"the learning rate is at {share:.3g} of its peak, above {rules.annealed:g}"
    return (True, "decay branch") if part.branch else (None, "")


def _varies(part: Stitched, last: Last, peak: float) -> bool:
    """Whether the learning rate was logged more than once: a single value tells nothing about a peak."""
    return peak > 0 and (
        last.lr < peak
        or any(
            piece.last_step > piece.first_step and not math.isnan(piece.lr_ends[0]) for piece in part.pieces
        )
    )


def _blown_up(part: Stitched, last: Last, loss_key: str) -> str:
    if loss_key not in part.series or len(values := part.series[loss_key][1]) < 3:
        return ""
    lowest = float(values.min())
    if last.value <= lowest + BLOWN_UP:
        return ""
    return f"{loss_key} ends at {format_number(last.value)}, from {format_number(lowest)} at best"


def _short_of_plan(run: Run, part: Stitched, mark: Mark) -> str:
    """Say how a run falls short of its planned end; nothing if it reached it, whatever its last state was."""
    steps = float(run.facts.get("planned_steps", math.nan))
    if mark.step < steps - max(SHORT * steps, 1):
        return f"it stops at step {mark.step:g} of {steps:g}"
    tokens = float(run.facts.get("planned_tokens", math.nan))
    reached = tokens_at(run.facts, part, Last(step=mark.step), None)
    if reached < tokens * (1 - SHORT):
        return f"it stops at {format_number(reached)} of {format_number(tokens)} tokens"
    state = str(run.facts.get("status", ""))
    planned = not math.isnan(steps) or reached >= tokens * (1 - SHORT)
    return "" if planned or state.strip().casefold() in FINISHED else f"its status is {state}"


def _by_plan(run: Run) -> str:
    if {"planned_steps", "planned_tokens"} & set(run.facts):
        return "planned end"
    return ""


def _by_status(run: Run) -> str:
    state = str(run.facts.get("status", "")).strip().casefold()
    return "status" if state and state in FINISHED else ""
