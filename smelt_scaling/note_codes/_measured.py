"""Codes of tables that are measured beside the endpoints: lengths, shots, ablations."""

from __future__ import annotations

from smelt_scaling.note_codes._code import NoteCode

__all__ = ["MEASURED"]

MEASURED: dict[str, NoteCode] = {
    "unpaired_rows": NoteCode(
        "warning",
        "Some rows exist for one architecture only; they were left out.",
        "Harmless if those evaluations were not made. If a label is spelled in two ways write it alike; the message "
        "names the first such row.",
    ),
    "too_few_units": NoteCode(
        "warning",
        "There are too few cells, tasks or items to say how much a number would vary.",
        "Report it as one case. For an interval add cells (other sizes or sparsities), tasks, or the scores of single "
        "items (a column item).",
    ),
    "few_draws": NoteCode(
        "warning",
        "Fewer draws were asked for than an interval of this level takes its ends from, so there is none.",
        "Ask for more with --bootstrap: an end is an order statistic of the draws, and 2000 leave 50 of them beyond "
        "each end of a 95 % interval.",
    ),
    "incomplete_buckets": NoteCode(
        "warning",
        "Endpoints without a loss in every length bucket were left out.",
        "Harmless while they are few: buckets are compared on the same endpoints then. Evaluate the missing buckets, "
        "or leave out a bucket that few endpoints have.",
    ),
    "mixed_signs": NoteCode(
        "warning",
        "The loss falls in some length buckets and rises in others.",
        "Report the loss drops themselves: relative gains divide by a mean in which the signs cancel.",
    ),
    "unbounded_ratio": NoteCode(
        "warning",
        "A ratio has no bounded interval, because its denominator is not told from 0.",
        "Report that the data leave the ratio open; a bounded interval would be wrong. Add cells, or report the "
        "difference of the two gains.",
    ),
    "undefined_ratios": NoteCode(
        "warning",
        "In some draws a ratio is undefined, so the comparison has no interval.",
        "The gains are too small against their scatter for a ratio of ratios. Add cells, or compare the loss drops.",
    ),
    "incomplete_tasks": NoteCode(
        "warning",
        "Tasks without a score at every number of examples were left out.",
        "Say which tasks remain. To keep more of them, use fewer numbers of examples (--shots), or score the missing "
        "ones.",
    ),
    "items_unknown": NoteCode(
        "warning",
        "The number of items behind a score is not known, so nothing is tested.",
        "Add a column n_items (with 1000 items the difference of two scores near 30 % has a standard error of 2 "
        "points), or the scores of single items in rows with a column item.",
    ),
    "uneven_items": NoteCode(
        "warning",
        "Rows of one task name several numbers of items; the smallest counts.",
        "Harmless where some answers were not parsed. Otherwise the two sides were not scored on the same items: "
        "evaluate both on the same set.",
    ),
    "score_floor": NoteCode(
        "info",
        "Both architectures score no better than a guess, so their gap there says nothing.",
        "Harmless in a mean of many tasks. Do not call a gap that opens above the floor a jump in ability: below it "
        "nothing could be seen.",
    ),
    "default_level": NoteCode(
        "info",
        "No level was named to compare with: the first of the table was taken.",
        "Harmless if that is the unchanged design. Name another with --against.",
    ),
    "noise_unknown": NoteCode(
        "warning",
        "The scatter of repeated runs is not known, so no level is called the best.",
        "Repeat a level with other seeds (a column seed), or state the standard deviation of repeated runs with "
        "--noise, such as the seed_noise or the RMSE of a fit.",
    ),
    "noise_disagrees": NoteCode(
        "warning",
        "The repeated runs of the table scatter otherwise than the noise that was stated.",
        "Leave --noise out to take the scatter of the table, or say why another one holds.",
    ),
    "unresolved_best": NoteCode(
        "info",
        "The best level is not told from others at the noise of a run.",
        "Report the set of levels that may be best. Differences below the least detectable one need more seeds of the "
        "levels in that set.",
    ),
    "tied_best": NoteCode(
        "info",
        "Several levels share the best value to the last digit.",
        "Export the values with more digits; if they are equal all the same, choose by cost.",
    ),
    "metrics_disagree": NoteCode(
        "info",
        "Another level is best by one metric than by another.",
        "Say which metric decides, and decided before the runs were made.",
    ),
    "unmatched_budgets": NoteCode(
        "warning",
        "Levels were trained with other FLOPs than the level they are compared with.",
        "A difference in loss holds the difference in budget as well. Match the budgets, or divide the multiplier by "
        "the ratio of the FLOPs.",
    ),
    "no_replicates": NoteCode(
        "info",
        "Some levels have no repeated runs, so there is no test that needs them.",
        "Harmless with a stated --noise. For Tukey and Dunnett intervals run at least two seeds of every level.",
    ),
}
