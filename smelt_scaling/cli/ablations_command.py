"""``smelt-scaling ablations``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import measured_options as m
from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Levels of an ablation in units of run noise and of compute.

\bExample:
  $ smelt-scaling ablations span.csv --noise 0.002
  ...
  level   value  runs  difference                    in sd  best in
  0%     1.9445     1         0                          0    0.0 %
  33%    1.9275     1   -0.0170 [-0.0225, -0.0115]   -8.50   26.1 %
  50%    1.9257     1   -0.0188 [-0.0243, -0.0133]   -9.40   73.5 %
  ...
  span, 85%, loss  0.00200 (stated)           0.00554  one of 33%, 50%

One row per factor, group, level, seed and metric, with its value. Without repeated runs (a column seed) or --noise
nothing is called the best.
"""


def show_ablations(
    context: typer.Context,
    table: m.MeasuredArgument,
    mapping: o.MapOption = None,
    against: m.AgainstOption = None,
    noise: m.NoiseOption = None,
    higher: m.HigherOption = None,
    lower: m.LowerOption = None,
    study: m.FrontierStudyOption = None,
    published: o.PublishedOption = None,
    reference: m.FrontierArchOption = None,
    sparsity: o.SparsityOption = None,
    level: o.LevelOption = 0.95,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate an ablation."""
    from smelt_scaling.analyses import compare_levels
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import parse_names, parse_noise, parse_number, parse_pairs
    from smelt_scaling.cli.sources import named_source, table_provenance

    source = named_source(study, published)
    frame = compare_levels(
        table,
        against=against,
        noise=parse_noise(noise),
        higher=parse_names(higher),
        lower=parse_names(lower),
        study=None if source is None else source.value,
        reference=reference,
        sparsity=parse_number("--sparsity", sparsity),
        level=level,
        mapping=parse_pairs("--map", mapping),
    )
    finish(
        "ablations",
        frame,
        form=form,
        argv=context.obj,
        source=table_provenance(table) | ({} if source is None else {"frontier": source.provenance}),
        notes=() if source is None else source.notes,
        out=out,
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ablations", help=HELP, rich_help_panel=o.EVIDENCE)(show_ablations)
