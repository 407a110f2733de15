"""``smelt-scaling diagnose``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from smelt_scaling.cli import gain_options as g
from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """What a hostile reader asks of one gain: choices, rows, noise, design, laws.

\bExample:
  $ smelt-scaling diagnose --only sensitivity
  ...
           what was looked at                           what was found
  fine     gain, 95 % interval of the sampling of cells  8.4 % [1.4 %, 18.3 %]
  ...

The gain is that at the largest power of ten within the runs and the middle sparsity, unless named. --show PART prints
the tables of a part; -o keeps everything.
"""


class PartName(StrEnum):
    """Parts of a diagnosis."""

    fairness = "fairness"
    sensitivity = "sensitivity"
    influence = "influence"
    noise = "noise"
    identifiability = "identifiability"
    laws = "laws"


OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="PART",
        show_default=False,
        help=f"Parts to run: {', '.join(PartName)}. [dim]\\[default: all][/dim]",
    ),
]
ShowPartOption = Annotated[PartName | None, typer.Option("--show", help="Print the tables of one part.")]


def show_diagnosis(
    context: typer.Context,
    study: o.StudyOption = None,
    budget: g.OneBudgetOption = None,
    sparsity: g.OneSparsityOption = None,
    target: o.TargetOption = None,
    reference: o.ReferenceOption = None,
    only: OnlyOption = None,
    show: ShowPartOption = None,
    level: o.LevelOption = 0.95,
    interval: o.IntervalOption = o.Interval.percentile,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate a diagnosis."""
    from smelt_scaling.analyses import diagnose
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import parse_budgets, parse_names, parse_number
    from smelt_scaling.cli.sources import open_study
    from smelt_scaling.errors import UsageError

    budgets = parse_budgets(budget)
    if len(budgets) > 1:
        raise UsageError("--budget: a diagnosis is about one gain; name one budget")
    parts = parse_names(only) or None
    if show is not None and parts is not None and show.value not in parts:
        raise UsageError(f"--show {show.value}: is not among --only {','.join(parts)}")
    if show is not None and parts is None and out is None:
        parts = (show.value,)  # nothing else is shown or kept
    source = open_study(study)
    with _progress() as progress:
        frame = diagnose(
            source.value,
            target=target,
            reference=reference,
            budget=budgets[0] if budgets else None,
            sparsity=parse_number("--sparsity", sparsity),
            parts=parts,
            level=level,
            interval=interval.value,
            progress=progress,
        )
    finish(
        "diagnose",
        frame,
        form=form,
        argv=context.obj,
        source=source.provenance,
        notes=source.notes,
        out=out,
        part=None if show is None else show.value,
    )


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """Show a bar of parts on standard error where a person watches it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("diagnose", total=None)
        yield lambda name, done, total: bar.update(
            task, completed=done, total=total, description=name or "diagnose", refresh=True
        )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diagnose", help=HELP, rich_help_panel=o.EVIDENCE)(show_diagnosis)
