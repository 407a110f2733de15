"""Shared fixtures: where the real data lies, and settings that make every run the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

CHECKOUT = Path(__file__).resolve().parent.parent

os.environ.setdefault("MPLBACKEND", "Agg")
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")


def real_data_folder() -> Path | None:
    """Return the folder of real training data, or None when this machine has none."""
    named = os.environ.get("SMELT_TEST_DATA")
    folder = Path(named) if named else CHECKOUT.parent / "shared" / "data"
    if named and not folder.is_dir():
        raise pytest.UsageError(f"SMELT_TEST_DATA names {named}, which is not a folder")
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of real training data; the test skips where there is none."""
    folder = real_data_folder()
    if folder is None:
        pytest.skip("no real data: set SMELT_TEST_DATA to its folder")
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that read real data."""
    for item in items:
        if "real_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.realdata)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Turn a skip into a failure for a test on real data that is there."""
    report = yield
    skipped = report.skipped and not hasattr(report, "wasxfail")
    if skipped and item.get_closest_marker("realdata") and real_data_folder() is not None:
        report.outcome = "failed"
        report.longrepr = f"the real data is present, so this test may not skip: {report.longrepr[2]}"
    return report
