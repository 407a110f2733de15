"""The trap: SciPy's L-BFGS-B with default tolerances on the objective as it is usually written.

Raw coordinates (ln E, ln A, ln K, exponents), exact gradient, the sum or the mean of the Huber losses, ``ftol`` and
``gtol`` left alone. Since the objective is about 1e-4 and ``ftol`` is relative to max(|f|, 1), the search stops early
and reports success. Bootstrap replicates, started at the full-data optimum as warm starts are, stop next to it, so
that intervals shrink. Both sides of every comparison refit the same resamples.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.example import SETTINGS, World, worlds
from benchmarks.recorder import CHECKOUT, one_thread, spread, table
from smelt_scaling.endpoints import Endpoints, default_sparsities
from smelt_scaling.frontier import Frontier, log_multiplier
from smelt_scaling.laws import Surface
from smelt_scaling.papers.example import example_endpoints
from smelt_scaling.resampling import refit
from smelt_scaling.resampling.intervals import percentile_interval

TITLE = "Counter-example: default tolerances"
BUDGET = 1e21
REDUCTIONS = ("sum", "mean")

#: Published estimates of the Chinchilla law at full precision: ln E, ln A, ln B, alpha, beta.
HOFFMANN_START = np.array([0.5267228, 6.0073404, 6.0179186, 0.33917084, 0.2849083])

#: The usual grid of starts, by kind of parameter (the one of Hoffmann et al. 2022, appendix D.3).
GRID = {
    "floor": [-1.0, -0.5, 0.0, 0.5, 1.0],
    "amplitude": [0.0, 5.0, 10.0, 15.0, 20.0, 25.0],
    "decay": [0.0, 0.5, 1.0, 1.5, 2.0],
    "other": [0.0, 0.5, 1.0],
}

Array = NDArray[np.float64]


class RawFit:
    """The objective as scripts write it, in raw coordinates, minimised with SciPy's defaults."""

    def __init__(self, world: World, loss: Array, reduction: str) -> None:
        problem = world.fitted.problem
        self.law, self.delta, self.reduction = problem.law, world.fitted.delta, reduction
        self.observed, self.weight = np.log(loss), problem.weight
        names = self.law.parameters
        terms = self.law.log_terms(world.fitted.columns)
        self.design = np.zeros((len(terms), len(loss), len(names)))
        for k, term in enumerate(terms):
            self.design[k][:, names.index(term.amplitude)] = 1.0
            for name, slope in term.slopes.items():
                self.design[k][:, names.index(name)] = slope

    def value(self, x: Array, weights: Array) -> tuple[float, Array]:
        """Return the Huber loss and its gradient; x is (ln E, ln amplitudes, exponents)."""
        w = weights / (weights.sum() if self.reduction == "mean" else 1.0)
        with np.errstate(over="ignore", invalid="ignore"):  # some of the usual starts overflow
            terms = np.exp(self.design @ x)
            floor = np.exp(x[0])
            m = floor + terms.sum(axis=0)
            r = np.log(m) - self.observed
            psi = np.clip(r, -self.delta, self.delta)
            slope = w * psi / m
            gradient = np.einsum("kn,knp->p", terms * slope, self.design)
        gradient[0] += floor * slope.sum()
        return float(np.sum(w * psi * (r - 0.5 * psi))), gradient

    def minimise(self, start: Array, weights: Array) -> tuple[Array, float, bool]:
        """Return x, the summed objective whatever is minimised, and what SciPy calls success."""
        from scipy.optimize import minimize

        found = minimize(self.value, start, args=(weights,), jac=True, method="L-BFGS-B")
        scale = weights.sum() if self.reduction == "mean" else 1.0
        return found.x, float(found.fun * scale), bool(found.success)

    def best_of(self, starts: int) -> tuple[Array, float, list[tuple[Array, float, bool]]]:
        """Return the best x and objective over random starts, and where every start ended."""
        ends = [self.minimise(x, self.weight) for x in self.random_starts(starts)]
        x, f, _ = min(ends, key=lambda end: end[1])
        return x, f, ends

    def surface(self, x: Array) -> Surface:
        """Turn raw coordinates (..., P) into a surface."""
        size = 1 + len(self.design)
        return Surface(law=self.law, coef=np.concatenate([np.exp(x[..., :size]), x[..., size:]], axis=-1))

    def raw(self, surface: Surface) -> Array:
        """Turn a surface into raw coordinates (..., P)."""
        size = 1 + len(self.design)
        return np.concatenate([np.log(surface.coef[..., :size]), surface.coef[..., size:]], axis=-1)

    def random_starts(self, count: int) -> Array:
        """Draw starts from the usual grid, the same ones every time."""
        law, rng = self.law, np.random.default_rng(0)
        kinds = ["floor", *("amplitude" for _ in law.amplitudes)]
        kinds += ["decay" if name in law.decays else "other" for name in law.exponents]
        return np.column_stack([rng.choice(GRID[kind], size=count) for kind in kinds])


