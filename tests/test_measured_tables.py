"""Tables of lengths, shots and ablations as people bring them: units, labels, repeats, numbers of draws and of items.

Every table is written here, so that what is expected of it is known without the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from smelt_scaling import (
    DataError,
    UsageError,
    compare_levels,
    length_gains,
    notes_of,
    shot_gaps,
    show_table,
)


def lengths(cells: Sequence[str] = "abc", **more: Any) -> pd.DataFrame:
    """Losses near 3 of two architectures; the drop is 0.02 on short documents and 0.03 on long ones."""
    rows = [
        {"arch": arch, "cell": cell, "bucket": bucket, "loss": 3.0 - new * drop * (1 + 0.1 * number), **more}
        for number, cell in enumerate(cells)
        for bucket, drop in ((256, 0.02), (512, 0.03))
        for new, arch in enumerate(("baseline", "smelt"))
    ]
    return pd.DataFrame(rows)


def scores(tasks: Sequence[str] = ("x", "y"), items: int = 1, **more: Any) -> pd.DataFrame:
    rows = [
        {
            "arch": arch,
            "cell": cell,
            "task": task,
            "k": k,
            "score": 0.4 + 0.01 * new * (1 + k + t + c),
            **more,
        }
        for t, task in enumerate(tasks)
        for c, cell in enumerate("abcdefg")
        for k in (0, 1)
        for new, arch in enumerate(("baseline", "smelt"))
    ]
    table = pd.DataFrame(rows)
    if items == 1:
        return table
    whole = pd.concat([table.assign(item=f"i{i}") for i in range(items)], ignore_index=True)
    return whole.assign(score=(np.arange(len(whole)) % 7 < 3).astype(float))


def levels(*values: float, **more: Any) -> list[dict[str, Any]]:
    return [{"level": f"l{j}", "value": value, **more} for j, value in enumerate(values)]


def messages(frame: pd.DataFrame) -> dict[str, str]:
    return {note.code: note.message for note in notes_of(frame)}


def test_losses_named_or_sized_like_a_perplexity_are_refused_and_high_ones_noted() -> None:
    table = lengths()
    named = table.rename(columns={"loss": "val/ppl"})
    with pytest.raises(DataError, match=r"column loss \('val/ppl' in the file\), named like a perplexity"):
        length_gains(named, mapping={"loss": "val/ppl"})
    large = table.assign(loss=np.exp(table["loss"] + 0.5))  # about 33
    with pytest.raises(DataError, match="column loss, median 32.8: no loss in nats/token is that high"):
        length_gains(large)
    found = messages(length_gains(table.assign(loss=np.exp(table["loss"]))))  # about 20, and below it
    assert "write its logarithm" in found["high_loss"]
    assert "high_loss" not in messages(length_gains(table))


def test_percent_of_what_are_fractions_is_refused() -> None:
    """Divided by 100 once more, 40 % would read 0.4 % and every gap a hundredth of itself."""
    with pytest.raises(DataError, match=r"no row above 0\.49 under --unit score=percent.*fractions already"):
        shot_gaps(scores(n_items=100), units={"score": "percent"})
    percent = scores(n_items=100).assign(score=lambda f: 100 * f["score"])
    once = shot_gaps(percent, units={"score": "percent"})
    np.testing.assert_allclose(once["gap"], shot_gaps(scores(n_items=100))["gap"], rtol=1e-12)  # rounding


def test_what_tells_repeated_rows_apart_is_proposed_by_every_name_it_may_have() -> None:
    table = pd.concat([lengths(), lengths()])
    with pytest.raises(DataError, match="--map horizon=COLUMN or document=COLUMN or contrast=COLUMN"):
        length_gains(table)
    with pytest.raises(DataError, match=r"56 rows repeated \(rows 1 and 57 share") as caught:
        shot_gaps(pd.concat([scores(n_items=9), scores(n_items=9)]))
    assert "--map horizon=COLUMN or metric=COLUMN or item=COLUMN" in str(caught.value)


def test_a_missing_pair_of_losses_lists_the_columns_there_are() -> None:
    table = lengths().drop(columns="arch").rename(columns={"loss": "nll"})
    with pytest.raises(DataError, match=r"no column arch or loss: .*\(columns: cell, bucket, nll\)"):
        length_gains(table)


def test_one_architecture_names_the_table_and_the_column() -> None:
    for call, table in ((length_gains, lengths()), (shot_gaps, scores(n_items=9))):
        with pytest.raises(UsageError, match=r"table: column arch, one architecture \(smelt\).*--map arch="):
            call(table[table["arch"] == "smelt"])


def test_a_note_names_a_row_by_short_numbers() -> None:
    """A horizon read from a file is text, and 2e10 tokens would be written with all their zeros."""
    table = lengths(horizon="20000000000.0").drop(index=1)
    found = messages(length_gains(table))["unpaired_rows"]
    assert "1 row of one architecture only left out (first: cell a, horizon 2e+10, bucket 256)" in found


@pytest.mark.parametrize(
    "found",
    [
        lambda n: shot_gaps(scores(n_items=100), bootstrap=n),
        lambda n: length_gains(pd.concat([lengths(contrast="one"), lengths(contrast="other")]), bootstrap=n),
    ],
)
def test_too_few_draws_for_an_interval_are_said(found: Any) -> None:
    """The end of a 95 % interval is the 2.5 % order statistic: 39 draws have one, 38 have none."""
    assert "38 draws are too few for a 95 % interval" in messages(found(38))["few_draws"]
    for enough in (39, 0):
        assert "few_draws" not in messages(found(enough))


def test_the_head_of_lengths_names_draws_only_where_there_are_some() -> None:
    both = pd.concat([lengths(contrast="one"), lengths(contrast="other")])
    assert "of contrasts compared, draws of cells" in show_table(length_gains(both))
    assert "draws" not in show_table(length_gains(both, bootstrap=0))
    assert "Point estimates, no intervals." in show_table(length_gains(lengths("a")))


def test_the_unit_of_a_loss_drop_and_the_number_of_documents_are_shown() -> None:
    table = pd.concat([lengths(document=f"d{d}") for d in range(4)])
    frame = length_gains(table)
    assert frame.attrs["ratios"][0]["documents"] == 8  # four of each of two buckets
    shown = show_table(frame)
    assert "in nats/token" in " ".join(shown.split())
    assert "cells  documents" in shown
    assert "cells  documents" not in show_table(length_gains(lengths()))


def test_the_head_of_shots_says_that_items_are_drawn() -> None:
    assert "draws of tasks and cells." in show_table(shot_gaps(scores(n_items=100)))
    with_items = shot_gaps(scores(items=5), bootstrap=100)
    assert "draws of tasks, cells and items." in show_table(with_items)
    assert with_items.attrs["settings"]["resampled"] == ["tasks", "cells", "items"]


def test_numbers_of_items_that_differ_are_noted_and_the_least_counts() -> None:
    table = scores(n_items=1000)
    table.loc[(table["task"] == "y") & (table["arch"] == "smelt"), "n_items"] = 900
    frame = shot_gaps(table)
    assert frame["n_items"].tolist() == [1900, 1900]
    assert "1 task with several (y 900 to 1000); the least counts" in messages(frame)["uneven_items"]


def test_long_lists_of_tasks_say_how_many_more_there_are() -> None:
    tasks = [f"t{i}" for i in range(7)]
    found = messages(shot_gaps(scores(tasks)))["items_unknown"]
    assert "(t0, t1, t2, t3 and 3 more)" in found


def test_a_task_without_some_items_says_how_many() -> None:
    table = scores(items=5)
    lacking = table[~((table["task"] == "x") & (table["item"] == "i0") & (table["k"] == 1))]
    with pytest.raises(DataError, match=r"task x lacks k = 1 \(28 of 35 scores\)"):  # 7 cells, 5 items
        shot_gaps(lacking)
    with pytest.raises(DataError, match="no task has a score at every k of 0, 1: "):
        shot_gaps(lacking[lacking["task"] == "x"], drop_incomplete=True)


def test_one_number_of_examples_need_not_be_a_list() -> None:
    assert shot_gaps(scores(n_items=9), shots=1)["k"].tolist() == [1]


def test_a_comparison_without_the_usual_level_is_named() -> None:
    """The first level of the table is missing in one group, which is then compared with another."""
    both = levels(2.0, 1.9, 1.8, group="85%") + levels(2.0, 1.9, 1.8, group="95%")[1:]
    found = messages(compare_levels(both))["default_level"]
    assert found.startswith("compared with l0 (85%, loss); l1 (95%, loss), the first of the table")
    assert messages(compare_levels(both[:3]))["default_level"].startswith("compared with l0, the first")


@pytest.mark.parametrize("written", [0.5, "0.5"])
def test_a_level_that_is_a_number_may_be_named_as_one(written: Any) -> None:
    table = [{"level": level, "value": 2 - level} for level in (0.0, 0.5, 1.0)]
    frame = compare_levels(table, against=written)
    assert frame["delta"].tolist() == [0.5, 0.0, -0.5]
    assert frame.attrs["settings"]["against"] == "0.5"


def test_one_metric_need_not_be_a_list() -> None:
    assert (
        compare_levels(levels(1.0, 2.0, metric="core"), higher="core").attrs["summary"][0]["better"]
        == "higher"
    )


@pytest.mark.parametrize("form", ["table", "md", "latex"])
def test_every_human_format_of_shots_says_what_it_rests_on(form: str) -> None:
    """Eight columns were one too many for LaTeX, and cells the one that went; they are the same at every k."""
    shown = show_table(shot_gaps(scores(n_items=100)), form)
    assert "score: 2 tasks, 7 cells, 200 items" in shown
    assert "2 tasks, 7 cells, items unknown" in show_table(shot_gaps(scores()), form)
