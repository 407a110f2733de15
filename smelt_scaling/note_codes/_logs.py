"""Codes of what is met in logs, before there is a table of endpoints."""

from __future__ import annotations

from smelt_scaling.note_codes._code import NoteCode

__all__ = ["LOGS"]

LOGS = {
    "loss_key": NoteCode(
        "info",
        "One key of the logs was taken as the loss, since no other is an evaluation loss.",
        "Check that it is the loss you mean; --map loss=KEY names another. It is a warning if the only loss is one of "
        "training: that is noisier, and lower where data repeat.",
    ),
    "no_evaluation": NoteCode(
        "warning",
        "Runs that never log the loss were left out.",
        "Name the key that they do log with --map loss=KEY, or evaluate them.",
    ),
    "no_final_evaluation": NoteCode(
        "warning",
        "Runs that go on well after their last evaluation were left out: its loss is not that of the end.",
        "Evaluate the final checkpoint and add its log. A run that logs its learning rate is judged by that instead.",
    ),
    "negative_loss": NoteCode(
        "warning",
        "Runs whose loss ends at zero or below were left out: no cross-entropy is.",
        "The key may hold a log-likelihood, the loss with its sign turned, or a score: name the loss with --map "
        "loss=KEY, or turn the sign in the log.",
    ),
    "no_tokens": NoteCode(
        "warning",
        "Evaluations from before the first count of tokens were left out of a trajectory.",
        "Harmless if they are a few early ones. Otherwise state tokens_per_step in the table of runs and read the logs "
        "without their token counter.",
    ),
    "unproven_end": NoteCode(
        "warning",
        "Nothing in the logs tells that a run had come to its end: its last evaluation was taken.",
        "Name the key of the learning rate with --map lr=KEY, or state planned_steps, planned_tokens or status in the "
        "table of runs: a run that crashed is then left out.",
    ),
    "thinned": NoteCode(
        "warning",
        "Runs have more evaluations than are kept along them; those kept lie at even distances.",
        "Harmless for a fit: neighbouring evaluations say nearly the same. Ends are exact, and a mean over the last "
        "steps is one over those kept.",
    ),
    "sampled_history": NoteCode(
        "warning",
        "A log is a random sample of the rows, as exports of run histories are; it may lack the last one.",
        "Export all rows (scan_history in place of history), or state planned_steps: an end that was logged at that "
        "very step is taken.",
    ),
    "overlap_disagreement": NoteCode(
        "warning",
        "A resumed run logs other losses than before at the same steps; the later ones stand.",
        "Differences of rounding size are harmless. Larger ones mean other data or another state after the restart: "
        "check that the run resumed from the checkpoint it claims.",
    ),
    "trajectory": NoteCode(
        "warning",
        "Evaluations along runs were kept in place of their ends, on request.",
        "Losses before the rate has decayed are not those of a finished run; laws fitted to them describe something "
        "else. Resample by run or cell, never by row.",
    ),
    "smoothed": NoteCode(
        "info",
        "Losses were averaged over the last steps before each end, on request.",
        "State the bandwidth with the number; use the same for every architecture. An average lags behind a loss that "
        "still falls.",
    ),
    "counter_reset": NoteCode(
        "warning",
        "A restart set a counter of steps or tokens back; it was continued with the help of the other one.",
        "Compare the tokens of the endpoint with the plan; state start_step and start_tokens in the table of runs to "
        "fix them.",
    ),
    "replaced_log": NoteCode(
        "warning",
        "A later piece of a run begins where the run began: nothing of what was logged before is left.",
        "Right for a run that was started anew or logged twice. Two runs under one name (two seeds) are one endpoint "
        "too few: give each its name with --run-pattern or in the table of runs.",
    ),
    "missing_rows": NoteCode(
        "info",
        "Between two pieces of a run no rows are logged.",
        "Harmless for its endpoint. If a file of the run is missing, add it.",
    ),
    "tokens_mismatch": NoteCode(
        "warning",
        "Logged tokens differ by more than 0.5 % from steps times tokens per step.",
        "Right if the batch size grew during the run. Otherwise one of the two is wrong: check the batch size, the "
        "sequence length, and whether the counter includes evaluation tokens.",
    ),
    "torn_line": NoteCode(
        "warning",
        "The last line of a log is cut off and was not read.",
        "Usual while a run is being written or after a crash. Copy the file again if the run has ended.",
    ),
    "unread_lines": NoteCode(
        "warning",
        "Lines of a log are no records of its format and were skipped.",
        "Harmless for a few lines that other programs wrote in between. Many mean a damaged file or another version of "
        "the trainer.",
    ),
    "damaged_records": NoteCode(
        "warning",
        "Records of a log whose length or checksum is wrong were not read.",
        "Copy the file again. If it is damaged at its source, check that the last evaluation is still the planned one.",
    ),
    "deleted_run": NoteCode(
        "warning",
        "A run is marked as deleted where it is stored and was not read.",
        "Right if it was deleted for a reason; otherwise restore it there (for MLflow: mlflow runs restore).",
    ),
    "empty_run": NoteCode(
        "warning",
        "A run on a server has no row with a key that is read.",
        "Harmless for a run that never started. Otherwise name its loss with --map loss=KEY.",
    ),
    "unreadable_files": NoteCode(
        "warning",
        "Logs that cannot be read were left out, on request (--skip-unreadable).",
        "Right for jobs that died before their first row. A damaged piece of a longer run is missing from it: copy the "
        "file again.",
    ),
    "unread_files": NoteCode(
        "warning",
        "Files are no log of a known format and were not read.",
        "Harmless for notes and configurations. For a log, export it as CSV or JSON lines with a column step, or name "
        "its format with --reader.",
    ),
}
