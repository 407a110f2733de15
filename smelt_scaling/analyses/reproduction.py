"""Recomputing published numbers from other published numbers, judged by the digits in which both are printed.

A claim is one printed number, the printed numbers it follows from, and the function between them. Nothing here has
a tolerance of its own: what may differ is what the printing leaves open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import Note
from smelt_scaling.frontier import Frontier, log_multiplier
from smelt_scaling.laws import Surface, get_law
from smelt_scaling.papers import Paper, parse_number, rounding
from smelt_scaling.papers.tables import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["reproduce"]

Array = NDArray[np.float64]
Values = Mapping[str, Array]

COLUMNS = (
    "table",
    "section",
    "row",
    "quantity",
    "published",
    "recomputed",
    "difference",
    "allowed",
    "agrees",
)

#: Columns of each table that hold results; the others name the row or are inputs, as are tables not named here.
RESULTS: Mapping[str, tuple[str, ...]] = {
    "ablation_depth": ("loss",),
    "ablation_loops": ("loss", "dclm_core"),
    "ablation_span": ("loss_85", "loss_95"),
    "allocations": ("N", "D", "tokens_per_param", "loss"),
    "ce_gain": ("gain", "lo", "hi"),
    "coefficients": ("E", "A", "K", "B", "a", "b", "c", "alpha", "beta", "rmse"),
    "domains": ("gain",),
    "gamma": ("gamma",),
    "lengths": ("ratio",),
    "matching": ("largest_deviation",),
    "predictions": ("loss",),
    "probes": ("low", "high", "mean"),
    "quartiles": ("gain",),
    "shots": ("baseline", "smelt", "gap_points"),
    "speedups": ("flop_multiplier", "wall_multiplier"),
    "tpp": ("tpp",),
    "wins": ("wins", "calibration_r2"),
}

#: Columns that are neither results nor needed to tell rows apart.
ASIDE = frozenset({"extrapolated", "form", "status", "better", "sources", "pairs"})


@dataclass(frozen=True, kw_only=True, eq=False)
class _Claim:
    """A printed number that follows from others.

    Parameters
    ----------
    table, row, quantity, published : str
        Where it stands, and its text.
    inputs : mapping of str to str
        The rounded numbers it follows from, as printed.
    compute : callable
        Values of the inputs, one array of equal length each -> the quantity, same length.
    truncated : bool
        The source cuts digits off instead of rounding, so a whole unit of the last digit is open.
    bound : bool
        The source says "at most".
    """

    table: str
    row: str
    quantity: str
    published: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    compute: Callable[[Values], Array]
    truncated: bool = False
    bound: bool = False

    def judge(self) -> dict[str, Any]:
        """Return recomputed, difference, allowed and agrees."""
        size = 1 + 2 * len(self.inputs)
        values = {name: np.full(size, parse_number(text)) for name, text in self.inputs.items()}
        for i, (name, text) in enumerate(self.inputs.items()):
            half = rounding(text)
            values[name][1 + 2 * i] += half
            values[name][2 + 2 * i] -= half
        found = np.broadcast_to(np.asarray(self.compute(values), dtype=np.float64), (size,))
        moved = np.abs(found[1:] - found[0]).reshape(-1, 2).max(axis=1)
        allowed = float(rounding(self.published) * (2 if self.truncated else 1) + moved.sum())
        difference = float(found[0] - parse_number(self.published))
        # the sum of a difference and a rounding may itself end a rounding error off
        slack = 1e-12 * abs(float(found[0]))
        excess = difference if self.bound else abs(difference)
        return {
            "recomputed": float(found[0]),
            "difference": difference,
            "allowed": allowed,
            "agrees": bool(excess <= allowed + slack),
        }


def reproduce(paper: Paper) -> pd.DataFrame:
    """Recompute what a paper printed from its other printed numbers, and compare.

    A recomputed number agrees when it differs from the printed one by no more than printing explains: ``allowed`` is half
    a unit of the last printed digit, plus the rounding of the printed numbers it is computed from. The second part is
    computed, not chosen: every rounded input is moved up and down by half a unit of its own last digit, the quantity is
    evaluated again, and the larger changes of all inputs are added up. Budgets, counts and the sparsity at which a table
    is evaluated are taken as exact. Where a source cuts digits off (token totals of the recipe) the printed number leaves
    a whole unit open; where it says "at most", only an excess disagrees.

    Parameters
    ----------
    paper : Paper
        A published set.

    Returns
    -------
    DataFrame
        One row per printed result: ``table, section, row, quantity, published`` (text as printed), ``recomputed,
        difference, allowed`` (floats in base units; percentages are fractions) and ``agrees``. Results that do not follow
        from other printed numbers, such as intervals and fitted coefficients, have None there. ``.attrs`` holds
        ``notes`` (one ``not_recomputed`` per table, with its count) and ``settings``.

    Examples
    --------
    >>> from smelt_scaling.papers import load_paper
    >>> table = reproduce(load_paper("smelt"))
    >>> row = table[(table["table"] == "ce_gain") & (table["quantity"] == "gain")].iloc[3]
    >>> row["row"], row["published"], round(row["recomputed"], 5), row["agrees"]
    ('1e21 85%', '18.0%', 0.17996, True)
    >>> bool((table["agrees"] == False).any())
    False
    """
    import pandas as pd

    claims = {(claim.table, claim.row, claim.quantity): claim for claim in _claims(paper)}
    rows: list[dict[str, Any]] = []
    notes: list[Note] = []
    for name, table in paper.tables.items():
        listed = _printed(table)
        # what a table states beside its grid, and recipe and configuration cells, have claims only
        listed |= {(c.row, c.quantity): c.published for c in claims.values() if c.table == name}
        open_ = 0
        for (row, quantity), published in listed.items():
            claim = claims.get((name, row, quantity))
            verdict = dict.fromkeys(COLUMNS[-4:]) if claim is None else claim.judge()
            open_ += claim is None
            place = {"table": name, "section": table.section, "row": row, "quantity": quantity}
            rows.append({**place, "published": published, **verdict})
        if open_:
            message = f"{name}: {open_} of {len(listed)} printed results do not follow from other printed numbers"
            notes.append(Note(code="not_recomputed", severity="info", message=message, count=open_))
    frame = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    frame.attrs = {
        "notes": tuple(notes),
        "settings": {"paper": paper.name, "title": paper.title, "source": paper.source},
    }
    return frame


def _printed(table: Table) -> dict[tuple[str, str], str]:
    """Return (row, quantity) -> text of a table's printed results."""
    results = RESULTS.get(table.name, ())
    return {
        (_label(table, record), quantity): record[quantity]
        for record in table.records()
        for quantity in results
        if record.get(quantity)
    }


