"""Conventions of counting FLOPs: what each includes, and how far a token is taken to attend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from smelt_scaling.accounting.ledger import Kind, Ledger, Term
from smelt_scaling.accounting.lengths import Lengths
from smelt_scaling.errors import UsageError

__all__ = ["CONVENTIONS", "Convention", "flops_of_term", "flops_per_token", "get_convention"]

#: Training costs a forward pass and a backward pass of twice its operations.
TRAINING = 3


@dataclass(frozen=True, kw_only=True)
class Convention:
    """How FLOPs per token are counted.

    Parameters
    ----------
    name : str
        What it is called here.
    counts : frozenset of str
        Kinds of terms that it counts; see `smelt_scaling.accounting.ledger.KINDS`.
    causal : bool
        Whether scores behind the mask are left out.
    over : {"documents", "sequence", "nothing"}
        What a token attends to: its document at the mean length, the whole training sequence, or scores not counted.
    softmax : int
        Operations per score of the softmax.
    looped : bool
        Whether every visit of a looped layer counts.
    includes : str
        The same in words.
    source : str
        Where it is defined.
    """

    name: str
    counts: frozenset[Kind]
    causal: bool
    over: Literal["documents", "sequence", "nothing"]
    includes: str
    source: str
    softmax: int = 0
    looped: bool = True


_MATRICES: frozenset[Kind] = frozenset({"projection", "ffn", "expert", "shared"})

#: Every convention by name.
CONVENTIONS = {
    one.name: one
    for one in (
        Convention(
            name="smelt",
            counts=_MATRICES | {"scores", "router"},
            causal=True,
            over="documents",
            includes="matrices and router at every visit, half of the scores of a document of mean length; no head",
            source="inferred from the SMELT paper's tables, which it reproduces to their last digit",
        ),
        Convention(
            name="megatron",
            counts=_MATRICES | {"scores", "head"},
            causal=True,
            over="sequence",
            includes="matrices and head, half of the scores of a whole sequence; no router",
            source="Megatron-LM, megatron/training/training.py, num_floating_point_operations",
        ),
        Convention(
            name="palm",
            counts=_MATRICES | {"scores", "router", "head"},
            causal=False,
            over="sequence",
            includes="matrices, router and head, all scores of a whole sequence",
            source="Chowdhery et al. 2022, PaLM, appendix B",
        ),
        Convention(
            name="torchtitan",
            counts=_MATRICES | {"scores", "router", "head", "norm", "bias"},
            causal=False,
            over="sequence",
            includes="every active parameter but the input embedding, all scores of a whole sequence",
            source="torchtitan, torchtitan/models/utils.py",
        ),
        Convention(
            name="chinchilla",
            counts=_MATRICES | {"scores"},
            causal=False,
            over="sequence",
            softmax=3,
            includes="matrices, all scores of a whole sequence and their softmax; no embedding, no head",
            source="Hoffmann et al. 2022, appendix F and table A4",
        ),
        Convention(
            name="6n",
            counts=_MATRICES | {"position", "router", "norm", "bias"},
            causal=False,
            over="nothing",
            looped=False,
            includes="6 per active parameter without embedding and head, a looped layer once; no scores",
            source="Kaplan et al. 2020, section 2.1",
        ),
    )
}


def get_convention(name: str | Convention) -> Convention:
    """Return a convention by name.

    Raises
    ------
    UsageError
        For an unknown name.
    """
    if isinstance(name, Convention):
        return name
    if name not in CONVENTIONS:
        raise UsageError(f"convention {name!r} is unknown; choose from {', '.join(CONVENTIONS)}")
    return CONVENTIONS[name]


def flops_of_term(term: Term, convention: Convention, lengths: Lengths) -> float:
    """Return the forward FLOPs of one term, per token.

    Parameters
    ----------
    term : Term
        A line of a ledger.
    convention : Convention
        What counts.
    lengths : Lengths
        What a token attends to: documents, or one sequence.
    """
    if term.kind not in convention.counts:
        return 0.0
    weights = 2.0 * (term.executed if convention.looped else term.active)
    if term.kind != "scores" or convention.over == "nothing":
        return weights
    attended = lengths.attended(term.window, causal=convention.causal)
    return weights + (2.0 * term.scores + convention.softmax * term.softmax) * attended


def flops_per_token(ledger: Ledger, convention: str | Convention, lengths: Lengths) -> float:
    """Return the training FLOPs of a model, per token: three times those of its forward pass.

    Examples
    --------
    The SMELT paper's baseline of 200M active parameters at 95 % sparsity, printed as 1.33e9:

    >>> from smelt_scaling.accounting.config import Experts, ModelConfig
    >>> from smelt_scaling.accounting.ledger import make_ledger
    >>> config = ModelConfig(hidden=1280, layers=12, heads=10, kv_heads=2, head_dim=128,
    ...                      experts=Experts(count=192, active=8, width=432))
    >>> flops_per_token(make_ledger(config), "smelt", Lengths.of(784))
    1328578560.0
    """
    rule = get_convention(convention)
    return TRAINING * sum(flops_of_term(term, rule, lengths) for term in ledger.terms)
