"""Codes of downstream scores at equal loss."""

from __future__ import annotations

from smelt_scaling.note_codes._code import NoteCode

__all__ = ["DOWNSTREAM"]

DOWNSTREAM: dict[str, NoteCode] = {
    "missing_scores": NoteCode(
        "warning",
        "Rows without a score were left out.",
        "Harmless if those evaluations were not made. If one architecture lacks more of them than the other, run them: "
        "what is missing may be what went badly.",
    ),
    "early_scores": NoteCode(
        "warning",
        "Scores were logged before the step of the endpoint whose loss stands beside them.",
        "Harmless if the steps differ by little. Otherwise evaluate the final checkpoint, and select the endpoints "
        "again.",
    ),
    "inverse_scores": NoteCode(
        "warning",
        "Scores of the reference get worse as its loss falls, and no monotone curve of the right direction fits them.",
        "If less of the metric is better, as of an error rate, name it with --lower-better. A task on which larger "
        "models do worse cannot be calibrated on the loss: leave it out with --exclude-metric.",
    ),
    "few_cells": NoteCode(
        "warning",
        "There are too few cells to resample, so there are no intervals.",
        "The means and the t tests stand, with as many degrees of freedom as the cells give. Add cells: more endpoints "
        "of the same cells do not help.",
    ),
    "no_chance": NoteCode(
        "info",
        "No column says what guessing scores, so wins above chance are not counted apart.",
        "Harmless if every metric is well above chance. Otherwise add a column chance (--map chance=COLUMN): pairs at "
        "chance are coin flips.",
    ),
    "outside_calibration": NoteCode(
        "warning",
        "Endpoints of the target lie outside the losses of the reference, where its curve is extrapolated.",
        "Compare residual_inside with residual_outside: if the finding rests on the latter, it is a forecast of the "
        "reference. Add runs of the reference there, or refuse such rows with --strict.",
    ),
    "weak_asymptotes": NoteCode(
        "warning",
        "The losses of the reference cover less than half of the sigmoid, so its asymptotes are not determined.",
        "Harmless for residuals within its losses; report no asymptote. Hold them at chance and at 1 with "
        "--asymptotes chance to see how little the residuals move.",
    ),
    "calibration_at_bound": NoteCode(
        "warning",
        "The sigmoid ended on a bound of its parameters, or has none that fit best: its shape is another here.",
        "Harmless for residuals within the losses of the reference if R2 is near that of the best monotone curve. "
        "Report no parameter, and extrapolate nothing.",
    ),
    "flat_calibration": NoteCode(
        "warning",
        "The scores of the reference do not go with its loss, in the direction that is better.",
        "If less of the metric is better, name it with --lower-better, and leave it out of there if more is. Otherwise "
        "residuals are differences of scores and no more: the metric may be at chance.",
    ),
    "curves_unconverged": NoteCode(
        "warning",
        "Curves of some resamples are not converged.",
        "Harmless for a few: their residuals hardly move. Where they are many the losses do not determine the sigmoid; "
        "hold its ends with --asymptotes chance.",
    ),
    "sigmoid_misfit": NoteCode(
        "warning",
        "The best monotone curve explains clearly more of the scores than the sigmoid does.",
        "Look at the points: a plateau or a step within the losses is no sigmoid, and residuals by scale then show the "
        "misfit. A free curve through few noisy endpoints also explains more by chance.",
    ),
    "ties": NoteCode(
        "info",
        "Some pairs have equal scores; they are counted apart, and half in the rate.",
        "Harmless if they are few. Many ties mean few items, or scores rounded in the table: export more digits.",
    ),
    "averaged_repeats": NoteCode(
        "info",
        "Several scores of one cell and horizon were averaged before wins were counted.",
        "Harmless for repeats with other seeds. Horizons that the table does not tell apart are named with --map "
        "D=COLUMN.",
    ),
}
