"""The script that fetches the data of the tests on real data, on raw files made up here."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import importlib.util
import json
import math
import pickle
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).resolve().parent / "realdata"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"realdata_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


fetch, convert, rawfiles = load("fetch"), load("convert"), load("rawfiles")
MANIFEST: dict[str, Any] = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))

# -- downloads, from a server on this machine --------------------------------------------------------------------------

REPOSITORY = "epoch-research/analyzing-chinchilla"
FILE = "data/svg_extracted_data.csv"
POINTS = b"x,Model Size,Training FLOP,loss\n" + b"".join(
    b"0,%d,%d,%.1f\n" % (10**8 * i, 12 * 10**17 * i, 9 - i) for i in range(1, 8)
)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def manifest() -> dict[str, Any]:
    (table,) = convert.CONVERSIONS[REPOSITORY]({FILE: POINTS}).values()
    tables = {"sets/chinchilla_epoch.csv": fetch.table_digest(table)}
    return {REPOSITORY: {"commit": "c0ffee", "files": {FILE: sha256(POINTS)}, "tables": tables}}


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Address of a server, and the file on it that the manifest names."""
    place = tmp_path / "www" / REPOSITORY / "c0ffee" / FILE
    place.parent.mkdir(parents=True)
    place.write_bytes(POINTS)
    handler = functools.partial(_Handler, directory=str(tmp_path / "www"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", place
        httpd.shutdown()
        thread.join()


def test_download_and_table(
    tmp_path: Path, server: tuple[str, Path], manifest: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    host, place = server
    assert fetch.fetch(tmp_path / "out", manifest, host=host) == 0
    frame = pd.read_csv(tmp_path / "out" / "sets" / "chinchilla_epoch.csv")
    assert frame["N"].tolist() == [1e8 * i for i in range(1, 8)]
    assert frame["D"].tolist() == [2e9] * 7  # 1.2e18 i / (6 * 1e8 i)
    assert frame["epoch_keep"].tolist() == [False] * 5 + [True] * 2
    assert "7 rows" in capsys.readouterr().out
    place.unlink()  # the raw file is kept, so a second run needs no server
    assert fetch.fetch(tmp_path / "out", manifest, host=host) == 0


def test_changed_download_is_refused(
    tmp_path: Path, server: tuple[str, Path], manifest: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    host, place = server
    place.write_bytes(POINTS + b"0,1,1,1\n")
    assert fetch.fetch(tmp_path / "out", manifest, host=host) == 1
    said = capsys.readouterr()
    assert len(said.err.splitlines()) == 1
    assert (
        f"SHA-256 is {sha256(POINTS + b'0,1,1,1' + bytes([10]))}, not the pinned {sha256(POINTS)}" in said.err
    )
    assert "not available: sets/chinchilla_epoch.csv (1 of 1 raw files" in said.out
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_failed_downloads_say_so_in_one_line(
    tmp_path: Path, server: tuple[str, Path], manifest: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    host, place = server
    place.unlink()
    assert fetch.fetch(tmp_path / "out", manifest, host=host) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{host}/{REPOSITORY}/c0ffee/{FILE}: cannot download (HTTP 404: ")
    with socket.socket() as unused:  # bound but not listening: a connection is refused
        unused.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert fetch.fetch(tmp_path / "out", manifest, host=nowhere) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "cannot download" in line
    assert line.endswith("check the network and run again")


def test_local_raw_files_are_checked_too(
    tmp_path: Path, manifest: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "raw" / REPOSITORY / FILE
    assert fetch.fetch(tmp_path / "out", manifest, local=tmp_path / "raw") == 1
    assert "no such file" in capsys.readouterr().err
    place.parent.mkdir(parents=True)
    place.write_bytes(POINTS[:-1])
    assert fetch.fetch(tmp_path / "out", manifest, local=tmp_path / "raw") == 1
    assert "not the pinned" in capsys.readouterr().err
    place.write_bytes(POINTS)
    assert fetch.fetch(tmp_path / "out", manifest, local=tmp_path / "raw") == 0


def test_wrong_table_or_broken_file_is_refused(
    tmp_path: Path, manifest: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    source = manifest[REPOSITORY]
    place = tmp_path / "raw" / REPOSITORY / FILE
    place.parent.mkdir(parents=True)
    place.write_bytes(POINTS)
    source["tables"] = {"sets/chinchilla_epoch.csv": "0" * 64}
    assert fetch.fetch(tmp_path / "out", manifest, local=tmp_path / "raw") == 1
    assert "the table's digest is" in capsys.readouterr().err
    assert not list((tmp_path / "out" / "sets").iterdir())
    place.write_bytes(b"a,b\n1,2\n")
    source["files"] = {FILE: sha256(b"a,b\n1,2\n")}
    assert fetch.fetch(tmp_path / "out", manifest, local=tmp_path / "raw") == 1
    assert "conversion of epoch-research/analyzing-chinchilla failed: KeyError" in capsys.readouterr().out


def test_digest_sees_any_change_but_the_last_bits() -> None:
    frame = pd.DataFrame({"N": [1, 2], "loss": [2.5, math.nan], "keep": [True, False], "name": ["none", ""]})
    digest = fetch.table_digest(frame)
    assert fetch.table_digest(frame.assign(loss=[2.5 * (1 + 4e-16), math.nan], N=[1.0, 2.0])) == digest
    for change in (
        {"N": [1, 3]},
        {"loss": [2.5 + 1e-10, math.nan]},
        {"keep": [True, True]},
        {"name": ["", ""]},
    ):
        assert fetch.table_digest(frame.assign(**change)) != digest
    assert fetch.table_digest(frame[["loss", "N", "keep", "name"]]) != digest


# -- the manifest ------------------------------------------------------------------------------------------------------


def test_manifest_and_readme_agree() -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert list(MANIFEST) == list(convert.CONVERSIONS)
    for repository, source in MANIFEST.items():
        assert len(source["commit"]) == 40
        assert f"{repository}/tree/{source['commit']}" in readme
        assert all(f"`{table}`" in readme for table in source["tables"])
        if repository != "mlfoundations/scaling":  # its 104 files stand in the manifest alone
            assert all(f"| `{path}` | `{digest}` |" in readme for path, digest in source["files"].items())


# -- conversions -------------------------------------------------------------------------------------------------------


def test_csv_cells() -> None:
    frame = rawfiles.read_csv(b"a,b,c,d\n1,2.05589716e+18,True,none\n36893488147419103232,,False,nan\n")
    assert frame["a"].tolist() == [1, 2**65]
    assert frame["b"].iloc[0] == 2.05589716e18
    assert math.isnan(frame["b"].iloc[1])
    assert frame["c"].tolist() == [True, False]
    assert frame["d"].tolist() == ["none", "nan"]


def test_gemstones() -> None:
    run = {"run_name": "r", "params_active_precise": 10**9, "width": 100, "tokens": 10**10, "final_loss": 2.5}
    bare = {"params_active_precise": 1e9, "tokens": 1e10, "FLOPs": 6e19, "final_loss": 3.0}
    raw = {
        f"wandb_dfs/wandb_df_for_fitting_{stem}.jsonl": json.dumps(
            bare if stem == "slim_chinchilla" else run
        ).encode()
        for stem in convert.GEMSTONES
    }
    fit = {"success": {"0": True}, "loss": {"0": 0.1}, "exponents": {"0": [0.3, 0.4]}}
    fit |= {"coefficients": {"0": [5, 6]}, "irreducible_error": {"0": 0.7}}
    raw["parameters_delta-3/fit.json"] = json.dumps(fit).encode()
    tables = convert.gemstones(raw)
    (row,) = tables["sets/gemstones_hot.csv"].to_dict("records")
    made = {
        "run_id": "r",
        "N": 1e9,
        "width": 100,
        "D": 1e10,
        "loss": 2.5,
        "N_no_emb": 1e9 - 5030400,
        "C": 6e19,
    }
    assert row == made
    assert math.isnan(tables["sets/gemstones_slim_chinchilla.csv"]["N_no_emb"][0])
    (row,) = tables["published/gemstones_fits.csv"].to_dict("records")
    assert list(row.values()) == ["parameters_delta-3/fit.json", 0.1, 0.3, 0.4, 5, 6, 0.7]


def notebook(source: str, html: str = "") -> bytes:
    outputs = [{"data": {"text/html": [html]}}] if html else []
    return json.dumps({"cells": [{"cell_type": "code", "source": [source], "outputs": outputs}]}).encode()


def grid() -> pd.DataFrame:
    """Two starts for each of six fits, the second better."""
    spans = [
        (m, "tokenparam", s) for m in ("llama", "mlstm") for s in ("0-100", "0-300", "0-5000") for _ in "ab"
    ]
    names = ["a", "b", "e", "alpha", "beta"]
    columns = pd.MultiIndex.from_tuples([*(("optim_params", n) for n in names), ("optim_results", "loss")])
    values = np.arange(72.0).reshape(12, 6)
    values[:, 5] = np.tile([2.0, 1.0], 6)
    return pd.DataFrame(values, columns=columns, index=pd.MultiIndex.from_tuples(spans)).sort_index()


def test_xlstm(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["experiment_set_ctx_length", "name", "run_tag", "num_params", "num_tokens_training"]
    names += ["num_flops_training", "val/.dclm_loss", "token_param_ratio"]
    cells = ["tokenparam_ctx8192", "run", "tag", "1e8", "2e9", "1.5e18", "3.1", "20"]
    rows = [
        f"<tr><th>{h}</th>{''.join(f'<td>{c}</td>' for c in row)}</tr>"
        for h, row in (("", names), ("0", cells))
    ]
    html = f"<style>td {{}}</style><table>{''.join(rows)}</table>"
    raw = {path: notebook(source, html) for path, (_, source) in convert.XLSTM_RUNS.items()}
    # a pickle made here would name the classes of this release of pandas, not those in the published file
    monkeypatch.setattr(convert, "unpickle_table", lambda data: grid())
    tables = convert.xlstm({**raw, convert.XLSTM_GRID: b""})
    frame = tables["sets/xlstm_tokenparam.csv"]
    assert frame["arch"].tolist() == ["xlstm", "transformer"]
    first = {
        "run_id": "run",
        "run_tag": "tag",
        "context_length": 8192,
        "N": 1e8,
        "F": 7.5e8,
        "D": 2e9,
        "C": 1.5e18,
    }
    assert frame.iloc[0].to_dict() == {**first, "loss": 3.1, "tokens_per_param": 20.0, "arch": "xlstm"}
    fits = tables["published/xlstm_tokenparam_fits.csv"]
    assert fits["huber_sum"].tolist() == [1.0] * 6
    assert fits["a"].tolist() == [6.0, 18.0, 30.0, 42.0, 54.0, 66.0]  # first cell of every second row
    with pytest.raises(ValueError, match="no cell with"):
        rawfiles.notebook_table(notebook("x = 1"), "df")


def test_pickle_with_anything_but_a_table_is_refused() -> None:
    assert rawfiles.unpickle_table(pickle.dumps(np.dtype("f8"))) == np.float64
    with pytest.raises(pickle.UnpicklingError, match=r"asks for .*print, which is no part of a table"):
        rawfiles.unpickle_table(pickle.dumps(print))


def test_isoflop() -> None:
    head = b"source,dataset,model,condition,experiment,tokens,params,budget,loss,outlier,reason\n"
    rows = (
        b"other,o,o,,o,1,1,1,1.0,False,none\nllama_3,llama_3,llama_3,raw_loss,x,2e9,1e8,1e18,0.7,True,off\n"
    )
    (frame,) = convert.isoflop({"data/isoflops/transform/isoflops.csv": head + rows}).values()
    (row,) = frame.to_dict("records")
    assert [row[n] for n in ("run_id", "arch", "oa_outlier")] == ["llama_3_000", "llama_3__raw_loss", True]
    assert [row[n] for n in ("N", "F", "D", "C", "isoflop_C", "loss")] == [1e8, 6e8, 2e9, 1.2e18, 1e18, 0.7]


def test_misfitting() -> None:
    head = "loss,N,N_no_emb,D,C,C_6ND_no_emb,portion_steps_elapsed,model,total_steps,current_steps,current_epoch,"
    dense = (head + "peak_lr,sweep\n3.5,10,8,100,36893488147419103232,4800,1.0,m,5,5,1,0.002,s\n").encode()
    evals = "eval/ppl//fsx-onellm/data/corpora/text_only/text_eval/"
    sparse = {
        "Name": "moe.ngpu16.model-12m.moe-gshard.lr_4e-3",
        "train/avg_loss_AVG": 4.5,
        f"{evals}c4.jsonl": 100.0,
        f"{evals}wikipedia.jsonl": 10.0,
        "State": "failed",
        "optim.lr": 0.004,
        "torch_seed": 0,
        **{
            f"model.{n}": i
            for i, n in enumerate(["n_layers", "number_of_experts", "moe_topk_k", "moe_everyk"], 2)
        },
        "optim/n_tokens": 1000,
        "steps": 250,
        "train/step": 7,
    }
    text = pd.DataFrame([sparse]).to_csv(index=False).encode()
    paths = ("scaling_results_last_ckpt_only", "scaling_results")
    raw = {f"data/{name}.csv": dense for name in paths} | {
        f"data/{name}.csv": text for name in ("gshard", "spm")
    }
    tables = convert.misfitting(raw)
    ends = tables["sets/misfitting_dense_endpoints.csv"]
    assert ends["C"].tolist() == [2.0**65]
    assert ends["run_id"].tolist() == ["misfit_000"]
    assert len(tables["sets/misfitting_dense_checkpoints.parquet"]) == 1
    moe = tables["sets/misfitting_moe_runs.csv"]
    assert moe["router"].tolist() == ["gshard", "spm"]
    assert [moe[n][0] for n in ("size", "n_layers", "num_experts", "top_k", "moe_every_k")] == [
        "12m",
        2,
        3,
        4,
        5,
    ]
    assert moe["steps"][0] == 250
    assert moe["loss_c4"][0] == pytest.approx(2 * moe["loss_wiki"][0], rel=1e-15)


def test_routed() -> None:
    columns = ["hyper_id", "step", "loss_validation", "loss_c4", "num_experts", "d_model", "num_blocks", "k"]
    columns += ["flop_increase", "router_type", "seed", "routing_frequency", "total_parameter_count"]
    columns += ["dense_parameter_count", "flops_per_step", "model_size_label"]
    rest = [8, 512, 6, 1, 1.0, "RL-R", 42, 0.5, 4000.0, 1000.0, 2.0**20, "15M"]
    rows = [
        [1, 20, 3.0, math.nan, *rest],
        [1, 0, 9.0, 9.0, *rest],
        [1, 10, 4.0, 4.0, *rest],
        [0, 10, 5.0, 5.0, *rest],
    ]
    raw = gzip.compress(pd.DataFrame(rows, columns=columns).to_csv(index=False).encode())
    tables = convert.routed({"data/curves.csv.gz": raw})
    ends, curves = tables["sets/routed_lm_endpoints.csv"], tables["sets/routed_lm_curves.parquet"]
    assert ends["run_id"].tolist() == ["clark_0", "clark_1"]
    assert ends["step"].tolist() == [10, 20]
    assert ends["S"].tolist() == [0.75, 0.75]
    assert ends["F"].tolist() == [3.0 * 2, 3.0 * 2]  # 2**20 FLOPs over 2048 * 256 = 2**19 tokens, times 3
    assert ends["D"].tolist() == [10.0 * 2**19, 20.0 * 2**19]
    assert math.isnan(ends["loss_c4"][1])
    assert curves["loss_validation"].tolist() == [5.0, 4.0, 3.0]


def test_gadre() -> None:
    settings = {"model": "x/d=96.json", "params": 100, "params_no_embed": 60, "tokens": 2000, "lr": 0.003}
    settings |= {"wd": 0.1, "global_bs": 512, "warmup": 20, "chinchilla_multiplier": 0.5}
    parts = {"c4_val/shard-{0..10}.tar": 3.5, "paloma_ptb/00000001.tar": 4.5, "de-en/val_de-en_100.tar": 5.5}
    seen = {"sequences": 3, "tokens": 30, "loss_sequences_lower_95": 1.0, "loss_sequences_upper_95": 9.0}
    results = [
        {"loss": loss, "val_data": [f"training/eval_data/{path}"], **seen} for path, loss in parts.items()
    ]
    run = {"name": "r", "dataset_name": "rpj", "hyperparameters": settings, "results": results}
    tables = convert.gadre({"exp_data/models/r.json": json.dumps(run).encode()})
    (row,) = tables["sets/gadre_endpoints.csv"].to_dict("records")
    assert math.isnan(row.pop("seed"))
    made = {
        "run_id": "r",
        "train_dataset": "rpj",
        "model": "d=96",
        "N": 100,
        "N_no_emb": 60,
        "D": 2000,
        "C": 1.2e6,
    }
    made |= {"cc_mult": 0.5, "lr": 0.003, "wd": 0.1, "bs": 512, "warmup": 20}
    assert row == made | {"loss_c4_val": 3.5, "loss_paloma_ptb": 4.5, "loss_val_de-en_100": 5.5}
    long = tables["sets/gadre_losses_long.parquet"]
    assert long["domain"].tolist() == ["c4_val", "paloma_ptb", "val_de-en_100"]
    assert long["loss_hi95_seq"].tolist() == [9.0] * 3


def test_datablations() -> None:
    source = """NAMES_TO_VAL_LOSSES = {"2b855b1b25c4seed2": 3.4, "14m200m100m": 6.6, "2b855b55b": 2.5, "2b84b4b": 0,
    "2b855b9bc4opt": 2.6, "14m14b100mdedup": 3.8, "4b284b84bc4v2seed1": 2.4}
TOKENS_MAP = {"100m": 0.1, "200m": 0.2, "1b25": 1.25, "14b": 14}
PARAMS_MAP = {"14m": 1.41e7, "2b8": 2.81e9, "4b2": 4.2465e9}"""
    (frame,) = convert.datablations({"plotstables/return_alloc.ipynb": notebook(source)}).values()
    assert frame["run_id"].tolist() == ["2b855b1b25c4seed2", "14m200m100m", "2b855b55b"]
    assert frame["N"].tolist() == [2.81e9, 1.41e7, 2.81e9]
    assert frame["D"].tolist() == [55e9, 2e8, 55e9]
    assert frame["D_unique"].tolist() == [1.25e9, 1e8, 55e9]
    assert frame["epochs"].tolist() == [44.0, 2.0, 1.0]
    assert frame["seed"].fillna(0).tolist() == [2.0, 0.0, 0.0]
    assert frame["c4_suffix"].tolist() == [True, False, False]
