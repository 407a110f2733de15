"""What every benchmark shares: the machine, clocks, spreads, fresh processes, and one JSON file per benchmark."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
RESULTS = CHECKOUT / "benchmarks" / "results"


def machine() -> dict[str, Any]:
    """Describe where the numbers come from."""
    import numpy
    import scipy.optimize  # loads SciPy's own BLAS
    from threadpoolctl import threadpool_info

    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "load_1min": round(os.getloadavg()[0], 2),
        "os": platform.system(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "blas": ", ".join(
            sorted({f"{b['internal_api']} {b['version']} ({b['architecture']})" for b in blas})
        ),
    }


def cpu_model() -> str:
    """Return the processor's name, or what the platform calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    names = {key.strip(): value.strip() for key, value in fields.items()}
    identity = [f"{key} {names[key]}" for key in ("cpu family", "model") if key in names]
    return f"{names.get('model name', platform.machine())} ({', '.join(identity)})"


def one_thread() -> Any:
    """Return the context in which everything is timed: one BLAS thread, as in a study.

    SciPy brings a BLAS of its own, and a limit binds only libraries that are loaded: unloaded, it would later start
    threads that wait busily and count as CPU time of L-BFGS-B.
    """
    import scipy.optimize  # noqa: F401
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1)


class Clock:
    """Process CPU and wall seconds of a ``with`` block."""

    def __enter__(self) -> Clock:
        self.wall, self.cpu = -time.perf_counter(), -time.process_time()
        return self

    def __exit__(self, *exc: object) -> None:
        self.wall += time.perf_counter()
        self.cpu += time.process_time()


def timed(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, Clock]:
    """Return the result of a call and what it cost."""
    with Clock() as clock:
        result = call(*args, **options)
    return result, clock


def spread(values: Iterable[float]) -> dict[str, float]:
    """Summarise repeated measurements; on a shared machine the minimum and the median say more than a mean."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return {"min": ordered[0], "median": median, "max": ordered[-1], "n": len(ordered)}


#: A process inherits the peak memory of the one that forked it, so commands are started from this small one.
_LAUNCHER = """
import json, os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
out = child.stdout.read().decode()
_, status, usage = os.wait4(child.pid, 0)
print(json.dumps({
    "wall": time.perf_counter() - start, "cpu": usage.ru_utime + usage.ru_stime,
    "rss": usage.ru_maxrss, "status": os.waitstatus_to_exitcode(status), "stdout": out,
}))
"""


def fresh_process(command: Sequence[str], *, cwd: Path | None = None) -> dict[str, Any]:
    """Run a command in a process of its own; return wall and cpu (s), peak rss (MB) and its standard output.

    Raises
    ------
    RuntimeError
        If the command fails.
    """
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    # -I ignores PYTHONPATH for the launcher; the command below it gets it from the environment
    done = subprocess.run(
        launcher, capture_output=True, text=True, check=False, cwd=cwd or CHECKOUT, env=environment
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout)
    if result.pop("status"):
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    result["rss"] *= (1 if sys.platform == "darwin" else 1024) / 1e6  # macOS counts bytes, Linux KiB
    return result


def record(name: str, values: Mapping[str, Any], seconds: float) -> Path:
    """Write what a benchmark measured, with the machine it ran on."""
    path = RESULTS / f"{name}.json"
    content = {
        "benchmark": name,
        "recorded": datetime.now(UTC).date().isoformat(),
        "seconds": round(seconds, 1),
        "machine": machine(),
        "values": values,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


def recorded(name: str) -> dict[str, Any] | None:
    """Read what was recorded, or None when nothing was."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)
