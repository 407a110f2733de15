"""Turn the raw files of public repositories into tidy tables; nothing is read from disk or network here.

Every function takes the bytes of its raw files, keyed by their path in the repository, and returns the tables it
makes, keyed by their path in the data folder. Columns: N parameters, N_no_emb the same without embeddings, D training
tokens, C training FLOPs, F training FLOPs per token, S share of parameters a token does not use, loss in nats per
token unless a column says otherwise.
"""

from __future__ import annotations

import ast
import gzip
import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))

from rawfiles import notebook_table, read_csv, unpickle_table  # noqa: E402

Raw = Mapping[str, bytes]
Tables = dict[str, pd.DataFrame]


def numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}_{i:03d}" for i in range(count)]


# -- epoch-research/analyzing-chinchilla -------------------------------------------------------------------------------


def chinchilla(raw: Raw) -> Tables:
    """Digitised points of Hoffmann et al. (2022), Fig. 4; their authors leave out the five highest losses."""
    points = read_csv(raw["data/svg_extracted_data.csv"])
    N, C, loss = points["Model Size"], points["Training FLOP"], points["loss"]
    columns = {
        "run_id": numbered("chin", len(points)),
        "arch": "dense_transformer",
        "N": N,
        "F": 6 * N,
        "D": C / (6 * N),
        "C": C,
        "loss": loss,
        "epoch_keep": loss < loss.nlargest(5).min(),
    }
    return {"sets/chinchilla_epoch.csv": pd.DataFrame(columns)}


# -- mcleish7/gemstone-scaling-laws ------------------------------------------------------------------------------------

VOCABULARY = 50304  # rows of the embedding matrix in all their models
GEMSTONES = {
    "cool_begin": "cool_begin.csv",
    "cool_end": "cool_end.csv",
    "hot": "hot.csv",
    "hot_100b+": "hot_100bplus.parquet",
    "hot_100b+_477": "hot_100bplus_477.parquet",
    "hot_sampled_like_chinchilla": "hot_sampled_like_chinchilla.csv",
    "slim_chinchilla": "slim_chinchilla.csv",
}


def gemstones(raw: Raw) -> Tables:
    """Checkpoints of width x depth runs, and the coefficients fitted to them by their authors."""
    tables: Tables = {}
    for stem, name in GEMSTONES.items():
        lines = raw[f"wandb_dfs/wandb_df_for_fitting_{stem}.jsonl"].decode().splitlines()
        frame = pd.DataFrame([json.loads(line) for line in lines if line.strip()])
        names = {"run_name": "run_id", "params_active_precise": "N", "tokens": "D", "final_loss": "loss"}
        frame = frame.rename(columns=names).astype({"N": float, "D": float})
        # the slim set samples the digitised Chinchilla points, which have no width
        frame["N_no_emb"] = frame["N"] - VOCABULARY * frame["width"] if "width" in frame else np.nan
        frame["C"] = 6 * frame["N"] * frame["D"]
        tables[f"sets/gemstones_{name}"] = frame
    fits = []
    for path in sorted(path for path in raw if path.startswith("parameters_delta-")):
        (fit,) = pd.DataFrame(json.loads(raw[path])).to_dict("records")
        (alpha, beta), (log_a, log_b) = fit["exponents"], fit["coefficients"]
        fits.append((path, fit["loss"], alpha, beta, log_a, log_b, fit["irreducible_error"]))
    columns = ["file", "loss", "alpha_N", "beta_D", "logA", "logB", "logE"]
    tables["published/gemstones_fits.csv"] = pd.DataFrame(fits, columns=columns)
    return tables


# -- NX-AI/xlstm_scaling_laws ------------------------------------------------------------------------------------------

XLSTM_RUNS = {
    "notebooks/_prepare_model_checkpoint_paths.ipynb": ("xlstm", "tokenparam_mlstm.style"),
    "notebooks/run_dataset_tables.ipynb": ("transformer", '(df["model_type"] == "llama")]'),
}
XLSTM_GRID = (
    "data_lnd_fits/combined_df__fit_grid__uselogsumexp-True_huberdelta-0.001_fitgamma-False_ctx-8192.pkl"
)


