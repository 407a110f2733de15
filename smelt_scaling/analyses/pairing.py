"""Which architecture is compared with which, and the rows of both that belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import counted
from smelt_scaling.analyses.measured import Measured
from smelt_scaling.errors import DataError, Note, UsageError, info, warning

__all__ = ["named", "pair_names", "pair_rows"]


def named(row: Mapping[Any, Any], keys: Iterable[str]) -> str:
    """Say which row it is by its labels, those that are blank left out; numbers that text holds are written short.

    Examples
    --------
    >>> named({"cell": "600M/95%", "horizon": "20000000000.0", "document": "", "bucket": 32.0},
    ...       ["cell", "horizon", "document", "bucket"])
    'cell 600M/95%, horizon 2e+10, bucket 32'
    """
    return ", ".join(f"{name} {_short(row[name])}" for name in keys if row[name] != "")


def _short(label: Any) -> str:
    try:
        number = float(label)
    except ValueError:
        return str(label)
    return f"{number:g}" if len(str(label)) > 6 or not isinstance(label, str) else label


def pair_names(
    names: Iterable[str], target: str | None, reference: str | None, source: str = ""
) -> tuple[str, str, list[Note]]:
    """Settle which architecture is compared with which: target, reference, and a note if nobody said so.

    ``source`` is the table, where the names come from one; otherwise they are those of a study.

    Raises
    ------
    UsageError
        If there is but one architecture, or more than two and either is unnamed, or both are the same.

    Examples
    --------
    >>> pair_names(["smelt", "baseline"], None, None)[:2]
    ('smelt', 'baseline')
    """
    known = list(names)
    ordered = sorted(known, key=lambda name: (name.casefold(), name))
    notes: list[Note] = []
    if len(ordered) < 2:
        if source:
            raise UsageError(
                f"{source}: column arch, one architecture ({ordered[0]}): a comparison needs two; add the rows of the "
                "other, or name the column that tells them apart with --map arch=COLUMN"
            )
        raise UsageError(f"one architecture ({ordered[0]}): a gain compares two; fit a table that holds both")
    if (target is None or reference is None) and len(ordered) > 2:
        raise UsageError(
            f"{len(ordered)} architectures ({', '.join(ordered)}): name both --target and --reference"
        )
    for name in (target, reference):
        if name is not None and name not in known:
            raise UsageError(f"architecture {name!r} is not there; choose from {', '.join(known)}")
    if target is None and reference is None:
        reference, target = ordered
        swapped = f"--reference {quote(target)} --target {quote(reference)}"
        message = f"reference is {reference}, the first by name; the other way round: {swapped}"
        notes.append(info("default_reference", message))
    elif target is None or reference is None:
        other = next(name for name in ordered if name != (target or reference))
        target, reference = target or other, reference or other
    if target == reference:
        raise UsageError(f"target and reference are both {target}: name two architectures")
    return str(target), str(reference), notes


def pair_rows(
    table: Measured, keys: Sequence[str], value: str, target: str, reference: str
) -> tuple[dict[str, NDArray[Any]], list[Note]]:
    """Join the rows of two architectures on their keys.

    Returns
    -------
    columns : dict
        The keys, ``reference`` and ``target`` (values), one entry per pair, and any other column of the reference.
    notes : list of Note
        How many rows have no partner; they are left out.

    Raises
    ------
    DataError
        If no row has a partner.
    """
    import pandas as pd

    keys = [name for name in keys if name in table.columns]
    frame = pd.DataFrame(dict(table.columns))
    sides = [frame[frame["arch"] == name] for name in (reference, target)]
    both = sides[0].merge(sides[1][[*keys, value]], on=keys, suffixes=("", "\0target"))
    if not len(both):
        raise DataError(
            f"{table.source}: no row of {target} has a partner of {reference}: rows pair where {', '.join(keys)} "
            "agree; write those labels alike"
        )
    notes = []
    alone = len(sides[0]) + len(sides[1]) - 2 * len(both)
    if alone:
        lost = (
            sides[0][keys]
            .merge(sides[1][keys], how="outer", indicator=True)
            .query("_merge != 'both'")
            .iloc[0]
        )
        first = named(lost.to_dict(), keys)
        message = (
            f"{table.source}: {counted(alone, 'row')} of one architecture only left out (first: {first})"
        )
        notes.append(warning("unpaired_rows", message, alone))
    columns = {str(name): both[name].to_numpy() for name in both.columns if name != value}
    columns["target"] = columns.pop(f"{value}\0target")
    return columns | {"reference": np.asarray(both[value])}, notes
