"""From a long table as it is to checked columns, with one line per broken rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt_scaling._cells import RawTable, to_numbers, to_text
from smelt_scaling._schema import counted
from smelt_scaling._text import Text
from smelt_scaling.analyses.probes.catalogue import KEY, PROBE_COLUMNS, PROBES
from smelt_scaling.analyses.probes.rules import label_problems, number_problems, value_problems
from smelt_scaling.errors import DataError, Note, UsageError, info, warning
from smelt_scaling.ingest.tidy import read_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Checked", "check_table"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Checked:
    """Rows with a value, and what was said of the others.

    Parameters
    ----------
    frame : DataFrame
        All columns of the schema, and ``top`` and ``spread``; ``chance`` is filled in every row, ``k`` and ``n`` are -1
        where they are absent.
    undefined : DataFrame
        The same of rows without a value.
    notes : tuple of Note
        What was left out, flagged or ignored.
    """

    frame: pd.DataFrame
    undefined: pd.DataFrame
    notes: tuple[Note, ...]


def check_table(
    table: pd.DataFrame | str | Path, mapping: Mapping[str, str] | None, chosen: Iterable[str] | None
) -> Checked:
    """Read a long table, or take a frame, and check it.

    Raises
    ------
    UsageError
        For a name that is no column or no probe.
    DataError
        One line per rule that the table breaks.
    """
    mapping = dict(mapping or {})
    probes = tuple(chosen or ())
    _check_names("--map", mapping, PROBE_COLUMNS, "column of the table of probes")
    _check_names("--probe", probes, PROBES, "probe")
    source, frame, notes = _opened(table, mapping)
    columns, problems, ignored = _columns(frame, source, mapping, probes)
    _refuse(problems)
    clean = _frame(columns)
    if probes:
        clean = clean[clean["probe"].isin(probes)]
    # so that sums are taken in one order, to the last bit
    clean = clean.sort_values(list(KEY), kind="stable", ignore_index=True)
    if not len(clean):
        raise DataError(f"{source}: no row of the probe that --probe names; leave it out to see all")
    problems = [*label_problems(clean, source), *number_problems(clean, source)]
    _refuse(problems)
    _fill(clean, source, problems)
    _refuse(problems)
    if ignored:
        listed = ", ".join(ignored[:8]) + (f" and {len(ignored) - 8} more" if len(ignored) > 8 else "")
        notes = (*notes, info("ignored_columns", f"{source}: not used: {listed}", len(ignored)))
    return _sorted_out(clean, source, notes)


def _check_names(option: str, names: Iterable[str], known: Iterable[str], what: str) -> None:
    for name in names:
        if name not in known:
            near = get_close_matches(name, list(known), n=1, cutoff=0.5)
            fix = f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}"
            raise UsageError(f"{option} {name}: no {what}; {fix}")


def _opened(
    table: pd.DataFrame | str | Path, mapping: Mapping[str, str]
) -> tuple[str, pd.DataFrame, tuple[Note, ...]]:
    if not isinstance(table, str | Path):
        return "table", table, ()
    kinds = {mapping.get(name, name): column.kind for name, column in PROBE_COLUMNS.items()}
    frame, notes = read_table(table, mapping=mapping, kinds=kinds)
    return "<stdin>" if str(table) == "-" else str(table), frame, notes


def _columns(
    frame: pd.DataFrame, source: str, mapping: Mapping[str, str], probes: tuple[str, ...]
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the columns of the schema, what is wrong with them, and which columns were not used."""
    raw = RawTable()
    columns: dict[str, Any] = {}
    if not len(frame):
        raise DataError(f"{source}: no rows: a probe needs measured values; check what wrote the table")
    for name, column in PROBE_COLUMNS.items():
        found = mapping.get(name, name)
        if found in frame.columns:
            missing = frame[found].isna().to_numpy(bool)
            raw.names[name] = name if found == name else f"{name} ({found!r} in the file)"
            columns[name] = (
                _labels(to_text(frame[found], missing)[0])
                if column.kind == "text"
                else to_numbers(frame[found], missing, name, {}, source, raw)
            )
        elif name == "probe" and len(probes) == 1:
            columns[name] = _labels(_alike(probes[0], len(frame)))
        elif column.required or name in mapping:
            fix = " or --probe NAME" if name == "probe" else ""
            raw.problems.append(
                f"{source}: no column {found}: it holds the {column.description}; "
                f"name another with --map {name}=COLUMN{fix} (columns: {', '.join(map(str, frame.columns[:12]))})"
            )
        else:
            empty = column.kind == "text"
            columns[name] = _labels(_alike("", len(frame))) if empty else np.full(len(frame), np.nan)
    used = {mapping.get(name, name) for name in PROBE_COLUMNS}
    return columns, raw.problems, [str(name) for name in frame.columns if name not in used]


