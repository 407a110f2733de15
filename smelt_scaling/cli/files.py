"""Tables and files that a command writes beside its result: named for how they are written, never replaced unasked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smelt_scaling.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["require_target", "write_table"]

KINDS = (".parquet", ".csv", ".jsonl", ".json")


def require_target(path: Path, force: bool, kinds: tuple[str, ...] = KINDS) -> None:
    """Refuse a file of another kind, and one that exists unless it may be replaced.

    Raises
    ------
    UsageError
        Naming the file.
    """
    if path.suffix.lower() not in kinds:
        raise UsageError(f"{path}: the name of the file says how it is written; end it in {', '.join(kinds)}")
    if path.exists() and not force:
        raise UsageError(f"{path}: exists and is not replaced; choose another name, or add --force")


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as the ending of the name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix.lower() == ".csv":
        frame.to_csv(path, index=False, lineterminator="\n")
    else:
        frame.to_json(path, orient="records", lines=True, double_precision=15)
