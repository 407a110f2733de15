"""Probes of a second visit: chances in closed form, arrays built to a stated truth, resampling of documents."""

from __future__ import annotations

import contextlib
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import regenerate_docs
import typer
from scipy.stats import hypergeom
from scipy.stats import t as student_t

from smelt_scaling import ProbeWriter, notes_of, probe_report, show_table
from smelt_scaling.analyses.probes import (
    PROBE_COLUMNS,
    PROBES,
    attention_cosine_rows,
    norm_rows,
    overlap_tail,
    position_rows,
    routing_rows,
    sink_rows,
    write_cosine_rows,
)
from smelt_scaling.analyses.probes.cosines import broken_order
from smelt_scaling.analyses.probes.pooled import CellSums, cell_sums, draw_weights, statistics
from smelt_scaling.cli import app, run
from smelt_scaling.errors import DataError, UsageError
from smelt_scaling.resampling import percentile_interval

RNG = np.random.default_rng


def table(**columns: Any) -> pd.DataFrame:
    """Six documents of one cell, routed; some columns replaced, None takes one out."""
    plain: dict[str, Any] = {
        "probe": "routing",
        "cell": "600M",
        "doc": list("abcdef"),
        "k": 8,
        "n": 288,
        "value": [2.0, 3.0, 2.0, 3.0, 2.0, 3.0],
    }
    return pd.DataFrame({name: v for name, v in {**plain, **columns}.items() if v is not None})


def codes(frame: pd.DataFrame) -> set[str]:
    return {note.code for note in notes_of(frame)}


def only(frame: pd.DataFrame, **which: Any) -> pd.Series[Any]:
    for name, value in which.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1
    return frame.iloc[0]


# -- chance ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "printed"), [(16, 4.0), (96, 0.667), (288, 0.222), (504, 0.127)])
def test_chance_of_routing_is_hypergeometric(n: int, printed: float) -> None:
    row = probe_report(table(n=n, value=2.0), bootstrap=0).iloc[0]
    law = hypergeom(n, 8, 8)
    assert row["chance"] == pytest.approx(law.mean(), rel=1e-12)
    assert row["chance"] == pytest.approx(printed, abs=5e-4)  # the digits printed
    assert row["chance_sd"] == pytest.approx(law.std(), rel=1e-12)
    assert row["lift"] == pytest.approx(2.0 / law.mean(), rel=1e-12)
    assert row["kappa"] == pytest.approx((2.0 - law.mean()) / (8 - law.mean()), rel=1e-12)
    assert overlap_tail(n, 8, 2) == pytest.approx(1 - law.pmf(0) - law.pmf(1), rel=1e-9)


def test_eight_of_eight_is_twice_chance_without_sparsity_and_sixty_times_with_it() -> None:
    shared = probe_report(pd.concat([table(n=16, value=8.0), table(cell="b", n=504, value=8.0)]), bootstrap=0)
    assert shared["lift"].tolist() == pytest.approx([2.0, 63.0])
    assert shared["kappa"].tolist() == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(("length", "printed"), [(4096, 0.014), (1024, 0.045), (512, 0.080)])
def test_chance_of_the_top_positions_is_that_of_each_position(length: int, printed: float) -> None:
    t = np.arange(1, length + 1)
    rows = table(
        probe="top_k", doc="a", k=8, n=None, value=0.5, position=t, cell="a", layer=["1"] * length
    )  # a row per token
    report = probe_report(rows, bootstrap=0)
    kept = t[t > 8]
    assert report["chance"].iloc[0] == pytest.approx(np.mean(8 / kept), rel=1e-12)
    (certain,) = (note for note in notes_of(report) if note.code == "certain_rows")
    assert certain.count == 8  # up to position 8 both sets are all there is
    every = (8 + np.sum(8 / kept)) / length
    assert every == pytest.approx(printed, abs=5e-4)  # the published means count them
    assert np.mean(PROBES["top_k"].chance({"k": np.full(length, 8.0), "position": t * 1.0})) == pytest.approx(
        every
    )


def test_chance_of_a_sink_is_attention_spread_evenly() -> None:
    length = 50
    even = np.tril(np.ones((2, length, length))) / np.arange(1, length + 1)[None, :, None]
    harmonic = sum(1 / (t + 1) for t in range(1, length)) / (length - 1)
    for row in sink_rows(even, even):
        assert row["value"] == pytest.approx(harmonic, rel=1e-12)
        assert row["chance"] == pytest.approx(harmonic, rel=1e-12)


