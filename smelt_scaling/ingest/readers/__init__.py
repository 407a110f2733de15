"""Log formats, recognised by content: the first reader of `READERS` that knows a file reads it.

A new format is one file with one `Reader`, and one line here. The order goes from formats with a signature to those
that look like others.
"""

from __future__ import annotations

from smelt_scaling.ingest.events import Reader
from smelt_scaling.ingest.readers.llmc import LLMC
from smelt_scaling.ingest.readers.smelt_train import SMELT_TRAIN
from smelt_scaling.ingest.readers.step_table import STEP_TABLE
from smelt_scaling.ingest.readers.wandb_csv import WANDB_CSV

__all__ = ["READERS"]

READERS: dict[str, Reader] = {
    "llmc": LLMC,
    "smelt_train": SMELT_TRAIN,
    "wandb_csv": WANDB_CSV,
    "step_table": STEP_TABLE,
}
