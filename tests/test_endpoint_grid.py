"""Planned studies: what their files may say, and that the endpoints feed a simulation."""

from __future__ import annotations

from pathlib import Path

import pytest

from smelt_scaling.accounting import ModelConfig
from smelt_scaling.accounting.grid import GridModel
from smelt_scaling.accounting.toml_files import to_toml
from smelt_scaling.analyses import endpoint_grid
from smelt_scaling.errors import DataError, UsageError
from smelt_scaling.papers import load_paper
from smelt_scaling.synth import simulate

STUDY = """
convention = "smelt"
doc_len = 784

[schedule]
steps = [10000, 20000]
sequences = 256
sequence_length = 4096
branch_tokens = 1e10

[[model]]
arch = "baseline"
scale = "200M"
cell = "200M/95%"
config = "smelt:baseline/200M/95%"
control = "smelt:baseline/200M/0%"

[[model]]
arch = "smelt"
scale = "200M"
cell = "200M/95%"
config = "smelt:smelt/200M/95%"
S = 0.947

[[model]]
arch = "tiny"
scale = "tiny"
config = "tiny.toml"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    tiny = ModelConfig(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=16, d_ff=96)
    (tmp_path / "tiny.toml").write_text(to_toml(tiny))
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def test_models_from_files_and_papers(study: Path) -> None:
    grid = endpoint_grid(study)
    assert grid["arch"].tolist() == ["baseline"] * 2 + ["smelt"] * 2 + ["tiny"] * 2
    assert grid["cell"].tolist()[-1] == "tiny"
    # 10k and 20k steps of 256 x 4096 tokens and a decay of 10 B
    assert grid["D"].tolist() == [20.48576e9, 30.97152e9] * 3
    # the paper prints 94.6 % and 94.7 % for them
    assert grid["S"].round(3).tolist() == [0.946] * 2 + [0.947] * 2 + [0.0] * 2
    assert f"{grid['F'][0]:.2e} {grid['F'][2]:.2e}" == "1.33e+09 1.37e+09"
    windows = {row["arch"]: row for row in grid.attrs["windows"]}
    trunk = 20000 * 256 * 4096 + 2e10
    assert windows["baseline"]["flops"] == pytest.approx(grid["F"][0] * trunk, rel=1e-15)


def test_a_grid_feeds_a_simulation(study: Path) -> None:
    grid = endpoint_grid(study)
    design = grid[grid["arch"] != "tiny"].reset_index(drop=True)
    drawn = simulate(load_paper("smelt").surfaces, design, sd=0.005)
    assert len(drawn) == 4
    assert drawn["kv"].tolist() == [12288.0, 12288.0, 12672.0, 12672.0]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[schedule]", "[shedule]", "key shedule is unknown; did you mean schedule?"),
        ("sequences = 256\n", "", "key schedule.sequences is missing"),
        ("steps = [10000, 20000]", "steps = [10000, 10000]", "steps must be distinct"),
        ("steps = [10000, 20000]", "steps = 3", "key schedule.steps 3: must be a list of whole numbers"),
        ("steps = [10000, 20000]", 'steps = ["10k"]', "key schedule.steps ['10k']: must be a list"),
        ("branch_tokens = 1e10", 'branch_tokens = "10B"', "'10B': must be a number of tokens, such as 1e10"),
        ("sequences = 256", "sequences = true", "schedule.sequences True: must be a whole number"),
        ("doc_len = 784", 'doc_len = "784"', "key doc_len '784': must be a number of tokens"),
        ("S = 0.947", "S = 94.7", "key model 2.S 94.7: must be a fraction in [0, 1), such as 0.95"),
        ("S = 0.947", 'S = "95%"', "key model 2.S '95%': must be a fraction"),
        ("S = 0.947", "S = nan", "key model 2.S nan: must be a fraction"),
        ('config = "tiny.toml"', "config = 7", "key model 3.config 7: must be the name of a model"),
        ('"smelt"\nscale', '"baseline"\nscale', "baseline has cell 200M/95% twice"),
        ("S = 0.947", 'S = 0.947\ncontrol = "smelt:baseline/200M/0%"', "names a control and S"),
        ('scale = "tiny"\n', "", "key model 3.scale is missing"),
        ('config = "tiny.toml"', 'config = "tinny.toml"', "model 3: tinny.toml: cannot be read"),
        (
            'config = "smelt:smelt/200M/95%"',
            'config = "smelt:smelt/200M/0%"',
            "do not determine its dimensions",
        ),
        (
            'cell = "200M/95%"\nconfig = "smelt:smelt',
            'cell = "x"\nkonfig = "smelt:smelt',
            "key model 2.konfig",
        ),
        ('convention = "smelt"', 'convention = "flops"', "convention 'flops' is unknown"),
        ('convention = "smelt"', "convention = ", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named(study: Path, old: str, new: str, said: str) -> None:
    text = study.read_text()
    assert old in text
    study.write_text(text.replace(old, new))
    with pytest.raises(DataError) as refused:
        endpoint_grid(study)
    assert said in str(refused.value)
    assert str(study) in str(refused.value)
    assert "\n" not in str(refused.value).strip()


def test_documents_longer_than_a_sequence_are_told(study: Path) -> None:
    assert "long_documents" not in {note["code"] for note in endpoint_grid(study).attrs["notes"]}
    study.write_text(study.read_text().replace("doc_len = 784", "doc_len = 100000"))
    (note,) = [note for note in endpoint_grid(study).attrs["notes"] if note["code"] == "long_documents"]
    assert note["message"].startswith(
        "100 % of the tokens lie in documents of up to 100000 tokens, longer than sequences of 4096"
    )


def test_a_sparsity_in_percent_is_refused_in_python_too() -> None:
    tiny = ModelConfig(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=16, d_ff=96)
    with pytest.raises(UsageError, match=r"a/c: S 95: must be a fraction in \[0, 1\)"):
        GridModel(arch="a", scale="s", cell="c", config=tiny, S=95)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read .*; give a TOML file, or smelt for the paper's own"):
        endpoint_grid(tmp_path / "none.toml")
