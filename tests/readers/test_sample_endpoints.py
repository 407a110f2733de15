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


def test_checkpoints_of_a_run_are_pieces_of_it(tmp_path):
    """Every checkpoint-N/trainer_state.json repeats the history up to it."""
    history = [
        {
            "step": step,
            "eval_loss": 5 - step / 512,
            "learning_rate": 1 - step / 1024,
            "num_input_tokens_seen": step * 8000,
        }
        for step in range(128, 1025, 128)
    ]
    for name, last in (("checkpoint-512", 512), ("checkpoint-1024", 1024), (".", 1024)):
        folder = tmp_path / "logs" / "small" / name
        folder.mkdir(parents=True, exist_ok=True)
        seen = [entry for entry in history if entry["step"] <= last]
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": seen, "max_steps": 1024}))
    runs = tmp_path / "runs.csv"
    runs.write_text("run,arch,F\nsmall,gpt,1e9\n")
    [row] = read_logs([tmp_path / "logs"], runs=runs).endpoints.to_frame().itertuples()
    assert (row.run, row.D, row.loss) == ("small", 8192000, 3.0)  # 1024 * 8000 tokens, 5 - 1024 / 512


def test_a_job_that_was_restarted_in_one_file(tmp_path):
    """The second start goes back from iteration 1500 to 1000 and comes to 3000, with other losses."""
    start = (
        "------------------------ arguments ------------------------\n"
        "  global_batch_size ............................... 4\n"
        "  seq_length ...................................... 2048\n"
        "-------------------- end of arguments ---------------------\n"
    )

    def iterations(first, last, offset):
        return "".join(
            f" iteration {step:8d}/    3000 | consumed samples: {4 * step:12d} | learning rate: {1 - step / 3e3:.6E} | "
            f"global batch size: 4 | lm loss: 5.0E+00 | number of skipped iterations: 0 |\n"
            f" validation loss at iteration {step} | lm loss value: {offset - step / 1000:.6E} | \n"
            for step in range(first, last + 1, 100)
        )

    job = start + iterations(100, 1500, 5.5)
    again = start + " loading checkpoint from a at iteration 1000\n" + iterations(1100, 3000, 5.25)
    (tmp_path / "job.out").write_text(job + again)
    runs = tmp_path / "runs.csv"
    runs.write_text("run,arch,F\njob,gpt,1e9\n")
    found = read_logs([tmp_path / "job.out"], runs=runs)
    [row] = found.endpoints.to_frame().itertuples()
    assert (row.D, row.loss) == (3000 * 4 * 2048, 2.25)
    assert found.counts["segments"] == 2
    assert "overlap_disagreement" in {
        note.code for note in found.notes
    }  # by 0.25 from iteration 1100 to 1500
