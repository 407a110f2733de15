"""Codes of fits, resamples, and the numbers made from them."""

from __future__ import annotations

from smelt_scaling.note_codes._code import NoteCode

__all__ = ["ANSWERS", "FITS", "PUBLISHED", "RESAMPLING"]

FITS: dict[str, NoteCode] = {
    "not_identified": NoteCode(
        "warning",
        "The design cannot identify a parameter; it was not fitted.",
        "Harmless for the exponent of 1-S if all you ask is at the one S that was run. Otherwise add runs at another "
        "level of the column named, use a law without it (--law additive), or hold the parameter with --pin.",
    ),
    "collinear": NoteCode(
        "warning",
        "Two columns move together over the design, so their exponents cannot be told apart.",
        "The fit is good for losses along that line only (such as 20 tokens per parameter), not for its exponents or "
        "its optimal split. Add runs off the line, hold one exponent with --pin, or fit --law power-c (--flops 6N "
        "where there is no F).",
    ),
    "ill_conditioned": NoteCode(
        "warning",
        "The design leaves a direction of the parameters poorly determined.",
        "Up to a condition number of 1e6 only wide: the intervals say how much. Above, or with as many parameters as "
        "endpoints, trust no coefficient: add runs at other sizes and horizons, or hold a parameter with --pin.",
    ),
    "at_bound": NoteCode(
        "warning",
        "A parameter ended on its bound.",
        "Do not report the value: at the least exponent a term is a constant, at the largest a step at the smallest "
        "runs. Add runs over a wider range, or fit a law without the term.",
    ),
    "floor_at_zero": NoteCode(
        "warning",
        "The irreducible loss ended at 0: the data do not identify it.",
        "Harmless for losses within the runs; not for anything beyond them, nor for budgets at which a gain turns. "
        "Add longer or larger runs, or hold it with --pin E=VALUE from another source.",
    ),
    "not_certified": NoteCode(
        "warning",
        "A fit did not reach a certified optimum.",
        "Do not report it: the numbers may change with the starts. Fit again with --starts thorough; if that does "
        "not help, fit fewer parameters (another --law, or --pin).",
    ),
    "linear_zone": NoteCode(
        "info",
        "Almost all residuals exceed delta, so the fit is close to least absolute deviations.",
        "Harmless: this is the usual state at the default delta of 1e-3, and its intervals hold their level. To see "
        "how much it matters fit again with a delta near the scatter, such as --delta auto.",
    ),
    "pinned": NoteCode(
        "info",
        "A parameter was held at a value given by the user.",
        "Harmless if you report the value beside the result: the intervals take it as known exactly. Drop --pin to "
        "fit the parameter.",
    ),
    "outlier": NoteCode(
        "warning",
        "Endpoints lie over 5 robust standard deviations off the fit; they are kept.",
        "Harmless if the fit without them, in the message, is much the same. Check those runs for a wrong unit or a "
        "failed decay; leave them out with --drop-outliers and say so. If many lie off, the law does not fit.",
    ),
    "dropped_outliers": NoteCode(
        "warning",
        "Endpoints over 5 robust standard deviations off a first fit were left out on request.",
        "Report how many, and what they changed: the message has both, and intervals take the rest as given. Check "
        "those runs; if many were left out, the law does not fit, and without --drop-outliers you see by how much.",
    ),
    "dense_tier": NoteCode(
        "info",
        "A dense tier was fitted together with sparse ones, which the common law may fit worse.",
        "Harmless if the RMSE over the sparse tiers is that of a fit to them alone: fit again with --exclude-tier 0 "
        "and compare.",
    ),
    "parameter_count": NoteCode(
        "warning",
        "The table counts parameters in several ways, which give other exponents and other optima.",
        "Say which count was used, and compare exponents with fits of the same count only. Another is chosen with "
        "--map N=COLUMN.",
    ),
    "effective_tokens": NoteCode(
        "info",
        "Repeated tokens were counted by what they are worth in tokens seen once, and so is every D.",
        "Harmless if you read D* as tokens without repetition. The discount is held at --repeat-constant, so "
        "intervals know nothing of its error; --data-law fresh counts every token alike.",
    ),
    "low_precision": NoteCode(
        "warning",
        "The losses are rounded too coarsely for the scatter of the fit.",
        "Export them again with more digits (float32, or four decimals and more). Where they are lost, the "
        "rounding counts as noise, and the RMSE is no measure of the law.",
    ),
    "seed_noise": NoteCode(
        "info",
        "Repeats of the same settings scatter by this much, which no law can explain.",
        "Harmless: compare it with the RMSE. If the RMSE is several times larger, the law or single runs are at "
        "fault, not the seeds.",
    ),
    "incomparable_losses": NoteCode(
        "warning",
        "Architectures differ in tokenizer, evaluation set, domain or unit of the loss: no gain between them.",
        "Each fit stands for itself. To compare, evaluate all on one set with one tokenizer, or in bits per byte "
        "(--unit loss=bpb), and fit again; if only the labels differ, write them alike.",
    ),
}

