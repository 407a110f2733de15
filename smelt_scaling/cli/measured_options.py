"""The options of analyses of other tables than endpoints, declared once like those of `options`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smelt_scaling.cli.options import DATA

__all__ = [
    "AgainstOption",
    "DropIncompleteOption",
    "FrontierArchOption",
    "FrontierStudyOption",
    "HigherOption",
    "LowerOption",
    "MeasuredArgument",
    "NoiseOption",
    "ShareUnitOption",
    "ShotsOption",
    "SplitOption",
]

MeasuredArgument = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="Parquet, Feather, CSV or JSON; - reads standard input."),
]
SplitOption = Annotated[
    float,
    typer.Option("--split", metavar="TOKENS", help="Upper bound of the longest short bucket."),
]
ShareUnitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--unit",
        metavar="NAME=UNIT",
        help="score=percent, chance=percent; fractions otherwise.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
ShotsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shots",
        metavar="K",
        help="Numbers of examples to use: 0,1,2,4,8. [dim]\\[default: all][/dim]",
        show_default=False,
    ),
]
DropIncompleteOption = Annotated[
    bool,
    typer.Option("--drop-incomplete", metavar="", help="Leave out tasks that lack some number of examples."),
]
AgainstOption = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="LEVEL",
        help="Level to compare with. [dim]\\[default: the first of the table][/dim]",
        show_default=False,
    ),
]
NoiseOption = Annotated[
    list[str] | None,
    typer.Option(
        "--noise",
        metavar="SD",
        help="Standard deviation of repeated runs: 0.002, or by metric: loss=0.002,core=0.5. "
        "[dim]\\[default: that of the seeds][/dim]",
        show_default=False,
    ),
]
FrontierStudyOption = Annotated[
    Path | None,
    typer.Option(
        "--study",
        metavar="DIR",
        help="Study whose frontier says what a loss is worth in compute.",
        show_default=False,
    ),
]
FrontierArchOption = Annotated[
    str | None,
    typer.Option(
        "--reference",
        metavar="ARCH",
        help="Architecture of that frontier: the one ablated.",
        show_default=False,
    ),
]
HigherOption = Annotated[
    list[str] | None,
    typer.Option("--higher", metavar="METRIC", help="More of it is better.", show_default=False),
]
LowerOption = Annotated[
    list[str] | None,
    typer.Option("--lower", metavar="METRIC", help="Less of it is better, as of a loss.", show_default=False),
]
