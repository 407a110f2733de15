"""Worlds of parts with stated truths, for the tests of `domains` and `sources`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from smelt_scaling import Endpoints, Frontier, Surface, example_endpoints, load_paper
from smelt_scaling.frontier import log_multiplier

RUNS = example_endpoints()
SURFACES = load_paper("smelt").surfaces
LAW = SURFACES["smelt"].law
BUDGET, SPARSITY = 1e21, 0.947

#: Published gains at 1e21 FLOPs and the 95 % tier, with floor, amplitude factors and number of sources of each domain.
DOMAINS = {
    "Code": (0.204, 0.75, 0.8, 0.8, 6),
    "Finance": (0.168, 1.55, 1.0, 1.0, 6),
    "Knowledge": (0.149, 1.7, 1.05, 1.05, 9),
    "Math/STEM": (0.166, 1.25, 0.95, 1.0, 8),
    "Web": (0.148, 1.95, 1.1, 1.1, 10),
}
#: Published gains of the quarters of 39 sources, by the loss of the baseline.
QUARTERS = {"Q1": (0.18, 10), "Q2": (0.163, 10), "Q3": (0.138, 10), "Q4": (0.159, 9)}


def gain(target: Surface, reference: Surface, budget: float = BUDGET, sparsity: float = SPARSITY) -> float:
    return float(-np.expm1(-log_multiplier(Frontier(target), Frontier(reference), np.log(budget), sparsity)))


def pair_of(wanted: float, floor: float, capacity: float, data: float) -> dict[str, Surface]:
    """Return surfaces with the published exponents of which the target's amplitudes are scaled to the gain wanted."""
    from scipy.optimize import brentq

    def scaled(arch: str, floor: float, factor: float) -> Surface:
        coef = SURFACES[arch].coef.copy()
        coef[0] = floor
        coef[1] *= capacity * factor
        coef[2] *= data * factor
        return Surface(law=LAW, coef=coef)

    reference = scaled("baseline", floor, 1.0)
    root = brentq(
        lambda m: gain(scaled("smelt", floor + 0.005, m), reference) - wanted,
        0.8,
        1.2,
        xtol=1e-15,
        rtol=1e-14,
    )
    return {"baseline": reference, "smelt": scaled("smelt", floor + 0.005, float(root))}


def long_table(parts: Mapping[tuple[str, str], Mapping[str, Surface]], noise: Any = None) -> pd.DataFrame:
    """Return the losses of every (domain, source) at the endpoints of the example."""
    frames = []
    for number, ((domain, source), surfaces) in enumerate(parts.items()):
        loss = np.empty(len(RUNS))
        for arch, surface in surfaces.items():
            own = RUNS.arch == arch
            loss[own] = surface.loss(**{name: RUNS[name][own] for name in LAW.columns})
        if noise is not None:
            loss = loss * np.exp(noise[number])
        frames.append(RUNS.to_frame().assign(domain=domain, source=source, loss=loss))
    return pd.concat(frames, ignore_index=True)


def mean_runs(table: pd.DataFrame) -> Endpoints:
    """Return endpoints whose loss is the mean over all sources, each alike."""
    keys = [name for name in RUNS.columns if name not in ("loss", "source")]
    return Endpoints.from_frame(table.groupby(keys, as_index=False)["loss"].mean(), source="runs.parquet")


def losses_of(table: pd.DataFrame) -> Endpoints:
    return Endpoints.from_frame(table, source="losses.parquet")


def domain_world() -> dict[tuple[str, str], dict[str, Surface]]:
    """39 sources, all of a domain alike."""
    return {
        (name, f"{name}-{i}"): pair_of(*truth)
        for name, (*truth, count) in DOMAINS.items()
        for i in range(count)
    }


def quarter_world() -> dict[tuple[str, str], dict[str, Surface]]:
    """39 sources of rising floors: the sources of a quarter differ in floor and have one gain together."""
    world = {}
    for number, (name, (wanted, count)) in enumerate(QUARTERS.items()):
        pair = pair_of(wanted, 0.8 + 0.5 * number, 1.0, 1.0)
        for i in range(count):
            step = 0.02 * (i - (count - 1) / 2)
            world["all", f"{name}-{i}"] = {
                arch: Surface(law=LAW, coef=surface.coef + step * np.eye(6)[0])
                for arch, surface in pair.items()
            }
    return world
