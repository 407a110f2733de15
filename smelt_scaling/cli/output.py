"""Data on standard output, talk on standard error, files where asked."""

from __future__ import annotations

import platform
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt_scaling.errors import CAPTIONED, Note, SupportError, UsageError, merge_notes

if TYPE_CHECKING:
    import pandas as pd

    from smelt_scaling.cli.options import Format

__all__ = ["describe_call", "emit", "finish", "hint_lines", "talk", "tell_notes", "wrapped", "writing"]


def emit(text: str) -> None:
    """Write data to standard output."""
    sys.stdout.write(text)
    sys.stdout.flush()


def talk(*lines: str) -> None:
    """Say something to the person at the terminal; never into the data, and quietly to nobody."""
    if lines and sys.stderr is not None:
        print(*lines, sep="\n", file=sys.stderr)


def wrapped(text: str) -> list[str]:
    """Return text as lines of at most 80 columns, but for a name or path that is longer; it stays whole."""
    return textwrap.wrap(text, 80, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def tell_notes(notes: Iterable[Note]) -> None:
    """Write notes to standard error, warnings first."""
    from smelt_scaling.fitting.summary import note_lines

    every = merge_notes(notes)
    for line in note_lines(every):
        talk(line)
    talk(*hint_lines(every))


def hint_lines(notes: Iterable[Note]) -> list[str]:
    """Say where more about a warning is to be had, if there is one."""
    warned = any(note.severity == "warning" for note in notes)
    return ["what to do about a warning: smelt-scaling explain CODE"] if warned else []


@contextmanager
def writing(path: Path, option: str = "-o") -> Iterator[None]:
    """Turn a refusal of the file system into one line."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written ({error.strerror or error}); choose another {option}"
        ) from error


def describe_call(argv: list[str], source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance of a result: the command, what it read, versions, time."""
    from importlib.metadata import PackageNotFoundError, version

    from smelt_scaling.study.provenance import PACKAGES, timestamp

    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # a checkout on the path without an install
            versions[name] = "unknown"
    return {
        "argv": ["smelt-scaling", *argv],
        **source,
        "created": timestamp(),
        "python": platform.python_version(),
        "versions": versions,
    }


def finish(
    command: str,
    frame: pd.DataFrame,
    *,
    form: Format,
    argv: list[str],
    source: Mapping[str, Any],
    notes: Iterable[Note] = (),
    out: Path | None = None,
    strict: bool = False,
    part: str | None = None,
    after: str = "",
) -> None:
    """Show a result in the format asked for, its notes, and its files; then, in a table, what to type next.

    Raises
    ------
    SupportError
        If a row lies outside the runs and ``strict`` is set; then nothing is shown.
    UsageError
        If the files cannot be written.
    """
    from smelt_scaling.analyses import notes_of
    from smelt_scaling.reporting import render_frame

    if strict:
        _require_support(frame)
    every = merge_notes(notes, notes_of(frame))
    provenance = describe_call(argv, source)
    if out is not None:  # before anything is shown: what cannot be written leaves nothing behind
        _write_files(command, frame, out, every, provenance)
    shown = every
    if form.value in ("table", "md", "latex", "html") and "turnover" in frame.attrs:
        shown = tuple(note for note in every if note.code != "turnover")  # a table of its own says it
    text = render_frame(command, frame, form.value, notes=shown, provenance=provenance, part=part)
    if form.value not in ("json", "md", "html"):
        tell_notes(note for note in shown if form.value == "csv" or note.code not in CAPTIONED)
    emit(f"{text}\n{after}\n" if after and form.value == "table" else text)
    if out is not None:
        talk(f"wrote {out / command}.json and .parquet")


def _write_files(
    command: str, frame: pd.DataFrame, out: Path, notes: tuple[Note, ...], provenance: Mapping[str, Any]
) -> None:
    from smelt_scaling.reporting import render_frame
    from smelt_scaling.reporting.raw import write_parquet

    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        record = render_frame(command, frame, "json", notes=notes, provenance=provenance)
        (out / f"{command}.json").write_text(record, encoding="utf-8")
        write_parquet(frame, out / f"{command}.parquet")


def _require_support(frame: pd.DataFrame) -> None:
    from smelt_scaling.reporting.columns import support_text

    unknown = frame["extrapolated"].isna()
    if unknown.any():
        raise SupportError(
            f"{int(unknown.sum())} of {len(frame)} rows: no window of the runs is known, so nothing says that they lie "
            "within it; state it (columns such as C_lo, C_hi beside published coefficients), or drop --strict"
        )
    beyond = frame[frame["extrapolated"].astype(bool)]
    if len(beyond):
        worst = max((item for items in beyond["support"] for item in items), key=lambda item: item["factor"])
        where = support_text([worst]).removeprefix("out_")
        raise SupportError(
            f"{len(beyond)} of {len(frame)} rows lie outside the runs, the farthest in {where}; ask for less, "
            "or drop --strict to see them marked"
        )
