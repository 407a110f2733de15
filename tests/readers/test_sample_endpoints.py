"""From real logs to endpoints: the last evaluation, its tokens, and why a run gives none."""

from __future__ import annotations

import json

import pytest

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest import read_logs

TOKENS = 512 * 2048  # per step of these runs: their names say gbs512 and ctx2048, their logs only the former
#: Steps and losses, read off the files.
LLAMA = [
    (1800, 3.4713004443709843),
    (2200, 3.3323826046733567),
    (2600, 3.2638968505640857),
    (2000, 3.3857699077003764),
    (2400, 3.2516105783480915),
    (2000, 3.3817858416284823),
]


def test_a_sweep_with_a_diverged_run(real_data, tmp_path):
    folder = real_data / "formats" / "wandb_api_json"
    names = [json.loads(path.read_text())["name"] for path in folder.glob("*.json")]
    runs = tmp_path / "runs.csv"
    runs.write_text("run,arch,tokens_per_step\n" + "".join(f"{name},llama,{TOKENS}\n" for name in names))
    found = read_logs([folder], runs=runs, flops="6N")
    table = found.endpoints.to_frame()
    expected = sorted((TOKENS * step, loss) for step, loss in LLAMA)
    assert sorted(zip(table["D"], table["loss"], strict=True)) == expected
    assert table["lr"].tolist() == [0.0] * 6  # logged as -1e-11: the rounding of a schedule that ends at 0
    assert len(found.left_out) == 1


def test_a_checkpoint_whose_tokens_are_the_plan(real_data):
    found = read_logs(
        [real_data / "formats" / "open_lm_json"], mapping={"loss": "eval/c4_val/loss"}, flops="6N"
    )
    [row] = found.endpoints.to_frame().itertuples()
    assert (row.D, row.loss, row.N) == (263434403840, 2.7681623882618447, 411616256)  # read off the file


@pytest.mark.parametrize(
    ("folder", "key", "reason"),
    [
        ("levanter_wandb_summary", "eval/loss", "unfinished, it stops at step 197429 of 238418"),
        ("megatron_stdout/blowup-4-alibi-nods.out", "valid/lm loss", "diverged, valid/lm loss ends at 20.20"),
        (
            "megatron_stdout/bigscience_gpt2_n8.out",
            "validation/lm loss",
            "unfinished, it stops at step 200 of 1000",
        ),
    ],
)
def test_runs_that_give_no_endpoint_say_why(real_data, folder, key, reason):
    with pytest.raises(IngestError, match=reason):
        read_logs([real_data / "formats" / folder], mapping={"loss": key}, flops="6N")
