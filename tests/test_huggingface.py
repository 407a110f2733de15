"""Configurations of Hugging Face: what they leave unsaid, what they get wrong, what is not counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smelt_scaling.accounting.huggingface import from_huggingface, read_huggingface
from smelt_scaling.accounting.ledger import make_ledger
from smelt_scaling.errors import DataError

RECORDED = Path(__file__).parent / "oracle" / "recorded" / "transformers"


def record(name: str, **change: Any) -> dict[str, Any]:
    found = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8")) | change
    return {key: value for key, value in found.items() if value != "absent"}


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("tiny llama", {"model_type": "rwkv"}, "model_type 'rwkv' is not known; known are llama"),
        ("tiny llama", {"hidden_size": "absent"}, "hidden_size: missing; model_type llama needs it"),
        ("tiny llama", {"vocab_size": "absent"}, "vocab_size: missing"),
        ("tiny llama", {"num_hidden_layers": 4.5}, "num_hidden_layers 4.5: must be a whole number"),
        ("tiny llama", {"num_attention_heads": 7}, "num_attention_heads 7: does not divide hidden_size 64"),
        ("tiny llama", {"num_key_value_heads": 3}, "kv_heads 3: must divide heads 8"),
        ("tiny llama", {"mlp_bias": True}, "mlp_bias true beside attention_bias false"),
        ("tiny qwen3", {"head_dim": "absent"}, "head_dim: missing; model_type qwen3 needs it"),
        ("tiny mistral", {"num_key_value_heads": "absent"}, "num_key_value_heads: missing"),
        ("tiny mixtral", {"num_experts_per_tok": "absent"}, "num_experts_per_tok: missing"),
        (
            "tiny mixtral",
            {"num_experts_per_tok": 9},
            "experts.active 9: must be from 1 to the count of experts, 8",
        ),
        ("tiny mixtral", {"num_local_experts": "absent"}, "num_local_experts: missing"),
        ("tiny qwen3_moe", {"decoder_sparse_step": 0}, "decoder_sparse_step 0"),
        ("tiny qwen3_moe", {"mlp_only_layers": [9]}, "mlp_only_layers holds 9: layers are 0 to 3"),
        ("tiny deepseek_v3", {"attention_bias": True}, "attention_bias true: biases of latent attention"),
        ("tiny gpt_oss", {"layer_types": ["full_attention"]}, "layer_types: 1 entries for 4 layers"),
        ("tiny gpt2", {"n_embd": "absent"}, "n_embd: missing"),
        ("tiny mistral", {"sliding_window": "4k"}, "sliding_window '4k': must be a whole number"),
        ("tiny deepseek_v2", {"moe_layer_freq": 0}, "moe_layer_freq 0: must be 1 or more"),
    ],
)
def test_one_line_names_the_key(name: str, change: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError) as refused:
        from_huggingface(record(name, **change), source="model/config.json")
    assert said in str(refused.value)
    assert str(refused.value).startswith("model/config.json: ")
    assert "\n" not in str(refused.value)


def test_an_explicit_null_is_the_usual_rule() -> None:
    """As the library reads it: as many key-value heads as heads, and a head as wide as its share."""
    explicit = from_huggingface(record("tiny llama", num_key_value_heads=None, head_dim=None))[0]
    assert (explicit.kv_heads, explicit.head_dim) == (8, 8)


def test_experts_under_another_version_of_their_name() -> None:
    renamed = record("tiny qwen3_moe", num_experts="absent", num_local_experts=8)
    assert from_huggingface(renamed)[0] == from_huggingface(record("tiny qwen3_moe"))[0]


@pytest.mark.parametrize(
    ("name", "change", "windows"),
    [
        ("tiny gpt_oss", {}, (32, 0, 32, 0)),
        ("tiny gpt_oss", {"layer_types": ["full_attention", "sliding_attention"] * 2}, (0, 32, 0, 32)),
        # configurations on the hub that older versions wrote; Gemma 3: five local layers to a global one
        ("tiny gemma2", {"layer_types": "absent", "sliding_window": 64}, (64, 0, 64, 0)),
        (
            "tiny gemma3_text",
            {"layer_types": "absent", "sliding_window": 64, "num_hidden_layers": 7},
            (64, 64, 64, 64, 64, 0, 64),
        ),
        (
            "tiny gemma3_text",
            {"layer_types": "absent", "sliding_window": 64, "sliding_window_pattern": 3},
            (64, 64, 0, 64),
        ),
        ("tiny mistral", {"sliding_window": 64}, (64,) * 4),
        ("tiny qwen2", {"sliding_window": 64, "max_window_layers": 3}, ()),
        (
            "tiny qwen2",
            {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 3},
            (0, 0, 0, 64),
        ),
    ],
)
def test_windows(name: str, change: dict[str, Any], windows: tuple[int, ...]) -> None:
    assert from_huggingface(record(name, **change))[0].windows == windows


def test_every_other_layer_holds_experts_from_the_first_or_from_the_second() -> None:
    """DeepSeek: layer_idx % moe_layer_freq == 0; Qwen: (layer_idx + 1) % decoder_sparse_step == 0."""
    deepseek, _ = from_huggingface(record("tiny deepseek_v2", first_k_dense_replace=1, moe_layer_freq=2))
    assert sorted(deepseek.sparse_layers) == [i for i in range(deepseek.layers) if i >= 1 and i % 2 == 0]
    qwen, _ = from_huggingface(record("tiny qwen2_moe", decoder_sparse_step=2, mlp_only_layers=[]))
    assert sorted(qwen.sparse_layers) == [i for i in range(qwen.layers) if (i + 1) % 2 == 0]


def test_what_is_not_counted_is_said() -> None:
    text = record("tiny gemma3_text")
    _, notes = from_huggingface(
        {"model_type": "gemma3_text", "text_config": text, "vision_config": {"hidden_size": 8}}
    )
    (note,) = notes
    assert note.code == "not_counted"
    assert "vision_config" in note.message


def test_tied_embeddings_count_once() -> None:
    tied = make_ledger(from_huggingface(record("tiny llama", tie_word_embeddings=True))[0])
    loose = make_ledger(from_huggingface(record("tiny llama"))[0])
    assert loose.parameters(embedding="all") - tied.parameters(embedding="all") == 256 * 64
    assert tied.parameters(embedding="output") == tied.parameters(embedding="all")


@pytest.mark.parametrize(
    ("text", "said"), [("{", "is not JSON"), ("[1]", "holds no JSON object"), (None, "cannot be read")]
)
def test_files_that_are_no_configuration(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match=said):
        read_huggingface(path)