def xlstm(raw: Raw) -> Tables:
    """Runs of two architectures at fixed tokens per parameter, and the best fits of their authors' grid of starts."""
    parts = []
    for path, (arch, source) in XLSTM_RUNS.items():
        printed = notebook_table(raw[path], source)
        number = {name: printed[name].astype(float) for name in printed if name.startswith(("num_", "val/"))}
        D, C = number["num_tokens_training"], number["num_flops_training"]
        context = printed["experiment_set_ctx_length"].str.removeprefix("tokenparam_ctx").astype(int)
        columns = {
            "run_id": printed["name"],
            "arch": arch,
            "run_tag": printed["run_tag"],
            "context_length": context,
            "N": number["num_params"],
            "F": C / D,
            "D": D,
            "C": C,
            "loss": number["val/.dclm_loss"],
            "tokens_per_param": printed["token_param_ratio"].astype(float),
        }
        parts.append(pd.DataFrame(columns))
    grid = unpickle_table(raw[XLSTM_GRID])
    fits = []
    for model in ("llama", "mlstm"):
        for span in ("0-100", "0-300", "0-5000"):
            starts = grid.loc[[key == (model, "tokenparam", span) for key in grid.index]]
            best = starts.iloc[int(starts["optim_results"]["loss"].to_numpy().argmin())]
            found = {name: best["optim_params", name] for name in ("a", "b", "e", "alpha", "beta")}
            about = {"model": model, "experiment_set": "tokenparam", "tpp_range": span}
            fits.append({**about, **found, "huber_sum": best["optim_results", "loss"]})
    return {
        "sets/xlstm_tokenparam.csv": pd.concat(parts, ignore_index=True),
        "published/xlstm_tokenparam_fits.csv": pd.DataFrame(fits),
    }


# -- Open-Athena/scaling-law-analysis ----------------------------------------------------------------------------------


def isoflop(raw: Raw) -> Tables:
    """Digitised iso-FLOP runs of Llama 3; their loss is a normalised one, given twice: as it is and exponentiated."""
    frame = read_csv(raw["data/isoflops/transform/isoflops.csv"])
    frame = frame[frame["source"] == "llama_3"].reset_index(drop=True)
    columns = {
        "run_id": numbered("llama_3", len(frame)),
        "arch": frame["dataset"] + "__" + frame["condition"],
        "dataset": frame["dataset"],
        "model": frame["model"],
        "condition": frame["condition"],
        "N": frame["params"],
        "F": 6 * frame["params"],
        "D": frame["tokens"],
        "C": 6 * frame["params"] * frame["tokens"],
        "isoflop_C": frame["budget"],
        "loss": frame["loss"],
        "oa_outlier": frame["outlier"],
        "oa_reason": frame["reason"],
    }
    return {"sets/isoflop_llama_3.csv": pd.DataFrame(columns)}


# -- hadasah/scaling_laws ----------------------------------------------------------------------------------------------


