"""The main job and its result: fit every architecture, resample, save, load."""

from __future__ import annotations

from smelt_scaling.study.model import Bootstrap, Study
from smelt_scaling.study.run import fit
from smelt_scaling.study.store import check_folder, load_study, save_study

__all__ = ["Bootstrap", "Study", "check_folder", "fit", "load_study", "save_study"]
