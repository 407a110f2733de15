"""``smelt-scaling plan``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import gain_options as g
from smelt_scaling.cli import options as o
from smelt_scaling.cli import plan_options as p

__all__ = ["register"]

HELP = """Which pair of runs would narrow the gain's interval most, and which gains a design finds.

\bExample:
  $ smelt-scaling plan --fund 1e22
  What to run next: compute saved by smelt relative to baseline
  ...
  Pairs that shrink it most per FLOP
        F      S  endpoints at D     cost  error falls  per 1e21  width then
  1.02e10  0.969  20.5B, 31B      6.76e20        5.6 %     8.3 %      14.9 %
  ...

A pair is one run of each architecture, a new cell. Candidates lie within the runs unless --extend or --box says
otherwise. Before any run: --published smelt --design planned.csv --noise 0.005 --icc 0.5.
"""


def show_plan(
    context: typer.Context,
    study: o.StudyOption = None,
    published: o.PublishedOption = None,
    design: p.DesignOption = None,
    budget: g.OneBudgetOption = None,
    target: o.TargetOption = None,
    reference: o.ReferenceOption = None,
    sparsity: g.OneSparsityOption = None,
    mapping: o.MapOption = None,
    units: o.UnitOption = None,
    flops: o.FlopsOption = None,
    box: p.BoxOption = None,
    extend: p.ExtendOption = 1.0,
    horizons: p.HorizonsOption = None,
    schedule: p.ScheduleOption = p.Schedule.wsd,
    decay: p.DecayOption = "0.1",
    fund: p.FundOption = None,
    noise: p.NoiseOption = None,
    icc: p.IccOption = None,
    pair_correlation: p.PairCorrelationOption = None,
    se_factor: p.SeFactorOption = None,
    cells: p.CellsOption = None,
    simulate: p.SimulateOption = 0,
    bootstrap: p.ResamplesOption = 400,
    seed: p.WorldSeedOption = 0,
    level: o.LevelOption = 0.95,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate candidates."""
    from smelt_scaling.analyses import plan, read_design
    from smelt_scaling.cli.bars import progress_bar
    from smelt_scaling.cli.output import finish
    from smelt_scaling.cli.parse import (
        parse_budget,
        parse_counts,
        parse_noise,
        parse_number,
        parse_pairs,
        pieces,
    )
    from smelt_scaling.cli.parse_named import parse_amount, parse_box
    from smelt_scaling.cli.sources import open_source, table_provenance

    asked_budget, money = parse_budget("--budget", budget), parse_budget("--fund", fund)
    at, bounds, sd = parse_number("--sparsity", sparsity), parse_box(box), parse_noise(noise)
    tokens = [parse_amount("--horizons", piece) for piece in pieces(horizons)]
    numbers, lasting = parse_counts("--cells", cells), parse_amount("--decay", decay)
    source = open_source(study, published)
    runs = None
    if design is not None:
        runs = read_design(
            design, mapping=parse_pairs("--map", mapping), units=parse_pairs("--unit", units), flops=flops
        )
    with progress_bar("simulating") as progress:
        frame = plan(
            source.value,
            design=runs,
            target=target,
            reference=reference,
            budget=asked_budget,
            sparsity=at,
            noise=sd,
            icc=icc,
            pair_correlation=pair_correlation,
            se_factor=se_factor,
            extend=extend,
            box=bounds,
            horizons=tokens or None,
            schedule=schedule.value,
            decay=lasting,
            fund=money,
            cells=numbers,
            worlds=simulate,
            bootstrap=bootstrap,
            seed=seed,
            level=level,
            progress=progress,
        )
    finish(
        "plan",
        frame,
        form=form,
        argv=context.obj,
        source=source.provenance | ({} if design is None else {"design": table_provenance(design)}),
        notes=source.notes,
        out=out,
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", help=HELP, rich_help_panel=o.EVIDENCE)(show_plan)