def epoch_endpoints() -> Endpoints | None:
    """Return the 240 points of Epoch AI's reconstruction of the Chinchilla data, or None where they are not."""
    import pandas as pd

    folder = Path(os.environ.get("SMELT_TEST_DATA", CHECKOUT.parent / "shared" / "data"))
    found = sorted(folder.rglob("chinchilla_epoch.csv"))
    if not found:
        return None
    frame = pd.read_csv(found[0])
    frame = frame[frame["epoch_keep"].astype(bool)][["N", "D", "loss"]].assign(arch="chinchilla")
    return Endpoints.from_frame(frame.assign(run=[f"run{i:03d}" for i in range(len(frame))]))


def measure(replicates: int = 2000, starts: int = 64, seeds: int = 20) -> dict[str, Any]:
    """Compare on the example, and on real data where it is present."""
    with one_thread():
        values: dict[str, Any] = {"replicates": replicates, "starts": starts, "budget": BUDGET}
        values["example"] = _example(replicates, starts)
        values["worlds"] = _worlds(seeds, starts)
        epoch = epoch_endpoints()
        values["epoch"] = None if epoch is None else _epoch(epoch, replicates)
    return values


def _example(replicates: int, starts: int) -> dict[str, Any]:
    endpoints = example_endpoints()
    sparsities = default_sparsities(endpoints)
    found = worlds(endpoints, replicates=replicates)
    losses = {arch: rows.loss for arch, rows in endpoints.by_arch().items()}
    exact = {arch: world.fitted.result.surface for arch, world in found.items()}
    exact_draws = {
        arch: refit(w.fitted, w.index, w.counts, w.labels, SETTINGS).surface for arch, w in found.items()
    }
    result: dict[str, Any] = {
        "sparsities": [float(s) for s in sparsities],
        "exact": _describe(exact, exact_draws, sparsities),
    }
    for reduction in REDUCTIONS:
        fits = {arch: RawFit(world, losses[arch], reduction) for arch, world in found.items()}
        point, one = {}, {}
        for arch, fit in fits.items():
            best = found[arch].fitted.result.objective
            x, f, ends = fit.best_of(starts)
            point[arch] = fit.surface(x)
            objectives = np.array([end[1] for end in ends])
            one[arch] = {
                "excess": f / best - 1,
                "within_1_percent": float((objectives <= 1.01 * best).mean()),
                "success": float(np.mean([end[2] for end in ends])),
            }
        draws = {arch: _raw_draws(fits[arch], found[arch]) for arch in found}
        result[reduction] = {
            "point": one,
            "draws_success": {arch: share for arch, (_, share) in draws.items()},
            **_describe(point, {arch: surface for arch, (surface, _) in draws.items()}, sparsities),
        }
    return result


def _worlds(seeds: int, starts: int) -> dict[str, list[float]]:
    """Return by how much the gain at `BUDGET` is off, at its worst sparsity, in examples of other noise."""
    off: dict[str, list[float]] = {reduction: [] for reduction in REDUCTIONS}
    for seed in range(seeds):
        endpoints = example_endpoints(seed)
        found = worlds(endpoints, replicates=1)
        sparsities = default_sparsities(endpoints)
        exact = _log_gain({arch: world.fitted.result.surface for arch, world in found.items()}, sparsities)
        losses = {arch: rows.loss for arch, rows in endpoints.by_arch().items()}
        for reduction in REDUCTIONS:
            fits = {arch: RawFit(world, losses[arch], reduction) for arch, world in found.items()}
            best = {arch: fit.surface(fit.best_of(starts)[0]) for arch, fit in fits.items()}
            off[reduction].append(float(np.abs(np.exp(-_log_gain(best, sparsities)) - np.exp(-exact)).max()))
    return off


