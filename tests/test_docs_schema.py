"""docs/json.md, docs/notes.md and docs/cli.md describe what the code really emits, all of it and nothing else."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import typer

from smelt_scaling import errors, example_endpoints
from smelt_scaling.accounting import ModelConfig
from smelt_scaling.accounting.toml_files import to_toml
from smelt_scaling.cli import app, run
from smelt_scaling.errors import NOTE_CODES

DOCS = Path(__file__).resolve().parent.parent / "docs"

#: Documented type -> what a JSON value of that type is.
TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def tables(page: str) -> dict[str, list[list[str]]]:
    """Return heading -> rows of the tables below it, cells as text."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ").strip()
        elif line.startswith("|"):
            found.setdefault(heading, []).append([cell.strip() for cell in line.strip("|").split("|")])
    return {name: rows[2:] for name, rows in found.items()}


def documented(command: str) -> dict[str, str]:
    """Return path -> type of one document; "as in ce-gain" and the common keys are filled in."""
    sections = tables("json.md")
    paths: dict[str, str] = {}
    for name in ("Every document", command):
        for row in sections[name]:
            for key in re.findall(r"`([^`]+)`", row[0]):
                if row[1] == "as in ce-gain":
                    shared = documented("ce-gain")
                    paths |= {
                        p: kind for p, kind in shared.items() if re.match(re.escape(key) + r"(\W|$)", p)
                    }
                elif row[1] != "absent":
                    paths[key] = row[1]
    return paths


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of everything in a document; empty objects and lists say nothing."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for item in value:
            yield from leaves(item, f"{path}[]")
    elif value != []:
        yield path, value


def pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"<[^>]+>", path)
    return re.compile("[^.\\[\\]]*".join(map(re.escape, parts)))


