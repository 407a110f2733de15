"""Codes of probes of what a second visit of looped layers does."""

from __future__ import annotations

from smelt_scaling.note_codes._code import NoteCode

__all__ = ["MECHANISMS"]

MECHANISMS: dict[str, NoteCode] = {
    "undefined_values": NoteCode(
        "warning",
        "Tokens without a value were left out: a zero vector, padding, or a document that is too short.",
        "Harmless for a few. Of many, look at the column undefined by layer (--by layer): a component that writes "
        "nothing is a finding of its own.",
    ),
    "unnormalised_attention": NoteCode(
        "warning",
        "Rows of attention weights do not sum to 1 within 0.01; they stay in.",
        "Harmless for a few in bf16. Otherwise the weights are not those of one document after its mask and softmax: "
        "take them in float32, before dropout, a document at a time.",
    ),
    "certain_rows": NoteCode(
        "info",
        "Rows whose chance is the largest value there is were left out: they agree by construction.",
        "Nothing to do: up to position k the k largest positions are all positions, and where all experts are chosen "
        "all are shared.",
    ),
    "scale_unstated": NoteCode(
        "warning",
        "The table does not say whether write norms hold the factor 1/r of a loop of r visits.",
        "A factor on both visits cancels in the ratio, one on a single visit does not. Fill the column scaled with "
        "yes or no, and say it beside the number.",
    ),
    "mixed_scale": NoteCode(
        "warning",
        "Some write norms hold the factor 1/r of a loop of r visits and others do not, and one mean is over both.",
        "Write all of them with the factor or all without. A factor that both visits have cancels in their ratio; one "
        "that a single visit has moves it by r.",
    ),
    "few_probed_cells": NoteCode(
        "warning",
        "Fewer than five cells: an interval from resampling them is too narrow.",
        "The values stand. Show every cell (--by cell), or measure more of them before you speak of all models.",
    ),
    "few_documents": NoteCode(
        "warning",
        "Fewer than five documents in a cell: an interval from resampling them is too narrow.",
        "The values stand. Measure more documents; many tokens of one document do not take their place.",
    ),
    "empty_draws": NoteCode(
        "warning",
        "Some draws hold no document with a value, or with a control, so what rests on it has no interval.",
        "The values stand. Measure value and control on more documents of every cell.",
    ),
    "broken_order": NoteCode(
        "warning",
        "In some cells the cosines do not fall from queries and keys over the input to values and outputs.",
        "Report it: the expected order is a claim about all cells. The message names the first; JSON lists them all.",
    ),
}
