"""Endpoints: finished training runs as checked columns in canonical order, with cells, tiers and a digest.

Whatever order the rows or the columns of a file have, the same endpoints give the same arrays, and from
there the same fit, the same draws and the same bytes of output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._canonical import (
    Canonical,
    arch_slices,
    as_columns,
    canonical_groups,
    column_digest,
    frozen,
    in_order,
)
from smelt_scaling._derive import TIER_GAP, sparsity_tiers
from smelt_scaling._describe import describe, describe_html
from smelt_scaling._groups import group_rows
from smelt_scaling._intake import read_frame
from smelt_scaling._origin import Intake
from smelt_scaling._schema import COLUMNS, LOWEST_SPARSITY, NATS, UNITS, Column, check_values, counted
from smelt_scaling._text import Text
from smelt_scaling._together import measured_on, problems_together
from smelt_scaling._units import RESAMPLING_UNITS, label_units
from smelt_scaling.errors import DataError, Note, UsageError, info, merge_notes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "UNITS", "Column", "Endpoints", "default_sparsities", "sparsity_tiers"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Endpoints:
    """Finished training runs of one or several architectures.

    Parameters
    ----------
    columns : mapping of str to (n,) array
        Columns of `COLUMNS` in the units stated there: ``arch``, ``loss`` and one of F, N and C.
    source : str
        Where the rows come from; first in every message, no part of the digest.
    notes : tuple of Note
        What was converted, derived or left out on the way here.
    tiers : (n,) array of int, optional
        Sparsity tier of each row, counted from 0 for the least sparse. Computed over all rows when left out;
        subsets keep the tiers of the table they come from, so that labels agree across architectures.
    intake : Intake, optional
        What was read to make the table; subsets keep it.

    Raises
    ------
    DataError
        If a value breaks a rule of its column; one line per problem.

    Examples
    --------
    >>> runs = Endpoints.from_frame(
    ...     {"arch": ["b", "a"], "F": [6e8, 6e8], "D": [2e9, 1e9], "loss": [3.0, 3.25]})
    >>> runs.archs, runs["D"].tolist(), runs["C"].tolist()
    (('a', 'b'), [1000000000.0, 2000000000.0], [6e+17, 1.2e+18])
    """

    columns: Mapping[str, NDArray[Any]]
    source: str = "<memory>"
    notes: tuple[Note, ...] = ()
    tiers: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    intake: Intake | None = None
    _stored: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        columns = as_columns(self.columns, self.source)
        problems = check_values(columns, {}, self.source)
        if problems:
            raise DataError("\n".join(problems))
        n = len(columns["loss"])
        tiers = np.asarray(self.tiers, dtype=np.intp)
        if not len(tiers):
            tiers = sparsity_tiers(columns["S"]) if "S" in columns else np.zeros(n, dtype=np.intp)
        if isinstance(self.columns, Canonical):
            canonical, tiers = self.columns, tiers.copy()
        else:
            order = canonical_groups(columns).order
            canonical, tiers = in_order(columns, order), tiers[order]
        object.__setattr__(self, "columns", canonical)
        object.__setattr__(self, "_stored", canonical.stored)
        object.__setattr__(self, "tiers", frozen(tiers))
        object.__setattr__(self, "notes", tuple(self.notes))

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame | Mapping[str, Any],
        *,
        source: str = "<frame>",
        mapping: Mapping[str, str] | None = None,
        units: Mapping[str, str] | None = None,
        flops: str | None = None,
        include_unfinished: bool = False,
    ) -> Endpoints:
        """Read a table of endpoints: name, parse, convert, check, screen and complete its columns.

        Rows without a finite loss, of unfinished runs, not annealed or repeated are left out, each with a note.

        Parameters
        ----------
        frame : pandas.DataFrame or mapping of str to sequence
            One row per endpoint; numbers may be of any dtype, or text.
        source : str
            Name of the table in messages.
        mapping : mapping of str to str, optional
            Schema name to column of the frame, e.g. ``{"loss": "val/ce"}``.
        units : mapping of str to str, optional
            Units that are not the schema's (see `UNITS`), e.g. ``{"D": "B", "S": "percent", "loss": "ppl"}``.
        flops : {"6N", "forward"}, optional
            "6N" takes six training FLOPs per token and (active) parameter as F, in place of an F column;
            "forward" takes three times F (and a C that goes with it), which is forward-only.
        include_unfinished : bool
            Keep rows of runs that have not finished; the note `provisional` stays with all that is made from them.

        Returns
        -------
        Endpoints
            In canonical order, with a note for every conversion, derived or unread column.

        Raises
        ------
        DataError
            With one line per problem: file, column, number of rows, first row (from 1), rule, fix.
        UsageError
            For an unknown schema name, unit or FLOPs rule.

        Examples
        --------
        >>> runs = Endpoints.from_frame(
        ...     {"arch": ["a"], "F": [1.5e9], "S": [94.6], "D": [20.5], "loss": [12.0]},
        ...     units={"D": "B", "S": "percent", "loss": "ppl"})
        >>> runs["S"].tolist(), runs["D"].tolist(), round(float(runs["loss"][0]), 4)
        ([0.946], [20500000000.0], 2.4849)
        """
        options = dict(mapping or {}), dict(units or {}), flops, include_unfinished
        columns, notes, intake = read_frame(frame, source, *options)
        return cls(columns=columns, source=source, notes=merge_notes(notes), intake=intake)

    def to_frame(self) -> pd.DataFrame:
        """Return the stored columns as a data frame in canonical order; `from_frame` reads it back."""
        import pandas as pd

        return pd.DataFrame({name: values.copy() for name, values in self.columns.items()})

    def __len__(self) -> int:
        return len(self.tiers)

    def __repr__(self) -> str:
        return describe(self.columns, self.source)

    def _repr_html_(self) -> str:
        return describe_html(self.columns, self.source, self.notes)

    def __contains__(self, name: object) -> bool:
        return name in self.columns or (name == "C" and "F" in self.columns and "D" in self.columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column, read-only; C is F*D where the table has none. An absent one raises `DataError`."""
        if name in self.columns:
            return self.columns[name]
        if name == "C" and "C" in self:
            return frozen(self.columns["F"] * self.columns["D"])
        raise DataError(self.explain_missing(name))

    def explain_missing(self, *names: str) -> str:
        """Return the sentence to raise when a law or an analysis needs columns that this table lacks."""
        lacking = [name for name in names if name not in self]
        wanted = f"{self.source}: no column {' or '.join(lacking)} (there are {', '.join(self.columns)})"
        if "F" in lacking and "N" in self:
            return f"{wanted}: fit in parameters with --law chinchilla, or take F = 6 N with --flops 6N"
        unread = self.intake.unread if self.intake else ()
        among = f" (not read: {', '.join(unread[:6])}{', ...' * (len(unread) > 6)})" if unread else ""
        name = lacking[0] if lacking else "F"
        return f"{wanted}: name it with --map {name}=COLUMN{among}, or use a law without it"

    @property
    def arch(self) -> NDArray[np.str_]:
        """Architecture of each row."""
        return self["arch"]

    @property
    def F(self) -> Floats:
        """Training FLOPs per token."""
        return self["F"]

    @property
    def S(self) -> Floats:
        """Compute-equivalent sparsity; 0 where the table has none."""
        return self["S"] if "S" in self else frozen(np.zeros(len(self)))

    @property
    def D(self) -> Floats:
        """Training tokens."""
        return self["D"]

    @property
    def C(self) -> Floats:
        """Training FLOPs."""
        return self["C"]

    @property
    def loss(self) -> Floats:
        """Loss in nats per token (in `loss_unit`, where that is another)."""
        return self["loss"]

    @property
    def weight(self) -> Floats:
        """Weight in the fit; 1 where the table has none."""
        return self["weight"] if "weight" in self else frozen(np.ones(len(self)))

    @property
    def archs(self) -> tuple[str, ...]:
        """Architectures, sorted by code point."""
        return tuple(arch_slices(self._stored))

    @cached_property
    def digest(self) -> str:
        """sha256 over names, kinds and values of the columns; independent of row order, file, platform."""
        return column_digest(self._stored)

    @property
    def loss_unit(self) -> str:
        """Unit of the losses: nats/token, or bits/byte where the table says so."""
        return " and ".join(self.measured_on.get("loss_unit", (NATS,)))

    @property
    def measured_on(self) -> dict[str, tuple[str, ...]]:
        """Tokenizers, evaluation sets, domains and loss units that the rows name."""
        return measured_on(self._stored)

    def one_law_problems(self) -> list[str]:
        """Return one line per reason why some architecture's rows are no endpoints of one law."""
        return problems_together(self._stored, self.source)

    def require_one_law(self) -> None:
        """Refuse rows that no single law can describe.

        Raises
        ------
        DataError
            If an architecture has losses of several tokenizers, evaluation sets or domains, the same runs
            under several sources, or curves in place of endpoints.
        """
        if problems := self.one_law_problems():
            raise DataError("\n".join(problems))

    def select(self, mask: ArrayLike) -> Endpoints:
        """Return the rows of a boolean mask (or of indices); source, notes and sparsity tiers are kept.

        Raises
        ------
        DataError
            If no row is left.
        """
        index = np.arange(len(self))[np.asarray(mask)]
        if not len(index):
            raise DataError(f"{self.source}: no row is left of {len(self)}; loosen the selection")
        return self._rows(index, ascending=bool((np.diff(index) > 0).all()))

    def by_arch(self) -> dict[str, Endpoints]:
        """Return the rows of each architecture, in sorted order; tiers stay those of the whole table."""
        return {arch: self._rows(rows, ascending=True) for arch, rows in arch_slices(self._stored).items()}

    def _rows(self, index: NDArray[np.intp] | slice, *, ascending: bool) -> Endpoints:
        columns = {name: values[index] for name, values in self._stored.items()}
        return replace(self, columns=Canonical(columns) if ascending else columns, tiers=self.tiers[index])

    def exclude_tier(self, sparsity: float) -> Endpoints:
        """Leave out the sparsity tier that a value belongs to, with a note.

        Parameters
        ----------
        sparsity : float
            Any value within the tier, as a fraction: 0 for the dense tier, 0.95 for one at .946 to .955.

        Raises
        ------
        UsageError
            If the value is no sparsity.
        DataError
            If there is no sparsity column, no such tier, or no other row.
        """
        if not LOWEST_SPARSITY <= sparsity < 1:
            raise UsageError(f"--exclude-tier {sparsity:g}: a sparsity is a fraction in [0, 1)")
        S = self["S"]
        distance = np.abs(np.log1p(-S) - np.log1p(-sparsity))
        if distance.min() > TIER_GAP:
            there = ", ".join(f"{np.median(S[self.tiers == tier]):.3g}" for tier in np.unique(self.tiers))
            raise DataError(
                f"{self.source}: no sparsity tier at {sparsity:g}: they are at {there}; name one of them"
            )
        out = self.tiers == self.tiers[distance.argmin()]
        if out.all():
            raise DataError(
                f"{self.source}: all {len(self)} rows are of the tier at {sparsity:g}: none would be left; "
                "leave the option out"
            )
        rows = f"{counted(int(out.sum()), 'row')} with S from {S[out].min():.4g} to {S[out].max():.4g}"
        message = f"{self.source}: {rows} left out (--exclude-tier {sparsity:g})"
        note = info("excluded_tier", message, int(out.sum()))
        return replace(self.select(~out), notes=merge_notes(self.notes, [note]))

    def cells(self, unit: str | None = None) -> tuple[NDArray[np.str_], str]:
        """Label each row with its experimental unit, the thing that a bootstrap resamples.

        Parameters
        ----------
        unit : {"cell", "trunk", "run", "row"}, optional
            By default the first that the table names: ``cell``, ``scale`` x tier, ``trunk``, ``run``, row.
            "cell" means one of the first two.

        Returns
        -------
        labels : (n,) array of str
            Equal labels are one unit, across architectures too; rows are numbered within their architecture
            and never shared.
        unit : {"cell", "scale*tier", "trunk", "run", "row"}
            What the labels are.

        Raises
        ------
        UsageError
            If the table has no such unit.

        Examples
        --------
        >>> runs = Endpoints.from_frame(
        ...     {"arch": ["a", "b"], "scale": ["1B", "1B"], "F": [6e9, 6e9], "S": [0.945, 0.951],
        ...      "D": [1e10, 1e10], "loss": [2.5, 2.25]})
        >>> labels, unit = runs.cells()
        >>> labels.tolist(), unit
        (['1B / tier 0', '1B / tier 0'], 'scale*tier')
        """
        labels, name = self._units(unit)
        return labels.array(), name

    def _units(self, unit: str | None = None) -> tuple[Text, str]:
        there = [
            name for name in RESAMPLING_UNITS if name == "row" or name.removesuffix("*tier") in self.columns
        ]
        if unit is None:
            return label_units(self._stored, self.tiers, there[0]), there[0]
        for name in ("cell", "scale*tier") if unit == "cell" else (unit,):
            if name in there:
                return label_units(self._stored, self.tiers, name), name
        named = dict.fromkeys("cell" if name == "scale*tier" else name for name in there)
        raise UsageError(f"{self.source}: cannot resample by {unit!r}: the table allows {', '.join(named)}")


