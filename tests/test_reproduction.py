"""Recomputing published tables: what agrees, what cannot be recomputed, and that a wrong number is caught."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from smelt_scaling.analyses import notes_of, reproduce
from smelt_scaling.analyses.claims import Claim
from smelt_scaling.papers import PAPERS, Paper, load_paper


def tampered(name: str, table: str, column: str, text: str, **where: str) -> Paper:
    """Return a paper with one printed cell replaced."""
    paper = load_paper(name)
    old = paper.tables[table]
    rows = [
        {**record, column: text} if all(record[k] == v for k, v in where.items()) else record
        for record in old.records()
    ]
    assert rows != old.records()
    new = replace(old, rows=tuple(tuple(row[c] for c in old.columns) for row in rows))
    return replace(paper, tables={**paper.tables, table: new})


def disagreeing(frame: pd.DataFrame) -> set[tuple[str, str]]:
    return {(row.table, row.quantity) for row in frame.itertuples() if row.agrees is False}


@pytest.fixture(scope="module")
def smelt() -> pd.DataFrame:
    return reproduce(load_paper("smelt"))


def rows(frame: pd.DataFrame, table: str, quantity: str) -> dict[str, object]:
    found = frame[(frame["table"] == table) & (frame["quantity"] == quantity)]
    return dict(zip(found["row"], found["recomputed"], strict=True))


@pytest.mark.parametrize("name", PAPERS)
def test_every_recomputed_number_agrees(name: str) -> None:
    """Whatever follows from other printed numbers does so within their rounding."""
    frame = reproduce(load_paper(name))
    assert not disagreeing(frame)
    assert (frame["agrees"] == True).sum() >= {"smelt": 50, "chinchilla": 36, "marin": 17}[name]  # noqa: E712
    assert list(frame.columns) == (
        ["table", "section", "row", "quantity", "published", "recomputed", "difference", "allowed", "agrees"]
    )
    assert not frame.duplicated(["table", "row", "quantity"]).any()


def test_gain_table(smelt: pd.DataFrame) -> None:
    """The nine gains, to 1e-5: the rounding of the numbers typed here."""
    typed = [0.09908, 0.07815, 0.06728, 0.17996, 0.15799, 0.14646, 0.23434, 0.20907, 0.19562]
    assert list(rows(smelt, "ce_gain", "gain").values()) == pytest.approx(typed, abs=1e-5)


def test_tokens_per_param_and_gamma(smelt: pd.DataFrame) -> None:
    typed = {"baseline": (56.452, 78.246, 91.074), "smelt": (56.125, 75.325, 86.368)}
    found = rows(smelt, "tpp", "tpp")
    for arch, values in typed.items():
        for tier, value in zip(("85%", "95%", "97%"), values, strict=True):
            assert found[f"1e21 {tier} {arch}"] == pytest.approx(value, abs=5e-4)  # typed to three decimals
    assert rows(smelt, "gamma", "gamma") == pytest.approx(
        {"baseline": 0.2371330, "smelt": 0.2502688}, abs=1e-7
    )


def test_arithmetic_of_the_design(smelt: pd.DataFrame) -> None:
    """1.37/1.33 is +3.0 % where +2.9 % is printed: within the rounding of both; the window follows from the grid."""
    assert rows(smelt, "matching", "deviation") == pytest.approx(
        {"example, F": 1.37 / 1.33 - 1, "example, total parameters": 3.89 / 3.87 - 1}, rel=1e-12
    )
    value = rows(smelt, "recipe", "value")
    assert value["stable_tokens"] == 196075 * 256 * 4096
    assert value["window_low"] == pytest.approx(1.296e19, rel=1e-3)
    assert value["window_high"] == pytest.approx(2.225e21, rel=1e-3)
    assert value["pairs"] == 96
    assert value["fitted_endpoints"] == 144


def test_what_nothing_recomputes_is_listed(smelt: pd.DataFrame) -> None:
    """Intervals and measured tables stand there without a verdict, and a note counts them."""
    silent = smelt[smelt["agrees"].isna()]
    assert silent[["recomputed", "difference", "allowed"]].isna().all(axis=None)
    assert silent["published"].str.len().gt(0).all()
    counts = {note.message.partition(":")[0]: note.count for note in notes_of(smelt)}
    assert {note.code for note in notes_of(smelt)} == {"not_recomputed"}
    assert counts == silent["table"].value_counts().to_dict()
    assert counts == {
        **{"ablation_depth": 2, "ablation_loops": 8, "ablation_span": 10, "ce_gain": 18, "coefficients": 14},
        **{"domains": 5, "lengths": 3, "probes": 22, "quartiles": 4, "shots": 4, "wins": 6},
    }
    assert set(silent.loc[silent["table"] == "ce_gain", "quantity"]) == {"lo", "hi"}


def test_allowance_is_the_rounding_of_both_sides() -> None:
    """0.30 +- .005 times 1.2 +- .05: changes of .006 and .015, plus half a unit of the printed product."""
    claim = Claim(
        table="t",
        row="r",
        quantity="q",
        published="0.4",
        inputs={"x": "0.30", "y": "1.2"},
        compute=lambda values: values["x"] * values["y"],
    )
    verdict = claim.judge()
    assert verdict["recomputed"] == pytest.approx(0.36, abs=1e-15)
    assert verdict["allowed"] == pytest.approx(0.05 + 0.006 + 0.015, abs=1e-12)
    assert verdict["agrees"] is True
    assert replace(claim, published="0.5").judge()["agrees"] is False
    assert replace(claim, published="0.5", bound=True).judge()["agrees"] is True  # at most 0.5
    assert replace(claim, published="0.2", bound=True).judge()["agrees"] is False


@pytest.mark.parametrize(
    ("name", "table", "column", "text", "where", "caught"),
    [
        ("smelt", "coefficients", "c", "0.6511", {"arch": "smelt"}, {("ce_gain", "gain"), ("tpp", "tpp")}),
        ("smelt", "coefficients", "E", "1.4593", {"arch": "smelt"}, {("ce_gain", "gain")}),
        ("smelt", "ce_gain", "gain", "20.0%", {"budget": "1e21", "tier": "85%"}, {("ce_gain", "gain")}),
        ("smelt", "gamma", "gamma", "0.249", {"arch": "smelt"}, {("gamma", "gamma")}),
        ("smelt", "tpp", "tpp", "73", {"arch": "smelt", "tier": "95%"}, {("tpp", "tpp")}),
        ("smelt", "recipe", "value", "3.2e21", {"quantity": "window_high"}, {("recipe", "value")}),
        ("smelt", "recipe", "value", "203B", {"quantity": "stable_tokens"}, {("recipe", "value")}),
        (
            "smelt",
            "matching",
            "largest_deviation",
            "4.5%",
            {"budget": "kv_cache"},
            {("matching", "largest_deviation")},
        ),
        ("chinchilla", "coefficients", "beta", "0.281", {"arch": "rounded"}, {("allocations", "N")}),
        (
            "marin",
            "speedups",
            "flop_multiplier",
            "1.32",
            {"budget": "1.70e18"},
            {("speedups", "flop_multiplier")},
        ),
        ("marin", "pinned_points", "loss", "3.3934", {"budget": "1.70e18"}, {("coefficients", "A")}),
        ("marin", "coefficients", "A", "90.32", {"arch": "agent"}, {("predictions", "loss")}),
    ],
)
def test_a_wrong_digit_is_caught(
    name: str, table: str, column: str, text: str, where: dict[str, str], caught: set[tuple[str, str]]
) -> None:
    """The check can fail: one changed cell makes the numbers that depend on it disagree."""
    assert caught <= disagreeing(reproduce(tampered(name, table, column, text, **where)))
