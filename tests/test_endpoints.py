"""Endpoints: the schema's rules, units, canonical order, cells and tiers."""

from __future__ import annotations

import pickle
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smelt_scaling.endpoints import COLUMNS, UNITS, Endpoints, default_sparsities, sparsity_tiers
from smelt_scaling.errors import DataError, UsageError

DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))

# The survey's compute-equivalent sparsities in percent as printed, by architecture, scale and tier.
PRINTED = {
    "baseline": {
        "100M": (0.0, 86.0, 95.2, 97.2),
        "200M": (0.0, 84.3, 94.6, 96.9),
        "600M": (0.0, 84.5, 94.7, 96.9),
        "1.6B": (0.0, 84.5, 94.7, 96.9),
    },
    "smelt": {
        "100M": (0.0, 86.8, 95.5, 97.4),
        "200M": (0.0, 84.6, 94.7, 96.9),
        "600M": (0.0, 85.1, 94.7, 96.9),
        "1.6B": (0.0, 84.6, 94.8, 97.0),
    },
}


def survey(horizons: int = 2) -> pd.DataFrame:
    rows = [
        {
            "arch": arch,
            "scale": scale,
            "F": 6e8 * (1 + step),
            "S": percent,
            "D": 1e10 * (h + 1),
            "loss": 3 - 0.1 * h,
        }
        for arch, scales in PRINTED.items()
        for step, (scale, tiers) in enumerate(scales.items())
        for percent in tiers
        for h in range(horizons)
    ]
    return pd.DataFrame(rows)


def table(**columns: Any) -> dict[str, Any]:
    return {
        "arch": ["a", "a", "b"],
        "F": [6e8, 1.2e9, 6e8],
        "D": [1e10, 2e10, 1e10],
        "loss": [3.0, 2.5, 2.75],
        **columns,
    }


def codes(endpoints: Endpoints) -> dict[str, int]:
    return {note.code: note.count for note in endpoints.notes}


