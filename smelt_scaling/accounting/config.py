"""A transformer as far as budgets are concerned: what it stores, what it computes, what it caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from smelt_scaling.errors import UsageError

__all__ = ["Experts", "LatentAttention", "Loop", "ModelConfig"]

#: Matrices of a feed-forward block of each kind.
FFN_MATRICES = {"swiglu": 3, "gelu": 2}


@dataclass(frozen=True, kw_only=True)
class Loop:
    """A span of layers that runs several times.

    Parameters
    ----------
    first, last : int
        First and last physical layer of the span, counted from 0, both included.
    times : int
        Visits of each of its layers; 1 is no loop.
    """

    first: int
    last: int
    times: int

    @property
    def span(self) -> int:
        """Number of layers in the span."""
        return self.last - self.first + 1


@dataclass(frozen=True, kw_only=True)
class Experts:
    """The sparse feed-forward block of a mixture of experts.

    Parameters
    ----------
    count, active : int
        Routed experts of a layer, and those that one token visits.
    width : int
        Hidden width of one expert.
    shared_width : int
        Total hidden width of the experts that every token visits besides.
    shared_gate : bool
        Whether a learned scalar gate weighs them.
    router_bias, expert_bias : bool
        Whether the router, and every matrix of a routed expert, has a bias.
    dense_layers : tuple of int
        Layers, counted from 0, that hold a dense block in place of experts.
    """

    count: int
    active: int
    width: int
    shared_width: int = 0
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    dense_layers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: keys and values are cached as one short vector per token.

    Parameters
    ----------
    kv_rank, q_rank : int
        Ranks of the compressed keys and values, and of the compressed queries; 0 where queries are not compressed.
    rope_dim : int
        Width of the positional part of a query head; its key is shared by all heads.
    value_dim : int
        Width of a value head. The content part of a query head is `ModelConfig.head_dim` wide.
    """

    kv_rank: int
    rope_dim: int
    value_dim: int
    q_rank: int = 0


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Dimensions of a decoder-only transformer.

    Parameters
    ----------
    hidden, layers : int
        Width of the residual stream, and number of physical layers.
    heads, kv_heads, head_dim : int
        Query heads, key-value heads (fewer are grouped-query, one is multi-query attention), and their width.
    d_ff : int
        Hidden width of the dense feed-forward block; 0 if every layer holds experts.
    ffn : {"swiglu", "gelu"}
        Kind of every feed-forward block: three matrices or two.
    vocab : int
        Rows of the embedding; 0 leaves embedding and head out of everything.
    tied : bool
        Whether the head is the embedding.
    experts : Experts, optional
        For a mixture of experts.
    latent : LatentAttention, optional
        For latent attention; ``kv_heads`` is ``heads`` then.
    loop : Loop, optional
        Layers that run several times.
    windows : tuple of int
        Attention window of every layer, 0 for none; empty if no layer has one.
    bias : {"none", "qkv", "attention", "all"}
        Which projections have a bias: none, queries, keys and values, these and the output, or the feed-forward
        matrices of dense blocks as well.
    qk_norm : {"none", "head", "full"}
        Normalisation of queries and keys: none, one gain per position of a head, or one per position of all heads.
    norm : {"rms", "layer"}
        Gains only, or gains and biases.
    norms_per_layer : int
        Normalisations of the residual stream in a layer.
    final_norm : bool
        Whether another stands before the head.
    positions : int
        Learned position embeddings; 0 for none.
    relative_positions : bool
        Transformer-XL's relative positions: a matrix of keys and two biases in every layer.
    sinks : bool
        Whether every head holds a learned sink.
    name : str
        For messages.

    Raises
    ------
    UsageError
        If the dimensions contradict each other, naming the key.

    Examples
    --------
    >>> config = ModelConfig(hidden=64, layers=4, heads=4, kv_heads=2, head_dim=16, d_ff=128,
    ...                      loop=Loop(first=1, last=2, times=2))
    >>> config.visits
    (1, 2, 2, 1)
    >>> ModelConfig(hidden=64, layers=4, heads=4, kv_heads=3, head_dim=16, d_ff=128)
    Traceback (most recent call last):
        ...
    smelt_scaling.errors.UsageError: model: kv_heads 3: must divide heads 4, so that every group has as many queries
    """

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    d_ff: int = 0
    ffn: Literal["swiglu", "gelu"] = "swiglu"
    vocab: int = 0
    tied: bool = False
    experts: Experts | None = None
    latent: LatentAttention | None = None
    loop: Loop | None = None
    windows: tuple[int, ...] = ()
    bias: Literal["none", "qkv", "attention", "all"] = "none"
    qk_norm: Literal["none", "head", "full"] = "none"
    norm: Literal["rms", "layer"] = "rms"
    norms_per_layer: int = 2
    final_norm: bool = True
    positions: int = 0
    relative_positions: bool = False
    sinks: bool = False
    name: str = "model"

    def __post_init__(self) -> None:
        for key, least in _LEAST.items():
            _require_whole(self, key, least)
        for key, known in _CHOICES.items():
            if (value := getattr(self, key)) not in known:
                raise UsageError(f"{self.name}: {key} {value!r} is unknown; choose from {', '.join(known)}")
        if self.heads % self.kv_heads:
            raise self._wrong(
                "kv_heads",
                f"{self.kv_heads}: must divide heads {self.heads}, so that every group has as many queries",
            )
        if self.latent is not None and self.kv_heads != self.heads:
            raise self._wrong(
                "kv_heads", f"{self.kv_heads}: latent attention has as many as heads, {self.heads}"
            )
        self._check_experts()
        self._check_loop()
        if self.windows and (len(self.windows) != self.layers or min(self.windows) < 0):
            raise self._wrong(
                "windows", f"{len(self.windows)} values: one per layer is needed ({self.layers}), 0 for none"
            )

    def _check_experts(self) -> None:
        experts = self.experts
        if experts is None:
            if not self.d_ff:
                raise self._wrong("d_ff", "0: a model without experts needs a feed-forward width")
            return
        if not 1 <= experts.active <= experts.count:
            raise self._wrong(
                "experts.active", f"{experts.active}: must be from 1 to the count of experts, {experts.count}"
            )
        if experts.width < 1 or experts.shared_width < 0:
            raise self._wrong("experts.width", f"{experts.width}: widths must be positive")
        if experts.dense_layers:
            if not 0 <= min(experts.dense_layers) <= max(experts.dense_layers) < self.layers:
                raise self._wrong(
                    "experts.dense_layers", f"{max(experts.dense_layers)}: layers are 0 to {self.layers - 1}"
                )
            if not self.d_ff:
                raise self._wrong("d_ff", "0: the dense layers beside the experts need a feed-forward width")

    def _check_loop(self) -> None:
        loop = self.loop
        if loop is None:
            return
        if not 0 <= loop.first <= loop.last < self.layers:
            raise self._wrong(
                "loop", f"{loop.first} to {loop.last}: layers are 0 to {self.layers - 1}, first to last"
            )
        if loop.times < 1:
            raise self._wrong("loop.times", f"{loop.times}: must be 1 or more")

    def _wrong(self, key: str, rest: str) -> UsageError:
        return UsageError(f"{self.name}: {key} {rest}")

    @property
    def visits(self) -> tuple[int, ...]:
        """How often each physical layer runs."""
        loop = self.loop
        return tuple(
            loop.times if loop is not None and loop.first <= layer <= loop.last else 1
            for layer in range(self.layers)
        )

    @property
    def executed_layers(self) -> int:
        """Layers that a token passes, every visit of a looped one counted."""
        return sum(self.visits)

    @property
    def sparse_layers(self) -> frozenset[int]:
        """Layers that hold experts."""
        if self.experts is None:
            return frozenset()
        return frozenset(range(self.layers)) - frozenset(self.experts.dense_layers)

    @property
    def query_width(self) -> int:
        """Width of all queries of a token."""
        return self.heads * self.head_dim

    @property
    def key_value_width(self) -> int:
        """Width of all keys of a token, and of all its values."""
        return self.kv_heads * self.head_dim


#: Whole numbers of a configuration and the least each may be.
_LEAST = {
    "hidden": 1,
    "layers": 1,
    "heads": 1,
    "kv_heads": 1,
    "head_dim": 1,
    "d_ff": 0,
    "vocab": 0,
    "norms_per_layer": 0,
    "positions": 0,
}
_CHOICES = {
    "ffn": tuple(FFN_MATRICES),
    "bias": ("none", "qkv", "attention", "all"),
    "qk_norm": ("none", "head", "full"),
    "norm": ("rms", "layer"),
}


def _require_whole(config: ModelConfig, key: str, least: int) -> None:
    value = getattr(config, key)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{config.name}: {key} {value!r}: must be a whole number of {least} or more")
