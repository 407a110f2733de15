"""Every note code: what it means and what to do about it. Codes are API: added, never renamed in a major version."""

from __future__ import annotations

from smelt_scaling.note_codes._budgets import BUDGETS
from smelt_scaling.note_codes._code import NoteCode
from smelt_scaling.note_codes._downstream import DOWNSTREAM
from smelt_scaling.note_codes._log_tables import LOG_TABLES
from smelt_scaling.note_codes._logs import LOGS
from smelt_scaling.note_codes._measured import MEASURED
from smelt_scaling.note_codes._planning import PLANS
from smelt_scaling.note_codes._probes import MECHANISMS
from smelt_scaling.note_codes._results import ANSWERS, FITS, PUBLISHED, RESAMPLING
from smelt_scaling.note_codes._splits import SPLITS
from smelt_scaling.note_codes._table import READING, ROWS

__all__ = ["NOTE_CODES", "STAGES", "NoteCode"]

#: Stage -> its codes, in the order in which a reader meets them.
STAGES: dict[str, dict[str, NoteCode]] = {
    "Reading logs": LOGS,
    "Logs that are tables": LOG_TABLES,
    "Reading the table": READING,
    "Rows, units and conventions": ROWS,
    "Fits": FITS,
    "Resampling and intervals": RESAMPLING,
    "Gains, optima and predictions": ANSWERS,
    "Plans of further runs": PLANS,
    "Downstream scores": DOWNSTREAM,
    "Lengths, shots and ablations": MEASURED,
    "Parts of an evaluation": SPLITS,
    "Probes of a second visit": MECHANISMS,
    "Budgets of models": BUDGETS,
    "Published and simulated numbers": PUBLISHED,
}

#: Code -> what it says of itself.
NOTE_CODES: dict[str, NoteCode] = {code: said for stage in STAGES.values() for code, said in stage.items()}
