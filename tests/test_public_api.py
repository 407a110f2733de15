"""The public names, and what importing them costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import smelt_scaling

# The interface: adding a name is a minor release, removing one a major release.
PUBLIC = [
    "AdditiveLaw",
    "DataError",
    "Endpoints",
    "FitError",
    "FitResult",
    "Frontier",
    "FrontierError",
    "IngestError",
    "LAWS",
    "ModelConfig",
    "Note",
    "ProbeWriter",
    "SmeltScalingError",
    "Study",
    "StudyError",
    "SupportError",
    "Surface",
    "UsageError",
    "__version__",
    "allocate",
    "audit_fairness",
    "ce_gain",
    "compare_levels",
    "default_sparsities",
    "design_report",
    "diagnose",
    "domains",
    "downstream",
    "endpoint_grid",
    "example_endpoints",
    "fit",
    "flops_report",
    "get_law",
    "length_gains",
    "load_paper",
    "load_study",
    "match_budgets",
    "notes_of",
    "parameter_conventions",
    "plan",
    "predict",
    "probe_report",
    "read_design",
    "read_endpoints",
    "read_logs",
    "read_published",
    "read_scores",
    "reproduce",
    "shot_gaps",
    "show_table",
    "simulate",
    "sources",
    "sparsity_tiers",
]

HEAVY = ["matplotlib", "pandas", "pyarrow", "scipy", "statsmodels", "torch"]


def test_dir_is_the_public_interface() -> None:
    assert dir(smelt_scaling) == PUBLIC
    assert [name for name in PUBLIC if name != "__version__"] == smelt_scaling.__all__


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_resolves_and_is_documented(name: str) -> None:
    value = getattr(smelt_scaling, name)
    if isinstance(value, type) or callable(value):
        assert value.__doc__, f"{name} has no docstring"


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        smelt_scaling.no_such_name  # noqa: B018


def test_type_checkers_see_the_same_names_from_the_same_modules() -> None:
    tree = ast.parse(Path(smelt_scaling.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.asname: node.module for node in block.body for alias in node.names}  # type: ignore[attr-defined]
    assert seen == smelt_scaling._EXPORTS


@pytest.mark.parametrize("module", ["smelt_scaling", "smelt_scaling.cli", "smelt_scaling.__main__"])
def test_import_is_cheap(module: str) -> None:
    # `--help` must answer in under half a second, and one of these packages alone takes longer than that.
    code = f"import {module}, sys; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert smelt_scaling.__version__ == version("smelt-scaling")
