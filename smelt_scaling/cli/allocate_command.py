"""``smelt-scaling allocate``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Compute-optimal model size, tokens and loss of a budget.

\bExample:
  $ smelt-scaling allocate --published smelt --budget 1e21 --sparsity 0.95
  ...
  arch      budget      S      F*    D*     N*  D*/N*   loss
  baseline  1.0e21  0.950  8.76e9  114B  1.46B   78.2  1.725
  smelt     1.0e21  0.950  8.92e9  112B  1.49B   75.3  1.714

N* = F*/6 is the dense model of equal compute, D*/N* tokens per parameter; the 6 is the fit's --flops-per-param.
"""


def show_allocation(
    context: typer.Context,
    budget: o.BudgetOption = None,
    study: o.StudyOption = None,
    published: o.PublishedOption = None,
    arch: o.ArchOption = None,
    sparsity: o.SparsityOption = None,
    level: o.LevelOption = 0.95,
    interval: o.IntervalOption = o.Interval.percentile,
    strict: o.StrictOption = False,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate allocations."""
    from smelt_scaling.analyses import allocate
    from smelt_scaling.analyses.budgets import budgets_or_default
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import parse_budgets, parse_names, parse_numbers
    from smelt_scaling.cli.sources import open_source

    named, sparsities = parse_budgets(budget), parse_numbers("--sparsity", sparsity)
    source = open_source(study, published)
    budgets, notes = budgets_or_default(named, source.value)
    frame = allocate(
        source.value,
        budgets,
        archs=parse_names(arch, source.archs) or None,
        sparsities=sparsities or None,
        level=level,
        interval=interval.value,
    )
    finish(
        "allocate",
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
    app.command("allocate", help=HELP, rich_help_panel=o.MAIN)(show_allocation)
