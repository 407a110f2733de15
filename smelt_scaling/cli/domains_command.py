"""``smelt-scaling domains``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import gain_options as g
from smelt_scaling.cli import options as o
from smelt_scaling.cli import split_options as s

__all__ = ["register"]

HELP = """Compute saved on each domain of an evaluation.

\bExample:
  $ smelt-scaling domains losses.parquet --budget 1e21 --sparsity .947
  Compute saved by smelt relative to baseline on each domain
  ...
  domain  n  compute saved              as trained  less the whole
  code    4  23.0 % [18.3 %, 33.1 %] †      23.0 %   6.8 % [6.0 %, 9.2 %]
  ...
  web     4  11.4 % [6.8 %, 17.6 %]         11.4 %  -4.8 % [-6.9 %, -4.2 %]

LOSSES has one row per endpoint of the study and domain (or source): the columns of the endpoints, domain, loss. Long
tables of `endpoints --long` are read with --map domain=member,loss=value. Exponents are those of the study.
"""


def show_domains(
    context: typer.Context,
    losses: s.LossesArgument,
    budget: o.BudgetOption = None,
    study: o.StudyOption = None,
    target: o.TargetOption = None,
    reference: o.ReferenceOption = None,
    sparsity: o.SparsityOption = None,
    aggregate: s.AggregateOption = s.Aggregate.equal,
    no_sharing: s.NoSharingOption = False,
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
    """Tabulate gains by domain."""
    from smelt_scaling.analyses import domains
    from smelt_scaling.analyses.budgets import budgets_or_default
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import parse_budgets, parse_numbers
    from smelt_scaling.cli.sources import open_losses, open_study

    named, sparsities = parse_budgets(budget), parse_numbers("--sparsity", sparsity)
    source = open_study(study)
    budgets, notes = budgets_or_default(named, source.value)
    frame = domains(
        source.value,
        open_losses(losses, mapping, unit, flops),
        budgets,
        target=target,
        reference=reference,
        sparsities=sparsities or None,
        aggregate=aggregate.value,
        test_sharing=not no_sharing,
        level=level,
        interval=interval.value,
        force=force,
    )
    finish(
        "domains",
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
    app.command("domains", help=HELP, rich_help_panel=o.SPLITS)(show_domains)
