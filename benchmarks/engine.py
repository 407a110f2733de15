"""One start each: the batched Newton engine against L-BFGS-B with corrected tolerances, in one process.

Three contestants minimise the same replicates from the same point, the full-data optimum:

- ``newton``: `smelt_scaling.engine.newton.minimise`, all replicates as one batch;
- ``library``: `smelt_scaling.engine.lbfgsb.minimise_lbfgsb`, whose objective evaluates a padded batch of 64 lanes;
- ``lean``: SciPy's L-BFGS-B on the objective below, plain NumPy for one replicate without its zero-weight rows, at
  about the loosest tolerances that still reach the same objective to 1e-9 (at ftol 1e-10 it misses one in a hundred);
- ``lean_tight``: the same with the tolerances of the library.

The lean one is what a careful script would write, and a faster opponent makes a smaller ratio, so it is the headline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.example import SETTINGS, World, worlds
from benchmarks.recorder import Clock, one_thread, spread, table, timed
from smelt_scaling.engine.lbfgsb import OPTIONS, SCALE, minimise_lbfgsb
from smelt_scaling.engine.newton import delta_ladder, minimise
from smelt_scaling.engine.problem import Problem
from smelt_scaling.engine.seeds import projected_starts
from smelt_scaling.papers.example import example_endpoints
from smelt_scaling.resampling import refit

TITLE = "Engine: one start each, in one process"
GOAL = 20.0
AGREE = 1e-9
LEAN_OPTIONS: Any = {**OPTIONS, "ftol": 1e-12, "gtol": 1e-4}

Array = NDArray[np.float64]


CONTESTANTS = {
    "newton": "Newton, one pass",
    "lean": "L-BFGS-B, lean objective, loosest tolerances that agree (headline)",
    "lean_tight": "L-BFGS-B, lean objective, tolerances of the library",
    "library": "L-BFGS-B, `--engine lbfgsb`",
    "study": "Newton with the extra start and the certificate (what a study runs)",
}


def lean_objective(problem: Problem, weights: Array, delta: float) -> Callable[[Array], tuple[float, Array]]:
    """Return f and its gradient, times `SCALE`, of one replicate whose parameters are all free."""
    used = weights > 0
    design = np.zeros((len(problem.terms), int(used.sum()), len(problem.held)))
    for k, term in enumerate(problem.terms):
        design[k][:, term.columns] = term.design[used]
    stacked = design.reshape(-1, len(problem.held))
    offset = np.concatenate([term.offset[used] for term in problem.terms])
    shape = design.shape[:2]
    w, y = weights[used] * SCALE, problem.observed[used]

    def value_and_gradient(x: Array) -> tuple[float, Array]:
        terms = np.exp(stacked @ x + offset).reshape(shape)
        m = terms.sum(axis=0)
        m += x[0]
        r = np.log(m) - y
        psi = np.minimum(np.maximum(r, -delta), delta)
        slope = w * psi
        f = slope @ (r - 0.5 * psi)
        slope /= m
        terms *= slope
        gradient = terms.ravel() @ stacked
        gradient[0] += slope.sum()
        return float(f), gradient

    return value_and_gradient


def minimise_lean(world: World, rows: NDArray[np.intp], options: Any) -> tuple[Array, Array]:
    """Minimise the given replicates one by one; return objectives and evaluations."""
    from scipy.optimize import Bounds, minimize

    problem, delta = world.fitted.problem, world.fitted.delta
    bounds = Bounds(problem.lower, np.full(len(problem.held), np.inf))
    f, evaluations = np.empty(len(rows)), np.empty(len(rows))
    start: Any = world.fitted.theta
    for i, weights in enumerate(problem.weight * world.counts[rows][:, world.index]):
        objective = lean_objective(problem, weights, delta)
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        f[i], evaluations[i] = found.fun / SCALE, found.nfev
    return f, evaluations


def measure(replicates: int = 2000, rounds: int = 7, per_round: int = 40) -> dict[str, Any]:
    """Interleave the contestants; costs are per fit, because L-BFGS-B gets through a part of the replicates only."""
    with one_thread():  # as a study does
        found = worlds(example_endpoints(), replicates=replicates)
        by_arch = {arch: _one_architecture(world, rounds, per_round) for arch, world in found.items()}
    costs = [arch.pop("costs") for arch in by_arch.values()]
    ratio = {
        name: {
            clock: spread(
                sum(one[name][i][c] for one in costs) / sum(one["newton"][i][c] for one in costs)
                for i in range(rounds)
            )
            for c, clock in enumerate(("cpu", "wall"))
        }
        for name in CONTESTANTS
        if name != "newton"
    }
    return {
        "replicates": replicates,
        "few": rounds * per_round,
        "rounds": rounds,
        "ratio": ratio,
        "archs": by_arch,
    }


def _one_architecture(world: World, rounds: int, per_round: int) -> dict[str, Any]:
    problem, objective = world.fitted.problem, world.fitted.objective
    ladder = delta_ladder(world.fitted.delta)
    weights, start, frozen = world.weights, world.start, world.frozen
    usable = np.flatnonzero(~frozen.any(axis=1))  # the lean objective holds nothing
    minimise_lean(world, usable[:2], LEAN_OPTIONS)  # imports and caches are nobody's cost
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in CONTESTANTS}
    gaps: dict[str, list[Array]] = {"lean": [], "lean_tight": [], "library": []}
    evaluations: dict[str, list[Array]] = {name: [] for name in gaps}
    lean = np.full(len(start), np.inf)

    def spent(name: str, clock: Clock, fits: int) -> None:
        costs[name].append((clock.cpu / fits, clock.wall / fits))

    for chunk in np.array_split(usable, rounds):
        newton, clock = timed(minimise, objective, start, weights, ladder, frozen=frozen)
        spent("newton", clock, len(start))
        (lean[chunk], counted), clock = timed(minimise_lean, world, chunk, LEAN_OPTIONS)
        spent("lean", clock, len(chunk))
        gaps["lean"].append(lean[chunk] / newton.objective[chunk] - 1)
        evaluations["lean"].append(counted)
        few = chunk[:per_round]
        (f, counted), clock = timed(minimise_lean, world, few, OPTIONS)
        spent("lean_tight", clock, len(few))
        gaps["lean_tight"].append(f / newton.objective[few] - 1)
        evaluations["lean_tight"].append(counted)
        other, clock = timed(minimise_lbfgsb, objective, start[few], weights[few], ladder)
        spent("library", clock, len(few))
        gaps["library"].append(other.objective / newton.objective[few] - 1)
        evaluations["library"].append(other.evaluations)
        draws, clock = timed(refit, world.fitted, world.index, world.counts, world.labels, SETTINGS)
        spent("study", clock, len(start))
    ends = {"newton": newton.objective, "lean": lean, "study": draws.objective}
    best = np.minimum.reduce(list(ends.values()))
    seeds = projected_starts(problem, 5)
    full = np.repeat(problem.weight[None, :], len(seeds), axis=0)
    full_data = [
        engine(objective, seeds, full, ladder).objective.min() for engine in (minimise, minimise_lbfgsb)
    ]
    return {
        "costs": costs,
        "ms_per_fit": {name: spread(1e3 * cpu for cpu, _ in values) for name, values in costs.items()},
        "evaluations": {
            "newton": float(newton.evaluations.mean()),
            **{name: float(np.concatenate(values).mean()) for name, values in evaluations.items()},
        },
        "agree": {name: float((np.abs(np.concatenate(gap)) <= AGREE).mean()) for name, gap in gaps.items()},
        "misses": {
            name: {
                "count": int((f[usable] > best[usable] * (1 + AGREE)).sum()),
                "largest": float((f / best)[usable].max() - 1),
            }
            for name, f in ends.items()
        },
        "compared": len(usable),
        "full_data_gap": float(abs(full_data[1] / full_data[0] - 1)),
        "certified_share": float(draws.certified.mean()),
        "improved_by_extra_start": float(draws.improved.mean()),
    }


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    ratio, archs = values["ratio"], values["archs"]
    head, tight = ratio["lean"]["cpu"], ratio["lean_tight"]["cpu"]
    cost = table(
        ["cost relative to one Newton pass, both architectures", "CPU, median", "CPU, min", "wall, median"],
        [
            [
                CONTESTANTS[name],
                *(f"{x:.2f} ×" for x in (one["cpu"]["median"], one["cpu"]["min"], one["wall"]["median"])),
            ]
            for name, one in ratio.items()
        ],
    )
    rows = []
    for arch, one in archs.items():
        for name, label in CONTESTANTS.items():
            miss = one["misses"].get(name)
            rows.append(
                [
                    arch,
                    label,
                    f"{one['ms_per_fit'][name]['min']:.3f}",
                    f"{one['ms_per_fit'][name]['median']:.3f}",
                    f"{one['evaluations'][name]:.0f}" if name in one["evaluations"] else "",
                    f"{one['agree'][name]:.2%}" if name in one["agree"] else "",
                    f"{miss['count']} of {one['compared']}, by {miss['largest']:.0e}" if miss else "",
                ]
            )
    detail = table(
        [
            "architecture",
            "",
            "CPU ms per fit, min",
            "median",
            "evaluations per fit",
            "ends within 1e-9 of the Newton pass",
            "ends above the lowest of the three",
        ],
        rows,
    )
    full = table(
        [
            "architecture",
            "full data, same starts: Newton and L-BFGS-B differ by",
            "replicates certified",
            "improved by the extra start",
        ],
        [
            [
                arch,
                f"{one['full_data_gap']:.0e}",
                f"{one['certified_share']:.2%}",
                f"{one['improved_by_extra_start']:.2%}",
            ]
            for arch, one in archs.items()
        ],
    )
    return "\n".join(
        [
            f"{values['replicates']} replicates of the simulated example per architecture. Every contestant starts "
            f"once, at the full-data optimum; they take turns in {values['rounds']} rounds, and a ratio is formed "
            "within each round. All replicates go through Newton and lean L-BFGS-B, "
            f"{values['few']} of them through the two slower ones. BLAS runs on one thread.",
            "",
            f"**Newton is {head['median']:.0f} times faster per fit than lean L-BFGS-B** at the loosest tolerances "
            f"that agree, and {tight['median']:.0f} times at the tolerances of the library (CPU time, median of "
            f"rounds; worst rounds {head['min']:.0f} and {tight['min']:.0f}; goal {GOAL:.0f}).",
            "",
            cost,
            "",
            detail,
            "",
            full,
        ]
    )
