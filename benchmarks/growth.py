"""How cost grows with replicates, data points and starts; each size in a process of its own, for its peak memory.

Run as a script, it measures one size: ``python growth.py AXIS SIZE``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # as a script, only its own folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks.recorder import fresh_process, one_thread, table, timed

TITLE = "Growth"
SIZES = {
    "replicates": (500, 2000, 10_000, 50_000, 100_000),
    "points": (72, 288, 720, 2880, 7200),
    "starts": (5, 20, 100, 500, 1000),
}
REPLICATES = 256  # while the number of points grows


def measure(sizes: dict[str, tuple[int, ...]] | None = None, repeats: int = 3) -> dict[str, Any]:
    """Measure every axis; the cheapest of several runs stands for a size, and what takes long runs once."""
    result = {}
    for axis, several in (sizes or SIZES).items():
        rows: list[dict[str, float]] = []
        for size in several:
            runs: list[dict[str, float]] = []
            while len(runs) < repeats and sum(run["wall"] for run in runs) < 20:
                done = fresh_process([sys.executable, __file__, axis, str(size)])
                runs.append({**json.loads(done["stdout"]), "rss": done["rss"], "wall": done["wall"]})
            best = min(runs, key=lambda run: run["cpu"])
            rows.append({"size": size, **best, "runs": len(runs)})
        result[axis] = {"rows": rows, "exponent": _slope(rows), "exponent_last": _slope(rows[-2:])}
    return result


def _slope(rows: list[dict[str, float]]) -> float:
    """Return the log-log slope of CPU time; 1 is linear growth."""
    size, cpu = (np.log([row[key] for row in rows]) for key in ("size", "cpu"))
    return float(np.polyfit(size, cpu, 1)[0])


def one(axis: str, size: int) -> dict[str, float]:
    """Return CPU seconds of the growing part, and the bytes that its results hold, at one size."""
    from benchmarks.example import SETTINGS, worlds
    from smelt_scaling.fitting import FitSettings, fit_architecture
    from smelt_scaling.laws import get_law
    from smelt_scaling.resampling import refit

    with one_thread():
        points = size if axis == "points" else 72
        endpoints = one_architecture(points)
        if axis == "starts":
            settings = FitSettings(starts=size)
            arguments = ("smelt", endpoints, get_law("sparse-additive"))
            fit_architecture(*arguments, FitSettings(starts=5), n_cells=12)
            found, clock = timed(fit_architecture, *arguments, settings, n_cells=12)
            kept = {
                "share_agreeing": found.result.certificate.starts_agreeing / found.result.certificate.starts
            }
            return {"cpu": clock.cpu, **kept}
        world = worlds(endpoints, replicates=size if axis == "replicates" else REPLICATES)["smelt"]
        draws, clock = timed(refit, world.fitted, world.index, world.counts, world.labels, SETTINGS)
        arrays = (draws.surface.coef, draws.objective, draws.certified, draws.degenerate, draws.improved)
        kept_mb = sum(array.nbytes for array in (*arrays, draws.at_bound, draws.counts)) / 1e6
        return {"cpu": clock.cpu, "kept_mb": kept_mb, "certified": float(draws.certified.mean())}


def one_architecture(points: int) -> Any:
    """Return the example's SMELT endpoints, or a set on its cells with a finer grid of horizons."""
    from smelt_scaling.papers import load_paper
    from smelt_scaling.papers.example import example_endpoints
    from smelt_scaling.synth import simulate

    example = example_endpoints().by_arch()["smelt"]
    if points == len(example):
        return example
    cells, first = np.unique(example["cell"], return_index=True)
    each = points // len(cells)
    horizons = np.geomspace(example.D.min(), example.D.max(), each)
    design = {name: np.repeat(example[name][first], each) for name in ("arch", "cell", "F", "S")}
    design["D"] = np.tile(horizons, len(cells))
    sd = float(load_paper("smelt").tables["coefficients"].select(arch="smelt").numbers("rmse")[0])
    return simulate(load_paper("smelt").surfaces, design, sd=sd, seed=0)


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    titles = {
        "replicates": "Replicates of one architecture, 72 points, extra start and certificate included",
        "points": f"Points of one architecture, {REPLICATES} replicates",
        "starts": "Starts of one architecture's point fit, 72 points (grid search and certificate included)",
    }
    text = [
        "Each size runs in a process of its own; CPU time is that of the growing part alone, the cheapest of up to "
        "three runs. The exponent is the slope of log time against log size: 1 is linear, less is cheaper than linear.",
    ]
    for axis, found in values.items():
        rows = []
        for row in found["rows"]:
            unit = row["cpu"] / row["size"] * 1e3
            last = f"{row['share_agreeing']:.1%}" if axis == "starts" else f"{row['kept_mb']:.1f}"
            rows.append([f"{row['size']}", f"{row['cpu']:.2f}", f"{unit:.3f}", f"{row['rss']:.0f}", last])
        last = "starts that agree" if axis == "starts" else "results hold, MB"
        text += [
            "",
            f"{titles[axis]}: exponent {found['exponent']:.2f} (last step {found['exponent_last']:.2f}).",
            "",
            table([axis, "CPU s", f"CPU ms per {axis[:-1]}", "peak MB of the process", last], rows),
        ]
    return "\n".join(text)


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], int(sys.argv[2]))))
