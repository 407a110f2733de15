"""``smelt-scaling lengths``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import measured_options as m
from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Where along the length of documents a loss improves.

\bExample:
  $ smelt-scaling lengths lengths.csv
  ...
  contrast             long/short  interval          long   short  cells
  smelt over baseline        1.52  [1.44, 1.60]    0.0304  0.0200     12
  more experts              0.880  [0.796, 0.971]  0.0176  0.0200     12

One row per contrast, cell, horizon and length bucket, with loss_ref and loss_new, or with arch and loss. Loss drops per
bucket over their mean, and long documents over short ones.
"""


def show_lengths(
    context: typer.Context,
    table: m.MeasuredArgument,
    mapping: o.MapOption = None,
    target: o.TargetOption = None,
    reference: o.ReferenceOption = None,
    split: m.SplitOption = 256.0,
    level: o.LevelOption = 0.95,
    bootstrap: o.BootstrapOption = 2000,
    seed: o.SeedOption = 0,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate gains by document length."""
    from smelt_scaling.analyses import length_gains
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import parse_pairs
    from smelt_scaling.cli.sources import table_provenance

    frame = length_gains(
        table,
        target=target,
        reference=reference,
        split=split,
        level=level,
        bootstrap=bootstrap,
        seed=seed,
        mapping=parse_pairs("--map", mapping),
    )
    finish("lengths", frame, form=form, argv=context.obj, source=table_provenance(table), out=out)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("lengths", help=HELP, rich_help_panel=o.SPLITS)(show_lengths)
