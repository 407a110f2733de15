"""``smelt-scaling check``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import gain_options as g
from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Show all about a table of endpoints and what it can identify; fits nothing.

Rows in and out, columns and units, FLOPs conventions, paired budgets, tiers, a map of the runs, the condition of the
design.

\bExample:
  $ smelt-scaling check runs.parquet
  Design of runs.parquet
  ...
  Rows
        rows
  read   144
  kept   144
  ...
  not identified                    none                none
  condition number                  42                  77
  verdict                           fine                fine

  next: smelt-scaling fit runs.parquet

Exit code 3 and one line per problem if the table breaks a rule.
"""


def check_runs(
    context: typer.Context,
    runs: o.RunsArgument,
    mapping: o.MapOption = None,
    units: o.UnitOption = None,
    flops: o.FlopsOption = None,
    exclude_tier: o.ExcludeTierOption = None,
    include_unfinished: o.IncludeUnfinishedOption = False,
    law: o.LawOption = "sparse-additive",
    resample: o.ResampleOption = None,
    flops_per_param: o.FlopsPerParamOption = 6.0,
    tolerance: g.ToleranceOption = None,
    show: o.ShowOption = None,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Report on a design."""
    from smelt_scaling.analyses import design_report
    from smelt_scaling.cli.next_step import after_check
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse_named import parse_tolerance
    from smelt_scaling.cli.sources import read_runs
    from smelt_scaling.study.provenance import file_sha256

    endpoints = read_runs(runs, mapping, units, flops, exclude_tier, include_unfinished)
    frame = design_report(
        endpoints,
        law,
        resample=None if resample is None else resample.value,
        flops_per_param=flops_per_param,
        tolerance=parse_tolerance(tolerance),
    )
    options = {
        "--map": mapping,
        "--unit": units,
        "--flops": flops,
        "--exclude-tier": exclude_tier,
        "--include-unfinished": include_unfinished,
        "--resample": None if resample is None else resample.value,
        "--flops-per-param": None if flops_per_param == 6.0 else flops_per_param,
    }
    source = {"source": endpoints.source, "input_sha256": file_sha256(endpoints.source)}
    finish(
        "check",
        frame,
        form=form,
        argv=context.obj,
        source=source,
        out=out,
        part=None if show is None else show.value,
        after="" if show else after_check(frame.attrs["next"], runs, options),
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", help=HELP, rich_help_panel=o.MAIN)(check_runs)
