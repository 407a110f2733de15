"""Which gains twelve cells find: power of the reported interval in simulated worlds, beside the formula of ``plan``.

The design of the example, the published surface of the baseline and as the target the same surface shifted so that
the gain at the budget is exact. Both architectures scatter by 0.0055 nats about their surfaces, independently.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.recorder import table

TITLE = "Gains that twelve cells find"

BUDGET, SPARSITY, SD = 1e21, 0.947, 0.0055
#: Share of the noise that a cell's endpoints have in common -> true gains.
POINTS = {0.0: (0.075, 0.095), 0.5: (0.115, 0.15, 0.18)}


def measure(worlds: int = 200, bootstrap: int = 400) -> dict[str, Any]:
    """Simulate every point; a world is two fits, their resamples and one interval."""
    rows = [measure_share(icc, gains, worlds, bootstrap) for icc, gains in POINTS.items()]
    return {"worlds": worlds, "bootstrap": bootstrap, "rows": rows}


def measure_share(icc: float, gains: tuple[float, ...], worlds: int, bootstrap: int) -> dict[str, Any]:
    """Simulate the gains of one share of the noise."""
    from smelt_scaling.analyses.diagnostics import Headline
    from smelt_scaling.analyses.planning.design import design_of
    from smelt_scaling.analyses.planning.evidence import evidence_of
    from smelt_scaling.analyses.planning.noise import Noise
    from smelt_scaling.analyses.planning.power import found_from, power_of
    from smelt_scaling.analyses.planning.worlds import detectable, shifted, simulated_power
    from smelt_scaling.papers import load_paper
    from smelt_scaling.papers.example import example_endpoints

    reference = load_paper("smelt").surfaces["baseline"]
    headline = Headline(target="smelt", reference="baseline", budget=BUDGET, sparsity=SPARSITY)
    design = design_of(example_endpoints(), reference.law, ("smelt", "baseline"))
    noise = Noise(sd=(SD, SD), icc=icc, pair_correlation=0.0, sources={})
    found = simulated_power(design, reference, headline, noise, gains, worlds=worlds, bootstrap=bootstrap)
    truth = {"baseline": reference, "smelt": shifted(reference, gains[0], BUDGET, SPARSITY)}
    known = evidence_of(design, truth, headline, noise, delta=(1e-3, 1e-3))
    cells, se = len(design.labels), known.se_reported
    points = [one.row() | {"held": one.held} for one in found]
    return {
        "icc": icc,
        "detectable": detectable(found),
        "formula": float(-np.expm1(-found_from(se, cells))),
        "least_squares": float(-np.expm1(-(1.959964 + 0.841621) * known.se)),
        "se": known.se,
        "se_factor": known.se_factor,
        "scatter": float(np.mean([one.estimate.std(ddof=1) for one in found])),
        "points": [point | {"formula": power_of(point["gain"], se, cells)} for point in points],
    }


def page(values: dict[str, Any]) -> str:
    """Return what stands on the page."""
    points = [
        [
            f"{row['icc']:g}",
            f"{point['gain']:.1%}",
            f"{point['power']:.1%} [{point['power_lo']:.1%}, {point['power_hi']:.1%}]",
            f"{point['formula']:.1%}",
            f"{point['held'] / point['worlds']:.1%}",
        ]
        for row in values["rows"]
        for point in row["points"]
    ]
    whole = [
        [
            f"{row['icc']:g}",
            "beyond" if row["detectable"] is None else f"{row['detectable']:.1%}",
            f"{row['formula']:.1%}",
            f"{row['least_squares']:.1%}",
            f"{row['scatter'] / row['se']:.2f}",
            f"{row['se_factor']:.2f}",
        ]
        for row in values["rows"]
    ]
    return "\n".join(
        [
            f"12 cells by 6 horizons of both architectures, a gain at {BUDGET:.0e} FLOPs and S = "
            f"{SPARSITY}, noise {SD} nats of which cells share the part named. {values['worlds']} worlds per row, "
            f"{values['bootstrap']} resamples each. Found: the 95 % percentile interval lies above 0. The formula is "
            "that of `plan`: a t interval of the standard error of the Huber fits.",
            "",
            table(
                [
                    "shared by cells",
                    "true gain",
                    "found (95 % interval)",
                    "by the formula",
                    "interval holds the truth",
                ],
                points,
            ),
            "",
            "Detectable with a power of 80 %, between the simulated gains; by the formula; and by least squares with "
            "normal quantiles, which nobody reports. Scatter of the estimates over the standard error of generalised "
            "least squares, in the worlds and by the formula:",
            "",
            table(
                [
                    "shared by cells",
                    "detectable",
                    "by the formula",
                    "least squares, normal",
                    "scatter, worlds",
                    "scatter, formula",
                ],
                whole,
            ),
        ]
    )
