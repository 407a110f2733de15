"""Gaps against the number of in-context examples: worlds of stated truth, noise of items, and bad tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from smelt_scaling import DataError, UsageError, notes_of, shot_gaps, show_table

TASKS = [f"task{i:02d}" for i in range(16)]
CELLS = ["400M/85%", "400M/95%", "800M/85%", "800M/95%"]
#: The survey's text: 0.9 points at k = 0, then 1.9 up to k = 8.
TRUE_GAP = {0: 0.009, 1: 0.019, 2: 0.019, 4: 0.019, 8: 0.019}
PAIR = {"target": "smelt", "reference": "baseline"}


def world(
    gap: dict[int, float] = TRUE_GAP, *, noise: float = 0.0, seed: int = 0, metric: str = ""
) -> pd.DataFrame:
    """Scores whose gap at each k is ``gap`` on average over tasks and cells; the noise has mean 0 over both."""
    rng = np.random.default_rng(seed)
    rows = []
    for k, mean in gap.items():
        task_effect = rng.normal(size=len(TASKS))
        cell_effect = rng.normal(size=len(CELLS))
        task_effect -= task_effect.mean()
        cell_effect -= cell_effect.mean()
        for t, task in enumerate(TASKS):
            for c, cell in enumerate(CELLS):
                base = 0.25 + 0.02 * t + 0.01 * np.log2(1 + k) + 0.03 * c
                shift = mean + noise * (task_effect[t] + 0.5 * cell_effect[c])
                for arch, score in (("baseline", base), ("smelt", base + shift)):
                    rows.append((arch, cell, metric or "exact_match", task, k, score, 1000))
    return pd.DataFrame(rows, columns=["arch", "cell", "metric", "task", "k", "score", "n_items"])


def changes(frame: pd.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["quantity"]: row for row in frame.attrs["changes"]}


def test_a_world_built_with_the_printed_gaps_shows_them() -> None:
    frame = shot_gaps(world(noise=0.005), **PAIR)
    np.testing.assert_allclose(
        frame["gap"], list(TRUE_GAP.values()), atol=1e-12
    )  # noise has mean 0: rounding only
    assert frame["tasks"].tolist() == [16] * 5
    assert frame["n_items"].tolist() == [16000] * 5
    assert ((frame["gap_lo"] < frame["gap"]) & (frame["gap"] < frame["gap_hi"])).all()
    found = changes(frame)
    assert found["jump"]["change"] == pytest.approx(0.010, abs=1e-12)
    assert found["jump"]["change_lo"] > 0
    assert found["saturation"]["change"] == pytest.approx(0.0, abs=1e-12)
    assert found["saturation"]["change_lo"] < 0 < found["saturation"]["change_hi"]
    assert found["slope"]["change"] == pytest.approx(0.0, abs=1e-12)


def test_the_jump_is_paired_within_tasks() -> None:
    """Gaps that differ hugely between tasks and jump alike: the jump is known exactly, the gaps are not."""
    table = world()
    size = table["task"].str[-2:].astype(float) * 0.01
    table["score"] += np.where(table["arch"] == "smelt", size, 0.0)
    frame = shot_gaps(table, **PAIR)
    jump = changes(frame)["jump"]
    assert jump["change_hi"] - jump["change_lo"] < 1e-12
    assert (frame["gap_hi"] - frame["gap_lo"]).min() > 0.02


def test_the_slope_is_the_mean_of_the_slopes_of_the_tasks() -> None:
    """Least squares of each task on log2 k over k >= 1, by NumPy, then their mean."""
    table = world({0: 0.0, 1: 0.01, 2: 0.013, 4: 0.02, 8: 0.021}, noise=0.01)
    frame = shot_gaps(table, **PAIR)
    wide = table.pivot_table(index=["task", "k"], columns="arch", values="score")
    gap = (wide["smelt"] - wide["baseline"]).unstack()
    slopes = [np.polyfit([0, 1, 2, 3], gap.loc[task, [1, 2, 4, 8]], 1)[0] for task in TASKS]
    assert changes(frame)["slope"]["change"] == pytest.approx(np.mean(slopes), abs=1e-12)


def test_intervals_cover_tasks_and_cells() -> None:
    """Gaps of tasks and cells scatter by known variances: a long simulation of such worlds covers about 93 %.

    60 worlds have a Monte-Carlo error of 3.3 points; anything above 0.8 tells this from resampling cells alone.
    """
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(60):
        shift = 0.02 + 0.02 * rng.normal(size=(16, 1)) + 0.01 * rng.normal(size=(1, 8))
        rows = [
            (arch, f"c{c}", f"t{t}", 1, 0.5 + (arch == "b") * shift[t, c], 500)
            for arch in "ab"
            for t in range(16)
            for c in range(8)
        ]
        table = pd.DataFrame(rows, columns=["arch", "cell", "task", "k", "score", "n_items"])
        row = shot_gaps(table, target="b", reference="a", bootstrap=100).iloc[0]
        hits += row["gap_lo"] <= 0.02 <= row["gap_hi"]
    assert hits / 60 > 0.8


@pytest.mark.parametrize(("items", "points"), [(1000, 2.0), (2000, 1.4)])
def test_item_noise_of_the_dyck_languages(items: int, points: float) -> None:
    """29.8 % against 26.4 % at k = 32: the unpaired standard error of 3.4 points, as computed by hand."""
    rows = [("baseline", "dyck", 32, 0.264, items), ("smelt", "dyck", 32, 0.298, items)]
    table = pd.DataFrame(rows, columns=["arch", "task", "k", "score", "n_items"])
    frame = shot_gaps(table, **PAIR)
    row = frame.iloc[0]
    assert row["gap"] == pytest.approx(0.034, abs=1e-12)
    assert round(100 * row["item_se"], 1) == points
    assert row["gap_lo"] is None  # one task: its cells share the items, so no draw holds their noise
    assert {note.code for note in notes_of(frame)} == {"too_few_units"}
    assert f"{points:.1f}" in show_table(frame)


def test_without_a_number_of_items_nothing_is_tested() -> None:
    frame = shot_gaps(world(noise=0.005).drop(columns="n_items"), **PAIR)
    assert frame["gap"].notna().all()
    assert frame[["gap_lo", "gap_hi", "n_items"]].isna().all().all()
    assert all(row["change_lo"] is None for row in frame.attrs["changes"])
    (note,) = notes_of(frame)
    assert (note.code, note.count) == ("items_unknown", 16)


def test_items_are_paired_and_resampled_within_their_task() -> None:
    """One task of 400 items, right or wrong: the interval is that of the paired differences."""
    rng = np.random.default_rng(6)
    hard = rng.uniform(size=400)
    right = {"baseline": hard < 0.4, "smelt": hard < 0.45}
    rows = [(arch, "dyck", 1, f"i{i}", float(right[arch][i])) for arch in right for i in range(400)]
    table = pd.DataFrame(rows, columns=["arch", "task", "k", "item", "score"])
    row = shot_gaps(table, **PAIR).iloc[0]
    difference = right["smelt"].astype(float) - right["baseline"].astype(float)
    assert row["gap"] == pytest.approx(difference.mean(), abs=1e-12)
    assert row["n_items"] == 400
    half = 1.96 * difference.std() / np.sqrt(400)
    assert (row["gap_hi"] - row["gap_lo"]) / 2 == pytest.approx(
        half, rel=0.15
    )  # ends of 2000 draws: about 5 %
    assert row["item_se"] > 2 * half / 1.96  # the items' difficulty cancels in the pairs


def test_one_cell_is_said() -> None:
    table = world(noise=0.005)
    frame = shot_gaps(table[table["cell"] == CELLS[0]].drop(columns="cell"), **PAIR, bootstrap=100)
    assert (frame["gap_lo"] < frame["gap_hi"]).all()  # of tasks
    (note,) = notes_of(frame)
    assert note.code == "too_few_units"
    assert "1 cell," in note.message
    (note,) = notes_of(shot_gaps(table, **PAIR, bootstrap=100))  # of four
    assert note.code == "too_few_units"


def test_few_tasks_are_said() -> None:
    """Of two tasks a draw holds one alone half of the time, so percentiles are their range: half of all worlds."""
    rng, hits = np.random.default_rng(0), 0
    for _ in range(100):
        shift = 0.02 + 0.02 * rng.normal(size=2)
        rows = [
            (arch, f"c{c}", f"t{t}", 1, 0.5 + (arch == "b") * shift[t], 500)
            for arch in "ab"
            for t in range(2)
            for c in range(8)
        ]
        table = pd.DataFrame(rows, columns=["arch", "cell", "task", "k", "score", "n_items"])
        frame = shot_gaps(table, target="b", reference="a", bootstrap=100)
        row = frame.iloc[0]
        hits += row["gap_lo"] <= 0.02 <= row["gap_hi"]
    assert hits / 100 == pytest.approx(0.5, abs=0.2)  # four standard errors of a count
    (note,) = notes_of(frame)
    assert note.code == "too_few_units"
    assert "2 tasks" in note.message


def test_rows_in_any_order_give_the_same_bytes() -> None:
    table = pd.concat([world(noise=0.005), world(noise=0.003, seed=1, metric="multiple_choice")])
    one = shot_gaps(table, **PAIR, bootstrap=50)
    other = shot_gaps(table.sample(frac=1, random_state=0), **PAIR, bootstrap=50)
    assert one.to_json() == other.to_json()
    assert json.dumps(one.attrs) == json.dumps(other.attrs)


def test_metrics_stand_apart() -> None:
    both = pd.concat([world(), world({k: 2 * gap for k, gap in TRUE_GAP.items()}, metric="multiple_choice")])
    frame = shot_gaps(both, **PAIR, bootstrap=100)
    for metric, factor in (("exact_match", 1), ("multiple_choice", 2)):
        gap = frame.loc[frame["metric"] == metric, "gap"]
        np.testing.assert_allclose(gap, factor * np.array(list(TRUE_GAP.values())), atol=1e-12)


def test_scores_in_percent_need_the_unit() -> None:
    table = world(noise=0.004)
    percent = table.assign(score=100 * table["score"])
    with pytest.raises(DataError, match="column score, 640 rows .*add --unit score=percent"):
        shot_gaps(percent, **PAIR)
    frame = shot_gaps(percent, **PAIR, units={"score": "percent"}, bootstrap=100)
    np.testing.assert_allclose(frame["gap"], shot_gaps(table, **PAIR, bootstrap=100)["gap"], atol=1e-12)


def test_a_task_that_lacks_some_k_is_one_line_and_left_out_on_request() -> None:
    table = world()
    hole = (table["task"] == "task03") & (table["k"] == 8)
    part = (table["task"] == "task05") & (table["k"] == 4) & (table["cell"] == CELLS[0])
    lacking = table[~hole & ~part]
    with pytest.raises(DataError) as caught:
        shot_gaps(lacking, **PAIR)
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[2].partition(":")[0].strip() for line in lines] == [
        "task task03 lacks k = 8",
        "task task05 lacks k = 4 (3 of 4 scores)",
    ]
    frame = shot_gaps(lacking, **PAIR, drop_incomplete=True, bootstrap=100)
    assert frame["tasks"].tolist() == [14] * 5
    (note,) = [note for note in notes_of(frame) if note.code == "incomplete_tasks"]
    assert note.count == 2
    assert shot_gaps(lacking, **PAIR, shots=[0, 1], bootstrap=100)["tasks"].tolist() == [16, 16]


def test_a_floor_is_said() -> None:
    table = world().assign(n_items=500)
    table.loc[(table["task"] == "task00") & (table["k"] == 0), "score"] = 0.0
    frame = shot_gaps(table, **PAIR, bootstrap=100)
    (note,) = [note for note in notes_of(frame) if note.code == "score_floor"]
    assert note.count == 1
    assert "task00 at k = 0" in note.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="k"), "no column k"),
        (lambda f: f.assign(k=0.5), "column k, 640 rows"),
        (lambda f: f.assign(score=-0.1), "column score, 640 rows"),
        (lambda f: pd.concat([f, f.head(2)]), "2 rows repeated"),
        (lambda f: f.assign(cell=f["cell"] + f["arch"]), "has a partner"),
    ],
)
def test_a_bad_table_gets_one_clear_line(change: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        shot_gaps(change(world()), **PAIR)
    assert "\n" not in str(caught.value)


def test_bad_options_are_refused() -> None:
    table = world()
    for options in ({"shots": [3]}, {"level": 95.0}, {"bootstrap": -1}, {"units": {"k": "percent"}}):
        with pytest.raises(UsageError):
            shot_gaps(table, **PAIR, **options)
    with pytest.raises(UsageError, match="one architecture"):
        shot_gaps(table[table["arch"] == "smelt"])


def test_the_command_says_what_the_function_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from smelt_scaling.cli import run
    from smelt_scaling.reporting.raw import plain_rows

    monkeypatch.chdir(tmp_path)
    world(noise=0.002).to_csv("scores.csv", index=False)
    command = ["shots", "scores.csv", "--target", "smelt", "--reference", "baseline", "--bootstrap", "100"]
    assert run([*command, "--format", "json", "-o", "out"]) == 0
    record = json.loads(capsys.readouterr().out)
    frame = shot_gaps("scores.csv", **PAIR, bootstrap=100)
    assert record["rows"] == plain_rows(frame)
    assert record["changes"] == frame.attrs["changes"]
    assert len(record["tasks"]) == 16 * 5
    assert pd.read_parquet("out/shots.parquet")["k"].tolist() == [0, 1, 2, 4, 8]
    for form in ("table", "md", "latex"):
        assert run([*command, "--shots", "0,1", "--format", form]) == 0
        out = capsys.readouterr().out
        assert "1.90" in out
        assert "jump" in out


def test_output_shown_in_help_is_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import typer

    from smelt_scaling.cli import app, run

    monkeypatch.chdir(tmp_path)
    world(noise=0.005).to_csv("scores.csv", index=False)
    group: Any = typer.main.get_command(app)
    block = group.commands["shots"].help.partition("Example:\n")[2].partition("\n\n")[0]
    first, *lines = [line[2:] for line in block.splitlines()]
    assert run(first.removeprefix("$ smelt-scaling ").split()) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line != "..." and line.rstrip() not in out] == []