def default_sparsities(endpoints: Endpoints) -> Floats:
    """Return the sparsities at which architectures are compared by default, one per tier.

    Each is the median over the cells of the tier, of all architectures together and each cell once, however
    many endpoints it has.

    Parameters
    ----------
    endpoints : Endpoints
        The table; without a sparsity column the answer is empty.

    Returns
    -------
    (tiers,) array of float
        Ascending.

    Examples
    --------
    >>> runs = Endpoints.from_frame(
    ...     {"arch": ["a", "a", "b"], "cell": ["x", "x", "x"], "F": [6e9, 6e9, 6e9],
    ...      "S": [0.75, 0.75, 0.78125], "D": [1e10, 2e10, 1e10], "loss": [2.5, 2.25, 2.5]})
    >>> default_sparsities(runs).tolist()
    [0.765625]
    """
    if "S" not in endpoints:
        return np.empty(0)
    columns = {**endpoints._stored, "tier": endpoints.tiers, "unit": endpoints._units()[0]}
    cells = group_rows(columns, ["arch", "unit", "tier"])
    S = endpoints.S[group_rows(columns, ["S"], cells).order]
    first, count = np.flatnonzero(cells.starts), cells.sizes()
    medians = (S[first + (count - 1) // 2] + S[first + count // 2]) / 2
    tiers = endpoints.tiers[cells.firsts()]
    return np.array([np.median(medians[tiers == tier]) for tier in np.unique(tiers)])