def problems(frame: Any, **options: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        Endpoints.from_frame(frame, source="runs.parquet", **options)
    return str(caught.value).splitlines()


# ---------------------------------------------------------------------- rules


def test_percent_is_refused_with_the_flag_that_mends_it() -> None:
    frame = survey(3)
    bad = frame["S"] > 0
    first = int(np.flatnonzero(bad)[0]) + 1
    assert problems(frame) == [
        f"runs.parquet: column S, {int(bad.sum())} rows (first: {first}) in (1, 100]: "
        "S is a fraction in [0, 1); add --unit S=percent"
    ]


@pytest.mark.parametrize(
    ("columns", "where"),
    [
        ({"S": [0.0, 1.0, 0.5]}, r"column S, 1 row \(first: 2\) equal to 1: "),
        ({"S": [0.0, 0.9, -0.4]}, r"column S, 1 row \(first: 3\) outside \[-0.05, 1\): "),
        ({"S": [0.0, None, 0.5]}, r"column S, 1 row \(first: 2\) missing: .*write 0 for dense"),
        ({"D": [1e10, 0.0, 0.0]}, r"column D, 2 rows \(first: 2\) not > 0 and finite \(0\): .*step x batch"),
        ({"F": [6e8, -6e8, 6e8]}, r"column F, 1 row \(first: 2\) not > 0 and finite \(-6e\+08\): "),
        ({"F": [6e8, np.inf, 6e8]}, r"column F, 1 row \(first: 2\) not > 0 and finite \(inf\): "),
        (
            {"loss": [np.nan] * 3},
            r"column loss, 3 rows \(first: 1\) without a finite loss: none of 3 rows is an endpoint",
        ),
        (
            {"loss": [3.0, -2.0, 2.0]},
            r"column loss, 1 row \(first: 2\) not > 0 and finite \(-2\): .*diverged",
        ),
        ({"N": [1e8, 0, 1e8]}, r"column N, 1 row \(first: 2\) not > 0"),
        ({"weight": [1, -1, 1]}, r"column weight, 1 row \(first: 2\) not >= 0"),
        ({"weight": [0, 0, 0]}, r"column weight, no row > 0"),
        ({"arch": ["a", None, "b"]}, r"column arch, 1 row \(first: 2\) missing: "),
        ({"run": ["r", " ", "s"]}, r"column run, 1 row \(first: 2\) missing: "),
        (
            {"D": ["1e10", "2e10", "bn?"]},
            r"column D, 1 row \(first: 3\) not a number \('bn\?'\): .*K, M, B, T",
        ),
        (
            {"loss": ["3.0", "1.2.3", "2.5"]},
            r"column loss, 1 row \(first: 2\) not a number \('1.2.3'\): use plain",
        ),
        ({"F": np.array([6e4, np.inf, 6e4], np.float16)}, r"column F, 1 row \(first: 2\) infinite: float16"),
        ({"D": [20.5, 41.0, 20.5]}, r"column D, median 20.5 tokens: .*--unit D=B "),
        ({"N": [0.1, 0.2, 1.6]}, r"column N, median 0.2 parameters: .*--unit N=B "),
        ({"F": [0.6, 1.2, 0.6]}, r"column F, median 0.6 FLOPs/token: .*--unit F=G "),
        ({"loss": [24.0, 21.0, 13.0]}, r"column loss, median 21 nats/token: .*--unit loss=ppl"),
    ],
)
def test_one_line_per_problem(columns: dict[str, Any], where: str) -> None:
    (line,) = problems(table(**columns))
    assert re.match("runs.parquet: " + where, line), line


def test_all_problems_come_together_in_schema_order() -> None:
    lines = problems(table(S=[86.0, 0.5, 0.5], D=[0, 1e10, 1e10], loss=[3.0, "x", 2.0], weight=[1, 1, None]))
    assert [re.findall(r"column (\w+)", line)[0] for line in lines] == ["loss", "S", "D", "weight"]


def test_small_negative_sparsity_is_kept_with_a_warning() -> None:
    endpoints = Endpoints.from_frame(table(S=[-0.01, 0.0, -0.05]))
    assert codes(endpoints) == {"negative_sparsity": 2}
    assert endpoints.notes[0].severity == "warning"
    assert endpoints.S.min() == -0.05


def test_missing_columns_name_the_candidates() -> None:
    frame = {"arch": ["a"], "train/loss": [3.0], "eval/loss": [3.1], "D": [1e10], "params": [1e8]}
    lines = problems(frame)
    assert len(lines) == 2
    assert "no column loss" in lines[0]
    assert "train/loss, eval/loss" in lines[0]
    assert "no column F, N or C" in lines[1]
    assert "--map F=params" in lines[1]


def test_a_mapped_column_must_exist() -> None:
    (line,) = problems({**table(), "val_ce": [3.0, 2.5, 2.0]}, mapping={"loss": "val/ce"})
    assert line == ("runs.parquet: no column 'val/ce', which --map loss=val/ce names; did you mean val_ce?")


def test_unknown_names_units_and_rules_are_usage_errors() -> None:
    said = "--map los=loss: 'los' is no column of the schema; its name comes first: --map loss=los"
    with pytest.raises(UsageError, match=said):
        Endpoints.from_frame(table(), mapping={"los": "loss"})
    with pytest.raises(UsageError, match="'los' is no column of the schema; did you mean loss"):
        Endpoints.from_frame(table(), mapping={"los": "val/ce"})
    with pytest.raises(UsageError, match="'zz' is no column of the schema; use one of arch, scale"):
        Endpoints.from_frame(table(), units={"zz": "B"})
    with pytest.raises(UsageError, match="--unit D=bn: unknown unit; write one of tokens, K, M, B, T"):
        Endpoints.from_frame(table(), units={"D": "bn"})
    with pytest.raises(UsageError, match="that of step is fixed, leave it out"):
        Endpoints.from_frame(table(), units={"step": "K"})
    with pytest.raises(UsageError, match="--flops 8N: unknown rule; use 6N or forward"):
        Endpoints.from_frame(table(), flops="8N")
    (line,) = problems(table(), units={"S": "percent"})
    assert (
        "no column S, which --unit S=percent converts; name it with --map S=COLUMN, or leave the unit out"
        in line
    )


@pytest.mark.parametrize("kind", [bool, object, "boolean"])
@pytest.mark.parametrize("name", ["F", "D", "loss", "N", "S"])
def test_true_and_false_are_no_quantity(name: str, kind: Any) -> None:
    (line,) = problems(table() | {name: pd.Series([True, False, True], dtype=kind)})
    assert f"column {name}, 3 rows (first: 1) not a number ('True')" in line


@pytest.mark.parametrize("kind", [bool, object, "boolean"])
def test_true_and_false_may_weigh_rows(kind: Any) -> None:
    runs = Endpoints.from_frame(table() | {"weight": pd.Series([True, False, True], dtype=kind)})
    assert sorted(runs.weight.tolist()) == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("cell", "shown"), [("0,500", "0.500"), ("-0,5", "-0.5"), ("3,25", "3.25"), ("00,500", "00.500")]
)
def test_a_decimal_comma_in_a_frame_is_refused_and_never_a_thousand(cell: str, shown: str) -> None:
    """Nobody groups 500 as 0,500; whether 3,25 is a decimal comma is for its owner to say."""
    (line,) = problems(table() | {"loss": [cell, "2.5", "2"]})
    assert line.endswith(
        f"column loss, 1 row (first: 1) not a number ({cell!r}): use a decimal point ({shown})"
    )


