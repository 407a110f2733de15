"""Options of commands that read a table of downstream scores."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from smelt_scaling.cli.options import DATA, FIT

__all__ = [
    "Asymptotes",
    "AsymptotesOption",
    "ExcludeMetricOption",
    "LowerBetterOption",
    "MarginOption",
    "MetricOption",
    "ScoreUnitOption",
    "ScoresArgument",
]


class Asymptotes(StrEnum):
    """Ends of the sigmoid of a score."""

    free = "free"
    chance = "chance"


ScoresArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCORES", help="Table of scores, one row per endpoint and metric; - reads standard input."
    ),
]
ScoreUnitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--unit",
        metavar="METRIC=UNIT",
        help="fraction, percent, number or ppl: score=percent for all metrics, lambada=ppl for one.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
LowerBetterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--lower-better",
        metavar="METRIC",
        help="Metrics of which less is better; perplexities are.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option("--metric", metavar="METRIC", help="Only these metrics.", show_default=False),
]
ExcludeMetricOption = Annotated[
    list[str] | None,
    typer.Option("--exclude-metric", metavar="METRIC", help="All but these metrics.", show_default=False),
]
AsymptotesOption = Annotated[
    Asymptotes,
    typer.Option(
        "--asymptotes", help="Fit the ends of the sigmoid, or hold them at chance and 1.", rich_help_panel=FIT
    ),
]
MarginOption = Annotated[
    float,
    typer.Option("--margin", metavar="X", help="How far above chance a pair is for the restricted wins."),
]
