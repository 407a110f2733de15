"""How often tests of shared parameters reject what is true, and find what is not.

Worlds on the example's design: 12 cells by 6 horizons per architecture, errors of a stated size on the loss, of which
cells share a stated part; the cells of the two architectures are independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.recorder import one_thread, table

TITLE = "Tests of shared laws"

WORLDS, REPLICATES = 400, 39
#: Standard deviation of a loss, nats/token: the published rmse without the degrees of freedom of a fit.
SD = {"baseline": 0.006, "smelt": 0.0105}
ALIKE = {"baseline": 0.006, "smelt": 0.006}

NAMES = {
    "exponents": "both share a, b, c",
    "gamma": "both share gamma",
    "floor": "both share E",
    "no_sparsity": "b = 0 in both",
    "one_exponent": "a = c in both",
}


def surfaces(kind: str) -> dict[str, Any]:
    """Return true surfaces: the published ones, or some in which a hypothesis holds."""
    from smelt_scaling.laws import Surface
    from smelt_scaling.papers import load_paper

    published = load_paper("smelt").surfaces
    if kind == "published":
        return dict(published)
    law = published["baseline"].law
    base = dict(published["baseline"].coefficients)
    if kind == "no_sparsity":
        base |= {"A": base["A"] * 0.053 ** base["b"], "b": 0.0}
    if kind == "one_exponent":  # both terms as large as published at the middle of the design
        F, D = 2.5e9, 6e10
        same = 0.5
        base |= {
            "A": base["A"] * F ** (same - base["a"]),
            "K": base["K"] * D ** (same - base["c"]),
            "a": same,
            "c": same,
        }
    better = base | {"A": 0.985 * base["A"], "K": 0.985 * base["K"]}
    return {
        arch: Surface(law=law, coef=[own[name] for name in law.parameters])
        for arch, own in (("baseline", base), ("smelt", better))
    }


#: Kind of world -> standard deviations, parts of the error that cells share, and the questions put to it.
KINDS: dict[str, tuple[dict[str, float], tuple[float, ...], tuple[str, ...]]] = {
    "shared": (ALIKE, (0.0, 0.8), ("exponents", "gamma", "floor")),
    "no_sparsity": (ALIKE, (0.8,), ("no_sparsity",)),
    "one_exponent": (ALIKE, (0.8,), ("one_exponent",)),
    "published": (SD, (0.0, 0.8), ("exponents", "gamma")),
}


def world(kind: str, share: float, seed: int) -> Any:
    """Draw the endpoints of one world."""
    from smelt_scaling.papers import load_paper
    from smelt_scaling.papers.example import example_design
    from smelt_scaling.synth import simulate

    return simulate(
        surfaces(kind),
        example_design(load_paper("smelt")),
        sd=KINDS[kind][0],
        cell_share=share,
        pair_correlation=0.0,
        seed=seed,
    )


def pair_in(endpoints: Any) -> Any:
    """Return the two architectures of one world as one problem."""
    from smelt_scaling.analyses.diagnostics.law_tests import make_pair
    from smelt_scaling.fitting import FitSettings, fit_architecture
    from smelt_scaling.laws import LAWS

    index = np.unique(endpoints.cells("cell")[0], return_inverse=True)[1]
    archs = endpoints.archs
    fitted = [
        fit_architecture(arch, own, LAWS["sparse-additive"], FitSettings(), n_cells=12)
        for arch, own in endpoints.by_arch().items()
    ]
    cells = [index[endpoints.arch == arch] for arch in archs]
    return make_pair(
        archs,
        (fitted[0].problem, fitted[1].problem),
        (cells[0], cells[1]),
        np.concatenate([one.theta for one in fitted]),
    )


def rejections(kind: str, share: float, worlds: int, replicates: int) -> dict[str, dict[str, float]]:
    """Return, per question, the share of worlds with p at most .05: simulated, and by chi-square.

    All worlds are fitted at once: the moments behind the variances are those of the first one's design matrix.
    """
    from scipy.stats import chi2

    from smelt_scaling.analyses.diagnostics.law_questions import questions_of
    from smelt_scaling.analyses.diagnostics.law_tests import compare

    found = {}
    with one_thread():
        pair = pair_in(world(kind, share, 0))
        law, scales = pair.problems[0].law, [problem.scale for problem in pair.problems]
        drawn = [world(kind, share, seed).by_arch() for seed in range(worlds)]
        observed = np.stack(
            [
                np.concatenate([np.log(own.loss / s) for own, s in zip(one.values(), scales, strict=True)])
                for one in drawn
            ]
        )
        coef = [surface.coef for _, surface in sorted(surfaces(kind).items())]
        true = np.concatenate([p.centred(one) for p, one in zip(pair.problems, coef, strict=True)])
        start = np.repeat(true[None], worlds, axis=0)
        for question in questions_of(law, pair.problems, pair.archs):
            if question.code not in KINDS[kind][2] or question.tie is None:
                continue
            theta, statistic, _ = compare(pair, question.tie, observed, start)
            components = pair.variances(observed, start)
            lanes = np.repeat(np.arange(worlds), replicates)
            simulated = pair.simulate(theta[lanes], components[lanes], seed=1)
            null = compare(pair, question.tie, simulated, theta[lanes])[1].reshape(worlds, replicates)
            p = (1 + (null >= statistic[:, None]).sum(axis=1)) / (1 + replicates)
            naive = chi2.sf(statistic, pair.separate.size - question.tie.size)
            found[question.code] = {
                "simulated": float(np.mean(p <= 0.05)),
                "chi2": float(np.mean(naive <= 0.05)),
            }
    return found


def measure(worlds: int = WORLDS, replicates: int = REPLICATES) -> dict[str, Any]:
    """Measure every kind of world with independent errors and with cells that share most of them."""
    return {
        "worlds": worlds,
        "replicates": replicates,
        "rows": [
            {"kind": kind, "share": share, "rates": rejections(kind, share, worlds, replicates)}
            for kind in KINDS
            for share in KINDS[kind][1]
        ],
    }


def page(values: Mapping[str, Any]) -> str:
    """Return the section."""
    size, power = [], []
    for row in values["rows"]:
        for name, rate in row["rates"].items():
            line = [NAMES[name], f"{row['share']:.0%}", f"{rate['simulated']:.1%}", f"{rate['chi2']:.1%}"]
            (power if row["kind"] == "published" else size).append(line)
    error = 1.96 * np.sqrt(0.05 * 0.95 / values["worlds"])
    header = ["hypothesis", "error shared by a cell", "simulated null", "chi-square"]
    return "\n".join(
        [
            f"Share of {values['worlds']} simulated worlds per row in which a test at 5 % rejects, with "
            f"{values['replicates']} simulated data sets each. Where the hypothesis holds a true 5.0% shows as 5.0% ± "
            f"{error:.1%}:",
            "",
            table(header, sorted(size, key=lambda line: line[:2])),
            "",
            "Where the published surfaces are the truth, so that neither holds (errors of "
            f"{SD['baseline']:g} and {SD['smelt']:g} nats/token):",
            "",
            table(header, power),
        ]
    )
