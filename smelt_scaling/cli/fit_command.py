"""``smelt-scaling fit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Fit every architecture, resample, and save the study.

\bExample:
  $ smelt-scaling fit runs.parquet --bootstrap 2000
  law sparse-additive: E + A*(1-S)**b*F**-a + K*D**-c
  ...
  study saved in reports/study
  next: smelt-scaling ce-gain --budget 1e21 --study reports/study

Every point estimate comes with a certificate; exit code 4 if one is refused.
"""


def fit_runs(
    context: typer.Context,
    runs: o.RunsArgument,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Folder of the study.")
    ] = o.DEFAULT_STUDY,
    mapping: o.MapOption = None,
    units: o.UnitOption = None,
    flops: o.FlopsOption = None,
    exclude_tier: o.ExcludeTierOption = None,
    include_unfinished: o.IncludeUnfinishedOption = False,
    law: o.LawOption = "sparse-additive",
    bootstrap: o.BootstrapOption = 2000,
    wild: o.WildOption = False,
    seed: o.SeedOption = 0,
    delta: o.DeltaOption = "1e-3",
    residual: o.ResidualOption = o.Residual.log,
    pin: o.PinOption = None,
    starts: o.StartsOption = "64",
    resample: o.ResampleOption = None,
    engine: o.EngineOption = o.Engine.newton,
    flops_per_param: o.FlopsPerParamOption = 6.0,
    drop_outliers: o.DropOutliersOption = False,
    weight_cells: o.WeightCellsOption = o.WeightCells.rows,
    data_law: o.DataLawOption = o.DataLaw.fresh,
    repeat_constant: o.RepeatConstantOption = 15.387756,
    form: o.FormatOption = o.Format.table,
) -> None:
    """Fit and save a study."""
    from smelt_scaling.cli.bars import progress_bar
    from smelt_scaling.cli.next_step import next_lines
    from smelt_scaling.cli.output import describe_call, emit, hint_lines, talk, tell_notes, writing
    from smelt_scaling.cli.parse import parse_delta, parse_pins, parse_starts
    from smelt_scaling.cli.sources import read_runs, replaced_study
    from smelt_scaling.reporting import render_study
    from smelt_scaling.study import check_folder, fit

    check_folder(out)
    before = replaced_study(out)
    threshold, pins, start_count = parse_delta(delta), parse_pins(pin), parse_starts(starts)
    endpoints = read_runs(runs, mapping, units, flops, exclude_tier, include_unfinished)
    with progress_bar("resampling") as progress:
        study = fit(
            endpoints,
            law,
            bootstrap=bootstrap,
            wild=wild,
            seed=seed,
            delta=threshold,
            residual=residual.value,
            pins=pins,
            starts=start_count,
            resample=None if resample is None else resample.value,
            engine=engine.value,
            flops_per_param=flops_per_param,
            drop_outliers=drop_outliers,
            cell_weights=weight_cells.value,
            data_law=data_law.value,
            repeat_constant=repeat_constant,
            progress=progress,
        )
    with writing(out):
        study.save(out)
    if before is not None:
        talk(f"replaced the study of {before} in {out}")
    if form is o.Format.table:
        options = {
            "--law": None if law == "sparse-additive" else law,
            "--map": mapping,
            "--unit": units,
            "--flops": flops,
            "--exclude-tier": exclude_tier,
            "--include-unfinished": include_unfinished,
            "--resample": None if resample is None else resample.value,
            "--flops-per-param": None if flops_per_param == 6.0 else flops_per_param,
        }
        after = [
            "",
            f"study saved in {out}",
            *next_lines(study, context.obj, out, runs=runs, options=options),
        ]
        emit("\n".join([study.summary(), *hint_lines(study.all_notes), *after]) + "\n")
    else:
        if form not in (o.Format.json, o.Format.md, o.Format.html):
            tell_notes(study.all_notes)
        provenance = describe_call(context.obj, {})
        emit(render_study(study, form.value, provenance={"argv": provenance["argv"]}))
        talk(f"study saved in {out}")
    if not study.certified:
        for arch, one in study.fits.items():
            if not one.certificate.certified:
                talk(f"error: {arch}: {one.certificate.status.value}")
        raise typer.Exit(4)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fit", help=HELP, rich_help_panel=o.MAIN)(fit_runs)
