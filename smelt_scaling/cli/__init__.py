"""The command line: every command is options, one call of the library, and a table.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from smelt_scaling.cli.allocate_command import register as register_allocate
from smelt_scaling.cli.ce_gain_command import register as register_ce_gain
from smelt_scaling.cli.check_command import register as register_check
from smelt_scaling.cli.example_command import register as register_example
from smelt_scaling.cli.fit_command import register as register_fit
from smelt_scaling.cli.predict_command import register as register_predict
from smelt_scaling.cli.reproduce_command import register as register_reproduce
from smelt_scaling.errors import SmeltScalingError

__all__ = ["app", "main", "run"]

app = typer.Typer(
    name="smelt-scaling",
    help="From training runs to a compute-efficiency number you can publish.",
    epilog="Start with: smelt-scaling example, then fit, then ce-gain. Without runs: ce-gain --published smelt.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a bug keeps Python's own traceback
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

for register in (
    register_example,
    register_check,
    register_fit,
    register_ce_gain,
    register_allocate,
    register_predict,
    register_reproduce,
):
    register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from smelt_scaling import __version__

        typer.echo(f"smelt-scaling {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Hold the options that stand before the command."""


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; those of the process by default.

    Returns
    -------
    int
        0 ok, 1 a comparison differs, 2 usage, 3 bad data, 4 uncertified or unidentified, 5 outside support under
        ``--strict``; 130 interrupted, 141 the reader of a pipe went away.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        app(args=arguments, prog_name="smelt-scaling", obj=arguments)
    except SmeltScalingError as error:
        for line in str(error).splitlines():
            print(f"error: {line}", file=sys.stderr)
        return error.exit_code
    except SystemExit as end:
        return _code(end.code)
    return 0


def _code(code: Any) -> int:
    return code if isinstance(code, int) else int(code is not None)


def main() -> None:
    """Run the command of the process and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        # a terminal that lacks a sign such as × shows an escape instead of a traceback
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run())
