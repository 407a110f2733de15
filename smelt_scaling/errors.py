"""Exceptions, notes and statuses: everything the library says when a number is refused or needs a caveat.

An exception means "no number"; a note means "a number, and this is what you must know about it". The library never
prints, logs or warns: results carry their notes, and the command line decides how to show them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "NOTE_CODES",
    "DataError",
    "FitError",
    "FrontierError",
    "IngestError",
    "Note",
    "SmeltScalingError",
    "StudyError",
    "SupportError",
    "UsageError",
    "info",
    "merge_notes",
    "warning",
]


class SmeltScalingError(Exception):
    """Root of the errors a user can cause and mend; ``exit_code`` is what the command line ends with."""

    exit_code = 3


class UsageError(SmeltScalingError):
    """An argument that no data could make valid: an unknown law, a negative budget, an unnamed reference."""

    exit_code = 2


class DataError(SmeltScalingError):
    """A table whose values, columns or units break a rule of the endpoint schema."""


class IngestError(SmeltScalingError):
    """A file that cannot be read as the format it claims to be."""


class StudyError(SmeltScalingError):
    """A study folder that is missing, incomplete or written by a newer version."""


class FitError(SmeltScalingError):
    """A fit that cannot be made: too few endpoints, or nothing left to estimate."""

    exit_code = 4


class FrontierError(SmeltScalingError):
    """A frontier quantity the surface does not define: no interior optimum, or an unidentified coefficient."""

    exit_code = 4


class SupportError(FrontierError):
    """A quantity outside the support of the design, when the user asked to be strict about it."""

    exit_code = 5


#: Every note code and what it means, in the order in which a reader meets them. Codes are API.
NOTE_CODES: dict[str, str] = {
    # endpoints
    "ignored_columns": "Columns that are not part of the endpoint schema were not read.",
    "trimmed_text": "Leading or trailing blanks were removed from text cells.",
    "unit_converted": "A column was converted from the unit named by the user to the schema's unit.",
    "negative_sparsity": "A compute-equivalent sparsity slightly below 0 was kept as it is.",
    "derived_flops": "Training FLOPs per token were computed from other columns.",
    "sparsity_absent": "There is no sparsity column; every row is taken as S = 0.",
    "zero_weight": "Rows of weight 0 were left out of the fit.",
    "excluded_tier": "Rows of a sparsity tier were left out because the user asked for it.",
    "arch_absent": "There is no architecture column; every row belongs to one architecture called model.",
    "similar_names": "Architectures whose names differ in case only were kept apart.",
    "empty_columns": "Columns without a single value were taken as absent.",
    "parsed_numbers": "Cells with a unit suffix or thousands separators were read as numbers.",
    "decimal_comma": "Numbers written with a decimal comma were read as such.",
    "derived_tokens": "Training tokens were computed from training FLOPs and FLOPs per token.",
    # endpoints: rows in and out, conventions
    "nonfinite": "Rows without a finite loss were left out: a diverged or unevaluated run has no endpoint; finish it.",
    "diverged": "Earlier rows of runs that later diverged were left out: the last good row of one is no endpoint.",
    "unfinished": "Rows of unfinished runs were left out, so results are provisional; finish the runs and fit again.",
    "not_annealed": "Rows measured before the learning rate decayed were left out; there, a loss is not the final one.",
    "duplicate_rows": "Rows that repeat another in every column were merged; a copy is no second experiment.",
    "conflicting_rows": "A run has several slightly different losses at one horizon, all kept; keep the one you trust.",
    "repeats": "Rows share their settings and differ in loss; kept as repeats; name seeds, or keep one run of a sweep.",
    "high_loss": "The median loss is high for nats per token; add --unit loss=ppl or loss=bits if that is what it is.",
    "mixed_units": "A few values are tiny beside the others after conversion; check that the column has one unit.",
    "flops_convention": "FLOPs per token are far from 6 per parameter; check what F (--flops forward) and N count.",
    "active_parameters": "F and active parameters disagree as if N_act or F counted all experts; check both columns.",
    "tokens_per_step": "Tokens per step change within a run; if a branch counts from 0, add the tokens of its trunk.",
    "repeated_data": "Runs pass more than four times over their unique tokens; laws in D overrate such tokens.",
    # fits
    "not_identified": "The design cannot identify a parameter; it was not fitted.",
    "collinear": "Two columns move together over the design, so their exponents cannot be told apart.",
    "ill_conditioned": "The design leaves a direction of the parameters poorly determined.",
    "at_bound": "A parameter ended on its bound.",
    "floor_at_zero": "The irreducible loss ended at 0: the data do not identify it.",
    "not_certified": "A fit did not reach a certified optimum.",
    "linear_zone": "Almost all residuals exceed delta, so the fit is close to least absolute deviations.",
    "pinned": "A parameter was held at a value given by the user.",
    "outlier": "Endpoints lie over 5 robust standard deviations off the fit; kept; check them, or refit without.",
    "low_precision": "The losses are rounded too coarsely for the scatter of the fit; export them with more digits.",
    "seed_noise": "Repeats of the same settings scatter by this much, which no law can explain.",
    "incomparable_losses": "Architectures differ in tokenizer, evaluation set or domain: no gain between them.",
    # resampling
    "unpaired": "The architectures share no resampling label and were resampled independently.",
    "unmatched_cells": "Some cells exist for one architecture only; they are kept.",
    "row_resampling": "No column names the experimental unit, so single rows were resampled.",
    "bootstrap_refused": "Too many resamples are degenerate, or the design is too ill-conditioned, for an interval.",
    "degenerate_draws": "Some resamples cannot identify every parameter; they are kept, holding those parameters.",
    "uncertified_draws": "Some replicate fits are not certified; they are kept in the intervals.",
    "draws_at_bound": "Some replicate fits ended on a bound; they keep their rank in the intervals.",
    "interval_coverage": "The chosen objective is known to give intervals that cover less than their nominal level.",
    "sampling_only": "The interval holds the sampling of cells under this law only.",
    # frontier quantities
    "default_reference": "The reference architecture was chosen by name; the note shows the swapped command.",
    "extrapolated": "The optimum lies outside the support of the design.",
    "support_unknown": "No window of the runs is known, so nothing says what is extrapolated.",
    "frontier_outside_design": "Every requested optimum lies outside the tokens-per-parameter range of the design.",
    "unreachable": "The reference never reaches the target's loss: its irreducible loss is higher.",
    "turnover": "The gain has a peak and turns.",
    "flops_mismatch": "A law in parameters counts other FLOPs per token than the table states.",
    "flops_per_param": "Parameters were converted to training FLOPs per token at a fixed ratio.",
    "no_interval": "The study holds no draws for this interval.",
    "default_budgets": "No budget was named: round ones within the runs of every architecture were taken.",
    "stale_study": "The input file changed after the study was fitted.",
    "input_missing": "The input file of the study is no longer there, so whether it changed cannot be checked.",
    "far_extrapolated": "A budget is over a thousand times outside the runs: no run says anything about it.",
    # tables
    "not_recomputed": "A published table that nothing recomputes yet.",
    "simulated": "The endpoints are simulated from published surfaces with stated noise; they are not measurements.",
}


@dataclass(frozen=True, kw_only=True)
class Note:
    """One caveat that travels with a result.

    Parameters
    ----------
    code : str
        A key of `NOTE_CODES`; stable across versions.
    severity : {"info", "warning"}
        ``info`` states a fact, ``warning`` asks the reader to act or to qualify the number.
    message : str
        One line: what, where, and what to do about it.
    count : int
        How many rows, draws or cells it concerns.

    Examples
    --------
    >>> Note(code="unpaired", severity="warning", message="no common cell").to_dict()
    {'code': 'unpaired', 'severity': 'warning', 'message': 'no common cell', 'count': 1}
    """

    code: str
    severity: Literal["info", "warning"]
    message: str
    count: int = 1

    def __post_init__(self) -> None:
        if self.code not in NOTE_CODES:
            raise ValueError(f"unknown note code {self.code!r}: add it to NOTE_CODES")

    def to_dict(self) -> dict[str, Any]:
        """Return the note as plain JSON values."""
        return {"code": self.code, "severity": self.severity, "message": self.message, "count": self.count}


def info(code: str, message: str, count: int = 1) -> Note:
    """Return a note that states a fact."""
    return Note(code=code, severity="info", message=message, count=count)


def warning(code: str, message: str, count: int = 1) -> Note:
    """Return a note that asks the reader to act or to qualify the number."""
    return Note(code=code, severity="warning", message=message, count=count)


def merge_notes(*groups: Iterable[Note]) -> tuple[Note, ...]:
    """Join groups of notes, warnings first, dropping exact repeats and keeping the order otherwise.

    Examples
    --------
    >>> a = Note(code="pinned", severity="info", message="E = 1.6")
    >>> b = Note(code="unpaired", severity="warning", message="no common cell")
    >>> [n.code for n in merge_notes([a], [b, a])]
    ['unpaired', 'pinned']
    """
    unique = dict.fromkeys(note for group in groups for note in group)
    return tuple(sorted(unique, key=lambda note: note.severity != "warning"))
