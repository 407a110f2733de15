"""Rows in and out: which rows are finished, decayed runs; every exclusion with a code and a count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._groups import group_rows
from smelt_scaling._schema import first_rows
from smelt_scaling._text import Text
from smelt_scaling.errors import Note, warning

__all__ = ["not_annealed", "without_endpoint"]

Mask = NDArray[np.bool_]
Columns = Mapping[str, Any]

#: States of a run that reached its planned end, case-folded.
FINISHED = frozenset({"", "finished", "complete", "completed", "done", "ok", "success", "succeeded"})
#: Phases of a schedule in which the learning rate has not decayed yet.
STABLE = frozenset({"stable", "constant", "warmup", "warm-up", "plateau", "main", "hot"})
#: A learning rate this far below another one of the same run is a decayed one.
DECAYED = 0.1


def without_endpoint(
    columns: Columns, source: str, *, include_unfinished: bool = False
) -> tuple[Mask, list[Note]]:
    """Find the rows that are no endpoint whatever else they hold: no finite loss, or an unfinished run.

    Parameters
    ----------
    columns : mapping of str to (n,) array or Text
        Schema columns in file order.
    source : str
        The file, for messages.
    include_unfinished : bool
        Keep rows of unfinished runs; all that is made from them is provisional then.

    Returns
    -------
    out : (n,) array of bool
        Rows to leave out.
    notes : list of Note
        One per reason.
    """
    begun = _unfinished(columns)
    unfinished = np.zeros_like(begun) if include_unfinished else begun
    nonfinite = ~np.isfinite(columns["loss"]) & ~unfinished
    diverged = np.zeros(len(nonfinite), dtype=bool)
    if nonfinite.any():
        diverged = _before_divergence(columns, nonfinite) & ~unfinished
    out = unfinished | nonfinite | diverged
    notes: list[Note] = []
    if unfinished.any():
        states = _states(columns, unfinished)
        message = f"column status, {first_rows(unfinished)} of unfinished runs ({states}) left out"
        notes.append(warning("unfinished", f"{source}: {message}", int(unfinished.sum())))
    if nonfinite.any():
        where = _places(columns, nonfinite)
        message = f"column loss, {first_rows(nonfinite)} without a finite loss left out ({where})"
        notes.append(warning("nonfinite", f"{source}: {message}", int(nonfinite.sum())))
    if diverged.any():
        message = (
            f"{source}: {first_rows(diverged)} of runs whose last loss is not finite left out "
            f"({_places(columns, diverged)}): the last good row of a diverged run is no endpoint"
        )
        notes.append(warning("diverged", message, int(diverged.sum())))
    return out, notes + _provisional(columns, source, out, unfinished, begun & ~out)


def _states(columns: Columns, rows: Mask) -> str:
    return ", ".join(columns["status"][rows].present()[:4])


def _unfinished(columns: Columns) -> Mask:
    if "status" not in columns:
        return np.zeros(len(columns["loss"]), dtype=bool)
    status: Text = columns["status"]
    return status.where(lambda state: state.casefold() not in FINISHED)


def _before_divergence(columns: Columns, nonfinite: Mask) -> Mask:
    """Find rows of a run that ends without a finite loss, unless they are ends of a decay themselves."""
    if not {"run", "D"} <= set(columns):
        return np.zeros(len(nonfinite), dtype=bool)
    names = [name for name in ("arch", "run") if name in columns]
    run = group_rows(columns, names).number()
    tokens = np.where(np.isnan(columns["D"]), np.inf, columns["D"])
    ended = np.full(run.max() + 1, -np.inf)
    np.maximum.at(ended, run[nonfinite], tokens[nonfinite])
    # a run that goes on afterwards has not diverged
    goes_on = np.zeros(len(ended), dtype=bool)
    goes_on[run[~nonfinite & (tokens > ended[run])]] = True
    found = ~nonfinite & (tokens < ended[run]) & ~goes_on[run]
    return np.asarray(found & _stable(columns) if "phase" in columns else found)


def not_annealed(columns: Columns, source: str) -> tuple[Mask, list[Note]]:
    """Find rows at a learning rate that had still to decay, beside rows at one that had.

    Parameters
    ----------
    columns, source
        As for `without_endpoint`; the rows kept so far.
    """
    n = len(columns["loss"])
    out = np.zeros(n, dtype=bool)
    if "phase" in columns:
        stable = _stable(columns)
        if stable.any() and not stable.all():
            out = stable
            which = "column phase"
        elif stable.all():
            message = (
                f"{source}: column phase, all {n} rows are of a stable phase: kept, but no loss is a final one; "
                "add the rows after the decay"
            )
            return out, [warning("not_annealed", message, n)]
    elif "lr" in columns and ("run" in columns or "trunk" in columns):
        out = _above_decayed(columns)
        which = "column lr"
    if not out.any():
        return out, []
    message = (
        f"{source}: {which}, {first_rows(out)} not annealed left out ({_places(columns, out)}): "
        "an endpoint is measured after the learning rate decayed"
    )
    return out, [warning("not_annealed", message, int(out.sum()))]


def _stable(columns: Columns) -> Mask:
    phase: Text = columns["phase"]
    return phase.where(lambda name: name.casefold() in STABLE)


def _above_decayed(columns: Columns) -> Mask:
    """Find rows whose learning rate is far above the lowest one of their run or trunk."""
    unit = "trunk" if "trunk" in columns else "run"
    groups = group_rows(columns, [name for name in ("arch", unit) if name in columns])
    run = groups.number()
    lowest, highest = groups.over(np.fmin, columns["lr"])[run], groups.over(np.fmax, columns["lr"])[run]
    return np.asarray((lowest < DECAYED * highest) & (columns["lr"] > 0.5 * highest))


def _labels(columns: Columns) -> tuple[Text, str]:
    """Name the cell of each row as a reader would, and say what it is."""
    unit = next((name for name in ("cell", "scale", "trunk", "run") if name in columns), "")
    forms = {unit: "{}"} if unit else {}
    if unit == "scale" and "S" in columns:
        forms["S"], columns = "at S = {:.3g}", {**columns, "S": columns["S"] + 0.0}  # -0.0 is no other cell
    if "arch" in columns:
        forms["arch"] = "of {}" if unit else "{}"
    if not forms:
        forms, columns = {"": "{}"}, {"": Text.of(["the table"] * len(columns["loss"]))}
    groups = group_rows(columns, forms)
    words = [[form.format(columns[name][row]) for name, form in forms.items()] for row in groups.firsts()]
    return Text.coded(groups.number(), [" ".join(parts) for parts in words]), unit or "architecture"


def _places(columns: Columns, rows: Mask) -> str:
    labels, unit = _labels({name: values[rows] for name, values in columns.items()})
    there = labels.present()
    return f"{unit} {', '.join(there[:3])}" + (f" and {len(there) - 3} more" if len(there) > 3 else "")


def _provisional(columns: Columns, source: str, out: Mask, unfinished: Mask, kept: Mask) -> list[Note]:
    """Say what makes every result provisional: cells without endpoints or with fewer, or unfinished runs kept."""
    parts, count = [], int(kept.sum())
    if count:
        parts.append(
            f"{first_rows(kept)} of unfinished runs ({_states(columns, kept)}) kept as if they were endpoints "
            "(--include-unfinished)"
        )
    if out.any() and not out.all():
        labels, unit = _labels(columns)
        every, left = set(labels.present()), set(labels[~out].present())
        missing, fewer = sorted(every - left), sorted(set(labels[unfinished].present()) & left)
        for cells, what in ((missing, "missing"), (fewer, "with unfinished runs left out")):
            if cells:
                parts.append(f"{len(cells)}/{len(every)} {unit}s {what} ({_listed(cells)})")
                count += len(cells)
    if not parts:
        return []
    return [warning("provisional", f"{source}: PROVISIONAL: {'; '.join(parts)}", count)]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
