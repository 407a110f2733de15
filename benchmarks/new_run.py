"""How often the interval of one new run contains its loss.

Simulated from a stated truth: the baseline of the example, 12 cells by 6 horizons, published coefficients. In every
world the law is fitted, its cells are resampled, and one more run is made: within the runs, or at twice the largest
size, in a cell of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.recorder import table

TITLE = "Intervals of one new run"

WORLDS, REPLICATES = 240, 400
SHARES = (0.0, 0.5, 0.8)
#: Noise of a loss, nats/token: what leaves the published RMSE.
SD = 1.044 * 0.00554
POINTS = {
    "within the runs": {"F": 3e9, "S": 0.947, "D": 1e11},
    "twice the largest size": {"F": 2e10, "S": 0.947, "D": 215605043200.0},
}
KINDS = ("surface", "new run", "new run, widened")


def world(share: float, seed: int, replicates: int) -> dict[str, dict[str, tuple[bool, float]]]:
    """Return, per point and kind of interval, whether it contains the new run, and its width in nats/token."""
    from smelt_scaling import Endpoints, example_endpoints, fit, load_paper, predict
    from smelt_scaling.analyses import prediction
    from smelt_scaling.analyses.new_run import new_run_noise
    from smelt_scaling.synth import simulate

    def widened(study: Any, arch: str) -> Any:
        noise, notes = new_run_noise(study, arch)
        return replace(noise, sd_between=noise.sd_between * np.sqrt(noise.cells / (noise.cells - 4))), notes

    surfaces = load_paper("smelt").surfaces
    design = example_endpoints().by_arch()["baseline"].to_frame()
    runs: Endpoints = simulate(surfaces, design, sd=SD, cell_share=share, seed=seed)
    study = fit(runs, bootstrap=replicates, seed=seed)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    found: dict[str, dict[str, tuple[bool, float]]] = {}
    for name, at in POINTS.items():
        made = float(surfaces["baseline"].loss(**at)) + SD * rng.standard_normal()
        plain = predict(study, at, new_run=True).iloc[0]
        with mock.patch.object(prediction, "new_run_noise", widened):
            wide = predict(study, at, new_run=True).iloc[0]
        ends = {
            "surface": (plain["loss_lo"], plain["loss_hi"]),
            "new run": (plain["loss_run_lo"], plain["loss_run_hi"]),
            "new run, widened": (wide["loss_run_lo"], wide["loss_run_hi"]),
        }
        found[name] = {kind: (bool(lo <= made <= hi), float(hi - lo)) for kind, (lo, hi) in ends.items()}
    return found


def measure(worlds: int = WORLDS, replicates: int = REPLICATES) -> dict[str, Any]:
    """Count over many worlds."""
    rows = []
    for share in SHARES:
        every = [world(share, seed, replicates) for seed in range(worlds)]
        for name in POINTS:
            rows.append(
                {
                    "share": share,
                    "point": name,
                    "coverage": {kind: float(np.mean([w[name][kind][0] for w in every])) for kind in KINDS},
                    "width": {kind: float(np.median([w[name][kind][1] for w in every])) for kind in KINDS},
                }
            )
    return {"worlds": worlds, "replicates": replicates, "sd": SD, "rows": rows}


def page(values: dict[str, Any]) -> str:
    """Return the section of the page."""
    error = 100 * np.sqrt(0.93 * 0.07 / values["worlds"])
    return "\n".join(
        [
            f"The baseline of the example with noise of {values['sd']:.3g} nats/token, {values['worlds']} worlds with "
            f"{values['replicates']} resamples each, 95 % intervals; standard error of a coverage about {error:.1f} "
            "points. The interval of the surface (`loss_lo, loss_hi`) is that of a mean of many runs, not of one. The "
            "last column widens the cell effect by √(G/(G − 4)), G = 12 cells, which plug-in deviations would need and "
            "those of the restricted likelihood do not.",
            "",
            table(
                [
                    "cells' share of the variance",
                    "new run",
                    *(f"{kind}: covers" for kind in KINDS),
                    "widths, nats",
                ],
                [
                    [
                        f"{row['share']:g}",
                        row["point"],
                        *(f"{row['coverage'][kind]:.3f}" for kind in KINDS),
                        " / ".join(f"{row['width'][kind]:.4f}" for kind in KINDS),
                    ]
                    for row in values["rows"]
                ],
            ),
        ]
    )
