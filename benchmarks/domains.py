"""Gains on 39 sources under every replicate: what the batched fit of floors and amplitudes costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.recorder import one_thread, table, timed

TITLE = "Parts of an evaluation"
SOURCES = 39


def measure(replicates: int = 2000, sources: int = SOURCES) -> dict[str, Any]:
    """Time the gains of every source, each a domain of its own, at the endpoints of the example."""
    from smelt_scaling import Endpoints, domains, example_endpoints, fit

    runs = example_endpoints()
    rng = np.random.default_rng(0)
    frames = [
        runs.to_frame().assign(
            domain=f"s{i:02d}",
            loss=runs.loss * (0.5 + 0.02 * i) * np.exp(0.002 * rng.standard_normal(len(runs))),
        )
        for i in range(sources)
    ]
    losses = Endpoints.from_frame(pd.concat(frames))
    study = fit(runs, bootstrap=replicates)
    with one_thread():
        found, clock = timed(domains, study, losses, 1e21, sparsities=0.947, test_sharing=False)
    fits = 2 * sources * (replicates + 1)
    uncertified = sum(n["count"] for n in found.attrs["notes"] if n["code"] == "parts_uncertified")
    return {
        "sources": sources,
        "replicates": replicates,
        "fits": fits,
        "cpu": clock.cpu,
        "wall": clock.wall,
        "uncertified": uncertified,
    }


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    text = (
        f"`domains` on {values['sources']} sources, {values['replicates']} replicates and both architectures: "
        "exponents of each replicate, floor and amplitudes by Newton steps over all at once, gains, intervals and "
        "every paired difference."
    )
    row = [
        f"{values['fits']}",
        f"{values['cpu']:.1f}",
        f"{1e6 * values['cpu'] / values['fits']:.0f}",
        f"{values['uncertified']}",
    ]
    return "\n".join([text, "", table(["fits", "CPU s", "CPU µs per fit", "not certified"], [row])])
