"""Traps in folders of real logs, file to table: the endpoint that was trained, or none with a code."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smelt_scaling.cli import run as command
from smelt_scaling.errors import IngestError, UsageError
from smelt_scaling.ingest import LogEndpoints, Rules, read_logs, scan_logs
from smelt_scaling.ingest.keys import Keys

Row = dict[str, Any]
MILLION = 10**6
TABLE = "run,arch,F,S\na,x,6e8,0\n"
TABLE_2 = TABLE + "b,x,6e8,0\n"


def rows(
    first: int = 1,
    last: int = 100,
    *,
    loss: Callable[[int], float] = lambda step: 4 - step / 1000,
    every: int = 10,
    time: float | None = None,
    without: str = "",
    **more: Any,
) -> list[Row]:
    """A run of 100 steps with a million tokens each, whose rate falls to 0; an evaluation at each tenth step."""
    made = []
    for step in range(first, last + 1):
        row = {
            "run": "a",
            "step": step,
            "tokens": step * MILLION,
            "lr": 1 - step / 100,
            "train/loss": loss(step) + 0.1,
        }
        row |= {"eval/loss": loss(step)} if step % every == 0 else {}
        row |= {} if time is None else {"time": time + step - first}
        made.append({key: value for key, value in (row | more).items() if key != without})
    return made


def put(folder: Path, files: dict[str, list[Row]], table: str = TABLE) -> tuple[Path, Path]:
    logs = folder / "logs"
    for name, held in files.items():
        (logs / name).parent.mkdir(parents=True, exist_ok=True)
        (logs / name).write_text("".join(json.dumps(row) + "\n" for row in held))
    (folder / "runs.csv").write_text(table)
    return logs, folder / "runs.csv"


def read(folder: Path, files: dict[str, list[Row]], table: str = TABLE, **options: Any) -> LogEndpoints:
    logs, runs = put(folder, files, table)
    return read_logs([logs], runs=runs, **options)


def ends(found: LogEndpoints) -> list[tuple[str, float, float, float]]:
    """(run, step, million tokens, loss) of each endpoint."""
    frame = found.endpoints.to_frame()
    return [(row.run, row.step, row.D / MILLION, row.loss) for row in frame.itertuples()]


def left_out(found: LogEndpoints) -> list[tuple[str, str]]:
    return list(found.left_out[["run", "code"]].itertuples(index=False, name=None))


def notes(found: LogEndpoints) -> dict[str, str]:
    return {note.code: note.message for note in found.notes if note.code != "loss_key"}


END = ("a", 100.0, 100.0, 3.9)


# ------------------------------------------------------------------ restarts


def test_a_stub_from_the_middle_does_not_shift_the_tokens_of_the_run(tmp_path: Path) -> None:
    """A job that died five steps after its restart, in a file of its own, without times: steps 60 to 64 again."""
    found = read(tmp_path, {"main.jsonl": rows(), "stub.jsonl": rows(60, 64)})
    assert ends(found) == [END]
    assert "counter_reset" not in notes(found)


def test_a_run_set_back_by_a_restart_that_died_has_no_end(tmp_path: Path) -> None:
    """Finished, restarted at step 60, dead at 70: without a rate nothing but the steps tells."""
    files = {"a.jsonl": rows(time=1e9, without="lr"), "b.jsonl": rows(60, 70, time=2e9, without="lr")}
    with pytest.raises(
        IngestError, match="a: unfinished, a restart set it back, and it stops at step 70, .* 100 before"
    ):
        read(tmp_path, files)
    found = read(tmp_path, files, TABLE.replace("S\n", "S,planned_steps\n").replace(",0\n", ",0,70\n"))
    assert ends(found) == [("a", 70.0, 70.0, 3.93)]


def test_evaluations_that_finish_out_of_order_are_no_silent_end(tmp_path: Path) -> None:
    """Evaluation jobs run aside; that of step 90 came last."""
    late = [
        {"run": "a", "step": step, "eval/loss": 4 - step / 1000} for step in (*range(10, 90, 10), 100, 90)
    ]
    with pytest.raises(IngestError, match="a: unfinished, a restart set it back"):
        read(
            tmp_path,
            {
                "a.jsonl": [{k: v for k, v in r.items() if k not in ("eval/loss", "lr")} for r in rows()]
                + late
            },
        )


def test_two_loggers_of_one_run_are_no_restart(tmp_path: Path) -> None:
    """Both write at once; one rounds, starts half a second later and lost the end."""
    rounded = [row | {"train/loss": round(row["train/loss"], 2)} for row in rows(last=90, time=1e9 + 0.5)]
    found = read(tmp_path, {"board.jsonl": rows(time=1e9), "web.jsonl": rounded})
    assert ends(found) == [END]
    assert "replaced_log" in notes(found)


def test_two_runs_under_one_name_are_named(tmp_path: Path) -> None:
    """Seeds that differ by less than the tolerance look like one run that was logged twice."""
    other = rows(loss=lambda step: 4.001 - step / 1000)
    found = read(tmp_path, {"a-1.jsonl": rows(), "a-2.jsonl": other})
    assert len(ends(found)) == 1
    assert notes(found)["replaced_log"].endswith("a-1.jsonl")


@pytest.mark.parametrize("options", [{"run_pattern": r"(?P<run>a)-(?P<seed>\d)"}, {}])
def test_pieces_with_two_seeds_are_no_run(tmp_path: Path, options: dict[str, str]) -> None:
    files = {"1.jsonl": rows(run="a-1"), "2.jsonl": rows(run="a-2")}
    table = TABLE if options else "run,log,arch,F,S,seed\na,a-1,x,6e8,0,1\na,a-2,x,6e8,0,2\n"
    with pytest.raises(
        IngestError, match=r"run a: seed is 1(\.0)? in .*1.jsonl, 2(\.0)? in .*2.jsonl: the pieces of one"
    ):
        read(tmp_path, files, table, **options)


# ------------------------------------------------------------------ counters


@pytest.mark.parametrize("begins", [0, 40])
@pytest.mark.parametrize("split", [False, True])
def test_tokens_that_fall_while_the_steps_go_on_are_continued(
    tmp_path: Path, split: bool, begins: int
) -> None:
    """The resumed trainer counts from 0, or from a checkpoint before: 61 is logged as 1, or as 41."""
    before, after = rows(last=60), rows(61)
    for row in after:
        row["tokens"] -= (60 - begins) * MILLION
    found = read(tmp_path, {"a.jsonl": before, "b.jsonl": after} if split else {"a.jsonl": before + after})
    assert ends(found) == [END]
    assert "again at step 61" in notes(found)["counter_reset"]


def test_tokens_that_fall_twice_in_a_long_log(tmp_path: Path) -> None:
    """Of 20000 rows 1024 or fewer are kept, one of every 32 steps: the count is exact to that."""
    made = [
        {
            "run": "a",
            "step": step,
            "tokens": (step % 7000) * MILLION,
            "lr": 1 - step / 20000,
            "eval/loss": 3.0,
        }
        for step in range(1, 20001)
    ]
    [end] = ends(read(tmp_path, {"a.jsonl": made}))
    assert end[2] == pytest.approx(20000, abs=2 * 32)


def test_tokens_counted_by_one_device_after_a_restart_are_told(tmp_path: Path) -> None:
    after = [row | {"tokens": row["step"] * MILLION // 8} for row in rows(61)]
    found = read(tmp_path, {"a.jsonl": rows(last=60), "b.jsonl": after})
    assert "tokens per step are 0.125 times those before" in notes(found)["counter_reset"]


def test_a_token_count_that_is_no_number_is_none(tmp_path: Path) -> None:
    broken = [row | ({"tokens": "NaN"} if row["step"] > 50 else {}) for row in rows()]
    with pytest.raises(IngestError, match="no tokens in the logs of 1 run"):
        read(tmp_path, {"a.jsonl": broken})


def test_tokens_in_a_row_of_their_own_are_exact_inside_a_run_whose_batch_grows(tmp_path: Path) -> None:
    """Two periods of a schedule, evaluated in separate rows: counts at the same step, not between thinned rows."""
    made: list[Row] = []
    counted = 0
    for step in range(1, 8001):
        counted += 1000 * step
        within = (step - 1) % 4001
        made.append(
            {
                "run": "a",
                "step": step,
                "tokens": counted,
                "lr": max(0.0, 1 - within / 4000) if step < 8000 else 0,
            }
        )
        if step in (4001, 8000):
            made.append({"run": "a", "step": step, "eval/loss": 3.0 + 1 / step})
    exact = {row["step"]: row["tokens"] / MILLION for row in made if "tokens" in row}
    found = ends(read(tmp_path, {"a.jsonl": made}))
    assert [(end[1], end[2]) for end in found] == [(4001.0, exact[4001]), (8000.0, exact[8000])]


# ------------------------------------------------------------------ rates and ends


def wsd_s(step: int) -> float:
    """Periods of 50 steps whose last ten decay to 0."""
    return min(1.0, (49 - (step - 1) % 50) / 10)


def test_an_evaluation_after_the_rate_may_have_risen_is_no_end(tmp_path: Path) -> None:
    """The rate is logged at each tenth step: 0 at 50, 1 at 60; the evaluation at 55 ran at its peak."""
    made = [row | {"lr": wsd_s(row["step"])} for row in rows(every=5)]
    sparse = [row if row["step"] % 10 == 0 else {k: v for k, v in row.items() if k != "lr"} for row in made]
    found = read(tmp_path, {"a.jsonl": sparse})
    assert ends(found) == [END]
    assert left_out(found) == [("a", "no_final_evaluation")]
    assert [end[1] for end in ends(read(tmp_path, {"a.jsonl": made}))] == [50.0, 100.0]


def test_rates_of_lightning_and_composer_have_known_names() -> None:
    """`lr-{optimizer}` with `/pg1` (LearningRateMonitor of Lightning) or `/group0` (that of Composer)."""
    for name in ("lr-AdamW", "lr-AdamW/pg1", "lr-Adam", "lr-DecoupledAdamW/group0"):
        assert Keys().find("lr", [name, "loss"]) == name
        assert Keys().wanted(name)


def test_a_rate_that_is_always_0_tells_nothing(tmp_path: Path) -> None:
    found = read(tmp_path, {"a.jsonl": rows(lr=0.0)})
    assert found.manifest["evidence"].tolist() == [""]
    assert "1 endpoint (a): no learning rate, plan or status tells" in notes(found)["unproven_end"]


def test_a_plan_or_a_status_proves_an_end(tmp_path: Path) -> None:
    crashed = rows(last=60, without="lr")
    assert "unproven_end" in notes(read(tmp_path, {"a.jsonl": crashed}))
    for fact, value in (("status", "Finished"), ("planned_steps", "60")):
        table = f"run,arch,F,S,{fact}\na,x,6e8,0,{value}\n"
        assert "unproven_end" not in notes(read(tmp_path, {"a.jsonl": crashed}, table))


def test_losses_that_are_not_positive_are_left_out(tmp_path: Path) -> None:
    """Log-likelihoods: a cross-entropy with its sign turned."""
    turned = [
        row | {"run": "b"} | ({"eval/loss": -row["eval/loss"]} if "eval/loss" in row else {})
        for row in rows()
    ]
    found = read(tmp_path, {"a.jsonl": rows(), "b.jsonl": turned}, TABLE_2)
    assert ends(found) == [END]
    assert left_out(found) == [("b", "negative_loss")]
    assert notes(found)["negative_loss"] == "1 end left out (b): eval/loss is -3.900 at step 100"


def test_a_job_that_died_after_its_first_evaluation_is_left_out(tmp_path: Path) -> None:
    dead = [{"run": "b", "step": 0, "tokens": 0, "lr": 0.0, "eval/loss": 11.0}]
    found = read(tmp_path, {"a.jsonl": rows(), "b.jsonl": dead}, TABLE_2)
    assert ends(found) == [END]
    assert left_out(found) == [("b", "no_evaluation")]


@pytest.mark.parametrize("evaluated", [True, False])
def test_a_trunk_is_left_out_without_alarm(tmp_path: Path, evaluated: bool) -> None:
    trunk = rows(last=60, lr=1.0, without="" if evaluated else "eval/loss")
    branch = [row | {"run": "b", "lr": (100 - row["step"]) / 50} for row in rows(51)]
    table = "run,arch,F,S,trunk\na,x,6e8,0,\nb,x,6e8,0,a\n"
    found = read(tmp_path, {"a.jsonl": trunk, "b.jsonl": branch}, table)
    assert ends(found) == [("b", *END[1:])]
    [note] = [note for note in found.notes if note.code in ("not_annealed", "no_evaluation")]
    assert (note.code, note.severity) == ("not_annealed", "info")
    inside = [row | {"run": "a", "branch": "decay"} for row in branch]
    found = read(tmp_path / "inside", {"a.jsonl": trunk + inside})
    assert ends(found) == [END]
    assert {note.severity for note in found.notes if note.code == "not_annealed"} == {"info"}


def test_a_perplexity_of_held_out_data_goes_before_a_loss_of_training(tmp_path: Path) -> None:
    named = [
        {key.replace("eval/loss", "eval/perplexity"): value for key, value in row.items()} for row in rows()
    ]
    with pytest.raises(
        IngestError, match="no evaluation loss in nats .* there are eval/perplexity: name one with --map"
    ):
        read(tmp_path, {"a.jsonl": named})


def test_the_manifest_holds_the_rows_of_the_table(tmp_path: Path) -> None:
    """A rate rewarmed to 8 % of its peak: an end by itself, and none by the rule for tables beside a rate of 0."""
    made = [row | {"lr": 1 - row["step"] / 60 if row["step"] <= 60 else 0.08} for row in rows()]
    found = read(tmp_path, {"a.jsonl": made}, families={"all": "eval/*"})
    assert found.manifest["step"].tolist() == [end[1] for end in ends(found)] == [60.0]
    assert found.long["all"]["step"].tolist() == [60.0]
    assert "not_annealed" in notes(found)


def test_several_ends_are_counted_and_the_first_reason_is_named(tmp_path: Path) -> None:
    files = {f"{name}.jsonl": rows(last=last, run=name) for name, last in (("a", 100), ("b", 60), ("c", 50))}
    found = read(tmp_path, files, TABLE_2 + "c,x,6e8,0\n")
    share = "the learning rate is at 0.404 of its peak, above 0.1"  # 0.4 / 0.99, that of the first row
    assert notes(found)["not_annealed"] == f"2 ends left out (b, c): of b, {share}"


@pytest.mark.parametrize(
    "rule", [{"smooth": 2.0}, {"smooth": -0.1}, {"annealed": 1.5}, {"annealed": float("nan")}]
)
def test_shares_are_shares(rule: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="a share of (a run's steps|the peak learning rate), "):
        Rules(**rule)


# ------------------------------------------------------------------ trajectories


def test_a_thinned_trajectory_says_so_and_keeps_its_end(tmp_path: Path) -> None:
    made = [
        {"run": "a", "step": step, "tokens": step * MILLION, "lr": 1 - step / 5003, "eval/loss": 3 + 1 / step}
        for step in range(1, 5004)
    ]
    found = read(tmp_path, {"a.jsonl": made}, trajectory=True)
    assert max(end[1] for end in ends(found)) == 5003.0
    [note] = [note for note in found.notes if note.code == "thinned"]
    assert note.count == len(found.endpoints) - 1  # and the end
    assert "more than 1024 evaluations" in note.message
    assert "thinned" in notes(read(tmp_path, {"a.jsonl": made}, rules=Rules(smooth=0.1)))
    assert "thinned" not in notes(read(tmp_path, {"a.jsonl": made}))  # its end is exact


def test_a_trajectory_without_tokens_is_refused_not_empty(tmp_path: Path) -> None:
    bare = rows(run="b", without="tokens")
    with pytest.raises(IngestError, match=r"no tokens in the logs of 1 run \(b\)"):
        read(tmp_path, {"a.jsonl": rows(), "b.jsonl": bare}, TABLE_2, trajectory=True)


def test_evaluations_before_the_first_count_are_left_out_of_a_trajectory(tmp_path: Path) -> None:
    early = [{"run": "a", "step": step, "eval/loss": 10.0} for step in (0, 1)]
    found = read(tmp_path, {"a.jsonl": early + rows(6)}, trajectory=True)
    assert len(found.endpoints) == 10
    assert left_out(found) == [("a", "no_tokens")]


# ------------------------------------------------------------------ files that cannot be read


def test_unreadable_logs_stop_the_reading_unless_they_may_be_skipped(tmp_path: Path) -> None:
    logs, runs = put(tmp_path, {"a.jsonl": rows()})
    for number in range(25):
        (logs / f"dead-{number:02d}.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00cut")
    with pytest.raises(IngestError) as raised:
        read_logs([logs], runs=runs)
    lines = str(raised.value).splitlines()
    assert len(lines) == 20 + 2
    assert "dead-19.jsonl.gz: broken packed data" in lines[19]
    assert lines[20:] == [
        "and 5 more files that cannot be read",
        "25 files cannot be read; leave them out by name, or all of them with --skip-unreadable",
    ]
    found = read_logs([logs], runs=runs, skip_unreadable=True)
    assert ends(found) == [END]
    [note] = [note for note in found.notes if note.code == "unreadable_files"]
    assert note.count == 25
    assert "dead-05.jsonl.gz" in note.message
    assert note.message.endswith("and 19 more")


def test_a_job_that_died_before_its_first_iteration(tmp_path: Path) -> None:
    """The log of a trainer that printed its arguments and no iteration."""
    logs, runs = put(tmp_path, {"a.jsonl": rows()})
    died = "------------------------ arguments ------------------------\n  lr .............. 0.0003\n"
    (logs / "died.log").write_text(died)
    with pytest.raises(IngestError, match=r"died\.log: no iteration and no evaluation"):
        read_logs([logs], runs=runs)
    with pytest.raises(IngestError, match=r"died\.log: no iteration and no evaluation"):
        read_logs([logs / "died.log"], skip_unreadable=True)  # nothing else was read
    with pytest.raises(UsageError, match="--reader megatron: no such format; there are wandb_cloud, "):
        read_logs([logs], reader="megatron")
    out = tmp_path / "runs.parquet"
    arguments = ["endpoints", str(logs), "--runs", str(runs), "-o", str(out), "--skip-unreadable"]
    assert command(arguments) == 0
    assert scan_logs([logs], skip_unreadable=True).facts.keys() == {"a"}


# ------------------------------------------------------------------ a run cut into pieces


@settings(derandomize=True, deadline=None, max_examples=120, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_run_cut_into_pieces_is_itself_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Overlapping pieces, in one file or several of any names, with times or not, whose counters begin again or not.

    The end is the one that was trained. It may be refused as ambiguous, unless times or one file tell the order and the
    counters go on; a run that seems to have begun anew is named in a note.
    """
    count = data.draw(st.integers(1, 4), label="pieces")
    timed = data.draw(st.booleans(), label="timed")
    together = data.draw(st.booleans(), label="one file")
    reset = data.draw(st.sampled_from(["nothing", "tokens", "steps", "both"]), label="begins again")
    same_losses = data.draw(st.booleans(), label="restarts repeat the losses")
    # three rows or more in each piece: a counter that begins again after a single row may not fall at all
    ends_of = st.sets(st.integers(2, 32), min_size=count - 1, max_size=count - 1)
    stops = sorted(3 * third for third in data.draw(ends_of, label="ends of pieces, in threes"))
    pieces: list[list[Row]] = []
    for number, stop in enumerate([*stops, 100]):
        back = data.draw(st.integers(0, 30), label="steps back") if number else 0
        reached = stops[number - 1] if number else 0
        start = max(1, reached + 1 - back)
        offset = 0.0 if same_losses else 0.02 * number

        def loss(step: int, offset: float = offset) -> float:
            return 2 + 6 / step**0.5 + offset

        piece = rows(start, stop, loss=loss, time=1e9 + 1e4 * number if timed else None)
        for row in piece if start > 1 else []:
            row["step"] -= start - 1 if reset in ("steps", "both") else 0
            row["tokens"] -= (start - 1) * MILLION if reset in ("tokens", "both") else 0
        pieces.append(piece)
    names = data.draw(st.permutations([f"{number}.jsonl" for number in range(count)]), label="names")
    files = (
        {"all.jsonl": [row for piece in pieces for row in piece]}
        if together
        else dict(zip(names, pieces, strict=True))
    )
    told = timed or together or count == 1
    try:
        found = read(tmp_path_factory.mktemp("cut"), files)
    except IngestError as error:
        message = str(error)
        assert (
            "nothing tells which came later" in message
            or "again, though" in message
            or "no endpoint" in message
        )
        assert not (told and reset == "nothing"), message
        return
    [(_, step, tokens, value)] = ends(found)
    trained = pieces[-1][-1]["eval/loss"]
    if reset == "both" and "replaced_log" in notes(found):
        return
    assert value == trained
    # steps from 1 again after a restart at step 2 look like a restart at 1: one step off, the tokens are not
    assert step == pytest.approx(100, abs=2 if reset == "steps" else 0)
    assert tokens == pytest.approx(100, rel=1e-9)


