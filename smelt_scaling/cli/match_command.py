"""``smelt-scaling match``."""

from __future__ import annotations

import typer

from smelt_scaling.cli import budget_options as b
from smelt_scaling.cli import gain_options as g
from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Shapes that cost what a baseline costs in FLOPs, parameters and KV cache.

\bExample:
  $ smelt-scaling match smelt:baseline/200M/95% --head-dim-multiple 4
  ...
  #  hidden    heads  kv  experts  d_ff    FLOPs   params       KV
  1     832  10 x 84   2      264   488  -0.01 %  +0.24 %  -1.56 %  *
  ...

By default the middle half runs twice. Every buildable shape is counted. Repeat --loops and --span for a family, such as
--span middle:2,middle:4,middle:6.
"""


def show_matches(
    context: typer.Context,
    reference: b.ReferenceArgument,
    loops: b.LoopsOption = None,
    span: b.SpanOption = None,
    layers: b.LayersOption = None,
    tolerance: g.ToleranceOption = None,
    head_dim_multiple: b.HeadDimMultipleOption = 8,
    hidden_multiple: b.HiddenMultipleOption = 64,
    ffn_multiple: b.FfnMultipleOption = 8,
    expert_multiple: b.ExpertMultipleOption = 8,
    head_dim: b.HeadDimOption = "64-128",
    kv_heads: b.KvHeadsOption = "1-16",
    convention: b.CountingOption = b.Counting.smelt,
    seq_len: b.SeqLenOption = None,
    documents: b.DocumentsOption = None,
    top: b.TopOption = 5,
    pareto: b.ParetoOption = False,
    toml: b.TomlOption = None,
    force: b.ForceOption = False,
    form: o.FormatOption = o.Format.table,
    out: o.OutOption = None,
) -> None:
    """Tabulate matched shapes."""
    from smelt_scaling.accounting.match import Search, Tolerance
    from smelt_scaling.analyses import match_budgets
    from smelt_scaling.analyses.models import read_lengths
    from smelt_scaling.cli.files import require_target
    from smelt_scaling.cli.output import finish, talk, writing
    from smelt_scaling.cli.parse import parse_counts, parse_names
    from smelt_scaling.cli.parse_named import parse_tolerance

    if toml is not None:
        require_target(toml, force, (".toml",))
    frame = match_budgets(
        reference,
        loops=parse_counts("--loops", loops) or (2,),
        spans=parse_names(span) or ("middle:0.5",),
        layers=layers,
        tolerance=Tolerance(**parse_tolerance(tolerance, ("flops", "params", "kv"))),
        search=Search(
            head_dim=b.parse_range("--head-dim", head_dim),
            kv_heads=b.parse_range("--kv-heads", kv_heads),
            head_dim_multiple=head_dim_multiple,
            hidden_multiple=hidden_multiple,
            ffn_multiple=ffn_multiple,
            expert_multiple=expert_multiple,
        ),
        convention=convention.value,
        documents=None if documents is None else read_lengths(documents),
        seq_len=seq_len,
        top=top,
        pareto=pareto,
    )
    if toml is not None and len(frame):
        with writing(toml, "--toml"):
            toml.write_text(frame["toml"].iloc[0], encoding="utf-8")
    finish("match", frame, form=form, argv=context.obj, source={"reference": reference}, out=out)
    if toml is not None and len(frame):
        talk(f"wrote {toml}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("match", help=HELP, rich_help_panel=o.ACCOUNTING)(show_matches)
