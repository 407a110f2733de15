"""The benchmarks run, at sizes that say nothing about speed; the page is what the recorded results make."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def run() -> Iterator[Any]:
    """The runner, imported as it is when the benchmarks run: from the checkout's root."""
    sys.path.insert(0, str(CHECKOUT))
    from benchmarks import run as module

    yield module
    sys.path.remove(str(CHECKOUT))


def test_every_claim_is_recorded_and_the_page_is_made_from_the_records(run: Any) -> None:
    assert run.PAGE.read_text(encoding="utf-8") == run.render()
    for name in run.NAMES:
        assert run.recorded(name)["machine"]["cpu"]


def test_engine_and_lbfgsb_reach_the_same_optima(run: Any) -> None:
    module = run.benchmark("engine")
    values = module.measure(replicates=8, rounds=2, per_round=2)
    assert module.page(values).count("|") > 50
    for one in values["archs"].values():
        assert one["full_data_gap"] <= 1e-9  # the library promises this of its two engines
        assert one["agree"]["library"] == 1.0


def test_lean_objective_has_the_gradient_of_its_value(run: Any) -> None:
    from benchmarks.example import worlds
    from smelt_scaling.papers.example import example_endpoints

    module = run.benchmark("engine")
    world = worlds(example_endpoints(), replicates=1)["smelt"]
    f = module.lean_objective(world.fitted.problem, world.weights[0], world.fitted.delta)
    x = world.fitted.theta + 0.01
    step = 1e-6  # central differences err by step**2 and by eps/step, both about 1e-10 relative to f
    numeric = [(f(x + step * e)[0] - f(x - step * e)[0]) / (2 * step) for e in np.eye(len(x))]
    assert f(x)[1] == pytest.approx(numeric, rel=1e-4, abs=1e-4 * np.abs(f(x)[1]).max())


def test_default_tolerances_stop_above_the_optimum_and_shrink_intervals(run: Any) -> None:
    """The published counter-example, small: 64 resamples make rough intervals, and gamma's shrink tenfold and more."""
    module = run.benchmark("counterexample")
    values = module.measure(replicates=64, starts=4, seeds=1)
    assert "success=True" in module.page(values)
    example = values["example"]
    for reduction in module.REDUCTIONS:
        one = example[reduction]
        for arch, exact in example["exact"]["gamma_interval"].items():
            assert one["point"][arch]["excess"] > 0.01
            assert one["point"][arch]["success"] > 0.9
            assert one["draws_success"][arch] > 0.9
            assert module.too_narrow(exact, one["gamma_interval"][arch]) > 5
    if values["epoch"] is not None:
        stopped = values["epoch"]["sum"]
        assert stopped["success"]
        # SciPy from the published start, as measured with a program of its own; printed to six digits there
        assert stopped["objective"] == pytest.approx(1.16327e-3, rel=1e-5)
        # the optimum of the same data, known to seven digits from independent fits
        assert values["epoch"]["exact"]["objective"] == pytest.approx(1.018274e-3, rel=1e-6)


def test_process_and_growth_measure_fresh_processes(run: Any) -> None:
    recorder = sys.modules["benchmarks.recorder"]
    done = recorder.fresh_process([sys.executable, "-c", "x = bytearray(100_000_000); print(len(x))"])
    assert done["stdout"] == "100000000\n"
    assert 100 < done["rss"] < 200  # MB: the array and an interpreter, and not this process
    growth = run.benchmark("growth")
    values = growth.measure({"replicates": (64, 128)}, repeats=1)
    assert "exponent" in growth.page(values)


def test_streamed_logs_have_every_row_and_end_right(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from smelt_scaling.ingest.events import Block
    from smelt_scaling.ingest.keys import Keys
    from smelt_scaling.ingest.readers.step_table import STEP_TABLE
    from smelt_scaling.ingest.sources import find_sources

    module = run.benchmark("log_streaming")
    values = module.measure({1: 1, 2: 1}, rows_per_run=2000)
    assert [size["rows"] for size in values["sizes"]] == [20_000, 40_000]
    assert [*values["sizes"][0]["ways"]] == ["scan", "read", "condense", "endpoints"]
    assert module.page(values).count("|") > 40
    assert "the peak of `endpoints` goes from" in module.page(values)
    module.write_logs(tmp_path, 1, rows_per_run=2000)
    ends = {}
    for source in find_sources([tmp_path]):
        for block in STEP_TABLE.read(source, Keys()):
            assert isinstance(block, Block)
            assert (np.diff(block.step) > 0).all()  # the shuffled run as well
            ends[block.run, block.branch] = block.step[-1]
    assert len(ends) == 10 * 6
    assert module.endpoints([str(path) for path in tmp_path.iterdir()]) == 20_000
    monkeypatch.setattr(module, "BRANCHES", (*module.BRANCHES, "d6"))  # one that the logs do not have
    with pytest.raises(RuntimeError, match="50 endpoints"):
        module.endpoints([str(path) for path in tmp_path.iterdir()])
    monkeypatch.undo()
    # trunk of 1500 rows, then five branches of 100 off its sixths
    assert [ends["run 0", branch] for branch in module.BRANCHES] == [1499, 349, 599, 849, 1099, 1349]


def test_event_files_of_the_benchmark_are_read_in_full(run: Any) -> None:
    """The benchmark itself refuses to time a reading that lost a scalar."""
    module = run.benchmark("event_files")
    assert "scalars per s" in module.page(module.measure(scalars=3000, repeats=1))


def test_gains_on_parts_are_timed_with_every_fit_certified(run: Any) -> None:
    module = run.benchmark("domains")
    values = module.measure(replicates=64, sources=3)
    assert (values["fits"], values["uncertified"]) == (2 * 3 * 65, 0)
    assert "CPU µs per fit" in module.page(values)


def test_differences_of_gamma_and_tests_of_laws_are_measured_on_stated_worlds(run: Any) -> None:
    module = run.benchmark("gamma_difference")
    values = module.measure(worlds=3, replicates=60)
    assert values["truth"] == pytest.approx(0.2503 - 0.2371, abs=1e-4)  # as published, rounded
    assert module.page(values).count("|") > 30
    module = run.benchmark("law_tests")
    values = module.measure(worlds=2, replicates=3)
    assert [len(row["rates"]) for row in values["rows"]] == [3, 3, 1, 1, 2, 2]
    assert "both share gamma" in module.page(values)


def test_every_baseline_of_the_paper_is_matched(run: Any) -> None:
    module = run.benchmark("match_search")
    values = module.measure(repeats=1)
    assert values["cells"] == 16
    assert values["multiple_2"]["searched"] > values["multiple_4"]["searched"] > 1000
    assert module.page(values).count("|") > 20
