"""The options, declared once: one vocabulary for every command."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "DEFAULT_STUDY",
    "EVIDENCE",
    "MAIN",
    "SPLITS",
    "ArchOption",
    "AtOption",
    "BootstrapOption",
    "BudgetOption",
    "DataLaw",
    "DataLawOption",
    "DeltaOption",
    "DropOutliersOption",
    "Engine",
    "EngineOption",
    "ExcludeTierOption",
    "FlopsOption",
    "FlopsPerParamOption",
    "Format",
    "FormatOption",
    "IncludeUnfinishedOption",
    "Interval",
    "IntervalOption",
    "LawOption",
    "LevelOption",
    "MapOption",
    "OutOption",
    "Part",
    "PinOption",
    "PublishedOption",
    "ReferenceOption",
    "RepeatConstantOption",
    "Resample",
    "ResampleOption",
    "Residual",
    "ResidualOption",
    "RunsArgument",
    "SeedOption",
    "ShowOption",
    "SparsityOption",
    "StartsOption",
    "StrictOption",
    "StudyOption",
    "TargetOption",
    "UnitOption",
    "WeightCells",
    "WeightCellsOption",
    "WildOption",
]

#: Where `fit` saves and the analyses read, unless told otherwise.
DEFAULT_STUDY = Path("reports/study")
#: Help panels.
MAIN, SPLITS, EVIDENCE, ACCOUNTING, PAPER = "Main", "Splits", "Evidence", "Accounting", "Paper"
DATA, FIT, RESULT = "Table", "Fit", "Result"


class Format(StrEnum):
    """How a result is written."""

    table = "table"
    md = "md"
    csv = "csv"
    json = "json"
    latex = "latex"
    html = "html"


class Interval(StrEnum):
    """Kinds of interval."""

    percentile = "percentile"
    jackknife_t = "jackknife-t"
    wild_cr3 = "wild-cr3"


class Resample(StrEnum):
    """Units that can be resampled."""

    cell = "cell"
    trunk = "trunk"
    run = "run"
    row = "row"


class Residual(StrEnum):
    """Scales of the residual."""

    log = "log"
    raw = "raw"


class Part(StrEnum):
    """Tables of a design report."""

    intake = "intake"
    columns = "columns"
    flops = "flops"
    fairness = "fairness"
    tiers = "tiers"
    map = "map"
    design = "design"


class Engine(StrEnum):
    """Optimisers."""

    newton = "newton"
    lbfgsb = "lbfgsb"


class WeightCells(StrEnum):
    """What counts alike in a fit."""

    rows = "rows"
    equal = "equal"


class DataLaw(StrEnum):
    """What a repeated token counts."""

    fresh = "fresh"
    repeated = "repeated"


RunsArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUNS", help="Table of endpoints: Parquet, Feather, CSV or JSON; - reads standard input."
    ),
]

# ---------------------------------------------------------------- the table of endpoints
MapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="NAME=COLUMN",
        help="Read NAME from COLUMN: loss=val/ce.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
UnitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--unit",
        metavar="NAME=UNIT",
        help="Unit of a column: D=B, S=percent, loss=ppl, loss=bpb.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
FlopsOption = Annotated[
    str | None,
    typer.Option(
        "--flops",
        metavar="RULE",
        help="Compute F: 6N from parameters; forward from forward-only FLOPs.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
ExcludeTierOption = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-tier",
        metavar="S",
        help="Leave out the sparsity tier at S: 0.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
IncludeUnfinishedOption = Annotated[
    bool,
    typer.Option(
        "--include-unfinished",
        metavar="",
        help="Keep rows of unfinished runs; all results are provisional then.",
        rich_help_panel=DATA,
    ),
]

# ---------------------------------------------------------------- the fit
LawOption = Annotated[
    str,
    typer.Option(
        "--law",
        metavar="LAW",
        help="sparse-additive, additive, chinchilla, power-c, or a formula.",
        rich_help_panel=FIT,
    ),
]
BootstrapOption = Annotated[
    int, typer.Option("--bootstrap", metavar="N", help="Resamples; 0 for none.", rich_help_panel=FIT)
]
SeedOption = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed of the resampling.", rich_help_panel=FIT)
]
DeltaOption = Annotated[
    str,
    typer.Option(
        "--delta", metavar="X", help="Huber threshold; inf is least squares; auto.", rich_help_panel=FIT
    ),
]
ResidualOption = Annotated[
    Residual, typer.Option("--residual", help="Of ln(loss), or of the loss.", rich_help_panel=FIT)
]
PinOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pin",
        metavar="[ARCH:]P=X[@EVAL]",
        help="Hold a parameter: E=1.6, ours:E=1.6; of one eval_set: E=1.6@paloma.",
        rich_help_panel=FIT,
        show_default=False,
    ),
]
DropOutliersOption = Annotated[
    bool,
    typer.Option(
        "--drop-outliers",
        metavar="",
        help="Leave out endpoints over 5 robust sd off a first fit, and fit again, once.",
        rich_help_panel=FIT,
    ),
]
WeightCellsOption = Annotated[
    WeightCells,
    typer.Option(
        "--weight-cells",
        help="rows: each counts by its weight; equal: so does each resampled unit.",
        rich_help_panel=FIT,
    ),
]
DataLawOption = Annotated[
    DataLaw,
    typer.Option(
        "--data-law",
        help="fresh: every token counts; repeated: by unique_tokens, as worth if seen once.",
        rich_help_panel=FIT,
    ),
]
RepeatConstantOption = Annotated[
    float,
    typer.Option("--repeat-constant", metavar="R", help="R_D* of --data-law repeated.", rich_help_panel=FIT),
]
WildOption = Annotated[
    bool,
    typer.Option("--wild", metavar="", help="Also draws for --interval wild-cr3.", rich_help_panel=FIT),
]
StartsOption = Annotated[
    str,
    typer.Option("--starts", metavar="N", help="Starts of the fit, or thorough.", rich_help_panel=FIT),
]
ResampleOption = Annotated[
    Resample | None,
    typer.Option(
        "--resample",
        help="Unit to resample; by default the first the table names.",
        rich_help_panel=FIT,
        show_default=False,
    ),
]
EngineOption = Annotated[Engine, typer.Option("--engine", help="Optimiser.", rich_help_panel=FIT)]
FlopsPerParamOption = Annotated[
    float,
    typer.Option("--flops-per-param", metavar="X", help="F = X N, for laws in N.", rich_help_panel=FIT),
]

# ---------------------------------------------------------------- the question
StudyOption = Annotated[
    Path | None,
    typer.Option(
        "--study",
        metavar="DIR",
        help="Study to read. [dim]\\[default: reports/study][/dim]",
        show_default=False,
    ),
]
PublishedOption = Annotated[
    str | None,
    typer.Option(
        "--published",
        metavar="PAPER-OR-FILE",
        help="Published surfaces instead of a study: smelt, chinchilla, marin; or a table of coefficients.",
        show_default=False,
    ),
]
BudgetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        "-b",
        metavar="FLOPS",
        help="Training FLOPs: 1e21. [dim]\\[default: powers of ten within all windows][/dim]",
        show_default=False,
    ),
]
SparsityOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sparsity",
        metavar="S",
        help="Sparsity, for every architecture: 0.947 or 94.7%. [dim]\\[default: median of each tier][/dim]",
        show_default=False,
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target", metavar="ARCH", help="Architecture whose gain is asked for.", show_default=False
    ),
]
ReferenceOption = Annotated[
    str | None,
    typer.Option(
        "--reference", metavar="ARCH", help="Architecture that it is compared with.", show_default=False
    ),
]
ArchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--arch", metavar="ARCH", help="Architectures. [dim]\\[default: all][/dim]", show_default=False
    ),
]
AtOption = Annotated[
    list[str],
    typer.Option("--at", metavar="NAME=X,...", help="The law's columns: F=1e10,D=2e11,S=.947."),
]
LevelOption = Annotated[
    float, typer.Option("--level", metavar="P", help="Nominal coverage.", rich_help_panel=RESULT)
]
IntervalOption = Annotated[
    Interval,
    typer.Option("--interval", help="Bootstrap percentiles, or a t interval.", rich_help_panel=RESULT),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict", metavar="", help="Exit 5 if a row lies outside the runs.", rich_help_panel=RESULT
    ),
]

# ---------------------------------------------------------------- the answer
FormatOption = Annotated[
    Format,
    typer.Option("--format", help="How to write it on standard output.", rich_help_panel=RESULT),
]
ShowOption = Annotated[
    Part | None,
    typer.Option(
        "--show",
        help="One table of the report. [dim]\\[default: all; design in csv][/dim]",
        rich_help_panel=RESULT,
        show_default=False,
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--out",
        metavar="DIR",
        help="Also write DIR/COMMAND.json and .parquet.",
        rich_help_panel=RESULT,
        show_default=False,
    ),
]
