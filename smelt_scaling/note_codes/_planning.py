"""Codes of plans of further runs."""

from __future__ import annotations

from smelt_scaling.note_codes._code import NoteCode

__all__ = ["PLANS"]

PLANS: dict[str, NoteCode] = {
    "noise_assumed": NoteCode(
        "warning",
        "Part of the noise of a plan is neither stated nor estimated, but assumed.",
        "State it: --icc and --pair-correlation of an earlier sweep of the same kind, or the ends of what you believe, "
        "and compare. A column cell in the table of runs lets both be estimated.",
    ),
    "unmeasured_candidates": NoteCode(
        "warning",
        "Some candidates lie outside what was run, where their worth trusts the law.",
        "Harmless if you know that the law holds there. Runs far smaller than the rest look cheap and informative only "
        "if one law spans both; make one such pair first and see whether the fit predicts it.",
    ),
    "weights_ignored": NoteCode(
        "warning",
        "The rows of the fit have different weights, which a plan does not use.",
        "Harmless if weights mend an uneven design. If they say that some losses are more precise than others, the "
        "plan is off by as much; look at the widths, not at their third digit.",
    ),
    "other_design": NoteCode(
        "info",
        "The plan starts from other runs than those of the fit.",
        "Harmless: surfaces and noise are those of the study, everything about runs is of the table named.",
    ),
    "fund_left": NoteCode(
        "info",
        "Not all of the sum could be spent on the candidates.",
        "Raise --fund or allow smaller runs (--box F=...) where nothing is affordable; where a list of the most pairs "
        "is full, allow larger ones (--extend 2).",
    ),
}
