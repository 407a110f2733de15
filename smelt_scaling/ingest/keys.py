"""Which key of a log plays which role: step, tokens, learning rate, loss, and the families of long tables.

Trainers name the same thing in many ways. A role that only one key can play is found by name; where several could,
the user names it (``--map loss=eval/loss``): a key is never picked by its order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from smelt_scaling.errors import IngestError, Note, UsageError, info, warning
from smelt_scaling.ingest.events import FACTS

__all__ = ["ROLES", "Keys", "choose_loss", "is_context", "is_evaluation", "is_loss"]

#: role -> (keys that play it, case-folded, in order of preference; what it is)
ROLES: dict[str, tuple[tuple[str, ...], str]] = {
    "run": (("run", "run_name", "run_id"), "name of the run, in a table of several"),
    "branch": (("branch",), "decay branch within the run"),
    "phase": (("phase",), "phase of the schedule: stable, decay"),
    "time": (("time", "_timestamp", "timestamp", "wall_time"), "seconds since 1970"),
    "step": (
        (
            "step",
            "_step",
            "global_step",
            "iteration",
            "iter",
            "trainer/global_step",
            "train/step",
            "train/global_step",
        ),
        "optimiser step",
    ),
    "tokens": (
        (
            "tokens",
            "consumed tokens",
            "total_tokens",
            "throughput/total_tokens",
            "consumed_tokens",
            "tokens_seen",
            "train/tokens",
            "train/total_tokens",
            "num_input_tokens_seen",
            "optim/total_tokens",
            "d",
        ),
        "training tokens so far",
    ),
    "lr": (
        (
            "lr",
            "learning_rate",
            "learning rate",
            "train/lr",
            "train/learning_rate",
            "optim/learning_rate",
            "optim/learning_rate_group0",
            "learning-rate",
            "optimizer/lr",
            "lr-adamw",
            "lr-adamw/pg1",
            "lr-adam",
            "lr/group0",
            "lr-decoupledadamw/group0",
            "train/.optimizer/lr",
            "train/optimizer/lr",
        ),
        "learning rate",
    ),
    "annealed": (("annealed",), "1 in rows after the decay, 0 before it"),
    "loss_se": (("loss_se",), "standard error of the loss"),
}

_LOSS = re.compile(
    r"(^|[/_\-. ])(loss|ce|nll|xent|cross_?entropy|cross_?entropy_?loss|perplexity|ppl|bpb|bits_per_byte)($|[/_\-. ])",
    re.IGNORECASE,
)
_NOT_A_LOSS = re.compile(
    r"(loss[ _]scale|aux|z[_-]?loss|balance|router|load|lower_95|upper_95|stderr"
    r"|loss[_.](min|max|best|std|se|scale|weights?)"
    r"|(^|[/_\-. ])best($|[/_\-. ]))",
    re.IGNORECASE,
)
_EVALUATION = re.compile(
    r"(^|[/_\-. ])(e?val|evals?|valid|validation|test|dev|held_?out|evaluation|paloma)($|[/_\-. ])",
    re.IGNORECASE,
)


_OTHER_UNIT = re.compile(r"(^|[/_\-. ])(perplexity|ppl|bpb|bits_per_byte)($|[/_\-. ])", re.IGNORECASE)


def is_loss(key: str) -> bool:
    """Whether a key names a loss (or a perplexity, or bits per byte).

    Examples
    --------
    >>> [is_loss(k) for k in ("eval/loss", "val_loss", "lm loss", "eval/c4/CrossEntropyLoss")]
    [True, True, True, True]
    >>> [is_loss(k) for k in ("loss scale", "z_loss", "acc", "loss_std", "val_loss.min", "best_val_loss", "ppl_stderr")]
    [False, False, False, False, False, False, False]
    >>> [is_loss(k) for k in ("non_padding_fraction/loss_weights",)]
    [False]
    """
    return bool(_LOSS.search(key)) and not _NOT_A_LOSS.search(key)


def is_evaluation(key: str) -> bool:
    """Whether a key names something measured on held-out data.

    Examples
    --------
    >>> [is_evaluation(k) for k in ("eval/loss", "val_loss", "val/.dclm_loss", "train/loss", "interval_loss", "loss")]
    [True, True, True, False, False, False]
    """
    return bool(_EVALUATION.search(key))


def is_context(key: str) -> bool:
    """Whether a key tells where a run is (tokens, learning rate, phase), not how it does.

    Examples
    --------
    >>> [is_context(k) for k in ("lr", "tokens", "eval/loss")]
    [True, True, False]
    """
    return any(key.casefold() in names for names, _ in ROLES.values())


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The keys to read: named ones by role, and patterns of families (``eval/*/loss``).

    Parameters
    ----------
    named : mapping of str to str
        Role -> key of the log, as the user said.
    families : tuple of str
        Patterns with one ``*`` each, for the long tables.

    Raises
    ------
    UsageError
        If a name is no role.

    Examples
    --------
    >>> keys = Keys(named={"loss": "eval/loss"}, families=("eval/*/bpb",))
    >>> [keys.wanted(k) for k in ("eval/loss", "train/loss", "eval/c4/bpb", "lr", "grad_norm")]
    [True, False, True, True, False]
    >>> Keys().find("tokens", ["throughput/total_tokens", "loss"])
    'throughput/total_tokens'
    """

    named: Mapping[str, str] = field(default_factory=dict)
    families: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for role, key in self.named.items():
            if role != "loss" and role not in ROLES:
                fix = f"state {role} in the table of runs, --runs" if role in FACTS else "name one of them"
                roles = ", ".join(["loss", *ROLES])
                raise UsageError(f"--map {role}={key}: {role} is no role of a key in logs ({roles}): {fix}")

    def wanted(self, key: str) -> bool:
        """Whether a value under this key can matter; readers skip the others."""
        if key in self.named.values() or any(fnmatchcase(key, family) for family in self.families):
            return True
        folded = key.casefold()
        if any(folded in names for role, (names, _) in ROLES.items() if role not in self.named):
            return True
        return "loss" not in self.named and is_loss(key)

    def find(self, role: str, keys: Iterable[str]) -> str | None:
        """Return the key that plays a role (not the loss) among those of a log; None if there is none."""
        present = list(keys)
        if role in self.named:
            return self.named[role] if self.named[role] in present else None
        by_name = {key.casefold(): key for key in reversed(present)}
        return next((by_name[name] for name in ROLES[role][0] if name in by_name), None)


