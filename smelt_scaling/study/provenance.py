"""Where a study's numbers come from: source, digests, versions, date."""

from __future__ import annotations

import hashlib
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from smelt_scaling.endpoints import Endpoints

__all__ = ["describe_run", "file_sha256", "timestamp"]

PACKAGES = ("smelt-scaling", "numpy", "scipy", "pandas", "pyarrow")


def describe_run(endpoints: Endpoints) -> dict[str, Any]:
    """Return the provenance of a fit to these endpoints."""
    return {
        "source": endpoints.source,
        "source_path": str(Path(endpoints.source).resolve()) if Path(endpoints.source).is_file() else None,
        "input_sha256": file_sha256(endpoints.source),
        "endpoints_digest": endpoints.digest,
        "created": timestamp(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def file_sha256(path: str) -> str | None:
    """Return the sha256 of a file, or None if there is none at that path."""
    if not Path(path).is_file():
        return None
    with Path(path).open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def timestamp() -> str:
    """Return the time as ISO 8601 in UTC; ``SOURCE_DATE_EPOCH`` takes the place of the clock."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    return moment.isoformat(timespec="seconds")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a checkout on the path without an install
        return "unknown"
