"""Log formats, recognised by content: the first reader of `READERS` that knows a file reads it.

A new format is one file with one `Reader`, and one line here. The order goes from formats with a signature to those
that look like others.
"""

from __future__ import annotations

from smelt_scaling.ingest.events import Reader
from smelt_scaling.ingest.readers.hf_trainer import HF_TRAINER
from smelt_scaling.ingest.readers.llmc import LLMC
from smelt_scaling.ingest.readers.lm_eval import LM_EVAL
from smelt_scaling.ingest.readers.megatron_golden import MEGATRON_GOLDEN
from smelt_scaling.ingest.readers.megatron_text import MEGATRON_TEXT
from smelt_scaling.ingest.readers.mlflow_store import MLFLOW_STORE
from smelt_scaling.ingest.readers.modded_nanogpt import MODDED_NANOGPT
from smelt_scaling.ingest.readers.nanogpt import NANOGPT
from smelt_scaling.ingest.readers.open_lm import OPEN_LM
from smelt_scaling.ingest.readers.seqio import SEQIO
from smelt_scaling.ingest.readers.smelt_train import SMELT_TRAIN
from smelt_scaling.ingest.readers.step_table import STEP_TABLE
from smelt_scaling.ingest.readers.tensorboard import TENSORBOARD
from smelt_scaling.ingest.readers.wandb_api import WANDB_API
from smelt_scaling.ingest.readers.wandb_csv import WANDB_CSV
from smelt_scaling.ingest.readers.wandb_offline import WANDB_OFFLINE
from smelt_scaling.ingest.readers.wandb_summary import WANDB_SUMMARY
from smelt_scaling.ingest.wandb_cloud import WANDB_CLOUD

__all__ = ["READERS"]

READERS: dict[str, Reader] = {
    "wandb_cloud": WANDB_CLOUD,
    "tensorboard": TENSORBOARD,
    "wandb_offline": WANDB_OFFLINE,
    "mlflow_store": MLFLOW_STORE,
    "llmc": LLMC,
    "modded_nanogpt": MODDED_NANOGPT,
    "nanogpt": NANOGPT,
    "megatron_text": MEGATRON_TEXT,
    "megatron_golden": MEGATRON_GOLDEN,
    "hf_trainer": HF_TRAINER,
    "open_lm": OPEN_LM,
    "lm_eval": LM_EVAL,
    "wandb_api": WANDB_API,
    "wandb_summary": WANDB_SUMMARY,
    "seqio": SEQIO,
    "smelt_train": SMELT_TRAIN,
    "wandb_csv": WANDB_CSV,
    "step_table": STEP_TABLE,
}
