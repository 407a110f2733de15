"""Run every block of README.md and docs/, and keep what they print true.

Outputs in the documents are generated, never typed: ``--check`` (the default) says what differs and exits 1,
``--write`` rewrites the outputs that differ. The blocks of one document run in order, in one empty folder of
its own, so that they build upon each other.

What runs, by the word behind the fence:

``console``
    ``$ command`` lines, continued by ``> `` lines; the lines below are the command's standard output. A
    command that fails shows its error output too, and must be followed by ``$ echo $?``: no failure is an
    accident.
``bash``
    A script; it must succeed and shows no output.
``python``
    Code, in one namespace per document; with ``>>>`` prompts a session with its outputs.
``text`` under ``<!-- output -->``
    What the ``python`` block above it prints.

In an expected output ``...`` alone on a line stands for any lines, and inside a line for any text; an output
that matches is left as it is. A block under ``<!-- setup -->`` (or ``<!-- setup: NAME -->``) is exempt.
Between ``<!-- generated: NAME -->`` and ``<!-- end generated -->`` stands a table made from the code.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import importlib
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})(?P<language>[\w+-]*)[^\n]*$")
COMMENT = re.compile(r"^<!--\s*(?P<word>[a-z ]+?)\s*(?::\s*(?P<name>[\w-]+)\s*)?-->$")
TIMEOUT_S = 600.0
#: Ends each command's output; the record separator never occurs in text that people print.
MARK = "\x1e"


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block: its lines are ``lines[start:stop]`` of the document, the fences not included."""

    language: str
    comment: str
    name: str
    start: int
    stop: int


@dataclass(kw_only=True)
class Document:
    """A document while it is being run: the new text and what differed from the old one."""

    path: Path
    lines: list[str]
    problems: list[str] = field(default_factory=list)

    def report(self, line: int, message: str) -> None:
        """Note a difference, at a line counted from 0."""
        self.problems.append(f"{self.path.name}:{line + 1}: {message}")


def documents(root: Path = ROOT) -> list[Path]:
    """Return the documents whose blocks run: README.md and every page of docs/."""
    return [path for path in (root / "README.md", *sorted((root / "docs").rglob("*.md"))) if path.exists()]


def blocks(lines: list[str]) -> Iterator[Block]:
    """Yield the fenced blocks of a document in order, each with the comment just above it, if any."""
    index = 0
    while index < len(lines):
        opening = FENCE.match(lines[index])
        if opening is None:
            index += 1
            continue
        closing = re.compile(rf"^{opening['fence']}\s*$")
        stop = next((i for i in range(index + 1, len(lines)) if closing.match(lines[i])), None)
        if stop is None:
            raise ValueError(f"line {index + 1}: the fence is never closed")
        above = next((line for line in reversed(lines[:index]) if line.strip()), "")
        comment = COMMENT.match(above.strip())
        yield Block(
            language=opening["language"],
            comment=comment["word"] if comment else "",
            name=(comment["name"] or "") if comment else "",
            start=index + 1,
            stop=stop,
        )
        index = stop + 1


