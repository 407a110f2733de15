"""What follows from what in the SMELT paper's tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.analyses.claims import Claim, Values, coefficient_inputs, perturbed_frontier
from smelt_scaling.frontier import log_multiplier
from smelt_scaling.papers import Paper, parse_number
from smelt_scaling.papers.tables import Table

__all__ = [
    "configuration_claims",
    "gain_claims",
    "gamma_claims",
    "matching_claims",
    "recipe_claims",
    "tpp_claims",
]

Array = NDArray[np.float64]
Record = Mapping[str, str]


def gain_claims(paper: Paper, table: Table) -> Iterator[Claim]:
    """Gains follow from both surfaces at the sparsity stated with the table."""
    pair = (table.metadata["target"], table.metadata["reference"])
    at = table.sparsities()

    def gain(values: Values, log_budget: float, sparsity: float) -> Array:
        target, reference = (perturbed_frontier(paper, values, arch) for arch in pair)
        return np.asarray(-np.expm1(-log_multiplier(target, reference, log_budget, sparsity)))

    for record in table.records():
        log_budget = float(np.log(parse_number(record["budget"])))
        yield Claim(
            table=table.name,
            row=f"{record['budget']} {record['tier']}",
            quantity="gain",
            published=record["gain"],
            inputs=coefficient_inputs(paper, pair),
            compute=partial(gain, log_budget=log_budget, sparsity=at[record["tier"]]),
        )


def gamma_claims(paper: Paper, table: Table) -> Iterator[Claim]:
    """Frontier exponents, and the gap between them, follow from a and c."""

    def gamma(values: Values, arch: str) -> Array:
        return perturbed_frontier(paper, values, arch).exponent

    for record in table.records():
        yield Claim(
            table=table.name,
            row=record["arch"],
            quantity="gamma",
            published=record["gamma"],
            inputs=coefficient_inputs(paper, [record["arch"]]),
            compute=partial(gamma, arch=record["arch"]),
        )
    reference, target = table.column("arch")
    yield Claim(
        table=table.name,
        row=f"{target} over {reference}",
        quantity="relative_gap",
        published=table.metadata["relative_gap"],
        inputs=coefficient_inputs(paper, (reference, target)),
        compute=lambda values: gamma(values, target) / gamma(values, reference) - 1,
    )


def tpp_claims(paper: Paper, table: Table) -> Iterator[Claim]:
    """Tokens per dense parameter, 6 D*/F*, follow from one surface each; the paper bounds their difference."""
    at, flops_per_param = table.sparsities(), parse_number(table.metadata["flops_per_param"])

    def ratio(values: Values, record: Record) -> Array:
        frontier = perturbed_frontier(paper, values, record["arch"])
        best = frontier.allocate(parse_number(record["budget"]), at[record["tier"]])
        return best.tokens * flops_per_param / best.flops_per_token

    def largest(values: Values) -> Array:
        pairs: dict[tuple[str, str], list[Array]] = {}
        for record in table.records():
            pairs.setdefault((record["budget"], record["tier"]), []).append(ratio(values, record))
        return np.asarray(np.max([np.abs(second / first - 1) for first, second in pairs.values()], axis=0))

    for record in table.records():
        yield Claim(
            table=table.name,
            row=f"{record['budget']} {record['tier']} {record['arch']}",
            quantity="tpp",
            published=record["tpp"],
            inputs=coefficient_inputs(paper, [record["arch"]]),
            compute=partial(ratio, record=record),
        )
    yield Claim(
        table=table.name,
        row="all",
        quantity="largest_difference",
        published=table.metadata["largest_difference"],
        inputs=coefficient_inputs(paper, dict.fromkeys(table.column("arch"))),
        compute=largest,
        bound=True,
    )


def matching_claims(paper: Paper, table: Table) -> Iterator[Claim]:
    """Largest deviations follow from the printed ratios and totals of the sparse configurations."""
    sparse = [record for record in paper.tables["configurations"].records() if record["tier"] != "0%"]
    cells = {(record["arch"], record["scale"], record["tier"]): record for record in sparse}
    pairs = [(cells["baseline", *key[1:]], row) for key, row in cells.items() if key[0] == "smelt"]

    def largest(values: Values) -> Array:
        ratios = [values[f"smelt {i}"] / values.get(f"baseline {i}", 1.0) for i in range(len(pairs))]
        return np.asarray(np.max([np.abs(ratio - 1) for ratio in ratios], axis=0))

    for record in table.records():
        budget = record["budget"]
        column = {"flops_per_token": "flops_ratio", "kv_cache": "kv_ratio"}.get(budget, budget)
        inputs = {f"smelt {i}": smelt[column] for i, (_, smelt) in enumerate(pairs)}
        if column == budget:  # printed for each architecture, not as a ratio
            inputs |= {f"baseline {i}": baseline[column] for i, (baseline, _) in enumerate(pairs)}
        yield Claim(
            table=table.name,
            row=budget,
            quantity="largest_deviation",
            published=record["largest_deviation"],
            inputs=inputs,
            compute=largest,
        )
    number = r"([\d.e]+)"
    example = re.finditer(rf"([A-Za-z ]+) {number} and {number} \(\+([\d.]+) %\)", table.metadata["example"])
    for what, first, second, printed in (match.groups() for match in example):
        yield Claim(
            table=table.name,
            row=f"example, {what.strip()}",
            quantity="deviation",
            published=f"{printed}%",
            inputs={"first": first, "second": second},
            compute=lambda values: values["second"] / values["first"] - 1,
        )


def configuration_claims(_: Paper, table: Table) -> Iterator[Claim]:
    """Compute-equivalent sparsity is 1 - active/total parameters where nothing loops: the baseline."""
    for record in table.select(arch="baseline").records():
        yield Claim(
            table=table.name,
            row=f"{record['arch']} {record['scale']} {record['tier']}",
            quantity="S",
            published=record["S"],
            inputs={"active": record["active_params"], "total": record["total_params"]},
            compute=lambda values: 1 - values["active"] / values["total"],
        )


def recipe_claims(paper: Paper, table: Table) -> Iterator[Claim]:
    """Totals, counts and the fitted window follow from steps, configurations and horizons."""
    stated = {record["quantity"]: record["value"] for record in table.records()}
    configurations = paper.tables["configurations"]
    sparse = np.array([tier != "0%" for tier in configurations.column("tier")])
    per_step = parse_number(stated["sequences_per_step"]) * parse_number(stated["context_length"])
    stable = table.select(quantity="branch_start").numbers("value") * per_step
    # F comes from printed dimensions and ratios, not from the window
    flops = configurations.numbers("F_inferred")[sparse]
    archs, horizons = len(set(configurations.column("arch"))), len(stable)
    runs, fitted = len(configurations), int(sparse.sum())
    exact = {
        "stable_tokens": parse_number(stated["stable_steps"]) * per_step,
        "training_runs": runs,
        "cells": runs / archs,
        "fitted_cells": fitted / archs,
        "pairs": runs / archs * horizons,
        "endpoints": runs * horizons,
        "fitted_endpoints": fitted * horizons,
        "fitted_endpoints_per_arch": fitted / archs * horizons,
        "validation_sources": float(paper.tables["quartiles"].numbers("sources").sum()),
    }
    with_branch = {  # factor, tokens before the branch
        "longest_branch_tokens": (1.0, float(stable.max())),
        "window_low": (float(flops.min()), float(stable.min())),
        "window_high": (float(flops.max()), float(stable.max())),
    }

    def constant(_: Values, value: float) -> Array:
        return np.array([value])

    def after_branch(values: Values, factor: float, tokens: float) -> Array:
        return factor * (tokens + values["branch_tokens"])

    for name, value in exact.items():
        yield Claim(
            table=table.name,
            row=name,
            quantity="value",
            published=stated[name],
            compute=partial(constant, value=value),
            truncated=name.endswith("_tokens"),
        )
    for name, (factor, tokens) in with_branch.items():
        yield Claim(
            table=table.name,
            row=name,
            quantity="value",
            published=stated[name],
            inputs={"branch_tokens": stated["branch_tokens"]},
            compute=partial(after_branch, factor=factor, tokens=tokens),
            truncated=name.endswith("_tokens"),
        )
