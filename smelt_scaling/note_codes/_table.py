"""Codes of reading a table: its columns, its rows, its units."""

from __future__ import annotations

from smelt_scaling.note_codes._code import NoteCode

__all__ = ["READING", "ROWS"]

READING: dict[str, NoteCode] = {
    # columns and cells
    "ignored_columns": NoteCode(
        "info",
        "Columns that are not part of the endpoint schema were not read.",
        "Harmless unless one of them holds something the analysis needs; then name it, e.g. --map loss=val/ce.",
    ),
    "trimmed_text": NoteCode(
        "info",
        "Leading or trailing blanks were removed from text cells or column names.",
        "Harmless: labels that differ in blanks only are taken as one. If they are two, write them differently.",
    ),
    "unit_converted": NoteCode(
        "info",
        "A column was converted from the unit named by the user to the schema's unit.",
        "Harmless if the unit is right: compare the range of the column that check prints with what was run.",
    ),
    "negative_sparsity": NoteCode(
        "warning",
        "A compute-equivalent sparsity slightly below 0 was kept as it is.",
        "Harmless for a dense model that differs from its own reference by a rounding; write 0 there to be rid of "
        "the note. Otherwise check how S was computed: it is 1 - active/total at equal compute.",
    ),
    "derived_flops": NoteCode(
        "info",
        "Training FLOPs per token were computed from other columns.",
        "Harmless if that rule is the one you report. If the table holds measured FLOPs per token, name them with "
        "--map F=COLUMN and leave out --flops.",
    ),
    "derived_tokens": NoteCode(
        "info",
        "Training tokens were computed from training FLOPs and FLOPs per token.",
        "Harmless if C and F count the same FLOPs, both forward and backward. If the table holds the tokens, name "
        "them with --map D=COLUMN.",
    ),
    "sparsity_absent": NoteCode(
        "info",
        "There is no sparsity column; every row is taken as S = 0.",
        "Harmless for dense models, for which --law additive is the same law without S. For sparse models name the "
        "column with --map S=COLUMN.",
    ),
    "zero_weight": NoteCode(
        "info",
        "Rows of weight 0 were left out of the fit.",
        "Harmless if you gave them weight 0 to leave them out; otherwise give them a positive weight.",
    ),
    "excluded_tier": NoteCode(
        "info",
        "Rows of a sparsity tier were left out because the user asked for it.",
        "Harmless, but say so beside the number; drop --exclude-tier to use them.",
    ),
    "arch_absent": NoteCode(
        "info",
        "There is no architecture column; every row belongs to one architecture called model.",
        "Harmless for a single architecture. To compare several, name the column with --map arch=COLUMN.",
    ),
    "similar_names": NoteCode(
        "warning",
        "Architectures whose names differ in case only were kept apart.",
        "Harmless if they are two architectures. If they are one, write its name the same way in every row.",
    ),
    "empty_columns": NoteCode(
        "info",
        "Columns without a single value were taken as absent.",
        "Harmless if nothing was measured there; otherwise export the column again, or name the one that holds the "
        "values with --map NAME=COLUMN.",
    ),
    "parsed_numbers": NoteCode(
        "info",
        "Cells with a unit suffix or thousands separators were read as numbers.",
        "Harmless if B means 1e9 and a comma separates thousands in your file; otherwise write plain digits.",
    ),
    "decimal_comma": NoteCode(
        "info",
        "Numbers written with a decimal comma were read as such.",
        "Harmless if 3,25 means three and a quarter in your file; otherwise export it with decimal points.",
    ),
}

ROWS: dict[str, NoteCode] = {
    # rows left out, merged or kept
    "nonfinite": NoteCode(
        "warning",
        "Rows without a finite loss were left out: a diverged or unevaluated run has no endpoint.",
        "Harmless if those runs diverged and you report it. Where the message says PROVISIONAL a whole cell is gone: "
        "finish or evaluate its runs and fit again.",
    ),
    "diverged": NoteCode(
        "warning",
        "Earlier rows of runs that later diverged were left out: the last good row of one is no endpoint.",
        "Nothing to do for a run that diverged. If its rows are ends of separate decays, say so with phase = decay "
        "(--map phase=COLUMN), and they are kept.",
    ),
    "unfinished": NoteCode(
        "warning",
        "Rows of unfinished runs were left out, so results are provisional.",
        "Finish the runs and fit again. If they are finished, write finished in their status column. To see what they "
        "say so far add --include-unfinished.",
    ),
    "provisional": NoteCode(
        "warning",
        "Cells lack endpoints, or unfinished runs were kept: every number made from them may still change.",
        "Report nothing before the runs are finished, or report it as provisional. If a cell will never be finished, "
        "delete its rows and say so.",
    ),
    "not_annealed": NoteCode(
        "info or warning",
        "Rows measured before the learning rate decayed were left out; there, a loss is not the final one.",
        "Harmless for the stable run that decay branches start from, and if the same runs also have a row after the "
        "decay. If every row is of a stable phase all are kept and no loss is final: add the decayed rows. If the "
        "phase or lr column is wrong, correct it.",
    ),
    "duplicate_rows": NoteCode(
        "info",
        "Rows that repeat another in every column were merged; a copy is no second experiment.",
        "Harmless for rows exported twice. Two runs that agree in every column need a name each: --map run=COLUMN.",
    ),
    "conflicting_rows": NoteCode(
        "warning",
        "A run has several slightly different losses at one horizon, all kept.",
        "Nearly harmless: they differ by at most 0.02 nats, but the run counts more than once. Keep the row you "
        "trust and delete the others, or give them weight 0.",
    ),
    "repeats": NoteCode(
        "info or warning",
        "Rows share their settings and differ in loss; they were kept as repeats.",
        "Harmless if only the seed differs: name it with --map seed=COLUMN or --map run=COLUMN. If they are a sweep "
        "of learning rates or the like, keep the best row of each; a warning says that they differ by over 0.02 nats.",
    ),
    # units and conventions
    "high_loss": NoteCode(
        "warning",
        "The median loss is high for nats per token.",
        "If it is a perplexity add --unit loss=ppl, if it is in bits per token --unit loss=bits. If it is in nats, "
        "as for very small models, --unit loss=nats says so and the note goes away.",
    ),
    "mixed_units": NoteCode(
        "warning",
        "A few values are tiny beside the others after conversion.",
        "Harmless for models that are almost dense. If these rows of S were fractions already, write the whole column "
        "in percent, or all in fractions without --unit S=percent.",
    ),
    "flops_convention": NoteCode(
        "warning",
        "FLOPs per token are far from 6 per parameter.",
        "Harmless where attention or the output layer is a large part, or parameters leave embeddings out. Otherwise "
        "check F (forward-only FLOPs: --flops forward) and N, or use one rule for all: --flops 6N.",
    ),
    "active_parameters": NoteCode(
        "warning",
        "F and active parameters disagree as if N_act or F counted all experts.",
        "Not harmless: budgets and gains follow F. Name the active parameters with --map N_act=COLUMN; if F counts "
        "all experts, --flops 6N takes it from N_act instead.",
    ),
    "tokens_per_step": NoteCode(
        "warning",
        "Tokens per step change within a run.",
        "Harmless if the batch size changed. If a branch counts its tokens from 0, add those of its trunk to D.",
    ),
    "repeated_data": NoteCode(
        "warning",
        "Runs pass more than four times over their unique tokens; laws in D overrate such tokens.",
        "Harmless if every architecture repeats alike and only they are compared. To discount "
        "repeated tokens fit with --data-law repeated; for a law of fresh tokens leave these rows out.",
    ),
}
