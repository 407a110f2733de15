"""Options of gains and predictions that change what stands beside the number."""

from __future__ import annotations

from typing import Annotated

import typer

from smelt_scaling.cli.options import RESULT

__all__ = [
    "OneBudgetOption",
    "OneSparsityOption",
    "ForceOption",
    "NewRunOption",
    "SensitivityOption",
    "ToleranceOption",
]

ToleranceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tolerance",
        metavar="NAME=X",
        help="How far paired budgets may differ. [dim]\\[default: flops=.04,params=.01,kv=.04][/dim]",
        rich_help_panel=RESULT,
        show_default=False,
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        metavar="",
        help="Compare losses that are not comparable; marked in every format.",
        rich_help_panel=RESULT,
    ),
]
SensitivityOption = Annotated[
    bool,
    typer.Option("--sensitivity", metavar="", help="Range over other estimators.", rich_help_panel=RESULT),
]
NewRunOption = Annotated[
    bool,
    typer.Option(
        "--new-run",
        metavar="",
        help="Also the interval of one new run: cell effect and run noise.",
        rich_help_panel=RESULT,
    ),
]
OneBudgetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        "-b",
        metavar="FLOPS",
        show_default=False,
        help="Training FLOPs of the target: 1e21. [dim]\\[default: largest power of ten within the runs][/dim]",
    ),
]
OneSparsityOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sparsity",
        metavar="S",
        show_default=False,
        help="Sparsity, for both architectures: 0.947 or 94.7%. [dim]\\[default: the middle tier's median][/dim]",
    ),
]
