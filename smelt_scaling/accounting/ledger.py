"""The ledger of a model: every term with what it stores, what it multiplies and what it caches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from smelt_scaling.accounting.config import FFN_MATRICES, ModelConfig

__all__ = ["KINDS", "Ledger", "Term", "make_ledger"]

Kind = Literal[
    "projection",
    "scores",
    "position",
    "ffn",
    "router",
    "expert",
    "shared",
    "norm",
    "bias",
    "embedding",
    "head",
]

#: Kinds of terms, in the order in which a ledger lists them.
KINDS: tuple[Kind, ...] = (
    "projection",
    "scores",
    "position",
    "router",
    "expert",
    "shared",
    "ffn",
    "norm",
    "bias",
    "embedding",
    "head",
)


@dataclass(frozen=True, kw_only=True)
class Term:
    """One line of a ledger, summed over layers.

    Parameters
    ----------
    kind : str
        What it is for a convention; see `KINDS`.
    name : str
        What it is for a reader.
    parameters, active : int
        Stored parameters, and those that one token uses; of a looped layer once.
    executed : int
        Parameters that one token uses, every visit counted: multiply-accumulate operations of a matrix.
    scores : int
        Multiply-accumulate operations per token and attended token, every visit counted.
    softmax : int
        Heads that take a softmax, every visit counted.
    window : int
        Attention window of these scores; 0 for none.
    cached : int
        Elements of the key-value cache per token, every visit counted.
    """

    kind: Kind
    name: str
    parameters: int = 0
    active: int = 0
    executed: int = 0
    scores: int = 0
    softmax: int = 0
    window: int = 0
    cached: int = 0


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """All terms of a model.

    Parameters
    ----------
    config : ModelConfig
        The model.
    terms : tuple of Term
        One per kind and name.
    """

    config: ModelConfig
    terms: tuple[Term, ...]

    def parameters(self, *, embedding: Literal["none", "output", "all"] = "none") -> int:
        """Return stored parameters: without embedding and head, with the head, or with both.

        A head that is the embedding counts once.
        """
        return sum(term.parameters for term in self.terms if _counted(term, embedding, self.config.tied))

    def active(self, *, embedding: Literal["none", "output", "all"] = "none") -> int:
        """Return parameters that one token uses, those of a looped layer once."""
        return sum(term.active for term in self.terms if _counted(term, embedding, self.config.tied))

    @property
    def cached(self) -> int:
        """Elements of the key-value cache per token of full attention, every visit of a looped layer counted."""
        return sum(term.cached for term in self.terms)


def _counted(term: Term, embedding: str, tied: bool) -> bool:
    """Say whether a term belongs to a count of parameters."""
    if term.kind == "head":
        return embedding != "none"
    if term.kind == "embedding":
        return embedding == "all" or (embedding == "output" and tied and term.name == "embedding")
    return True


def make_ledger(config: ModelConfig) -> Ledger:
    """Write the ledger of a model.

    Examples
    --------
    The SMELT paper's baseline of 200M active parameters at 95 % sparsity, 3.87 B without embeddings:

    >>> from smelt_scaling.accounting.config import Experts
    >>> config = ModelConfig(hidden=1280, layers=12, heads=10, kv_heads=2, head_dim=128,
    ...                      experts=Experts(count=192, active=8, width=432))
    >>> ledger = make_ledger(config)
    >>> ledger.parameters(), ledger.active(), ledger.cached
    (3872226560, 209419520, 6144)
    """
    layers = Counter(
        (visits, layer in config.sparse_layers, config.windows[layer] if config.windows else 0)
        for layer, visits in enumerate(config.visits)
    )
    totals: dict[tuple[Kind, str, int], Term] = {}
    for (visits, sparse, window), count in layers.items():
        block = _experts(config) if sparse else _dense(config)
        for term in (*_attention(config, window), *block, *_norms(config)):
            key = (term.kind, term.name, term.window)
            totals[key] = _plus(totals.get(key), term, count, visits)
    for term in _outside(config):
        totals[term.kind, term.name, 0] = term
    ordered = sorted(totals.values(), key=lambda term: KINDS.index(term.kind))
    return Ledger(config=config, terms=tuple(ordered))


def _plus(total: Term | None, term: Term, layers: int, visits: int) -> Term:
    """Add equal layers to a term; what runs is counted at every visit."""
    before = total or Term(kind=term.kind, name=term.name, window=term.window)
    runs = layers * visits
    return Term(
        kind=term.kind,
        name=term.name,
        window=term.window,
        parameters=before.parameters + layers * term.parameters,
        active=before.active + layers * term.active,
        executed=before.executed + runs * term.executed,
        scores=before.scores + runs * term.scores,
        softmax=before.softmax + runs * term.softmax,
        cached=before.cached + runs * term.cached,
    )


def _weights(kind: Kind, name: str, size: int, active: int | None = None) -> Term:
    """Return a term of stored weights, all of which a token uses unless it is said otherwise."""
    used = size if active is None else active
    return Term(kind=kind, name=name, parameters=size, active=used, executed=used)


def _attention(config: ModelConfig, window: int) -> Iterator[Term]:
    """Yield what attention of one layer holds."""
    hidden, heads = config.hidden, config.heads
    if config.latent is None:
        q, kv = config.query_width, config.key_value_width
        yield _weights("projection", "queries and output", 2 * hidden * q)
        yield _weights("projection", "keys and values", 2 * hidden * kv)
        yield Term(kind="scores", name="scores", scores=2 * q, softmax=heads, window=window, cached=2 * kv)
        if config.qk_norm != "none":
            gains = 2 * config.head_dim if config.qk_norm == "head" else q + kv
            yield _weights("norm", "queries and keys", gains)
        if config.bias != "none":
            output = hidden if config.bias != "qkv" else 0
            yield _weights("bias", "attention", q + 2 * kv + output)
    else:
        yield from _latent(config, window)
    if config.relative_positions:
        yield _weights("position", "relative positions", hidden * config.query_width + 2 * config.query_width)
    if config.sinks:
        yield _weights("bias", "sinks", heads)


def _latent(config: ModelConfig, window: int) -> Iterator[Term]:
    """Yield what latent attention of one layer holds (DeepSeek-V2, section 2.1)."""
    assert config.latent is not None
    hidden, heads, latent = config.hidden, config.heads, config.latent
    query = config.head_dim + latent.rope_dim
    down, up = latent.kv_rank + latent.rope_dim, config.head_dim + latent.value_dim
    queries = (
        hidden * latent.q_rank + latent.q_rank * heads * query if latent.q_rank else hidden * heads * query
    )
    yield _weights("projection", "queries and output", queries + heads * latent.value_dim * hidden)
    yield _weights("projection", "keys and values", hidden * down + latent.kv_rank * heads * up)
    yield Term(
        kind="scores",
        name="scores",
        scores=heads * (query + latent.value_dim),
        softmax=heads,
        window=window,
        cached=down,
    )
    yield _weights("norm", "latent ranks", latent.kv_rank + latent.q_rank)


def _dense(config: ModelConfig) -> Iterator[Term]:
    """Yield the dense feed-forward block of one layer."""
    matrices = FFN_MATRICES[config.ffn]
    yield _weights("ffn", "feed-forward", matrices * config.hidden * config.d_ff)
    if config.bias == "all":
        yield _weights("bias", "feed-forward", (matrices - 1) * config.d_ff + config.hidden)


def _experts(config: ModelConfig) -> Iterator[Term]:
    """Yield router and experts of one layer."""
    assert config.experts is not None
    experts, hidden, matrices = config.experts, config.hidden, FFN_MATRICES[config.ffn]
    one = matrices * hidden * experts.width
    yield _weights("router", "router", hidden * experts.count)
    yield _weights("expert", "routed experts", experts.count * one, experts.active * one)
    if experts.shared_width:
        yield _weights("shared", "shared experts", matrices * hidden * experts.shared_width)
    if experts.shared_gate:
        yield _weights("shared", "shared gate", hidden)
    if experts.router_bias:
        yield _weights("bias", "router", experts.count)
    if experts.expert_bias:
        bias = (matrices - 1) * experts.width + hidden
        yield _weights("bias", "routed experts", experts.count * bias, experts.active * bias)


def _norms(config: ModelConfig) -> Iterator[Term]:
    """Yield the normalisations of the residual stream in one layer."""
    if config.norms_per_layer:
        yield _weights("norm", "residual stream", config.norms_per_layer * _norm_size(config))


def _outside(config: ModelConfig) -> Iterator[Term]:
    """Yield what stands before and behind the layers; looking an embedding up multiplies nothing."""
    if config.final_norm:
        yield _weights("norm", "final", _norm_size(config))
    size = config.vocab * config.hidden
    if config.vocab:
        yield Term(kind="embedding", name="embedding", parameters=size, active=size)
        own = 0 if config.tied else size
        yield Term(kind="head", name="head", parameters=own, active=own, executed=size)
    if config.positions:
        learned = config.positions * config.hidden
        yield Term(kind="embedding", name="positions", parameters=learned, active=learned)


def _norm_size(config: ModelConfig) -> int:
    return config.hidden * (2 if config.norm == "layer" else 1)
