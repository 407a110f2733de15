"""``smelt-scaling flops``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import budget_options as b
from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """FLOPs per token, parameters and KV cache of a model, term by term.

\bExample:
  $ smelt-scaling flops smelt:smelt/200M/95% --compare smelt:baseline/200M/95%
  ...
  Against smelt:baseline/200M/95%
  budget             model  reference  ratio  deviation
  FLOPs per token  1.367e9    1.329e9  1.029     +2.87%
  ...

CONFIG is a Hugging Face config.json, TOML (docs/budgets.md), or a published model. Looped layers store once, and
compute and cache at every visit.
"""


def show_flops(
    context: typer.Context,
    model: b.ModelArgument,
    convention: b.CountingOption = b.Counting.smelt,
    seq_len: b.SeqLenOption = None,
    documents: b.DocumentsOption = None,
    control: b.ControlOption = None,
    compare: b.CompareOption = None,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate the budgets of a model."""
    from smelt_scaling.analyses import flops_report
    from smelt_scaling.analyses.models import read_lengths
    from smelt_scaling.cli.output import finish

    frame = flops_report(
        model,
        convention=convention.value,
        seq_len=seq_len,
        documents=None if documents is None else read_lengths(documents),
        control=control,
        compare=compare,
    )
    finish("flops", frame, form=form, argv=context.obj, source={"model": model}, out=out)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("flops", help=HELP, rich_help_panel=o.ACCOUNTING)(show_flops)
