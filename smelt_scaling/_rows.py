"""Rows in and out: which rows are finished, decayed runs; every exclusion with a code and a count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._canonical import coded_frame
from smelt_scaling._schema import first_rows
from smelt_scaling.errors import Note, warning

__all__ = ["not_annealed", "without_endpoint"]

Mask = NDArray[np.bool_]
Columns = Mapping[str, NDArray[Any]]

#: States of a run that reached its planned end, case-folded.
FINISHED = frozenset({"", "finished", "complete", "completed", "done", "ok", "success", "succeeded"})
#: Phases of a schedule in which the learning rate has not decayed yet.
STABLE = frozenset({"stable", "constant", "warmup", "warm-up", "plateau", "main", "hot"})
#: A learning rate this far below another one of the same run is a decayed one.
DECAYED = 0.1


def without_endpoint(columns: Columns, source: str) -> tuple[Mask, list[Note]]:
    """Find the rows that are no endpoint whatever else they hold: no finite loss, or an unfinished run.

    Parameters
    ----------
    columns : mapping of str to (n,) array
        Schema columns in file order.
    source : str
        The file, for messages.

    Returns
    -------
    out : (n,) array of bool
        Rows to leave out.
    notes : list of Note
        One per reason.
    """
    unfinished = _unfinished(columns)
    nonfinite = ~np.isfinite(columns["loss"]) & ~unfinished
    diverged = np.zeros(len(nonfinite), dtype=bool)
    if nonfinite.any():
        diverged = _before_divergence(columns, nonfinite) & ~unfinished
    out = unfinished | nonfinite | diverged
    if not out.any():
        return out, []
    missing = _provisional(columns, out)
    notes: list[Note] = []
    if unfinished.any():
        shown = ", ".join(np.unique(columns["status"][unfinished]).tolist()[:4])
        message = f"column status, {first_rows(unfinished)} of unfinished runs ({shown}) left out{missing}"
        notes.append(warning("unfinished", f"{source}: {message}", int(unfinished.sum())))
    if nonfinite.any():
        where = _places(columns, nonfinite)
        message = f"column loss, {first_rows(nonfinite)} without a finite loss left out ({where}){missing}"
        notes.append(warning("nonfinite", f"{source}: {message}", int(nonfinite.sum())))
    if diverged.any():
        message = (
            f"{source}: {first_rows(diverged)} of runs whose last loss is not finite left out "
            f"({_places(columns, diverged)}): the last good row of a diverged run is no endpoint"
        )
        notes.append(warning("diverged", message, int(diverged.sum())))
    return out, notes


def _unfinished(columns: Columns) -> Mask:
    if "status" not in columns:
        return np.zeros(len(columns["loss"]), dtype=bool)
    states, inverse = np.unique(columns["status"], return_inverse=True)
    return np.array([state.casefold() not in FINISHED for state in states.tolist()])[inverse]


def _before_divergence(columns: Columns, nonfinite: Mask) -> Mask:
    """Find rows of a run that ends without a finite loss, unless they are ends of a decay themselves."""
    if not {"run", "D"} <= set(columns):
        return np.zeros(len(nonfinite), dtype=bool)
    names = [name for name in ("arch", "run") if name in columns]
    run = coded_frame(columns, names).groupby(names).ngroup().to_numpy()
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
    names, inverse = np.unique(columns["phase"], return_inverse=True)
    return np.array([name.casefold() in STABLE for name in names.tolist()])[inverse]


def _above_decayed(columns: Columns) -> Mask:
    """Find rows whose learning rate is far above the lowest one of their run or trunk."""
    unit = "trunk" if "trunk" in columns else "run"
    frame = coded_frame(columns, [name for name in ("arch", unit) if name in columns])
    lowest = frame.assign(lr=columns["lr"]).groupby(list(frame.columns))["lr"].transform("min").to_numpy()
    highest = frame.assign(lr=columns["lr"]).groupby(list(frame.columns))["lr"].transform("max").to_numpy()
    return np.asarray((lowest < DECAYED * highest) & (columns["lr"] > 0.5 * highest))


def _text(columns: Columns, name: str) -> list[str]:
    return columns[name].tolist() if name in columns else [""] * len(columns["loss"])


def _labels(columns: Columns) -> tuple[NDArray[np.str_], str]:
    """Name the cell of each row as a reader would, and say what it is."""
    unit = next((name for name in ("cell", "scale", "trunk", "run") if name in columns), "")
    parts = [_text(columns, unit)] if unit else []
    if unit == "scale" and "S" in columns:
        parts.append([f"at S = {value:.3g}" for value in columns["S"].tolist()])
    if "arch" in columns:
        parts.append([f"of {arch}" if unit else arch for arch in _text(columns, "arch")])
    if not parts:
        parts = [["the table"] * len(columns["loss"])]
    return np.array([" ".join(words) for words in zip(*parts, strict=True)]), unit or "architecture"


def _places(columns: Columns, rows: Mask) -> str:
    labels, unit = _labels({name: values[rows] for name, values in columns.items()})
    there = np.unique(labels).tolist()
    return f"{unit} {', '.join(there[:3])}" + (f" and {len(there) - 3} more" if len(there) > 3 else "")


def _provisional(columns: Columns, out: Mask) -> str:
    """Say which cells are lost as a whole; the result is not final before they are there."""
    labels, unit = _labels(columns)
    every, kept = set(labels.tolist()), set(labels[~out].tolist())
    lost = sorted(every - kept)
    if not lost or not kept:
        return ""
    shown = ", ".join(lost[:3]) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")
    return f"; PROVISIONAL: {len(lost)}/{len(every)} {unit}s missing ({shown})"