def test_thousands_are_grouped_after_a_first_digit_that_is_not_0() -> None:
    runs = Endpoints.from_frame(table() | {"D": ["10,000,000,000", "2e10", "40,000,000,000.0"]})
    assert sorted(runs.D.tolist()) == [1e10, 2e10, 4e10]


def test_an_ignored_column_that_repeats_like_a_run_is_proposed() -> None:
    """Two runs of three rows; not when a run is named, when every row has its own, or under another name."""
    named = table() | {"run_id": ["r1", "r1", "r2"]}

    def told(frame: dict[str, Any], **options: Any) -> str:
        notes = Endpoints.from_frame(frame, **options).notes
        return next((note.message for note in notes if note.code == "ignored_columns"), "")

    hint = "; run_id repeats (2 values in 3 rows): if it names runs, add --map run=run_id"
    assert told(named).endswith(f"not read: run_id{hint}")
    assert told(named, mapping={"run": "run_id"}) == ""
    assert "repeats" not in told(named | {"cell": ["x", "y", "z"]})
    assert "repeats" not in told(table() | {"run_id": ["r1", "r2", "r3"]})
    assert "repeats" not in told(table() | {"mood": ["good", "good", "bad"]})
    assert told(table() | {"my run": ["r1", "r1", "r2"]}).endswith("add --map 'run=my run'")


def test_a_table_is_shown_by_what_is_in_it() -> None:
    columns = {"arch": ["a<b", "c", "c"], "F": [6e8, 7e8, 8e8], "D": [2e10] * 3, "loss": [3.0, 2.5, 2.75]}
    runs = Endpoints.from_frame({**columns, "lr": [1e-3, np.nan, 2e-3], "mood": "good"}, source="x&y.csv")
    assert repr(runs) == "Endpoints(3 rows of a<b, c; columns arch, F, D, loss, lr; from 'x&y.csv')"
    page = runs._repr_html_()
    assert "3 endpoints of 2 architectures: a&lt;b (1), c (2)<br>from x&amp;y.csv" in page
    for row in (
        "<td>arch</td><td></td><td>a&lt;b, c</td>",
        "<td>F</td><td>FLOPs/token</td><td>6.0e8 to 8.0e8</td>",
        "<td>D</td><td>tokens</td><td>2.0e10</td>",
        "<td>loss</td><td>nats/token</td><td>2.5 to 3</td>",
        "<td>lr</td><td></td><td>0.001 to 0.002, 1 missing</td>",
    ):
        assert row in page
    assert "<li>info [ignored_columns] x&amp;y.csv: columns outside the schema, not read: mood</li>" in page


def test_many_architectures_are_counted() -> None:
    n = 13
    rows = {"arch": [f"a{i:02}" for i in range(n)], "F": [6e8] * n, "D": [2e10] * n, "loss": [3.0] * n}
    runs = Endpoints.from_frame(rows)
    assert repr(runs).startswith("Endpoints(13 rows of 13 architectures; columns arch, F, D, loss; ")
    assert "13 endpoints of 13 architectures: a00 (1), " in runs._repr_html_()
    assert "a11 (1) and 1 more<br>" in runs._repr_html_()
    assert "<ul>" not in runs._repr_html_()


def test_repeated_columns_and_empty_tables_are_refused() -> None:
    frame = pd.DataFrame([[3.0, 2.0, 6e8, 1e10]], columns=["loss", " loss", "F", "D"])
    with pytest.raises(DataError, match="appear twice: loss"):
        Endpoints.from_frame(frame)
    with pytest.raises(DataError, match="no rows"):
        Endpoints.from_frame(pd.DataFrame({"loss": [], "F": []}))


