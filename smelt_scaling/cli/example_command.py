"""``smelt-scaling example``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Write a simulated set of 144 endpoints to try things on.

\bExample:
  $ smelt-scaling example -o runs.parquet
  $ smelt-scaling fit runs.parquet
  $ smelt-scaling example --logs sweep
  $ smelt-scaling endpoints sweep/logs --runs sweep/runs.csv -o runs.parquet

The losses are simulated from published surfaces with noise of the published size; they measure nothing.
"""


def save_example(
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="File to write: .parquet, .csv or .jsonl.")
    ] = Path("runs.parquet"),
    logs: Annotated[
        Path | None,
        typer.Option("--logs", metavar="DIR", help="Write the training logs that lead to it instead."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the noise.")] = 0,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace an existing file.")] = False,
) -> None:
    """Write the example set."""
    from shlex import quote

    from smelt_scaling.cli.output import talk, writing
    from smelt_scaling.errors import UsageError

    if logs is not None:
        _save_logs(logs, seed, force)
        return
    kinds = (".parquet", ".csv", ".jsonl")
    if out.suffix.lower() not in kinds:
        raise UsageError(f"{out}: the name of the file says how it is written; end it in {', '.join(kinds)}")
    if out.exists() and not force:
        raise UsageError(f"{out}: exists and is not replaced; choose another -o, or add --force")
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        _write(out, seed)
    talk(f"wrote {out}: 144 endpoints SIMULATED from published surfaces, not measurements")
    talk(f"next: smelt-scaling fit {quote(str(out))}")


def _save_logs(folder: Path, seed: int, force: bool) -> None:
    from shlex import quote

    from smelt_scaling.cli.output import talk, writing
    from smelt_scaling.errors import UsageError
    from smelt_scaling.papers.example_logs import write_example_logs

    if folder.exists() and not force:
        raise UsageError(f"{folder}: exists and is not replaced; choose another --logs, or add --force")
    with writing(folder):
        write_example_logs(folder, seed)
    logs, runs = quote(str(folder / "logs")), quote(str(folder / "runs.csv"))
    talk(f"wrote {folder}: logs of 168 SIMULATED runs, and a table of runs; they measure nothing")
    talk(f"next: smelt-scaling endpoints {logs} --runs {runs} -o runs.parquet")


def _write(out: Path, seed: int) -> None:
    from smelt_scaling.papers.example import example_endpoints, write_example

    kind = out.suffix.lower()
    if kind == ".parquet":
        write_example(out, seed)
        return
    frame = example_endpoints(seed).to_frame()
    if kind == ".csv":
        frame.to_csv(out, index=False, lineterminator="\n")
    else:
        frame.to_json(out, orient="records", lines=True, double_precision=15)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("example", help=HELP, rich_help_panel=o.MAIN)(save_example)