def _label(table: Table, record: Mapping[str, str]) -> str:
    """Name a row by its cells that are neither results nor aside."""
    results = {*RESULTS.get(table.name, ()), *ASIDE}
    named = [record[column] for column in table.columns if column not in results and record[column]]
    # a repeated row is told apart by where it comes from
    same = [other for other in table.records() if [other[c] for c in table.columns if c not in results] == named]
    return " ".join([*named, *([record["status"]] if len(same) > 1 and "status" in record else [])])


def _claims(paper: Paper) -> Iterator[_Claim]:
    for name, make in _MAKERS.items():
        if name in paper.tables:
            yield from make(paper, paper.tables[name])


# -- coefficients as inputs ----------------------------------------------------------------------------------------


def _coefficients(paper: Paper, *archs: str) -> dict[str, str]:
    """Return "arch.parameter" -> printed coefficient."""
    table = paper.tables["coefficients"]
    names = get_law(table.metadata["law"]).parameters
    by_arch = {record["arch"]: record for record in table.records()}
    return {f"{arch}.{name}": by_arch[arch][name] for arch in archs for name in names}


def _frontier(paper: Paper, values: Values, arch: str) -> Frontier:
    return Frontier(_surface(paper, values, arch))


def _surface(paper: Paper, values: Values, arch: str) -> Surface:
    """Return one surface whose draws are the perturbed coefficients."""
    table = paper.tables["coefficients"]
    law = get_law(table.metadata["law"])
    form = {record["arch"]: record.get("form") for record in table.records()}[arch]
    logged = {law.floor, *law.amplitudes} if form == "log" else set()
    columns = [
        np.exp(values[f"{arch}.{name}"]) if name in logged else values[f"{arch}.{name}"]
        for name in law.parameters
    ]
    return Surface(law=law, coef=np.stack(columns, axis=-1))


# -- the claims of each table --------------------------------------------------------------------------------------


def _gains(paper: Paper, table: Table) -> Iterator[_Claim]:
    target, reference, at = table.metadata["target"], table.metadata["reference"], table.sparsities()
    for record in table.records():
        log_budget, sparsity = np.log(parse_number(record["budget"])), at[record["tier"]]

        def gain(values: Values, log_budget: float = log_budget, sparsity: float = sparsity) -> Array:
            pair = (_frontier(paper, values, target), _frontier(paper, values, reference))
            return np.asarray(-np.expm1(-log_multiplier(*pair, log_budget, sparsity)))

        yield _Claim(
            table=table.name,
            row=_label(table, record),
            quantity="gain",
            published=record["gain"],
            inputs=_coefficients(paper, target, reference),
            compute=gain,
        )