def misfitting(raw: Raw) -> Tables:
    """Learning-rate sweeps of dense models, and sparse ones of which only perplexities and a size label are known."""
    ends = read_csv(raw["data/scaling_results_last_ckpt_only.csv"])
    ends = ends.astype({"C": float, "C_6ND_no_emb": float})
    ends.insert(0, "run_id", numbered("misfit", len(ends)))
    ends.insert(1, "arch", "dense_transformer")
    shared = ["model", "N", "N_no_emb", "D", "C"]
    progress = ["peak_lr", "total_steps", "current_steps"]
    last = ["portion_steps_elapsed", "sweep"]
    curves = read_csv(raw["data/scaling_results.csv"]).astype({"C": float})
    sparse = []
    for router in ("gshard", "spm"):
        runs = read_csv(raw[f"data/{router}.csv"])
        evals = "eval/ppl//fsx-onellm/data/corpora/text_only/text_eval/"
        ppl = {corpus: runs[f"{evals}{corpus}.jsonl"] for corpus in ("c4", "wikipedia")}
        columns = {
            "name": runs["Name"],
            "router": router,
            "size": runs["Name"].str.extract(r"\.model-(\w+)\.", expand=False),
            "n_layers": runs["model.n_layers"],
            "num_experts": runs["model.number_of_experts"],
            "top_k": runs["model.moe_topk_k"],
            "moe_every_k": runs["model.moe_everyk"],
            "D": runs["optim/n_tokens"],
            "steps": runs["steps"],
            "lr": runs["optim.lr"],
            "seed": runs["torch_seed"],
            "train_loss": runs["train/avg_loss_AVG"],
            "ppl_c4": ppl["c4"],
            "ppl_wiki": ppl["wikipedia"],
            "loss_c4": ppl["c4"].map(math.log),
            "loss_wiki": ppl["wikipedia"].map(math.log),
            "state": runs["State"],
        }
        sparse.append(pd.DataFrame(columns))
    return {
        "sets/misfitting_dense_endpoints.csv": ends[
            ["run_id", "arch", *shared, "C_6ND_no_emb", "loss", *progress, *last]
        ],
        "sets/misfitting_dense_checkpoints.parquet": curves[
            [*shared, "loss", *progress, "current_epoch", *last]
        ],
        "sets/misfitting_moe_runs.csv": pd.concat(sparse, ignore_index=True),
    }


# -- google-deepmind/scaling_laws_for_routing --------------------------------------------------------------------------

TOKENS_PER_STEP = 2048 * 256  # sequence length times batch size, from the paper: the file does not say


def routed(raw: Raw) -> Tables:
    """Evaluations of routed models: the last one of every run, and the validation loss along the way."""
    curves = read_csv(gzip.decompress(raw["data/curves.csv.gz"]))
    curves = curves[curves["step"] > 0].sort_values(["hyper_id", "step"], kind="stable", ignore_index=True)
    total, active = curves["total_parameter_count"], curves["dense_parameter_count"]
    made = {
        "run_id": "clark_" + curves["hyper_id"].astype(str),
        "N_total": total,
        "N_active": active,
        "S": 1 - active / total,
        "fwd_flops_per_step": curves["flops_per_step"],
        "F": 3 * curves["flops_per_step"] / TOKENS_PER_STEP,
        "D": (curves["step"] * TOKENS_PER_STEP).astype(float),
    }
    curves = curves.assign(**made)
    setting = ["run_id", "router_type", "num_experts", "k", "routing_frequency"]
    size = ["N_total", "N_active", "S"]
    losses = sorted(name for name in curves if name.startswith("loss_"))
    shape = ["flop_increase", "model_size_label", "d_model", "num_blocks", "seed"]
    ends = curves.groupby("hyper_id", sort=False).tail(1)
    return {
        "sets/routed_lm_endpoints.csv": ends[
            [*setting, *shape, *size, "fwd_flops_per_step", "F", "step", "D", *losses]
        ].reset_index(drop=True),
        "sets/routed_lm_curves.parquet": curves[
            [*setting, "model_size_label", "seed", *size, "F", "step", "D", "loss_validation"]
        ],
    }


# -- mlfoundations/scaling ---------------------------------------------------------------------------------------------


