"""A ``config.json`` of Hugging Face transformers as a `ModelConfig`.

What a configuration leaves unsaid is what its class fixes in code: biases, normalisation of queries and keys, kind of
feed-forward block. These are declared per ``model_type`` below. Defaults of the library are not used for dimensions,
since they are not those of the models that carry the name; a missing dimension is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from smelt_scaling.accounting.config import Experts, LatentAttention, ModelConfig
from smelt_scaling.errors import DataError, Note, UsageError, info

__all__ = ["FAMILIES", "Family", "from_huggingface", "read_huggingface"]


@dataclass(frozen=True, kw_only=True)
class Family:
    """What the code of a model class fixes.

    Parameters
    ----------
    ffn, qk_norm, norm, norms_per_layer, final_norm, sinks
        As in `ModelConfig`.
    bias, bias_if : str
        Which projections have a bias as it stands, and where the configuration says ``attention_bias``.
    tied : bool
        Whether embedding and head are one where ``tie_word_embeddings`` is absent.
    experts, expert_width : str
        Keys that hold the number of experts and the width of one; empty for dense models.
    shared : str
        Key of the shared width, or of the number of shared experts (``n_...``).
    shared_gate, router_bias, expert_bias
        As in `Experts`.
    latent : bool
        Whether attention is latent.
    names : mapping
        Usual key -> this family's, where it differs.
    positions : bool
        Whether positions are learned.
    stated : tuple of str
        Keys for which the class has a number of its own, so that leaving one out does not mean the usual rule.
    windows : {"no", "all", "from", "pattern"}
        Layers with ``sliding_window`` where no ``layer_types`` says it: none, all, those from ``max_window_layers`` on
        if ``use_sliding_window``, or all but every ``sliding_window_pattern``-th.
    pattern : int
        The class's own ``sliding_window_pattern``, which most configurations leave out.
    """

    ffn: Literal["swiglu", "gelu"] = "swiglu"
    bias: Literal["none", "qkv", "attention", "all"] = "none"
    bias_if: Literal["none", "qkv", "attention", "all"] = "attention"
    qk_norm: Literal["none", "head", "full"] = "none"
    norm: Literal["rms", "layer"] = "rms"
    norms_per_layer: int = 2
    final_norm: bool = True
    tied: bool = False
    experts: str = ""
    expert_width: str = "moe_intermediate_size"
    shared: str = ""
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    sinks: bool = False
    latent: bool = False
    names: Mapping[str, str] | None = None
    positions: bool = False
    stated: tuple[str, ...] = ()
    windows: Literal["no", "all", "from", "pattern"] = "no"
    pattern: int = 2


_KV = ("num_key_value_heads",)
_KV_AND_HEAD = (*_KV, "head_dim")
_LATENT = Family(latent=True, experts="n_routed_experts", shared="n_shared_experts")
_GPT2_NAMES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
    "intermediate_size": "n_inner",
}

#: What each ``model_type`` fixes in code.
FAMILIES: dict[str, Family] = {
    "llama": Family(),
    "mistral": Family(windows="all", stated=_KV),
    "qwen2": Family(bias="qkv", windows="from", stated=_KV),
    "qwen3": Family(qk_norm="head", windows="from", stated=_KV_AND_HEAD),
    "olmo": Family(norms_per_layer=0, final_norm=False),
    "olmo2": Family(qk_norm="full"),
    "gemma2": Family(norms_per_layer=4, tied=True, windows="pattern", stated=_KV_AND_HEAD),
    "gemma3_text": Family(
        norms_per_layer=4, qk_norm="head", tied=True, windows="pattern", pattern=6, stated=_KV_AND_HEAD
    ),
    "gpt2": Family(ffn="gelu", bias="all", norm="layer", tied=True, names=_GPT2_NAMES, positions=True),
    "gpt_neox": Family(ffn="gelu", bias="all", norm="layer"),
    "mixtral": Family(
        experts="num_local_experts", expert_width="intermediate_size", windows="all", stated=_KV
    ),
    "olmoe": Family(experts="num_experts", expert_width="intermediate_size", qk_norm="full"),
    "qwen2_moe": Family(
        experts="num_experts",
        shared="shared_expert_intermediate_size",
        shared_gate=True,
        bias="qkv",
        windows="from",
        stated=_KV,
    ),
    "qwen3_moe": Family(experts="num_experts", qk_norm="head", windows="from", stated=_KV),
    "glm4_moe": Family(
        experts="n_routed_experts", shared="n_shared_experts", bias_if="qkv", stated=_KV_AND_HEAD
    ),
    "gpt_oss": Family(
        experts="num_local_experts",
        expert_width="intermediate_size",
        bias="attention",
        router_bias=True,
        expert_bias=True,
        sinks=True,
        windows="pattern",
        stated=_KV_AND_HEAD,
    ),
    "deepseek_v2": _LATENT,
    "deepseek_v3": _LATENT,
    "kimi_k2": _LATENT,
}

#: Names of the number of routed experts.
EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts")

#: Keys of things that are not counted -> what they are.
_NOT_COUNTED = {
    "num_nextn_predict_layers": "layers that predict further tokens",
    "vision_config": "an encoder of images",
    "audio_config": "an encoder of sound",
}


class _Keys:
    """The keys of one configuration, under the names of its family."""

    def __init__(self, record: Mapping[str, Any], family: Family, source: str) -> None:
        self.record, self.family, self.source = record, family, source

    def name(self, key: str) -> str:
        return (self.family.names or {}).get(key, key)

    def get(self, key: str, default: Any = None) -> Any:
        value = self.record.get(self.name(key))
        return default if value is None else value

    def count(self, key: str, default: int | None = None) -> int:
        """Return a whole number that must be there unless a default is given; an explicit null takes it always."""
        name = self.name(key)
        if key in EXPERT_COUNTS and name not in self.record:  # versions of the library rename it
            name = next((other for other in EXPERT_COUNTS if other in self.record), name)
        value = self.record.get(name)
        if value is None and not (key in self.family.stated and name not in self.record):
            value = default
        if value is None:
            raise DataError(
                f"{self.source}: {self.name(key)}: missing; model_type {self.record['model_type']} needs it"
            )
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise DataError(f"{self.source}: {self.name(key)} {value!r}: must be a whole number")
        return value


def read_huggingface(path: str | Path) -> tuple[ModelConfig, tuple[Note, ...]]:
    """Read a ``config.json``; see `from_huggingface`.

    Raises
    ------
    DataError
        If the file is no JSON object, or breaks a rule.
    """
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise DataError(f"{path}: is not JSON ({error}); give the config.json of a model") from error
    return from_huggingface(record, source=str(path))


def from_huggingface(
    record: Mapping[str, Any], *, source: str = "config.json"
) -> tuple[ModelConfig, tuple[Note, ...]]:
    """Take the dimensions of a Hugging Face configuration.

    Parameters
    ----------
    record : mapping
        The JSON object.
    source : str
        Its name, for messages.

    Returns
    -------
    ModelConfig
        The dimensions.
    tuple of Note
        What the configuration holds that is not counted.

    Raises
    ------
    DataError
        For an unknown ``model_type``, a missing key, or keys that contradict each other; it names the key.

    Examples
    --------
    >>> config, _ = from_huggingface({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
    ...     "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
    ...     "num_local_experts": 8, "num_experts_per_tok": 2})
    >>> from smelt_scaling.accounting.ledger import make_ledger
    >>> make_ledger(config).parameters(embedding="all")
    46702792704
    """
    if not isinstance(record, Mapping):
        raise DataError(f"{source}: holds no JSON object; give the config.json of a model")
    notes = [
        info("not_counted", f"{source}: {key}: {what} are not counted", 1)
        for key, what in _NOT_COUNTED.items()
        if record.get(key)
    ]
    if isinstance(record.get("text_config"), Mapping):
        record = {"model_type": record.get("model_type"), **record["text_config"]}
    kind = record.get("model_type")
    if kind not in FAMILIES:
        raise DataError(
            f"{source}: model_type {kind!r} is not known; known are {', '.join(FAMILIES)}; "
            "for any other write the dimensions as TOML (docs/budgets.md)"
        )
    family = FAMILIES[kind]
    keys = _Keys(record, family, source)
    hidden, heads = keys.count("hidden_size"), keys.count("num_attention_heads")
    layers = keys.count("num_hidden_layers")
    latent = _latent(keys) if family.latent else None
    experts = _experts(keys, layers) if family.experts else None
    dense = experts is None or bool(experts.dense_layers)
    try:
        config = ModelConfig(
            hidden=hidden,
            layers=layers,
            heads=heads,
            kv_heads=heads if latent else keys.count("num_key_value_heads", heads),
            head_dim=_head_dim(keys, hidden, heads),
            d_ff=_feed_forward(keys, hidden) if dense else 0,
            ffn=family.ffn,
            vocab=keys.count("vocab_size"),
            tied=bool(keys.get("tie_word_embeddings", family.tied)),
            experts=experts,
            latent=latent,
            windows=_windows(keys, layers),
            bias=_bias(keys),
            qk_norm=_qk_norm(keys),
            norm=family.norm,
            norms_per_layer=family.norms_per_layer,
            final_norm=family.final_norm,
            positions=keys.count("max_position_embeddings") if family.positions else 0,
            sinks=family.sinks,
            name=source,
        )
    except UsageError as error:  # dimensions that contradict each other are a fault of the file here
        raise DataError(str(error)) from error
    return config, tuple(notes)


def _head_dim(keys: _Keys, hidden: int, heads: int) -> int:
    if keys.family.latent:
        return keys.count("qk_nope_head_dim")
    if keys.get("head_dim") is not None or "head_dim" in keys.family.stated:
        return keys.count("head_dim")
    if not heads or hidden % heads:
        raise DataError(
            f"{keys.source}: {keys.name('num_attention_heads')} {heads}: does not divide "
            f"{keys.name('hidden_size')} {hidden}, and no head_dim says how wide a head is"
        )
    return hidden // heads


def _feed_forward(keys: _Keys, hidden: int) -> int:
    if keys.record["model_type"] == "gpt2":  # null there means four times the width
        return keys.count("intermediate_size", 4 * hidden)
    return keys.count("intermediate_size")


def _latent(keys: _Keys) -> LatentAttention:
    if keys.get("attention_bias"):
        raise DataError(
            f"{keys.source}: attention_bias true: biases of latent attention are not counted; remove it"
        )
    return LatentAttention(
        kv_rank=keys.count("kv_lora_rank"),
        q_rank=keys.count("q_lora_rank", 0),
        rope_dim=keys.count("qk_rope_head_dim"),
        value_dim=keys.count("v_head_dim"),
    )


def _experts(keys: _Keys, layers: int) -> Experts:
    family = keys.family
    count, width = keys.count(family.experts), keys.count(family.expert_width)
    shared = 0
    if family.shared:
        shared = keys.count(family.shared, 0) * (width if family.shared.startswith("n_") else 1)
    return Experts(
        count=count,
        active=keys.count("num_experts_per_tok"),
        width=width,
        shared_width=shared,
        shared_gate=family.shared_gate and bool(shared),
        router_bias=family.router_bias,
        expert_bias=family.expert_bias,
        dense_layers=_dense_layers(keys, layers),
    )


def _dense_layers(keys: _Keys, layers: int) -> tuple[int, ...]:
    """Return the layers without experts: the first few, named ones, and all but every n-th.

    ``decoder_sparse_step`` counts layers from 1, ``moe_layer_freq`` from 0.
    """
    first = keys.count("first_k_dense_replace", 0)
    named = keys.get("mlp_only_layers", ())
    if beyond := [layer for layer in named if not 0 <= layer < layers]:
        raise DataError(f"{keys.source}: mlp_only_layers holds {beyond[0]}: layers are 0 to {layers - 1}")
    step, freq = _period(keys, "decoder_sparse_step", 1), _period(keys, "moe_layer_freq", 1)
    return tuple(i for i in range(layers) if i < first or i in named or (i + 1) % step or i % freq)


def _period(keys: _Keys, key: str, default: int) -> int:
    if not (period := keys.count(key, default)):
        raise DataError(f"{keys.source}: {key} 0: must be 1 or more")
    return period


def _windows(keys: _Keys, layers: int) -> tuple[int, ...]:
    window = keys.count("sliding_window", 0)
    if not window:
        return ()
    kinds, rule = keys.get("layer_types"), keys.family.windows
    if kinds is not None:
        if len(kinds) != layers:
            raise DataError(f"{keys.source}: layer_types: {len(kinds)} entries for {layers} layers")
        seen = tuple(window if kind == "sliding_attention" else 0 for kind in kinds)
    elif rule == "all":
        seen = (window,) * layers
    elif rule == "from" and keys.get("use_sliding_window"):
        start = keys.count("max_window_layers")
        seen = tuple(window if i >= start else 0 for i in range(layers))
    elif rule == "pattern":
        every = _period(keys, "sliding_window_pattern", keys.family.pattern)
        seen = tuple(window if (i + 1) % every else 0 for i in range(layers))
    else:
        seen = ()
    return seen if any(seen) else ()


def _bias(keys: _Keys) -> Any:
    family = keys.family
    if keys.get("mlp_bias"):
        if not keys.get("attention_bias"):
            raise DataError(
                f"{keys.source}: mlp_bias true beside attention_bias false: not counted; use TOML"
            )
        return "all"
    if family.latent or family.bias != "none":
        return family.bias
    return family.bias_if if keys.get("attention_bias") else "none"


def _qk_norm(keys: _Keys) -> Any:
    if "use_qk_norm" in keys.record:
        return "head" if keys.record["use_qk_norm"] else "none"
    return keys.family.qk_norm
