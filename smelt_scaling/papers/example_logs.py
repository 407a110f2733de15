"""Logs of the example set: **simulated** runs that end in its 144 endpoints, with the accidents of real ones.

Every stable run (trunk) and every decay branch is a run of its own, as JSON lines with one row per logged step. Some
branches crashed and were resumed from an earlier checkpoint, in a second file whose steps overlap those of the first;
the losses that the crash made stale are lower than those that stand, so that a reader who takes the lowest loss, the
first file or all rows gets other endpoints. What the logs do not say is in a table of runs beside them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from smelt_scaling.papers import load_paper
from smelt_scaling.papers.example import EXAMPLE_SEED, example_endpoints

__all__ = ["write_example_logs"]

Row = dict[str, Any]

#: Columns of the table of runs.
_STATED = ("run", "trunk", "arch", "scale", "cell", "F", "S", "N", "N_act", "source")
#: Rows of a branch, and from which to which of them the crashed piece and the resumed one reach.
_BRANCH_ROWS, _CRASHED, _RESUMED = 13, 9, 6
#: Every n-th branch crashed.
_CRASHES = 5
_PEAK_RATE = 1e-3
_FIRST_SECOND = 1_700_000_000


def write_example_logs(folder: str | Path, seed: int = EXAMPLE_SEED) -> Path:
    """Write the simulated logs of the example set.

    Parameters
    ----------
    folder : str or Path
        Where ``logs/`` and ``runs.csv`` go; existing files of these names are replaced.
    seed : int
        Seed of the noise: the endpoints are those of `example_endpoints` for it.

    Returns
    -------
    Path
        The folder.
    """
    folder = Path(folder)
    frame = example_endpoints(seed).to_frame()
    recipe = load_paper("smelt").tables["recipe"]
    per_step = float(recipe.select(quantity="tokens_per_step").numbers("value")[0])
    rng = np.random.default_rng(seed)
    stated: list[Row] = []
    for trunk, own in frame.groupby("trunk", sort=True):
        ends: list[Row] = own.sort_values("D").to_dict("records")  # type: ignore[assignment]
        _write(folder, str(trunk), "trunk", _trunk_rows(str(trunk), ends, per_step, rng))
        stated.append({**{name: ends[0][name] for name in _STATED}, "run": trunk, "trunk": ""})
        for place, end in enumerate(ends):
            rows = list(_branch_rows(end, per_step, rng))
            name = str(end["run"]).rsplit("/", 1)[-1]
            if (len(stated) + place) % _CRASHES == 0:
                _write(folder, str(trunk), name, _stale(rows[:_CRASHED]))
                _write(folder, str(trunk), f"{name}-resumed", [_later(row) for row in rows[_RESUMED:]])
            else:
                _write(folder, str(trunk), name, rows)
            stated.append({name: end[name] for name in _STATED})
    with (folder / "runs.csv").open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, _STATED, lineterminator="\n")
        writer.writeheader()
        writer.writerows(stated)
    return folder


def _trunk_rows(run: str, ends: list[Row], per_step: float, rng: np.random.Generator) -> Iterator[Row]:
    """Yield a stable run at a constant rate; its evaluations are above what a decay from there gives."""
    for place in range(1, 41):
        tokens = ends[-1]["D"] * place / 40
        loss = float(np.interp(tokens, [end["D"] for end in ends], [end["loss"] for end in ends])) + 0.08
        warm = min(place / 2, 1.0)
        yield _row(run, tokens, per_step, _PEAK_RATE * warm, loss, rng, evaluated=place % 4 == 0)


def _branch_rows(end: Row, per_step: float, rng: np.random.Generator) -> Iterator[Row]:
    """Yield a decay from the trunk to the endpoint, whose loss is the last one."""
    for place in range(_BRANCH_ROWS):
        left = 1 - place / (_BRANCH_ROWS - 1)
        tokens = end["D"] * (1 - 0.1 * left)
        loss = end["loss"] + 0.08 * left
        yield _row(end["run"], tokens, per_step, _PEAK_RATE * left, loss, rng, evaluated=place % 3 == 0)


def _row(
    run: str,
    tokens: float,
    per_step: float,
    rate: float,
    loss: float,
    rng: np.random.Generator,
    *,
    evaluated: bool,
) -> Row:
    step = round(tokens / per_step)
    row: Row = {"run": run, "step": step, "tokens": tokens, "lr": rate, "time": _FIRST_SECOND + step}
    row["train/loss"] = round(loss + 0.02 * float(rng.standard_normal()), 4)
    return {**row, "eval/loss": loss} if evaluated else row


def _stale(rows: list[Row]) -> list[Row]:
    """Make the losses of a piece that a restart superseded lower than those that stand."""
    return [
        {**row, **({"eval/loss": round(row["eval/loss"] - 0.05, 6)} if "eval/loss" in row else {})}
        for row in rows
    ]


def _later(row: Row) -> Row:
    return {**row, "time": row["time"] + 86_400}


def _write(folder: Path, trunk: str, name: str, rows: Any) -> None:
    path = folder / "logs" / trunk.replace("/", "-").replace("%", "") / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
