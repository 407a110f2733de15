"""``smelt-scaling ablations``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Levels of an ablation in units of run noise and of compute.

\bExample:
  $ smelt-scaling ablations span.csv --noise 0.002
  ...

One row per factor, group, level, seed and metric, with its value. Without repeated runs (a column seed) or --noise
nothing is called the best.
"""


def show_ablations(
    context: typer.Context,
    table: o.MeasuredArgument,
    mapping: o.MapOption = None,
    against: o.AgainstOption = None,
    noise: o.NoiseOption = None,
    higher: o.HigherOption = None,
    lower: o.LowerOption = None,
    study: o.FrontierStudyOption = None,
    published: o.PublishedOption = None,
    reference: o.FrontierArchOption = None,
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
