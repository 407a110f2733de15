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
from benchmarks.recorder import one_thread, spread, table, timed
from smelt_scaling.engine.lbfgsb import OPTIONS, SCALE, minimise_lbfgsb
from smelt_scaling.engine.newton import delta_ladder, minimise
from smelt_scaling.engine.problem import Problem
from smelt_scaling.engine.seeds import projected_starts
from smelt_scaling.papers.example import example_endpoints
from smelt_scaling.resampling import refit

TITLE = "Engine: one start each, in one process"
GOAL = 20.0
AGREE = 1e-9
LEAN_OPTIONS = {**OPTIONS, "ftol": 1e-12, "gtol": 1e-4}

Array = NDArray[np.float64]


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


def minimise_lean(world: World, rows: NDArray[np.intp], options: dict[str, Any]) -> tuple[Array, Array]:
    """Minimise the given replicates one by one; return objectives and evaluations."""
    from scipy.optimize import Bounds, minimize

    problem, delta = world.fitted.problem, world.fitted.delta
    bounds = Bounds(problem.lower, np.full(len(problem.held), np.inf))
    f, evaluations = np.empty(len(rows)), np.empty(len(rows))
    for i, weights in enumerate(problem.weight * world.counts[rows][:, world.index]):
        objective = lean_objective(problem, weights, delta)
        found = minimize(
            objective, world.fitted.theta, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        f[i], evaluations[i] = found.fun / SCALE, found.nfev
    return f, evaluations


def measure(replicates: int = 2000, rounds: int = 7, per_round: int = 40) -> dict[str, Any]:
    """Interleave the contestants; costs are per fit, because L-BFGS-B gets through a part of the replicates only."""
    with one_thread():  # as a study does
        found = worlds(example_endpoints(), replicates=replicates)
        by_arch = {arch: _one_architecture(world, rounds, per_round) for arch, world in found.items()}
    names = ("lean", "lean_tight", "library", "extra_starts")
    costs = [list(arch.pop("costs").values()) for arch in by_arch.values()]
    total = {
        name: {
            clock: spread(
                sum(arch[k][i][c] for arch in costs) / sum(arch[0][i][c] for arch in costs)
                for i in range(rounds)
            )
            for c, clock in enumerate(("cpu", "wall"))
        }
        for k, name in enumerate(names, start=1)
    }
    return {
        "replicates": replicates,
        "lbfgsb_replicates": rounds * per_round,
        "rounds": rounds,
        "ratio": total,
        "archs": by_arch,
    }


def _one_architecture(world: World, rounds: int, per_round: int) -> dict[str, Any]:
    problem, objective = world.fitted.problem, world.fitted.objective
    ladder = delta_ladder(world.fitted.delta)
    weights, start, frozen = world.weights, world.start, world.frozen
    usable = np.flatnonzero(~frozen.any(axis=1))  # the lean objective holds nothing
    minimise_lean(world, usable[:2], LEAN_OPTIONS)  # imports and caches are nobody's cost
    costs: dict[str, list[tuple[float, float]]] = {
        name: [] for name in ("newton", "lean", "lean_tight", "library", "refit")
    }
    gaps: dict[str, list[Array]] = {"lean": [], "lean_tight": [], "library": []}
    evaluations: dict[str, list[Array]] = {name: [] for name in gaps}
    for i in range(rounds):
        rows = np.resize(np.roll(usable, -i * per_round), per_round)
        newton, clock = timed(lambda: minimise(objective, start, weights, ladder, frozen=frozen))
        costs["newton"].append((clock.cpu / len(start), clock.wall / len(start)))
        for name, options in (("lean", LEAN_OPTIONS), ("lean_tight", OPTIONS)):
            (f, counted), clock = timed(lambda rows=rows, o=options: minimise_lean(world, rows, o))
            costs[name].append((clock.cpu / per_round, clock.wall / per_round))
            gaps[name].append(f / newton.objective[rows] - 1)
            evaluations[name].append(counted)
        other, clock = timed(
            lambda rows=rows: minimise_lbfgsb(objective, start[rows], weights[rows], ladder)
        )
        costs["library"].append((clock.cpu / per_round, clock.wall / per_round))
        gaps["library"].append(other.objective / newton.objective[rows] - 1)
        evaluations["library"].append(other.evaluations)
        draws, clock = timed(lambda: refit(world.fitted, world.index, world.counts, world.labels, SETTINGS))
        costs["refit"].append((clock.cpu / len(start), clock.wall / len(start)))
    seeds = projected_starts(problem, 5)
    full = np.repeat(problem.weight[None, :], len(seeds), axis=0)
    best = [engine(objective, seeds, full, ladder).objective.min() for engine in (minimise, minimise_lbfgsb)]
    return {
        "costs": costs,
        "ms_per_fit": {name: spread(1e3 * cpu for cpu, _ in values) for name, values in costs.items()},
        "evaluations": {
            "newton": float(newton.evaluations.mean()),
            **{name: float(np.concatenate(values).mean()) for name, values in evaluations.items()},
        },
        "agree": {name: _agreement(np.concatenate(values)) for name, values in gaps.items()},
        "full_data_gap": float(abs(best[1] / best[0] - 1)),
        "certified_share": float(draws.certified.mean()),
        "improved_by_extra_start": float(draws.improved.mean()),
    }


def _agreement(gap: Array) -> dict[str, float]:
    """Shares of replicates by relative difference of the objective; positive gaps are L-BFGS-B's loss."""
    return {
        "within": float((np.abs(gap) <= AGREE).mean()),
        "newton_lower": float((gap > AGREE).mean()),
        "newton_higher": float((gap < -AGREE).mean()),
        "largest": float(np.abs(gap).max()),
    }


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    ratio = values["ratio"]
    head = ratio["lean"]["cpu"]
    text = [
        f"{values['replicates']} replicates of the simulated example per architecture; L-BFGS-B works through "
        f"{values['lbfgsb_replicates']} of them. Every contestant starts once, at the full-data optimum; contestants take "
        f"turns in {values['rounds']} rounds, and a ratio is formed within each round. BLAS runs on one thread.",
        "",
        f"**Newton is {head['median']:.0f} times faster per fit than lean L-BFGS-B** (CPU time, median of rounds; worst round "
        f"{head['min']:.0f}; goal {GOAL:.0f}).",
        "",
    ]
    labels = {
        "lean": "L-BFGS-B, lean NumPy objective, loosest tolerances that agree (headline)",
        "lean_tight": "L-BFGS-B, lean NumPy objective, tolerances of the library",
        "library": "L-BFGS-B, `--engine lbfgsb`",
        "extra_starts": "Newton with the extra start and the certificate (what a study runs)",
    }
    text.append(
        table(
            ["cost relative to one Newton pass, both architectures", "CPU, median", "CPU, min", "wall, median"],
            [
                [
                    label,
                    *(f"{x:.2f} ×" for x in (ratio[k]["cpu"]["median"], ratio[k]["cpu"]["min"], ratio[k]["wall"]["median"])),
                ]
                for k, label in labels.items()
            ],
        )
    )
    rows = []
    for arch, one in values["archs"].items():
        for name in ("newton", "refit", "lean", "lean_tight", "library"):
            agree = one["agree"].get(name)
            rows.append(
                [
                    arch,
                    {"refit": "newton, extra start, certificate"}.get(name, name.replace("_", ", ")),
                    f"{one['ms_per_fit'][name]['min']:.3f}",
                    f"{one['ms_per_fit'][name]['median']:.3f}",
                    f"{one['evaluations'][name]:.0f}" if name in one["evaluations"] else "",
                    f"{agree['within']:.1%}" if agree else "",
                    f"{agree['newton_lower']:.1%} / {agree['newton_higher']:.1%}" if agree else "",
                ]
            )
    text += [
        "",
        table(
            [
                "architecture",
                "contestant",
                "CPU ms per fit, min",
                "median",
                "evaluations per fit",
                "same objective as Newton to 1e-9",
                "Newton lower / higher",
            ],
            rows,
        ),
        "",
        table(
            ["architecture", "full data: Newton and L-BFGS-B differ by", "replicates certified", "improved by extra start"],
            [
                [
                    arch,
                    f"{one['full_data_gap']:.1e}",
                    f"{one['certified_share']:.2%}",
                    f"{one['improved_by_extra_start']:.2%}",
                ]
                for arch, one in values["archs"].items()
            ],
        ),
    ]
    return "\n".join(text)
