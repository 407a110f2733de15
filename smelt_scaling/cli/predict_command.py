"""``smelt-scaling predict``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import gain_options as g
from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Loss that the fitted surfaces predict for runs not made.

\bExample:
  $ smelt-scaling predict --published smelt --at F=1e10,D=1e11,S=.947
  ...
  arch          S       F     D   loss
  baseline  0.947  1.0e10  100B  1.727
  smelt     0.947  1.0e10  100B  1.715

Repeat --at for more points. The interval is that of the surface, not of a single run; --new-run adds that of one new
run.
"""


def show_prediction(
    context: typer.Context,
    at: o.AtOption,
    study: o.StudyOption = None,
    published: o.PublishedOption = None,
    arch: o.ArchOption = None,
    level: o.LevelOption = 0.95,
    interval: o.IntervalOption = o.Interval.percentile,
    new_run: g.NewRunOption = False,
    strict: o.StrictOption = False,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate predicted losses."""
    from smelt_scaling.analyses import predict
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import check_points, parse_names, parse_points
    from smelt_scaling.cli.sources import open_source

    points = parse_points(at)
    source = open_source(study, published)
    check_points(points, source.columns, source.law)
    frame = predict(
        source.value,
        points,
        archs=parse_names(arch, source.archs) or None,
        level=level,
        interval=interval.value,
        new_run=new_run,
    )
    finish(
        "predict",
        frame,
        form=form,
        argv=context.obj,
        source=source.provenance,
        notes=source.notes,
        out=out,
        strict=strict,
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict", help=HELP, rich_help_panel=o.MAIN)(show_prediction)
