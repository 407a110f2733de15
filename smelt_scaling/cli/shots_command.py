"""``smelt-scaling shots``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import measured_options as m
from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """How the gap between two architectures grows with in-context examples.

\bExample:
  $ smelt-scaling shots scores.csv --target smelt --reference baseline
  ...
  exact_match: 16 tasks, 4 cells, 16000 items
  k  reference  target  gap, points          item se
  0     44.5 %  45.4 %  0.900 [0.637, 1.15]     0.55
  1     45.5 %  47.4 %   1.90 [1.65, 2.15]      0.55
  ...
  jump        gap(1) - gap(0)                1.00 [0.708, 1.30]

One row per arch, metric, task, cell and k, with score in [0, 1] and n_items. The same tasks count at every k; each
metric stands apart.
"""


def show_shots(
    context: typer.Context,
    table: m.MeasuredArgument,
    mapping: o.MapOption = None,
    units: m.ShareUnitOption = None,
    target: o.TargetOption = None,
    reference: o.ReferenceOption = None,
    shots: m.ShotsOption = None,
    drop_incomplete: m.DropIncompleteOption = False,
    level: o.LevelOption = 0.95,
    bootstrap: o.BootstrapOption = 2000,
    seed: o.SeedOption = 0,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate gaps by number of examples."""
    from smelt_scaling.analyses import shot_gaps
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import parse_counts, parse_pairs
    from smelt_scaling.cli.sources import table_provenance

    frame = shot_gaps(
        table,
        target=target,
        reference=reference,
        shots=parse_counts("--shots", shots),
        drop_incomplete=drop_incomplete,
        level=level,
        bootstrap=bootstrap,
        seed=seed,
        mapping=parse_pairs("--map", mapping),
        units=parse_pairs("--unit", units),
    )
    finish("shots", frame, form=form, argv=context.obj, source=table_provenance(table), out=out)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("shots", help=HELP, rich_help_panel=o.SPLITS)(show_shots)
