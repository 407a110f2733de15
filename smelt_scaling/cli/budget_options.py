"""The options of budgets of models."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "CompareOption",
    "ControlOption",
    "Counting",
    "CountingOption",
    "DocumentsOption",
    "ExpertMultipleOption",
    "FfnMultipleOption",
    "ForceOption",
    "HeadDimMultipleOption",
    "HeadDimOption",
    "HiddenMultipleOption",
    "KvHeadsOption",
    "LayersOption",
    "LoopsOption",
    "ModelArgument",
    "ParetoOption",
    "ReferenceArgument",
    "SeqLenOption",
    "SpanOption",
    "StudyPlanArgument",
    "TableOption",
    "TomlOption",
    "TopOption",
    "parse_range",
]


class Counting(StrEnum):
    """Conventions of counting FLOPs."""

    smelt = "smelt"
    megatron = "megatron"
    palm = "palm"
    torchtitan = "torchtitan"
    chinchilla = "chinchilla"
    sixn = "6n"


_NAMES = "a Hugging Face config.json, a .toml, or a published model such as smelt:baseline/200M/95%"

ModelArgument = Annotated[str, typer.Argument(metavar="CONFIG", help=f"The model: {_NAMES}.")]
ReferenceArgument = Annotated[str, typer.Argument(metavar="BASELINE", help=f"What to match: {_NAMES}.")]
StudyPlanArgument = Annotated[
    str, typer.Argument(metavar="STUDY.toml", help="Models and schedule; smelt for the paper's own.")
]
CountingOption = Annotated[Counting, typer.Option("--convention", help="How FLOPs per token are counted.")]
SeqLenOption = Annotated[
    int | None,
    typer.Option(
        "--seq-len",
        metavar="TOKENS",
        show_default=False,
        help="Tokens of a training sequence. [dim]\\[default: 4096][/dim]",
    ),
]
DocumentsOption = Annotated[
    str | None,
    typer.Option(
        "--doc-len",
        metavar="TOKENS-OR-FILE",
        help="Mean document length, or a table with a column length (and count) or cu_seqlens.",
    ),
]
ControlOption = Annotated[
    str | None, typer.Option("--control", metavar="CONFIG", help="Dense model of this scale, for S.")
]
CompareOption = Annotated[
    str | None, typer.Option("--compare", metavar="CONFIG", help="Reference, for the three ratios.")
]
LoopsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--loops",
        metavar="N",
        show_default=False,
        help="How often the span runs; 1 for no loop. [dim]\\[default: 2][/dim]",
    ),
]
SpanOption = Annotated[
    list[str] | None,
    typer.Option(
        "--span",
        metavar="SPAN",
        show_default=False,
        help="Layers that loop, such as middle:0.5, middle:6, or 3-8 counted from 0. "
        "[dim]\\[default: middle:0.5][/dim]",
    ),
]
LayersOption = Annotated[
    int | None, typer.Option("--layers", metavar="N", help="Physical layers of the match.")
]
_MULTIPLE = "What {} is a multiple of."
HeadDimMultipleOption = Annotated[
    int, typer.Option("--head-dim-multiple", metavar="N", help=_MULTIPLE.format("the width of a head"))
]
HiddenMultipleOption = Annotated[
    int, typer.Option("--hidden-multiple", metavar="N", help=_MULTIPLE.format("the hidden width"))
]
FfnMultipleOption = Annotated[
    int, typer.Option("--ffn-multiple", metavar="N", help=_MULTIPLE.format("the width of an expert or block"))
]
ExpertMultipleOption = Annotated[
    int, typer.Option("--expert-multiple", metavar="N", help=_MULTIPLE.format("the number of experts"))
]
HeadDimOption = Annotated[str, typer.Option("--head-dim", metavar="LOW-HIGH", help="Widths of a head.")]
KvHeadsOption = Annotated[str, typer.Option("--kv-heads", metavar="LOW-HIGH", help="Key-value heads.")]
TopOption = Annotated[int, typer.Option("--top", metavar="N", help="Shapes to show of every loop and span.")]
ParetoOption = Annotated[bool, typer.Option("--pareto", metavar="", help="Undominated shapes only.")]
TomlOption = Annotated[
    Path | None, typer.Option("--toml", metavar="FILE", help="Write the first shape, for a trainer.")
]
TableOption = Annotated[
    Path | None, typer.Option("--table", metavar="FILE", help="Write the endpoints as .parquet or .csv.")
]
ForceOption = Annotated[bool, typer.Option("--force", metavar="", help="Replace an existing file.")]


def parse_range(option: str, text: str) -> tuple[int, int]:
    """Return both ends of ``LOW-HIGH``; one number is both.

    Raises
    ------
    UsageError
        If it is neither.
    """
    from smelt_scaling.errors import UsageError

    parts: Sequence[str] = text.split("-")
    try:
        ends = [int(part) for part in parts]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2):
        raise UsageError(f"{option} {text!r}: write LOW-HIGH, such as 64-128")
    return ends[0], ends[-1]