def test_perplexity_is_caught_by_its_name() -> None:
    frame = {**table(), "ppl_c4": [13.2, 9.0, 7.0]}
    (line,) = problems(frame, mapping={"loss": "ppl_c4"})
    assert "named like a perplexity" in line
    assert "--unit loss=ppl" in line
    endpoints = Endpoints.from_frame(frame, mapping={"loss": "ppl_c4"}, units={"loss": "ppl"})
    # ln 7 = 1.945910149055313 (any table of logarithms)
    assert endpoints.loss.min() == pytest.approx(1.945910149055313, rel=1e-15)
    assert Endpoints.from_frame(frame, mapping={"loss": "ppl_c4"}, units={"loss": "nats"}).loss.max() == 13.2
    (line,) = problems(
        {**table(), "ppl_c4": [13.2, 1.0, 7.0]}, mapping={"loss": "ppl_c4"}, units={"loss": "ppl"}
    )
    assert "1 row (first: 2) not > 1" in line


# ---------------------------------------------------------------------- conventions


def test_forward_only_compute_is_recognised() -> None:
    frame = pd.DataFrame({"arch": "a", "F": 6e8, "D": 1e10, "loss": 3.0}, index=range(273))
    frame["C"] = frame["F"] * frame["D"] * np.where(np.arange(273) < 258, 1 / 3, 1.0)
    (line,) = problems(frame)
    assert "C/(F*D) is 1/3 on 258 rows (first: 1) and 1 on 15 rows (first: 259): two conventions" in line
    assert "C is forward-only" in line


@pytest.mark.parametrize(
    ("factor", "meaning"), [(3.0, "F is forward-only"), (1e-9, "1e-9 is a unit"), (1.5, "conven")]
)
def test_other_contradictions_say_what_they_mean(factor: float, meaning: str) -> None:
    frame = table()
    frame["C"] = [factor * f * d for f, d in zip(frame["F"], frame["D"], strict=True)]
    assert meaning in problems(frame)[-1]


def test_compute_within_a_tenth_is_kept_as_measured() -> None:
    frame = table()
    frame["C"] = [1.05 * f * d for f, d in zip(frame["F"], frame["D"], strict=True)]
    assert Endpoints.from_frame(frame).C.tolist() == sorted(frame["C"][:2]) + frame["C"][2:]


def test_what_follows_from_other_columns() -> None:
    endpoints = Endpoints.from_frame(table())
    assert "C" in endpoints
    assert endpoints.C.tolist() == [6e18, 2.4e19, 6e18]
    without_f = {name: values for name, values in table(C=[6e18, 2.4e19, 6e18]).items() if name != "F"}
    assert Endpoints.from_frame(without_f).F.tolist() == [6e8, 1.2e9, 6e8]
    assert codes(Endpoints.from_frame(without_f)) == {"derived_flops": 3}
    without_d = {name: values for name, values in table(C=[6e18, 2.4e19, 6e18]).items() if name != "D"}
    assert Endpoints.from_frame(without_d).D.tolist() == [1e10, 2e10, 1e10]
    assert codes(Endpoints.from_frame(without_d)) == {"derived_tokens": 3}


def test_parameters_become_flops_only_when_asked() -> None:
    dense = {name: values for name, values in table(N=[1e8, 2e8, 1e8]).items() if name != "F"}
    endpoints = Endpoints.from_frame(dense)
    assert "F" not in endpoints
    with pytest.raises(DataError, match="--law chinchilla, or take F = 6 N with --flops 6N"):
        endpoints["F"]
    endpoints = Endpoints.from_frame(dense, flops="6N")
    assert endpoints.F.tolist() == [6e8, 1.2e9, 6e8]
    assert codes(endpoints) == {"derived_flops": 3}
    sparse = {**dense, "S": [0.0, 0.9, 0.9]}
    with pytest.raises(
        DataError, match=r"column S, 2 rows \(first: 2\) > 0: --flops 6N needs active parameters"
    ):
        Endpoints.from_frame(sparse, flops="6N")
    active = Endpoints.from_frame({**sparse, "N_act": [1e8, 2e7, 1e7]}, flops="6N")
    assert active.F.tolist() == [1.2e8, 6e8, 6e7]  # sorted within the architecture
    with pytest.raises(DataError, match="no column N or N_act"):
        Endpoints.from_frame(table(), flops="6N")


