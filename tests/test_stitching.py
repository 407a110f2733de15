"""Pieces of a run: which rows survive restarts, counters that begin again, files side by side, decays in the middle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.condense import SAMPLE, Condenser, Segment
from smelt_scaling.ingest.events import Block, Facts, Resumed, Rows
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.selection import Roles, Rules, Run, select_ends
from smelt_scaling.ingest.stitching import Stitched, stitch

Row = tuple[float, dict[str, Any]]


def segments(
    files: dict[str, list[Row]], times: dict[str, float] | None = None, **facts: Any
) -> list[Segment]:
    condenser = Condenser(keys=Keys())
    for name, rows in files.items():
        collected = Rows(run="r")
        start = None if times is None else times[name]
        for place, (step, values) in enumerate(rows):
            collected.add(step, values, None if start is None else start + place)
        condenser.take(name, [Facts(run="r", values=facts.get(name, {})), *collected.take()])
    return condenser.segments


def losses(steps: list[float], values: list[float], key: str = "eval/loss") -> list[Row]:
    return [(step, {key: value}) for step, value in zip(steps, values, strict=True)]


def last(stitched: Stitched, key: str = "eval/loss") -> tuple[float, float]:
    said = stitched.end.lasts[key]
    return said.step, said.value


# ------------------------------------------------------------------ the survivors of restarts


def test_case_2_the_later_rows_of_a_resumed_run_stand() -> None:
    before = losses([9.96, 10.38, 10.49], [2.43, 2.412, 2.405])
    after = losses([9.96, 10.38, 10.49], [2.440, 2.431, 2.426])
    whole = stitch(segments({"a.log": before + after}))
    assert last(whole) == (10.49, 2.426)  # neither the mean nor the lowest
    assert whole.series["eval/loss"][1].tolist() == [2.440, 2.431, 2.426]
    [note, replaced] = whole.notes
    assert (note.code, replaced.code) == ("overlap_disagreement", "replaced_log")
    assert "0.021" in note.message  # 2.426 - 2.405


@settings(derandomize=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_run_cut_at_random_keeps_what_a_literal_reading_keeps(data: st.DataObject) -> None:
    """Random restarts over several files in any order, with times: the rows that a reader with a pencil would keep."""
    count = data.draw(st.integers(1, 6))
    pieces: list[list[float]] = []
    reached = 0
    for _ in range(count):
        start = data.draw(st.integers(max(0, reached - 15), reached + 1))
        stop = start + data.draw(st.integers(1, 20))
        pieces.append([float(step) for step in range(start, stop)])
        reached = stop - 1
    values = [
        [round(5 - step / 100 + number / 1000, 6) for step in piece] for number, piece in enumerate(pieces)
    ]
    kept: dict[float, float] = {}
    for piece, own in zip(pieces, values, strict=True):
        kept = {step: value for step, value in kept.items() if step < piece[0]} | dict(
            zip(piece, own, strict=True)
        )
    shuffled = data.draw(st.permutations(range(count)))
    names = {number: f"{place}.log" for place, number in enumerate(shuffled)}
    files = {names[number]: losses(pieces[number], values[number]) for number in shuffled}
    times = {names[number]: 1e9 + 1e4 * number for number in shuffled}
    whole = stitch(segments(files, times))
    steps, found = whole.series["eval/loss"]
    assert dict(zip(steps.tolist(), found.tolist(), strict=True)) == kept
    assert last(whole) == (max(kept), kept[max(kept)])


@settings(derandomize=True, deadline=None, max_examples=80)
@given(data=st.data())
def test_without_times_an_order_is_found_or_refused_never_guessed(data: st.DataObject) -> None:
    """Two files without times: disjoint steps have an order, equal losses need none, anything else is refused."""
    first = data.draw(st.integers(5, 30))
    start = data.draw(st.integers(1, first + 5))
    shift = data.draw(st.sampled_from([0.0, 0.5]))
    a = losses(
        [float(step) for step in range(1, first + 1)], [5 - step / 100 for step in range(1, first + 1)]
    )
    b = losses(
        [float(step) for step in range(start, start + 40)],
        [5 - step / 100 + shift for step in range(start, start + 40)],
    )
    names = data.draw(st.permutations(["x.log", "y.log"]))
    found = segments(dict(zip(names, (a, b), strict=True)))
    overlap = start <= first
    if overlap and shift:
        with pytest.raises(IngestError, match="nothing tells which came later"):
            stitch(found)
    else:
        assert last(stitch(found)) == (start + 39.0, pytest.approx(5 - (start + 39) / 100 + shift))


def test_parents_tell_the_order() -> None:
    files = {"a.log": losses([1, 2, 3], [3.0, 2.9, 2.8]), "b.log": losses([2, 3, 4], [3.5, 3.4, 3.3])}
    facts = {"a.log": {"id": "one", "parent": "two"}, "b.log": {"id": "two"}}
    assert last(stitch(segments(files, **facts))) == (3.0, 2.8)


def test_a_restart_that_the_log_announces_starts_a_piece() -> None:
    rows = Rows(run="r")
    condenser = Condenser(keys=Keys())
    rows.add(10, {"eval/loss": 3.0})
    first = list(rows.take())
    rows.add(10, {"eval/loss": 2.0})
    condenser.take("a.log", [*first, Resumed(run="r", step=5), *rows.take()])
    assert len(condenser.segments) == 2
    assert last(stitch(condenser.segments)) == (10.0, 2.0)


def test_a_row_that_comes_late_restarts_nothing() -> None:
    rows: list[Row] = [(1, {"train/loss": 4.0}), (2, {"train/loss": 3.9}), (1.5, {"eval/loss": 4.1})]
    rows += [(3, {"train/loss": 3.8}), (2.5, {"eval/loss": 4.0})]
    [one] = segments({"a.log": rows})
    assert (one.first_step, one.last_step, one.rows) == (1, 3, 5)


def test_a_late_evaluation_may_carry_counters() -> None:
    """Tokens and the rate stand in every row; only what is measured again at a step shows a restart."""
    rows: list[Row] = [
        (float(step), {"train/loss": 3.0, "tokens": step * 10.0, "lr": 0.1}) for step in range(1, 106)
    ]
    rows.append((100.0, {"eval/loss": 2.5, "tokens": 1000.0, "lr": 0.1}))
    [one] = segments({"a.log": rows})
    assert (one.last_step, one.marks[-1].lasts["eval/loss"].tokens) == (105.0, 1000.0)


def test_an_evaluation_that_a_restart_made_stale_is_not_the_last() -> None:
    """It stopped at 115 after a restart at 110: the evaluation at 120 is of a state that no longer exists."""
    before: list[Row] = [(float(step), {"train/loss": 3.0}) for step in range(100, 126)]
    before += [(120, {"eval/loss": 2.5}), (100, {"eval/loss": 2.7})]
    before.sort(key=lambda row: row[0])
    after: list[Row] = [(float(step), {"train/loss": 3.0}) for step in range(110, 116)]
    whole = stitch(segments({"a.log": before + after}))
    assert last(whole) == (100.0, 2.7)
    assert whole.end.step == 115


# ------------------------------------------------------------------ counters


def _counted(steps: range, tokens_from: int, loss_from: float) -> list[Row]:
    return [
        (float(step), {"tokens": 1000.0 * (place + tokens_from), "train/loss": loss_from - place / 100})
        for place, step in enumerate(steps)
    ]


def test_case_3_tokens_that_begin_again_are_continued() -> None:
    files = {"a.log": _counted(range(1, 101), 1, 5.0), "b.log": _counted(range(81, 161), 1, 4.2)}
    whole = stitch(segments(files, {"a.log": 1e9, "b.log": 2e9}), tokens_key="tokens")
    assert whole.end.lasts["train/loss"].tokens == 160_000
    assert [note.code for note in whole.notes] == ["counter_reset"]


def test_steps_that_begin_again_are_continued_if_the_tokens_go_on() -> None:
    files = {"a.log": _counted(range(1, 101), 1, 5.0), "b.log": _counted(range(1, 61), 101, 4.0)}
    whole = stitch(segments(files, {"a.log": 1e9, "b.log": 2e9}), tokens_key="tokens")
    assert (whole.end.step, whole.end.lasts["train/loss"].tokens) == (160.0, 160_000.0)
    assert "counter_reset" in [note.code for note in whole.notes]


def test_steps_that_begin_again_while_the_loss_goes_on_are_refused() -> None:
    first = losses(
        [float(step) for step in range(1, 101)], [9 - step / 20 for step in range(1, 101)], "train/loss"
    )
    second = losses(
        [float(step) for step in range(1, 51)], [4 - step / 100 for step in range(1, 51)], "train/loss"
    )
    with pytest.raises(IngestError, match="state start_step"):
        stitch(segments({"a.log": first, "b.log": second}, {"a.log": 1e9, "b.log": 2e9}))
    stated = segments(
        {"a.log": first, "b.log": second}, {"a.log": 1e9, "b.log": 2e9}, **{"b.log": {"start_step": 100.0}}
    )
    assert last(stitch(stated), "train/loss") == (150.0, 3.5)


def test_a_run_that_began_anew_replaces_the_old_one() -> None:
    first = losses(
        [float(step) for step in range(1, 101)], [9 - step / 20 for step in range(1, 101)], "train/loss"
    )
    second = losses(
        [float(step) for step in range(1, 51)], [8.9 - step / 20 for step in range(1, 51)], "train/loss"
    )
    whole = stitch(segments({"a.log": first, "b.log": second}, {"a.log": 1e9, "b.log": 2e9}))
    assert last(whole, "train/loss") == (50.0, pytest.approx(6.4))


# ------------------------------------------------------------------ files side by side


def test_training_and_evaluation_in_files_of_their_own() -> None:
    train: list[Row] = [
        (float(step), {"train/loss": 4 - step / 100, "lr": 1 - step / 100, "tokens": step * 10.0})
        for step in range(1, 101)
    ]
    evaluation = losses([50.0, 100.0], [3.6, 3.1])
    whole = stitch(segments({"train.jsonl": train, "eval.jsonl": evaluation}), tokens_key="tokens")
    run = Run(name="r", trunk=whole)
    [end] = select_ends(run, Roles(loss="eval/loss", tokens="tokens", lr="lr"), Rules())
    assert (end.step, end.loss, end.tokens, end.code) == (100.0, 3.1, 1000.0, "")
    assert end.lr == pytest.approx(0.0)


# ------------------------------------------------------------------ ends


def ends(rows: list[Row], rules: Rules | None = None, **facts: Any) -> list[tuple[float, float, str]]:
    whole = stitch(segments({"a.log": rows}))
    run = Run(name="r", trunk=whole, facts=facts)
    picks = select_ends(run, Roles(loss="eval/loss", lr="lr"), rules or Rules())
    return [(pick.step, pick.loss, pick.code) for pick in picks]


def schedule(*rates: tuple[int, float]) -> list[Row]:
    """Rates at steps, joined by straight lines; an evaluation at each tenth step."""
    steps = np.arange(0, rates[-1][0] + 1)
    lr = np.interp(steps, [step for step, _ in rates], [rate for _, rate in rates])
    return [
        (float(step), {"lr": float(rate)} | ({"eval/loss": 4 - step / 1000} if step % 10 == 0 else {}))
        for step, rate in zip(steps, lr, strict=True)
    ]


def test_the_end_of_a_cosine_is_its_endpoint() -> None:
    steps = np.arange(0, 101)
    rows: list[Row] = [
        (float(s), {"lr": 0.1 + 0.9 * (1 + math.cos(math.pi * s / 100)) / 2, "eval/loss": 4 - s / 100})
        for s in steps
    ]
    assert ends(rows) == [(100.0, 3.0, "")]  # a tenth of the peak is the usual end


def test_case_17_wsd_s_periods_end_where_the_rate_is_zero() -> None:
    rows = schedule((0, 0), (10, 1), (80, 1), (100, 0), (101, 1), (180, 1), (200, 0), (201, 1), (300, 1))
    assert ends(rows) == [(100.0, 3.9, ""), (200.0, 3.8, ""), (300.0, 3.7, "not_annealed")]


def test_a_cosine_that_crashed_late_and_went_on_has_one_end() -> None:
    """The rate stood at 2 % of its peak when it crashed: that is no end, since it went on falling."""
    rows = schedule((0, 1), (100, 0))
    crashed = [row for row in rows if row[0] <= 98] + [row for row in rows if row[0] >= 91]
    assert ends(crashed) == [(100.0, 3.9, "")]


def test_a_constant_rate_is_no_decay() -> None:
    assert ends(schedule((0, 1), (100, 1))) == [(100.0, 3.9, "not_annealed")]
    assert ends(schedule((0, 1), (100, 0.3))) == [(100.0, 3.9, "not_annealed")]
    assert ends(schedule((0, 1), (100, 0.3)), Rules(annealed=0.3)) == [(100.0, 3.9, "")]


def test_case_16_an_unfinished_run_is_left_out() -> None:
    rows = schedule((0, 1), (63, 0.37))
    assert ends(rows, planned_steps=100.0)[-1][2] == "unfinished"
    assert ends(rows, status="crashed")[-1][2] == "unfinished"
    done = schedule((0, 1), (100, 0))
    assert ends(done, planned_steps=100.0, status="crashed")[-1][2] == ""  # it crashed after its last step
    assert ends(done, status="finished")[-1][2] == ""


def test_case_4_a_diverged_run_gives_a_code_and_no_number() -> None:
    rows = schedule((0, 1), (100, 0))
    for spelled in ("NaN", "Infinity", float("nan"), float("inf"), 1e400):
        assert ends([*rows, (101.0, {"eval/loss": spelled})])[-1][2] == "diverged"
    assert ends([*rows, (101.0, {"eval/loss": 11.3})])[-1][2] == "diverged"
    assert ends([*rows, (101.0, {"eval/loss": None})])[-1][2] == ""  # not logged is not diverged


def test_case_1_the_last_evaluation_is_taken_never_the_lowest() -> None:
    rows: list[Row] = [(0, {"eval/loss": 5.0}), (250, {"eval/loss": 0.9}), (500, {"eval/loss": 1.3})]
    assert ends(rows) == [(500.0, 1.3, "")]


def test_a_run_that_goes_on_after_its_last_evaluation_has_none() -> None:
    rows: list[Row] = [(float(step), {"train/loss": 3.0}) for step in range(1, 101)]
    rows.insert(50, (50.0, {"eval/loss": 3.5}))
    assert ends(rows) == [(50.0, 3.5, "no_final_evaluation")]


def test_a_run_without_the_loss() -> None:
    assert ends([(1.0, {"train/loss": 3.0})])[0][2] == "no_evaluation"


def test_phases_decide_where_they_are_logged() -> None:
    rows: list[Row] = [(float(step), {"eval/loss": 4 - step / 100, "annealed": 0.0}) for step in range(1, 11)]
    rows += [(float(step), {"eval/loss": 3.8 - step / 100, "annealed": 1.0}) for step in range(11, 14)]
    rows += [(float(step), {"eval/loss": 4 - step / 100, "annealed": 0.0}) for step in range(14, 20)]
    assert ends(rows) == [(13.0, pytest.approx(3.67), ""), (19.0, pytest.approx(3.81), "not_annealed")]


def test_a_long_series_is_thinned_and_its_end_is_not() -> None:
    steps = np.arange(1.0, 50_001.0)
    block = Block(run="r", step=steps, values={"eval/loss": 5 - steps / 1e5})
    condenser = Condenser(keys=Keys())
    condenser.take("a.log", [block])
    [one] = condenser.segments
    kept, values = one.series["eval/loss"]
    assert SAMPLE / 2 <= len(kept) <= SAMPLE
    np.testing.assert_array_equal(values, 5 - kept / 1e5)
    assert one.marks[-1].lasts["eval/loss"].step == 50_000


def test_smoothing_is_a_mean_over_the_last_share_of_the_steps() -> None:
    rows: list[Row] = [(float(step), {"eval/loss": 3.0 + (step % 2)}) for step in range(1, 101)]
    assert ends(rows, Rules(smooth=0.1)) == [(100.0, 3.5, "")]
