"""Read logs of any known format and keep what endpoints are chosen from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from smelt_scaling._schema import counted
from smelt_scaling.errors import IngestError, UsageError
from smelt_scaling.ingest.condense import Condenser, Segment
from smelt_scaling.ingest.events import Flaw
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers import READERS
from smelt_scaling.ingest.runtable import check_pattern, named_by, run_template
from smelt_scaling.ingest.sources import Source, find_sources

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Progress", "ScannedLogs", "scan_logs"]

Progress = Callable[[int, int, str], None]
#: Files named one by one where many have the same trouble.
MOST_PROBLEMS = 20
Facts = dict[str, float | str]


@dataclass(frozen=True, kw_only=True, eq=False)
class ScannedLogs:
    """What a set of logs holds, before any choice."""

    keys: Keys
    segments: tuple[Segment, ...]
    flaws: tuple[tuple[str, Flaw], ...]
    readers: Mapping[str, str]
    unread: tuple[str, ...]
    unreadable: tuple[str, ...] = ()

    @property
    def facts(self) -> dict[str, Facts]:
        """What the logs say of each run, by its name in them."""
        facts: dict[str, Facts] = {}
        for segment in self.segments:
            facts.setdefault(segment.run, {}).update(segment.facts)
        return facts

    @cached_property
    def sampled(self) -> frozenset[str]:
        """Files that hold a sample of the rows."""
        return frozenset(path for path, flaw in self.flaws if flaw.code == "sampled_history")

    def template(self, run_pattern: str | None = None) -> pd.DataFrame:
        """Return the skeleton of a table of runs, with what a pattern reads off their names."""
        if run_pattern is None:
            return run_template(sorted(self.facts), self.facts)
        pattern, facts = check_pattern(run_pattern), dict[str, Facts]()
        for name, stated in self.facts.items():
            run, _, said = named_by(pattern, name)
            facts.setdefault(run, {}).update({**stated, **said})
        return run_template(sorted(facts), facts)


def scan_logs(
    paths: Sequence[str | Path],
    *,
    mapping: Mapping[str, str] | None = None,
    families: Mapping[str, str] | None = None,
    reader: str | None = None,
    skip_unreadable: bool = False,
    progress: Progress | None = None,
) -> ScannedLogs:
    """Read logs and keep what endpoints are chosen from; memory does not grow with the rows.

    Parameters
    ----------
    paths : sequence of str or pathlib.Path
        Files, globs, folders.
    mapping : mapping of str to str, optional
        Role -> key of the logs: ``{"loss": "eval/loss"}``.
    families : mapping of str to str, optional
        Name -> pattern of keys, such as ``{"domains": "eval/paloma/*/loss"}``.
    reader : str, optional
        A name of `READERS`, to read every file so; by default each file is recognised by its content.
    skip_unreadable : bool
        Whether logs that cannot be read (damaged, or of jobs that died before their first row) are left out and listed,
        and do not stop the reading.
    progress : callable, optional
        Called with (bytes done, bytes in all, path).

    Returns
    -------
    ScannedLogs
        Segments, facts and flaws.

    Raises
    ------
    IngestError
        With one line per file that cannot be read, or if no file is a log.
    UsageError
        If a role or a format is unknown.
    """
    if reader is not None and reader not in READERS:
        raise UsageError(f"--reader {reader}: no such format; there are {', '.join(READERS)}")
    keys = Keys(named=dict(mapping or {}), families=tuple((families or {}).values()))
    sources = find_sources(paths)
    condenser = Condenser(keys=keys)
    names: dict[str, str] = {}
    problems: list[str] = []
    unread: list[str] = []
    total, done = sum(source.size for source in sources), 0
    for source in sources:
        if progress is not None:
            progress(done, total, source.path)
        try:
            name = reader or _recognised(source)
            if name is None:
                unread.append(source.path)
            else:
                watched = source if progress is None else _watched(source, progress, done, total)
                condenser.take(source.path, READERS[name].read(watched, keys))
                names[source.path] = name
        except IngestError as error:
            problems.append(str(error))
        done += source.size
    if progress is not None:
        progress(total, total, "")
    if problems and not (skip_unreadable and condenser.segments):
        raise IngestError(_problems(problems))
    if not condenser.segments:
        raise IngestError(_no_log(sources, unread))
    return ScannedLogs(
        keys=keys,
        segments=tuple(condenser.segments),
        flaws=tuple(condenser.flaws),
        readers=names,
        unread=tuple(unread),
        unreadable=tuple(problems),
    )


def _watched(source: Source, progress: Progress, done: int, total: int) -> Source:
    """Report bytes as they are read, no more than there are: some formats are gone over twice."""
    read = 0

    def more(count: int) -> None:
        nonlocal read
        read = min(read + count, source.size)
        progress(done + read, total, source.path)

    return replace(source, progress=more)


def _problems(problems: Sequence[str]) -> str:
    """Return a line per file that cannot be read, the first of very many, and what to do about dead jobs."""
    lines = list(problems[:MOST_PROBLEMS])
    if len(problems) > MOST_PROBLEMS:
        lines.append(f"and {len(problems) - MOST_PROBLEMS} more files that cannot be read")
    if len(problems) > 1:
        lines.append(
            f"{len(problems)} files cannot be read; leave them out by name, or all of them with --skip-unreadable"
        )
    return "\n".join(lines)


def _recognised(source: Source) -> str | None:
    head = source.head()
    return next((name for name, reader in READERS.items() if head and reader.sniff(head, source.path)), None)


def _no_log(sources: Sequence[Source], unread: Sequence[str]) -> str:
    first = unread[0] if unread else sources[0].path
    more = f" (nor {counted(len(unread) - 1, 'other file')})" if len(unread) > 1 else ""
    return (
        f"{first}: no log of a known format{more}, or one without a step: export it as CSV or JSON lines with a column "
        "step, or name its format with --reader"
    )
