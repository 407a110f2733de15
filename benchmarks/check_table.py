"""How long a large table takes to be read and checked, and how much memory it takes.

Run as a script, it checks one file: ``python check_table.py FILE``.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # as a script, only its own folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorder import fresh_process, spread, table, timed
from smelt_scaling._text import Text
from smelt_scaling.endpoints import Endpoints

TITLE = "Large tables"
GOAL_S = 2.0  # for a million rows of Parquet
SIZES = (10_000, 100_000, 1_000_000)
NAMED = "parquet, every run named"
FORMATS = ("parquet", "csv", NAMED)
KEYS = ("read", "check", "wall", "cpu", "bare", "baseline", "grown", "parsed")


def write_tables(folder: Path, rows: int) -> dict[str, Path]:
    """Write runs like the example's, six horizons to a cell, no two alike; once with names of runs."""
    import numpy as np

    from smelt_scaling.papers.example import example_endpoints

    frame = example_endpoints().to_frame()
    rng = np.random.default_rng(0)
    frame = frame.iloc[np.resize(np.arange(len(frame)), rows)].reset_index(drop=True)
    frame["D"] *= np.exp(0.01 * rng.standard_normal(rows))
    frame["loss"] *= np.exp(0.001 * rng.standard_normal(rows))
    cell = np.arange(rows) // 6  # the example lists the six horizons of a cell one after the other
    frame["F"] *= 1 + 1e-7 * cell
    frame["cell"] = [f"cell {number}" for number in cell]
    frame = frame[["arch", "scale", "cell", "F", "S", "D", "loss"]]
    paths = {form: folder / f"runs_{rows}.{form}" for form in ("parquet", "csv")}
    frame.to_parquet(paths["parquet"], index=False)
    frame.to_csv(paths["csv"], index=False)
    paths[NAMED] = folder / f"named_{rows}.parquet"
    frame.assign(run=[f"run {row}" for row in range(rows)]).to_parquet(paths[NAMED], index=False)
    return paths


def measure(sizes: tuple[int, ...] = SIZES, repeats: int = 3) -> dict[str, Any]:
    """Check every file in fresh processes, taking turns."""
    with tempfile.TemporaryDirectory() as name:
        found: dict[tuple[str, int], list[dict[str, float]]] = {}
        files = {
            (form, size): path for size in sizes for form, path in write_tables(Path(name), size).items()
        }
        for _ in range(repeats):
            for key, path in files.items():
                done = fresh_process([sys.executable, __file__, str(path)])
                found.setdefault(key, []).append(json.loads(done["stdout"]))
        megabytes = {key: path.stat().st_size / 1e6 for key, path in files.items()}
    return {
        "repeats": repeats,
        "files": [
            {
                "format": form,
                "rows": size,
                "megabytes": megabytes[form, size],
                **{key: spread(run[key] for run in runs) for key in KEYS},
            }
            for (form, size), runs in found.items()
        ],
    }


def one(path: str) -> dict[str, float]:
    """Return what reading and checking take: seconds, and MB of peak memory beyond a process that has done a small one.

    A bare read is that of PyArrow, of all columns and without a look at them.
    """
    import pyarrow.csv
    import pyarrow.parquet

    from smelt_scaling.analyses import design_report
    from smelt_scaling.ingest import read_endpoints
    from smelt_scaling.papers.example import example_endpoints

    with tempfile.TemporaryDirectory() as name:  # imports and first calls are not what grows with the table
        small = Path(name) / "small"
        frame = example_endpoints().to_frame()
        frame.to_csv(small) if path.endswith(".csv") else frame.to_parquet(small)
        design_report(read_endpoints(small))
    baseline = peak_memory()
    endpoints, reading = timed(read_endpoints, path)
    _, checking = timed(design_report, endpoints)
    grown = peak_memory() - baseline
    bare = pyarrow.csv.read_csv if path.endswith(".csv") else pyarrow.parquet.read_table
    return {
        "bare": min(timed(bare, path)[1].wall for _ in range(3)),
        "baseline": baseline,
        "grown": grown,
        "parsed": parsed_size(endpoints),
        "read": reading.wall,
        "check": checking.wall,
        "wall": reading.wall + checking.wall,
        "cpu": reading.cpu + checking.cpu,
    }


def peak_memory() -> float:
    """Return the most memory this process has had, in MB."""
    import resource

    return (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
    )


def parsed_size(endpoints: Endpoints) -> float:
    """Return the MB that the columns themselves take, as they are kept: numbers, tiers, codes and names of text."""
    size = endpoints.tiers.nbytes
    for values in endpoints._stored.values():
        if isinstance(values, Text):
            size += values.codes.nbytes + sum(map(sys.getsizeof, values.names)) + sys.getsizeof(values.names)
        else:
            size += values.nbytes
    return size / 1e6


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    rows = []
    for one_file in values["files"]:
        aim = f"{GOAL_S:g} s" if one_file["format"] == "parquet" and one_file["rows"] == 1_000_000 else ""
        rows.append(
            [
                f"{one_file['rows']:,} rows, {one_file['format']}, {one_file['megabytes']:.0f} MB",
                *(f"{one_file[key]['min']:.2f}" for key in ("read", "check", "wall")),
                f"{one_file['wall']['median']:.2f}",
                f"{one_file['cpu']['min']:.2f}",
                f"{one_file['bare']['min']:.2f}",
                f"{one_file['grown']['median']:.0f}",
                f"{one_file['grown']['median'] * 1e6 / one_file['rows']:.0f}",
                f"{one_file['parsed']['median'] * 1e6 / one_file['rows']:.0f}",
                aim,
            ]
        )
    growth = [
        f"{form}: {_slope(by_size, 'wall', 'min'):.2f} and {_slope(by_size, 'grown', 'median'):.2f}"
        for form in FORMATS
        if len(by_size := [one_file for one_file in values["files"] if one_file["format"] == form]) > 1
    ]
    text = (
        "Tables of seven columns (or eight, with a name of its own for every run), read and checked as "
        f"`smelt-scaling check` does, in fresh processes, each {values['repeats']} times in turn. Seconds count from "
        "when everything is imported, and peak memory from that of a process that has checked a small table "
        f"({values['files'][0]['baseline']['median']:.0f} MB). A bare read is PyArrow's. The parsed columns are what "
        "the library keeps: numbers, tiers, and text as codes and names.\n\n"
        "Growth, as the exponent of time and of memory in the number of rows over the last step: "
        f"{'; '.join(growth) or 'unknown'}."
    )
    header = [
        "file",
        "read s, min",
        "check s, min",
        "both, min",
        "both, median",
        "CPU s, min",
        "bare read s",
        "peak MB, added",
        "bytes per row",
        "of which parsed columns",
        "goal",
    ]
    return text + "\n\n" + table(header, rows)


def _slope(by_size: list[dict[str, Any]], key: str, statistic: str) -> float:
    """Return the exponent of growth between the two largest sizes."""
    small, large = sorted(by_size, key=lambda one_file: float(one_file["rows"]))[-2:]
    grown = large[key][statistic] / max(small[key][statistic], 1e-9)
    return math.log(grown) / math.log(large["rows"] / small["rows"])


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1])))