RESAMPLING: dict[str, NoteCode] = {
    "unpaired": NoteCode(
        "warning",
        "The architectures share no resampling label and were resampled independently.",
        "Harmless if their designs have nothing in common. If they were run at the same design points, write the same "
        "labels for both (--map cell=COLUMN, --map scale=COLUMN): a paired interval of the gain is usually narrower.",
    ),
    "unmatched_cells": NoteCode(
        "warning",
        "Some cells exist for one architecture only; they are kept.",
        "Harmless if those runs were not made. If a label is spelled in two ways, write it alike, and the cells are "
        "resampled together.",
    ),
    "row_resampling": NoteCode(
        "warning",
        "Single rows were resampled: no column names the experimental unit, or --resample row asked for it.",
        "Harmless if every row is a run of its own with nothing shared. If several rows are of one run or design "
        "point, intervals are too narrow: name it with --map run=COLUMN or --map cell=COLUMN.",
    ),
    "bootstrap_refused": NoteCode(
        "warning",
        "Too many resamples are degenerate, or the design is too ill-conditioned, for an interval.",
        "The point estimates stand. With few labels ask for --interval jackknife-t; with an ill-conditioned design "
        "no interval means anything until you add runs or hold a parameter with --pin.",
    ),
    "degenerate_draws": NoteCode(
        "info",
        "Some resamples cannot identify every parameter; they are kept, holding those parameters.",
        "Harmless in the bootstrap, which is refused above 1 %. Of the few fits behind --interval jackknife-t each "
        "one matters: add runs at the level that is lost with a label.",
    ),
    "uncertified_draws": NoteCode(
        "warning",
        "Some replicate fits are not certified; they are kept in the intervals.",
        "Harmless if ce-gain says that leaving them out moves no interval end, or hardly. Otherwise fit again with "
        "--starts thorough.",
    ),
    "draws_at_bound": NoteCode(
        "info",
        "Some replicate fits ended on a bound; they keep their rank in the intervals.",
        "Harmless while they are few. If more than one in forty are on the bound, that end of the parameter's 95 % "
        "interval is the bound and not a finding: add runs over a wider range.",
    ),
    "interval_coverage": NoteCode(
        "warning",
        "Intervals of the chosen objective (--delta) or kind (--interval) are known to cover less than their level.",
        "Harmless for point estimates. For an interval to publish use percentiles of the default objective, without "
        "--delta and --interval, or name the coverage that the note states beside it.",
    ),
    "sampling_only": NoteCode(
        "info",
        "The interval holds the sampling of cells under this law only.",
        "Harmless if you say so beside the number. It holds no error of the law or of extrapolation: fit again with "
        "another --law, another --delta or without a tier (--exclude-tier) to see what those do.",
    ),
}