def _gammas(paper: Paper, table: Table) -> Iterator[_Claim]:
    archs = table.column("arch")
    for record in table.records():
        arch = record["arch"]
        yield _Claim(
            table=table.name,
            row=arch,
            quantity="gamma",
            published=record["gamma"],
            inputs=_coefficients(paper, arch),
            compute=lambda values, arch=arch: _frontier(paper, values, arch).exponent,
        )
    reference, target = archs
    yield _Claim(
        table=table.name,
        row=f"{target} over {reference}",
        quantity="relative_gap",
        published=table.metadata["relative_gap"],
        inputs=_coefficients(paper, *archs),
        compute=lambda values: (
            _frontier(paper, values, target).exponent / _frontier(paper, values, reference).exponent - 1
        ),
    )


def _tokens_per_param(paper: Paper, table: Table) -> Iterator[_Claim]:
    at, flops_per_param = table.sparsities(), parse_number(table.metadata["flops_per_param"])

    def ratio(values: Values, record: Mapping[str, str]) -> Array:
        best = _frontier(paper, values, record["arch"]).allocate(
            parse_number(record["budget"]), at[record["tier"]]
        )
        return best.tokens * flops_per_param / best.flops_per_token

    for record in table.records():
        yield _Claim(
            table=table.name,
            row=_label(table, record),
            quantity="tpp",
            published=record["tpp"],
            inputs=_coefficients(paper, record["arch"]),
            compute=lambda values, record=record: ratio(values, record),
        )

    def largest(values: Values) -> Array:
        pairs: dict[tuple[str, str], list[Array]] = {}
        for record in table.records():
            pairs.setdefault((record["budget"], record["tier"]), []).append(ratio(values, record))
        return np.asarray(np.max([np.abs(second / first - 1) for first, second in pairs.values()], axis=0))

    yield _Claim(
        table=table.name,
        row="all",
        quantity="largest_difference",
        published=table.metadata["largest_difference"],
        inputs=_coefficients(paper, *dict.fromkeys(table.column("arch"))),
        compute=largest,
        bound=True,
    )


