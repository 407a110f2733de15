"""Simulated endpoints: stated moments, independence of row order, and the committed example file."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import UsageError
from smelt_scaling.laws import Surface, get_law
from smelt_scaling.papers import load_paper
from smelt_scaling.papers.example import example_endpoints, write_example
from smelt_scaling.synth import simulate

DATA = Path(__file__).parent.parent / "data"
FLAT = Surface(
    law=get_law("sparse-additive"), coef=np.array([10.0, 0.0, 0.0, 0.4, 0.15, 0.7])
)  # loss 10 everywhere


def grid(archs: tuple[str, ...], n_cells: int, n_rows: int) -> dict[str, Any]:
    """Return ``n_rows`` horizons of ``n_cells`` cells of each architecture."""
    arch, cell, row = (
        axis.ravel() for axis in np.meshgrid(archs, np.arange(n_cells), np.arange(n_rows), indexing="ij")
    )
    return {
        "arch": arch.astype(object),
        "cell": np.array([f"c{k:05d}" for k in cell], dtype=object),
        "F": 1e9 + cell,
        "S": np.full(len(arch), 0.9),
        "D": 1e10 * (1.0 + row),
    }


def table_of(endpoints: Endpoints) -> np.ndarray:
    """Return noise as (architecture, cell, row); canonical order need not be the grid's."""
    frame = endpoints.to_frame().sort_values(["arch", "cell", "D"])
    shape = (frame["arch"].nunique(), frame["cell"].nunique(), -1)
    return frame["loss"].to_numpy().reshape(shape) - 10.0


@pytest.mark.parametrize(("share", "pair"), [(0.5, 0.5), (0.8, 0.0), (0.3, 1.0), (0.0, 0.5), (1.0, 0.7)])
def test_moments(share: float, pair: float) -> None:
    n_cells, n_rows, sd = 4000, 4, {"a": 0.05, "b": 0.15, "c": 0.1}
    drawn = simulate(
        dict.fromkeys(sd, FLAT),
        grid(tuple(sd), n_cells, n_rows),
        sd=sd,
        cell_share=share,
        pair_correlation=pair,
        seed=7,
    )
    noise = table_of(drawn) / np.array(list(sd.values()))[:, None, None]
    # standard errors with 4000 independent cells: mean <= 1/sqrt(4000) = .016, variance and products
    # <= sqrt(2/4000) = .022; five of them for about 20 numbers per case
    assert np.abs(noise.mean(axis=(1, 2))).max() < 5 * 0.016
    assert np.abs(noise.var(axis=(1, 2)) - 1).max() < 5 * 0.022
    for j in range(3):
        within = np.mean(noise[j, :, 0] * noise[j, :, 1])
        assert within == pytest.approx(share, abs=5 * 0.022)
        between = np.mean(noise[j, :, 0] * noise[(j + 1) % 3, :, 0])
        assert between == pytest.approx(share * pair, abs=5 * 0.022)
    neighbours = np.mean(noise[:, :-1, 0] * noise[:, 1:, 0])
    assert neighbours == pytest.approx(0, abs=5 * 0.022)


def test_whole_variance_in_the_cells() -> None:
    noise = table_of(
        simulate({"a": FLAT, "b": FLAT}, grid(("a", "b"), 5, 6), sd=1.0, cell_share=1.0, pair_correlation=1.0)
    )
    # no row part and a fully common factor: one number per cell (10 + e - 10 loses about 1e-15)
    np.testing.assert_allclose(noise, np.broadcast_to(noise[:1, :, :1], noise.shape), atol=1e-13)


def test_loss_is_surface_plus_noise_times_sd() -> None:
    surfaces = load_paper("smelt").surfaces
    design = grid(("baseline", "smelt"), 6, 3)
    exact, one, two = (simulate(surfaces, design, sd=sd, seed=3) for sd in (0.0, 0.01, 0.02))
    expected = surfaces["smelt"].loss(F=1e9, S=0.9, D=2e10)
    row = (exact.arch == "smelt") & (exact["cell"] == "c00000") & (exact.D == 2e10)
    assert exact.loss[row] == pytest.approx(float(expected), rel=1e-15)
    # the same draws, scaled: equal up to the rounding of a loss near 2
    np.testing.assert_allclose(two.loss - exact.loss, 2 * (one.loss - exact.loss), atol=1e-14)
    assert np.std(one.loss - exact.loss) > 0


def test_independent_of_row_order_and_container() -> None:
    import pandas as pd

    design = pd.DataFrame(grid(("a", "b"), 7, 4))
    design.loc[len(design)] = design.loc[3]  # an exact repeat of a row is a second run of it
    shuffled = design.sample(frac=1, random_state=5).reset_index(drop=True)
    surfaces = {"a": FLAT, "b": FLAT}
    first = simulate(surfaces, design, sd=1.0, seed=11)
    second = simulate(surfaces, shuffled, sd=1.0, seed=11)
    third = simulate(
        dict(reversed(surfaces.items())),
        {name: design[name] for name in reversed(design.columns)},
        sd=1.0,
        seed=11,
    )
    assert first.digest == second.digest == third.digest
    assert first.digest != simulate(surfaces, design, sd=1.0, seed=12).digest


