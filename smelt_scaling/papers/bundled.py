"""The papers that are shipped: a folder of CSV files each (``# key: value`` lines, then the table as printed)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.errors import Note, UsageError
from smelt_scaling.laws import AdditiveLaw, Surface, get_law
from smelt_scaling.papers.tables import Table, parse_number, parse_table

__all__ = ["NATS", "PAPERS", "Paper", "load_paper", "surface_of"]

#: Unit of the losses unless a table says otherwise.
NATS = "nats/token"

#: Name (a folder beside this file) and title of each paper.
PAPERS: dict[str, str] = {
    "smelt": "SMELT: sparse MoE transformers whose middle layers loop twice, at matched budgets",
    "chinchilla": "Chinchilla's dense scaling law: rounded, TeX and re-fitted coefficients",
    "marin": "Marin: one-variable laws in compute and effective speed-ups",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Paper:
    """What one paper published.

    Parameters
    ----------
    name, title, source : str
        Key in `PAPERS` (or a file), title, and where the numbers were read.
    surfaces : Mapping[str, Surface]
        Published coefficients per architecture (or coefficient set).
    tables : Mapping[str, Table]
        Published tables by name, cells as printed; ``coefficients`` holds the digits of the surfaces.
    windows : Mapping[str, Mapping[str, tuple[float, float]]]
        Architecture -> column -> range of the fitted runs, as far as published.
    sparsities : array or None
        Sparsities at which the paper compares its architectures.
    flops_per_param : float
        F = flops_per_param * N, for laws in N.
    loss_unit : str
        Unit of the losses.
    notes : tuple of Note
        Caveats that stay with every number.
    """

    name: str
    title: str
    source: str
    surfaces: Mapping[str, Surface]
    tables: Mapping[str, Table]
    windows: Mapping[str, Mapping[str, tuple[float, float]]]
    sparsities: NDArray[np.float64] | None
    flops_per_param: float = 6.0
    loss_unit: str = NATS
    notes: tuple[Note, ...] = ()


@cache
def load_paper(name: str) -> Paper:
    """Read a paper's tables and coefficients.

    Parameters
    ----------
    name : str
        A key of `PAPERS`.

    Returns
    -------
    Paper
        Immutable, read once per process.

    Raises
    ------
    UsageError
        When no such paper is shipped.

    Examples
    --------
    >>> paper = load_paper("smelt")
    >>> paper.surfaces["smelt"].coef.tolist()
    [1.4493, 1963.0, 5264000.0, 0.3892, 0.146, 0.7011]
    >>> paper.tables["ce_gain"].select(budget="1e21").column("gain")
    ('18.0%', '15.8%', '14.7%')
    """
    if name not in PAPERS:
        raise UsageError(f"published paper {name!r}: not shipped; choose from {', '.join(PAPERS)}")
    folder = files(__package__) / name
    head = json.loads((folder / "paper.json").read_text(encoding="utf-8"))
    names = sorted(
        entry.name.removesuffix(".csv") for entry in folder.iterdir() if entry.name.endswith(".csv")
    )
    tables = {stem: parse_table(stem, (folder / f"{stem}.csv").read_text(encoding="utf-8")) for stem in names}
    surfaces = _surfaces(tables[head["coefficients"]])
    window = MappingProxyType(_window(tables))
    return Paper(
        name=name,
        title=PAPERS[name],
        source=head["source"],
        surfaces=MappingProxyType(surfaces),
        tables=MappingProxyType(tables),
        windows=MappingProxyType(dict.fromkeys(surfaces, window)),
        sparsities=_sparsities(tables),
    )


def _window(tables: Mapping[str, Table]) -> dict[str, tuple[float, float]]:
    if "recipe" not in tables:
        return {}
    stated = {row["quantity"]: row["value"] for row in tables["recipe"].records()}
    return {"C": (parse_number(stated["window_low"]), parse_number(stated["window_high"]))}


def _sparsities(tables: Mapping[str, Table]) -> NDArray[np.float64] | None:
    stated = tables["ce_gain"].sparsities() if "ce_gain" in tables else {}
    return np.array(list(stated.values())) if stated else None


def _surfaces(table: Table) -> dict[str, Surface]:
    """Return the surfaces in nats/token; coefficients in another unit stay in the table, and are compared with none."""
    law = get_law(table.metadata["law"])
    nats = [row for row in table.records() if row.get("unit", NATS) == NATS]
    return {row["arch"]: surface_of(law, row) for row in nats}


def surface_of(law: AdditiveLaw, row: Mapping[str, str]) -> Surface:
    """Return the surface of a row of printed coefficients."""
    values = {name: parse_number(row[name]) for name in law.parameters}
    if row.get("form") == "log":  # floor and amplitudes are then natural logarithms
        values |= {name: float(np.exp(values[name])) for name in (law.floor, *law.amplitudes)}
    return Surface(law=law, coef=np.array([values[name] for name in law.parameters]))