# -- measures on arrays ------------------------------------------------------------------------------------------------


def chosen(rng: np.random.Generator, tokens: int, n: int, k: int, load: Any) -> Any:
    """Choose k of n experts by weight without replacement (the Gumbel trick)."""
    keys = np.log(load) + rng.gumbel(size=(tokens, n))
    return np.argsort(-keys, axis=1)[:, :k]


def test_load_aware_chance_is_what_permuting_tokens_over_the_cell_leaves() -> None:
    rng = RNG(0)
    load = rng.dirichlet(np.full(20, 0.5))
    first, second = chosen(rng, 30, 20, 3, load), chosen(rng, 30, 20, 3, load)
    writer = ProbeWriter()
    for doc, part in enumerate((slice(0, 12), slice(12, 30))):
        writer.add("routing", routing_rows(first[part], second[part], n=20), cell="c", doc=doc, layer=0)
    report = probe_report(writer.frame(), bootstrap=0).iloc[0]
    one_hot = [np.eye(20)[x].sum(axis=1) for x in (first, second)]
    # every pair of tokens meets in exactly one cyclic shift
    shifts = [(one_hot[0] * np.roll(one_hot[1], shift, axis=0)).sum(axis=1).mean() for shift in range(30)]
    assert report["control"] == pytest.approx(np.mean(shifts), rel=1e-12)
    assert report["value"] == pytest.approx(shifts[0], rel=1e-12)
    assert report["contrast"] == pytest.approx(shifts[0] - np.mean(shifts), rel=1e-9)


def load_aware(choices: Any, n: int) -> pd.Series[Any]:
    writer = ProbeWriter()
    writer.add("routing", routing_rows(*choices, n=n), cell="c", doc="d")
    return probe_report(writer.frame(), bootstrap=0).iloc[0]


def test_a_skewed_load_shares_the_one_expert_as_often_as_the_dirichlet_says() -> None:
    rng, found = RNG(0), []
    for _ in range(60):
        load = rng.dirichlet(np.full(504, 0.3))
        found.append(load_aware([rng.choice(504, (1000, 1), p=load) for _ in range(2)], 504)["control"])
    expected = 1.3 / (504 * 0.3 + 1)  # E sum_e w_e^2 of a symmetric Dirichlet
    assert abs(np.mean(found) - expected) < 4 * np.std(found) / math.sqrt(60)


def test_a_skewed_load_shares_experts_by_itself() -> None:
    rng, found = RNG(1), []
    for _ in range(6):
        load = rng.dirichlet(np.full(504, 0.3))
        row = load_aware([chosen(rng, 500, 504, 8, load) for _ in range(2)], 504)
        found.append((row["value"], row["control"], row["chance"]))
    value, control, chance = np.mean(found, axis=0)
    # on record is .49, of one load; over 150 loads the mean is .526 and the standard deviation .045
    assert abs(control - 0.49) < 2 * 0.045 * math.sqrt(1 + 1 / 6)
    assert abs(control - 0.526) < 3 * 0.045 / math.sqrt(6)
    assert control < 64 * 1.3 / (504 * 0.3 + 1)  # the Dirichlet's own, were experts drawn with replacement
    assert value == pytest.approx(
        control, abs=0.04
    )  # 3000 tokens of standard deviation .7: three standard errors
    assert chance == pytest.approx(0.127, abs=5e-4)


def test_shared_experts_are_counted_once_per_expert_whatever_their_order() -> None:
    (row,) = routing_rows([[3, 1, 2], [0, 1, 2]], [[1, 2, 7], [5, 6, 7]], n=8)
    assert row["value"] == 1.0  # (2 + 0) / 2
    assert row["load"].sum(axis=1).tolist() == [6, 6]  # conservation: k per token


def test_write_norms_are_averaged_geometrically_and_zero_vectors_counted() -> None:
    first = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    second = np.array([[6.0, 8.0], [0.0, 8.0], [1.0, 0.0], [0.0, 0.0]])
    (row,) = norm_rows(first, second, part="moe", scaled=True)
    assert row["value"] == pytest.approx(4.0)  # sqrt(2 * 8)
    assert (row["tokens"], row["undefined"], row["scaled"]) == (2, 2, "yes")
    (gone,) = norm_rows(first[2:], second[2:], part="moe", scaled=True)
    assert math.isnan(gone["value"])
    writer = ProbeWriter()
    writer.add("write_norm", [row], cell="c", doc=0)
    writer.add("write_norm", [gone], cell="c", doc=1)
    report = probe_report(writer.frame(), bootstrap=0)
    assert report["value"].tolist() == pytest.approx([4.0])
    assert report["undefined"].tolist() == [4]
    (note,) = (note for note in notes_of(report) if note.code == "undefined_values")
    assert note.count == 4


