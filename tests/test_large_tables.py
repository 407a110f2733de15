"""What makes a large table quick changes nothing: sorting, grouping and levels against their slow definitions."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smelt_scaling import DataError, Endpoints, read_endpoints
from smelt_scaling._groups import Groups, group_rows
from smelt_scaling._text import Text
from smelt_scaling.endpoints import COLUMNS, default_sparsities, sparsity_tiers
from smelt_scaling.engine.design import LEVEL_WIDTH, level_index

Row = dict[str, Any]

#: Few values, so that rows tie in any number of columns; names whose code points and case disagree.
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "arch": st.sampled_from(["a", "B", "é", "a b"]),
    "scale": st.sampled_from(["1B", "10B", "2B"]),
    "run": st.sampled_from(["r1", "r2", "r10", "r3"]),
    "F": st.sampled_from([6e8, 1.25e9]),
    "S": st.sampled_from([0.0, 0.5, 0.875]),
    "D": st.sampled_from([1e9, 2e9, 4e9]),
    "loss": st.sampled_from([2.5, 2.5078125, 3.0]),
    "loss_se": st.sampled_from([math.nan, 0.0, 0.01]),
    "source": st.sampled_from(["x", ""]),
}


@st.composite
def tables(draw: st.DrawFn, always: tuple[str, ...] = ("arch", "F", "D", "loss")) -> list[Row]:
    others = [name for name in CELLS if name not in always]
    names = [*always, *draw(st.lists(st.sampled_from(others), unique=True))]
    return draw(st.lists(st.fixed_dictionaries({n: CELLS[n] for n in names}), min_size=1, max_size=25))


def place(row: Row) -> list[Any]:
    """The canonical order, by its definition: schema order, text by code point, missing last."""
    cells = [row[name] for name in COLUMNS if name in row]
    return [
        cell if isinstance(cell, str) else (math.isnan(cell), 0.0 if math.isnan(cell) else cell)
        for cell in cells
    ]


def columns_of(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def told(rows: list[Row]) -> list[tuple[str, ...]]:
    return [tuple(repr(row[name]) for name in sorted(row)) for row in rows]


@given(rows=tables())
def test_canonical_order_is_that_of_the_definition(rows: list[Row]) -> None:
    endpoints = Endpoints(columns=columns_of(rows))
    found = endpoints.to_frame().to_dict("records")
    assert told(found) == told(sorted(rows, key=place))
    # and a subset keeps it, however it was chosen
    half = endpoints.select(np.arange(len(rows))[::-2])
    assert told(half.to_frame().to_dict("records")) == told(found[::-1][::2][::-1])
    assert half.digest == Endpoints(columns=dict(half.columns)).digest


@given(rows=tables())
def test_the_digest_is_that_of_the_definition(rows: list[Row]) -> None:
    """Names, kinds and values: text as a JSON list, numbers as little-endian doubles."""
    ordered = sorted(rows, key=place)
    digest = hashlib.sha256()
    for name in (name for name in COLUMNS if name in rows[0]):
        values = [row[name] for row in ordered]
        digest.update(f"{name}:{COLUMNS[name].kind}:{len(rows)};".encode())
        text = COLUMNS[name].kind == "text"
        digest.update(json.dumps(values).encode() if text else np.array(values, dtype="<f8").tobytes())
    assert Endpoints(columns=columns_of(rows)).digest == digest.hexdigest()


@given(rows=tables(("arch", "F", "D", "loss")))
def test_duplicates_repeats_and_conflicts_are_those_of_the_definition(rows: list[Row]) -> None:
    """Equal rows are merged; rows equal but for what is measured repeat each other, or contradict with one run."""
    seen: dict[tuple[str, ...], int] = {}
    for number, (row, cells) in enumerate(zip(rows, told(rows), strict=True), start=1):
        if row["loss"] > 0:
            seen.setdefault(cells, number)
    kept = [(number, rows[number - 1]) for number in sorted(seen.values())]
    groups: dict[tuple[str, ...], list[tuple[float, int]]] = defaultdict(list)
    for number, row in kept:
        key = tuple(repr(row[name]) for name in sorted(row) if name not in ("loss", "loss_se"))
        groups[key].append((row["loss"], number))
    ranges = []  # of groups by their first row: how far apart, and the first row at either end
    for losses in groups.values():
        low, high = min(losses), min(losses, key=lambda one: (-one[0], one[1]))
        if high[0] > low[0]:
            ranges.append((high[0] - low[0], *sorted((low[1], high[1]))))
    worst = max((spread for spread, *_ in ranges), default=0.0)
    columns = columns_of(rows)
    if all(math.isnan(value) for value in columns.get("loss_se", [0.0])):
        columns.pop("loss_se", None)
    if "run" in columns and worst > 0.02:
        _, one, other = next(found for found in ranges if found[0] == worst)
        with pytest.raises(DataError, match=f"rows {one} and {other}: run "):
            Endpoints.from_frame(pd.DataFrame(columns))
        return
    endpoints = Endpoints.from_frame(pd.DataFrame(columns))
    notes = {note.code: note for note in endpoints.notes}
    assert len(endpoints) == len(kept)
    assert (notes["duplicate_rows"].count if "duplicate_rows" in notes else 0) == len(rows) - len(kept)
    code = "conflicting_rows" if "run" in columns else "repeats"
    assert (notes[code].count if code in notes else 0) == len(ranges)
    if ranges:
        assert f"(first: rows {ranges[0][1]} and {ranges[0][2]})" in notes[code].message


@given(
    first=st.lists(st.sampled_from(["x", "y", ""]), min_size=1, max_size=20),
    numbers=st.lists(st.sampled_from([math.nan, -1.0, 0.0, -0.0, math.inf]), min_size=20, max_size=20),
)
def test_groups_are_those_of_the_definition(first: list[str], numbers: list[float]) -> None:
    columns = {"text": Text.of(first), "number": np.array(numbers[: len(first)])}
    groups = group_rows(columns, ["number", "text"])
    keys = [
        ((math.isnan(number), 0.0 if math.isnan(number) else number), name)
        for name, number in zip(first, numbers, strict=False)
    ]
    assert groups.order.tolist() == sorted(range(len(keys)), key=keys.__getitem__)
    numbered = {key: number for number, key in enumerate(sorted(set(keys)))}
    assert groups.number().tolist() == [numbered[key] for key in keys]
    assert groups.sizes().tolist() == [keys.count(key) for key in sorted(numbered)]
    assert groups.shared().tolist() == [row for row, key in enumerate(keys) if keys.count(key) > 1]


def test_keys_too_large_for_one_integer_sort_alike() -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**55, size=300)
    rows = np.arange(300)
    within = Groups(order=rows, starts=rows % 3 == 0)
    groups = group_rows({"value": values}, ["value"], within)
    assert groups.order.tolist() == sorted(rows.tolist(), key=lambda row: (row // 3, values[row]))


@given(values=st.lists(st.floats(-3, 3) | st.sampled_from([0.0, LEVEL_WIDTH, 2 * LEVEL_WIDTH]), min_size=1))
def test_levels_are_those_of_the_definition(values: list[float]) -> None:
    first, level, levels = -math.inf, -1, {}
    for value in sorted(values):
        if value - first > LEVEL_WIDTH:
            first, level = value, level + 1
        levels[value] = level
    assert level_index(np.array(values)).tolist() == [levels[value] for value in values]


@given(values=st.lists(st.floats(-0.05, 0.999), min_size=1, max_size=30))
def test_tiers_are_single_linkage(values: list[float]) -> None:
    distinct = sorted(set(values))
    place = [-math.inf, *(-np.log1p(-value) for value in distinct)]
    tier, tiers = -1, {}
    for before, here, value in zip(place, place[1:], distinct, strict=False):
        tier += here - before > 0.25
        tiers[value] = tier
    assert sparsity_tiers(values).tolist() == [tiers[value] for value in values]


@given(rows=tables(("arch", "scale", "F", "S", "D", "loss")))
def test_default_sparsities_are_medians_of_medians(rows: list[Row]) -> None:
    endpoints = Endpoints(columns=columns_of(rows))
    cells: dict[int, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for tier, arch, label, S in zip(
        endpoints.tiers, endpoints.arch, endpoints.cells()[0], endpoints.S, strict=True
    ):
        cells[int(tier)][str(arch), str(label)].append(float(S))
    expected = [np.median([np.median(part) for part in cells[tier].values()]) for tier in sorted(cells)]
    assert default_sparsities(endpoints).tolist() == expected


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_long_table_is_read_as_its_rows_are(tmp_path: Path, form: str) -> None:
    """Beyond the block of the digest, and in any order of the file."""
    n = 70_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "arch": rng.choice(["b", "a"], n),
            "cell": [f"cell {number}" for number in rng.integers(0, 500, n)],
            "F": rng.choice([6e8, 1.2e9], n),
            "D": rng.uniform(1e9, 1e11, n).round(),
            "loss": rng.uniform(2, 3, n),
        }
    )
    path = tmp_path / f"runs.{form}"
    frame.to_parquet(path) if form == "parquet" else frame.to_csv(path, index=False)
    found = read_endpoints(path)
    expected = frame.sort_values(["arch", "cell", "F", "D", "loss"]).reset_index(drop=True)
    for name in frame:
        assert found[name].tolist() == expected[name].tolist()
    assert found.digest == Endpoints.from_frame(frame.iloc[::-1]).digest
