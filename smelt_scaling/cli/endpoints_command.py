"""``smelt-scaling endpoints``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt_scaling.cli import options as o

if TYPE_CHECKING:
    from smelt_scaling.ingest import LogEndpoints

__all__ = ["register"]

HELP = """Turn training logs into a table of endpoints.

\bExample:
  $ smelt-scaling endpoints logs/ --runs-template runs.csv
  $ smelt-scaling endpoints logs/ --runs runs.csv -o runs.parquet
  24 files, 24 runs, 31 pieces, 61200 rows: 144 endpoints, 2 ends left out
  ...
  next: smelt-scaling check runs.parquet

Formats are recognised by content. An endpoint is the last evaluation after the learning rate has decayed, never the
lowest loss; what is left out is named with a code. The table of runs states what the logs do not: arch, F or N, S.
"""


def _option(*names: str, help: str, metavar: str = "", panel: str | None = "Logs") -> Any:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel)


def select_endpoints(
    context: typer.Context,
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Files, folders, globs or URLs of logs.")
    ],
    out: Annotated[
        Path | None,
        _option("-o", "--out", metavar="FILE", help="Table to write: .parquet, .csv or .jsonl.", panel=None),
    ] = None,
    runs: Annotated[
        str | None, _option("--runs", metavar="FILE", help="Table of runs: run, arch, F, N, S, ...")
    ] = None,
    template: Annotated[
        Path | None,
        _option("--runs-template", metavar="FILE", help="Write the skeleton of that table and stop."),
    ] = None,
    run_pattern: Annotated[
        str | None,
        _option(
            "--run-pattern", metavar="REGEX", help="Read facts off names: '(?P<arch>[a-z]+)-(?P<scale>.*)'."
        ),
    ] = None,
    reader: Annotated[
        str | None, _option("--reader", metavar="NAME", help="Read every file as this format.")
    ] = None,
    mapping: Annotated[
        list[str] | None,
        _option("--map", metavar="ROLE=KEY", help="Key of a role: loss=eval/loss, step=_step."),
    ] = None,
    units: o.UnitOption = None,
    flops: o.FlopsOption = None,
    annealed: Annotated[
        float,
        _option("--annealed", metavar="X", help="Highest share of its peak that the rate has at an end."),
    ] = 0.1,
    unfinished: Annotated[
        bool, _option("--include-unfinished", help="Take runs short of their plan too.")
    ] = False,
    trajectory: Annotated[
        bool, _option("--trajectory", help="Keep every evaluation, not only the ends.")
    ] = False,
    smooth: Annotated[
        float, _option("--smooth", metavar="X", help="Average the loss over this share of the last steps.")
    ] = 0.0,
    skip: Annotated[
        bool, _option("--skip-unreadable", help="Leave out logs that cannot be read; they are listed.")
    ] = False,
    overlap: Annotated[
        float, _option("--overlap-tolerance", metavar="NATS", help="How far resumed rows may differ.")
    ] = 0.01,
    families: Annotated[
        list[str] | None,
        _option("--long", metavar="NAME=PATTERN", help="Also a long table: domains=eval/paloma/*/loss."),
    ] = None,
    manifest: Annotated[
        Path | None,
        _option("--manifest", metavar="FILE", help="Write where each endpoint comes from (JSON)."),
    ] = None,
    force: Annotated[bool, _option("--force", help="Replace existing files.", panel=None)] = False,
) -> None:
    """Read logs and write endpoints."""
    from smelt_scaling.cli.files import require_target, write_table
    from smelt_scaling.cli.output import talk, tell_notes, writing
    from smelt_scaling.cli.parse import parse_pairs
    from smelt_scaling.errors import UsageError
    from smelt_scaling.ingest import Rules, check_family, read_logs, scan_logs

    named = parse_pairs("--map", mapping)
    patterns = {name: check_family(pattern) for name, pattern in parse_pairs("--long", families).items()}
    for name in patterns:
        if Path(name).name != name:
            raise UsageError(
                f"--long {name}: becomes part of the name of a file; write a word, such as domains"
            )
    long_files = {} if out is None else {name: out.with_suffix(f".{name}{out.suffix}") for name in patterns}
    targets = [
        path
        for path in (template, None if template else out, manifest, *long_files.values())
        if path is not None
    ]
    if not targets:
        raise UsageError("nothing to write: name the table with -o runs.parquet, or --runs-template runs.csv")
    if patterns and out is None and template is None:
        raise UsageError("--long writes beside the table of endpoints; name that with -o runs.parquet")
    if len(set(targets)) < len(targets):
        raise UsageError("two outputs go to one file; name each differently")
    if manifest is not None and manifest.suffix.lower() != ".json":
        raise UsageError(f"--manifest {manifest}: it is written as JSON; end its name in .json")
    for path in targets:
        require_target(path, force)
    if template is not None:
        with _progress() as progress:
            scanned = scan_logs(logs, mapping=named, reader=reader, skip_unreadable=skip, progress=progress)
        frame = scanned.template(run_pattern)
        with writing(template):
            write_table(frame, template)
        talk(f"wrote {template}: {len(frame)} runs; fill in the empty cells, then add --runs {template}")
        return
    rules = Rules(annealed=annealed, include_unfinished=unfinished, smooth=smooth)
    with _progress() as progress:
        found = read_logs(
            logs,
            runs=runs,
            run_pattern=run_pattern,
            mapping=named,
            units=parse_pairs("--unit", units),
            flops=flops,
            families=patterns,
            reader=reader,
            rules=rules,
            trajectory=trajectory,
            skip_unreadable=skip,
            overlap_tolerance=overlap,
            progress=progress,
        )
    tell_notes(found.notes)
    if out is not None:
        with writing(out):
            write_table(found.endpoints.to_frame(), out)
        for name, path in long_files.items():
            with writing(path):
                write_table(found.long[name], path)
    if manifest is not None:
        with writing(manifest):
            manifest.write_text(found.manifest_json(context.obj), encoding="utf-8")
    _summarise(found, out, long_files, manifest)


def _summarise(
    found: LogEndpoints, out: Path | None, long_files: dict[str, Path], manifest: Path | None
) -> None:
    from shlex import quote

    from smelt_scaling.cli.output import talk

    talk(found.summary())
    for name, path in long_files.items():
        talk(f"wrote {path}: {len(found.long[name])} rows of {name}")
    if manifest is not None:
        talk(f"wrote {manifest}")
    if out is not None:
        talk(f"wrote {out}", f"next: smelt-scaling check {quote(str(out))}")


@contextmanager
def _progress() -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a bar of bytes on standard error where a person watches it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def show(done: int, total: int, path: str) -> None:
            # drawn at once when reading starts: a short one would end before the bar's next turn
            name = Path(path).name[-24:] or "reading"
            bar.update(task, completed=done, total=total, description=name, refresh=done == 0)

        yield show


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("endpoints", help=HELP, rich_help_panel=o.MAIN)(select_endpoints)
