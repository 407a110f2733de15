"""``smelt-scaling reproduce``."""

from __future__ import annotations

from typing import Annotated

import typer

from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Recompute a paper's published tables and compare.

\bExample:
  $ smelt-scaling reproduce smelt --format md > reproduction.md
  $ smelt-scaling reproduce smelt -o reports/smelt

With -o the folder also holds a report: this table, those of gains and optima at the printed budgets, and their figures,
all from the published coefficients. Exit code 1 if a recomputed number differs by more than the printed digits allow.
"""


def reproduce_paper(
    context: typer.Context,
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="smelt, chinchilla or marin.")],
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Compare published and recomputed numbers."""
    from smelt_scaling.analyses.reproduction import reproduce
    from smelt_scaling.cli.output import describe_call, finish, talk, writing
    from smelt_scaling.papers import load_paper
    from smelt_scaling.reporting.build import build_published_report

    published = load_paper(paper)
    frame = reproduce(published)
    source = {"published": published.name, "title": published.title}
    finish("reproduce", frame, form=form, argv=context.obj, source=source, out=out)
    if out is not None:
        with writing(out):
            report = build_published_report(
                published, frame, out, provenance=describe_call(context.obj, source)
            )
        talk(f"wrote {out}: {len(report.tables)} tables, {len(report.figures)} figures, report.md")
    differing = sum(agrees is not None and not agrees for agrees in frame["agrees"].tolist())
    if differing:
        talk(f"error: {differing} of {len(frame)} published numbers are not reproduced")
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reproduce", help=HELP, rich_help_panel="Paper")(reproduce_paper)
