"""What the parser of the command line refuses, in one line like every other error."""

from __future__ import annotations

import typer

__all__ = ["Refused", "refusal"]

#: The root of the parser's errors, whichever package typer takes its parser from.
Refused: type[Exception] = typer.BadParameter.__mro__[2]

#: Words of the parser -> words for people.
_PLAIN = {
    "Value error, ": "",
    "Input should be a valid number, unable to parse string as a number": "not a number",
    "Input should be a valid integer, unable to parse string as an integer": "not a whole number",
    "Got unexpected extra argument(s)": "not expected here:",
    ". Did you mean": "; did you mean",
}


def refusal(error: Exception) -> str:
    """Return one line: what was refused, what would do, and the help that lists it; empty if that was shown.

    Parameters
    ----------
    error : Refused
        What the parser raised.
    """
    from difflib import get_close_matches

    if type(error).__name__ == "NoArgsIsHelpError":
        return ""
    context, parameter = (getattr(error, name, None) for name in ("ctx", "param"))
    offered = getattr(error, "possibilities", None)
    text = str(getattr(error, "message", error) if offered else error.format_message())  # type: ignore[attr-defined]
    for foreign, plain in _PLAIN.items():
        text = text.replace(foreign, plain)
    text = text.rstrip(".")
    if offered:
        near = get_close_matches(str(getattr(error, "option_name", "")), offered, n=2, cutoff=0.7) or offered
        text += f"; did you mean {' or '.join(near)}?"
    elif text.startswith("Missing") and parameter is not None and parameter.help:
        text += f": {parameter.help.rstrip('.')}"
    command = "smelt-scaling" if context is None else context.command_path
    return f"{text[:1].lower()}{text[1:]} ({command} --help)"
