"""Every sample of a log is claimed by one reader, and files that stand beside logs by none."""

from __future__ import annotations

import importlib
import inspect

import pytest

from smelt_scaling.ingest.events import FACTS
from smelt_scaling.ingest.readers import READERS, _wandb
from smelt_scaling.ingest.readers._stated import OF_RUNS

#: Folder of samples -> its reader.
OWNERS = {
    "hf_trainer_state": "hf_trainer",
    "levanter_wandb_summary": "wandb_summary",
    "llmc": "llmc",
    "lm_eval_v0_3": "lm_eval",
    "megatron_golden_json": "megatron_golden",
    "megatron_stdout": "megatron_text",
    "modded_nanogpt": "modded_nanogpt",
    "nanogpt_stdout": "nanogpt",
    "open_lm_json": "open_lm",
    "seqio_metrics_jsonl": "seqio",
    "wandb_api_json": "wandb_api",
}


def test_each_sample_has_its_reader_and_no_text_reader_takes_another(logs, real_data):
    files = [path for path in (real_data / "formats").rglob("*") if path.is_file()]
    assert {path.parent.name for path in files} >= set(OWNERS)
    for path in files:
        claims = set(logs.claimed(path.read_bytes(), str(path)))
        owner = OWNERS.get(path.parent.name)
        if owner is None:
            assert not claims & set(OWNERS.values()), path
        else:
            assert claims & set(OWNERS.values()) == {owner}, path


@pytest.mark.parametrize(
    "content",
    [
        "",
        "\n",
        "{}",
        "[]",
        '{"model_type": "llama", "hidden_size": 768}\n',
        "arch,F,D,loss\na,6e8,1e10,3.25\n",
        "step,loss\n1,2.5\n",
        "import torch\nprint(f's:{step} tel:{loss}')\nprint(f'iter {i}: loss {loss:.4f}, time {t:.2f}ms')\n",
        "#!/bin/bash\ntorchrun pretrain_gpt.py --tensor-model-parallel-size 1 --seq-length 2048\n",
        "\x00\x01\x02PAR1",
    ],
)
def test_other_files_are_no_logs_of_these(logs, content):
    assert set(logs.claimed(content)) & set(OWNERS.values()) == set()


def test_every_reader_says_what_it_looks_for_and_what_it_can_state():
    for name, reader in READERS.items():
        assert reader.known_by, name
        assert set(reader.states) <= set(FACTS), name


@pytest.mark.parametrize("name", READERS)
def test_what_a_reader_can_state_stands_in_its_source(name):
    """The fields are quoted in the module, or in what it imports for them: none is promised that cannot come."""
    module = importlib.import_module(READERS[name].read.__module__)
    text = inspect.getsource(module).partition("states=")[0]
    if "readers._wandb import" in text:
        text += inspect.getsource(_wandb)
    if "OF_RUNS" in text:
        assert set(READERS[name].states) == OF_RUNS
    else:
        assert [
            fact for fact in READERS[name].states if f'"{fact}"' not in text and f"{fact}=" not in text
        ] == []
