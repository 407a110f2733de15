"""The options of `plan`, declared once like those of `options`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

__all__ = [
    "BoxOption",
    "CellsOption",
    "DecayOption",
    "DesignOption",
    "ExtendOption",
    "FundOption",
    "HorizonsOption",
    "IccOption",
    "NoiseOption",
    "PairCorrelationOption",
    "ResamplesOption",
    "Schedule",
    "ScheduleOption",
    "SeFactorOption",
    "SimulateOption",
    "WorldSeedOption",
]

#: Help panels.
RUNS, NOISE, POWER = "Runs to be made", "Noise", "Power"


class Schedule(StrEnum):
    """How endpoints at several horizons are made."""

    wsd = "wsd"
    independent = "independent"


DesignOption = Annotated[
    str | None,
    typer.Option(
        "--design",
        metavar="RUNS",
        help="Runs made or planned, with or without losses. [dim]\\[default: those of the study][/dim]",
        show_default=False,
    ),
]
BoxOption = Annotated[
    list[str] | None,
    typer.Option(
        "--box",
        metavar="NAME=LOW..HIGH",
        help="Bounds of candidates: F=1e8..4e10,S=0.7..0.985. [dim]\\[default: what the runs of both cover][/dim]",
        rich_help_panel=RUNS,
        show_default=False,
    ),
]
ExtendOption = Annotated[
    float,
    typer.Option(
        "--extend",
        metavar="X",
        help="Widen those bounds by a factor in F, D and 1 - S.",
        rich_help_panel=RUNS,
    ),
]
HorizonsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--horizons",
        metavar="TOKENS",
        help="Tokens of the endpoints of a run: 20B,1e11. [dim]\\[default: those of the runs][/dim]",
        rich_help_panel=RUNS,
        show_default=False,
    ),
]
ScheduleOption = Annotated[
    Schedule,
    typer.Option(
        "--schedule", help="wsd: a trunk and a decay per endpoint; or single runs.", rich_help_panel=RUNS
    ),
]
DecayOption = Annotated[
    str,
    typer.Option(
        "--decay",
        metavar="X",
        help="Length of a decay: below 1 a share of the horizon, else tokens, such as 10B.",
        rich_help_panel=RUNS,
    ),
]
FundOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fund",
        metavar="FLOPS",
        help="FLOPs to spend: list the pairs to buy with them.",
        rich_help_panel=RUNS,
        show_default=False,
    ),
]
NoiseOption = Annotated[
    list[str] | None,
    typer.Option(
        "--noise",
        metavar="SD",
        help="Standard deviation of an endpoint's loss: 0.005, or ours=0.005,base=0.004. "
        "[dim]\\[default: of the residuals][/dim]",
        rich_help_panel=NOISE,
        show_default=False,
    ),
]
IccOption = Annotated[
    float | None,
    typer.Option(
        "--icc",
        metavar="X",
        help="Share of its variance that endpoints of a cell have in common. [dim]\\[default: of the residuals][/dim]",
        rich_help_panel=NOISE,
        show_default=False,
    ),
]
PairCorrelationOption = Annotated[
    float | None,
    typer.Option(
        "--pair-correlation",
        metavar="X",
        help="Correlation of that between the two architectures. [dim]\\[default: of the residuals][/dim]",
        rich_help_panel=NOISE,
        show_default=False,
    ),
]
SeFactorOption = Annotated[
    float | None,
    typer.Option(
        "--se-factor",
        metavar="X",
        help="Standard error of the fits over that of least squares. [dim]\\[default: of their Huber threshold][/dim]",
        rich_help_panel=NOISE,
        show_default=False,
    ),
]
CellsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cells",
        metavar="N",
        help="Numbers of cells: 12,24. [dim]\\[default: 1, 2, 4 and 8 times those there are][/dim]",
        rich_help_panel=POWER,
        show_default=False,
    ),
]
SimulateOption = Annotated[
    int,
    typer.Option(
        "--simulate",
        metavar="N",
        help="Also simulate N worlds per gain, fitted and resampled; 0 for none.",
        rich_help_panel=POWER,
    ),
]
ResamplesOption = Annotated[
    int,
    typer.Option("--bootstrap", metavar="N", help="Resamples of each world.", rich_help_panel=POWER),
]
WorldSeedOption = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed of the worlds.", rich_help_panel=POWER)
]