def test_centring_removes_a_direction_that_all_tokens_share() -> None:
    rng = RNG(0)
    common = 5 * rng.standard_normal(200)
    first, second = common + rng.standard_normal((2, 3, 400, 200))
    rows = write_cosine_rows(first, second, part="moe", layers=[4, 5, 6])
    plain = [row for row in rows if row["part"] == "moe"]
    centred = [row for row in rows if row["part"] == "moe, centred"]
    assert [row["layer"] for row in plain] == [4, 5, 6]
    for row in plain:  # cos = 25 / 26 in the mean, for the same layer and for others
        assert row["value"] == pytest.approx(25 / 26, abs=0.01)
        assert row["control"] == pytest.approx(25 / 26, abs=0.01)
    for row in centred:  # random directions: the mean of 400 has sd 1/sqrt(400 * 200)
        assert abs(row["value"]) < 4 / math.sqrt(400 * 200)


def test_a_single_looped_layer_has_no_other_layer_as_control() -> None:
    x = RNG(0).standard_normal((1, 5, 4))
    assert all(math.isnan(row["control"]) for row in write_cosine_rows(x, x, part="moe"))


def test_keys_of_a_group_count_once_and_the_input_is_the_control() -> None:
    rng = RNG(0)
    x, q, k = rng.standard_normal((6, 8)), rng.standard_normal((6, 4, 8)), rng.standard_normal((6, 2, 8))
    rows = attention_cosine_rows({"input": x, "Q": q, "K": k}, {"input": -x, "Q": q, "K": k})
    assert [(row["part"], row.get("head")) for row in rows] == [
        ("input", None), ("Q", 0), ("Q", 1), ("Q", 2), ("Q", 3), ("K", 0), ("K", 1),
    ]  # fmt: skip
    assert [row["control"] for row in rows[1:]] == pytest.approx([-1.0] * 6)
    for repeated in (np.repeat(k, 2, axis=1), np.tile(k, (1, 2, 1))):
        with pytest.raises(UsageError, match="pass each group once"):
            attention_cosine_rows({"input": x, "K": repeated}, {"input": x, "K": repeated})


@pytest.mark.parametrize(
    ("values", "broken"),
    [
        ({"input": 0.88, "Q": 0.91, "K": 0.90, "V": 0.70, "PV": 0.6, "O": 0.5}, ""),
        ({"input": 0.88, "Q": 0.88, "K": 0.90}, ""),  # at least as alike is enough
        ({"input": 0.85, "Q": 0.97, "K": 0.99, "V": 0.86, "PV": 0.75, "O": 0.79}, "V above input"),
        ({"Q": 0.8, "V": 0.7, "O": 0.7}, "O equal to V"),
    ],
)
def test_order_along_the_attention(values: dict[str, float], broken: str) -> None:
    assert broken_order(values) == broken


def causal(rng: np.random.Generator, heads: int, length: int, first: float = 1.0) -> Any:
    weights = np.tril(np.exp(rng.standard_normal((heads, length, length))))
    weights[:, :, 0] *= first
    return weights / weights.sum(axis=2, keepdims=True)


def test_independent_heads_share_positions_by_chance_and_the_first_never_counts() -> None:
    rng = RNG(0)
    one, two = causal(rng, 6, 300, 1e4), causal(rng, 6, 300, 1e4)  # both put nearly all mass on position 0
    rows = position_rows(one, two, k=8, after=64)
    t = np.arange(65, 300)
    expected = np.mean([hypergeom(n, 8, 8).mean() / 8 for n in t])
    # tokens of independent weights: sd of the mean of 235 tokens of 6 heads
    se = math.sqrt(sum(hypergeom(n, 8, 8).var() / 64 for n in t)) / len(t) / math.sqrt(6)
    assert np.mean([row["chance"] for row in rows]) == pytest.approx(expected, rel=1e-12)
    assert abs(np.mean([row["value"] for row in rows]) - expected) < 4 * se
    # five other heads each, so a fifth of the variance; but never less than the same band
    assert abs(np.mean([row["control"] for row in rows]) - expected) < 4 * se
    assert [row["value"] for row in position_rows(one, one)] == [1.0] * 6


