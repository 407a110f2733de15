"""What the program says when it refuses, pinned word by word.

Every message is provoked, not quoted; the text lies in ``golden/messages.txt``, to be read aloud in review. After a
change of words: ``SMELT_UPDATE_GOLDEN=1 pytest tests/test_messages.py``, then read the difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from smelt_scaling import (
    Endpoints,
    ProbeWriter,
    allocate,
    audit_fairness,
    ce_gain,
    compare_levels,
    design_report,
    diagnose,
    domains,
    downstream,
    example_endpoints,
    fit,
    flops_report,
    length_gains,
    load_paper,
    load_study,
    plan,
    predict,
    probe_report,
    read_endpoints,
    read_published,
    shot_gaps,
    show_table,
    simulate,
    sources,
)
from smelt_scaling.analyses import gadre_forecast
from smelt_scaling.analyses.calibration import Scores
from smelt_scaling.analyses.probes import attention_cosine_rows, position_rows, routing_rows, sink_rows
from smelt_scaling.cli import run
from smelt_scaling.errors import SmeltScalingError
from smelt_scaling.laws import get_law
from smelt_scaling.reporting.compare import compare_reports
from smelt_scaling.reporting.records import read_record
from smelt_scaling.reporting.sheet import contact_sheet

GOLDEN = Path(__file__).parent / "golden" / "messages.txt"
MAX_LENGTH = 300
CSV = "arch,run,F,S,D,loss\na,r1,6e8,0,2e10,3.25\na,r2,6e8,0,4e10,3\nb,r3,6e8,0,2e10,3.5\nb,r4,6e8,0,4e10,3.25\n"
RUNS = example_endpoints()
PAPER = load_paper("smelt")


def table(**columns: Any) -> Callable[[], Any]:
    """Read a table of three runs with some columns replaced, and None for those left out."""
    plain = {
        "arch": ["a", "a", "a"],
        "F": [6e8, 7e8, 8e8],
        "D": [1e10, 2e10, 4e10],
        "loss": [3.25, 3.0, 2.75],
    }
    options = {key: columns.pop(key) for key in ("mapping", "units", "flops") if key in columns}
    kept = {name: values for name, values in {**plain, **columns}.items() if values is not None}
    return lambda: Endpoints.from_frame(pd.DataFrame(kept), source="runs.parquet", **options)


def file(data: bytes | str, name: str = "runs.csv", **options: Any) -> Callable[[], Any]:
    def call() -> Endpoints:
        Path(name).write_bytes(data.encode() if isinstance(data, str) else data)
        return read_endpoints(name, **options)

    return call


def cli(*argv: str, given: str | None = None) -> Callable[[], Any]:
    def call() -> None:
        if given is not None:
            name = next((word for word in argv if word.startswith("runs.")), "runs.csv")
            Path(name).write_text(given, encoding="utf-8")
        raise Said(run(argv))

    return call


def scored(**columns: Any) -> Callable[[], Any]:
    """Read four scores of two architectures with some columns replaced, and None for those left out."""
    plain = {
        "arch": ["a", "a", "b", "b"],
        "cell": ["x"] * 4,
        "D": [1e10, 2e10, 1e10, 2e10],
        "metric": ["m"] * 4,
        "loss": [2.5, 2.25, 2.5, 2.25],
        "score": [0.5, 0.6, 0.55, 0.65],
    }
    options = {key: columns.pop(key) for key in ("mapping", "units") if key in columns}
    kept = {name: values for name, values in {**plain, **columns}.items() if values is not None}
    return lambda: Scores.from_frame(pd.DataFrame(kept), source="scores.csv", **options)


def many() -> Scores:
    """Return scores that fall with the loss, without a chance."""
    frame = RUNS.to_frame()[["arch", "cell", "D", "loss"]]
    return Scores.from_frame(frame.assign(metric="m", score=1 / frame["loss"]), source="scores.csv")


class Said(Exception):  # noqa: N818
    """A command ended with this code; what it said is on standard error."""


def split(change: Callable[[Any], Any], call: Any = domains, **options: Any) -> Callable[[], Any]:
    """Ask for gains on two domains, whose table is changed."""
    units = options.pop("units", None)

    def asked() -> None:
        frame = RUNS.to_frame()
        parts = [
            frame.assign(domain=d, source=d, loss=k * frame["loss"]) for d, k in (("code", 0.5), ("web", 1.0))
        ]
        table = change(pd.concat(parts))
        call(study(), Endpoints.from_frame(table, source="losses.parquet", units=units), 1e21, **options)

    return asked


#: The end of a record that a command saved.
REST = ', "rows": [], "notes": [], "settings": {}}'


def report(*argv: str) -> Callable[[], Any]:
    """Ask for a report of published surfaces beside a folder whose manifest is broken."""

    def call() -> None:
        Path("broken").mkdir()
        Path("broken/manifest.json").write_text("{", encoding="utf-8")
        cli("report", "--published", "smelt", "--figures", "none", "-b", "1e21", *argv)()

    return call


def sheet_of_nothing() -> None:
    Path("manifest.json").write_text('{"files": {}}', encoding="utf-8")
    contact_sheet(".")


def record(text: str) -> Callable[[], Any]:
    def call() -> None:
        Path("domains.json").write_text(text, encoding="utf-8")
        read_record("domains.json", "domains")

    return call


@cache
def study() -> Any:
    return fit(RUNS, bootstrap=0)


@cache
def one_architecture() -> Any:
    return fit(RUNS.by_arch()["smelt"], bootstrap=0)


def one_tier() -> Any:
    return fit(RUNS.select(RUNS.tiers == 1), bootstrap=0)


def exact() -> Any:
    """Return a study of losses that lie on the published surfaces."""
    loss = np.empty(len(RUNS))
    for arch, surface in PAPER.surfaces.items():
        own = RUNS.arch == arch
        loss[own] = surface.loss(F=RUNS.F[own], S=RUNS.S[own], D=RUNS.D[own])
    return fit(Endpoints.from_frame(RUNS.to_frame().assign(loss=loss)), bootstrap=0)


def nothing_in_common() -> Endpoints:
    """Return runs of which those of one architecture are all larger."""
    frame = RUNS.to_frame()
    return Endpoints.from_frame(
        frame.assign(F=frame["F"] * np.where(frame["arch"] == "smelt", 100, 1), C=None)
    )


def repeating() -> Any:
    frame = RUNS.to_frame()
    return fit(
        Endpoints.from_frame(frame.assign(unique_tokens=frame["D"] / 3)), bootstrap=0, data_law="repeated"
    )


def ladder() -> Endpoints:
    rows = {"C": [2.19e17, 1.70e18, 9.00e18, 4e19], "loss": [3.7404, 3.3834, 3.1230, 2.9]}
    return Endpoints.from_frame(rows, source="runs.parquet")


def apart(column: str) -> Any:
    return fit(Endpoints.from_frame(RUNS.to_frame().assign(**{column: RUNS.arch})), bootstrap=0)


def in_two_units() -> Any:
    unit = np.where(RUNS.arch == "smelt", "bits/byte", "nats/token")
    return fit(Endpoints.from_frame(RUNS.to_frame().assign(loss_unit=unit)), bootstrap=0)


TYPED = (
    "arch,E,A,K,a,b,c\nbaseline,1.4439,1.366e3,1.975e6,0.3703,0.1530,0.6594\n"
    "smelt,1.4493,1.963e3,5.264e6,0.3892,0.1460,0.7011\n"
)


def more(*cells: str) -> str:
    """Return the table with one more column."""
    return "".join(f"{line},{cell}\n" for line, cell in zip(TYPED.splitlines(), cells, strict=True))


def probed(**columns: Any) -> pd.DataFrame:
    """Return a table of three documents, with some columns replaced."""
    plain = {"probe": "sink", "cell": "c", "doc": ["a", "b", "d"], "position": 9, "value": 0.5}
    return pd.DataFrame({**plain, **columns})


def repeated_keys() -> dict[str, Any]:
    return {"input": np.ones((3, 4)), "K": np.ones((3, 2, 4))}


def typed(text: str) -> Callable[[], Any]:
    """Read a table of coefficients."""

    def call() -> Any:
        Path("typed.csv").write_text(text, encoding="utf-8")
        return read_published("typed.csv")

    return call


LOG = "run,step,tokens,lr,eval/loss\nr1,1,1e9,1,3.5\nr1,2,2e9,1,3.25\nr1,3,4e9,0.01,3\n"
RUN_TABLE = "run,arch,F\nr1,a,6e8\n"


def logs(*argv: str, runs: str | None = RUN_TABLE, **files: str) -> Callable[[], Any]:
    """Read logs as typed: one of a run that decays, unless others are given."""

    def call() -> None:
        Path("logs").mkdir(exist_ok=True)
        for name, text in (files or {"log": LOG}).items():
            Path("logs", f"{name}.csv").write_text(text, encoding="utf-8")
        stated = []
        if runs is not None:
            Path("table.csv").write_text(runs, encoding="utf-8")
            stated = ["--runs", "table.csv"]
        out = [] if "-o" in argv or "--nothing" in argv else ["-o", "runs.csv"]
        raise Said(run(["endpoints", "logs", *stated, *(word for word in argv if word != "--nothing"), *out]))

    return call


BUCKETS = "cell,bucket,loss_ref,loss_new\nc,32,3,2.9\nc,512,3,2.8\nd,32,3,2.9\nd,512,3,2.8\n"
SCORES = "arch,task,k,score,n_items\n" + "".join(
    f"{arch},{task},{k},0.{3 + (arch == 'b')},100\n" for arch in "ab" for task in "xy" for k in (0, 1)
)


def measured(analysis: Callable[..., Any], text: str, **options: Any) -> Callable[[], Any]:
    """Analyse a table of other measurements."""

    def call() -> Any:
        Path("table.csv").write_text(text, encoding="utf-8")
        return analysis("table.csv", **options)

    return call


def broken_study() -> Any:
    study().save("study")
    (Path("study") / "endpoints.parquet").unlink(missing_ok=True)
    return load_study("study")


def full_folder() -> None:
    Path("mine").mkdir()
    Path("mine/thesis.tex").touch()
    study().save("mine")


#: What is wrong -> the least that provokes it, by the part of the program that says so.
SITUATIONS: dict[str, dict[str, Callable[[], Any]]] = {
    "files": {
        "not there": lambda: read_endpoints("nothing.csv"),
        "a folder": lambda: read_endpoints("."),
        "empty": file(""),
        "only comments": file("# a\n"),
        "only a header": file("arch,F,D,loss\n"),
        "no header": file("The loss was 3.25.\n"),
        "header in a comment": file("# " + CSV),
        "ragged": file(CSV + "b,r5,6e8,0,8e10\n"),
        "row behind a hash": file(CSV.replace("b,r4", "#b,r4")),
        "open quote": file(CSV + '"b,r5,6e8,0,8e10,3\n'),
        "commas and points": file("arch;F;D;loss\na;6e8;2e10;3,25\na;6e8;4e10;3.0\n"),
        "latin-1": file(CSV.replace("b,", "\xe9,").encode("latin-1")),
        "binary": file(b"\0\1\2\3"),
        "excel": file(b"\xd0\xcf\x11\xe0" + bytes(508), "runs.xls"),
        "html": file("<html></html>"),
        "pickle": file(b"\x80\x04\x95.", "runs.pkl"),
        "lfs": file("version https://git-lfs.github.com/spec/v1\n"),
        "torn gzip": file(b"\x1f\x8b\x08\0\0\0", "runs.csv.gz"),
        "torn parquet": file(b"PAR1 and no more", "runs.parquet"),
        "torn json": file('{"arch": "a"}\n{"arch"', "runs.jsonl"),
        "json of lists": file("[[1, 2]]", "runs.json"),
        "json nested": file('[{"loss": {"ce": 3}, "F": 6e8}]', "runs.json"),
        "json key twice": file('[{"loss": 3, "loss": 4, "F": 6e8}]', "runs.json"),
    },
    "columns": {
        "no loss": table(loss=None, **{"val/ce": [3.25, 3.0, 2.75]}),
        "no F": table(F=None),
        "map to nothing": table(mapping={"loss": "los"}),
        "map of nothing": table(mapping={"los": "loss"}),
        "map to a typo": table(mapping={"los": "val/ce"}),
        "unknown unit": table(units={"D": "bn"}),
        "unit of what has none": table(units={"weight": "K"}),
        "unit of nothing": table(units={"N": "B"}),
        "twice": lambda: Endpoints.from_frame(
            pd.DataFrame([["a", 6e8, 3.0, 3.1]], columns=["arch", "F", "loss", "loss"]), source="runs.parquet"
        ),
        "named like a perplexity": table(loss=None, ppl=[9.0, 8.0, 7.0], mapping={"loss": "ppl"}),
        "6N without N": table(flops="6N"),
        "unknown rule": table(flops="2N"),
    },
    "values": {
        "text": table(D=["2e10", "12 bn?", "4e10"]),
        "a decimal comma": table(loss=["0,500", "3,2", "2.75"]),
        "true and false": table(F=[True, False, True]),
        "missing": table(D=[2e10, np.nan, 4e10]),
        "several missing": table(D=[np.nan, np.nan, 4e10]),
        "name missing": table(arch=["a", "", "a"]),
        "negative": table(loss=[3.25, -3.0, 2.75]),
        "zero tokens": table(D=[0.0, 2e10, 4e10]),
        "float16": table(F=np.array([np.inf, 6e4, 6e4], dtype=np.float16)),
        "percent": table(S=[86.0, 94.7, 96.9]),
        "sparsity of 1": table(S=[0.86, 1.0, 0.86]),
        "sparsity far below 0": table(S=[0.86, -0.4, 0.86]),
        "billions": table(D=[20.5, 31.0, 105.0]),
        "a perplexity": table(loss=[33.0, 29.0, 25.0]),
        "a perplexity below 1": table(loss=[33.0, 0.9, 25.0], units={"loss": "ppl"}),
        "losses in two units": table(loss_unit=["bits/byte"] * 3, units={"loss": "ppl"}),
        "forward-only FLOPs": table(C=[2e18, 14e18 / 3, 32e18 / 3]),
        "tokens under another name": table(D=None, tokens=[1e10, 2e10, 4e10], run="r", F=6e8),
        "weights of 0": table(weight=[0.0, 0.0, 0.0]),
    },
    "selections": {
        "no row left": lambda: RUNS.select(np.zeros(len(RUNS), dtype=bool)),
        "tier not there": lambda: RUNS.exclude_tier(0.5),
        "tier no sparsity": lambda: RUNS.exclude_tier(95),
        "unknown unit of resampling": lambda: RUNS.cells("person"),
        "column not there": lambda: RUNS["lr"],
    },
    "laws": {
        "unknown": lambda: get_law("quadratic"),
        "broken formula": lambda: get_law("E + A*F**"),
        "forbidden formula": lambda: get_law("E + open(F)"),
        "feature not there": lambda: fit(RUNS, "E + A*Q**-a", bootstrap=0),
    },
    "fits": {
        "not endpoints": lambda: fit("runs.parquet"),  # type: ignore[arg-type]
        "too few": lambda: fit(RUNS.select(np.arange(2)), bootstrap=0),
        "only N": lambda: fit(table(F=None, N=[1e8, 2e8, 3e8])(), bootstrap=0),
        "only N, checked": lambda: design_report(table(F=None, N=[1e8, 2e8, 3e8])()),
        "no D": lambda: fit(ladder(), "additive", bootstrap=0),
        "no D, checked": lambda: design_report(table(D=None, tokens=[1e10, 2e10, 4e10])()),
        "negative bootstrap": lambda: fit(RUNS, bootstrap=-5),
        "no delta": lambda: fit(RUNS, bootstrap=0, delta=0),
        "no starts": lambda: fit(RUNS, bootstrap=0, starts=0),
        "unknown residual": lambda: fit(RUNS, bootstrap=0, residual="square"),  # type: ignore[arg-type]
        "unknown engine": lambda: fit(RUNS, bootstrap=0, engine="adam"),  # type: ignore[arg-type]
        "pin of no parameter": lambda: fit(RUNS, bootstrap=0, pins={"Q": 1.0}),
        "pin of no architecture": lambda: fit(RUNS, bootstrap=0, pins={"nobody": {"E": 1.0}}),
        "negative pin": lambda: fit(RUNS, bootstrap=0, pins={"E": -1.0}),
        "pin in words": lambda: fit(RUNS, bootstrap=0, pins={"E": "low"}),  # type: ignore[dict-item]
        "pin of another evaluation": lambda: fit(
            table(eval_set=["c4", "c4", "c4"])(), "power-c", bootstrap=0, pins={"E": (1.6, "paloma/macro")}
        ),
        "repeated data without unique tokens": lambda: fit(RUNS, bootstrap=0, data_law="repeated"),
        "repeated data in a law of C": lambda: fit(ladder(), "power-c", bootstrap=0, data_law="repeated"),
        "unique tokens of some runs": lambda: fit(
            table(unique_tokens=[1e10, np.nan, 1e10])(), "additive", bootstrap=0, data_law="repeated"
        ),
        "negative constant": lambda: fit(RUNS, bootstrap=0, data_law="repeated", repeat_constant=-1.0),
        "unknown weights of cells": lambda: fit(RUNS, bootstrap=0, cell_weights="even"),  # type: ignore[arg-type]
    },
    "analyses": {
        "negative budget": lambda: ce_gain(PAPER, -1e21),
        "budget in words": lambda: ce_gain(PAPER, "many"),  # type: ignore[arg-type]
        "sparsity of 95": lambda: ce_gain(PAPER, 1e21, sparsities=95),
        "unknown architecture": lambda: ce_gain(PAPER, 1e21, target="nobody"),
        "one architecture": lambda: ce_gain(one_architecture(), 1e21),
        "the same twice": lambda: ce_gain(PAPER, 1e21, target="smelt", reference="smelt"),
        "level of 95": lambda: ce_gain(PAPER, 1e21, level=95),
        "unknown interval": lambda: ce_gain(PAPER, 1e21, interval="bca"),  # type: ignore[arg-type]
        "another sparsity than the only one": lambda: ce_gain(one_tier(), 1e21, sparsities=0.5),
        "no study": lambda: ce_gain(RUNS, 1e21),  # type: ignore[arg-type]
        "no split of C": lambda: allocate(fit(ladder(), "power-c", bootstrap=0), 1e21),
        "prediction without D": lambda: predict(PAPER, {"F": 1e9, "S": 0.9}),
        "prediction of nothing": lambda: predict(PAPER, {"F": 1e9, "S": 0.9, "D": -1}),
        "a new run of a paper": lambda: predict(PAPER, {"F": 1e9, "S": 0.9, "D": 1e11}, new_run=True),
        "a new run by jackknife": lambda: predict(
            PAPER, {"F": 1e9, "S": 0.9, "D": 1e11}, new_run=True, interval="jackknife-t"
        ),
        "unknown format": lambda: show_table(ce_gain(PAPER, 1e21), "xml"),
        "unknown paper": lambda: load_paper("gpt"),
        "losses of two tokenizers": lambda: ce_gain(apart("tokenizer"), 1e21),
        "losses of two evaluation sets": lambda: ce_gain(apart("eval_set"), 1e21),
        "losses in two units, forced": lambda: ce_gain(in_two_units(), 1e21, force=True),
        "a table that names no S": lambda: ce_gain(typed(TYPED)(), 1e21),
        "simulation without a surface": lambda: simulate({}, RUNS.to_frame(), sd=0.0),
    },
    "scores": {
        "percent": scored(score=[41.0, 43.0, 44.0, 45.0]),
        "percent of one metric": scored(metric=["m", "m", "n", "n"], score=[41.0, 43.0, 0.4, 0.5]),
        "a perplexity as a share": scored(score=[410.0, 43.0, 44.0, 45.0]),
        "a perplexity of 0": scored(score=[0.0, 43.0, 44.0, 45.0], units={"m": "ppl"}),
        "no metric column": scored(metric=None, member=["m"] * 4),
        "no score column": scored(score=None),
        "map to nothing": scored(mapping={"score": "acc"}),
        "map of nothing": scored(mapping={"acc": "score"}),
        "unknown unit": scored(units={"m": "points"}),
        "unit of no metric": scored(units={"q": "percent"}),
        "unknown unit of the loss": scored(units={"loss": "points"}),
        "an endpoint twice": scored(D=[1e10] * 4),
        "two chances": scored(chance=[0.25, 0.25, 0.0, 0.25]),
        "a negative loss": scored(loss=[2.0, -2.0, 2.0, 2.0]),
        "an architecture missing": scored(arch=["a", "", "b", "b"]),
        "not scores": lambda: downstream(RUNS),  # type: ignore[arg-type]
        "too few losses": lambda: downstream(scored()()),
        "a constant metric": lambda: downstream(scored(score=[0.5] * 4)()),
        "a metric of one architecture": lambda: downstream(scored(metric=["m", "n", "m", "m"])()),
        "unknown metric": lambda: downstream(scored()(), metrics=["arc"]),
        "no metric left": lambda: downstream(scored()(), exclude=["m"]),
        "losses of two tokenizers": lambda: downstream(scored(tokenizer=["x", "x", "y", "y"])()),
        "no chance": lambda: downstream(many(), asymptotes="chance"),
        "margin of 10": lambda: downstream(scored()(), margin=10),
        "negative resamples": lambda: downstream(scored()(), bootstrap=-1),
        "no role": lambda: gadre_forecast(pd.DataFrame({"N": [1e8], "D": [1e9], "loss": [3.0], "error": [0.7]})),
    },
    "lengths": {
        "one loss of a pair": measured(length_gains, BUCKETS.replace("loss_new", "other")),
        "no losses": measured(length_gains, BUCKETS.replace("loss_ref", "x").replace("loss_new", "y")),
        "one architecture": measured(length_gains, "arch,cell,bucket,loss\na,c,32,3\na,c,512,3\n"),
        "one architecture only in a bucket": measured(
            length_gains, "arch,cell,bucket,loss\na,c,32,3\nb,c,512,3\n"
        ),
        "one bucket": measured(length_gains, "cell,bucket,loss_ref,loss_new\nc,32,3,2.9\n"),
        "no endpoint with all": measured(
            length_gains, "cell,bucket,loss_ref,loss_new\nc,32,3,2.9\nd,64,3,2.9\n"
        ),
        "twice": measured(length_gains, BUCKETS + "c,512,3,2.8\n"),
        "a cell missing": measured(length_gains, BUCKETS.replace("c,32", ",32")),
        "a perplexity": measured(length_gains, "cell,bucket,loss_ref,loss_new\nc,32,33,29\nc,512,31,28\n"),
        "a loss of 0": measured(length_gains, BUCKETS.replace("2.9", "0")),
        "buckets on one side": measured(length_gains, BUCKETS, split=16),
        "target of pairs": measured(length_gains, BUCKETS, target="ours"),
        "a map of nothing": measured(length_gains, BUCKETS, mapping={"size": "cell"}),
    },
    "shots": {
        "percent": measured(shot_gaps, SCORES.replace("0.", "4")),
        "a task without some k": measured(shot_gaps, SCORES.replace("b,y,1", "b,y,2").replace("a,y,1", "a,y,2")),
        "another k": measured(shot_gaps, SCORES, shots=[3]),
        "half an example": measured(shot_gaps, SCORES.replace("a,x,1", "a,x,1.5")),
        "twice": measured(shot_gaps, SCORES + "a,x,0,0.3,100\n"),
        "unknown unit": measured(shot_gaps, SCORES, units={"score": "points"}),
        "three architectures": measured(shot_gaps, SCORES + "c,x,0,0.3,100\n"),
    },
    "ablations": {
        "a constant metric": measured(compare_levels, "level,value\na,2\nb,2\n"),
        "one level": measured(compare_levels, "level,value\na,2\n"),
        "the same run twice": measured(compare_levels, "level,value\na,2\na,2.1\nb,2\n"),
        "no such level": measured(compare_levels, "level,value\na,2\nb,2.1\n", against="c"),
        "no direction": measured(compare_levels, "level,metric,value\na,core,2\nb,core,2.1\n"),
        "both directions": measured(compare_levels, "level,value\na,2\nb,2.1\n", higher=["loss"], lower=["loss"]),
        "a direction of nothing": measured(compare_levels, "level,value\na,2\nb,2.1\n", higher=["core"]),
        "no noise": measured(compare_levels, "level,value\na,2\nb,2.1\n", noise=0.0),
        "noise of nothing": measured(compare_levels, "level,value\na,2\nb,2.1\n", noise={"core": 1.0}),
        "a frontier of several": measured(compare_levels, "level,value\na,2\nb,2.1\n", study=PAPER),
        "a frontier of none": measured(compare_levels, "level,value\na,2\nb,2.1\n", reference="baseline"),
        "a loss never reached": measured(
            compare_levels, "level,value\na,1.4\nb,2.1\n", study=PAPER, reference="baseline"
        ),
        "noise in words": cli("ablations", "runs.csv", "--noise", "small", given="level,value\na,2\nb,2.1\n"),
        "two sparsities": cli(
            "ablations", "runs.csv", "--sparsity", ".9,.95", given="level,value\na,2\nb,2.1\n"
        ),
    },
    "diagnose": {
        "no study": cli("diagnose"),
        "two budgets": cli("diagnose", "--budget", "1e20,1e21"),
        "unknown part": lambda: diagnose(fit(RUNS, bootstrap=0), parts=["luck"]),
        "published": lambda: diagnose(PAPER),  # type: ignore[arg-type]
        "shown, not run": cli("diagnose", "--only", "noise", "--show", "laws"),
        "one architecture": lambda: diagnose(one_architecture()),
    },
    "budgets": {
        "unknown model": cli("flops", "gpt.yaml"),
        "unknown configuration": cli("flops", "smelt:baseline/200M/96%"),
        "unknown paper": cli("flops", "gpt:4"),
        "undetermined": cli("flops", "smelt:smelt/200M/0%"),
        "no file": cli("flops", "config.json"),
        "unknown family": cli("flops", "runs.json", given='{"model_type": "rwkv"}'),
        "missing key": cli("flops", "runs.json", given='{"model_type": "llama", "hidden_size": 64}'),
        "no object": cli("flops", "runs.json", given="[1]"),
        "unknown TOML key": cli("flops", "runs.toml", given="hiden = 64\n"),
        "missing TOML key": cli("flops", "runs.toml", given="hidden = 64\n"),
        "lengths": cli("flops", "smelt:baseline/200M/95%", "--doc-len", "long.csv"),
        "convention": lambda: flops_report("smelt:baseline/200M/95%", convention="deepspeed"),
        "span": cli("match", "smelt:baseline/200M/95%", "--span", "top:3"),
        "range": cli("match", "smelt:baseline/200M/95%", "--head-dim", "wide"),
        "tolerance": cli("match", "smelt:baseline/200M/95%", "--tolerance", "kv=2"),
        "multiple": cli("match", "smelt:baseline/200M/95%", "--ffn-multiple", "0"),
        "schedule": cli("grid", "runs.toml", given="[schedule]\nsteps = [1]\n"),
        "grid key": cli("grid", "runs.toml", given="[shedule]\nsteps = [1]\n"),
        "grid target": cli("grid", "smelt", "--table", "grid.xlsx"),
    },
    "plan": {
        "published, no runs": cli("plan", "--published", "smelt"),
        "published, no noise": lambda: plan(PAPER, design=RUNS),
        "published, no share": lambda: plan(PAPER, design=RUNS, noise=0.005),
        "no study": cli("plan"),
        "one architecture": lambda: plan(one_architecture()),
        "a law in C": lambda: plan(fit(RUNS, "power-c", bootstrap=0)),
        "one horizon": lambda: plan(fit(RUNS.select(RUNS.D > 2e11), bootstrap=0)),
        "another sparsity of one tier": lambda: plan(one_tier(), extend=2),
        "out of reach": lambda: plan(study(), budget=1e40),
        "runs of others": lambda: plan(study(), design=Endpoints.from_frame(RUNS.to_frame().assign(arch="x"))),
        "two cells": lambda: plan(study(), design=RUNS.select(np.isin(RUNS["scale"], ["1.6B"]) & (RUNS.S > 0.96))),
        "too few cells": lambda: plan(study(), design=RUNS.select(RUNS["scale"] == "1.6B")),
        "no scatter": lambda: plan(exact(), target="smelt"),
        "noise of another": lambda: plan(study(), noise={"ours": 0.01}),
        "noise of one": lambda: plan(study(), noise={"smelt": 0.01}),
        "noise below 0": lambda: plan(study(), noise=-0.01),
        "share of 1": lambda: plan(study(), icc=1.0),
        "correlation of 2": lambda: plan(study(), pair_correlation=2.0),
        "factor of 0": lambda: plan(study(), se_factor=0.0),
        "a sum of nothing": lambda: plan(study(), fund=0.0),
        "two sums": cli("plan", "--fund", "1e21,1e22"),
        "a sum in words": cli("plan", "--fund", "much"),
        "half a bound": cli("plan", "--box", "F=1e9"),
        "bounds of what is not there": lambda: plan(study(), box={"N": (1e8, 1e9)}),
        "bounds in reverse": lambda: plan(study(), box={"F": (1e10, 1e9)}),
        "sparsity of 1": lambda: plan(study(), box={"S": (0.5, 1.0)}),
        "a box that shrinks": lambda: plan(study(), extend=0.5),
        "nothing in common": lambda: plan(study(), design=nothing_in_common()),
        "no tokens": lambda: plan(study(), horizons=[0.0]),
        "no decay": lambda: plan(study(), decay=0.0),
        "a decay longer than the run": lambda: plan(study(), decay=1e11),
        "unknown schedule": lambda: plan(study(), schedule="cosine"),
        "one cell": lambda: plan(study(), cells=[1]),
        "one world": lambda: plan(study(), worlds=1),
        "few resamples": lambda: plan(study(), worlds=9, bootstrap=9),
        "level of 95": lambda: plan(study(), level=95),
        "worlds of repeated tokens": lambda: plan(repeating(), worlds=9),
    },
    "probes": {
        "no such probe asked for": lambda: probe_report(probed(), probes="sinks"),
        "no such column mapped": lambda: probe_report(probed(), mapping={"token": "t"}),
        "no such column apart": cli("probes", "runs.csv", "--by", "tier", given="probe\nsink\n"),
        "level of 95": lambda: probe_report(probed(), level=95),
        "no rows": lambda: probe_report(probed()[:0]),
        "none of the probe asked for": lambda: probe_report(probed(), probes="routing"),
        "no value": lambda: probe_report(probed().drop(columns="value")),
        "no probe named": cli("probes", "runs.csv", given="cell,doc,value\na,b,1\n"),
        "a misspelled probe": lambda: probe_report(probed(probe="sinks")),
        "no document": lambda: probe_report(probed(doc=["a", "b", ""])),
        "measured twice": lambda: probe_report(probed(doc=["a", "a", "a"])),
        "mass in percent": lambda: probe_report(probed(value=60.0)),
        "more shared than chosen": lambda: probe_report(probed(probe="routing", k=8, n=64, value=[2.0, 3.0, 9.0])),
        "more chosen than there are": lambda: probe_report(probed(probe="routing", k=64, n=8, value=2.0)),
        "chance needs n": lambda: probe_report(probed(probe="routing", k=8)),
        "half a token": lambda: probe_report(probed(tokens=[1, 1, 0.5])),
        "infinite": lambda: probe_report(probed(value=[0.1, 0.2, np.inf])),
        "a word among numbers": cli("probes", "runs.csv", given="probe,cell,doc,position,value\nsink,a,b,5,high\n"),
        "a norm of nothing": lambda: probe_report(probed(probe="write_norm", value=[1.0, 2.0, 0.0])),
        "scaled, perhaps": lambda: probe_report(probed(probe="write_norm", scaled="maybe")),
        "nothing defined": lambda: probe_report(probed(value=np.nan)),
        "two lengths": lambda: routing_rows([[0, 1]], [[0, 1], [2, 3]], n=8),
        "experts from 1": lambda: routing_rows([[1, 8]], [[1, 2]], n=8),
        "an expert twice": lambda: routing_rows([[1, 1]], [[1, 2]], n=8),
        "keys for every head": lambda: attention_cosine_rows(repeated_keys(), repeated_keys()),
        "no input": lambda: attention_cosine_rows({"Q": [[1.0]]}, {"Q": [[1.0]]}),
        "attention of packed documents": lambda: sink_rows(np.ones((1, 2, 3)), np.ones((1, 2, 3))),
        "positions from the start": lambda: position_rows(np.ones((1, 9, 9)), np.ones((1, 9, 9)), after=0),
        "an unknown probe written": lambda: ProbeWriter().add("sinks", [], cell="c", doc="d"),
    },
    "tables of coefficients": {
        "no such file": cli("ce-gain", "--published", "typed.csv", "-b", "1e21"),
        "a table of runs": typed(CSV),
        "a folder": lambda: read_published("."),
        "a column too many": typed(more("rmse", ".005", ".009")),
        "a coefficient missing": typed(TYPED.replace("K,", "K2,")),
        "a blank": typed(TYPED.replace("1.366e3", "")),
        "no number": typed(TYPED.replace("1.366e3", "1.366 x 10^3")),
        "not finite": typed(TYPED.replace("1.366e3", "1e400")),
        "an exponent with its minus": typed(TYPED.replace("0.3703", "-0.3703")),
        "twice": typed(TYPED.replace("smelt", "baseline")),
        "no names": typed(TYPED.replace("arch", "model")),
        "only a header": typed("arch,E,A,K,a,b,c\n"),
        "two laws": typed("arch,law,E,A,alpha\na,power-c,1,2,.1\nb,E + A*D**-alpha,1,2,.1\n"),
        "an unknown law": typed("arch,law,E,A,alpha\na,cubic,1,2,.1\n"),
        "half a range": typed("arch,E,A,alpha,C_lo,C_hi\na,1,2,.1,1e19,\n"),
        "S in percent": typed(more("S", "94.7", "94.7")),
        "two S": typed(more("S", "0.9", "0.95")),
        "an unknown form": typed("arch,form,E,A,alpha\na,ln,1,2,.1\n"),
    },
    "studies": {
        "no study there": lambda: load_study("nowhere"),
        "a part missing": broken_study,
        "a folder with other things": full_folder,
    },
    "logs": {
        "no such path": cli("endpoints", "nothing", "-o", "runs.csv"),
        "a pattern of nothing": cli("endpoints", "nothing/*.csv", "-o", "runs.csv"),
        "no known format": logs(notes="Monday: started.\n"),
        "cut off": logs(log="step,loss\n", runs=None),
        "several losses": logs(log=LOG.replace("lr", "eval/c4/loss")),
        "no loss": logs(log=LOG.replace("eval/loss", "accuracy")),
        "no loss in nats": logs(log=LOG.replace("eval/loss", "eval/ppl")),
        "a loss that is not logged": logs("--map", "loss=val/ce"),
        "no tokens": logs(log=LOG.replace("tokens", "epoch")),
        "zero tokens": logs(log=LOG.replace("1e9", "0").replace("2e9", "0").replace("4e9", "0")),
        "no F": logs(runs="run,arch\nr1,a\n"),
        "F of some runs": logs(log=LOG, other=LOG.replace("r1", "r2"), runs="run,F\nr1,6e8\nr2,\n"),
        "no table of runs": logs("--runs", "nothing.csv", runs=None),
        "a run without a row": logs(log=LOG, other=LOG.replace("r1", "r2")),
        "a row without a run": logs(runs=RUN_TABLE + "r2,a,6e8\n"),
        "both": logs(log=LOG.replace("r1", "r2")),
        "no column run": logs(runs="name,arch,F\nr1,a,6e8\n"),
        "an unknown column": logs(runs="run,arch,flops\nr1,a,6e8\n"),
        "a bad number": logs(runs="run,arch,F\nr1,a,many\n"),
        "S in percent": logs(runs="run,arch,F,S\nr1,a,6e8,95\n"),
        "a run twice": logs(runs=RUN_TABLE + "r1,a,7e8\n"),
        "a run without a name": logs(runs=RUN_TABLE + ",a,7e8\n"),
        "an ambiguous order": logs(log=LOG, other=LOG.replace("3.25", "3.75")),
        "a step counter that began again": logs(
            log="run,step,loss\nr1,1,5\nr1,2,4\nr1,3,3.5\nr1,1,3.49\nr1,2,3.4\n",
            runs="run,arch,F,tokens_per_step\nr1,a,6e8,1e9\n",
        ),
        "nothing chosen": logs(log=LOG.replace("0.01", "0.5")),
        "nothing to write": logs("--nothing"),
        "a file of no kind": logs("-o", "runs.xlsx"),
        "a file in a file": logs("-o", "table.csv/runs.csv"),
        "a file in the way": logs("-o", "table.csv"),
        "a pattern that is none": logs("--run-pattern", "(", runs=None),
        "a pattern without a group": logs("--run-pattern", ".*", runs=None),
        "a pattern of an unknown group": logs("--run-pattern", "(?P<model>.*)", runs=None),
        "a pattern that does not fit": logs("--run-pattern", "(?P<arch>[a-z]+)-.*", runs=None),
        "a family without a star": logs("--long", "domains=eval/loss"),
        "a family without a name": logs("--long", "eval/*/loss"),
        "a family named like a path": logs("--long", "eval/domains=eval/*/loss"),
        "an unknown role": logs("--map", "foo=bar"),
        "a column that is no role": logs("--map", "F=flops"),
        "a role without a key": logs("--map", "loss"),
        "an unknown format": logs("--reader", "keras"),
        "annealed of 0": logs("--annealed", "0"),
        "annealed in percent": logs("--annealed", "10"),
        "smooth of 1": logs("--smooth", "1"),
        "a negative tolerance": logs("--overlap-tolerance", "-1"),
        "a format that does not fit": logs("--reader", "hf_trainer"),
    },
    "commands": {
        "no file": cli("check", "nothing.csv"),
        "two problems": cli("check", "runs.csv", given=CSV.replace("3.25", "-3").replace("6e8", "x")),
        "a map of nothing": cli("check", "runs.csv", "--map", "loss", given=CSV),
        "a map given twice": cli("check", "runs.csv", "--map", "loss=a,loss=b", given=CSV),
        "too few runs": cli("fit", "runs.csv", "--bootstrap", "0", given=CSV),
        "no study": cli("ce-gain", "-b", "1e21"),
        "study and paper": cli("ce-gain", "-b", "1e21", "--study", "x", "--published", "smelt"),
        "budget of 0": cli("ce-gain", "-b", "0", "--published", "smelt"),
        "a tolerance in words": cli("ce-gain", "-b", "1e21", "--published", "smelt", "--tolerance", "kv=none"),
        "a tolerance of nothing": cli("ce-gain", "-b", "1e21", "--published", "smelt", "--tolerance", ".04"),
        "a tolerance that match has not": cli("match", "smelt:baseline/200M/95%", "--tolerance", "tokens=.1"),
        "an unknown tolerance": lambda: audit_fairness(RUNS, tolerance={"flop": 0.04}),
        "a tolerance below 0": lambda: audit_fairness(RUNS, tolerance={"kv": -0.04}),
        "a tolerance in percent": lambda: audit_fairness(RUNS, tolerance={"flops": 4.0}),
        "a horizon in words": cli("plan", "--horizons", "long"),
        "loops that are no number": cli("match", "smelt:baseline/200M/95%", "--loops", "1.5"),
        "a span longer than the model": cli("match", "smelt:baseline/200M/95%", "--span", "middle:20"),
        "no pass": cli("match", "smelt:baseline/200M/95%", "--loops", "0"),
        "a tolerance for a paper": cli("ce-gain", "-b", "1e21", "--published", "smelt", "--tolerance", "kv=4%"),
        "budgets of a paper": lambda: audit_fairness(PAPER),
        "a sparsity in words": cli("ce-gain", "-b", "1e21", "--sparsity", "x", "--published", "smelt"),
        "outside the runs": cli("ce-gain", "-b", "1e26", "--strict", "--published", "smelt"),
        "a point without D": cli("predict", "--at", "F=1e9", "--published", "smelt"),
        "a point in words": cli("predict", "--at", "F=big,D=1,S=0", "--published", "smelt"),
        "delta of 0": cli("fit", "runs.csv", "--delta", "0", given=CSV),
        "starts in words": cli("fit", "runs.csv", "--starts", "many", given=CSV),
        "a pin of nothing": cli("fit", "runs.csv", "--pin", "E", given=CSV),
        "a pin of no evaluation": cli("fit", "runs.csv", "--pin", "E=1.6@", given=CSV),
        "a pin twice": cli("fit", "runs.csv", "--pin", "E=1.6", "--pin", "E=1.7", given=CSV),
        "an unknown note": cli("explain", "colinear"),
        "a file in the way": cli("example", "-o", "runs.csv", given=CSV),
    },
    "reports": {
        "against itself": report("-o", "out", "--compare", "out"),
        "against no report": report("-o", "out", "--compare", "."),
        "against a broken one": report("-o", "out", "--compare", "broken"),
        "a tolerance in words": report("--allow", "gain=none"),
        "a tolerance below 0": lambda: compare_reports(".", ".", tolerances={"gain": -1.0}),
        "an unknown format of figures": report("--figures", "jpg"),
        "a sheet without pictures": report("--figures", "pdf", "--contact-sheet"),
        "no pictures in it": sheet_of_nothing,
        "no folder of results": report("--with", "nowhere"),
        "an unknown architecture": report("--target", "smlet"),
        "a level in percent": report("--level", "95"),
        "a result of another command": record('{"schema_version": 1, "command": "shots"' + REST),
        "a result of nothing": record("{}"),
        "a result without rows": record('{"schema_version": 1, "command": "domains"}'),
        "a newer result": record('{"schema_version": 99, "command": "domains"' + REST),
    },
    "parts of an evaluation": {
        "no column says of what": split(lambda t: t[t["domain"] == "web"].drop(columns=["domain", "source"])),
        "one architecture only": split(lambda t: t[(t["domain"] == "code") | (t["arch"] == "smelt")]),
        "a source twice": split(lambda t: pd.concat([t, t.assign(tokenizer="other")])),
        "other runs": split(lambda t: t.assign(run=t["run"] + "!")),
        "other unit": split(lambda t: t, units={"loss": "bpb"}),
        "no tokens": split(lambda t: t, aggregate="tokens"),
        "uneven tokens": split(lambda t: t.assign(eval_tokens=1.0 + np.arange(len(t))), aggregate="tokens"),
        "an unknown aggregation": split(lambda t: t, aggregate="mean"),
        "published surfaces": lambda: domains(PAPER, RUNS, 1e21),
        "a frame of losses": lambda: domains(study(), RUNS.to_frame(), 1e21),
        "more groups than sources": split(lambda t: t, sources, groups=5),
        "half a group": split(lambda t: t, sources, groups=1.5),
        "an unknown sort": split(lambda t: t, sources, sort_at="first"),
        "no loss to sort by": split(
            lambda t: t[(t["domain"] == "code") | (t["D"] < t["D"].max())], sources, groups=2
        ),
    },
}  # fmt: skip
CASES = [(part, name) for part, several in SITUATIONS.items() for name in several]

#: What other packages say in brackets, and may say otherwise in their next version.
FOREIGN = re.compile(
    r"(broken (?:Parquet or Arrow file|gzip data|JSON)|not an expression|quotes that do not match) \(.*?\)(?=[;:])"
)

#: Words of the workshop; a message speaks of tables, runs and options instead.
JARGON = re.compile(
    r"Traceback|\b\w+(?:Error|Exception)\b|NoneType|ndarray|\bdtype|<class|\bkwarg|\bNone\b|\bdict\b|\bself\b"
)


def said(call: Callable[[], Any], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Provoke a message; return the exit code and its lines."""
    capsys.readouterr()
    try:
        call()
    except Said as ended:
        lines = capsys.readouterr().err.splitlines()
        return ended.args[0], [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    except SmeltScalingError as error:
        return error.exit_code, str(error).splitlines()
    return 0, []


@pytest.fixture(scope="module")
def collected() -> dict[tuple[str, str], tuple[int, list[str]]]:
    return {}


@pytest.mark.parametrize(("part", "name"), CASES, ids=[f"{part}: {name}" for part, name in CASES])
def test_a_message_is_one_line_per_problem_in_plain_words(
    part: str,
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    collected: dict[tuple[str, str], tuple[int, list[str]]],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, lines = said(SITUATIONS[part][name], capsys)
    collected[part, name] = code, lines
    assert code in (2, 3, 4, 5)
    assert lines
    for line in lines:
        assert 20 <= len(line) <= MAX_LENGTH, line
        assert not JARGON.search(line), line
        assert str(tmp_path) not in line, line  # a file is called what its owner called it
        assert not line.endswith("."), line
        assert re.search(r"[:;,(-]", line), line  # what and where, then the rule or the remedy


def test_the_words_are_those_on_record(
    collected: dict[tuple[str, str], tuple[int, list[str]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number, (part, name) in enumerate(CASES):
        if (part, name) not in collected:  # provoked by another worker, or not at all in this run
            (tmp_path / str(number)).mkdir()
            monkeypatch.chdir(tmp_path / str(number))
            collected[part, name] = said(SITUATIONS[part][name], capsys)
    text = [
        "What the program says when it refuses: the exit code, then one line per problem. Generated by its test.\n"
    ]
    for part, several in SITUATIONS.items():
        text.append(f"\n== {part}\n")
        for name in several:
            code, lines = collected[part, name]
            text.append(f"\n{name} [{code}]\n" + "".join(f"    {line}\n" for line in lines))
    spoken = FOREIGN.sub(r"\1 (...)", "".join(text))
    if os.environ.get("SMELT_UPDATE_GOLDEN"):
        GOLDEN.write_text(spoken, encoding="utf-8")
    assert spoken == GOLDEN.read_text(encoding="utf-8")
