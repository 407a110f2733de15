"""Configurations of Hugging Face models, and how many parameters and FLOPs transformers and torch count for them.

Dimensions of published models are those of their public ``config.json``; the tiny ones exercise every family. Models
are made on torch's meta device, which allocates nothing; FLOPs are counted by running tiny ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Tokens that the tiny models are run on.
LENGTH = 24


def _moe(kind: str, **rest: Any) -> dict[str, Any]:
    return {"model_type": kind, **rest}


#: Published models -> what their ``config.json`` says of dimensions.
PUBLISHED: dict[str, dict[str, Any]] = {
    "Mixtral-8x7B": _moe(
        "mixtral",
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        num_local_experts=8,
        num_experts_per_tok=2,
        vocab_size=32000,
    ),
    "OLMoE-1B-7B": _moe(
        "olmoe",
        hidden_size=2048,
        intermediate_size=1024,
        num_hidden_layers=16,
        num_attention_heads=16,
        num_key_value_heads=16,
        num_experts=64,
        num_experts_per_tok=8,
        vocab_size=50304,
    ),
    "Qwen3-30B-A3B": _moe(
        "qwen3_moe",
        hidden_size=2048,
        moe_intermediate_size=768,
        intermediate_size=6144,
        num_hidden_layers=48,
        num_attention_heads=32,
        num_key_value_heads=4,
        head_dim=128,
        num_experts=128,
        num_experts_per_tok=8,
        vocab_size=151936,
    ),
    "Qwen3-235B-A22B": _moe(
        "qwen3_moe",
        hidden_size=4096,
        moe_intermediate_size=1536,
        intermediate_size=12288,
        num_hidden_layers=94,
        num_attention_heads=64,
        num_key_value_heads=4,
        head_dim=128,
        num_experts=128,
        num_experts_per_tok=8,
        vocab_size=151936,
    ),
    "Qwen1.5-MoE-A2.7B": _moe(
        "qwen2_moe",
        hidden_size=2048,
        moe_intermediate_size=1408,
        intermediate_size=5632,
        shared_expert_intermediate_size=5632,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=16,
        num_experts=60,
        num_experts_per_tok=4,
        vocab_size=151936,
    ),
    "DeepSeek-V2": _moe(
        "deepseek_v2",
        hidden_size=5120,
        moe_intermediate_size=1536,
        intermediate_size=12288,
        num_hidden_layers=60,
        num_attention_heads=128,
        num_key_value_heads=128,
        kv_lora_rank=512,
        q_lora_rank=1536,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        n_routed_experts=160,
        n_shared_experts=2,
        num_experts_per_tok=6,
        first_k_dense_replace=1,
        vocab_size=102400,
    ),
    "DeepSeek-V2-Lite": _moe(
        "deepseek_v2",
        hidden_size=2048,
        moe_intermediate_size=1408,
        intermediate_size=10944,
        num_hidden_layers=27,
        num_attention_heads=16,
        num_key_value_heads=16,
        kv_lora_rank=512,
        q_lora_rank=None,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        n_routed_experts=64,
        n_shared_experts=2,
        num_experts_per_tok=6,
        first_k_dense_replace=1,
        vocab_size=102400,
    ),
    "DeepSeek-V3": _moe(
        "deepseek_v3",
        hidden_size=7168,
        moe_intermediate_size=2048,
        intermediate_size=18432,
        num_hidden_layers=61,
        num_attention_heads=128,
        num_key_value_heads=128,
        kv_lora_rank=512,
        q_lora_rank=1536,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        n_routed_experts=256,
        n_shared_experts=1,
        num_experts_per_tok=8,
        first_k_dense_replace=3,
        vocab_size=129280,
    ),
    "gpt-oss-120b": _moe(
        "gpt_oss",
        hidden_size=2880,
        intermediate_size=2880,
        num_hidden_layers=36,
        num_attention_heads=64,
        num_key_value_heads=8,
        head_dim=64,
        num_local_experts=128,
        num_experts_per_tok=4,
        vocab_size=201088,
        attention_bias=True,
        sliding_window=128,
    ),
    "gpt-oss-20b": _moe(
        "gpt_oss",
        hidden_size=2880,
        intermediate_size=2880,
        num_hidden_layers=24,
        num_attention_heads=64,
        num_key_value_heads=8,
        head_dim=64,
        num_local_experts=32,
        num_experts_per_tok=4,
        vocab_size=201088,
        attention_bias=True,
        sliding_window=128,
    ),
    "Llama-3.1-8B": _moe(
        "llama",
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=128256,
    ),
    "GPT-2 small": _moe("gpt2", n_embd=768, n_layer=12, n_head=12, n_positions=1024, vocab_size=50257),
}

_DENSE = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 128,
}
_WIDE = {**_DENSE, "head_dim": 16}
_LATENT = {
    **_DENSE,
    "num_key_value_heads": 8,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
}
#: One tiny model per family.
TINY: dict[str, dict[str, Any]] = {
    "llama": _DENSE,
    "mistral": {**_DENSE, "sliding_window": None},
    "qwen2": _DENSE,
    "qwen3": _WIDE,
    "olmo": _DENSE,
    "olmo2": _DENSE,
    "gemma2": _WIDE,
    "gemma3_text": _WIDE,
    "gpt2": {"n_embd": 64, "n_layer": 4, "n_head": 8, "n_positions": 128, "vocab_size": 256},
    "gpt_neox": {
        **_DENSE,
        "num_key_value_heads": 8,  # the family has no groups of queries, and no such key
        "intermediate_size": 256,
        "tie_word_embeddings": False,
    },
    "mixtral": {**_DENSE, "num_local_experts": 8, "num_experts_per_tok": 2},
    "olmoe": {**_DENSE, "num_experts": 8, "num_experts_per_tok": 2},
    "qwen2_moe": {
        **_DENSE,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 48,
    },
    "qwen3_moe": {
        **_WIDE,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "mlp_only_layers": [1],
    },
    "glm4_moe": {
        **_WIDE,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "first_k_dense_replace": 1,
        "use_qk_norm": True,
        "attention_bias": True,
    },
    "gpt_oss": {
        **_WIDE,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "attention_bias": True,
        "sliding_window": 32,
    },
    "deepseek_v2": {**_LATENT, "q_lora_rank": None, "n_shared_experts": 2},
    "deepseek_v3": {**_LATENT, "q_lora_rank": 24, "n_shared_experts": 1, "n_group": 2, "topk_group": 1},
}
#: Special tokens lie within the tiny vocabulary.
_TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def make(folder: Path) -> None:
    """Write every configuration."""
    for name, record in PUBLISHED.items():
        (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")
    for kind, record in TINY.items():
        text = json.dumps({"model_type": kind, **record, **_TOKENS})
        (folder / f"tiny {kind}.json").write_text(text, encoding="utf-8")


def answers(folder: Path) -> dict[str, dict[str, int]]:
    """Return what transformers and torch count for every configuration in a folder."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode
    from transformers import AutoConfig, AutoModelForCausalLM

    found: dict[str, dict[str, int]] = {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        config = AutoConfig.for_model(record.pop("model_type"), **record)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        found[path.stem] = {"parameters": sum(one.numel() for one in model.parameters())}
        if path.stem.startswith("tiny "):
            # what is counted are matrices; fused kernels would hide some of them
            config._attn_implementation = "eager"
            config._experts_implementation = "eager"
            real = AutoModelForCausalLM.from_config(config).eval()
            with FlopCounterMode(display=False) as counter, torch.no_grad():
                real(torch.arange(LENGTH)[None])
            found[path.stem]["forward_flops"] = counter.get_total_flops()
    return found
