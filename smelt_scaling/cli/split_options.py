"""The options of gains on parts of an evaluation."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

__all__ = [
    "Aggregate",
    "AggregateOption",
    "GroupsOption",
    "LossesArgument",
    "NoSharingOption",
    "SortAt",
    "SortAtOption",
    "SplitSampleOption",
]


class Aggregate(StrEnum):
    """How the losses of several sources become one."""

    equal = "equal"
    tokens = "tokens"


class SortAt(StrEnum):
    """Endpoints whose loss sorts sources."""

    last = "last"
    all = "all"


LossesArgument = Annotated[
    str,
    typer.Argument(
        metavar="LOSSES",
        help="Long table of losses, a row per endpoint and domain or source; - reads standard input.",
    ),
]
AggregateOption = Annotated[
    Aggregate, typer.Option("--aggregate", help="Sources count alike, or by their column eval_tokens.")
]
NoSharingOption = Annotated[
    bool, typer.Option("--no-sharing", metavar="", help="Leave out the test of shared exponents.")
]
GroupsOption = Annotated[int, typer.Option("--groups", metavar="N", help="How many groups of sources.")]
SortAtOption = Annotated[
    SortAt, typer.Option("--sort-at", help="Sort by the loss at the longest horizons, or over all endpoints.")
]
SplitSampleOption = Annotated[
    bool,
    typer.Option(
        "--split-sample", metavar="", help="Sort by half of the cells, estimate on the other; both ways."
    ),
]
