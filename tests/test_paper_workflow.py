"""The example workflow runs: its steps in order, as a shell of the service would run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKFLOW = ROOT / ".github" / "workflows" / "paper.yml"


def run_steps(text: str) -> list[str]:
    """Return the ``run:`` steps of a workflow, one line or a block each.

    Examples
    --------
    >>> run_steps("steps:\\n  - run: a\\n  - name: x\\n    run: |\\n      b\\n        c\\n  - uses: y\\n")
    ['a', 'b\\n  c\\n']
    """
    lines, steps = text.splitlines(), []
    for number, line in enumerate(lines):
        found = re.match(r"^(\s*(?:- )?)run: (.*)$", line)
        if found is None:
            continue
        if found[2] != "|":
            steps.append(found[2])
            continue
        block = []
        for below in lines[number + 1 :]:
            if below.strip() and len(below) - len(below.lstrip()) <= len(found[1]):
                break
            block.append(below)
        steps.append(textwrap.dedent("\n".join(block) + "\n"))
    return steps


def test_the_steps_run_and_no_number_of_the_committed_report_moved(tmp_path: Path) -> None:
    install, *steps = run_steps(WORKFLOW.read_text(encoding="utf-8"))
    assert (
        install == "pip install ."
    )  # what README's set-up command does, and the only step that needs a network
    assert len(steps) == 3
    (tmp_path / "reports").mkdir()
    shutil.copytree(ROOT / "data" / "report", tmp_path / "data" / "report")
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    command = scripts / "smelt-scaling"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m smelt_scaling "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(scripts), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "SOURCE_DATE_EPOCH": "0",
    }
    for step in steps:  # the service's shell stops at the first failure, of a pipe too
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    said = (tmp_path / "reports/differences.txt").read_text(encoding="utf-8")
    assert re.fullmatch(r"no number moved: \d+ tables agree with data/report\n", said)
    assert (tmp_path / "reports/report/contact_sheet.png").is_file()


def test_the_steps_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    assert "../.github/workflows/paper.yml" in page
