"""The command line: every command is options, one call of the library, and a table.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer

from smelt_scaling.cli.ablations_command import register as register_ablations
from smelt_scaling.cli.allocate_command import register as register_allocate
from smelt_scaling.cli.ce_gain_command import register as register_ce_gain
from smelt_scaling.cli.check_command import register as register_check
from smelt_scaling.cli.diagnose_command import register as register_diagnose
from smelt_scaling.cli.domains_command import register as register_domains
from smelt_scaling.cli.downstream_command import register as register_downstream
from smelt_scaling.cli.endpoints_command import register as register_endpoints
from smelt_scaling.cli.example_command import register as register_example
from smelt_scaling.cli.explain_command import register as register_explain
from smelt_scaling.cli.fit_command import register as register_fit
from smelt_scaling.cli.flops_command import register as register_flops
from smelt_scaling.cli.grid_command import register as register_grid
from smelt_scaling.cli.lengths_command import register as register_lengths
from smelt_scaling.cli.match_command import register as register_match
from smelt_scaling.cli.output import talk
from smelt_scaling.cli.parser_errors import Refused, refusal
from smelt_scaling.cli.plan_command import register as register_plan
from smelt_scaling.cli.predict_command import register as register_predict
from smelt_scaling.cli.probes_command import register as register_probes
from smelt_scaling.cli.report_command import register as register_report
from smelt_scaling.cli.reproduce_command import register as register_reproduce
from smelt_scaling.cli.shots_command import register as register_shots
from smelt_scaling.cli.sources_command import register as register_sources
from smelt_scaling.cli.streams import Guarded, guarded_streams, hold_closed, use_plain_signs
from smelt_scaling.errors import SmeltScalingError, UsageError

__all__ = ["app", "main", "run"]

#: What a shell reports for a program whose reader went away.
PIPE_CLOSED = 141
#: What a shell reports for a program that was interrupted.
INTERRUPTED = 130

app = typer.Typer(
    name="smelt-scaling",
    help="From training runs to a compute-efficiency number you can publish.",
    epilog="Start with: smelt-scaling example, then fit, then ce-gain. Without runs: ce-gain --published smelt. "
    "What a note says in brackets: explain CODE.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # a bug keeps Python's own traceback
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

for register in (
    register_example,
    register_endpoints,
    register_check,
    register_fit,
    register_ce_gain,
    register_allocate,
    register_predict,
    register_domains,
    register_sources,
    register_downstream,
    register_lengths,
    register_shots,
    register_ablations,
    register_probes,
    register_diagnose,
    register_plan,
    register_flops,
    register_match,
    register_grid,
    register_report,
    register_reproduce,
    register_explain,
):
    register(app)


def _flowing(text: str) -> str:
    """Join the lines of each paragraph, which the terminal wraps at its own width; examples stay as they are."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(p if p.startswith(("\b", " ")) else " ".join(p.split()) for p in paragraphs)


for command in app.registered_commands:
    command.help = _flowing(command.help or "")


def _print_version(wanted: bool) -> None:
    if wanted:
        from smelt_scaling import __version__

        typer.echo(f"smelt-scaling {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_print_version, is_eager=True, help="Print the version."
        ),
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
    with guarded_streams() as out:
        if out is None:
            talk("error: standard output is closed; open it, or send it to /dev/null")
            return UsageError.exit_code
        code = _call(arguments, out)
        with suppress(OSError):
            out.flush()
        if out.error is None:
            return code
        if isinstance(out.error, BrokenPipeError):
            return PIPE_CLOSED
        talk(f"error: standard output cannot be written ({out.error.strerror}); send it elsewhere")
        return UsageError.exit_code


def _call(arguments: list[str], out: Guarded) -> int:
    try:
        code = app(args=arguments, prog_name="smelt-scaling", obj=arguments, standalone_mode=False)
    except Refused as error:
        talk(*(f"error: {line}" for line in [refusal(error)] if line))
        return UsageError.exit_code
    except SmeltScalingError as error:
        for line in str(error).splitlines():
            talk(f"error: {line}")
        return error.exit_code
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except OSError:
        if out.error is None:
            raise
        return 0
    if code == INTERRUPTED:  # the parser's own way of ending an interrupted command
        return _interrupted()
    return code if isinstance(code, int) else 0


def _interrupted() -> int:
    talk("interrupted, nothing saved")
    return INTERRUPTED


def main() -> None:
    """Run the command of the process and exit with its code."""
    hold_closed()
    use_plain_signs()
    sys.exit(run())