def _labels(text: Text) -> pd.Categorical[str]:
    import pandas as pd

    return pd.Categorical.from_codes(text.codes.astype(np.intp), pd.Index(text.names))


def _alike(name: str, rows: int) -> Text:
    return Text(codes=np.zeros(rows, dtype=np.uint8), names=(name,))


def _frame(columns: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(dict(columns))
    frame["row"] = np.arange(1, len(frame) + 1)
    flags = {"true": "yes", "false": "no"}  # as pandas and JSON write them
    if any(str(said).casefold() in flags for said in frame["scaled"].cat.categories):
        text = frame["scaled"].astype(str)
        frame["scaled"] = text.map(lambda said: flags.get(said.casefold(), said)).astype("category")
    for name, absent in (("tokens", 1.0), ("undefined", 0.0), ("unnormalised", 0.0)):
        frame[name] = frame[name].fillna(absent)
    return frame


def _fill(frame: pd.DataFrame, source: str, problems: list[str]) -> None:
    """Compute chance, ceiling and spread of every row by its probe's declaration, and check values against it."""
    for name in ("top", "spread"):
        frame[name] = np.nan
    for name, probe in PROBES.items():
        mine = (frame["probe"] == name).to_numpy()
        if not mine.any():
            continue
        columns = {
            column: frame[column].to_numpy(np.float64)[mine]
            for column, said in PROBE_COLUMNS.items()
            if said.kind == "number"
        }
        given = columns["chance"]
        lacking = [c for c in probe.needs if np.isnan(columns[c][np.isnan(given)]).any()]
        if isinstance(probe.ceiling, str) and probe.ceiling not in lacking:
            lacking += [probe.ceiling] if np.isnan(columns[probe.ceiling]).any() else []
        if lacking:
            problems.append(
                f"{source}: {name}, no {' and '.join(lacking)} in some rows: chance is {probe.chance_words}; "
                "fill the column, or give the column chance"
            )
            continue
        with np.errstate(invalid="ignore", divide="ignore"):
            chance = np.where(np.isnan(given), probe.chance(columns), given)
            spread = probe.spread(columns) if probe.spread else np.full(len(chance), np.nan)
        top = probe.top(columns)
        problems += value_problems(frame, mine, probe, columns, top, source)
        for column, filled in (("chance", chance), ("top", top), ("spread", spread)):
            frame.loc[mine, column] = filled


def _sorted_out(frame: pd.DataFrame, source: str, notes: tuple[Note, ...]) -> Checked:
    certain = (frame["chance"] >= frame["top"]).to_numpy()
    if certain.any():
        count = int(certain.sum())
        notes = (
            *notes,
            info(
                "certain_rows",
                f"{source}: {counted(count, 'row')} left out, where chance is the largest value there is",
                count,
            ),
        )
    absent = frame["value"].isna().to_numpy() & ~certain
    lost = int(frame["tokens"][absent].sum() + frame["undefined"][~certain & ~absent].sum())
    if lost:
        why = "zero vectors, padding, documents too short"
        message = f"{source}: {counted(lost, 'token')} without a value left out ({why})"
        notes = (*notes, warning("undefined_values", message, lost))
    off = int(frame["unnormalised"].sum())
    if off:
        message = (
            f"{source}: {counted(off, 'row')} of attention weights miss a sum of 1 by more than 0.01; kept"
        )
        notes = (*notes, warning("unnormalised_attention", message, off))
    silent = ((frame["probe"] == "write_norm") & (frame["scaled"] == "")).to_numpy()
    if silent.any():
        norms = counted(int(silent.sum()), "write norm")
        message = f"{source}: column scaled does not say whether {norms} hold the factor 1/r"
        notes = (*notes, warning("scale_unstated", message, int(silent.sum())))
    notes = (*notes, *_mixed_scale(frame, source))
    frame[["k", "n"]] = frame[["k", "n"]].fillna(-1.0)  # so that they can name a group
    kept = frame[~certain & ~absent]
    if not len(kept):
        raise DataError(
            f"{source}: column value, none left: all are missing or certain by construction; measure more tokens"
        )
    return Checked(frame=kept.reset_index(drop=True), undefined=frame[absent], notes=notes)


def _mixed_scale(frame: pd.DataFrame, source: str) -> list[Note]:
    """Note write norms of which some hold the factor 1/r: a mean over both is neither."""
    said = frame["scaled"][frame["probe"] == "write_norm"]
    held, bare = int((said == "yes").sum()), int((said == "no").sum())
    if not held or not bare:
        return []
    message = f"{source}: column scaled, {held} write norms hold the factor 1/r and {bare} do not: a mean is of neither"
    return [warning("mixed_scale", message, min(held, bare))]


def _refuse(problems: list[str]) -> None:
    if problems:
        raise DataError("\n".join(problems))