def choose_loss(keys: Keys, present: Iterable[str], units: Mapping[str, str]) -> tuple[str, list[Note]]:
    """Return the key of the evaluation loss; the only one, or the one that was named.

    Parameters
    ----------
    keys : Keys
        What was named.
    present : iterable of str
        The keys of all logs.
    units : mapping of str to str
        A stated unit of the loss lets perplexities and bits stand for it.

    Returns
    -------
    key : str
        The key.
    notes : list of Note
        Which was taken, if it was not named.

    Raises
    ------
    IngestError
        If there are several, or none: names them and the flag.

    Examples
    --------
    >>> choose_loss(Keys(), ["train/loss", "eval/loss", "lr"], {})[0]
    'eval/loss'
    """
    there = sorted({key for key in present if is_loss(key)})
    if "loss" in keys.named:
        if keys.named["loss"] in set(present):
            return keys.named["loss"], []
        raise IngestError(
            f"no log has the key {keys.named['loss']} (--map loss): leave --map loss out to see which losses there are"
        )
    nats = [key for key in there if not _OTHER_UNIT.search(key)]
    evaluations = [key for key in nats if is_evaluation(key)]
    others = [key for key in there if is_evaluation(key)]
    if not evaluations and others:
        raise IngestError(
            f"no evaluation loss in nats per token in the logs; there are {_shown(others)}: name one with --map "
            "loss=KEY and its unit with --unit loss=ppl or loss=bits"
        )
    best = evaluations or nats
    if len(best) == 1:
        kind = (
            "the only evaluation loss of the logs"
            if evaluations
            else "no other is logged, and it is not named as one of held-out data"
        )
        return best[0], [(info if evaluations else warning)("loss_key", f"{best[0]} is taken: {kind}")]
    if best:
        raise IngestError(f"{len(best)} keys may be the loss ({_shown(best)}): name one with --map loss=KEY")
    if there:
        fix = "name it with --map loss=KEY and its unit with --unit loss=ppl or loss=bits"
        raise IngestError(f"no loss in nats per token in the logs; there are {_shown(there)}: {fix}")
    raise IngestError("no loss in the logs: no key is named like one; name it with --map loss=KEY")


def _shown(keys: list[str]) -> str:
    return ", ".join(keys[:12]) + (f", and {len(keys) - 12} more" if len(keys) > 12 else "")