def _matching(paper: Paper, table: Table) -> Iterator[_Claim]:
    configurations = [r for r in paper.tables["configurations"].records() if r["tier"] != "0%"]
    cells = {(r["arch"], r["scale"], r["tier"]): r for r in configurations}
    pairs = [(cells["baseline", *key[1:]], row) for key, row in cells.items() if key[0] == "smelt"]
    for record in table.records():
        budget = record["budget"]
        if budget == "total_params":
            inputs = {f"{i}{side}": row["total_params"] for i, pair in enumerate(pairs) for side, row in enumerate(pair)}
        else:
            column = {"flops_per_token": "flops_ratio", "kv_cache": "kv_ratio"}[budget]
            inputs = {f"{i}1": row[column] for i, (_, row) in enumerate(pairs)}

        def largest(values: Values) -> Array:
            ratios = [values[f"{i}1"] / values.get(f"{i}0", np.ones(1)) for i in range(len(pairs))]
            return np.asarray(np.max([np.abs(r - 1) for r in ratios], axis=0))

        yield _Claim(
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
        yield _Claim(
            table=table.name,
            row=f"example: {what.strip()}",
            quantity="deviation",
            published=f"{printed}%",
            inputs={"first": first, "second": second},
            compute=lambda values: values["second"] / values["first"] - 1,
        )


def _configurations(paper: Paper, table: Table) -> Iterator[_Claim]:
    """The baseline loops nothing, so its compute-equivalent sparsity is 1 - active/total parameters."""
    for record in table.select(arch="baseline").records():
        yield _Claim(
            table=table.name,
            row=f"{record['arch']} {record['scale']} {record['tier']}",
            quantity="S",
            published=record["S"],
            inputs={"active": record["active_params"], "total": record["total_params"]},
            compute=lambda values: 1 - values["active"] / values["total"],
        )


def _recipe(paper: Paper, table: Table) -> Iterator[_Claim]:
    stated = {record["quantity"]: record["value"] for record in table.records()}
    configurations = paper.tables["configurations"]
    sparse = np.array([tier != "0%" for tier in configurations.column("tier")])
    per_step = parse_number(stated["sequences_per_step"]) * parse_number(stated["context_length"])
    steps = table.select(quantity="branch_start").numbers("value")
    # F is inferred from the printed dimensions and ratios, the window from neither
    flops = configurations.numbers("F_inferred")[sparse]
    archs, horizons = len(set(configurations.column("arch"))), len(steps)
    runs, fitted = len(configurations), int(sparse.sum())
    branch = {"branch": stated["branch_tokens"]}
    counts = {
        "training_runs": runs,
        "cells": runs / archs,
        "fitted_cells": fitted / archs,
        "pairs": runs / archs * horizons,
        "endpoints": runs * horizons,
        "fitted_endpoints": fitted * horizons,
        "fitted_endpoints_per_arch": fitted / archs * horizons,
        "validation_sources": paper.tables["quartiles"].numbers("sources").sum(),
    }
    derived: dict[str, tuple[Mapping[str, str], Callable[[Values], Array]]] = {
        "stable_tokens": ({}, lambda values: parse_number(stated["stable_steps"]) * np.full(1, per_step)),
        "longest_branch_tokens": (branch, lambda values: steps.max() * per_step + values["branch"]),
        "window_low": (branch, lambda values: flops.min() * (steps.min() * per_step + values["branch"])),
        "window_high": (branch, lambda values: flops.max() * (steps.max() * per_step + values["branch"])),
    }
    derived |= {name: ({}, lambda values, count=count: np.full(1, count)) for name, count in counts.items()}
    for name, (inputs, compute) in derived.items():
        yield _Claim(
            table=table.name,
            row=name,
            quantity="value",
            published=stated[name],
            inputs=inputs,
            compute=compute,
            truncated=name.endswith("_tokens"),
        )


def _allocations(paper: Paper, table: Table) -> Iterator[_Claim]:
    for record in table.records():
        arch, budget = record["arch"], parse_number(record["budget"])

        def quantities(values: Values, arch: str = arch, budget: float = budget) -> dict[str, Array]:
            frontier = _frontier(paper, values, arch)
            best = frontier.allocate(budget)
            size = best.flops_per_token / frontier.flops_per_param
            return {"N": size, "D": best.tokens, "tokens_per_param": best.tokens / size, "loss": best.loss}

        for quantity in RESULTS["allocations"]:
            yield _Claim(
                table=table.name,
                row=_label(table, record),
                quantity=quantity,
                published=record[quantity],
                inputs=_coefficients(paper, arch),
                compute=lambda values, quantity=quantity, make=quantities: make(values)[quantity],
            )


def _predictions(paper: Paper, table: Table) -> Iterator[_Claim]:
    for record in table.records():
        arch, budget = record["arch"], parse_number(record["budget"])
        yield _Claim(
            table=table.name,
            row=_label(table, record),
            quantity="loss",
            published=record["loss"],
            inputs=_coefficients(paper, arch),
            compute=lambda values, arch=arch, budget=budget: _surface(paper, values, arch).loss(C=budget),
        )


def _speedups(paper: Paper, table: Table) -> Iterator[_Claim]:
    """``flop_multiplier = ((L_baseline - E)/(L_variant - E))^(1/alpha)``, the same at every budget."""
    law = {name: table.metadata[name] for name in ("E", "alpha")}

    def multiplier(values: Values) -> Array:
        ratio = (values["loss_baseline"] - values["E"]) / (values["loss_variant"] - values["E"])
        return np.asarray(ratio ** (1 / values["alpha"]))

    for record in table.records():
        losses = {name: record[name] for name in ("loss_baseline", "loss_variant")}
        speeds = {name: record[name] for name in ("throughput_baseline", "throughput_variant")}
        if speeds["throughput_baseline"] == "1":  # a ratio is given, and its denominator is exact
            speeds["throughput_baseline"] = "1.000000"
        row = _label(table, record)
        common = {"table": table.name, "row": row}
        yield _Claim(
            **common,
            quantity="flop_multiplier",
            published=record["flop_multiplier"],
            inputs={**law, **losses},
            compute=multiplier,
        )
        yield _Claim(
            **common,
            quantity="wall_multiplier",
            published=record["wall_multiplier"],
            inputs={**law, **losses, **speeds},
            compute=lambda values: (
                multiplier(values) * values["throughput_variant"] / values["throughput_baseline"]
            ),
        )


_MAKERS: Mapping[str, Callable[[Paper, Table], Iterator[_Claim]]] = {
    "allocations": _allocations,
    "ce_gain": _gains,
    "configurations": _configurations,
    "gamma": _gammas,
    "matching": _matching,
    "predictions": _predictions,
    "recipe": _recipe,
    "speedups": _speedups,
    "tpp": _tokens_per_param,
}