def test_an_f_column_gives_way_to_the_rule_that_was_asked_for() -> None:
    endpoints = Endpoints.from_frame(
        table(N=[1e8, 2e8, 1e8], F=[1e9, 2e9, 1e9], C=[1e19, 4e19, 1e19]), flops="6N"
    )
    assert endpoints.F.tolist() == [6e8, 1.2e9, 6e8]
    assert endpoints.C.tolist() == [6e18, 2.4e19, 6e18]
    assert "in place of the columns F and C" in endpoints.notes[0].message


def test_a_table_without_architectures_has_one() -> None:
    frame = {name: values for name, values in table().items() if name != "arch"}
    endpoints = Endpoints.from_frame(frame)
    assert endpoints.archs == ("model",)
    assert codes(endpoints) == {"arch_absent": 3, "repeats": 1}


# ---------------------------------------------------------------------- values and dtypes


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([10**19, 2 * 10**19, 3 * 10**21], dtype=object),
        pd.Series(["1e19", " 20000000000000000000", "3E21 "]),
        pd.Series([Decimal(10**19), Decimal(2 * 10**19), Decimal(3 * 10**21)]),
        pd.Series([1e19, 2e19, 3e21], dtype="Float64"),
        pd.Series([1e19, 2e19, 3e21], dtype=pd.ArrowDtype(pa.float64())),
        pd.Series([1e19, 2e19, 3e21], dtype="category"),
        pd.Series(["1e19", "2e19", "3e21"], dtype="category"),
        pd.Series(pa.array(["1e19", "2e19", "3e21"]).dictionary_encode(), dtype=DICTIONARY),
        pd.Series(["10E", "20 EFLOPs", "3Z"]),
        pd.Series(["10,000,000,000,000,000,000", "20,000,000,000,000,000,000", "3e21"]),
    ],
    ids=[
        "int",
        "text",
        "decimal",
        "nullable",
        "arrow",
        "category",
        "text category",
        "dictionary",
        "suffix",
        "commas",
    ],
)
def test_every_way_to_write_a_number(series: Any) -> None:
    endpoints = Endpoints.from_frame({"C": series, "loss": [3.0, 2.5, 2.0], "arch": ["a", "b", "c"]})
    assert endpoints.C.tolist() == [1e19, 2e19, 3e21]
    assert endpoints.C.dtype == np.float64


def test_integers_and_short_floats_are_widened() -> None:
    frame = table(
        D=pd.array([10**10, 2 * 10**10, 10**10], dtype="Int64"),
        kv=np.array([2**63, 2**62, 2**61], dtype=np.uint64),
        loss=np.array([3.0, 2.5, 2.75], dtype=np.float32),
        S=pd.Series([0.5, 0.5, 0.5], dtype=pd.ArrowDtype(pa.float32())),
        step=pd.array([1000, None, 3000], dtype="Int64"),
    )
    endpoints = Endpoints.from_frame(frame)
    assert endpoints["kv"].tolist() == [2.0**63, 2.0**62, 2.0**61]
    assert endpoints.loss.tolist() == [3.0, 2.5, 2.75]
    assert np.isnan(endpoints["step"][1])


def test_human_numbers_are_counted() -> None:
    endpoints = Endpoints.from_frame(
        table(
            D=["215B", "1.2T", "215,605,043,200"], F=["1.33 GFLOPs", "1.33e9", "600M"], S=["86 %", "0", "0.5"]
        )
    )
    # in canonical order, S before D: the second row comes first
    assert endpoints.D.tolist() == [1.2e12, 2.15e11, 215605043200.0]
    assert endpoints.F.tolist() == [1.33e9, 1.33e9, 6e8]
    assert endpoints.S.tolist() == [0.0, 0.86, 0.5]
    assert sum(note.count for note in endpoints.notes if note.code == "parsed_numbers") == 6
    (line,) = problems(table(D=["20B", "20B", "20B"]), units={"D": "B"})
    assert "not a number ('20B'): use plain digits" in line


def test_text_stays_text() -> None:
    frame = table(
        arch=["NaN", "007", "None"], run=["SMELT ×2 中文", "=cmd()", " a/b c "], seed=[1.0, np.nan, 2.0]
    )
    endpoints = Endpoints.from_frame(frame)
    assert endpoints.archs == ("007", "NaN", "None")
    assert set(endpoints["run"]) == {"SMELT ×2 中文", "=cmd()", "a/b c"}
    assert sorted(endpoints["seed"]) == ["", "1", "2"]
    assert codes(endpoints) == {"trimmed_text": 1}


