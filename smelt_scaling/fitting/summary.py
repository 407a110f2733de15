"""A fit as text: one column per architecture, one line per quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smelt_scaling._schema import counted
from smelt_scaling.errors import Note
from smelt_scaling.fitting.result import FitResult
from smelt_scaling.formatting import WIDTH, fold, format_interval, format_number, format_quantity

__all__ = ["certificate_text", "convention_lines", "fit_lines", "note_lines", "state_of"]

Intervals = Mapping[str, Mapping[str, tuple[float, float]]]


def fit_lines(
    fits: Sequence[FitResult],
    intervals: Intervals | None = None,
    extra: Mapping[str, Mapping[str, float]] | None = None,
) -> list[str]:
    """Return the lines of a table of fits.

    Parameters
    ----------
    fits : sequence of FitResult
        Fits of one law.
    intervals : mapping, optional
        Architecture -> quantity -> (lo, hi).
    extra : mapping, optional
        Quantity -> architecture -> value: rows to add below the coefficients, such as gamma.
    """
    law = fits[0].surface.law
    rows: list[tuple[str, list[str]]] = [("", [fit.arch for fit in fits])]
    for name in law.parameters:
        rows.append(
            (name, [_coefficient(fit, name, (intervals or {}).get(fit.arch, {}).get(name)) for fit in fits])
        )
    for name, values in (extra or {}).items():
        rows.append(
            (
                name,
                [_with_interval(values[f.arch], (intervals or {}).get(f.arch, {}).get(name)) for f in fits],
            )
        )
    rows += [
        ("rmse", [f"{format_number(fit.rmse, 3)} {fit.loss_unit}" for fit in fits]),
        *_rmse_of_sparse(fits),
        ("endpoints", [f"{fit.n} in {counted(fit.n_cells, 'label')}" for fit in fits]),
        ("certificate", [certificate_text(fit) for fit in fits]),
        ("condition", [format_number(fit.certificate.condition, 2) for fit in fits]),
    ]
    for name, unit in (("C", "FLOPs"), ("F", "FLOPs/token"), ("D", "tokens")):
        if all(name in fit.window for fit in fits):
            rows.append((f"window {name}", [_window(fit.window[name], unit) for fit in fits]))
    return _layout(rows)


def convention_lines(fits: Sequence[FitResult]) -> list[str]:
    """Return the table of exponents under every count of parameters; empty where there is one count only."""
    rows = [["", "", "alpha", "beta", "E", "a"]]
    for fit in fits:
        for one in fit.conventions:
            numbers = (one.alpha, one.beta, one.E, one.allocation)
            count = f"{one.parameters} (used)" if one.used else one.parameters
            rows.append([fit.arch, count, *(format_number(x) for x in numbers)])
    if len(rows) == 1:
        return []
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return ["exponents by count of parameters, and a of N* ~ C^a:", *lines]


def note_lines(notes: Sequence[Note]) -> list[str]:
    """Return notes as wrapped lines, warnings marked."""
    import textwrap

    lines: list[str] = []
    for note in notes:
        mark = "warning" if note.severity == "warning" else "note"
        lines += textwrap.wrap(
            f"{mark} [{note.code}] {note.message}",
            WIDTH,
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines


def state_of(fit: FitResult, name: str) -> str:
    """Return what became of a parameter: "fitted", "held", "at bound" or "not identified"."""
    if name in fit.unidentified and name != fit.surface.law.floor:
        return "not identified"
    if name in fit.pinned:
        return "held"
    return "at bound" if name in fit.certificate.at_bounds else "fitted"


def certificate_text(fit: FitResult) -> str:
    """Return the status of a fit and how many starts agree on it."""
    certificate = fit.certificate
    agreeing = f"{certificate.starts_agreeing}/{certificate.starts}"
    if certificate.certified:
        return f"certified, {agreeing} starts"
    return f"{certificate.status.name.lower().replace('_', ' ')} ({agreeing} starts agree)"


def _rmse_of_sparse(fits: Sequence[FitResult]) -> list[tuple[str, list[str]]]:
    values = [fit.rmse_without_lowest_tier for fit in fits]
    if all(value is None for value in values):
        return []
    shown = [
        "none" if value is None else f"{format_number(value, 3)} {fit.loss_unit}"
        for value, fit in zip(values, fits, strict=True)
    ]
    return [("  no S=0", shown)]


def _coefficient(fit: FitResult, name: str, interval: tuple[float, float] | None) -> str:
    state = state_of(fit, name)
    if state == "not identified":
        return state
    value = fit.surface.coefficients[name]
    if state != "fitted":
        return f"{format_number(value)} ({state})"
    return _with_interval(value, interval)


def _with_interval(value: float, interval: tuple[float, float] | None) -> str:
    shown = format_number(value)
    return shown if interval is None else f"{shown} {format_interval(*interval, 'number', digits=3)}"


def _window(bounds: tuple[float, float], unit: str) -> str:
    return f"{format_quantity(bounds[0])} to {format_quantity(bounds[1])} {unit}"


def _layout(rows: list[tuple[str, list[str]]]) -> list[str]:
    """Architectures side by side where they fit in `WIDTH`, one below the other otherwise."""
    head = max(len(name) for name, _ in rows) + 2
    heads = [fold(name, WIDTH - head) for name in rows[0][1]]  # names of architectures may be long
    tallest = max(map(len, heads))
    padded = [[*lines, *[""] * (tallest - len(lines))] for lines in heads]
    rows = [*(("", [lines[i] for lines in padded]) for i in range(tallest)), *rows[1:]]
    widths = [max(len(cells[j]) for _, cells in rows) + 3 for j in range(len(rows[0][1]))]
    groups: list[list[int]] = [[]]
    for j, width in enumerate(widths):
        if groups[-1] and head + sum(widths[k] for k in groups[-1]) + width > WIDTH:
            groups.append([])
        groups[-1].append(j)
    lines: list[str] = []
    for number, group in enumerate(groups):
        lines += [""] * (number > 0)
        for name, cells in rows:
            lines.append((name.ljust(head) + "".join(cells[j].ljust(widths[j]) for j in group)).rstrip())
    return lines
