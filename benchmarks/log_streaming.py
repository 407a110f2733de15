"""How fast logs of a hundred million steps stream through the readers, and in how much memory.

Run as a script, it reads once, in one way: ``python log_streaming.py WAY FOLDER FILES``.
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
FILES = (1, 10, 100)
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
    """Read the same columns with pyarrow alone; returns the rows."""
    import pyarrow.dataset as ds

    return sum(len(batch) for batch in ds.dataset(paths).to_batches(columns=list(READ)))


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


#: Ways to go through the files, the bare one first.
WAYS: dict[str, Callable[[list[str]], int]] = {"scan": scan, "read": read}


def measure(
    files: tuple[int, ...] = FILES, repeats: int = 3, rows_per_run: int = ROWS_PER_RUN
) -> dict[str, Any]:
    """Go through the first so many files in every way, taking turns, each time in a fresh process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_logs(folder, max(files), rows_per_run)
        megabytes = [path.stat().st_size / 1e6 for path in sorted(folder.iterdir())]
        found = []
        for several in files:
            runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            for _ in range(repeats):
                for way, done in runs.items():
                    process = fresh_process([sys.executable, __file__, way, name, str(several)])
                    done.append({**json.loads(process["stdout"]), "rss": process["rss"]})
            ways = {
                way: {key: spread(one[key] for one in done) for key in ("wall", "cpu", "rss")}
                for way, done in runs.items()
            }
            found.append(
                {"rows": runs["read"][0]["rows"], "megabytes": sum(megabytes[:several]), "ways": ways}
            )
    return {"repeats": repeats, "sizes": found}


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
                    f"{size['rows'] / 1e6:g} M rows, {size['megabytes']:.0f} MB",
                    way,
                    *(f"{done[key]['min']:.2f}" for key in ("wall", "cpu")),
                    f"{done['rss']['median']:.0f}",
                    *(ratios if way != "scan" else ["", ""]),
                ]
            )
    last = values["sizes"][-1]["ways"]["read"]
    first = values["sizes"][0]["ways"]["read"]
    text = (
        f"Runs of {ROWS_PER_RUN:,} rows, ten to a Parquet file, every {SHUFFLED_EVERY}th of them shuffled; five of "
        "seven columns are read. `scan` is pyarrow's own pass over the same columns and stands for the least one can "
        f"pay; `read` makes events of them, ordered. Fresh processes, {values['repeats']} of each in turn; seconds "
        "count from when everything is imported, peak memory is that of the process. Aims: at most "
        f"{GOAL_RATIO:g} times a scan and {GOAL_RSS:g} MB, whatever the rows: from the smallest to the largest size "
        f"the peak of `read` goes from {first['rss']['median']:.0f} to {last['rss']['median']:.0f} MB."
    )
    header = ["logs", "way", "wall s, min", "CPU s, min", "peak MB, median", "wall, of scan", "CPU, of scan"]
    return text + "\n\n" + table(header, rows)


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
