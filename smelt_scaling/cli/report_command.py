"""``smelt-scaling report``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Tables and figures of a study for a paper, and a check that committed numbers still hold.

\bExample:
  $ smelt-scaling report -o reports/report
  ...
  $ smelt-scaling report -o reports/new --compare reports/report
  no number moved: 11 tables agree with reports/report

Results that other commands wrote with -o DIR become sections with --with DIR. With --compare the exit code is 1 if a
number moved beyond its tolerance.
"""

OutOption = Annotated[
    Path, typer.Option("-o", "--out", metavar="DIR", help="Folder of the report; files are replaced.")
]
WithOption = Annotated[
    Path | None,
    typer.Option("--with", metavar="DIR", help="Folder with results that commands wrote with -o."),
]
CompareOption = Annotated[
    Path | None,
    typer.Option("--compare", metavar="DIR", help="Committed report to hold the new one against."),
]
FiguresOption = Annotated[
    list[str] | None,
    typer.Option(
        "--figures",
        metavar="FORMAT",
        show_default=False,
        help="pdf, svg, png or none. [dim]\\[default: pdf,svg,png][/dim]",
    ),
]
AllowOption = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="COLUMN=X", help="Relative tolerance of a column, such as gain=1e-4."),
]

SheetOption = Annotated[
    bool,
    typer.Option("--contact-sheet", help="Also put all figures on one sheet, contact_sheet.png."),
]


def write_report(
    context: typer.Context,
    study: o.StudyOption = None,
    published: o.PublishedOption = None,
    budget: o.BudgetOption = None,
    target: o.TargetOption = None,
    reference: o.ReferenceOption = None,
    sparsity: o.SparsityOption = None,
    level: o.LevelOption = 0.95,
    interval: o.IntervalOption = o.Interval.percentile,
    results: WithOption = None,
    figures: FiguresOption = None,
    compare: CompareOption = None,
    allow: AllowOption = None,
    sheet: SheetOption = False,
    out: OutOption = Path("reports/report"),
) -> None:
    """Write a report."""
    from smelt_scaling.cli.output import describe_call, emit, talk, tell_notes, wrapped, writing
    from smelt_scaling.cli.parse import parse_budgets, parse_numbers
    from smelt_scaling.cli.parse_named import parse_allowances, parse_figures
    from smelt_scaling.cli.sources import open_source
    from smelt_scaling.errors import UsageError
    from smelt_scaling.reporting.build import build_report
    from smelt_scaling.reporting.compare import compare_reports, difference_lines, shared_tables
    from smelt_scaling.reporting.page import files_of
    from smelt_scaling.reporting.sheet import contact_sheet

    allowed = parse_allowances(allow)
    formats = parse_figures(figures)
    if compare is not None and compare.resolve() == out.resolve():
        raise UsageError(f"--compare {compare}: is the folder of the new report; name another with -o")
    if compare is not None:
        files_of(compare, ".csv")  # a folder that holds no report is refused before anything is written
    if sheet and "png" not in formats:
        raise UsageError("--contact-sheet: is made of PNG figures; add png to --figures")
    source = open_source(study, published)
    with _progress() as progress, writing(out):
        report = build_report(
            source.value,
            out,
            budgets=parse_budgets(budget),
            target=target,
            reference=reference,
            sparsities=parse_numbers("--sparsity", sparsity) or None,
            saved=results,
            level=level,
            interval=interval.value,
            formats=formats,
            provenance=describe_call(context.obj, source.provenance),
            progress=progress,
        )
        if sheet:
            contact_sheet(out)
    tell_notes(report.notes)
    talk(f"wrote {out}: {len(report.tables)} tables, {len(report.figures)} figures, report.md, manifest.json")
    for why in dict.fromkeys(report.absent.values()):
        names = ", ".join(name for name, reason in report.absent.items() if reason == why)
        talk(*wrapped(f"not in it: {names}: {why}"))
    if compare is None:
        return
    found = compare_reports(compare, out, tolerances=allowed)
    if found:
        emit("\n".join(difference_lines(found)) + "\n")
        talk(f"error: {len(found)} {'difference' if len(found) == 1 else 'differences'} from {compare}")
        raise typer.Exit(1)
    emit(f"no number moved: {len(shared_tables(compare, out))} tables agree with {compare}\n")


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None] | None]:
    """Show a bar of sections on standard error where a person watches it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("report", total=None)
        yield lambda name, done, total: bar.update(
            task, completed=done, total=total, description=name or "report", refresh=done == 0
        )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report", help=HELP, rich_help_panel=o.PAPER)(write_report)
