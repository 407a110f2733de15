"""``smelt-scaling explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from smelt_scaling.cli import options as o

__all__ = ["register"]

HELP = """Explain note codes: what each means and what to do about it.

\bExample:
  $ smelt-scaling explain stale_study
  stale_study (warning)
      The input file changed after the study was fitted.
      What to do: The numbers are those of the old file. Fit it again with the
      command in the message.

Without a code it lists all of them, by the stage that raises them.
"""


def explain_codes(
    codes: Annotated[
        list[str] | None,
        typer.Argument(metavar="CODE", help="What stands in brackets before a note: collinear."),
    ] = None,
) -> None:
    """Explain note codes, or list them."""
    from smelt_scaling.cli.output import emit
    from smelt_scaling.errors import UsageError
    from smelt_scaling.note_codes import NOTE_CODES

    named = [code.strip("[],") for code in codes or ()]
    unknown = [_unknown(code) for code in named if code not in NOTE_CODES]
    if unknown:
        raise UsageError("\n".join(unknown))
    emit("\n".join(_explained(named) if named else _listed()) + "\n")


def _unknown(code: str) -> str:
    from difflib import get_close_matches

    from smelt_scaling.note_codes import NOTE_CODES

    near = get_close_matches(code.casefold().replace("-", "_"), NOTE_CODES, n=2, cutoff=0.7)
    found = f"did you mean {' or '.join(near)}?" if near else "smelt-scaling explain lists them all"
    return f"{code!r}: no such note code; {found}"


def _explained(codes: list[str]) -> list[str]:
    from smelt_scaling.note_codes import NOTE_CODES

    lines: list[str] = []
    for code in codes:
        said = NOTE_CODES[code]
        lines += [
            "",
            f"{code} ({said.severity})",
            *_indented(said.meaning),
            *_indented(f"What to do: {said.remedy}"),
        ]
    return lines[1:]


def _listed() -> list[str]:
    from smelt_scaling.note_codes import STAGES

    lines: list[str] = []
    for stage, codes in STAGES.items():
        lines += ["", stage]
        for code, said in codes.items():
            lines += [f"  {code} ({said.severity})", *_indented(said.meaning)]
    return [*lines[1:], "", "What to do about one: smelt-scaling explain CODE"]


def _indented(text: str) -> list[str]:
    from textwrap import wrap

    return wrap(text, 80, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain", help=HELP, rich_help_panel=o.MAIN)(explain_codes)
