"""What a user waits for: whole commands in fresh processes, with their peak memory.

"Cold" is a new Python process with all its imports; files are in the page cache, as after a first run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.recorder import CHECKOUT, fresh_process, spread, table

TITLE = "Whole processes"
GOALS = {"fit": {"wall": 10.0, "rss": 400.0}, "ce-gain": {"wall": 2.0}, "--help": {"wall": 0.5}}

_LIBRARY = {
    "fit": "import smelt_scaling as s; f = s.fit(s.read_endpoints({runs!r}), bootstrap={n}); f.save({study!r})",
    "ce-gain": "import smelt_scaling as s; print(s.ce_gain(s.load_study({study!r}), [1e21]))",
}


def commands(runs: Path, study: Path, replicates: int) -> tuple[str, dict[str, list[str]]]:
    """Return what is timed: the command line, or the same library path where there is no command line."""
    cli = [sys.executable, "-m", "smelt_scaling"]
    if all(
        subprocess.run([*cli, name, "--help"], capture_output=True, cwd=CHECKOUT).returncode == 0
        for name in _LIBRARY
    ):
        fit = ["fit", str(runs), "--bootstrap", str(replicates), "-o", str(study)]
        gain = ["ce-gain", "--budget", "1e21", "--study", str(study)]
        return "command line", {"--help": [*cli, "--help"], "fit": [*cli, *fit], "ce-gain": [*cli, *gain]}
    names = {"runs": str(runs), "study": str(study), "n": replicates}
    code = {name: text.format(**names) for name, text in _LIBRARY.items()}
    return "library", {name: [sys.executable, "-c", text] for name, text in code.items()}


def measure(replicates: int = 2000, runs: int = 7) -> dict[str, Any]:
    """Run every command several times in turn."""
    from smelt_scaling.papers.example import write_example

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = write_example(folder / "runs.parquet")
        via, timed = commands(source, folder / "study", replicates)
        empty = [sys.executable, "-c", "pass"]
        numpy = [sys.executable, "-c", "import numpy"]
        timed = {"python": empty, "import numpy": numpy, **timed}
        found: dict[str, list[dict[str, Any]]] = {command: [] for command in timed}
        for _ in range(runs):
            for command, argv in timed.items():
                found[command].append(fresh_process(argv, cwd=folder))
    return {
        "via": via,
        "replicates": replicates,
        "runs": runs,
        "commands": {
            command: {key: spread(one[key] for one in several) for key in ("wall", "cpu", "rss")}
            for command, several in found.items()
        },
    }


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    rows = []
    for command, one in values["commands"].items():
        goal = GOALS.get(command, {})
        aims = [f"{goal['wall']:g} s"] if "wall" in goal else []
        aims += [f"{goal['rss']:g} MB"] if "rss" in goal else []
        rows.append(
            [
                f"`{command}`",
                f"{one['wall']['min']:.2f}",
                f"{one['wall']['median']:.2f}",
                f"{one['cpu']['min']:.2f}",
                f"{one['rss']['median']:.0f}",
                ", ".join(aims),
            ]
        )
    text = (
        f"Fresh processes, each {values['runs']} times in turn, run through the {values['via']}: `fit` of the "
        f"simulated example (2 × 72 endpoints) with {values['replicates']} replicates of both architectures, saved; "
        "then `ce-gain` at one budget from the saved study. Peak memory is the operating system's count for the "
        "process. An empty Python and `import numpy` show the floor."
    )
    header = ["process", "wall s, min", "wall s, median", "CPU s, min", "peak MB, median", "goal"]
    return text + "\n\n" + table(header, rows)
