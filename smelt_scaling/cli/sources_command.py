"""``smelt-scaling sources``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import gain_options as g
from smelt_scaling.cli import options as o
from smelt_scaling.cli import split_options as s

__all__ = ["register"]

HELP = """Compute saved on groups of sources, sorted by the reference's loss.

\bExample:
  $ smelt-scaling sources losses.parquet --budget 1e21 --sparsity .947
  Compute saved by smelt relative to baseline on groups of sources
  ...
  Q3     3  1.689 to 2.305  13.9 % [8.9 %, 21.3 %]     -2.3 % [-3.6 %, -1.5 %]
  Q4     3  2.316 to 2.335  11.3 % [7.0 %, 18.0 %]     -4.9 % [-6.4 %, -4.2 %]

LOSSES is a table as for domains, with a column source. Groups have equal sizes, larger ones first (39: 10, 10, 10, 9);
--split-sample takes away what sorting by noisy losses does to the outer groups.
"""


def show_sources(
    context: typer.Context,
    losses: s.LossesArgument,
    budget: o.BudgetOption = None,
    study: o.StudyOption = None,
    target: o.TargetOption = None,
    reference: o.ReferenceOption = None,
    sparsity: o.SparsityOption = None,
    groups: s.GroupsOption = 4,
    sort_at: s.SortAtOption = s.SortAt.last,
    split_sample: s.SplitSampleOption = False,
    aggregate: s.AggregateOption = s.Aggregate.equal,
    mapping: o.MapOption = None,
    unit: o.UnitOption = None,
    flops: o.FlopsOption = None,
    level: o.LevelOption = 0.95,
    interval: o.IntervalOption = o.Interval.percentile,
    strict: o.StrictOption = False,
    force: g.ForceOption = False,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate gains by group of sources."""
    from smelt_scaling.analyses import sources
    from smelt_scaling.analyses.budgets import budgets_or_default
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import parse_budgets, parse_numbers
    from smelt_scaling.cli.sources import open_losses, open_study

    named, sparsities = parse_budgets(budget), parse_numbers("--sparsity", sparsity)
    source = open_study(study)
    budgets, notes = budgets_or_default(named, source.value)
    frame = sources(
        source.value,
        open_losses(losses, mapping, unit, flops),
        budgets,
        target=target,
        reference=reference,
        sparsities=sparsities or None,
        groups=groups,
        sort_at=sort_at.value,
        split_sample=split_sample,
        aggregate=aggregate.value,
        level=level,
        interval=interval.value,
        force=force,
    )
    finish(
        "sources",
        frame,
        form=form,
        argv=context.obj,
        source=source.provenance,
        notes=(*source.notes, *notes),
        out=out,
        strict=strict,
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sources", help=HELP, rich_help_panel=o.SPLITS)(show_sources)