def test_names_that_differ_in_case_are_kept_apart_with_a_warning() -> None:
    endpoints = Endpoints.from_frame(table(arch=["smelt", "SMELT", "base"]))
    assert endpoints.archs == ("SMELT", "base", "smelt")
    assert codes(endpoints) == {"similar_names": 2}


def test_unread_and_empty_columns_are_named_once() -> None:
    endpoints = Endpoints.from_frame(
        table(width=[1, 2, 3], note=["x", "y", "z"], seed=[None] * 3, lr=["", " ", ""])
    )
    assert codes(endpoints) == {"ignored_columns": 2, "empty_columns": 2}
    assert "width, note" in endpoints.notes[0].message
    assert "lr" not in endpoints


def test_a_named_index_is_a_column() -> None:
    frame = pd.DataFrame(table()).set_index("arch")
    assert Endpoints.from_frame(frame).archs == ("a", "b")


# ---------------------------------------------------------------------- units


@pytest.mark.parametrize(
    ("column", "unit", "given", "expected"),
    [
        ("D", "B", 20.5, 20.5e9),
        ("D", "T", 1.25, 1.25e12),
        ("D", "M", 5000.0, 5e9),
        ("D", "K", 5e6, 5e9),
        ("N", "M", 175.0, 1.75e8),
        ("F", "G", 1.5, 1.5e9),
        ("C", "Z", 2.0, 2e21),
        ("C", "E", 13.0, 1.3e19),
        ("S", "percent", 94.6, 0.946),
        # 1 bit = ln 2 nats = 0.6931471805599453 nats
        ("loss", "bits", 4.0, 2.772588722239781),
    ],
)
def test_units(column: str, unit: str, given: float, expected: float) -> None:
    frame = {"arch": ["a"], "N": [1e8], "loss": [3.0], column: [given]}
    endpoints = Endpoints.from_frame(frame, units={column: unit})
    assert endpoints[column][0] == expected
    assert codes(endpoints)["unit_converted"] == 1


def test_the_standard_error_follows_the_loss() -> None:
    frame = table(loss=[16.0, 8.0, 4.0], loss_se=[0.16, 0.08, 0.04])
    # d ln p = dp / p
    assert Endpoints.from_frame(frame, units={"loss": "ppl"})["loss_se"] == pytest.approx(
        [0.01] * 3, rel=1e-15
    )


def test_percentages_become_the_fractions_one_would_write() -> None:
    percent = [n / 10 for n in range(1000)]
    frame = {"arch": ["a"] * 1000, "F": [6e8] * 1000, "loss": [3.0] * 1000, "S": percent}
    assert Endpoints.from_frame(frame, units={"S": "percent"}).S.tolist() == [
        float(f"0.{n:03d}") for n in range(1000)
    ]


def test_units_belong_to_schema_columns() -> None:
    assert set(UNITS) <= set(COLUMNS)
    assert all(COLUMNS[name].guess in UNITS[name] for name in COLUMNS if COLUMNS[name].least)


