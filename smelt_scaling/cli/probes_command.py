"""``smelt-scaling probes``."""

from __future__ import annotations

from typing import Annotated

import typer

from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """What the second visit of looped layers does: routing, writes, attention, sinks.

Values stand beside their chance and a measured control; documents are resampled, then cells.

\bExample:
  $ smelt-scaling probes probes.parquet --probe sink
  ...
  visit  mean                     chance  control  minus control
  1       0.495 [0.489, 0.502]    0.0437      n/a     n/a
  2      0.0728 [0.0694, 0.0755]  0.0437    0.495  -0.423 [-0.430, -0.417]
  ...

The long table is that of docs/probes.md: one row per measurement, made from arrays with ProbeWriter.
"""


def show_probes(
    context: typer.Context,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="Long table of probes: Parquet, Feather, CSV or JSON; - reads standard input.",
        ),
    ],
    probe: Annotated[
        list[str] | None,
        typer.Option(
            "--probe",
            metavar="NAME",
            help="Probes: routing, sink. [dim]\\[default: all in the table][/dim]",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="COLUMN", help="Keep apart: cell, layer or head.", show_default=False),
    ] = None,
    mapping: o.MapOption = None,
    bootstrap: o.BootstrapOption = 2000,
    seed: o.SeedOption = 0,
    level: o.LevelOption = 0.95,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate probes."""
    from smelt_scaling.analyses import probe_report
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import parse_names, parse_pairs
    from smelt_scaling.study.provenance import file_sha256

    frame = probe_report(
        table,
        probes=parse_names(probe) or None,
        by=parse_names(by),
        mapping=parse_pairs("--map", mapping),
        bootstrap=bootstrap,
        seed=seed,
        level=level,
    )
    source = {"source": table, "input_sha256": file_sha256(table)}
    finish("probes", frame, form=form, argv=context.obj, source=source, out=out)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("probes", help=HELP, rich_help_panel=o.EVIDENCE)(show_probes)
