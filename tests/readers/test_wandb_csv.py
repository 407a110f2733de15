"""Charts exported as CSV: runs side by side, dashes in names, groups, axes, samples and damage."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Block, Event, Flaw
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers.wandb_csv import WANDB_CSV
from smelt_scaling.ingest.sources import Source, find_sources

#: As the interface writes it: everything quoted, no end to the last line.
CHART = "\n".join(
    (
        '"Step",'
        '"run-2 - eval/loss","run-2 - eval/loss__MIN","run-2 - eval/loss__MAX",'
        '"run-1 - eval/loss","run-1 - eval/loss__MIN","run-1 - eval/loss__MAX"',
        '"100","","","","3.5","3.5","3.5"',
        '"200","3.25","3.25","3.25","3.3","3.3","3.3"',
        '"300","NaN","NaN","NaN","","",""',
        '"400","3.0","3.0","3.0","","",""',
    )
)


def read(text: str | bytes, keys: Keys | None = None) -> list[Event]:
    data = text.encode() if isinstance(text, str) else text
    source = Source(path="chart.csv", name="chart", size=len(data), opener=lambda: io.BytesIO(data))
    return list(WANDB_CSV.read(source, keys or Keys()))


def curves(events: list[Event], key: str = "eval/loss") -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for block in events:
        if isinstance(block, Block):
            points = zip(block.step.tolist(), block.values[key].tolist(), strict=True)
            found.setdefault(block.run, []).extend(points)
    return found


def flaws(events: list[Event]) -> list[tuple[str, int, str]]:
    return [(event.code, event.count, event.run) for event in events if isinstance(event, Flaw)]


def chart(header: list[str], rows: list[list[object]]) -> str:
    lines = [header, *rows]
    return "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)


def test_runs_stand_side_by_side_and_empty_cells_are_no_rows() -> None:
    events = read(CHART)
    assert curves(events) == {
        "run-2": [(200.0, 3.25), (300.0, float("inf")), (400.0, 3.0)],
        "run-1": [(100.0, 3.5), (200.0, 3.3)],
    }
    assert flaws(events) == []


def test_several_metrics_of_a_run_are_one_row() -> None:
    text = chart(["Step", "a - eval/loss", "a - lr", "a - grad_norm"], [[1, 3.0, 0.1, 9], [2, 2.5, "", 9]])
    [block] = read(text)
    assert isinstance(block, Block)
    assert set(block.values) == {"eval/loss", "lr"}
    assert block.values["lr"][0] == 0.1


def test_names_with_dashes_are_split_at_the_last_or_where_the_user_says() -> None:
    text = chart(["Step", "1B - wd 0.1 - ema - loss"], [[1, 3.0]])
    events = read(text)
    assert curves(events, "loss") == {"1B - wd 0.1 - ema": [(1.0, 3.0)]}
    [flaw] = [event for event in events if isinstance(event, Flaw)]
    assert flaw.code == "ambiguous_name"
    assert "'loss' of run '1B - wd 0.1 - ema'; --map loss=METRIC names another" in flaw.message
    named = read(text, Keys(named={"loss": "ema - loss"}))
    assert curves(named, "ema - loss") == {"1B - wd 0.1": [(1.0, 3.0)]}
    assert flaws(named) == []


def test_a_group_is_said_to_be_a_mean() -> None:
    text = chart(
        ["Step", "Group: 1B - loss", "Group: 1B - loss__MIN", "Group: 1B - loss__MAX"], [[1, 3, 2, 4]]
    )
    assert curves(read(text), "loss") == {"Group: 1B": [(1.0, 3.0)]}
    assert flaws(read(text)) == [("grouped_mean", 1, "Group: 1B")]


def test_columns_of_one_name_are_kept_apart() -> None:
    text = chart(["Step", "a - loss", "a - loss"], [[1, 3.0, 4.0]])
    assert curves(read(text), "loss") == {"a": [(1.0, 3.0)], "a [2]": [(1.0, 4.0)]}
    assert flaws(read(text)) == [("repeated_name", 2, "")]


def test_averaged_points_and_irregular_samples_are_flagged() -> None:
    header = ["Step", "a - loss", "a - loss__MIN", "a - loss__MAX"]
    assert flaws(read(chart(header, [[1, 3, 2.9, 3.1], [2, 3, 3, 3]]))) == [("sampled_history", 1, "a")]
    irregular: list[list[object]] = [[step * step, 3.0] for step in range(500)]
    regular: list[list[object]] = [[10 * step, 3.0] for step in range(500)]
    assert flaws(read(chart(header[:2], irregular))) == [("sampled_history", 500, "a")]
    assert flaws(read(chart(header[:2], regular))) == []
    assert WANDB_CSV.sampled


def test_the_axis_is_steps_or_tokens() -> None:
    tokens = read(chart(["throughput/total_tokens", "a - loss"], [[2e9, 3.0]]))
    assert curves(tokens, "throughput/total_tokens") == {"a": [(2e9, 2e9)]}
    named = read(chart(["my x", "a - loss"], [[7, 3.0]]), Keys(named={"step": "my x"}))
    assert curves(named, "loss") == {"a": [(7.0, 3.0)]}
    with pytest.raises(
        IngestError, match=r"^chart\.csv: the x axis is 'Relative Time \(Process\)': .*export it again$"
    ):
        read(chart(["Relative Time (Process)", "a - loss"], [[1, 3.0]]))


def test_what_cannot_be_read_is_counted_or_refused() -> None:
    assert flaws(read(CHART + "\n")) == []
    assert curves(read(("\ufeff" + CHART).replace("\n", "\r\n"))) == curves(read(CHART))
    assert flaws(read(CHART.replace('"', ""))) == [("torn_line", 1, "")]
    assert flaws(read(CHART.replace('"', "") + "\n")) == []
    assert flaws(read(CHART[:-20])) == [("torn_line", 1, "")]
    assert flaws(read(CHART.replace('"300"', '"x"'))) == [("unread_lines", 1, "")]
    assert flaws(read(CHART.replace('"3.25"', '"high"', 1))) == [("unread_cells", 1, "run-2")]
    with pytest.raises(IngestError, match=r"^chart\.csv: no column of a loss among acc, lr x:"):
        read(chart(["Step", "a - acc", "a - lr x"], [[1, 3.0, 2]]))
    with pytest.raises(IngestError, match=r"^chart\.csv: no row that can be read"):
        read(CHART.partition("\n")[0])


def test_sniffs_charts_only() -> None:
    assert WANDB_CSV.sniff(CHART.encode(), "")
    assert not WANDB_CSV.sniff(b"step,loss\n1,2\n", "")
    assert not WANDB_CSV.sniff(b"", "")


@settings(max_examples=150)
@given(st.data())
def test_damage_never_adds_a_point(data: st.DataObject) -> None:
    lines = CHART.split("\n")
    whole = {(run, *point) for run, points in curves(read(CHART)).items() for point in points}
    kind = data.draw(st.sampled_from(["cut", "drop", "repeat", "flip"]))
    place = data.draw(st.integers(0, len(CHART) - 1))
    damaged = CHART.encode()[:place]
    if kind == "flip":
        damaged += bytes([data.draw(st.integers(0, 255))]) + CHART.encode()[place + 1 :]
    elif kind != "cut":
        i = data.draw(st.integers(1, len(lines) - 1))
        damaged = "\n".join(
            lines[:i] + lines[i:] * 2 if kind == "repeat" else lines[:i] + lines[i + 1 :]
        ).encode()
    try:
        found = read(damaged, Keys(named={"loss": "eval/loss"}))
    except IngestError:
        return
    if kind != "flip":  # without checksums a changed digit is another number
        assert {(run, *point) for run, points in curves(found).items() for point in points} <= whole


#: Read off the files with grep: file, metric to name, run, first and last (step, value), number of points.
SAMPLES = [
    (
        "olmo7b_twitterAAE",
        "eval/twitterAEE-validation/CrossEntropyLoss",
        {
            "OLMo-7B-run-038": ((551000, 3.3297953605651855), (556000, 3.324758529663086), 6),
            "OLMo-7B-run-033": ((492000, 3.329057455062866), (492000, 3.329057455062866), 1),
            "OLMo-7B-run-029": ((433000, 3.3494060039520264), (452000, 3.345024585723877), 20),
        },
    ),
    (
        "olmo1b_group_piqa",
        "eval/downstream/piqa_len_norm",
        {"Group: OLMo-1B": ((1000, 0.5576713681221008), (738000, 0.7551686763763428), None)},
    ),
    (
        "llm360_Amber_2023-12-27T16_35_58",
        "medical",
        {"downstream_eval": ((0, 24.150614931122), (354, 29.09466153992404), 178)},
    ),
    (
        "llm360_Amber_2023-12-27T16_36_24",
        "truthfulqa",
        {"downstream_eval": ((1, 53.09778444218034), (356, 33.465844882599065), 356)},
    ),
]


@pytest.mark.parametrize(("name", "metric", "expected"), SAMPLES, ids=[sample[0] for sample in SAMPLES])
def test_real_charts_begin_and_end_as_their_files_say(
    real_data: Path,
    name: str,
    metric: str,
    expected: dict[str, tuple[tuple[float, float], tuple[float, float], int | None]],
) -> None:
    [source] = find_sources([real_data / "formats" / "wandb_csv_export" / f"{name}.csv"])
    assert WANDB_CSV.sniff(source.head(), source.path)
    events = list(WANDB_CSV.read(source, Keys(named={"loss": metric})))
    found = curves(events, metric)
    assert len(found) == (10 if "7b" in name else 1)
    for run, (first, last, n) in expected.items():
        for (step, value), point in zip((first, last), (found[run][0], found[run][-1]), strict=True):
            assert point == (step, value)
        assert n is None or len(found[run]) == n
    assert [code for code, _, _ in flaws(events)] == (["grouped_mean"] if "group" in name else [])
