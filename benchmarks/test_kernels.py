"""The kernels alone under pytest-benchmark, for comparing versions: ``pytest benchmarks --benchmark-autosave``.

Not part of the test suite, and no claim rests on it: the claims are ratios, whose sides must take turns in one process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.example import SETTINGS, World, worlds
from benchmarks.recorder import one_thread
from smelt_scaling.engine.newton import delta_ladder, minimise
from smelt_scaling.frontier import Frontier, log_multiplier
from smelt_scaling.papers.example import example_endpoints
from smelt_scaling.resampling import refit

pytest.importorskip("pytest_benchmark")


@pytest.fixture(scope="module")
def smelt() -> Iterator[World]:
    with one_thread():
        yield worlds(example_endpoints(), replicates=2000)["smelt"]


def test_derivatives(benchmark: Any, smelt: World) -> None:
    problem, delta = smelt.fitted.problem, np.full(len(smelt.counts), smelt.fitted.delta)
    benchmark(smelt.fitted.objective.derivatives, smelt.start, smelt.weights, problem.observed, delta)


def test_one_pass(benchmark: Any, smelt: World) -> None:
    fitted = smelt.fitted
    benchmark(minimise, fitted.objective, smelt.start, smelt.weights, delta_ladder(fitted.delta))


def test_refit(benchmark: Any, smelt: World) -> None:
    draws = benchmark(refit, smelt.fitted, smelt.index, smelt.counts, smelt.labels, SETTINGS)
    assert draws.certified.all()


def test_log_multiplier(benchmark: Any, smelt: World) -> None:
    surface = refit(smelt.fitted, smelt.index, smelt.counts, smelt.labels, SETTINGS).surface
    benchmark(log_multiplier, Frontier(surface), Frontier(surface), np.log([1e20, 1e21, 1e22]), 0.95)
