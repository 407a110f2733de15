"""The set-up script: which machine needs what, with stand-ins for python3 and apt-get."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "venv.sh"

#: Answers the version check, says whether it can make environments, and makes one whose pip writes down its arguments.
PYTHON = r"""#!/bin/sh
echo "python3 $*" >> log
case "$*" in
  *version_info*) exit {old} ;;
  *ensurepip*) [ {complete} = 1 ] || [ -e installed ] || exit 1 ;;
  "-m venv .venv")
    mkdir -p .venv/bin
    printf '#!/bin/sh\necho "pip $*" >> log\n' > .venv/bin/pip
    chmod +x .venv/bin/pip ;;
esac
"""
APT = """#!/bin/sh
echo "apt-get $* $DEBIAN_FRONTEND" >> log
case "$1" in install) [ {broken} = 0 ] || exit 100; touch installed ;; esac
"""


class Machine:
    """A folder with a path of its own, on which only a few commands exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("sh", "mkdir", "chmod", "touch", "env"):
            (self.bin / name).symlink_to(str(shutil.which(name)))

    def put(self, name: str, script: str, **values: int) -> None:
        for key, value in values.items():
            script = script.replace(f"{{{key}}}", str(value))
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def run(self) -> tuple[int, str]:
        done = subprocess.run(
            [str(self.bin / "sh"), str(SCRIPT), "-e", ".[a b]"],
            cwd=self.folder,
            env={"PATH": str(self.bin)},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.stdout == ""
        return done.returncode, done.stderr

    @property
    def log(self) -> list[str]:
        path = self.folder / "log"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if not line.startswith("python3 -c")]


PIP = "pip install -q --disable-pip-version-check -e .[a b]"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_complete_python_needs_nothing_else(machine: Machine) -> None:
    machine.put("python3", PYTHON, old=0, complete=1)
    machine.put("apt-get", APT, broken=0)
    assert machine.run() == (0, "")
    assert machine.log == ["python3 -m venv .venv", PIP]


def test_debian_gets_the_missing_package_without_questions(machine: Machine) -> None:
    machine.put("python3", PYTHON, old=0, complete=0)
    machine.put("apt-get", APT, broken=0)
    # as sudo does by default, this one passes no variable on
    machine.put("sudo", '#!/bin/sh\necho sudo >> log\nunset DEBIAN_FRONTEND\nexec "$@"\n')
    code, said = machine.run()
    assert code == 0
    assert "installing python3-venv with apt-get" in said
    assert machine.log == [
        "sudo",
        "apt-get update -q noninteractive",
        "sudo",
        "apt-get install -y -q python3-venv noninteractive",
        "python3 -m venv .venv",
        PIP,
    ]


def test_other_systems_are_told_what_is_missing(machine: Machine) -> None:
    machine.put("python3", PYTHON, old=0, complete=0)
    code, said = machine.run()
    assert code == 1
    assert said.startswith("error: python3 cannot make environments: install its modules venv and ensurepip")
    assert len(said.splitlines()) == 1
    assert machine.log == []


@pytest.mark.parametrize("present", [True, False])
def test_an_old_or_absent_python_is_said_first(machine: Machine, present: bool) -> None:
    if present:
        machine.put("python3", PYTHON, old=1, complete=1)
    machine.put("apt-get", APT, broken=0)
    code, said = machine.run()
    assert code == 1
    assert said.startswith("error: python3 is missing or older than 3.11: install Python 3.11 or newer")
    assert len(said.splitlines()) == 1
    assert machine.log == []


def test_a_failing_apt_get_ends_it(machine: Machine) -> None:
    machine.put("python3", PYTHON, old=0, complete=0)
    machine.put("apt-get", APT, broken=1)
    assert machine.run()[0] == 100
    assert machine.log[-1].startswith("apt-get install")
