"""What a user waits for: whole commands in fresh processes, with their peak memory.

"Cold" is a new Python process with all its imports; files are in the page cache, as after a first run.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.recorder import fresh_process, spread, table

TITLE = "Whole processes"
GOALS = {"fit": {"wall": 10.0, "rss": 400.0}, "ce-gain": {"wall": 2.0}, "--help": {"wall": 0.5}}

_LIBRARY = {
    "fit": "from smelt_scaling import fit, read_endpoints as r; s = fit(r({runs!r})); s.save({study!r}); print(s.summary())",
    "ce-gain": "from smelt_scaling import ce_gain, load_study; print(ce_gain(load_study({study!r}), [1e21]).to_string())",
}


def commands(runs: Path, study: Path, replicates: int) -> tuple[str, dict[str, list[str]]]:
    """Return what is timed: the command line, or the same library path where there is no command line."""
    if importlib.util.find_spec("smelt_scaling.cli") is not None:
        cli = [sys.executable, "-m", "smelt_scaling"]
        fit = ["fit", str(runs), "--bootstrap", str(replicates), "-o", str(study)]
        gain = ["ce-gain", "--budget", "1e21", "--study", str(study)]
        return "command line", {"--help": [*cli, "--help"], "fit": [*cli, *fit], "ce-gain": [*cli, *gain]}
    names = {"runs": str(runs), "study": str(study)}
    code = {name: text.format(**names) for name, text in _LIBRARY.items()}
    code["fit"] = code["fit"].replace("))); s.save", f")), bootstrap={replicates}); s.save")
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
        f"Fresh processes, each {values['runs']} times in turn, run through the {values['via']}: `fit` of the simulated example "
        f"(2 × 72 endpoints) with {values['replicates']} replicates of both architectures, saved; then `ce-gain` at one budget from "
        "the saved study. Peak memory is the operating system's count for the process. An empty Python and `import numpy` show the floor."
    )
    return text + "\n\n" + table(
        ["process", "wall s, min", "wall s, median", "CPU s, min", "peak MB, median", "goal"], rows
    )
