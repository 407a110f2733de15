"""What follows from what in the tables of the dense scaling laws: Chinchilla's allocations and Marin's speed-ups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.claims import (
    Claim,
    Values,
    coefficient_inputs,
    perturbed_frontier,
    perturbed_surface,
)
from smelt_scaling.laws import get_law
from smelt_scaling.papers import Paper, parse_number
from smelt_scaling.papers.tables import Table

__all__ = ["allocation_claims", "pinned_fit_claims", "prediction_claims", "speedup_claims"]

Array = NDArray[np.float64]


def allocation_claims(paper: Paper, table: Table) -> Iterator[Claim]:
    """Optimal N, D and loss are those of the coefficients exactly as printed, so no input is rounded."""

    def quantity(_: Values, arch: str, budget: float, name: str) -> Array:
        exact = {key: np.array(parse_number(text)) for key, text in coefficient_inputs(paper, [arch]).items()}
        frontier = perturbed_frontier(paper, exact, arch)
        best = frontier.allocate(budget)
        size = best.flops_per_token / frontier.flops_per_param
        return {"N": size, "D": best.tokens, "tokens_per_param": best.tokens / size, "loss": best.loss}[name]

    for record in table.records():
        for name in ("N", "D", "tokens_per_param", "loss"):
            yield Claim(
                table=table.name,
                row=f"{record['arch']} {record['budget']} {record['status']}",
                quantity=name,
                published=record[name],
                compute=partial(
                    quantity, arch=record["arch"], budget=parse_number(record["budget"]), name=name
                ),
            )


def prediction_claims(paper: Paper, table: Table) -> Iterator[Claim]:
    """Predicted losses follow from one coefficient set each; a floor that was held, not fitted, is exact."""
    held = paper.tables["speedups"].metadata["E"] if "speedups" in paper.tables else None

    def loss(values: Values, arch: str, budget: float, exact: Values) -> Array:
        size = next(iter(values.values())).shape
        known = {name: np.broadcast_to(value, size) for name, value in exact.items()}
        return perturbed_surface(paper, {**values, **known}, arch).loss(C=budget)

    for record in table.records():
        printed = coefficient_inputs(paper, [record["arch"]])
        exact = {name: np.array(parse_number(text)) for name, text in printed.items() if text == held}
        yield Claim(
            table=table.name,
            row=f"{record['arch']} {record['budget']}",
            quantity="loss",
            published=record["loss"],
            inputs={name: text for name, text in printed.items() if name not in exact},
            compute=partial(loss, arch=record["arch"], budget=parse_number(record["budget"]), exact=exact),
        )


def speedup_claims(_: Paper, table: Table) -> Iterator[Claim]:
    """``((L_baseline - E)/(L_variant - E))^(1/alpha)`` with E and alpha part of the definition, hence exact."""
    floor, alpha = (parse_number(table.metadata[name]) for name in ("E", "alpha"))

    def multiplier(values: Values) -> Array:
        ratio = (values["loss_baseline"] - floor) / (values["loss_variant"] - floor)
        return np.asarray(ratio ** (1 / alpha))

    def wall(values: Values, record: Mapping[str, str]) -> Array:
        variant = values.get("throughput_variant", parse_number(record["throughput_variant"]))
        return np.asarray(multiplier(values) * variant / parse_number(record["throughput_baseline"]))

    for record in table.records():
        inputs = {name: record[name] for name in ("loss_baseline", "loss_variant")}
        yield Claim(
            table=table.name,
            row=record["budget"],
            quantity="flop_multiplier",
            published=record["flop_multiplier"],
            inputs=inputs,
            compute=multiplier,
        )
        if record["throughput_baseline"] == "1":  # the ratio is printed, not tokens per second
            inputs = {**inputs, "throughput_variant": record["throughput_variant"]}
        yield Claim(
            table=table.name,
            row=record["budget"],
            quantity="wall_multiplier",
            published=record["wall_multiplier"],
            inputs=inputs,
            compute=partial(wall, record=record),
        )


def pinned_fit_claims(paper: Paper, table: Table) -> Iterator[Claim]:
    """Two coefficient sets are least-squares fits to three printed endpoints, one of them with E held."""
    if "pinned_points" not in paper.tables:
        return
    points, law = paper.tables["pinned_points"], get_law(table.metadata["law"])
    budgets = points.numbers("budget")
    losses = {f"loss at {budget}": loss for budget, loss in points.rows}

    known: dict[str, Array] = {}  # one set of fits serves every coefficient of an architecture

    def fitted(values: Values, arch: str, pins: Mapping[str, float], position: int) -> Array:
        from smelt_scaling.endpoints import Endpoints
        from smelt_scaling.study import fit

        if arch not in known:
            found = []
            for loss in np.stack([values[key] for key in losses], axis=-1):
                runs = Endpoints.from_frame({"C": budgets, "loss": loss})
                study = fit(runs, law, bootstrap=0, delta=np.inf, residual="raw", pins=pins)
                found.append(study[study.archs[0]].surface.coef)
            known[arch] = np.array(found)
        return known[arch][:, position]

    by_arch = {record["arch"]: record for record in table.records()}
    pinned = {"E": parse_number(by_arch["pinned"]["E"])}
    for arch, pins, names in (("pinned", pinned, ("A", "alpha")), ("interpolated", {}, ("E", "A", "alpha"))):
        for name in names:
            yield Claim(
                table=table.name,
                row=arch,
                quantity=name,
                published=by_arch[arch][name],
                inputs=losses,
                compute=partial(fitted, arch=arch, pins=pins, position=law.parameters.index(name)),
            )