def _raw_draws(fit: RawFit, world: World) -> tuple[Surface, float]:
    """Refit every replicate from the exact full-data optimum; return the surfaces and the share of successes."""
    start = fit.raw(world.fitted.result.surface)
    ends = [fit.minimise(start, weights) for weights in world.weights]
    return fit.surface(np.stack([end[0] for end in ends])), float(np.mean([end[2] for end in ends]))


def _describe(point: dict[str, Surface], draws: dict[str, Surface], sparsities: Array) -> dict[str, Any]:
    """Return frontier exponents and gains at `BUDGET` with the widths of their 95 % intervals."""
    m, m_draws = _log_gain(point, sparsities), _log_gain(draws, sparsities)
    gamma = {arch: _gamma(surface) for arch, surface in draws.items()}
    return {
        "gamma": {arch: float(_gamma(surface)) for arch, surface in point.items()},
        "gamma_interval": {arch: _interval(values) for arch, values in gamma.items()},
        "gain": [float(-np.expm1(-x)) for x in m],
        "gain_interval": [_interval(-np.expm1(-m_draws[:, j])) for j in range(len(sparsities))],
    }


def _log_gain(surfaces: dict[str, Surface], sparsities: Array) -> Array:
    """Return ln(C_ref/C) at `BUDGET`, shape draws + (sparsities,)."""
    pair = Frontier(surfaces["smelt"]), Frontier(surfaces["baseline"])
    log_budget = np.log(np.array([BUDGET]))
    with np.errstate(all="ignore"):
        return np.stack([log_multiplier(*pair, log_budget, float(s))[..., 0] for s in sparsities], axis=-1)


def _epoch(endpoints: Endpoints, replicates: int) -> dict[str, Any]:
    found = worlds(endpoints, "chinchilla", replicates=replicates, resample="run")
    ((arch, world),) = found.items()
    best = world.fitted.result.objective
    draws = refit(world.fitted, world.index, world.counts, world.labels, SETTINGS).surface
    result: dict[str, Any] = {
        "points": len(endpoints),
        "exact": {
            "objective": best,
            "coefficients": world.fitted.result.surface.coefficients,
            "gamma_interval": _interval(_gamma(draws)),
        },
    }
    for reduction in REDUCTIONS:
        fit = RawFit(world, endpoints.loss, reduction)
        x, f, success = fit.minimise(HOFFMANN_START, fit.weight)
        raw, share = _raw_draws(fit, world)
        result[reduction] = {
            "objective": f,
            "excess": f / best - 1,
            "success": success,
            "coefficients": fit.surface(x).coefficients,
            "gamma_interval": _interval(_gamma(raw)),
            "draws_success": share,
        }
    return result


def _gamma(surface: Surface) -> Array:
    """Frontier exponent ac/(a + c), or alpha beta/(alpha + beta)."""
    names = ("a", "c") if "a" in surface.law.parameters else ("alpha", "beta")
    a, c = (surface[name] for name in names)
    return np.asarray(a * c / (a + c))


def _interval(values: Array) -> list[float] | None:
    found = percentile_interval(values, 0.95)
    return None if found is None else [float(found[0]), float(found[1])]


def too_narrow(exact: list[float], other: list[float]) -> float:
    """Return how many times narrower the other interval is."""
    return (exact[1] - exact[0]) / (other[1] - other[0])


def _other_worlds(off: dict[str, list[float]]) -> str:
    """Say how far point gains are off when the example's noise is drawn anew."""
    parts = [
        f"{spread(points)['median']:.1f} at the median and {spread(points)['max']:.1f} at most for the {reduction}"
        for reduction, points in ((r, [100 * x for x in values]) for r, values in off.items())
    ]
    count = len(next(iter(off.values())))
    return f"Over the {count} first seeds of the example the point is off by (points): {', '.join(parts)}."


