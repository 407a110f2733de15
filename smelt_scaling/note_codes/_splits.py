"""Codes of gains on parts of an evaluation."""

from __future__ import annotations

from smelt_scaling.note_codes._code import NoteCode

__all__ = ["SPLITS"]

SPLITS: dict[str, NoteCode] = {
    "shared_exponents": NoteCode(
        "info",
        "Parts of an evaluation have the exponents of the whole; floors and amplitudes are their own.",
        "Harmless where parts scale alike. The table `sharing` of the JSON says how exponents of their own would "
        "predict left-out cells.",
    ),
    "missing_losses": NoteCode(
        "warning",
        "Some endpoints were not evaluated on some sources.",
        "The part is fitted to the others, and a domain lacks the loss wherever one of its sources does. Evaluate "
        "those checkpoints, or leave the source out.",
    ),
    "unmatched_losses": NoteCode(
        "warning",
        "Rows of the table of losses belong to no endpoint or no architecture of the study.",
        "Harmless for runs that the fit left out on purpose. Otherwise write run, cell and the columns of the law "
        "alike in both tables.",
    ),
    "part_at_zero": NoteCode(
        "warning",
        "A part's floor or amplitude ended at 0.",
        "Without an amplitude there is no frontier, and no gain of that part: its losses hardly move with size or "
        "tokens. A floor at 0 says that no floor is seen yet.",
    ),
    "part_unidentified": NoteCode(
        "warning",
        "The losses of a part do not tell its floor and amplitudes apart, so it has no gain.",
        "Evaluate the part on endpoints of several sizes and horizons, in more than one cell.",
    ),
    "undefined_draws": NoteCode(
        "warning",
        "In some draws a part has no frontier; they may lie anywhere, and widen both ends of its interval.",
        "An amplitude is 0 there, or one cell does not tell it from the floor. Quote the interval with their number; "
        "more cells, or a larger part, make them rarer.",
    ),
    "parts_uncertified": NoteCode(
        "warning",
        "Some fits of parts are not certified optima.",
        "Harmless for a few replicates that drew few cells. For a point estimate look at the part's losses: too few, "
        "or constant.",
    ),
    "sharing_doubtful": NoteCode(
        "warning",
        "Exponents of its own predict a part's left-out cells better than those of the whole.",
        "Quote the part's gain with both: fit its losses alone (domain by domain, with fit) and compare. Shared "
        "exponents draw the gains of parts together.",
    ),
    "single_source": NoteCode(
        "info",
        "A domain has one source, so that its sources cannot be resampled.",
        "Harmless, but its interval holds the sampling of cells only, and those of domains with several sources more.",
    ),
    "residual_correlation": NoteCode(
        "info",
        "How much of the noise the parts share.",
        "Harmless: the more they share, the narrower the paired differences are beside the intervals of the gains. "
        "Compare parts by their differences.",
    ),
    "sorted_on_estimates": NoteCode(
        "warning",
        "Sources were sorted by losses that the gains of their groups are made of.",
        "Noise puts a source into the group that it then biases: the lowest group's gain comes out low, the highest's"
        " high. Add --split-sample, and report what it changes.",
    ),
    "tied_sources": NoteCode(
        "info",
        "Sources of equal loss fell into different groups, by name.",
        "Harmless if those losses are equal in truth. Rounded losses tie by chance: export them with more digits.",
    ),
}