def setup_command(path: Path, name: str) -> str:
    """Return the set-up command under ``<!-- setup: NAME -->``.

    Raises
    ------
    KeyError
        If the document has no such block.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    for block in blocks(lines):
        if block.comment == "setup" and block.name == name:
            return "\n".join(line.removeprefix("$ ") for line in lines[block.start : block.stop])
    raise KeyError(f"{path.name} has no block under <!-- setup: {name} -->")


def matches(expected: list[str], actual: list[str]) -> bool:
    """Tell whether the actual lines are the expected ones, ``...`` standing for anything.

    Examples
    --------
    >>> matches(["a", "...", "took ... s"], ["a", "b", "c", "took 1.2 s"])
    True
    >>> matches(["a", "..."], ["b"])
    False
    """
    parts = []
    for line in expected:
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(r"[^\n]*?".join(map(re.escape, line.rstrip().split("..."))) + r"\n")
    return re.fullmatch("".join(parts), "".join(line.rstrip() + "\n" for line in actual)) is not None


def environment() -> dict[str, str]:
    """Return the environment of the commands: its scripts first, a plain 100-column terminal."""
    plain = {"COLUMNS": "100", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "PYTHONUTF8": "1", "TERM": "dumb"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, **plain, "PATH": path}


def run_commands(commands: list[str], folder: Path) -> list[tuple[int, str]]:
    """Run the commands of one block in one shell; return each exit status and what it printed."""
    script = "".join(
        f"{command}\n__status=$?; printf '{MARK}%d{MARK}' $__status; printf '{MARK}' >&2; (exit $__status)\n"
        for command in commands
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
    )
    fields = done.stdout.split(MARK)
    errors = done.stderr.split(MARK)
    statuses = [int(status) for status in fields[1::2]]
    if len(statuses) != len(commands):
        raise RuntimeError(f"the shell stopped early: {done.stderr.strip()}")
    outputs = zip(statuses, fields[0::2], errors, strict=False)
    return [(status, out + (err if status else "")) for status, out, err in outputs]


def run_console(document: Document, block: Block, folder: Path) -> list[str]:
    """Run a ``console`` block and return its new lines."""
    steps: list[tuple[list[str], list[str]]] = []
    in_command = False
    for line in document.lines[block.start : block.stop]:
        if line.startswith("$ "):
            steps.append(([line], []))
            in_command = True
        elif in_command and line.startswith("> "):
            steps[-1][0].append(line)
        elif steps:
            steps[-1][1].append(line)
            in_command = False
        else:
            raise ValueError(
                f"{document.path.name}:{block.start + 1}: a console block starts with '$ command'"
            )
    commands = ["\n".join(line[2:] for line in source) for source, _ in steps]
    results = run_commands(commands, folder)
    new: list[str] = []
    for index, ((source, expected), (status, output)) in enumerate(zip(steps, results, strict=True)):
        where = block.start + len(new)
        if status and (index + 1 == len(steps) or commands[index + 1] != "echo $?"):
            document.report(where, f"{source[0]} ended with status {status}: {output.strip()}")
        actual = [text.rstrip() for text in output.splitlines()]
        new += [*source, *settle(document, where, source[0], expected, actual)]
    return new


def settle(document: Document, line: int, source: str, expected: list[str], actual: list[str]) -> list[str]:
    """Return the expected lines where they match, else the actual ones, and note the difference."""
    if matches(expected, actual):
        return expected
    shown = "\n".join([f"{source} printed", *(f"  + {text}" for text in actual), "where the document says"])
    document.report(line, "\n".join([shown, *(f"  - {text}" for text in expected)]))
    return actual


def run_session(document: Document, block: Block, names: dict[str, Any]) -> list[str]:
    """Run a ``python`` block with ``>>>`` prompts and return its new lines."""
    old = document.lines[block.start : block.stop]
    new: list[str] = []
    done = 0
    for example in doctest.DocTestParser().get_examples("\n".join(old) + "\n"):
        source = example.source.rstrip("\n").count("\n") + 1
        stop = example.lineno + source + len(example.want.splitlines())
        expected = old[example.lineno + source : stop]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                exec(compile(example.source, document.path.name, "single"), names)
            except Exception as error:
                if example.exc_msg is None:  # not announced as a traceback
                    document.report(block.start + example.lineno, "".join(traceback.format_exception(error)))
                out.write("Traceback (most recent call last):\n    ...\n")
                out.write("".join(traceback.format_exception_only(error)))
        actual = out.getvalue().rstrip("\n").splitlines()
        where = block.start + example.lineno
        new += old[done : example.lineno + source]
        new += settle(document, where, old[example.lineno], expected, actual)
        done = stop
    return new + old[done:]


def run_code(document: Document, block: Block, names: dict[str, Any]) -> list[str]:
    """Run a plain ``python`` block and return the lines it printed."""
    code = "\n" * block.start + "\n".join(document.lines[block.start : block.stop]) + "\n"
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(code, document.path.name, "exec"), names)
        except Exception as error:
            document.report(block.start, "".join(traceback.format_exception(error)))
    return [text.rstrip() for text in out.getvalue().splitlines()]


def run_blocks(document: Document, folder: Path) -> list[str]:
    """Run all blocks of a document and return its new lines."""
    names: dict[str, Any] = {"__name__": "__main__"}
    new: list[str] = []
    done = 0
    printed: list[str] | None = None
    for block in blocks(document.lines):
        lines = document.lines[block.start : block.stop]
        if block.comment == "setup":
            continue
        if block.language == "console":
            lines = run_console(document, block, folder)
        elif block.language == "bash":
            ((status, output),) = run_commands(["(set -e\n" + "\n".join(lines) + "\n)"], folder)
            if status:
                document.report(block.start, f"the script ended with status {status}: {output.strip()}")
        elif block.language == "python" and any(line.startswith(">>> ") for line in lines):
            lines = run_session(document, block, names)
        elif block.language == "python":
            printed = run_code(document, block, names)
        elif block.comment == "output":
            if printed is None:
                raise ValueError(
                    f"{document.path.name}:{block.start}: no python block stands above this output"
                )
            lines = settle(document, block.start, "the python block above", lines, printed)
            printed = None
        new += [*document.lines[done : block.start], *lines]
        done = block.stop
    return new + document.lines[done:]


def note_codes() -> list[str]:
    """Return a section per stage and a heading per note code, so that a code is an anchor."""
    from smelt_scaling.note_codes import STAGES

    lines: list[str] = []
    for stage, codes in STAGES.items():
        lines += ["", f"## {stage}"]
        for code, said in codes.items():
            lines += ["", f"### `{code}`", ""]
            lines += textwrap.wrap(f"*{said.severity}*: {said.meaning}", 118, break_on_hyphens=False)
            lines += ["", *textwrap.wrap(f"What to do: {said.remedy}", 118, break_on_hyphens=False)]
    return lines[1:]


def endpoint_columns() -> list[str]:
    """Return the table of endpoint columns."""
    from smelt_scaling.endpoints import COLUMNS

    rows = (f"| `{name}` | {c.unit} | {c.rule} | {c.description} |" for name, c in COLUMNS.items())
    return ["| column | unit | rule | meaning |", "| --- | --- | --- | --- |", *rows]


def probes() -> list[str]:
    """Return the table of probes."""
    from smelt_scaling.analyses.probes import PROBES

    rows = (
        f"| `{name}` | {p.quantity} | {p.scale} | {p.chance_words} | {p.control} | {' × '.join(p.counted)} |"
        for name, p in PROBES.items()
    )
    head = "| probe | value | scale | chance | control | shares count |"
    return [head, "| --- | --- | --- | --- | --- | --- |", *rows]


def probe_columns() -> list[str]:
    """Return the table of columns of a table of probes."""
    from smelt_scaling.analyses.probes import PROBE_COLUMNS

    rows = (
        f"| `{name}` | {'yes' if c.required else ''} | {c.rule} | {c.description} |"
        for name, c in PROBE_COLUMNS.items()
    )
    return ["| column | required | rule | meaning |", "| --- | --- | --- | --- |", *rows]


def report_tolerances() -> list[str]:
    """Return the table of tolerances of compared reports."""
    from smelt_scaling.reporting.compare import TOLERANCES

    rows = (f"| {f'`…{end}`' if end else 'every other'} | {value:g} |" for end, value in TOLERANCES.items())
    return ["| column | may move by |", "| --- | --- |", *rows]


def named_laws() -> list[str]:
    """Return the table of named laws."""
    from smelt_scaling.laws import LAWS

    return [
        "| law | formula |",
        "| --- | --- |",
        *(f"| `{name}` | `{law.formula}` |" for name, law in LAWS.items()),
    ]


def log_formats() -> list[str]:
    """Return the table of log formats."""
    from smelt_scaling.ingest import READERS

    escaped = "\\|"  # a bar within a cell
    rows = [
        f"| `{name}` | {one.title} | {one.known_by.replace('|', escaped)} | {', '.join(one.states) or 'nothing'} |"
        for name, one in READERS.items()
    ]
    return ["| name | format | known by | states of a run |", "| --- | --- | --- | --- |", *rows]


def log_roles() -> list[str]:
    """Return the table of the roles that keys of a log play."""
    from smelt_scaling.ingest.keys import ROLES

    rows = [
        f"| `{role}` | {said} | {', '.join(f'`{key}`' for key in keys)} |"
        for role, (keys, said) in ROLES.items()
    ]
    return ["| role | what it is | keys that play it |", "| --- | --- | --- |", *rows]


def run_facts() -> list[str]:
    """Return the table of what is stated of a run."""
    from smelt_scaling.ingest.events import FACTS

    kinds = {str: "text", float: "number"}
    rows = [f"| `{name}` | {kinds[kind]} | {meaning} |" for name, (kind, meaning) in FACTS.items()]
    return ["| column | kind | meaning |", "| --- | --- | --- |", *rows]


def commands() -> list[str]:
    """Return the reference of every command: its help, then its options by panel."""
    import typer

    from smelt_scaling.cli import app

    lines: list[str] = []
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        usage = [p.metavar or p.name.upper() for p in command.params if p.param_type_name == "argument"]
        lines += ["", f"## {name}", "", f"`smelt-scaling {' '.join([name, *usage])} [OPTIONS]`", ""]
        for paragraph in (command.help or "").split("\n\n"):
            if paragraph.startswith("\b"):  # kept as it is written: an example and what it prints
                title, *example = paragraph.removeprefix("\b").strip("\n").splitlines()
                indented = [f"    {line.removeprefix('  ')}".rstrip() for line in example]
                lines += [title, "", *indented, ""]
            else:
                kept = paragraph.startswith(" ")  # an example goes on after a blank line
                wrapped = textwrap.wrap(paragraph, 120, break_long_words=False, break_on_hyphens=False)
                lines += [*(paragraph.splitlines() if kept else wrapped), ""]
        lines += ["| option | default | meaning |", "| --- | --- | --- |", *map(_option_row, command.params)]
    return lines[1:]


def _option_row(parameter: Any) -> str:
    from rich.text import Text

    if parameter.param_type_name == "argument":
        spelled = parameter.metavar or parameter.name.upper()
    else:
        named = _choices(parameter) or parameter.metavar or parameter.name.upper()
        value = "" if parameter.is_flag else f" {named}"
        spelled = ", ".join(sorted(parameter.opts, key=len)) + value
    default = parameter.default
    hidden = default is None or default is False or not parameter.show_default
    shown = "" if hidden else f"`{getattr(default, 'value', default)}`"
    meaning, _, rule = (
        Text.from_markup(parameter.help or "").plain.replace("|", "\\|").partition(" [default: ")
    )
    shown = rule.removesuffix("]") or shown  # a default that is a rule stands in the help
    return f"| `{spelled}` | {shown} | {meaning} |"


def _choices(parameter: Any) -> str:
    """Return the values of an option that is an enumeration, joined by bars; typer keeps them in either place."""
    import enum

    choices = getattr(getattr(parameter, "type", None), "choices", None)
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    if choices is None and isinstance(annotation, enum.EnumMeta):
        choices = list(annotation.__members__.values())
    return "\\|".join(str(getattr(choice, "value", choice)) for choice in choices or ())


def coverage(part: str) -> Callable[[], list[str]]:
    """Return what makes a table of recorded coverage."""

    def lines() -> list[str]:
        if str(ROOT) not in sys.path:  # the benchmarks are a package of the checkout alone
            sys.path.append(str(ROOT))
        made: list[str] = importlib.import_module("benchmarks.coverage").part(part)
        return made

    return lines


#: What can stand under ``<!-- generated: NAME -->``.
TABLES: dict[str, Callable[[], list[str]]] = {
    "commands": commands,
    "coverage-default": coverage("default"),
    "coverage-objectives": coverage("objectives"),
    "coverage-worlds": coverage("worlds"),
    "endpoint-columns": endpoint_columns,
    "log-formats": log_formats,
    "log-roles": log_roles,
    "named-laws": named_laws,
    "note-codes": note_codes,
    "run-facts": run_facts,
    "probe-columns": probe_columns,
    "probes": probes,
    "report-tolerances": report_tolerances,
}


def fill_tables(document: Document) -> list[str]:
    """Return the lines with every generated table made anew."""
    new: list[str] = []
    lines = iter(document.lines)
    for line in lines:
        new.append(line)
        comment = COMMENT.match(line.strip())
        if comment is None or comment["word"] != "generated":
            continue
        old: list[str] = []
        for inner in lines:
            if inner.strip() == "<!-- end generated -->":
                break
            old.append(inner)
        else:
            raise ValueError(f"{document.path.name}: <!-- generated: {comment['name']} --> has no end")
        table = ["", *TABLES[comment["name"]](), ""]
        if table != old:
            document.report(len(new), f"the table {comment['name']} differs from the code")
        new += [*table, "<!-- end generated -->"]
    return new


def regenerate(path: Path) -> tuple[str, list[str]]:
    """Run a document; return its text with true outputs, and one message per difference."""
    document = Document(path=path, lines=path.read_text(encoding="utf-8").splitlines())
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        document.lines = run_blocks(document, Path(name))
    document.lines = fill_tables(document)
    return "\n".join(document.lines) + "\n", document.problems


def main(arguments: list[str] | None = None) -> int:
    """Check or rewrite the documents; return 1 when a check finds a difference."""
    parser = argparse.ArgumentParser(
        description="Run the blocks of the documents and keep their outputs true."
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="say what differs and exit 1 (the default)")
    mode.add_argument("--write", action="store_true", help="rewrite the outputs that differ")
    mode.add_argument("--setup", metavar="NAME", help="print the set-up command NAME of README.md")
    parser.add_argument("documents", nargs="*", type=Path, help="documents (default: README.md and docs/)")
    options = parser.parse_args(arguments)
    if options.setup:
        print(setup_command(ROOT / "README.md", options.setup))
        return 0
    differing = 0
    for path in [path.resolve() for path in options.documents] or documents():
        text, problems = regenerate(path)
        differing += bool(problems)
        print("\n".join(problems) if problems else f"{path.name}: as printed")
        if options.write:
            path.write_text(text, encoding="utf-8")
    return 1 if differing and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
