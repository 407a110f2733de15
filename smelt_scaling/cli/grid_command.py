"""``smelt-scaling grid``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import budget_options as b
from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Endpoints that a planned study will give: sizes, tokens, compute, before any run.

\bExample:
  $ smelt-scaling grid smelt
  Endpoints of smelt
  ...
  arch      cells  endpoints     F, FLOPs/token      D, tokens  ...
  baseline     12         72  6.33e8 to 1.02e10  20.5B to 216B  ...
  ...

STUDY.toml names models and a schedule (docs/budgets.md). The table has no losses: plan with it, or simulate some.
"""


def show_grid(
    context: typer.Context,
    study: b.StudyPlanArgument,
    table: b.TableOption = None,
    force: b.ForceOption = False,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate planned endpoints."""
    from smelt_scaling.analyses import endpoint_grid
    from smelt_scaling.cli.files import require_target, write_table
    from smelt_scaling.cli.output import finish, talk, writing

    if table is not None:
        require_target(table, force)
    frame = endpoint_grid(study)
    if table is not None:
        with writing(table, "--table"):
            write_table(frame, table)
    finish("grid", frame, form=form, argv=context.obj, source={"source": study}, out=out)
    if table is not None:
        talk(f"wrote {table}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("grid", help=HELP, rich_help_panel=o.ACCOUNTING)(show_grid)
