"""Codes of budgets of models."""

from __future__ import annotations

from smelt_scaling.note_codes._code import NoteCode

__all__ = ["BUDGETS"]

BUDGETS: dict[str, NoteCode] = {
    "not_counted": NoteCode(
        "info",
        "A configuration holds something besides the decoder, such as an encoder of images; it is not counted.",
        "Nothing, where only the decoder is compared. Otherwise add its cost to both sides by hand, and say so.",
    ),
    "inferred_dimensions": NoteCode(
        "info",
        "Some dimensions of a published model are not printed; they are solved from the numbers that are.",
        "Take budgets from it, not advice on shapes: the printed numbers fix the width of experts and of queries, "
        "while the split of a width into heads is only consistent with them.",
    ),
    "sequence_length": NoteCode(
        "info",
        "Nothing states how long training sequences are, so 4096 tokens are assumed.",
        "State them with --seq-len. Conventions that count documents take their lengths from --doc-len.",
    ),
    "long_documents": NoteCode(
        "warning",
        "Documents are longer than the sequences, where attention ends: scores over whole documents are too many.",
        "Give the lengths of documents as cut to sequences, or state longer sequences: --seq-len, or "
        "sequence_length of a planned study.",
    ),
    "no_vocabulary": NoteCode(
        "info",
        "The model states no vocabulary, so conventions that count the head leave it out.",
        "Nothing, where the convention counts no head. Otherwise write vocab into the TOML: 6 FLOPs per token for each "
        "of its rows times the hidden width.",
    ),
    "no_match": NoteCode(
        "warning",
        "No shape of the search is within tolerance of all three budgets.",
        "The deviations of the nearest shape are shown. Widen what is out: --tolerance, a smaller --head-dim-multiple "
        "for the cache, --ffn-multiple or --expert-multiple for parameters.",
    ),
}