def gadre(raw: Raw) -> Tables:
    """Runs with their losses on eight held-out sets: one table with a row per run, one with a row per run and set."""
    runs, losses = [], []
    for path in sorted(raw):
        run = json.loads(raw[path])
        settings = run["hyperparameters"]
        N, D = float(settings["params"]), float(settings["tokens"])
        about = {
            "run_id": run["name"],
            "train_dataset": run["dataset_name"],
            "model": settings["model"].rpartition("/")[2].removesuffix(".json"),
            "N": N,
            "N_no_emb": float(settings["params_no_embed"]),
            "D": D,
            "C": 6 * N * D,
            "cc_mult": float(settings["chinchilla_multiplier"]),
        }
        training = {name: settings[name] for name in ("lr", "wd", "global_bs", "warmup")}
        wide = {}
        for result in run["results"]:
            # a set is named by its folder, except where the file's own name says more
            folder, file = result["val_data"][0].split("/")[-2:]
            domain = file.partition(".")[0] if file.startswith("val_") else folder
            wide[f"loss_{domain}"] = result["loss"]
            ends = {f"loss_{side}95_seq": result[f"loss_sequences_{name}_95"] for side, name in ENDS}
            seen = {"eval_sequences": result["sequences"], "eval_tokens": result["tokens"]}
            losses.append({**about, "domain": domain, "loss": result["loss"], **ends, **seen})
        seed = settings.get("seed", math.nan)
        runs.append({**about, **training, "seed": seed, **dict(sorted(wide.items()))})
    return {
        "sets/gadre_endpoints.csv": pd.DataFrame(runs).rename(columns={"global_bs": "bs"}),
        "sets/gadre_losses_long.parquet": pd.DataFrame(losses),
    }


ENDS = (("lo", "lower"), ("hi", "upper"))


# -- huggingface/datablations ------------------------------------------------------------------------------------------


def datablations(raw: Raw) -> Tables:
    """Runs on repeated data, listed in a notebook by a name made of parameters, tokens and unique tokens.

    Left out: losses of 0, which mark unfinished runs, and names with more parts than these and a seed.
    """
    source = "\n".join(
        "".join(cell["source"])
        for cell in json.loads(raw["plotstables/return_alloc.ipynb"])["cells"]
        if cell["cell_type"] == "code" and "NAMES_TO_VAL_LOSSES = {" in "".join(cell["source"])
    )
    listed = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    sizes, amounts = listed["PARAMS_MAP"], listed["TOKENS_MAP"]
    rows = []
    for name, loss in listed["NAMES_TO_VAL_LOSSES"].items():
        parts = re.fullmatch(r"(.+?)(c4)?(?:seed(\d))?", name)
        found = _name_parts(parts[1], sizes, amounts) if parts else None
        if not loss or found is None:
            continue
        N, D, unique = found
        rows.append(
            {
                "run_id": name,
                "N": N,
                "D": D,
                "D_unique": unique,
                "loss": loss,
                "seed": float(parts[3] or math.nan),
                "excluded": False,
                "c4_suffix": parts[2] is not None,
                "epochs": D / unique,
                "C": 6 * N * D,
            }
        )
    return {"sets/datablations.csv": pd.DataFrame(rows)}


def _name_parts(name: str, sizes: Mapping[str, float], amounts: Mapping[str, float]) -> Any:
    """Split a name such as 2b855b1b25 into 2.81e9 parameters, 55e9 tokens and 1.25e9 unique ones, by their rules."""
    size = next((name[:i] for i in range(2, len(name)) if name[:i] in sizes), None)
    # the unique tokens are the last three or four characters, less what belongs to the tokens before
    start = len(name) - (4 if name[-1] in "bm" or name[-2] not in "bm" else 3)
    while name[start:].count("b") > 1 or name[start:].count("m") > 1:
        start += 1
    if size is None:
        return None
    try:
        tokens, unique = (
            amounts[part] if part in amounts else float(part.replace("b", ".").strip("."))
            for part in (name[len(size) : start], name[start:])
        )
    except ValueError:
        return None
    return sizes[size], tokens * 1e9, unique * 1e9


CONVERSIONS: dict[str, Callable[[Raw], Tables]] = {
    "epoch-research/analyzing-chinchilla": chinchilla,
    "mcleish7/gemstone-scaling-laws": gemstones,
    "NX-AI/xlstm_scaling_laws": xlstm,
    "Open-Athena/scaling-law-analysis": isoflop,
    "hadasah/scaling_laws": misfitting,
    "google-deepmind/scaling_laws_for_routing": routed,
    "mlfoundations/scaling": gadre,
    "huggingface/datablations": datablations,
}
