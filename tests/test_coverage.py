"""The worlds that coverage is measured on against closed forms, the truth in them, and a small measurement."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, expon, kstest, skew, t

CHECKOUT = Path(__file__).resolve().parent.parent
LAW = {"baseline": (1.4439, 1.366e3, 1.975e6, 0.3703, 0.1530, 0.6594)}
LAW["smelt"] = (1.4493, 1.963e3, 5.264e6, 0.3892, 0.1460, 0.7011)  # E, A, K, a, b, c as published
#: One row per cell of each architecture: the draws of a world are then its cell effects plus one row each.
WORLDS, CELLS = 3000, 12


@pytest.fixture(scope="module")
def worlds() -> Iterator[Any]:
    sys.path.insert(0, str(CHECKOUT))
    from benchmarks import coverage_worlds as module

    yield module
    sys.path.remove(str(CHECKOUT))


@pytest.fixture(scope="module")
def runs(worlds: Any) -> Any:
    from benchmarks import coverage_runs

    return coverage_runs


@pytest.fixture(scope="module")
def coverage(worlds: Any) -> Any:
    from benchmarks import coverage as module

    return module


def drawn(worlds: Any, **noise: Any) -> np.ndarray:
    """Draws of two rows per cell, shape (worlds, architectures, cells, rows)."""
    cells = np.tile(np.repeat(np.arange(CELLS), 2), (2, 1))
    rng = np.random.default_rng(0)
    one = worlds.Noise(title="", **noise)
    return np.array([worlds.standard_noise(one, rng, cells) for _ in range(WORLDS)]).reshape(
        WORLDS, 2, CELLS, 2
    )


@pytest.mark.parametrize("shape", ["normal", "skewed"])
@pytest.mark.parametrize(("share", "r"), [(0.0, 0.5), (0.5, 0.0), (0.5, 0.5), (0.9, 0.9)])
def test_noise_has_unit_variance_and_the_shared_parts_it_names(
    worlds: Any, shape: str, share: float, r: float
) -> None:
    """Moments of products over 36,000 cells; the sd of a product is at most 3 (squares of exponentials)."""
    z = drawn(worlds, cell_share=share, pair_correlation=r, shape=shape)
    tolerance = 5 * 3 / np.sqrt(WORLDS * CELLS)
    assert z.mean() == pytest.approx(0, abs=tolerance)
    assert (z**2).mean() == pytest.approx(1, abs=tolerance)
    assert (z[..., 0] * z[..., 1]).mean() == pytest.approx(
        share, abs=tolerance
    )  # two rows of a cell: the ICC
    assert (z[:, 0] * z[:, 1]).mean() == pytest.approx(share * r, abs=tolerance)  # a cell's two architectures
    assert (z[:, 0, 0] * z[:, 0, 1]).mean() == pytest.approx(0, abs=tolerance * np.sqrt(CELLS))


@pytest.mark.parametrize("r", [0.0, 0.5, 0.9])
def test_skewed_cells_are_exponential_whatever_their_correlation(worlds: Any, r: float) -> None:
    effects = drawn(worlds, cell_share=1.0, pair_correlation=r, shape="skewed")[..., 0]
    for arch in range(2):
        sample = effects[:, arch].ravel()
        assert kstest(sample + 1, expon.cdf).pvalue > 1e-4
        # the skewness of an exponential variable is 2; its sample skewness errs by about sqrt(6 * 60 / n) = 0.1
        assert skew(sample) == pytest.approx(2, abs=0.4)
    # rows stay normal: at half the variance the skewness is 2 * 0.5 ** 1.5
    mixed = drawn(worlds, cell_share=0.5, pair_correlation=r, shape="skewed")
    assert skew(mixed[..., 0].ravel()) == pytest.approx(2 * 0.5**1.5, abs=0.15)


def test_heavy_tails_are_those_of_t_with_the_variance_of_the_others(worlds: Any) -> None:
    """A variance of 1 is beyond the reach of a sample (the fourth moment is infinite), so the whole law is compared."""
    z = drawn(worlds, cell_share=0.0, shape="heavy").ravel()
    assert kstest(z, t(2.5, scale=1 / np.sqrt(5)).cdf).pvalue > 1e-4
    assert t(2.5, scale=1 / np.sqrt(5)).var() == pytest.approx(1)
    effects = drawn(worlds, cell_share=1.0, pair_correlation=0.0, shape="heavy")[..., 0]
    assert kstest(effects.ravel(), t(2.5, scale=1 / np.sqrt(5)).cdf).pvalue > 1e-4


def test_a_world_is_the_surface_plus_noise_of_the_published_size_and_depends_on_its_number(
    worlds: Any,
) -> None:
    noise = worlds.NOISES["half"]
    several = [worlds.endpoints(noise, index, 0) for index in range(60)]
    again = worlds.endpoints(noise, 7, 0)
    assert again.digest == several[7].digest != several[8].digest
    assert again.digest != worlds.endpoints(noise, 7, 1).digest
    for arch, rmse in (("baseline", 0.00554), ("smelt", 0.00952)):
        E, A, K, a, b, c = LAW[arch]
        errors = []
        for one in several:
            own = one.by_arch()[arch]
            errors.append(own.loss - (E + A * (1 - own.S) ** b * own.F**-a + K * own.D**-c))
        # of 60 * 12 cells with half the variance: the standard error of the sd is 1 / sqrt(2 * 1440), and 5 of them
        assert np.std(errors) == pytest.approx(rmse * np.sqrt(72 / 66), rel=0.1)


def test_truth_of_worlds_that_obey_the_law_is_that_of_the_published_surfaces(worlds: Any) -> None:
    true = dict(zip(worlds.QUANTITIES, worlds.truth(worlds.NOISES["half"]), strict=True))
    for arch, (E, A, K, a, b, c) in LAW.items():
        assert [true[f"{arch} {name}"] for name in "Eabc"] == [E, a, b, c]
        assert true[f"{arch} gamma"] == pytest.approx(a * c / (a + c), rel=1e-12)
        loss = E + A * 0.053**b * 1e10**-a + K * 1e11**-c
        assert true[f"{arch} loss 1e21"] == pytest.approx(loss, rel=1e-12)
        # F* = (a A (1-S)^b C^c / (c K))^(1/(a+c)), and 6 D*/F* = 6 C / F*^2; a minimum is flat, so to 1e-6
        best = (a * A * 0.053**b * 1e21**c / (c * K)) ** (1 / (a + c))
        assert true[f"{arch} ln TPP"] == pytest.approx(np.log(6 * 1e21 / best**2), abs=1e-6)
    # the gains that the package's doctests print of the published coefficients
    for at, gain in (("0.846", 0.17996), ("0.947", 0.15799), ("0.969", 0.14646)):
        assert -np.expm1(-true[f"gain 1e21 at {at}"]) == pytest.approx(gain, abs=5e-6)


@pytest.mark.parametrize("name", ["half, drift", "half, one drifts"])
def test_truth_of_drifting_worlds_is_that_of_their_own_surfaces(worlds: Any, name: str) -> None:
    """Against a grid over ln F, and the definition: at C_ref the reference reaches the loss of the target at C."""
    noise = worlds.NOISES[name]
    losses, smallest = worlds.true_losses(noise), 632862720.0  # F of the smallest of the runs

    def restated(arch: str, F: Any, S: float, D: Any) -> Any:  # noqa: N803
        E, A, K, a, b, c = LAW[arch]
        strength = 0.02 if arch in noise.drift else 0.0
        return (
            E
            + A
            * (1 - S) ** b
            * F ** -(a - strength * np.log(F / smallest))
            * smallest ** -(strength * np.log(F / smallest))
            + K * D**-c
        )

    def lowest(arch: str, log_budget: float, S: float) -> float:  # noqa: N803
        log_flops = np.linspace(np.log(1e8), np.log(1e12), 200_001)
        return float(restated(arch, np.exp(log_flops), S, np.exp(log_budget - log_flops)).min())

    for arch in worlds.ARCHS:
        at = restated(arch, 3e9, 0.947, 1e11)
        assert float(losses[arch](3e9, 0.947, 1e11)) == pytest.approx(at, rel=1e-12)
    true = dict(zip(worlds.QUANTITIES, worlds.truth(noise), strict=True))
    for budget, sparsity in worlds.GAINS:
        m = true[f"gain {budget:.0e} at {sparsity}".replace("e+", "e")]
        log_budget = np.log(budget)
        # the grid's minimum is above the true one by less than curvature * step^2 / 8, below 1e-9
        assert lowest("baseline", log_budget + m, sparsity) == pytest.approx(
            lowest("smelt", log_budget, sparsity), abs=1e-8
        )
    undefined = {quantity for quantity, value in true.items() if np.isnan(value)}
    assert undefined == {f"{arch} {of}" for arch in noise.drift for of in ("a", "gamma")}


def test_what_is_measured_is_what_the_commands_print(worlds: Any, runs: Any) -> None:
    """Intervals of one world against the tables of the package."""
    from smelt_scaling import allocate, ce_gain, fit

    setting = runs.Setting("half", replicates=99, wild=1)
    found = runs.one_world(setting, 0)
    study = fit(worlds.endpoints(worlds.NOISES["half"], 0, 0), bootstrap=99, wild=True)
    names = list(worlds.QUANTITIES)
    for kind in runs.INTERVALS:
        lo, hi = np.array(found["ends"][kind])
        gains = ce_gain(study, worlds.BUDGETS, sparsities=worlds.SPARSITIES, interval=kind)
        at = [i for i, name in enumerate(names) if name.startswith("gain")]
        # eight digits are kept; and 16 starts end where 64 do, to a millionth of a coefficient
        np.testing.assert_allclose(-np.expm1(-lo[at]), gains["gain_lo"].to_numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(-np.expm1(-hi[at]), gains["gain_hi"].to_numpy(), rtol=1e-5, atol=1e-6)
        table = allocate(study, 1e21, sparsities=0.947, interval=kind)
        ratio = [names.index(f"{arch} ln TPP") for arch in table["arch"]]
        np.testing.assert_allclose(np.exp(hi[ratio]), table["tokens_per_param_hi"].to_numpy(), rtol=1e-5)


def test_fewer_starts_end_in_the_same_optimum(worlds: Any, runs: Any) -> None:
    from smelt_scaling import fit

    for noise in ("rows", "most", "half, heavy"):
        endpoints = worlds.endpoints(worlds.NOISES[noise], 3, 0)
        usual, fewer = (fit(endpoints, bootstrap=0, starts=starts) for starts in (64, runs.STARTS))
        for arch in usual.archs:
            # what the library's two engines promise of one optimum
            assert fewer[arch].objective == pytest.approx(usual[arch].objective, rel=1e-9)


def test_an_interrupted_measurement_goes_on_and_ends_as_one_in_one_go(
    runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "CHUNK", 2)
    measured: list[tuple[str, int]] = []

    def one_world(setting: Any, index: int, seed: int) -> dict[str, Any]:
        measured.append((setting.noise, index))
        return {"index": index, "ends": {}, "drawn": hash((setting, index, seed)) % 1000}

    monkeypatch.setattr(runs, "one_world", one_world)
    a, b = runs.Setting("rows"), runs.Setting("half")
    steps = [(a, 3), (b, 2), (a, 5)]
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    said: list[tuple[int, int]] = []
    runs.run(whole, steps, progress=lambda _, done, total: said.append((done, total)))
    assert measured == [
        ("rows", 0),
        ("rows", 1),
        ("rows", 2),
        ("half", 0),
        ("half", 1),
        ("rows", 3),
        ("rows", 4),
    ]
    assert said[0] == (0, 7)
    assert said[-1] == (7, 7)
    text = whole.read_text(encoding="utf-8")
    broken.write_text(text[: len(text) // 2], encoding="utf-8")  # within the third of four lines
    before = len(measured)
    runs.run(broken, steps)
    assert len(measured) - before == 4  # the chunk that was cut and the one behind it
    assert runs.read_chunks(broken) == runs.read_chunks(whole)
    runs.run(broken, steps)
    assert len(measured) - before == 4  # nothing is measured twice


def test_coverage_widths_and_refusals_are_counted_by_hand(worlds: Any, coverage: Any) -> None:
    """Four worlds: one misses above, one has no interval, and one an unreachable end."""
    true = np.zeros(len(worlds.QUANTITIES))
    true[0] = np.nan
    lo, hi = np.full((2, len(true)), -1.0)
    hi = hi + 2.0
    open_ended = np.where(coverage._of("gain"), np.inf, hi)
    several = [
        {"index": i, "ends": {"percentile": ends}, "certified": True, "refits": 1.0}
        for i, ends in enumerate(([lo.tolist(), hi.tolist()], [(lo - 1).tolist(), (hi - 1.5).tolist()], None))
    ]
    several.append({**several[0], "index": 3, "ends": {"percentile": [lo.tolist(), open_ended.tolist()]}})
    several = [world | {"unreachable": [0.25] * len(true)} for world in several]
    found = coverage.summarise(several, true)
    assert list(found["intervals"]) == ["percentile"]
    groups = found["intervals"]["percentile"]["groups"]
    gain = groups["gain 1e21"]
    assert gain["refused"] == pytest.approx(1 / 4)
    assert gain["coverage"] == pytest.approx(2 / 3)
    assert gain["error"] == pytest.approx(np.sqrt(2 / 9 / 3))
    # widths e - 1/e, e^2 - e^0.5 and, of the unreachable end, e - 0
    assert gain["width"] == pytest.approx(np.e)
    assert groups["a"]["width"] == pytest.approx(2.0)
    assert found["unreachable"]["gain 1e22"] == 0.25
    assert found["intervals"]["percentile"]["lowest"][1] == pytest.approx(2 / 3)


@pytest.fixture(scope="module")
def values() -> Any:
    """What is recorded."""
    return json.loads((CHECKOUT / "benchmarks/results/coverage.json").read_text(encoding="utf-8"))["values"]


def test_notes_name_the_coverage_that_is_recorded(coverage: Any, values: Any) -> None:
    """Lowest and highest of a quantity in all worlds that obey the law together, in whole percent."""
    from smelt_scaling.resampling.measured import COVERAGE

    for choice, named in COVERAGE.items():
        objective, kind = (
            (choice, "percentile") if choice in coverage.OBJECTIVE_TITLES else ("default", choice)
        )
        assert named == tuple(round(100 * share) for share in coverage.extremes(values, objective, kind))
        assert named[0] < 100 * coverage.GOAL
    for silent in ("default", "raw"):
        assert coverage.extremes(values, silent, "percentile")[0] >= coverage.GOAL


def test_the_record_says_how_much_was_measured_and_that_all_of_it_was_certified(
    coverage: Any, values: Any
) -> None:
    mains = coverage.of_objective(values, main=True)
    assert sum(row["worlds"] for row in mains) == values["together"]["default"]["worlds"] >= 1000
    assert {row["noise"] for row in values["rows"]} >= {"half, skewed", "half, drift", "half, heavy"}
    for row in values["rows"]:
        assert row["worlds"] >= 50
        assert row["certified"] == 1
        assert row["refits"] > 0.998
    # with five times the replicates intervals are as wide and cover as often
    assert values["finer"]["width_ratio"] == pytest.approx(1, abs=0.02)
    assert values["finer"]["coverage_few"] == pytest.approx(values["finer"]["coverage_many"], abs=0.01)


def test_choices_that_cover_less_say_so_and_the_default_does_not() -> None:
    from smelt_scaling import ce_gain, example_endpoints, fit, predict
    from smelt_scaling.analyses.frames import notes_of
    from smelt_scaling.resampling.measured import COVERAGE

    def said(table: Any) -> list[str]:
        return [note.message for note in notes_of(table) if note.code == "interval_coverage"]

    study = fit(example_endpoints(), bootstrap=100, wild=True)
    point = {"F": 1e10, "S": 0.947, "D": 1e11}
    assert said(ce_gain(study, 1e21)) == said(predict(study, point)) == []
    for kind in ("jackknife-t", "wild-cr3"):
        low, high = COVERAGE[kind]
        for table in (ce_gain(study, 1e21, interval=kind), predict(study, point, interval=kind)):
            [message] = said(table)
            assert f"--interval {kind} cover {low} to {high} %" in message
    for delta in ("auto", float("inf")):
        other = fit(example_endpoints(), bootstrap=100, delta=delta)
        low, high = COVERAGE[f"delta {delta}"]
        [message] = said(ce_gain(other, 1e21))
        assert f"--delta {delta} cover {low} to {high} %" in message
        assert message in " ".join(other.summary().split())


@pytest.mark.slow
def test_default_intervals_cover_as_often_as_recorded(
    worlds: Any, runs: Any, coverage: Any, values: Any
) -> None:
    """Forty worlds, 199 replicates (a whole rank of 5): each quantity may miss as often as the recorded share allows.

    With 25 quantities at 1e-6 each a sound program fails less than once in 40,000 changes of the seed; intervals of
    half the width, which cover two thirds, fail.
    """
    [row] = [row for row in coverage.of_objective(values, main=True) if row["noise"] == "half"]
    setting = runs.Setting("half", replicates=199)
    # other worlds than the recorded ones
    several = [runs.one_world(setting, index, seed=1) for index in range(40)]
    held, _ = coverage.covered(several, "percentile", worlds.truth(worlds.NOISES["half"]))
    groups = row["intervals"]["percentile"]["groups"]
    for (quantity, group), count in zip(worlds.QUANTITIES.items(), held.sum(axis=0), strict=True):
        least = binom.ppf(1e-6, 40, groups[group]["coverage"])
        assert count >= least, f"{quantity}: {count:.0f} of 40 intervals hold the truth"
