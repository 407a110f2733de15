"""The caveats of a study's data and resampling, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._schema import NATS, counted
from smelt_scaling._together import apart
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, info, warning
from smelt_scaling.fitting import FitSettings
from smelt_scaling.laws import AdditiveLaw
from smelt_scaling.resampling.measured import coverage_words
from smelt_scaling.study.model import Bootstrap

__all__ = ["answered", "measured_apart", "row_note", "study_notes", "why_not_by_row"]

Labels = NDArray[np.str_]

#: How far a table's own FLOPs per token may be from flops_per_param * N without a word.
FLOPS_TOLERANCE = 0.1


def answered(notes: Iterable[Note], settings: FitSettings) -> list[Note]:
    """Leave out caveats of the table that a setting of the fit has dealt with."""
    dealt_with = {"repeated_data"} if settings.data_law == "repeated" else set()
    return [note for note in notes if note.code not in dealt_with]


def study_notes(
    law: AdditiveLaw,
    endpoints: Endpoints,
    settings: FitSettings,
    bootstrap: Bootstrap,
    labels: Mapping[str, Labels],
) -> list[Note]:
    """Return the notes that belong to no single architecture."""
    notes: list[Note] = []
    if "S" in law.columns and "S" not in endpoints:
        notes.append(info("sparsity_absent", "no column S: every row is taken as S = 0", len(endpoints)))
    if "F" not in law.columns and {"N", "N_act"} & set(law.columns):
        rule = f"F = {settings.flops_per_param:g} N, C = F D (--flops-per-param)"
        notes.append(info("flops_per_param", f"law {law.name} is in parameters: {rule}"))
        notes += _own_flops(law, endpoints, settings)
    if settings.data_law == "repeated":
        message = (
            f"tokens are counted by what they are worth if seen once, U + U R (1 - exp(-(D/U - 1)/R)) with "
            f"R = {settings.repeat_constant:g} (--data-law repeated): every D, D* too, is of fresh tokens; "
            "C of the runs is what was spent"
        )
        notes.append(info("effective_tokens", message, len(endpoints)))
    if bootstrap.unit == "row" and bootstrap.status != "refused":
        notes.append(row_note(endpoints, "are"))
    if bootstrap.status == "refused":
        notes.append(warning("bootstrap_refused", f"no bootstrap interval: {bootstrap.reason}"))
    notes += measured_apart(endpoints)
    notes += _pairing(bootstrap, labels)
    notes += _draws(bootstrap, len(labels))
    notes += _coverage(settings)
    return notes


def why_not_by_row(endpoints: Endpoints) -> str:
    """Say why single rows may not be resampled unasked: they seem to be of runs that repeat; empty if they may."""
    column = endpoints.intake.runs_unread if endpoints.intake else ""
    if not column:
        return ""
    return (
        f"rows of one run are no independent runs, and column {column} seems to name runs but is not read: name it "
        f"with --map run={column.partition(' (')[0]}, or ask for single rows with --resample row"
    )


def row_note(endpoints: Endpoints, verb: str) -> Note:
    """Say that single rows are resampled, and what they may share."""
    named = endpoints.cells()[1]
    if named != "row":
        labels = len(np.unique(endpoints.cells()[0]))
        message = (
            f"single rows {verb} resampled, as asked for, though {len(endpoints)} rows are of "
            f"{counted(labels, f'{named} label')}: rows of one {named} go together, so intervals are too narrow"
        )
    elif endpoints.intake and endpoints.intake.runs_unread:
        message = (
            f"single rows {verb} resampled, as asked for, though {endpoints.intake.runs_unread} seems to name runs: if "
            "it does, intervals are too narrow"
        )
    else:
        message = (
            f"no column cell, scale, trunk or run: single rows {verb} resampled; if several rows share a run, name it "
            "with --map run=COLUMN"
        )
    return warning("row_resampling", message, len(endpoints))


def _coverage(settings: FitSettings) -> list[Note]:
    """Say so where percentile intervals of the chosen objective are known to cover less than their level."""
    chosen = {"delta auto": settings.delta == "auto", "delta inf": settings.delta == float("inf")}
    return [
        warning("interval_coverage", f"percentile intervals of --{choice} {coverage_words(choice)}")
        for choice, holds in chosen.items()
        if holds
    ]


def _own_flops(law: AdditiveLaw, endpoints: Endpoints, settings: FitSettings) -> list[Note]:
    """Compare the table's own FLOPs per token with what a law in parameters takes them to be."""
    size = next(name for name in ("N", "N_act") if name in law.columns)
    if "F" not in endpoints:
        return []
    ratio = endpoints.F / (settings.flops_per_param * endpoints[size])
    medians = {arch: float(np.median(ratio[endpoints.arch == arch])) for arch in endpoints.archs}
    if all(abs(value - 1) <= FLOPS_TOLERANCE for value in medians.values()):
        return []
    shown = ", ".join(f"{value:.2f} for {arch}" for arch, value in medians.items())
    message = (
        f"the table's own F is not {settings.flops_per_param:g} {size} (ratio {shown}): budgets and gains of "
        f"law {law.name} count other FLOPs; use a law in F"
    )
    return [warning("flops_mismatch", message, len(endpoints))]


def measured_apart(endpoints: Endpoints) -> list[Note]:
    """Say so when the losses of different architectures are not comparable."""
    named = {arch: rows.measured_on for arch, rows in endpoints.by_arch().items()}
    found = {name for one, other in combinations(named.values(), 2) for name in apart(one, other)}
    notes = []
    for column in sorted(found):
        values = {
            arch: of.get(column, (NATS,))[0]
            for arch, of in named.items()
            if column in of or column == "loss_unit"
        }
        shown = ", ".join(f"{value} for {arch}" for arch, value in values.items())
        message = f"losses are of different {column} ({shown}): no gain between these is given unasked"
        notes.append(warning("incomparable_losses", message, len(values)))
    return notes


def _pairing(bootstrap: Bootstrap, labels: Mapping[str, Labels]) -> list[Note]:
    if len(labels) < 2:
        return []
    unit = bootstrap.unit
    if not bootstrap.paired:
        return [warning("unpaired", f"the architectures share no {unit} label: resampled independently")]
    sets = [set(values.tolist()) for values in labels.values()]
    unmatched = sorted(set.union(*sets) - set.intersection(*sets))
    if not unmatched:
        return []
    shown = ", ".join(unmatched[:3]) + (", ..." if len(unmatched) > 3 else "")
    message = f"{counted(len(unmatched), f'{unit} label')} not in every architecture ({shown}); kept"
    return [warning("unmatched_cells", message, len(unmatched))]


def _draws(bootstrap: Bootstrap, architectures: int) -> list[Note]:
    notes: list[Note] = []
    of = f"of {bootstrap.replicates}"
    if bootstrap.degenerate and bootstrap.status == "ok":
        message = (
            f"{bootstrap.degenerate} {of} resamples cannot identify every parameter; kept, "
            "holding the unidentified ones at the full-data value"
        )
        notes.append(info("degenerate_draws", message, bootstrap.degenerate))
    if bootstrap.certified_share is not None and bootstrap.certified_share < 1:
        count = round((1 - bootstrap.certified_share) * bootstrap.replicates * architectures)
        notes.append(
            warning("uncertified_draws", f"{counted(count, 'replicate fit')} not certified; kept", count)
        )
    for arch, counts in bootstrap.at_bound.items():
        for name, count in counts.items():
            message = f"{arch}: {name} ended on its bound in {count} {of} replicates; kept"
            notes.append(info("draws_at_bound", message, count))
    return notes
