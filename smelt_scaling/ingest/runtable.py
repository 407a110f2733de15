"""The table of runs: what the logs do not say, joined by the name of the run; nothing is matched by guess."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from smelt_scaling._cells import human_number
from smelt_scaling._schema import counted
from smelt_scaling.errors import IngestError, Note, UsageError, info
from smelt_scaling.ingest.events import FACTS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RunTable", "check_pattern", "named_by", "read_run_table", "run_template"]

Values = dict[str, float | str]

#: Facts that are written like a column of the endpoint schema: 2.1B tokens.
_LIKE = dict.fromkeys(("planned_tokens", "tokens_per_step", "start_tokens"), "D")
#: Facts that an endpoint needs and few logs state.
_NEEDED = ("arch", "scale", "F", "S", "N", "tokens_per_step", "planned_tokens")


@dataclass(frozen=True, kw_only=True)
class RunTable:
    """Facts by the name that a run has in the logs.

    Parameters
    ----------
    source : str
        The file.
    run : mapping of str to str
        Name in the logs -> name of the run; several pieces may be one run.
    facts : mapping of str to mapping
        Name in the logs -> facts.
    notes : tuple of Note
        What had to be interpreted.
    """

    source: str
    run: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Values] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def read_run_table(path: str | Path) -> RunTable:
    """Read a table of runs.

    Parameters
    ----------
    path : str or pathlib.Path
        A table with a column ``run`` (the name of the run), optionally ``log`` (its name in the logs, where that
        differs or several pieces make one run), and any of `FACTS`. Empty cells say nothing.

    Returns
    -------
    RunTable
        By name in the logs.

    Raises
    ------
    IngestError
        If a column is unknown, a number is none, or a name comes twice.
    """
    from smelt_scaling.ingest.tidy import read_table

    source = str(path)
    frame, notes = read_table(path)
    unknown = [str(name) for name in frame.columns if name not in FACTS and name not in ("run", "log")]
    if "run" not in frame or unknown:
        what, fix = (
            ("no column run", "add it")
            if "run" not in frame
            else (f"column {unknown[0]} is unknown", "drop it")
        )
        columns = "run, log, arch, F, N, S, tokens_per_step and more, which --runs-template writes"
        raise IngestError(f"{source}: {what}: a table of runs has {columns}; {fix}, or rename it")
    table = [{str(name): _written(cell) for name, cell in row.items()} for row in frame.to_dict("records")]
    facts: dict[str, Values] = {}
    run: dict[str, str] = {}
    human: dict[str, int] = {}
    for number, row in enumerate(table, 1):
        name = row.get("log") or row["run"]
        if not name or name in facts:
            what = f"{name} comes again" if name else "no name of a run"
            raise IngestError(f"{source}: row {number}: {what}: one row for each name in the logs")
        run[name] = row["run"] or name
        facts[name] = {key: _fact(key, row[key], source, number) for key in FACTS if row.get(key)}
        for key, value in facts[name].items():
            if not isinstance(value, str) and not _is_plain(row[key]):
                human[key] = human.get(key, 0) + 1
    parsed = [info("parsed_numbers", _parsed(source, key, count), count) for key, count in human.items()]
    return RunTable(source=source, run=run, facts=facts, notes=(*notes, *parsed))


def _is_plain(text: str) -> bool:
    """Whether a number is written as programs write them."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parsed(source: str, key: str, count: int) -> str:
    how = "with a suffix or thousands separators read as numbers"
    return f"{source}: column {key}, {counted(count, 'cell')} {how}"


def _written(cell: object) -> str:
    """Return a cell as text; a missing one, and a number without a fraction, as a person would write them."""
    if cell is None or cell != cell:
        return ""
    return f"{cell:.0f}" if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def _fact(name: str, text: str, source: str, row: int) -> float | str:
    if FACTS[name][0] is str:
        return text
    number = human_number(text, _LIKE.get(name, name))
    if number is None or not math.isfinite(number) or (name == "S" and not number < 1):
        rule, such = (
            ("a fraction below 1", "0.95 or 95%") if name == "S" else ("a finite number", "6.1e8 or 1.2B")
        )
        raise IngestError(
            f"{source}: column {name}, row {row}: {text[:40]!r} is not {rule}; write one, such as {such}"
        )
    return number


def check_pattern(pattern: str) -> re.Pattern[str]:
    r"""Compile a pattern for names of runs; its named groups are facts, ``run`` and ``branch``.

    Raises
    ------
    UsageError
        If it is no regular expression, or a group is no fact.

    Examples
    --------
    >>> sorted(check_pattern(r"(?P<run>.*)-part\d+").groupindex)
    ['run']
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"--run-pattern {pattern!r} is no regular expression ({error}); correct it"
        ) from error
    unknown = [name for name in compiled.groupindex if name not in FACTS and name not in ("run", "branch")]
    if unknown or not compiled.groupindex:
        what = (
            f"group {unknown[0]} is unknown" if unknown else "it names no group, like (?P<run>.*)-part[0-9]+"
        )
        raise UsageError(
            f"--run-pattern {pattern!r}: {what}; groups are run, branch, and columns of a table of runs "
            "such as arch, scale, S"
        )
    return compiled


def named_by(pattern: re.Pattern[str], name: str) -> tuple[str, str, Values]:
    """Return what the name of a run says: (run, branch, facts).

    Raises
    ------
    IngestError
        If the pattern does not match it.

    Examples
    --------
    >>> named_by(check_pattern("(?P<arch>[a-z]+)-(?P<scale>[0-9]+M)"), "smelt-200M")
    ('smelt-200M', '', {'arch': 'smelt', 'scale': '200M'})
    """
    match = pattern.fullmatch(name)
    if match is None:
        raise IngestError(
            f"run {name}: its name does not match --run-pattern {pattern.pattern!r}; widen the pattern"
        )
    said = {key: text for key, text in match.groupdict().items() if text}
    facts = {key: _fact(key, text, f"run {name}", 1) for key, text in said.items() if key in FACTS}
    return said.get("run", name), said.get("branch", ""), facts


def run_template(names: Iterable[str], facts: Mapping[str, Values]) -> pd.DataFrame:
    """Return the skeleton of a table of runs: what the logs say filled in, the rest empty.

    Parameters
    ----------
    names : iterable of str
        Names in the logs.
    facts : mapping of str to mapping
        What the logs say of each.

    Returns
    -------
    DataFrame
        ``run`` and the facts that an endpoint needs, or that some log states.
    """
    import pandas as pd

    stated = {name for values in facts.values() for name in values}
    columns = [name for name in FACTS if name in stated or name in _NEEDED]
    rows = [{"run": name, **{key: facts.get(name, {}).get(key, "") for key in columns}} for name in names]
    return pd.DataFrame(rows, columns=["run", *columns])
