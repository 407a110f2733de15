"""Figures of saved analyses: the numbers they draw, their texts, and how they look, at plain and at hard inputs."""

from __future__ import annotations

import csv
import importlib.util
import json
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from smelt_scaling import (
    Endpoints,
    compare_levels,
    domains,
    downstream,
    example_endpoints,
    fit,
    length_gains,
    load_paper,
    notes_of,
    probe_report,
    shot_gaps,
    sources,
)
from smelt_scaling._json import dumps
from smelt_scaling.analyses import flops_report, match_budgets
from smelt_scaling.analyses.calibration import Scores, simulate_scores
from smelt_scaling.analyses.calibration.sigmoid import Sigmoid
from smelt_scaling.reporting.figures.drawing import Drawing, write_drawing
from smelt_scaling.reporting.figures.registry import SAVED_FIGURES
from smelt_scaling.reporting.figures.style import RC, styled
from smelt_scaling.reporting.raw import frame_record
from smelt_scaling.reporting.records import frame_of_record

_SPEC = importlib.util.spec_from_file_location("figure_texts", Path(__file__).with_name("figure_texts.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
figure_texts = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(figure_texts)

RUNS = example_endpoints()
LONG = "a name that somebody made much longer than any column of a paper is wide"


# -- what commands save ------------------------------------------------------------------------------------------------


@cache
def split_tables() -> tuple[Any, Any]:
    """A study of twelve cells, and losses of nine sources in three domains."""
    runs = RUNS.to_frame()
    parts = [
        runs.assign(
            domain=domain,
            source=f"{domain}{i}",
            loss=floor * (1 + 0.03 * i) + slope * runs["loss"] - extra * (runs["arch"] == "smelt"),
        )
        for domain, floor, slope, extra in (
            ("code", 0.1, 0.5, 0.004),
            ("math", 0.1, 0.8, 0.0),
            ("web", 0.2, 1.0, -0.004),
        )
        for i in range(3)
    ]
    return fit(RUNS, bootstrap=60), Endpoints.from_frame(pd.concat(parts))


def of_domains() -> pd.DataFrame:
    return domains(*split_tables(), 1e21, sparsities=0.947, test_sharing=False)


def of_sources() -> pd.DataFrame:
    return sources(*split_tables(), 1e21, sparsities=0.947)


def of_lengths() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        (contrast, cell, bucket, 3.0, 3.0 - gain * (1 + slope * np.log2(bucket / 256)) - 0.002 * rng.normal())
        for contrast, gain, slope in (("architecture", 0.02, 0.08), ("more experts", 0.02, -0.03))
        for cell in range(12)
        for bucket in (32, 64, 128, 256, 512, 1024, 2048, 4096)
    ]
    table = pd.DataFrame(rows, columns=["contrast", "cell", "bucket", "loss_ref", "loss_new"])
    return length_gains(table, bootstrap=50)


def of_shots(metrics: tuple[str, ...] = ("exact match", "multiple choice")) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [
        (arch, cell, metric, f"task{task}", k, base + (arch == "smelt") * (0.01 * min(k, 1) + 0.01), 1000)
        for metric in metrics
        for task in range(8)
        for cell in range(6)
        for k in (0, 1, 2, 4, 8)
        for base in [0.3 + 0.02 * task + 0.02 * np.log2(1 + k)]
        for arch in ("baseline", "smelt")
    ]
    table = pd.DataFrame(rows, columns=["arch", "cell", "metric", "task", "k", "score", "n_items"])
    table["score"] += 0.01 * rng.normal(size=len(table))
    return shot_gaps(table, target="smelt", reference="baseline", bootstrap=100)


def of_downstream(bootstrap: int = 60) -> pd.DataFrame:
    truth = {
        "core": Sigmoid(floor=0.05, span=0.6, slope=4.5, midpoint=1.75, sign=1),
        "mmlu": Sigmoid(floor=0.25, span=0.45, slope=12.0, midpoint=1.72, sign=1),
    }
    table = simulate_scores(RUNS, truth, sd=0.006, excess={"smelt": 0.006}, seed=1)
    return downstream(Scores.from_frame(table), target="smelt", reference="baseline", bootstrap=bootstrap)


def of_ablations(noise: float | None = 0.004) -> pd.DataFrame:
    table = load_paper("smelt").tables["ablation_span"]
    rows = [
        ("span", tier, level, float(value))
        for tier in ("85", "95")
        for level, value in zip(table.column("span"), table.column(f"loss_{tier}"), strict=True)
    ]
    frame = pd.DataFrame(rows, columns=["factor", "group", "level", "value"])
    return compare_levels(frame, **({} if noise is None else {"noise": noise}))


def of_probes(by: tuple[str, ...] = ("layer",)) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    plain = {"k": None, "n": None, "part": "", "head": "", "control": None, "width": None, "scaled": None}
    rows = []
    for c, n in enumerate((16, 96, 504)):
        for doc in "abcdef":
            for layer in range(4, 10):
                at = {**plain, "cell": f"cell {c}", "doc": doc, "layer": layer, "visit": "1-2"}
                shared = 64 / n + 2 + 0.1 * layer + 0.1 * rng.normal()
                rows.append({**at, "probe": "routing", "k": 8, "n": n, "value": shared, "control": 80 / n})
                for part, ratio in (("moe", 1.4), ("attention", 2.2)):
                    log = np.log(ratio) + 0.05 * rng.normal()
                    rows.append({**at, "probe": "write_norm", "part": part, "value": log, "scaled": "no"})
                for head in range(2):
                    for visit, mass in (("1", 0.6), ("2", 0.05)):
                        value = mass * (1 + 0.1 * rng.normal())
                        more = {"head": head, "visit": visit, "value": value, "chance": 0.02}
                        rows.append({**at, **more, "probe": "sink"})
                for part, cosine in (("Q", 0.9), ("input", 0.88), ("V", 0.7), ("O", 0.5)):
                    value = cosine + 0.01 * rng.normal()
                    more = {"part": part, "value": value, "width": 64, "control": 0.88}
                    rows.append({**at, **more, "probe": "attention_cosine"})
    return probe_report(pd.DataFrame(rows), by=by, bootstrap=50)


@cache
def of_flops() -> pd.DataFrame:
    return flops_report("smelt:smelt/200M/95%", compare="smelt:baseline/200M/95%")


@cache
def of_match() -> pd.DataFrame:
    return match_budgets("smelt:baseline/200M/95%", loops=(1, 2))


#: Command -> what it saves.
SAVES: dict[str, Callable[[], pd.DataFrame]] = {
    "domains": of_domains,
    "sources": of_sources,
    "lengths": of_lengths,
    "shots": of_shots,
    "downstream": of_downstream,
    "ablations": of_ablations,
    "probes": of_probes,
    "flops": of_flops,
    "match": of_match,
}


@cache
def saved(command: str) -> dict[str, Any]:
    """Return the record that the command writes with ``-o``, as it is read back."""
    frame = SAVES[command]()
    record = frame_record(
        command, frame, settings=frame.attrs["settings"], notes=notes_of(frame), provenance={}
    )
    return dict(json.loads(dumps(record)))


def drawn(command: str, record: dict[str, Any] | None = None) -> list[Drawing]:
    frame = frame_of_record(saved(command) if record is None else record)
    with styled():
        return [drawing for draw in SAVED_FIGURES[command] for drawing in draw(frame)]


# -- numbers -----------------------------------------------------------------------------------------------------------


def table_of(drawing: Drawing, folder: Path) -> list[dict[str, str]]:
    *_, path = write_drawing(drawing, folder, ())
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def numbers(rows: list[dict[str, Any]], *keys: str) -> list[tuple[float | None, ...]]:
    every = [tuple(None if row[k] in ("", None) else float(row[k]) for k in keys) for row in rows]
    return sorted(every, key=str)


#: Command and drawing -> tables that it shows, and columns of which every number is in its CSV.
DRAWN: dict[tuple[str, str], list[tuple[str, tuple[str, ...]]]] = {
    ("domains", "domains"): [("rows", ("gain", "gain_lo", "gain_hi"))],
    ("sources", "sources"): [("rows", ("gain", "loss_low")), ("members", ("gain", "reference_loss"))],
    ("lengths", "lengths"): [("rows", ("bucket", "relative", "relative_lo", "relative_hi"))],
    ("shots", "shots"): [("rows", ("k", "gap", "gap_lo", "gap_hi", "target_score", "reference_score"))],
    ("downstream", "downstream"): [
        ("points", ("loss", "score")),
        ("curve", ("loss", "score", "score_lo", "score_hi")),
        ("rows", ("residual", "residual_lo", "residual_hi")),
    ],
    ("downstream", "downstream_wins"): [("differences", ("difference",))],
    ("ablations", "ablations"): [("rows", ("value",))],
    ("probes", "probes"): [("rows", ("value", "value_lo", "value_hi", "chance", "control"))],
    ("flops", "flops"): [
        ("rows", ("flops_share", "training_flops")),
        ("compared", ("flops_share", "training_flops")),
    ],
    ("match", "match"): [("rows", ("flops", "params", "kv"))],
}


@pytest.mark.parametrize(("command", "name"), DRAWN)
def test_the_numbers_beside_a_figure_are_those_of_the_result(command: str, name: str, tmp_path: Path) -> None:
    (drawing,) = (one for one in drawn(command) if one.name == name)
    written = table_of(drawing, tmp_path)
    for table, columns in DRAWN[command, name]:
        wanted = numbers(saved(command)[table], *columns)
        found = numbers(written, *columns)
        assert wanted
        assert all(found.count(row) >= wanted.count(row) for row in wanted), table
    assert len(written) == sum(len(saved(command)[table]) for table, _ in DRAWN[command, name])


def test_every_command_of_this_page_is_registered() -> None:
    assert set(SAVES) <= set(SAVED_FIGURES)


def test_differences_are_those_that_wins_count() -> None:
    record = saved("downstream")
    for won in record["wins"]:
        own = [row["difference"] for row in record["differences"] if row["metric"] == won["metric"]]
        assert won["pairs"] == "all"  # the scores state no chance
        assert (len(own), sum(d > 0 for d in own)) == (won["n"], won["wins"])


def test_the_ledger_compared_with_sums_to_the_budget_of_the_reference() -> None:
    record = saved("flops")
    (flops,) = (row for row in record["ratios"] if row["budget"] == "FLOPs per token")
    total = sum(row["training_flops"] for row in record["compared"])
    assert total == pytest.approx(flops["reference"], rel=1e-12)  # a sum of a dozen terms


# -- texts, at plain and at hard inputs --------------------------------------------------------------------------------


def copies(rows: list[dict[str, Any]], many: int, key: str, **more: Any) -> list[dict[str, Any]]:
    """Return so many rows, like those given but with names of their own; some are long."""
    names = [f"{key} {i}" if i % 7 else f"{i} {LONG}" for i in range(many)]
    return [{**rows[i % len(rows)], key: name, **more} for i, name in enumerate(names)]


def forty_domains(record: dict[str, Any]) -> dict[str, Any]:
    rows = copies(record["rows"], 40, "domain")
    at = {"budget": rows[0]["budget"], "sparsity": rows[0]["sparsity"]}
    pairs = [
        {**at, "one": a["domain"], "other": b["domain"], "ahead_share": (i * 7 % 11) / 10}
        for i, (a, b) in enumerate(combinations(rows, 2))
    ]
    return {**record, "rows": rows, "pairs": pairs}


def changed(record: dict[str, Any], table: str, **values: Any) -> dict[str, Any]:
    """Return the record with the first row of a table changed."""
    first, *others = record[table]
    return {**record, table: [{**first, **values}, *others]}


def only(record: dict[str, Any], **wanted: Any) -> dict[str, Any]:
    """Return the record with those rows alone, in every table that has the column."""
    kept = {}
    for name, value in record.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            kept[name] = [row for row in value if all(row.get(key, of) == of for key, of in wanted.items())]
    return {**record, **kept}


OPEN = {"gain": None, "gain_lo": 0.3, "gain_hi": None, "unreachable": True, "hi_unreachable": True}
LOW = {"gain": -0.4, "gain_lo": -8.0, "gain_hi": -0.1}
NAMELESS = {"gain": None, "gain_lo": None, "gain_hi": None}


def without(record: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {**record, "rows": [{**row, **dict.fromkeys(keys)} for row in record["rows"]]}


HARD: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "domains: unreachable": ("domains", lambda r: changed(r, "rows", **OPEN)),
    "domains: no frontier": ("domains", lambda r: changed(r, "rows", **NAMELESS)),
    "domains: negative": ("domains", lambda r: changed(r, "rows", **LOW)),
    "domains: forty": ("domains", forty_domains),
    "domains: one, no draws": (
        "domains",
        lambda r: {**without(only(r, domain="code"), "gain_lo", "gain_hi"), "pairs": []},
    ),
    "domains: two points": (
        "domains",
        lambda r: {**r, "rows": [*r["rows"], *({**row, "budget": 1e22} for row in r["rows"])]},
    ),
    "sources: forty, long names": (
        "sources",
        lambda r: {**r, "members": copies(r["members"], 40, "domain")},
    ),
    "sources: no domains": (
        "sources",
        lambda r: {**r, "members": [{**row, "domain": ""} for row in r["members"]]},
    ),
    "sources: unreachable": ("sources", lambda r: changed(changed(r, "members", gain=None), "rows", **OPEN)),
    "sources: forty groups": (
        "sources",
        lambda r: {**r, "rows": [{**r["rows"][i % 4], "group": f"Q{i + 1}"} for i in range(40)]},
    ),
    "lengths: unbounded": (
        "lengths",
        lambda r: changed(
            changed(r, "rows", relative_set="any", relative_lo=None, relative_hi=None),
            "ratios",
            ratio_set="outside",
            ratio_lo=-2.5,
            ratio_hi=9.25,
        ),
    ),
    "lengths: no interval": (
        "lengths",
        lambda r: changed(r, "ratios", ratio=None, ratio_set="none", ratio_lo=None, ratio_hi=None),
    ),
    "lengths: forty": (
        "lengths",
        lambda r: {
            **r,
            "ratios": copies(r["ratios"][:1], 40, "contrast"),
            "rows": [
                {**row, "contrast": ratio["contrast"]}
                for ratio in copies(r["ratios"][:1], 40, "contrast")
                for row in r["rows"][:8]
            ],
        },
    ),
    "lengths: far out": ("lengths", lambda r: changed(r, "rows", relative_lo=-90.0, relative_hi=80.0)),
    "shots: no intervals": ("shots", lambda r: without(r, "gap_lo", "gap_hi")),
    "shots: one k": ("shots", lambda r: {**only(r, k=0), "changes": []}),
    "shots: long names": (
        "shots",
        lambda r: {
            **r,
            "settings": {**r["settings"], "target": LONG, "reference": f"not {LONG}"},
            "rows": copies(r["rows"], 8, "metric"),
        },
    ),
    "downstream: no draws": (
        "downstream",
        lambda r: {
            **without(r, "residual_lo", "residual_hi"),
            "curve": [{**row, "score_lo": None, "score_hi": None} for row in r["curve"]],
            "settings": {**r["settings"], "bootstrap": 0},
        },
    ),
    "downstream: one pair": (
        "downstream",
        lambda r: {**r, "differences": [{**r["differences"][0], "difference": 0.0}]},
    ),
    "downstream: forty cells": (
        "downstream",
        lambda r: {**r, "differences": copies(only(r, metric="core")["differences"], 40, "cell")},
    ),
    "ablations: unknown noise": (
        "ablations",
        lambda r: {
            **r,
            "rows": [{**row, "may_be_best": None} for row in r["rows"]],
            "summary": [{**row, "noise": None} for row in r["summary"]],
        },
    ),
    "ablations: forty levels": (
        "ablations",
        lambda r: {**r, "rows": copies(only(r, group="85")["rows"], 40, "level")},
    ),
    "ablations: forty groups": (
        "ablations",
        lambda r: {
            **r,
            "rows": copies(only(r, level="50%")["rows"], 40, "group"),
            "summary": copies(r["summary"], 40, "group"),
        },
    ),
    "ablations: one level": ("ablations", lambda r: only(r, level="50%", group="85")),
    "ablations: long names": (
        "ablations",
        lambda r: {
            **r,
            "rows": [{**row, "factor": LONG, "metric": LONG} for row in r["rows"]],
            "summary": [{**row, "factor": LONG, "metric": LONG} for row in r["summary"]],
        },
    ),
    "probes: one row": ("probes", lambda r: {**r, "rows": r["rows"][:1]}),
    "probes: no draws": ("probes", lambda r: without(r, "value_lo", "value_hi")),
    "flops: alone": ("flops", lambda r: {**r, "compared": []}),
    "flops: forty terms": (
        "flops",
        lambda r: {**r, "rows": copies(r["rows"][:1], 40, "term", flops_share=0.025)},
    ),
    "match: one": ("match", lambda r: {**r, "rows": r["rows"][:1]}),
    "match: forty": ("match", lambda r: {**r, "rows": [r["rows"][i % 10] for i in range(40)]}),
}


@pytest.mark.parametrize("command", SAVES)
def test_texts_are_whole_and_apart(command: str) -> None:
    for drawing in drawn(command):
        assert figure_texts.faults(drawing.figure) == [], drawing.name


@pytest.mark.parametrize("case", HARD)
def test_texts_are_whole_and_apart_at_hard_inputs(case: str) -> None:
    command, change = HARD[case]
    drawings = drawn(command, change(saved(command)))
    assert drawings
    for drawing in drawings:
        assert figure_texts.faults(drawing.figure) == [], drawing.name


def test_what_is_kept_apart_in_probes_is_told_apart() -> None:
    for by in ((), ("cell",), ("cell", "layer", "head")):
        frame = of_probes(by)
        with styled():
            (drawing,) = SAVED_FIGURES["probes"][0](frame)
        assert figure_texts.faults(drawing.figure) == []


@pytest.mark.parametrize(
    ("command", "change"),
    [
        ("match", lambda r: {**r, "rows": []}),
        ("ablations", lambda r: {**r, "rows": [], "summary": []}),
        ("probes", lambda r: {**r, "rows": []}),
        (
            "flops",
            lambda r: {**r, "compared": [], "rows": [{**row, "training_flops": 0.0} for row in r["rows"]]},
        ),
    ],
)
def test_nothing_to_draw_is_no_figure(
    command: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    assert drawn(command, change(saved(command))) == []


def test_captions_say_what_bars_are_only_where_there_are_any() -> None:
    (with_draws,) = drawn("domains")
    assert "95 % intervals" in with_draws.caption
    record = without(saved("domains"), "gain_lo", "gain_hi")
    (alone,) = drawn("domains", {**record, "pairs": []})
    assert "intervals" not in alone.caption


# -- looks -------------------------------------------------------------------------------------------------------------

#: Of lines, bars and marks; what texts say and where they lie is tested above.
LOOKS = pytest.mark.mpl_image_compare(
    baseline_dir="baseline",
    style=RC,
    tolerance=1,
    savefig_kwargs={"dpi": 80},
)


def figure_of(command: str, name: str, record: dict[str, Any] | None = None) -> Any:
    (drawing,) = (one for one in drawn(command, record) if one.name == name)
    return figure_texts.without_letters(drawing.figure)


@LOOKS
def test_domains_look() -> Any:
    return figure_of("domains", "domains")


@LOOKS
def test_domains_that_are_unreachable_look() -> Any:
    return figure_of("domains", "domains", changed(saved("domains"), "rows", **OPEN))


@LOOKS
def test_sources_look() -> Any:
    return figure_of("sources", "sources")


@LOOKS
def test_lengths_look() -> Any:
    return figure_of("lengths", "lengths")


@LOOKS
def test_shots_look() -> Any:
    return figure_of("shots", "shots", only(saved("shots"), metric="exact match"))


@LOOKS
def test_downstream_looks() -> Any:
    return figure_of("downstream", "downstream", only(saved("downstream"), metric="core"))


@LOOKS
def test_wins_look() -> Any:
    return figure_of("downstream", "downstream_wins")


@LOOKS
def test_ablations_look() -> Any:
    return figure_of("ablations", "ablations")


@LOOKS
def test_probes_look() -> Any:
    record = saved("probes")
    rows = [row for row in record["rows"] if row["probe"] in ("routing", "sink")]
    return figure_of("probes", "probes", {**record, "rows": rows})


@LOOKS
def test_flops_look() -> Any:
    return figure_of("flops", "flops")


@LOOKS
def test_match_looks() -> Any:
    return figure_of("match", "match")
