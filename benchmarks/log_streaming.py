"""How fast logs of a hundred million steps stream through the readers, and in how much memory.

Run as a script, it reads once, in one way: ``python log_streaming.py WAY FOLDER FILES``; with ``quick`` in place
of that it prints the section for a tenth of the rows.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # as a script, only its own folder is on the path
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorder import fresh_process, spread, table, timed

TITLE = "Streaming logs"
GOAL_RATIO = 1.5  # of a bare scan
GOAL_RSS = 500.0  # MB
REPEATS = {1: 5, 10: 3, 100: 1}  # files -> how often they are gone through in every way
RUNS_PER_FILE = 10
ROWS_PER_RUN = 100_000
SHUFFLED_EVERY = 50
BRANCHES = ("", "d1", "d2", "d3", "d4", "d5")
READ = ("run", "branch", "step", "tokens", "loss")


def write_logs(folder: Path, files: int, rows_per_run: int = ROWS_PER_RUN) -> None:
    """Write runs of one trunk and five decay branches; seven columns of which five matter."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    each = rows_per_run // 20  # rows of a branch; the trunk has the other three quarters
    trunk = rows_per_run - each * (len(BRANCHES) - 1)
    lengths = np.array([trunk] + [each] * (len(BRANCHES) - 1))
    starts = np.array([0, *(trunk * (np.arange(1, len(BRANCHES))) // len(BRANCHES))])
    step = np.concatenate([start + np.arange(n) for start, n in zip(starts, lengths, strict=True)])
    branch = np.repeat(np.arange(len(BRANCHES)), lengths)
    for number in range(files):
        parts = []
        for run in range(number * RUNS_PER_FILE, (number + 1) * RUNS_PER_FILE):
            order = rng.permutation(rows_per_run) if run % SHUFFLED_EVERY == 0 else np.arange(rows_per_run)
            noise = 0.01 * rng.standard_normal(rows_per_run)
            columns = {
                "run": pa.DictionaryArray.from_arrays(np.zeros(rows_per_run, np.int32), [f"run {run}"]),
                "branch": pa.DictionaryArray.from_arrays(branch[order].astype(np.int32), list(BRANCHES)),
                "step": step[order],
                "tokens": step[order] * 524_288,
                "loss": (2 + 8 * (1 + step[order]) ** -0.2 + noise).round(4),
                "grad_norm": rng.random(rows_per_run, np.float32),
                "tokens_per_s": rng.integers(9000, 9999, rows_per_run),
            }
            texts = {key: columns[key].cast(pa.string()) for key in ("run", "branch")}
            parts.append(pa.table({**columns, **texts}))
        pq.write_table(pa.concat_tables(parts), folder / f"part-{number:03}.parquet", compression="zstd")


def scan(paths: list[str]) -> int:
    """Read the same columns with pyarrow alone, names as codes, which is its fastest way; returns the rows."""
    import pyarrow.dataset as ds

    codes = ds.ParquetFileFormat(dictionary_columns=["run", "branch"])
    return sum(len(batch) for batch in ds.dataset(paths, format=codes).to_batches(columns=list(READ)))


def read(paths: list[str]) -> int:
    """Turn the files into events, as every analysis of logs begins; returns the rows."""
    from smelt_scaling.ingest.events import Block
    from smelt_scaling.ingest.keys import Keys
    from smelt_scaling.ingest.readers import READERS
    from smelt_scaling.ingest.sources import find_sources

    rows = 0
    for source in find_sources(paths):
        head = source.head()
        reader = next(one for one in READERS.values() if one.sniff(head, source.path))
        for event in reader.read(source, Keys()):
            rows += len(event.step) if isinstance(event, Block) else 0
    return rows


def condense(paths: list[str]) -> int:
    """Go on to what endpoints are chosen from, the last step of `smelt-scaling endpoints` that sees every row."""
    from smelt_scaling.ingest import scan_logs

    return sum(segment.rows for segment in scan_logs(paths).segments)


def endpoints(paths: list[str]) -> int:
    """Go all the way, as `smelt-scaling endpoints --runs` does; refuses a result that lacks a branch."""
    from smelt_scaling.ingest import read_logs

    runs = len(paths) * RUNS_PER_FILE
    with tempfile.TemporaryDirectory() as name:
        table = Path(name) / "runs.csv"
        rows = (f"run {run},a,1e8\n" for run in range(runs))
        table.write_text("run,arch,N\n" + "".join(rows), encoding="utf-8")
        found = read_logs(paths, runs=table)
    expected = {"endpoints": runs * (len(BRANCHES) - 1), "left_out": runs}  # a trunk has not decayed
    if {key: found.counts[key] for key in expected} != expected:
        raise RuntimeError(f"found {found.summary()}, where {expected} are")
    return found.counts["rows"]


#: Ways to go through the files, the bare one first.
WAYS: dict[str, Callable[[list[str]], int]] = {
    "scan": scan,
    "read": read,
    "condense": condense,
    "endpoints": endpoints,
}
SAID = {
    "scan": "is pyarrow's fastest pass over them",
    "read": "makes events of them, split by run and branch and in order",
    "condense": "goes on to what endpoints are chosen from",
    "endpoints": "goes all the way to the table of endpoints",
}


def measure(repeats: dict[int, int] | None = None, rows_per_run: int = ROWS_PER_RUN) -> dict[str, Any]:
    """Go through the first so many files in every way, taking turns, each time in a fresh process."""
    repeats = repeats or REPEATS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_logs(folder, max(repeats), rows_per_run)
        megabytes = [path.stat().st_size / 1e6 for path in sorted(folder.iterdir())]
        sizes = [
            {"megabytes": sum(megabytes[:files]), "repeats": times, **_turns(folder, files, times)}
            for files, times in repeats.items()
        ]
    return {"rows_per_run": rows_per_run, "sizes": sizes}


def _turns(folder: Path, files: int, times: int) -> dict[str, Any]:
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(times):
        for way, done in found.items():
            process = fresh_process([sys.executable, __file__, way, str(folder), str(files)])
            done.append({**json.loads(process["stdout"]), "rss": process["rss"]})
    [rows] = {one["rows"] for done in found.values() for one in done}  # every way sees every row
    ways = {
        way: {key: spread(one[key] for one in done) for key in ("wall", "cpu", "rss")}
        for way, done in found.items()
    }
    return {"rows": rows, "ways": ways}


def one(way: str, folder: str, files: int) -> dict[str, float]:
    """Return rows and seconds of one way, once everything is imported."""
    paths = sorted(str(path) for path in Path(folder).iterdir())[:files]
    with tempfile.TemporaryDirectory() as name:  # imports and first calls are not what grows with the rows
        write_logs(Path(name), 1, rows_per_run=100)
        WAYS[way]([str(path) for path in Path(name).iterdir()])
    rows, clock = timed(WAYS[way], paths)
    return {"rows": rows, "wall": clock.wall, "cpu": clock.cpu}


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    rows = []
    for size in values["sizes"]:
        bare = size["ways"]["scan"]
        for way, done in size["ways"].items():
            ratios = [f"{done[key]['min'] / bare[key]['min']:.2f}" for key in ("wall", "cpu")]
            rows.append(
                [
                    f"{size['rows'] / 1e6:g} M rows, {size['megabytes']:.0f} MB, {size['repeats']} times",
                    way,
                    *(f"{done[key]['min']:.2f}" for key in ("wall", "cpu")),
                    f"{done['rss']['median']:.0f}",
                    *(ratios if way != "scan" else ["", ""]),
                ]
            )
    *_, whole = values["sizes"][0]["ways"]  # the way that does most
    peaks = [
        f"{size['ways'][whole]['rss']['median']:.0f}" for size in (values["sizes"][0], values["sizes"][-1])
    ]
    ways = "; ".join(f"`{way}` {SAID[way]}" for way in values["sizes"][0]["ways"])
    text = (
        f"Runs of {values['rows_per_run']:,} rows, {RUNS_PER_FILE} to a Parquet file, every {SHUFFLED_EVERY}th of them "
        f"shuffled; five of seven columns are read. {ways}. Fresh processes, taking turns; seconds count from when "
        f"everything is imported, peak memory is that of the process. Aims: at most {GOAL_RATIO:g} times a scan, and "
        f"{GOAL_RSS:g} MB whatever the rows: from the smallest to the largest size the peak of `{whole}` goes from "
        f"{peaks[0]} to {peaks[1]} MB."
    )
    header = ["logs", "way", "wall s, min", "CPU s, min", "peak MB, median", "wall, of scan", "CPU, of scan"]
    return text + "\n\n" + table(header, rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["quick"]:
        print(page(measure({1: 3, 10: 1})))
    else:
        print(json.dumps(one(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
