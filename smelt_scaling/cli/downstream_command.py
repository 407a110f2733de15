"""``smelt-scaling downstream``."""

from __future__ import annotations

import sys

import typer

from smelt_scaling.cli import options as o
from smelt_scaling.cli import score_options as q

__all__ = ["register"]

HELP = """Downstream scores at equal loss: calibrated on the reference, tested by cells.

\bExample:
  $ smelt-scaling downstream scores.csv --reference baseline
  Downstream scores of smelt at equal loss, calibrated on baseline
  ...
  metric  scale   cells  residual                           p  p (Holm)
  core    all †      12  0.00511 [0.00290, 0.00736]    0.0018    0.0018
  core    100M        3  0.00606 [0.00163, 0.0121]       0.30      0.70
  ...

SCORES has one row per endpoint and metric: arch, metric, loss, score, and cell (or scale and S). The long table of
endpoints --long is one: --map metric=member,score=value.
"""


def compare_scores(
    context: typer.Context,
    scores: q.ScoresArgument,
    mapping: o.MapOption = None,
    units: q.ScoreUnitOption = None,
    lower_better: q.LowerBetterOption = None,
    metric: q.MetricOption = None,
    exclude: q.ExcludeMetricOption = None,
    target: o.TargetOption = None,
    reference: o.ReferenceOption = None,
    asymptotes: q.AsymptotesOption = q.Asymptotes.free,
    margin: q.MarginOption = 0.1,
    bootstrap: o.BootstrapOption = 2000,
    seed: o.SeedOption = 0,
    level: o.LevelOption = 0.95,
    strict: o.StrictOption = False,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Compare scores at equal loss."""
    from smelt_scaling.analyses import downstream, read_scores
    from smelt_scaling.cli.bars import progress_bar
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import parse_names, parse_pairs
    from smelt_scaling.errors import UsageError
    from smelt_scaling.study.provenance import file_sha256

    if scores == "-" and sys.stdin is None:
        raise UsageError("-: standard input is closed; name a file, or pipe the table in")
    table = read_scores(
        scores,
        mapping=parse_pairs("--map", mapping),
        units=parse_pairs("--unit", units),
        lower_better=parse_names(lower_better),
    )
    with progress_bar("metrics") as progress:
        frame = downstream(
            table,
            target=target,
            reference=reference,
            metrics=parse_names(metric, table.metrics),
            exclude=parse_names(exclude, table.metrics),
            asymptotes=asymptotes.value,
            margin=margin,
            bootstrap=bootstrap,
            seed=seed,
            level=level,
            progress=progress,
        )
    source = {"source": table.source, "input_sha256": file_sha256(table.source)}
    finish("downstream", frame, form=form, argv=context.obj, source=source, out=out, strict=strict)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("downstream", help=HELP, rich_help_panel=o.SPLITS)(compare_scores)