ANSWERS: dict[str, NoteCode] = {
    "default_reference": NoteCode(
        "info",
        "The reference architecture was chosen by name; the note shows the swapped command.",
        "Harmless: the title says which is which. Name them with --target and --reference to be sure.",
    ),
    "extrapolated": NoteCode(
        "warning",
        "The optimum lies outside the support of the design.",
        "A factor of ×1.01 is harmless; one of ×4 is a forecast that no run has tested, so say so. Ask for budgets "
        "within the runs, add runs there, or refuse such rows with --strict.",
    ),
    "support_unknown": NoteCode(
        "info",
        "No window of the runs is known, so nothing says what is extrapolated.",
        "Look up the range of budgets in the source of the published coefficients, and stay within it.",
    ),
    "frontier_outside_design": NoteCode(
        "warning",
        "Every requested optimum lies outside the tokens-per-parameter range of the design.",
        "The optimal split is extrapolated however well the budget is covered. Add runs with fewer or more tokens "
        "per parameter, or ask predict for the loss at points like those that were run.",
    ),
    "unreachable": NoteCode(
        "warning",
        "The reference never reaches the target's loss: its irreducible loss is higher.",
        "At that budget there is no number to report: the gain rests on the two irreducible losses alone. Ask for "
        "smaller budgets, and look at the intervals of E before you make a claim of it.",
    ),
    "turnover": NoteCode(
        "info",
        "The gain has a peak and turns.",
        "Harmless within the runs: report the budget with the gain. A peak or a change of sign outside of them "
        "(marked †) follows from the irreducible losses, and is a forecast.",
    ),
    "flops_mismatch": NoteCode(
        "warning",
        "A law in parameters counts other FLOPs per token than the table states.",
        "Budgets and gains are off by that ratio. Fit a law in F (--law additive, --law sparse-additive), or, where "
        "the ratio is the same for all rows, give it with --flops-per-param.",
    ),
    "flops_per_param": NoteCode(
        "info",
        "Parameters were converted to training FLOPs per token at a fixed ratio.",
        "Harmless if that ratio is the convention you report; otherwise fit again with another --flops-per-param.",
    ),
    "rounded_coefficients": NoteCode(
        "info",
        "Printed coefficients are rounded; this is how far that alone moves the numbers.",
        "Harmless: do not quote more digits than it leaves. If there are more digits (an appendix, the code), type "
        "those.",
    ),
    "noise_equivalent_gain": NoteCode(
        "info",
        "One standard deviation of repeated runs is worth this much compute.",
        "Harmless: context for the size of a gain. Whether the gain is there is a matter of its interval.",
    ),
    "not_distinguishable": NoteCode(
        "warning",
        "The interval of a gain holds 0: it cannot be told from none.",
        "Quote the interval, no saving. More cells or seeds narrow it; a larger budget may move it.",
    ),
    "forced_comparison": NoteCode(
        "warning",
        "Losses that are not comparable were compared because the user forced it.",
        "Publish it as no compute saved: part of the difference is in how the losses were measured. Evaluate both "
        "alike, or in bits per byte (--unit loss=bpb).",
    ),
    "no_time_multiplier": NoteCode(
        "warning",
        "Throughput was not measured at an optimum, so there is no wall-clock multiplier there.",
        "The gain in FLOPs stands. Time runs of that size and sparsity (a few steps do), fill in tokens_per_s and fit "
        "again.",
    ),
    "unfair_budget": NoteCode(
        "warning",
        "Paired models of the two architectures differ in a budget by more than the tolerance.",
        "Harmless in what the law counts for each model (F, or N). Anything else may be part of the gain: match the "
        "configurations, or report the difference beside it; --tolerance kv=.1 states another limit. Cells that are "
        "not meant to match need labels of their own.",
    ),
    "unaudited_budgets": NoteCode(
        "info",
        "No cell of the two architectures pairs, so whether their budgets are equal is not known.",
        "Harmless if you know that they are. Give models that are compared one label in a column cell (or scale), and "
        "the audit compares their FLOPs, parameters and KV cache.",
    ),
    "recounted_flops": NoteCode(
        "warning",
        "The table accounts for FLOPs in two ways, which favour different architectures.",
        "The gain takes the account that the law is in, gain_at_matched_flops the other. Find out which one was "
        "measured, report the gain by it, and leave the other column out.",
    ),
    "no_interval": NoteCode(
        "warning",
        "The study holds no draws for this interval.",
        "The point estimates stand. After --bootstrap 0 fit again with --bootstrap 2000; where that was refused ask "
        "for --interval jackknife-t; a high --level needs more draws. Published coefficients have no interval.",
    ),
    "default_budgets": NoteCode(
        "info",
        "No budget was named: round ones within the runs of every architecture were taken.",
        "Harmless: every row lies within the runs. Name others with --budget.",
    ),
    "stale_study": NoteCode(
        "warning",
        "The input file changed after the study was fitted.",
        "The numbers are those of the old file. Fit it again with the command in the message.",
    ),
    "input_missing": NoteCode(
        "info",
        "The input file of the study is no longer there, so whether it changed cannot be checked.",
        "Harmless if you moved or deleted it: the study holds a copy of its endpoints. If you made a newer table, fit "
        "that one.",
    ),
    "far_extrapolated": NoteCode(
        "warning",
        "A budget is over a thousand times outside the runs: no run says anything about it.",
        "Do not report the row. Check the exponent of --budget, and ask for budgets nearer to the runs.",
    ),
    "estimator_range": NoteCode(
        "info",
        "Beside each gain stands its range over other thresholds, residuals, weights and counts of FLOPs.",
        "Harmless where the range is narrow beside the interval. A wider one is part of the result: report both.",
    ),
    "choices_without_gain": NoteCode(
        "warning",
        "Some choices of a sensitivity panel have no gain; the range is that of the others.",
        "Harmless where the rest could not be fitted without the rows left out, as with two tiers of which one is left "
        "out. Where another threshold or residual has no gain, do not report the range without saying so.",
    ),
    "levels_joined": NoteCode(
        "info",
        "A column takes too many values for tiers: neighbouring ones were joined to parts to be left out.",
        "Harmless: parts hold about as many rows each. Name sizes with --map scale=COLUMN to leave out those instead.",
    ),
    "no_headline": NoteCode(
        "info",
        "There is no gain to follow: coefficients and predictions were compared alone.",
        "Harmless if no gain is wanted. Otherwise fit a table of two architectures with a law that has an optimum, "
        "such as --law additive.",
    ),
    "one_step_influence": NoteCode(
        "info",
        "Of a long table the influence of single rows is one Newton step from the fit, not a fit of its own.",
        "Harmless: close to such a fit where no row weighs much, as in a long table. Fit again without a row that is "
        "named to see what it does.",
    ),
    "new_run": NoteCode(
        "info",
        "The interval of one new run adds its cell effect and its run noise, of this size, to the surface's.",
        "Harmless: it is what --new-run asks for. It holds for a run made like those that were fitted; noise of "
        "another kind, such as a failed decay, is not in it.",
    ),
    "noise_not_split": NoteCode(
        "warning",
        "No cell was run twice, or too few cells: cell effects and run noise cannot be told apart.",
        "Harmless for the interval of one new run, which needs their sum only. To learn how alike runs of a cell are, "
        "run several horizons or seeds per cell and name it with --map cell=COLUMN.",
    ),
    "no_cell_effect": NoteCode(
        "info",
        "Cells do not differ by more than run noise explains, so the effect of a new cell is taken as 0.",
        "Harmless with many cells. With about a dozen the estimate is 0 now and then though cells do differ: the "
        "message says up to which share; more cells settle it.",
    ),
}

PUBLISHED: dict[str, NoteCode] = {
    "not_recomputed": NoteCode(
        "info",
        "Some printed results of a published table do not follow from its other printed numbers.",
        "Nothing to do: they are listed without a verdict, and do not count as reproduced.",
    ),
    "simulated": NoteCode(
        "warning",
        "The endpoints are simulated from published surfaces with stated noise; they are not measurements.",
        "Harmless for trying things on. Never report a number made from them as a finding about the architectures.",
    ),
}