def test_documents_that_end_too_soon_are_counted() -> None:
    weights = causal(RNG(0), 2, 40)
    rows = position_rows(weights, weights)
    assert [(math.isnan(row["value"]), row["tokens"]) for row in rows] == [(True, 40)] * 2
    with pytest.raises(UsageError, match="give after >= k"):
        position_rows(weights, weights, after=4)


def test_queries_without_k_positive_weights_have_no_top_positions() -> None:
    one, two = causal(RNG(0), 3, 120), causal(RNG(1), 3, 120)
    plain = position_rows(one, two)
    padded, damaged = one.copy(), two.copy()
    padded[:, 110:] = 0.0  # all keys tie: their first places would be "shared"
    damaged[1, 80, 5] = np.nan
    rows = position_rows(padded, damaged)
    assert [row["undefined"] for row in rows] == [10, 11, 10]
    kept = position_rows(one[:, :110, :110], two[:, :110, :110])
    assert (rows[0]["value"], rows[2]["value"]) == (kept[0]["value"], kept[2]["value"])
    assert rows[1]["tokens"] == plain[1]["tokens"] - 11


def test_mass_is_conserved() -> None:
    first, second = causal(RNG(0), 3, 60, 50.0), causal(RNG(1), 3, 60)
    rows = sink_rows(first, second)
    for row in rows:
        weights = first if row["visit"] == "1" else second
        elsewhere = weights[row["head"], 1:, 1:].sum(axis=1).mean()
        assert row["value"] + elsewhere == pytest.approx(1.0, abs=1e-12)
        assert row.get("unnormalised", 0) == 0
    two = [row for row in rows if row["visit"] == "2"]
    assert [row["control"] for row in two] == [row["value"] for row in rows if row["visit"] == "1"]


