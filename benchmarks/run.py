"""Measure, record and rewrite the page: ``python benchmarks/run.py [NAME...] [--render]``."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # as a script, only its own folder is on the path
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from benchmarks.recorder import CHECKOUT, record, recorded

NAMES = (
    "engine",
    "process",
    "counterexample",
    "growth",
    "check_table",
    "log_streaming",
    "event_files",
    "downstream_null",
    "coverage",
    "domains",
    "power",
    "diagnostics",
    "new_run",
    "gamma_difference",
    "law_tests",
    "match_search",
)
PAGE = CHECKOUT / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

Measured, never typed: `python benchmarks/run.py` runs everything, records `benchmarks/results/*.json` and rewrites this
page; `--render` rewrites it from what is recorded. The coverage of intervals takes hours; stopped, it goes on.
Clocks of shared machines are noisy: look at ratios taken within one process, and at minima and medians.
`pytest benchmarks` times the kernels alone, to compare two versions of the code on one machine.
"""


def benchmark(name: str) -> Any:
    """Return the module of one benchmark."""
    return importlib.import_module(f"benchmarks.{name}")


def render() -> str:
    """Return the page that the recorded results make."""
    parts = [HEAD]
    for name in NAMES:
        result = recorded(name)
        if result is None:
            continue
        module, machine = benchmark(name), result["machine"]
        where = (
            f"Recorded {result['recorded']} in {result['seconds']:.0f} s: {machine['cpu']}, {machine['cores']} cores "
            f"(load {machine['load_1min']:g}), {machine['os']}, Python {machine['python']}, NumPy {machine['numpy']}, "
            f"SciPy {machine['scipy']}, {machine['blas']}."
        )
        parts.append(f"## {module.TITLE}\n\n{module.page(result['values'])}\n\n{where}\n")
    return "\n".join(parts)


def main() -> None:
    """Run the named benchmarks, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument(
        "--render", action="store_true", help="rewrite the page from what is recorded, and measure nothing"
    )
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    for name in [] if options.render else options.names or NAMES:
        start = time.perf_counter()
        values = benchmark(name).measure()
        path = record(name, values, time.perf_counter() - start)
        print(f"{path.relative_to(CHECKOUT)}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