def page(values: dict[str, Any]) -> str:
    """Return the section."""
    example, epoch = values["example"], values["epoch"]
    exact = example["exact"]
    text = [
        "L-BFGS-B as SciPy ships it (raw coordinates, exact gradient, default `ftol` and `gtol`) against the certified "
        f"optimum. Point fits keep the best of {values['starts']} starts from the usual grid. Each of "
        f"{values['replicates']} replicates starts at the exact full-data optimum, and both sides refit the same "
        "resamples. Intervals are 95 % percentile.",
        "",
        "Simulated example, point fits:",
        "",
    ]
    rows = []
    for reduction in REDUCTIONS:
        for arch, one in example[reduction]["point"].items():
            rows.append(
                [
                    f"{reduction}, defaults",
                    arch,
                    f"{one['success']:.0%}",
                    f"{one['within_1_percent']:.0%}",
                    f"{100 * one['excess']:.0f} %",
                ]
            )
    text += [
        table(
            [
                "objective",
                "architecture",
                "starts with `success=True`",
                "starts within 1 % of the optimum",
                "best start ends above the optimum by",
            ],
            rows,
        ),
        "",
        f"Gain at {values['budget']:.0e} FLOPs, %. {_other_worlds(values['worlds'])}",
        "",
    ]
    rows = []
    for kind in ("exact", *REDUCTIONS):
        one = example[kind]
        cells = [kind if kind == "exact" else f"{kind}, defaults"]
        for j, gain in enumerate(one["gain"]):
            lo, hi = one["gain_interval"][j]
            cells.append(f"{100 * gain:.1f} [{100 * lo:.1f}, {100 * hi:.1f}]")
        if kind == "exact":
            cells += ["", ""]
        else:
            error = max((abs(a - b) for a, b in zip(one["gain"], exact["gain"], strict=True)))
            narrow = [
                too_narrow(a, b) for a, b in zip(exact["gain_interval"], one["gain_interval"], strict=True)
            ]
            cells += [f"{100 * error:.1f}", f"{min(narrow):.1f} to {max(narrow):.1f} ×"]
        rows.append(cells)
    text += [
        table(
            [
                "objective",
                *(f"S = {s:.3f}" for s in example["sparsities"]),
                "point off by, points",
                "interval too narrow by",
            ],
            rows,
        ),
        "",
        "Frontier exponent γ:",
        "",
    ]
    rows = []
    for arch, interval in exact["gamma_interval"].items():
        for kind in ("exact", *REDUCTIONS):
            own = example[kind]["gamma_interval"][arch]
            rows.append(
                [
                    arch,
                    kind if kind == "exact" else f"{kind}, defaults",
                    f"{own[0]:.4f} to {own[1]:.4f}",
                    "" if kind == "exact" else f"{too_narrow(interval, own):.1f} ×",
                    "" if kind == "exact" else f"{example[kind]['draws_success'][arch]:.1%}",
                ]
            )
    text.append(
        table(
            ["architecture", "objective", "95 % interval", "too narrow by", "replicates with `success=True`"],
            rows,
        )
    )
    if epoch is None:
        return "\n".join([*text, "", "The real data was absent where this was recorded."])
    rows = []
    for kind in ("exact", *REDUCTIONS):
        one = epoch[kind]
        lo, hi = one["gamma_interval"]
        defaults = kind != "exact"
        rows.append(
            [
                f"{kind}, defaults" if defaults else kind,
                f"{one['objective']:.6e}",
                f"{100 * one['excess']:.1f} %" if defaults else "",
                str(one["success"]) if defaults else "",
                ", ".join(f"{name} {value:.4g}" for name, value in one["coefficients"].items()),
                f"{lo:.4f} to {hi:.4f}",
                f"{too_narrow(epoch['exact']['gamma_interval'], [lo, hi]):.1f} ×" if defaults else "",
            ]
        )
    text += [
        "",
        f"Real data: {epoch['points']} points of the Chinchilla runs as reconstructed by Epoch AI, started at the "
        "published estimates:",
        "",
        table(
            [
                "objective",
                "ends at (sum)",
                "above the optimum",
                "`success`",
                "coefficients",
                "γ, 95 % interval",
                "too narrow by",
            ],
            rows,
        ),
    ]
    return "\n".join(text)