def is_of(value: Any, kind: str) -> bool:
    if kind.startswith("list of "):
        return isinstance(value, list) and all(is_of(item, kind.removeprefix("list of ")) for item in value)
    if isinstance(value, bool):
        return "boolean" in kind.split(" or ")
    return isinstance(value, tuple(t for name in kind.split(" or ") for t in TYPES[name]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with tables of several kinds, and the studies fitted to them."""
    path = tmp_path_factory.mktemp("schema")
    runs = example_endpoints()
    frame = runs.to_frame()
    frame.to_parquet(path / "runs.parquet")
    frame[runs.tiers == 1].to_parquet(path / "tier.parquet")
    frame[["arch", "F", "D", "S", "loss"]].to_csv(path / "bare.csv", index=False)
    budget = np.geomspace(1e18, 1e22, 9)
    # levels off nowhere, so the floor ends at 0
    concave = 100 * budget**-0.08 - 1e-3 * np.log(budget / 1e20) ** 2
    seeds = frame.iloc[[5]].assign(run="again", loss=1.0 * frame["loss"].iloc[5] + 0.001)
    beside = pd.concat([frame, seeds]).assign(
        tokens_per_s=lambda f: 4e14 / f["F"],
        tokenizer=lambda f: f["arch"],
        C=lambda f: f["F"] * f["D"] * (1 + 0.03 * (f["arch"] == "smelt")),
    )
    beside.to_parquet(path / "beside.parquet")
    scores = frame.assign(metric="core", score=1 / (1 + np.exp(6 * (frame["loss"] - 1.9))), chance=0.0)
    scores = scores[["arch", "scale", "cell", "F", "D", "loss", "metric", "score", "chance"]]
    scores.to_csv(path / "scores.csv", index=False)
    scores.assign(score=np.exp(-scores["loss"])).to_csv(path / "flat.csv", index=False)
    scores[scores["cell"].str.startswith("100M")].to_csv(path / "few.csv", index=False)
    rows = [f"{c!r},{loss!r}" for c, loss in zip(budget.tolist(), concave.tolist(), strict=True)]
    (path / "bound.csv").write_text("\n".join(["C,loss", *rows]))
    flat = frame.assign(domain="flat", source="f0", loss=2.0)  # neither size nor tokens matter
    parts = [
        frame.assign(domain="code", source=f"c{i}", loss=(0.8 + 0.1 * i) * frame["loss"]) for i in (0, 1, 2)
    ]
    pd.concat([*parts, flat]).assign(eval_tokens=1e6).to_parquet(path / "losses.parquet")
    whole = beside.drop(columns="tokens_per_s")
    pd.concat([whole.assign(domain="code", source=f"c{i}", seed=whole["run"]) for i in (0, 1)]).to_parquet(
        path / "apart.parquet"
    )
    size = np.geomspace(1e8, 1e10, 8)  # at 20 tokens per parameter, so that size and tokens move together
    losses = 1.7 + 400 * size**-0.34 + 410 * (20 * size) ** -0.28
    rows = [f"{6 * n!r},{20 * n!r},{loss!r}" for n, loss in zip(size.tolist(), losses.tolist(), strict=True)]
    (path / "fixed.csv").write_text("\n".join(["F,D,loss", *rows]))
    rows = [
        f"{name},{cell},{b},3,{3 - gain - 0.001 * cell}"
        for name in "xy"
        for cell in range(4)
        for b, gain in ((256, 0.01 * (name == "x")), (512, 0.02))
    ]
    (path / "lengths.csv").write_text("\n".join(["contrast,cell,bucket,loss_ref,loss_new", *rows]))
    rows = [
        f"{a},{t},{k},{0.3 + 0.1 * (a == 'b') + 0.01 * k}" for a in "ab" for t in "xyz" for k in (0, 1, 2)
    ]
    items = [f"{row},100" for row in rows]
    (path / "shots.csv").write_text("\n".join(["arch,task,k,score,n_items", *items]))
    rows = [f"{name},{seed},{2 - 0.1 * j + 0.01 * seed}" for j, name in enumerate("abc") for seed in (0, 1)]
    dense = ModelConfig(hidden=512, layers=4, heads=8, kv_heads=2, head_dim=64, d_ff=1408)
    (path / "dense.toml").write_text(to_toml(dense))
    (path / "levels.csv").write_text("\n".join(["level,seed,value", *rows]))
    (path / "far.csv").write_text("level,value\na,1.6\nb,1.58\n")  # losses that no run had
    probed = {"cell": "c", "part": "Q", "visit": "1-2", "layer": "1", "head": "0", "value": 0.5}
    rows = [
        {**probed, "doc": doc, "probe": probe, "k": 8, "n": n, "width": 64, "position": 9, "control": control}
        for doc in "ab"
        for probe, n, control in (
            ("routing", 16, 0.3),
            ("attention_cosine", None, None),
            ("write_norm", None, None),
        )
    ]
    pd.DataFrame(rows).to_parquet(path / "probes.parquet")
    with contextlib.chdir(path):
        for arguments in COMMANDS["fit"]:
            call(*arguments)
        yield path
    call.cache_clear()


@functools.cache
def call(*arguments: str) -> dict[str, Any]:
    """Run one command, once, and return its document."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = run([*arguments, "--format", "json"])
    assert code in (0, 1, 4), arguments
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


N_ACT = "E + A*N_act**-a + B*D**-b"

#: Together the commands of a document reach every key it can hold.
COMMANDS: dict[str, list[list[str]]] = {
    "fit": [
        ["fit", "runs.parquet", "--bootstrap", "40", "-o", "full"],
        ["fit", "runs.parquet", "--bootstrap", "0", "--delta", "inf", "-o", "none"],
        ["fit", "tier.parquet", "--bootstrap", "0", "-o", "tier"],
        [
            "fit",
            "runs.parquet",
            "--bootstrap",
            "40",
            "--law",
            "chinchilla",
            "--pin",
            "E=1.4@c4",
            "-o",
            "params",
        ],
        ["fit", "runs.parquet", "--bootstrap", "0", "--law", N_ACT, "--pin", "smelt:E=0", "-o", "active"],
        ["fit", "runs.parquet", "--bootstrap", "40", "--law", "power-c", "-o", "power"],
        ["fit", "fixed.csv", "--bootstrap", "0", "--law", "additive", "-o", "fixed"],
        ["fit", "beside.parquet", "--bootstrap", "40", "-o", "beside"],
        ["fit", "bound.csv", "--bootstrap", "0", "--law", "power-c", "--starts", "thorough", "-o", "bound"],
    ],
    "ce-gain": [
        ["ce-gain", "--study", "full", "--budget", "1e20,1e22,1e31"],
        ["ce-gain", "--study", "power", "--budget", "1e21"],
        ["ce-gain", "--study", "power", "--budget", "1e21,1e31", "--sensitivity"],
        ["ce-gain", "--published", "smelt", "--budget", "1e22"],
        ["ce-gain", "--study", "beside", "--budget", "1e20", "--force"],
    ],
    "allocate": [
        ["allocate", "--study", "full", "--budget", "1e20,1e23"],
        ["allocate", "--study", "params", "--budget", "1e21"],
        ["allocate", "--published", "smelt", "--budget", "1e22"],
    ],
    "predict": [
        ["predict", "--study", "full", "--at", "F=1e11,D=1e11,S=.947"],
        ["predict", "--study", "full", "--at", "F=1e10,D=1e11,S=.947", "--new-run"],
        ["predict", "--study", "params", "--at", "N=1e9,D=1e11"],
        ["predict", "--study", "active", "--at", "N_act=1e9,D=1e11"],
        ["predict", "--study", "power", "--at", "C=1e21"],
        ["predict", "--published", "smelt", "--at", "F=1e10,D=1e13,S=.947"],
    ],
    "downstream": [
        ["downstream", "scores.csv", "--bootstrap", "40"],
        ["downstream", "flat.csv", "--bootstrap", "40", "--lower-better", "core"],
        ["downstream", "flat.csv", "--bootstrap", "0"],
        ["downstream", "few.csv", "--margin", "0.99", "--unit", "core=number"],
        ["downstream", "scores.csv", "--bootstrap", "40", "--asymptotes", "chance"],
    ],
    "lengths": [["lengths", "lengths.csv", "--bootstrap", "100"]],
    "shots": [
        ["shots", "shots.csv", "--bootstrap", "100"],
        ["shots", "shots.csv", "--shots", "0,1", "--bootstrap", "0"],
    ],
    "ablations": [
        ["ablations", "levels.csv", "--against", "a", "--noise", "0.01"],
        ["ablations", "levels.csv", "--published", "smelt", "--reference", "smelt"],
        ["ablations", "levels.csv", "--study", "full", "--reference", "baseline"],
        ["ablations", "far.csv", "--published", "smelt", "--reference", "smelt"],
    ],
    "domains": [
        ["domains", "losses.parquet", "--study", "full", "--budget", "1e21,1e22", "--aggregate", "tokens"],
        ["domains", "apart.parquet", "--study", "beside", "--budget", "1e20", "--force", "--no-sharing"],
    ],
    "sources": [
        ["sources", "losses.parquet", "--study", "full", "--budget", "1e21"],
        ["sources", "apart.parquet", "--study", "beside", "--budget", "1e20", "--groups", "2", "--force"],
    ],
    "probes": [
        ["probes", "probes.parquet", "--bootstrap", "50", "--by", "cell,layer,head"],
        ["probes", "probes.parquet", "--bootstrap", "0"],
    ],
    "diagnose": [
        ["diagnose", "--study", "full"],
        ["diagnose", "--study", "params", "--only", "fairness,noise,identifiability"],
    ],
    "flops": [
        ["flops", "smelt:smelt/200M/95%", "--compare", "smelt:baseline/200M/95%"],
        ["flops", "smelt:baseline/200M/95%", "--control", "smelt:baseline/200M/0%", "--seq-len", "4096"],
    ],
    "match": [
        ["match", "smelt:baseline/200M/95%", "--loops", "1,2"],
        ["match", "smelt:baseline/200M/0%", "--top", "1"],
        ["match", "dense.toml", "--loops", "1", "--seq-len", "2048", "--top", "1"],
    ],
    "grid": [["grid", "smelt"]],
    "plan": [
        [
            "plan",
            "--study",
            "full",
            "--fund",
            "3e21",
            "--simulate",
            "2",
            "--bootstrap",
            "40",
            "--cells",
            "12",
        ],
        ["plan", "--study", "params", "--schedule", "independent"],
        ["plan", "--published", "smelt", "--design", "runs.parquet", "--noise", "0.0055", "--icc", "0.5"],
    ],
    "reproduce": [["reproduce", "smelt"]],
    "check": [
        ["check", "runs.parquet"],
        ["check", "tier.parquet"],
        ["check", "bare.csv"],
        ["check", "runs.parquet", "--law", "power-c"],
    ],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_documented_keys_are_the_emitted_ones(command: str, folder: Path) -> None:
    known = {pattern(path): (path, kind) for path, kind in documented(command).items()}
    seen = set()
    for arguments in COMMANDS[command]:
        for path, value in leaves(call(*arguments)):
            hits = [known[p] for p in known if p.fullmatch(path)]
            assert hits, f"{' '.join(arguments)}: {path} = {value!r} is not in docs/json.md"
            exact = [hit for hit in hits if hit[0] == path] or hits
            assert is_of(value, exact[0][1]), f"{path} = {value!r} is no {exact[0][1]}"
            seen |= {hit[0] for hit in exact}
    assert sorted({path for path, _ in known.values()} - seen) == [], "documented, but never emitted"


def test_a_study_folder_holds_what_is_documented(folder: Path) -> None:
    sections = tables("json.md")
    assert {row[0].strip("`") for row in sections["Study folder"]} == {
        item.name for item in (folder / "full").iterdir()
    }
    names = [row[0].strip("`") for row in sections["draws.parquet"]]
    place = names.index("<parameter>")
    expected = [*names[:place], *"EAKabc", *names[place + 1 :]]
    schema = pq.read_schema(folder / "full" / "draws.parquet")
    assert schema.names == expected
    assert set(json.loads(schema.metadata[b"labels"])) == {
        f"{plan}/{arch}" for plan in ("bootstrap", "jackknife") for arch in ("baseline", "smelt")
    }


def test_every_exit_code_is_documented() -> None:
    codes = {int(row[0]) for row in tables("json.md")["Exit codes"]}
    classes = [getattr(errors, name) for name in errors.__all__]
    raised = {c.exit_code for c in classes if isinstance(c, type) and issubclass(c, Exception)}
    assert raised | {0, 1, 130, 141} == codes


def test_every_note_code_is_documented() -> None:
    page = (DOCS / "notes.md").read_text(encoding="utf-8")
    parts = re.split(r"^### `(\w+)`$", page, flags=re.MULTILINE)[1:]
    bodies = dict(zip(parts[::2], (" ".join(text.split()) for text in parts[1::2]), strict=True))
    assert list(bodies) == list(NOTE_CODES)
    for code, said in NOTE_CODES.items():
        assert bodies[code].startswith(f"*{said.severity}*: {said.meaning} What to do: {said.remedy}")


def test_every_command_and_option_is_documented() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    root = typer.main.get_command(app)
    sections = dict(zip(*[iter(re.split(r"^## ([\w-]+)$", page, flags=re.MULTILINE)[1:])] * 2, strict=True))
    assert set(sections) == set(root.commands)  # type: ignore[attr-defined]
    for name, command in root.commands.items():  # type: ignore[attr-defined]
        for parameter in command.params:
            shown = parameter.opts + parameter.secondary_opts
            if parameter.param_type_name == "argument":
                shown = [parameter.metavar or parameter.name.upper()]
            for option in shown:
                found = re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", sections[name])
                assert found, f"{name} {option} is not in docs/cli.md"


@pytest.mark.parametrize("page", sorted(path.name for path in DOCS.glob("*.md")))
def test_links_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([\w./-]*\.md)?(?:#([\w-]+))?\)", text):
        path = DOCS / (target or page)
        assert path.is_file(), f"{page}: {target}"
        headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        slugs = {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in headings}
        assert not anchor or anchor in slugs, f"{page}: {target}#{anchor}"