def test_rows_of_weights_that_do_not_sum_to_one_are_flagged_and_kept() -> None:
    weights = causal(RNG(0), 2, 30)
    off = weights.copy()
    off[1, 5:8] *= 1.02
    off[0, 3] *= 1.009  # within what bf16 does
    writer = ProbeWriter()
    writer.add("sink", sink_rows(weights, off), cell="c", doc="d", layer=1)
    report = probe_report(writer.frame(), bootstrap=0)
    (note,) = (note for note in notes_of(report) if note.code == "unnormalised_attention")
    assert note.count == 3
    assert report["tokens"].tolist() == [58, 58]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: routing_rows([[0, 1]], [[0, 1, 2]], n=8), "both visits need one array"),
        (lambda: routing_rows([[0, 8]], [[0, 1]], n=8), "whole numbers from 0 to 7"),
        (lambda: routing_rows([[0.0, 1.0]], [[0, 1]], n=8), "whole numbers from 0 to 7"),
        (lambda: routing_rows([[1, 1]], [[0, 1]], n=8), "one expert twice"),
        (lambda: norm_rows([[1.0]], [[1.0], [2.0]], part="moe", scaled=True), "one array of 2 dimensions"),
        (lambda: sink_rows(np.ones((1, 2, 3)), np.ones((1, 2, 3))), "queries by keys"),
        (lambda: attention_cosine_rows({"Q": [[1.0]]}, {"Q": [[1.0]]}), "one of them is input"),
        (lambda: ProbeWriter().add("sinks", [], cell="c", doc="d"), "no probe"),
    ],
)
def test_arrays_that_cannot_be_compared_are_refused(call: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        call()


# -- pooling and resampling --------------------------------------------------------------------------------------------


def test_tokens_count_alike_in_a_cell_and_cells_count_alike() -> None:
    rows = table(cell=list("xxyyyy"), value=[1.0, 4.0, 3.0, 3.0, 3.0, 3.0], tokens=[3, 1, 9, 9, 9, 9])
    report = probe_report(rows, bootstrap=0).iloc[0]
    assert report["value"] == pytest.approx((7 / 4 + 3) / 2)
    assert (report["cells"], report["documents"], report["tokens"]) == (2, 6, 40)
    apart = probe_report(rows, bootstrap=0, by="cell")
    assert dict(zip(apart["cell"], apart["value"], strict=True)) == pytest.approx({"x": 1.75, "y": 3.0})


def test_rows_of_tokens_and_of_documents_say_the_same() -> None:
    t = np.tile(np.arange(9, 49), 6)
    shared = RNG(0).integers(0, 9, len(t)) / 8
    single = pd.DataFrame(
        {
            "probe": "top_k",
            "cell": "c",
            "doc": np.repeat(list("abcdef"), 40),
            "k": 8,
            "position": t,
            "value": shared,
        }
    )
    mean = single.assign(chance=8 / t).groupby(["probe", "cell", "doc", "k"], as_index=False)[
        ["value", "chance"]
    ]
    merged = mean.mean().assign(tokens=40)
    a, b = (probe_report(frame, bootstrap=50) for frame in (single, merged))
    for name in ("value", "value_lo", "value_hi", "chance", "lift", "tokens"):
        assert a[name].iloc[0] == pytest.approx(b[name].iloc[0], rel=1e-12)


def drawn_sd(frame: pd.DataFrame, draws: int = 4000) -> float:
    cells = cell_sums(
        frame.assign(chance=0.0, control=np.nan, layer="", tokens=frame.get("tokens", 1.0)), PROBES["routing"]
    )
    return float(statistics(cells, *draw_weights(cells, draws, 0), PROBES["routing"])["value"].std())


def test_documents_are_resampled_in_a_cell_and_tokens_never() -> None:
    value = np.array([1.0, 2.0, 4.0, 3.0, 5.0, 0.0])
    expected = value.std() / math.sqrt(6)  # of the mean of a resample, exactly
    rel = 4 / math.sqrt(2 * 4000)  # four standard errors of a standard deviation from 4000 draws
    assert drawn_sd(table(value=value)) == pytest.approx(expected, rel=rel)
    # a hundred equal tokens in each document add nothing
    assert drawn_sd(pd.concat([table(value=value)] * 100)) == pytest.approx(expected, rel=rel)


def test_what_documents_do_to_all_cells_does_not_average_out() -> None:
    value = np.array([1.0, 2.0, 4.0, 3.0, 5.0, 0.0])
    alike = pd.concat([table(cell=f"c{i}", value=value) for i in range(20)])
    expected = value.std() / math.sqrt(6)  # cells are equal: only documents vary, and twenty cells share them
    assert drawn_sd(alike) == pytest.approx(expected, rel=4 / math.sqrt(8000))
    own = pd.concat([table(cell=f"c{i}", doc=[f"{i}{d}" for d in "abcdef"], value=value) for i in range(20)])
    assert drawn_sd(own) < expected / 2


def test_cells_are_resampled() -> None:
    level = np.array([1.0, 2.0, 2.5, 4.0, 7.0])
    cells = pd.concat([table(cell=f"c{i}", value=level[i]) for i in range(5)])
    assert drawn_sd(cells) == pytest.approx(level.std() / math.sqrt(5), rel=4 / math.sqrt(8000))


def test_intervals_hold_the_truth_where_cells_share_documents() -> None:
    """Gaussian effects of cells (.1), documents (.5) and both (.3); truth 0, nominal 95 %."""
    rng, worlds, held, naive = RNG(1), 100, 0, 0
    docs = tuple(f"{i:02d}" for i in range(50))
    for world in range(worlds):
        y = rng.normal(0, 0.1, (12, 1)) + rng.normal(0, 0.5, (1, 50)) + rng.normal(0, 0.3, (12, 50))
        sums = np.zeros((12, 6, 1, 50))
        sums[:, 0, 0], sums[:, 1, 0] = 1.0, y
        cells = [CellSums(cell=f"c{i}", docs=docs, sums=sums[i]) for i in range(12)]
        drawn = statistics(cells, *draw_weights(cells, 199, world), PROBES["write_cosine"])["value"]
        ends = percentile_interval(drawn, 0.95)
        assert ends is not None
        held += ends[0] <= 0 <= ends[1]
        naive += abs(y.mean()) <= student_t.ppf(0.975, 11) * y.mean(axis=1).std(ddof=1) / math.sqrt(12)
    # 100 worlds at .93 to .97: three standard errors of a count are 8 and 5
    assert held >= 85
    assert naive < 75  # what cells alone say, with the documents they share taken as fixed


def test_shares_count_heads() -> None:
    heads = [("1", h, 0.6, np.nan) for h in "abcd"] + [
        ("2", h, v, 0.6) for h, v in zip("abcd", (0.1, 0.2, 0.31, 0.7), strict=True)
    ]
    rows = [
        {
            "probe": "sink",
            "cell": "c",
            "doc": d,
            "layer": "3",
            "visit": visit,
            "head": h,
            "value": v,
            "control": c,
        }
        for d in "pqrstu"
        for visit, h, v, c in heads
    ]
    report = probe_report(pd.DataFrame(rows).assign(chance=0.05), bootstrap=100)
    two = only(report, visit="2")
    assert two["share_above"] == 0.5  # .31 and .7 beyond .3
    assert two["share_above_control"] == 0.25  # one head of four has more mass than in the first visit
    assert (two["share_above_control_lo"], two["share_above_control_hi"]) == (
        0.25,
        0.25,
    )  # documents are equal
    assert two["contrast"] == pytest.approx(np.mean([0.1, 0.2, 0.31, 0.7]) - 0.6)
    one = only(report, visit="1")
    assert pd.isna(one["contrast"])
    assert pd.isna(one["share_above_control"])
    assert (one["units"], one["share_above"]) == (4, 1.0)


def test_write_norms_above_one_in_every_cell() -> None:
    rng = RNG(0)
    rows = [
        {"probe": "write_norm", "cell": f"c{i}", "doc": d, "part": part, "scaled": "no", "value": x}
        for i in range(16)
        for part, centre in (("attention", 2.0), ("moe", 1.0))
        for d, x in zip("abcdef", centre * np.exp(rng.normal(0, 0.1, 6)), strict=True)
    ]
    report = probe_report(pd.DataFrame(rows), bootstrap=200)
    attention = only(report, part="attention")
    assert attention["share_above"] == 1.0
    assert attention["value_lo"] < 2.0 < attention["value_hi"]
    logs = np.log([row["value"] for row in rows if row["part"] == "attention"])
    assert attention["value"] == pytest.approx(math.exp(logs.mean()), rel=1e-12)
    assert 0 < only(report, part="moe")["share_above"] < 1


def test_order_of_rows_does_not_matter_and_draws_do_not_depend_on_their_number() -> None:
    rng = RNG(0)
    rows = pd.concat([table(cell=f"c{i}", value=rng.uniform(1, 4, 6), layer=str(i % 3)) for i in range(6)])
    report = probe_report(rows, bootstrap=64, by="layer")
    again = probe_report(rows.sample(frac=1, random_state=1), bootstrap=64, by="layer")
    pd.testing.assert_frame_equal(report, again, check_exact=True)
    cells = cell_sums(rows.assign(chance=0.0, control=np.nan, tokens=1.0), PROBES["routing"])
    few, many = draw_weights(cells, 8, 3), draw_weights(cells, 16, 3)
    assert np.array_equal(few[1], many[1][:, :8])
    assert np.array_equal(few[0][0], many[0][0][:, :8])


def test_draws_without_a_control_are_counted_and_allow_no_interval_of_the_contrast() -> None:
    """One document of six has a control: a draw misses it with probability (5/6)^6 = .335."""
    rows = [
        {"probe": "sink", "cell": "c", "doc": d, "position": 9, "value": v, "control": c}
        for d, v, c in zip("abcdef", (0.5, 0.4, 0.6, 0.3, 0.5, 0.7), [0.2, *[np.nan] * 5], strict=True)
    ]
    report = probe_report(pd.DataFrame(rows), bootstrap=1000)
    row = report.iloc[0]
    assert row["undefined_draws"] / 1000 == pytest.approx(
        (5 / 6) ** 6, abs=4 * math.sqrt(0.335 * 0.665 / 1000)
    )
    assert row["contrast"] == pytest.approx(0.3)
    assert pd.isna(row["contrast_lo"])
    assert row["value_lo"] < 0.5 < row["value_hi"]
    assert "empty_draws" in {note.code for note in notes_of(report)}


def test_nothing_is_resampled_where_nothing_varies() -> None:
    single = probe_report(table(doc="a", position=range(6)), bootstrap=100).iloc[0]
    assert (single["draws"], single["value"]) == (0, 2.5)
    assert pd.isna(single["value_lo"])


def test_rows_stand_along_the_attention_and_layers_by_number() -> None:
    parts = ["O", "V", "input", "K", "Q", "PV"]
    rows = pd.concat(
        [
            table(probe="attention_cosine", part=part, layer=layer, value=0.5)
            for part in parts
            for layer in ("10", "9")
        ]
    )
    report = probe_report(rows, bootstrap=0, by="layer")
    assert report["part"].tolist()[::2] == ["Q", "K", "input", "V", "PV", "O"]
    assert report["layer"].tolist()[:2] == ["9", "10"]
    assert report.attrs["order"][0]["holds"] is False


# -- tables, files, command line ---------------------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path: Path) -> Path:
    rng = RNG(0)
    writer = ProbeWriter()
    for cell in "abcde":
        for doc in range(5):
            weights = causal(rng, 2, 80), causal(rng, 2, 80)
            x = rng.standard_normal((2, 3, 12, 8))
            at: dict[str, Any] = {"cell": cell, "doc": doc}
            chosen_twice = (np.argsort(rng.random((12, 32)), axis=1)[:, :4] for _ in range(2))
            writer.add("routing", routing_rows(*chosen_twice, n=32), layer=1, **at)
            writer.add("write_norm", norm_rows(x[0, 0], x[1, 0], part="moe", scaled=False), layer=1, **at)
            writer.add("write_cosine", write_cosine_rows(x[0], x[1], part="moe"), **at)
            stages = [{"input": y[0], "Q": y[1], "V": y[2]} for y in x]
            writer.add("attention_cosine", attention_cosine_rows(*stages), layer=1, **at)
            writer.add("top_k", position_rows(*weights), layer=1, **at)
            writer.add("sink", sink_rows(*weights), layer=1, **at)
    path = tmp_path / "probes.parquet"
    writer.frame().to_parquet(path)
    return path


def test_command_line_and_library_give_the_same_numbers(written: Path, tmp_path: Path) -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        command = ["probes", str(written), "--bootstrap", "60", "--by", "layer", "--format", "json"]
        code = run([*command, "-o", str(tmp_path / "out")])
    assert code == 0
    record = json.loads(out.getvalue())
    report = probe_report(written, bootstrap=60, by="layer")
    assert [row["value_hi"] for row in record["rows"]] == report["value_hi"].tolist()
    assert {row["probe"] for row in record["rows"]} == set(PROBES)
    assert len(record["order"]) == 5
    assert json.loads((tmp_path / "out" / "probes.json").read_text())["rows"] == record["rows"]
    stored = pd.read_parquet(tmp_path / "out" / "probes.parquet")
    assert stored["value"].tolist() == report["value"].tolist()


@pytest.mark.parametrize("form", ["table", "md", "latex", "csv"])
def test_every_format_shows_every_probe(written: Path, form: str) -> None:
    text = show_table(probe_report(written, bootstrap=60), form)
    for name in PROBES:
        assert name.replace("_", r"\_") in text or name in text
    if form == "table":
        assert max(map(len, text.splitlines())) <= 80


def test_a_file_in_text_reads_as_the_binary_one(written: Path, tmp_path: Path) -> None:
    frame = pd.read_parquet(written)
    frame.to_csv(tmp_path / "probes.csv", index=False)
    a, b = (probe_report(path, bootstrap=20) for path in (written, tmp_path / "probes.csv"))
    pd.testing.assert_frame_equal(a, b, check_exact=False, rtol=1e-12)


def test_a_table_of_another_shape_is_mapped() -> None:
    other = table(probe=None, doc=None).rename(columns={"value": "loss", "cell": "model"})
    other["run"] = list("abcdef")
    mapping = {"cell": "model", "doc": "run", "value": "loss"}
    report = probe_report(other, probes="routing", mapping=mapping, bootstrap=0)
    assert report["value"].tolist() == [2.5]
    assert "ignored_columns" in codes(probe_report(table(mood="good"), bootstrap=0))


def norms(scaled: Any) -> pd.DataFrame:
    return table(probe="write_norm", k=None, n=None, scaled=scaled)


def test_norms_with_and_without_the_factor_are_not_averaged_in_silence() -> None:
    """Half of the writes hold 1/r: their mean is of neither, and the table says which they are."""
    mixed = probe_report(norms(["yes", "no", "no", "yes", "no", "no"]), bootstrap=0)
    (note,) = [note for note in notes_of(mixed) if note.code == "mixed_scale"]
    assert "2 write norms hold the factor 1/r and 4 do not" in note.message
    assert mixed.attrs["settings"]["scaled"] == ["no", "yes"]
    for said, words in (
        ("yes", "holding the factor 1/r"),
        ("no", "without the factor 1/r"),
        (None, "not stated"),
    ):
        one = probe_report(norms(said), bootstrap=0)
        assert "mixed_scale" not in codes(one)
        assert words in " ".join(show_table(one).split())


@pytest.mark.parametrize(("flag", "word"), [(True, "yes"), (False, "no"), ("FALSE", "no")])
def test_a_flag_is_yes_or_no(flag: Any, word: str) -> None:
    assert probe_report(norms(flag), bootstrap=0).attrs["settings"]["scaled"] == [word]


def test_how_much_a_row_rests_on_is_shown() -> None:
    both = probe_report(pd.concat([table(), table(cell="b")]), bootstrap=0)
    assert "A row: 2 cells, 12 documents, 12 tokens." in " ".join(show_table(both).split())
    uneven = probe_report(pd.concat([table(), table(cell="b", n=504).head(1)]), bootstrap=0)
    assert "A row: 1 cell, 1 to 6 documents, 1 to 6 tokens." in " ".join(show_table(uneven).split())


def test_a_row_without_an_interval_is_not_said_to_have_a_narrow_one() -> None:
    alone = notes_of(probe_report(table().head(1)))
    assert [note.code for note in alone] == ["few_probed_cells", "few_documents"]
    assert all("one document of one cell has no interval" in note.message for note in alone)
    assert all("too narrow" in note.message for note in notes_of(probe_report(table().head(2))))


def test_too_few_resamples_for_an_interval_are_noted() -> None:
    """The end of a 95 % interval is the 2.5 % order statistic: 39 resamples have one, 38 have none."""
    assert ["few_draws" in codes(probe_report(table(), bootstrap=n)) for n in (38, 39, 0)] == [
        True,
        False,
        False,
    ]


def test_rows_without_a_label_are_one_problem() -> None:
    with pytest.raises(DataError) as caught:
        probe_report(table(doc=[None, None, "c", "d", "e", "f"]))
    assert str(caught.value) == (
        "table: column doc, 2 rows (first: 1) missing: a label is needed in every row; fill them or drop the rows"
    )


def test_a_missing_column_lists_those_there_are() -> None:
    with pytest.raises(DataError, match=r"no column doc: .*\(columns: probe, cell, document, k, n, value\)"):
        probe_report(table().rename(columns={"doc": "document"}))


def test_declarations_hang_together() -> None:
    for name, probe in PROBES.items():
        assert probe.name == name
        assert set(probe.needs) <= set(PROBE_COLUMNS)
        assert set(probe.counted) <= set(PROBE_COLUMNS)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": None}, "no column value"),
        ({"probe": "rooting"}, "no such probe; use routing"),
        ({"cell": ["", *"abcde"]}, r"column cell, 1 row \(first: 1\) missing"),
        ({"doc": "a"}, r"5 rows \(first: 2\) repeat an earlier row"),
        ({"value": [2.0] * 5 + [9.0]}, r"1 row \(first: 6\) of routing not from 0 to 8 \(9\)"),
        ({"value": [2.0] * 5 + [np.inf]}, r"1 row \(first: 6\) infinite"),
        ({"n": None}, "routing, no n in some rows: chance is k²/n"),
        ({"k": [8, 8, 8, 8, 8, 7.5]}, "not a whole number >= 1"),
        ({"n": 4}, "with k > n"),
        ({"probe": "sink", "position": range(1, 7), "value": 60.0}, "divide percent by 100"),
        ({"probe": "write_norm", "value": 0.0}, "not above 0"),
        ({"probe": "write_norm", "scaled": "maybe"}, "write yes or no"),
        ({"value": np.nan}, "none left"),
    ],
)
def test_bad_tables_are_refused_in_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        probe_report(table(**changes), bootstrap=0)
    assert str(caught.value).count("\n") == 0


def test_output_shown_in_help_is_that_of_the_documented_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(regenerate_docs.ROOT) / "docs" / "probes.md").read_text(encoding="utf-8").splitlines()
    block = next(b for b in regenerate_docs.blocks(page) if b.language == "python")
    exec("\n".join(page[block.start : block.stop]), {})
    group: Any = typer.main.get_command(app)
    example = group.commands["probes"].help.partition("Example:\n")[2].partition("\n\n")[0]
    command, *shown = [line.strip() for line in example.splitlines()]
    assert run(command.removeprefix("$ smelt-scaling ").split()) == 0
    assert set(shown) - {"..."} <= set(capsys.readouterr().out.splitlines())