def test_no_cell_needed_without_cell_effects() -> None:
    design = grid(("a",), 3, 2)
    del design["cell"]
    assert len(simulate({"a": FLAT}, design, sd=1.0, cell_share=0.0)) == 6
    with pytest.raises(UsageError, match="cell effects need column cell"):
        simulate({"a": FLAT}, design, sd=1.0)


def test_simulated_is_said() -> None:
    drawn = simulate({"a": FLAT}, {**grid(("a",), 3, 2), "loss": np.ones(6)}, sd=0.1)
    (note,) = [note for note in drawn.notes if note.code == "simulated"]
    assert (note.severity, note.count) == ("warning", 6)
    assert drawn.source == "<simulated>"
    assert drawn.loss.min() > 9  # the given losses are not read


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cell_share": 1.2}, "cell_share 1.2: a share"),
        ({"pair_correlation": -0.1}, "pair_correlation -0.1: a share"),
        ({"cell_share": float("nan")}, "cell_share nan: a share"),
        ({"sd": {"b": 1.0}}, "sd of 'a': nan is no"),
        ({"sd": -1.0}, "sd of 'a': -1 is no"),
        ({"sd": 1e4}, "rows not > 0: a loss is positive"),
        ({"surfaces": {"b": FLAT}}, "'a' has no surface"),
        ({"surfaces": {"a": Surface(law=FLAT.law, coef=FLAT.coef[None])}}, "select one draw"),
        (
            {"design": {"arch": np.array(["a"]), "cell": np.array(["x"]), "F": [1e9], "S": [0.5]}},
            "no column D; the law",
        ),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"surfaces": {"a": FLAT}, "design": grid(("a",), 8, 2), "sd": 1.0, **change}
    surfaces, design = arguments.pop("surfaces"), arguments.pop("design")
    with pytest.raises(UsageError, match=re.escape(message)):
        simulate(surfaces, design, **arguments)


def test_import_is_light() -> None:
    heavy = "{'pandas', 'pyarrow', 'scipy'}"
    code = f"import sys, smelt_scaling.synth, smelt_scaling.papers.example; print({heavy} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_example_design() -> None:
    e = example_endpoints()
    assert len(e) == 144
    assert e.archs == ("baseline", "smelt")
    assert {len(part) for part in e.by_arch().values()} == {72}
    scales, tiers = ("100M", "200M", "600M", "1.6B"), ("85%", "95%", "97%")
    assert set(e["cell"]) == {f"{scale}/{tier}" for scale in scales for tier in tiers}
    assert (len(set(e["trunk"])), len(set(e["run"]))) == (24, 144)
    assert set(e["source"]) == {"simulated"}
    assert [note.code for note in e.notes] == ["simulated"]
    horizons = [20485760000, 30971520000, 62428800000, 114857600000, 167286400000, 215599539200]
    assert sorted(set(e.D)) == horizons  # steps x 1,048,576 + 1e10
    compute = e.F * e.D
    assert f"{compute.min():.1e} {compute.max():.1e}" == "1.3e+19 2.2e+21"
    known = (("baseline", "200M/95%", 1328578560, 0.946), ("smelt", "1.6B/97%", 10318492800, 0.970))
    for arch, cell, flops, sparsity in known:
        rows = (e.arch == arch) & (e["cell"] == cell)
        assert (set(e.F[rows]), set(e.S[rows])) == ({flops}, {sparsity})


def test_example_noise_has_the_published_size() -> None:
    surfaces = load_paper("smelt").surfaces
    seeds = [example_endpoints(seed).by_arch() for seed in range(60)]
    for arch, rmse in (("baseline", 0.00554), ("smelt", 0.00952)):
        parts = [by_arch[arch] for by_arch in seeds]
        noise = np.array([part.loss - surfaces[arch].loss(F=part.F, S=part.S, D=part.D) for part in parts])
        # relative variance of a cell's mean square: .25 (2 + 4/6 + 2/6) = .75; over 12 cells and 60 sets its
        # standard error is sqrt(.75 / 720) = .032; four of them, halved for the root
        assert np.sqrt(np.mean(noise**2)) == pytest.approx(1.044 * rmse, rel=4 * 0.032 / 2)


def test_example_file_is_the_committed_one(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from smelt_scaling.ingest.tidy import read_endpoints

    written = write_example(tmp_path / "runs.parquet")
    committed = DATA / "smelt_endpoints.parquet"
    assert read_endpoints(committed).digest == read_endpoints(written).digest == example_endpoints().digest
    metadata = pq.read_schema(committed).metadata
    assert metadata[b"smelt_scaling.status"] == b"simulated"
    assert metadata[b"smelt_scaling.digest"].decode() == example_endpoints().digest
    # another version of the parquet writer may lay the same rows out differently
    if pq.read_metadata(written).created_by == pq.read_metadata(committed).created_by:
        assert written.read_bytes() == committed.read_bytes()


def test_data_readme_lists_every_file() -> None:
    text = (DATA / "README.md").read_text(encoding="utf-8")
    for path in DATA.iterdir():
        if path.is_dir():  # holds digests of its own
            assert f"`{path.name}/`" in text
            assert (path / "manifest.json").is_file()
        elif path.name != "README.md":
            assert f"`{path.name}`" in text
            assert hashlib.sha256(path.read_bytes()).hexdigest() in text
    assert example_endpoints().digest in text
    assert "simulated" in text
