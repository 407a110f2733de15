"""Every block of README.md and docs/ runs, and prints what the document says it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import regenerate_docs

DOCUMENTS = regenerate_docs.documents()


def name_of(path: Path) -> str:
    return path.relative_to(regenerate_docs.ROOT).as_posix()


def write(folder: Path, text: str) -> Path:
    """Write a document; ~ stands for the backquotes of a fence."""
    path = folder / "page.md"
    path.write_text(text.replace("~~~", "```"), encoding="utf-8")
    return path


def test_readme_has_the_two_setup_commands_and_no_other_exempt_block() -> None:
    exempt = []
    for path in DOCUMENTS:
        found = regenerate_docs.blocks(path.read_text(encoding="utf-8").splitlines())
        exempt += [(name_of(path), block.name) for block in found if block.comment == "setup"]
    assert sorted(exempt) == [("README.md", "main"), ("README.md", "test")]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_blocks_run_and_print_what_the_document_says(path: Path) -> None:
    text, problems = regenerate_docs.regenerate(path)
    assert not problems, "\n".join(problems)
    assert text == path.read_text(encoding="utf-8")


def test_a_true_document_stays_as_it_is(tmp_path: Path) -> None:
    page = write(
        tmp_path,
        """# Page

<!-- setup: main -->

~~~bash
exit 7
~~~

~~~console
$ printf 'a\\nb\\nc took 3 s\\n'
a
...
c took ... s
$ cat none 2>/dev/null
$ echo $?
1
$ echo one > file \\
>   && echo two >> file
~~~

~~~python
from pathlib import Path
words = Path("file").read_text().split()
print(words)
~~~

<!-- output -->

~~~text
['one', 'two']
~~~

~~~python
>>> len(words)
2
>>> for word in words:
...     print(word)
one
two
>>> 1 / 0
Traceback (most recent call last):
    ...
ZeroDivisionError: division by zero
~~~

~~~json
{"not": "run"}
~~~
""",
    )
    text, problems = regenerate_docs.regenerate(page)
    assert problems == []
    assert text == page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("~~~console\n$ echo 2\n1\n~~~\n", "~~~console\n$ echo 2\n2\n~~~\n", "echo 2 printed"),
        ("~~~console\n$ true\n$ exit 3\n~~~\n", None, "the shell stopped early"),
        ("~~~console\n$ (exit 3)\n$ true\n~~~\n", "", "ended with status 3"),
        ("~~~bash\nfalse\ntrue\n~~~\n", "", "ended with status 1"),
        ("~~~python\n1 / 0\n~~~\n", "", "ZeroDivisionError"),
        ("~~~python\n>>> 1 + 1\n3\n~~~\n", "~~~python\n>>> 1 + 1\n2\n~~~\n", ">>> 1 + 1 printed"),
        (
            "~~~python\nprint(2)\n~~~\n<!-- output -->\n~~~text\n1\n~~~\n",
            "~~~python\nprint(2)\n~~~\n<!-- output -->\n~~~text\n2\n~~~\n",
            "the python block above printed",
        ),
    ],
)
def test_an_untrue_document_is_reported_and_mended(
    tmp_path: Path, old: str, new: str | None, problem: str
) -> None:
    page = write(tmp_path, old)
    if new is None:
        with pytest.raises(RuntimeError, match=problem):
            regenerate_docs.regenerate(page)
        return
    text, problems = regenerate_docs.regenerate(page)
    assert len(problems) == 1
    assert problem in problems[0]
    assert text == (new or old).replace("~~~", "```")


def test_a_table_is_made_from_the_code(tmp_path: Path) -> None:
    page = write(tmp_path, "<!-- generated: note-codes -->\nold\n<!-- end generated -->\n")
    text, problems = regenerate_docs.regenerate(page)
    assert len(problems) == 1
    assert (
        "### `unpaired`\n\n*warning*: The architectures share no resampling label and were resampled" in text
    )
    page.write_text(text, encoding="utf-8")
    assert regenerate_docs.regenerate(page) == (text, [])


def test_check_fails_and_write_mends_from_the_command_line(tmp_path: Path) -> None:
    page = write(tmp_path, "~~~console\n$ echo 2\n1\n~~~\n")

    def run(mode: str) -> int:
        command = [sys.executable, regenerate_docs.__file__, mode, str(page)]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert [run("--check"), run("--write"), run("--check")] == [1, 0, 0]
    assert page.read_text(encoding="utf-8") == "```console\n$ echo 2\n2\n```\n"


def test_commands_are_those_of_this_environment() -> None:
    first = regenerate_docs.environment()["PATH"].split(os.pathsep)[0]
    assert first == str(Path(sys.executable).parent)


def test_a_newcomer_with_logs_finds_the_command_at_once() -> None:
    first = (regenerate_docs.ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    assert any("smelt-scaling endpoints" in line and "docs/logs.md" in line for line in first)
