"""Rules about the shape of the code that no linter checks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import smelt_scaling

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGE = Path(smelt_scaling.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
SOURCES = [*MODULES, *sorted((CHECKOUT / "tests").rglob("*.py")), *sorted((CHECKOUT / "tools").rglob("*.py"))]
MAX_LINES = 400
HEAVY = {"fsspec", "matplotlib", "pandas", "pyarrow", "scipy", "statsmodels", "torch"}


def name_of(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=name_of(path))


def imported(node: ast.AST) -> set[str]:
    """Top-level packages that one statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {(node.module or "").partition(".")[0]}
    return set()


def on_import(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements that run when the module is imported: not those in functions or for type checkers only."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            found += on_import(node.orelse)
            continue
        found.append(node)
        for part in ("body", "orelse", "finalbody"):
            found += on_import(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            found += on_import(handler.body)
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_imports_heavy_packages_only_when_it_needs_them(path: Path) -> None:
    found = {(node.lineno, name) for node in on_import(tree_of(path).body) for name in imported(node) & HEAVY}
    assert not found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_library_is_silent(path: Path) -> None:
    """Results carry notes; only the command line talks. Deprecations are the one warning there is."""
    if path.is_relative_to(PACKAGE / "cli"):
        return
    found = []
    for node in ast.walk(tree_of(path)):
        if "logging" in imported(node):
            found.append((node.lineno, "logging"))  # type: ignore[attr-defined]
        if isinstance(node, ast.Call):
            call = ast.unparse(node)
            if call.startswith(("print(", "warnings.warn(")) and "FutureWarning" not in call:
                found.append((node.lineno, call))
    assert not found


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_nothing_is_left_to_do(path: Path) -> None:
    # Built from halves, so that this file does not hold what it looks for.
    left = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    found = [line for line in path.read_text(encoding="utf-8").splitlines() if left.search(line)]
    assert not found


@pytest.mark.parametrize("init", sorted(PACKAGE.rglob("__init__.py")), ids=name_of)
def test_no_public_function_shares_its_name_with_a_module_beside_it(init: Path) -> None:
    """Otherwise ``package.name`` is the function or the module, depending on what was imported first."""
    beside = {path.stem for path in init.parent.glob("*.py")} | {
        path.parent.name for path in init.parent.glob("*/__init__.py")
    }
    public = set(smelt_scaling._EXPORTS) if init.parent == PACKAGE else set()
    for path in init.parent.glob("*.py"):
        for node in tree_of(path).body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                public.add(node.name)
            elif path == init and isinstance(node, ast.ImportFrom):
                public |= {alias.asname or alias.name for alias in node.names}
    assert not public & beside
