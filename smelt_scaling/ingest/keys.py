"""Which key of a log plays which role: step, tokens, learning rate, loss, and the families of long tables.

Trainers name the same thing in many ways. A role that only one key can play is found by name; where several could,
the user names it (``--map loss=eval/loss``): a key is never picked by its order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

__all__ = ["ROLES", "Keys", "is_evaluation", "is_loss"]

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
    r"(loss[ _]scale|aux|z[_-]?loss|balance|router|load|lower_95|upper_95|loss_(max|std|se|scale))",
    re.IGNORECASE,
)
_EVALUATION = re.compile(
    r"(^|[/_\-. ])(e?val|evals?|valid|validation|test|dev|held_?out|evaluation|paloma)($|[/_\-. ])",
    re.IGNORECASE,
)


def is_loss(key: str) -> bool:
    """Whether a key names a loss (or a perplexity, or bits per byte).

    Examples
    --------
    >>> [is_loss(k) for k in ("eval/loss", "val_loss", "lm loss", "eval/c4/CrossEntropyLoss")]
    [True, True, True, True]
    >>> [is_loss(k) for k in ("loss scale", "z_loss", "acc")]
    [False, False, False]
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


@dataclass(frozen=True, kw_only=True)
class Keys:
    """The keys to read: named ones by role, and patterns of families (``eval/*/loss``).

    Parameters
    ----------
    named : mapping of str to str
        Role -> key of the log, as the user said.
    families : tuple of str
        Patterns with one ``*`` each, for the long tables.

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