@given(st.lists(st.integers(1, 10**6), min_size=3, max_size=3), st.sampled_from(["K", "M", "B", "T"]))
def test_rescaled_tables_are_the_same_table(tokens: list[int], unit: str) -> None:
    factor = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}[unit]
    # three decimals, as people write 20.486 B
    raw = Endpoints.from_frame(table(D=[n * factor // 1000 for n in tokens]), units={"D": "tokens"})
    scaled = Endpoints.from_frame(table(D=[n / 1000 for n in tokens]), units={"D": unit})
    assert raw.digest == scaled.digest


# ---------------------------------------------------------------------- canonical form


@given(st.permutations(range(32)), st.permutations(["arch", "scale", "F", "S", "D", "loss"]), st.data())
def test_order_of_rows_and_columns_does_not_matter(
    rows: list[int], columns: list[str], data: st.DataObject
) -> None:
    frame = survey(1)
    frame["S"] = frame["S"] / 100
    reference = Endpoints.from_frame(frame, source="one")
    shuffled = Endpoints.from_frame(frame.iloc[rows][columns], source="another")
    assert shuffled.digest == reference.digest
    assert list(shuffled.columns) == list(reference.columns)
    for name in reference.columns:
        assert shuffled[name].tobytes() == reference[name].tobytes()
    mask = data.draw(st.lists(st.booleans(), min_size=32, max_size=32).filter(any))
    assert reference.select(mask).digest == shuffled.select(mask).digest


def test_order_is_by_code_point_then_value_with_missing_last() -> None:
    endpoints = Endpoints.from_frame(
        {
            "arch": ["b", "a", "Z", "a", "a"],
            "F": [1e9] * 5,
            "D": [1e10] * 5,
            "loss": [3.0] * 5,
            "lr": [1, None, 1, 2, 0],
        }
    )
    assert endpoints.arch.tolist() == ["Z", "a", "a", "a", "b"]
    assert endpoints["lr"][1:3].tolist() == [0, 2]
    assert np.isnan(endpoints["lr"][3])


def test_digest_sees_values_and_names_and_nothing_else() -> None:
    base = Endpoints.from_frame(table())
    assert re.fullmatch("[0-9a-f]{64}", base.digest)
    assert Endpoints.from_frame(table(loss=[3.0, 2.5, np.nextafter(2.75, 3)])).digest != base.digest
    assert Endpoints.from_frame(table(S=[0.0, 0.0, 0.0])).digest != base.digest
    assert (
        Endpoints.from_frame(table(S=[-0.0, 0.0, 0.0])).digest
        == Endpoints.from_frame(table(S=[0, 0, 0])).digest
    )
    wide = Endpoints.from_frame(table(arch=["a", "a", "a much longer name"]))
    narrow = Endpoints.from_frame({name: values[:2] for name, values in table().items()})
    assert wide.by_arch()["a"].digest == narrow.digest


def test_round_trip_through_a_frame() -> None:
    endpoints = Endpoints.from_frame(survey(), units={"S": "percent"})
    again = Endpoints.from_frame(endpoints.to_frame())
    assert again.digest == endpoints.digest
    assert again.notes == ()


def test_values_cannot_be_changed_from_outside() -> None:
    losses = np.array([3.0, 2.5, 2.75])
    endpoints = Endpoints.from_frame(table(loss=losses))
    losses[:] = 0
    assert endpoints.loss.tolist() == [3.0, 2.5, 2.75]
    with pytest.raises(ValueError, match="read-only"):
        endpoints.loss[0] = 1.0
    copy = pickle.loads(pickle.dumps(endpoints))
    assert copy.digest == endpoints.digest


def test_the_constructor_holds_the_same_rules() -> None:
    columns = {"arch": np.array(["a"]), "F": np.array([6e8]), "loss": np.array([3.0])}
    assert len(Endpoints(columns=columns)) == 1
    with pytest.raises(DataError, match=r"column F, 1 row \(first: 1\) not > 0"):
        Endpoints(columns={**columns, "F": np.array([0.0])})
    with pytest.raises(DataError, match="no columns of the schema: width"):
        Endpoints(columns={**columns, "width": np.array([1.0])})
    with pytest.raises(DataError, match="need arch, loss and one of F, N, C"):
        Endpoints(columns={"arch": np.array(["a"]), "loss": np.array([3.0])})
    with pytest.raises(DataError, match="equal lengths"):
        Endpoints(columns={**columns, "D": np.array([1e10, 2e10])})


def test_absent_columns_have_neutral_properties_but_no_items() -> None:
    endpoints = Endpoints.from_frame(table())
    assert endpoints.S.tolist() == [0, 0, 0]
    assert endpoints.weight.tolist() == [1, 1, 1]
    assert "S" not in endpoints
    with pytest.raises(DataError, match="no column S"):
        endpoints["S"]


def test_selection() -> None:
    endpoints = Endpoints.from_frame(table())
    assert len(endpoints.select(endpoints.loss < 2.9)) == 2
    assert endpoints.select([2]).archs == ("b",)
    with pytest.raises(DataError, match="no row is left of 3"):
        endpoints.select(endpoints.loss < 0)


# ---------------------------------------------------------------------- cells and tiers


def test_default_sparsities_of_the_survey() -> None:
    endpoints = Endpoints.from_frame(survey(6), units={"S": "percent"})
    assert len(endpoints) == 192
    assert default_sparsities(endpoints).tolist() == [0.0, 0.846, 0.947, 0.969]
    sparse = endpoints.exclude_tier(0)
    assert len(sparse) == 144
    assert default_sparsities(sparse).tolist() == [0.846, 0.947, 0.969]
    assert codes(sparse)["excluded_tier"] == 48
    assert default_sparsities(Endpoints.from_frame(table())).shape == (0,)


def test_each_cell_counts_once() -> None:
    ragged = {"arch": ["a"] * 5, "cell": list("xxxyz"), "S": [0.5, 0.5, 0.5, 0.55, 0.56]}
    endpoints = Endpoints.from_frame(
        {**ragged, "F": [6e8] * 5, "D": [1e10] * 5, "loss": [3.0, 2.9, 2.8, 3.0, 3.0]}
    )
    assert default_sparsities(endpoints).tolist() == [0.55]


def test_tiers_are_single_linkage_on_the_log_of_density() -> None:
    step = np.exp(-np.array([0.0, 0.24, 0.48, 0.74, 0.98]))  # gaps of .24, .24, .26, .24 in ln(1 - S)
    assert sparsity_tiers(1 - step).tolist() == [0, 0, 0, 1, 1]
    assert sparsity_tiers([0.5]).tolist() == [0]
    assert sparsity_tiers([]).tolist() == []


def test_excluding_a_tier_by_any_value_in_it() -> None:
    endpoints = Endpoints.from_frame(survey(), units={"S": "percent"})
    assert endpoints.exclude_tier(0.95).S.tolist() == endpoints.exclude_tier(0.955).S.tolist()
    with pytest.raises(DataError, match=r"no sparsity tier at 0.5: they are at 0, 0.846, 0.947, 0.969"):
        endpoints.exclude_tier(0.5)
    with pytest.raises(UsageError, match="fraction"):
        endpoints.exclude_tier(95)
    with pytest.raises(DataError, match="no column S"):
        Endpoints.from_frame(table()).exclude_tier(0)
    with pytest.raises(DataError, match="none would be left"):
        Endpoints.from_frame(table(S=[0.0, 0.0, 0.0])).exclude_tier(0)


def test_tiers_are_pooled_before_the_split() -> None:
    # Alone, b would have two tiers (.5 and .7 are .51 apart in ln(1 - S)); a's .6 links them into one.
    frame = {"arch": ["a", "a", "b", "b"], "scale": ["s"] * 4, "S": [0.6, 0.95, 0.5, 0.68]}
    endpoints = Endpoints.from_frame({**frame, "F": [6e8] * 4, "D": [1e10] * 4, "loss": [3.0] * 4})
    assert sparsity_tiers([0.5, 0.68]).tolist() == [0, 1]
    parts = endpoints.by_arch()
    assert parts["b"].tiers.tolist() == [0, 0]
    assert parts["b"].cells()[0].tolist() == ["s / tier 0", "s / tier 0"]
    joined = np.concatenate([part.cells()[0] for part in parts.values()])
    assert joined.tolist() == endpoints.cells()[0].tolist()


def test_excluding_a_tier_keeps_the_labels_of_the_others() -> None:
    endpoints = Endpoints.from_frame(survey(), units={"S": "percent"})
    labels = endpoints.exclude_tier(0).cells()[0]
    assert set(labels) == {f"{scale} / tier {tier}" for scale in PRINTED["smelt"] for tier in (1, 2, 3)}


def test_the_unit_is_the_first_that_the_table_names() -> None:
    every = {
        "cell": ["x", "y", "x"],
        "scale": ["s", "t", "s"],
        "trunk": ["p", "q", "p"],
        "run": ["1", "2", "3"],
    }
    order = ["cell", "scale", "trunk", "run"]
    expected = ["cell", "scale*tier", "trunk", "run", "row"]
    for start, unit in enumerate(expected):
        endpoints = Endpoints.from_frame(table(**{name: every[name] for name in order[start:]}))
        assert endpoints.cells()[1] == unit
    endpoints = Endpoints.from_frame(table(**every))
    assert endpoints.cells("run")[0].tolist() == ["1", "2", "3"]
    assert endpoints.cells("row")[0].tolist() == ["a / row 000001", "a / row 000002", "b / row 000001"]
    assert endpoints.by_arch()["b"].cells("row")[0].tolist() == ["b / row 000001"]
    scale_only = Endpoints.from_frame(table(scale=every["scale"]))
    assert scale_only.cells("cell")[1] == "scale*tier"
    with pytest.raises(UsageError, match="cannot resample by 'trunk': the table allows cell, row"):
        scale_only.cells("trunk")
    with pytest.raises(UsageError, match="the table allows row"):
        Endpoints.from_frame(table()).cells("cell")
