"""``smelt-scaling check``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Check a table of endpoints and what it can identify; fits nothing.

\bExample:
  $ smelt-scaling check runs.parquet
  Design of runs.parquet
  ...
                                    baseline            smelt
  endpoints                         72                  72
  cell labels                       12                  12
  ...
  not identified                    none                none

Exit code 3 and one line per problem if the table breaks a rule.
"""


def check_runs(
    context: typer.Context,
    runs: o.RunsArgument,
    mapping: o.MapOption = None,
    units: o.UnitOption = None,
    flops: o.FlopsOption = None,
    exclude_tier: o.ExcludeTierOption = None,
    law: o.LawOption = "sparse-additive",
    resample: o.ResampleOption = None,
    flops_per_param: o.FlopsPerParamOption = 6.0,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Report on a design."""
    from smelt_scaling.analyses import design_report
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.sources import read_runs
    from smelt_scaling.study.provenance import file_sha256

    endpoints = read_runs(runs, mapping, units, flops, exclude_tier)
    frame = design_report(
        endpoints, law, resample=None if resample is None else resample.value, flops_per_param=flops_per_param
    )
    source = {"source": endpoints.source, "input_sha256": file_sha256(endpoints.source)}
    finish("check", frame, form=form, argv=context.obj, source=source, out=out)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check", help=HELP, rich_help_panel=o.MAIN)(check_runs)