# ------------------------------------------------------------------ what is asked for together


def test_a_long_table_has_the_loss_of_the_endpoints_in_their_unit(tmp_path: Path) -> None:
    """Perplexity e^2 is a loss of 2 nats, in the endpoints and in the long table; members stay as logged."""
    made = [{key: cell for key, cell in row.items() if key != "eval/loss"} for row in rows()]
    made = [row | {"eval/ppl": math.exp(2.0), "eval/code/loss": 1.5} for row in made]
    found = read(
        tmp_path,
        {"a.jsonl": made},
        mapping={"loss": "eval/ppl"},
        units={"loss": "ppl"},
        families={"domains": "eval/*/loss"},
    )
    (endpoint,) = found.endpoints.loss.tolist()
    (row,) = found.long["domains"].to_dict("records")
    assert endpoint == pytest.approx(2.0, rel=1e-15)
    assert (row["loss"], row["member"], row["value"]) == (endpoint, "code", 1.5)
    assert found.manifest["loss"].tolist() == [math.exp(2.0)]


@pytest.mark.parametrize("also", [{"families": {"domains": "eval/*/loss"}}, {"rules": Rules(smooth=0.1)}])
def test_a_trajectory_takes_nothing_that_is_of_ends(tmp_path: Path, also: dict[str, Any]) -> None:
    """It would have written an empty long table, and called losses means that are none."""
    with pytest.raises(UsageError, match="is of ends of runs"):
        read(tmp_path, {"a.jsonl": rows()}, trajectory=True, **also)


@pytest.mark.parametrize("role", ["lr", "loss_se"])
def test_a_named_key_that_no_log_has_is_refused(tmp_path: Path, role: str) -> None:
    with pytest.raises(IngestError, match=f"no log has the key typo .--map {role}="):
        read(tmp_path, {"a.jsonl": rows()}, mapping={role: "typo"})


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        (["-o", "x.json", "--manifest", "x.json"], "two outputs go to one file"),
        (["-o", "x.csv", "--manifest", "m.csv"], "end its name in .json"),
        (["--manifest", "m.json", "--long", "domains=eval/*/loss"], "name that with -o"),
    ],
)
def test_outputs_that_would_be_lost_or_misnamed_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], outputs: list[str], said: str
) -> None:
    logs, runs = put(tmp_path, {"a.jsonl": rows()}, TABLE)
    assert command(["endpoints", str(logs), "--runs", str(runs), *outputs]) == 2
    assert said in capsys.readouterr().err
