"""The diagnosis as a whole: the same gain as the table, parts as they are alone, and what cannot be answered."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smelt_scaling import Endpoints, Study, ce_gain, diagnose, example_endpoints, fit, load_paper
from smelt_scaling.analyses.diagnostics import headline_of, sensitivity
from smelt_scaling.analyses.diagnostics.diagnosis import PARTS, part_frame
from smelt_scaling.analyses.diagnostics.findings import VERDICTS
from smelt_scaling.cli import run
from smelt_scaling.errors import FrontierError, UsageError
from smelt_scaling.reporting import render_frame
from smelt_scaling.reporting.diagnostics.document import GRIDS


@pytest.fixture(scope="module")
def study() -> Study:
    return fit(example_endpoints(), bootstrap=100)


@pytest.fixture(scope="module")
def quick(study: Study) -> Any:
    return diagnose(study, parts=["fairness", "sensitivity", "noise"])


def test_the_headline_is_the_row_of_the_table(study: Study, quick: Any) -> None:
    (row,) = quick.attrs["headline"]
    table = ce_gain(study, 1e21, sparsities=row["sparsity"])
    assert row["gain"] == table["gain"].item()
    assert (row["gain_lo"], row["gain_hi"]) == (table["gain_lo"].item(), table["gain_hi"].item())
    # the tier in the middle of .846, .947, .969, the largest power of ten below 2.2e21
    assert (row["budget"], round(row["sparsity"], 3)) == (1e21, 0.947)
    first = quick.iloc[0]
    assert first["value"].startswith(f"{100 * row['gain']:.1f} %")


def test_a_part_is_what_it_is_alone(study: Study, quick: Any) -> None:
    alone, within = sensitivity(study), part_frame(quick, "sensitivity")
    assert within["choice"].tolist() == alone["choice"].tolist()
    np.testing.assert_array_equal(within["gain"].to_numpy(dtype=float), alone["gain"].to_numpy(dtype=float))
    assert within.attrs["ranges"] == alone.attrs["ranges"]


def test_every_part_has_its_tables_and_findings(quick: Any) -> None:
    assert set(GRIDS) == set(PARTS)
    assert set(quick["part"]) == {"gain", "fairness", "sensitivity", "noise"}
    assert set(quick["verdict"]) <= set(VERDICTS)
    for row in quick.to_dict(orient="records"):
        # what is not fine says what to do; what is fine needs no remedy
        assert bool(row["remedy"]) == (row["verdict"] != "fine"), row
        assert "\n" not in row["check"] + row["value"] + row["remedy"]
        assert "probab" not in row["value"]


@pytest.mark.parametrize("form", ["table", "md", "latex", "html", "csv", "json"])
@pytest.mark.parametrize("part", [None, "fairness", "sensitivity", "noise"])
def test_every_format(quick: Any, form: str, part: str | None) -> None:
    text = render_frame("diagnose", quick, form, part=part)
    assert "nan" not in re.findall(r"[a-z]+", text.lower())
    if form == "table":
        assert max(map(len, text.splitlines())) <= 80
    if form == "json":
        record = json.loads(text, parse_constant=lambda name: pytest.fail(name))
        assert set(record["parts"]) == {"fairness", "sensitivity", "noise"}


def test_another_gain(study: Study) -> None:
    frame = diagnose(study, budget=1e20, sparsity=0.969, target="baseline", reference="smelt", parts=[])
    (row,) = frame.attrs["headline"]
    table = ce_gain(study, 1e20, sparsities=0.969, target="baseline", reference="smelt")
    assert row["gain"] == table["gain"].item()
    assert len(frame) == 1


def test_a_gain_outside_the_runs_is_never_fine(study: Study) -> None:
    # the example has no runs below S = 0.846
    inside, outside = (
        diagnose(study, sparsity=sparsity, parts=["fairness"]).iloc[0] for sparsity in (None, 0.5)
    )
    assert (inside["verdict"], "outside the runs" in inside["value"]) == ("fine", False)
    assert (outside["verdict"], outside["value"].endswith(", outside the runs")) == ("caution", True)
    assert outside["remedy"].startswith("ask for a budget and a sparsity that the runs cover")


def test_a_law_in_parameters() -> None:
    """Without S, with F = 6N: the parts that need no sparsity stand."""
    runs = example_endpoints().to_frame().drop(columns=["F", "S"])
    chinchilla = fit(Endpoints.from_frame(runs), law="chinchilla", bootstrap=50)
    frame = diagnose(chinchilla, parts=["noise", "identifiability"])
    assert {"gain", "noise", "identifiability"} == set(frame["part"])
    assert headline_of(chinchilla)[0].sparsity is None


def test_what_is_no_question() -> None:
    with pytest.raises(UsageError, match="give a study, not published surfaces"):
        diagnose(load_paper("smelt"))  # type: ignore[arg-type]
    runs = example_endpoints()
    alone = fit(runs.select(runs.arch == "smelt"), bootstrap=0)
    with pytest.raises(UsageError, match="one architecture"):
        diagnose(alone)
    tier = fit(runs.select(runs.tiers == 0), bootstrap=0)
    with pytest.raises(FrontierError, match="S = 0.84"):
        diagnose(tier, sparsity=0.9)


def test_an_unknown_part(study: Study) -> None:
    with pytest.raises(UsageError, match="part 'luck' is unknown; choose from fairness, sensitivity"):
        diagnose(study, parts=["luck"])


def test_a_part_that_has_no_answer_leaves_the_others(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    from smelt_scaling.analyses.diagnostics import noise

    def fails(*_: Any, **__: Any) -> Any:
        raise UsageError("no cells: name them with --map cell=COLUMN")

    monkeypatch.setattr(noise, "noise_anatomy", fails)
    # the registry names functions, so a replaced one is what runs
    frame = diagnose(study, parts=["noise", "fairness"])
    (row,) = frame[frame["part"] == "noise"].to_dict(orient="records")
    assert (row["verdict"], row["remedy"]) == ("unknown", "no cells: name them with --map cell=COLUMN")
    assert "fairness" in set(frame["part"])


def test_the_command_is_the_function(
    study: Study, quick: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study.save(tmp_path / "study")
    arguments = ["diagnose", "--study", str(tmp_path / "study"), "--only", "fairness,sensitivity,noise"]
    assert run([*arguments, "--format", "json", "-o", str(tmp_path / "out")]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [row["value"] for row in record["rows"]] == quick["value"].tolist()
    assert (tmp_path / "out" / "diagnose.json").is_file()
    assert run([*arguments, "--show", "laws"]) == 2
    assert "--show laws: is not among --only" in capsys.readouterr().err
