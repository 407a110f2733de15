"""The built wheel: what is in it, and that its command runs away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGE = CHECKOUT / "smelt_scaling"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel built from the checkout, with the build tool of this environment and no package index."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    packaged = {name for name in names if ".dist-info/" not in name}
    expected = {
        path.relative_to(CHECKOUT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packaged == expected
    assert "smelt_scaling/py.typed" in packaged
    assert [
        name for name in packaged if name.startswith("smelt_scaling/papers/") and not name.endswith(".py")
    ]
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_command_of_the_wheel_runs_from_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    install = ["pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    subprocess.run([sys.executable, "-m", *install], check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(site)}

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=empty, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run(sys.executable, "-c", "import smelt_scaling; print(smelt_scaling.__file__)")
    assert Path(where.strip()).is_relative_to(site)
    for command in ([str(site / "bin" / "smelt-scaling")], [sys.executable, "-m", "smelt_scaling"]):
        assert "ce-gain" in run(*command, "--help")
    assert list(empty.iterdir()) == []
    # published coefficients and the recipe of the example are data files of the package
    smelt = str(site / "bin" / "smelt-scaling")
    assert "Compute saved by smelt" in run(smelt, "ce-gain", "--published", "smelt", "--budget", "1e21")
    run(smelt, "example")
    assert "certified" in run(smelt, "fit", "runs.parquet", "--bootstrap", "20")
    assert sorted(path.name for path in empty.iterdir()) == ["reports", "runs.parquet"]
