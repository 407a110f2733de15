"""Codes of logs that are tables: cells, names and orders that cannot be taken as they stand."""

from __future__ import annotations

from smelt_scaling.note_codes._code import NoteCode

__all__ = ["LOG_TABLES"]

LOG_TABLES: dict[str, NoteCode] = {
    "unread_cells": NoteCode(
        "warning",
        "Cells of a log hold neither a number nor nothing, and were taken as empty.",
        "Harmless for a word such as skipped. Where a number stands in another notation (1,5 or 1.5e9 tokens) write it "
        "plainly; a time has to be a date or seconds since 1970.",
    ),
    "ambiguous": NoteCode(
        "warning",
        "The shuffled rows of a run hold two values at one step, and nothing says which is later; it was left out.",
        "Add a column of times, or sort the rows as they were logged.",
    ),
    "ambiguous_name": NoteCode(
        "warning",
        "Columns of a chart hold several dashes between run and metric, and were split at the last one.",
        "Harmless if the runs are named right. Otherwise name the metric as it was logged, with --map loss=METRIC.",
    ),
    "repeated_name": NoteCode(
        "warning",
        "Several columns of a chart have one name; their runs were kept apart by a number.",
        "Give the runs names of their own and export the chart again; pieces of one run are told by the table of runs.",
    ),
    "grouped_mean": NoteCode(
        "warning",
        "A column of a chart is a mean over a group of runs.",
        "A mean over seeds is one endpoint with less noise; a mean over sizes or settings is none. Turn the grouping "
        "off to export the runs themselves.",
    ),
}
