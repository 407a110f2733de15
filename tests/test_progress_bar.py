"""Progress of reading logs: by bytes, on a terminal only, and gone when it is done."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from smelt_scaling.ingest import scan_logs

CHECKOUT = Path(__file__).resolve().parent.parent
ROWS = 60_000


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One log of 2 MB: a bar that counts files would not move."""
    path = tmp_path_factory.mktemp("logs") / "one.csv"
    rows = "".join(
        f"r,a,1e8,{1 - step / ROWS:.5f},{step},{step}e6,{5 - step / ROWS:.4f}\n" for step in range(1, ROWS)
    )
    path.write_text("run,arch,N,lr,step,tokens,eval/loss\n" + rows)
    return path


def test_progress_counts_the_bytes_of_one_file(log: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    scan_logs([log], progress=lambda *said: seen.append(said))
    size = log.stat().st_size
    done = [at for at, _, _ in seen]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, size)
    assert len({at for at in done if 0 < at < size}) > 2
    assert {total for _, total, _ in seen} == {size}


def test_a_file_that_no_reader_knows_is_counted_too(log: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(log.read_bytes())
    (tmp_path / "notes.txt").write_text("Monday: started.\n")
    seen: list[tuple[int, int, str]] = []
    scan_logs([tmp_path], progress=lambda *said: seen.append(said))
    total = log.stat().st_size + 17
    assert seen[-1][:2] == (total, total)


def command(log: Path, folder: Path) -> list[str]:
    return [sys.executable, "-m", "smelt_scaling", "endpoints", str(log), "-o", str(folder / "runs.csv")]


def screen(text: str) -> list[str]:
    """Return the lines that a terminal shows after this text: carriage returns, cursor up, erased lines."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[?0-9;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", text):
        if part == "\n":
            row += 1
            lines += [""] * (row >= len(lines))
        elif part == "\r":
            column = 0
        elif part.endswith("K"):
            lines[row] = ""
        elif part.endswith("A"):
            row -= int(part[2:-1] or 1)
        elif not part.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return lines


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals on this system")
def test_the_bar_shows_on_a_terminal_and_leaves_no_trace(log: Path, tmp_path: Path) -> None:
    import termios

    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "CI")}
    process = subprocess.Popen(
        command(log, tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**kept, "TERM": "xterm", "PYTHONPATH": str(CHECKOUT)},
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end was closed
            break
        if not chunk:
            break
        said += chunk
    os.close(ours)
    assert process.communicate()[0] == b""
    assert process.returncode == 0
    text = said.decode()
    assert "one.csv" in text  # the bar names the file
    assert re.search(r"\d[.0-9]*/[.0-9]+ [kM]B", text)  # and counts its bytes
    left = [line.rstrip() for line in screen(text) if line.strip()]
    assert not any(re.search(r"━|/[.0-9]+ [kM]B|reading", line) for line in left), left
    assert left[0].startswith("note [loss_key]")
    assert left[-1].startswith("next: smelt-scaling check")
    assert text.count("\x1b[?25h") == text.count("\x1b[?25l")  # the cursor is back


def test_nothing_of_it_in_a_pipe(log: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "COLUMNS": "80"}
    done = subprocess.run(
        command(log, tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env=env,
        check=True,
    )
    assert done.stdout == ""
    assert "\x1b" not in done.stderr
    assert "━" not in done.stderr
    assert [line.split()[0] for line in done.stderr.splitlines()][0] == "note"
