"""The standard streams of a process: full, closed, or with nobody at the other end."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

__all__ = ["Guarded", "guarded_streams", "hold_closed", "use_plain_signs"]

#: What stands for a sign that the encoding of a stream lacks.
PLAIN = {
    "×": "x",
    "†": "+",
    "±": "+/-",
    "…": "...",
    "−": "-",
    **dict.fromkeys("╭╮╰╯│", "|"),
    "─": "-",
}


class Guarded:
    """A text stream that remembers why it could not be written.

    Parameters
    ----------
    stream : text stream
        Where the text goes.
    quiet : bool
        Whether text that cannot be written is dropped, instead of ending the command.
    """

    def __init__(self, stream: TextIO, *, quiet: bool) -> None:
        self._stream = stream
        self._quiet = quiet
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """Write text."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Hand over what is buffered."""
        try:
            self._stream.flush()
        except OSError as error:
            self._lose(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _lose(self, error: OSError) -> None:
        self.error = self.error or error
        # Python flushes again on the way out, which must not fail a second time
        with suppress(OSError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)
        if not self._quiet:
            raise error


@contextmanager
def guarded_streams() -> Iterator[Guarded | None]:
    """Guard standard output and standard error; yield the former, None if it is closed."""
    before = sys.stdout, sys.stderr
    out = None if sys.stdout is None else Guarded(sys.stdout, quiet=False)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout = cast(TextIO, out or Guarded(nowhere, quiet=True))
        sys.stderr = cast(TextIO, Guarded(sys.stderr or nowhere, quiet=True))
        try:
            yield out
        finally:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError):
                    stream.flush()
            sys.stdout, sys.stderr = before


def use_plain_signs() -> None:
    """Let standard output and standard error write x for × where their encoding has no such sign."""
    codecs.register_error("plain-signs", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="plain-signs")


def _plainly(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    sign = error.object[error.start]
    if sign not in PLAIN:
        return codecs.backslashreplace_errors(error)
    return PLAIN[sign], error.start + 1


def hold_closed() -> None:
    """Keep the numbers of closed standard streams from being given to the files that are opened next."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
