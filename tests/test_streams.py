"""Standard streams that are full, closed or left: data stay data, talk stays talk, and every end has its code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
GAIN = "ce-gain --published smelt --budget 1e21"
CLOSED = "error: standard output is closed; open it, or send it to /dev/null"
FULL = "error: standard output cannot be written (No space left on device); send it elsewhere"

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")


def shell(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which ``smelt`` is the command."""
    smelt = f'smelt() {{ "{sys.executable}" -m smelt_scaling "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", smelt + script],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def errors(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("error: ")]


@needs_full
@pytest.mark.parametrize("command", [GAIN, f"{GAIN} --format csv", "--help", "fit --help", "--version"])
def test_a_full_disk_is_one_line_and_exit_2(command: str, tmp_path: Path) -> None:
    done = shell(f"smelt {command} > /dev/full", tmp_path)
    assert (done.returncode, errors(done)) == (2, [FULL])


@pytest.mark.parametrize("command", [GAIN, "example", "--help"])
def test_closed_standard_output_is_one_line_and_exit_2(command: str, tmp_path: Path) -> None:
    done = shell(f"smelt {command} >&-", tmp_path)
    assert (done.returncode, errors(done)) == (2, [CLOSED])
    assert list(tmp_path.iterdir()) == []  # nothing ran


def test_talk_never_goes_into_the_data(tmp_path: Path) -> None:
    """Without a standard error, Python's print would write to standard output."""
    done = shell(f"smelt {GAIN} > with; smelt {GAIN} > without 2>&-", tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "with").read_bytes() == (tmp_path / "without").read_bytes() != b""
    usage = shell("smelt nothing 2>&-", tmp_path)
    assert (usage.returncode, usage.stdout) == (2, "")
    broken_rule = shell("smelt ce-gain --published nobody 2>&-", tmp_path)
    assert (broken_rule.returncode, broken_rule.stdout) == (2, "")


def test_files_do_not_take_the_place_of_closed_streams(tmp_path: Path) -> None:
    done = shell(f"smelt {GAIN} -o out > data <&- 2>&-", tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "out" / "ce-gain.json").read_text(encoding="utf-8").startswith("{")
    assert (
        shell("smelt example 2>&- && smelt check runs.parquet --format csv 2>&- | wc -l", tmp_path).stdout
        == "3\n"
    )


@needs_full
def test_data_are_complete_when_nobody_takes_the_talk(tmp_path: Path) -> None:
    script = f"smelt {GAIN} 2>/dev/null; echo $?; smelt {GAIN} 2>/dev/full; echo $?"
    first, second, rest = shell(script, tmp_path).stdout.split("\n0\n")
    assert (first, rest) == (second, "")
    reading, writing = os.pipe()
    os.close(reading)
    argv = [sys.executable, "-m", "smelt_scaling", *GAIN.split()]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with os.fdopen(writing, "wb") as gone:
        done = subprocess.run(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=gone, check=False)
        usage = subprocess.run([*argv, "--nope"], cwd=tmp_path, env=env, stderr=gone, check=False)
    assert (done.returncode, done.stdout.decode().rstrip("\n")) == (0, first)
    assert usage.returncode == 2


@pytest.mark.parametrize("command", [GAIN, "--help", "fit --help", "--version", f"{GAIN} --format csv"])
def test_a_reader_that_leaves_ends_every_command_with_141(command: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-m", "smelt_scaling", *command.split()],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            stdout=stdout,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
    assert (done.returncode, errors(done)) == (141, [])
    assert "BrokenPipe" not in done.stderr


def test_files_are_written_even_if_the_reader_leaves(tmp_path: Path) -> None:
    done = shell(f"smelt {GAIN} -o out | true; echo ${{PIPESTATUS[0]}}", tmp_path)
    assert done.stdout == "141\n"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["ce-gain.json", "ce-gain.parquet"]


def test_files_that_cannot_be_written_are_said_before_anything_is_shown(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    done = shell(f"smelt {GAIN} -o file/reports", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert errors(done) == ["error: file/reports: cannot be written (Not a directory); choose another -o"]


def test_closed_standard_input_is_one_line_and_exit_2(tmp_path: Path) -> None:
    done = shell("smelt check - <&-", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert errors(done) == ["error: -: standard input is closed; name a file, or pipe the table in"]
