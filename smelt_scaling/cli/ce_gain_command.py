"""``smelt-scaling ce-gain``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import gain_options as g
from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Compute one architecture saves over another at equal loss.

\bExample:
  $ smelt-scaling ce-gain --published smelt --budget 1e21 --sparsity 0.947
  Compute saved by smelt relative to baseline at equal loss
  ...
  budget      S  compute saved  multiplier  same loss costs   loss
  1.0e21  0.947         15.8 %       ×1.19          1.19e21  1.715

Both architectures are compared at one sparsity. A saving that peaks and changes sign says where, below the table.
"""


def show_gain(
    context: typer.Context,
    budget: o.BudgetOption = None,
    study: o.StudyOption = None,
    published: o.PublishedOption = None,
    target: o.TargetOption = None,
    reference: o.ReferenceOption = None,
    sparsity: o.SparsityOption = None,
    level: o.LevelOption = 0.95,
    interval: o.IntervalOption = o.Interval.percentile,
    strict: o.StrictOption = False,
    tolerance: g.ToleranceOption = None,
    force: g.ForceOption = False,
    sensitivity: g.SensitivityOption = False,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate gains."""
    from smelt_scaling.analyses import ce_gain
    from smelt_scaling.analyses.budgets import budgets_or_default
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import parse_budgets, parse_numbers
    from smelt_scaling.cli.parse_named import parse_tolerance
    from smelt_scaling.cli.sources import open_source

    named, sparsities = parse_budgets(budget), parse_numbers("--sparsity", sparsity)
    source = open_source(study, published)
    budgets, notes = budgets_or_default(named, source.value)
    frame = ce_gain(
        source.value,
        budgets,
        target=target,
        reference=reference,
        sparsities=sparsities or None,
        level=level,
        interval=interval.value,
        force=force,
        tolerance=parse_tolerance(tolerance),
        sensitivity=sensitivity,
    )
    finish(
        "ce-gain",
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
    app.command("ce-gain", help=HELP, rich_help_panel=o.MAIN)(show_gain)
