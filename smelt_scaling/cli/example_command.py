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

The losses are simulated from published surfaces with noise of the published size; they measure nothing.
"""


def save_example(
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="Parquet file to write.")] = Path(
        "runs.parquet"
    ),
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the noise.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write the example set."""
    from shlex import quote

    from smelt_scaling.cli.output import talk, writing
    from smelt_scaling.errors import UsageError
    from smelt_scaling.papers.example import write_example

    if out.exists() and not force:
        raise UsageError(f"{out}: exists and is not replaced; choose another -o, or add --force")
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_example(out, seed)
    talk(f"wrote {out}: 144 endpoints SIMULATED from published surfaces, not measurements")
    talk(f"next: smelt-scaling fit {quote(str(out))}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("example", help=HELP, rich_help_panel=o.MAIN)(save_example)
