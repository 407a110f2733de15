"""A claim: one printed number, the printed numbers it follows from, and the function between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.frontier import Frontier
from smelt_scaling.laws import Surface, get_law
from smelt_scaling.papers import Paper, parse_number, rounding

__all__ = [
    "Claim",
    "Values",
    "coefficient_inputs",
    "perturbed_frontier",
    "perturbed_surface",
    "perturbed_values",
    "rounding_effect",
]

Array = NDArray[np.float64]
Values = Mapping[str, Array]


@dataclass(frozen=True, kw_only=True, eq=False)
class Claim:
    """A printed number that follows from others.

    Parameters
    ----------
    table, row, quantity, published : str
        Where it stands, and its text.
    inputs : mapping of str to str
        The rounded numbers it follows from, as printed. What is exact belongs into ``compute``.
    compute : callable
        Values of the inputs, arrays of equal length -> the quantity, an array of that length (or of length 1).
    truncated : bool
        The source cuts digits off instead of rounding, so a whole unit of the last digit is open.
    bound : bool
        The source says "at most".

    Examples
    --------
    >>> claim = Claim(
    ...     table="t", row="r", quantity="double", published="0.7", inputs={"a": "0.33"}, compute=lambda v: 2 * v["a"])
    >>> verdict = claim.judge()
    >>> round(verdict["difference"], 3), round(verdict["allowed"], 3), verdict["agrees"]
    (-0.04, 0.06, True)
    """

    table: str
    row: str
    quantity: str
    published: str
    compute: Callable[[Values], Array]
    inputs: Mapping[str, str] = field(default_factory=dict)
    truncated: bool = False
    bound: bool = False

    def judge(self) -> dict[str, Any]:
        """Return recomputed, difference, allowed and agrees."""
        found = np.asarray(self.compute(perturbed_values(self.inputs)), dtype=np.float64)
        found = np.broadcast_to(found, (1 + 2 * len(self.inputs),))
        recomputed = float(found[0])
        allowed = float(rounding(self.published) * (2 if self.truncated else 1) + rounding_effect(found))
        difference = recomputed - parse_number(self.published)
        excess = difference if self.bound else abs(difference)
        # a difference of exactly half a unit may come out a rounding error above it
        agrees = bool(excess <= allowed + 1e-12 * abs(recomputed))
        return {"recomputed": recomputed, "difference": difference, "allowed": allowed, "agrees": agrees}


def perturbed_values(inputs: Mapping[str, str]) -> dict[str, Array]:
    """Return the printed numbers as they stand, then each alone half a unit of its last digit up, and down.

    Returns
    -------
    dict
        Name -> array of 1 + 2 * len(inputs) values.

    Examples
    --------
    >>> [values.round(3).tolist() for values in perturbed_values({"a": "0.33", "b": "7"}).values()]
    [[0.33, 0.335, 0.325, 0.33, 0.33], [7.0, 7.0, 7.0, 7.5, 6.5]]
    """
    size = 1 + 2 * len(inputs)
    values = {name: np.full(size, parse_number(text)) for name, text in inputs.items()}
    for i, (name, text) in enumerate(inputs.items()):
        half = rounding(text)
        values[name][1 + 2 * i] += half
        values[name][2 + 2 * i] -= half
    return values


def rounding_effect(found: Array) -> Array:
    """Return how far rounding can move a quantity: the larger change of each input, added up.

    Parameters
    ----------
    found : (1 + 2 * inputs, ...) array
        The quantity at `perturbed_values`.

    Examples
    --------
    >>> values = perturbed_values({"a": "0.33", "b": "7"})
    >>> float(rounding_effect(values["a"] * values["b"]).round(6))  # 7 x 0.005 + 0.33 x 0.5
    0.2
    """
    moved = np.abs(found[1:] - found[0]).reshape(-1, 2, *found.shape[1:])
    return np.asarray(moved.max(axis=1).sum(axis=0))


def coefficient_inputs(paper: Paper, archs: Iterable[str]) -> dict[str, str]:
    """Return "arch.parameter" -> coefficient as printed."""
    table = paper.tables["coefficients"]
    names = get_law(table.metadata["law"]).parameters
    by_arch = {record["arch"]: record for record in table.records()}
    return {f"{arch}.{name}": by_arch[arch][name] for arch in archs for name in names}


def perturbed_surface(paper: Paper, values: Values, arch: str) -> Surface:
    """Return the surface of values named as in `coefficient_inputs`; perturbations are its draws."""
    table = paper.tables["coefficients"]
    law = get_law(table.metadata["law"])
    form = {record["arch"]: record.get("form") for record in table.records()}[arch]
    logged = {law.floor, *law.amplitudes} if form == "log" else set()
    columns = [values[f"{arch}.{name}"] for name in law.parameters]
    columns = [np.exp(c) if name in logged else c for name, c in zip(law.parameters, columns, strict=True)]
    return Surface(law=law, coef=np.stack(columns, axis=-1))


def perturbed_frontier(paper: Paper, values: Values, arch: str) -> Frontier:
    """Return the frontier of `perturbed_surface`."""
    return Frontier(perturbed_surface(paper, values, arch))
