"""The analysis: a long table of measurements in, one row per probe and part out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._json import finite_or_none
from smelt_scaling.analyses.few_draws import few_draws_note
from smelt_scaling.analyses.frames import Carried
from smelt_scaling.analyses.probes.catalogue import APART, BY, PROBES
from smelt_scaling.analyses.probes.cosines import ATTENTION_COSINE, STAGES, broken_order
from smelt_scaling.analyses.probes.declaration import Probe
from smelt_scaling.analyses.probes.intake import check_table
from smelt_scaling.analyses.probes.pooled import CellSums, cell_sums, draw_weights, statistics
from smelt_scaling.errors import Note, UsageError, merge_notes, warning
from smelt_scaling.resampling import percentile_interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["probe_report"]

Array = NDArray[np.float64]
Weights = tuple[list[Array], Array]

#: Quantities that carry an interval.
DRAWN = ("value", "contrast", "lift", "share_above", "share_above_control")
#: With fewer units an interval by resampling them is too narrow to be relied on.
FEW = 5


def probe_report(
    table: pd.DataFrame | str | Path,
    *,
    probes: str | Sequence[str] | None = None,
    by: str | Sequence[str] = (),
    mapping: Mapping[str, str] | None = None,
    bootstrap: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> pd.DataFrame:
    """Summarise probes of what a second visit of the same weights does.

    Tokens of a document go together, so documents are resampled inside a cell, then cells; tokens never.

    Parameters
    ----------
    table : DataFrame, str or pathlib.Path
        Long table: a row per measurement, of a token or the mean of a document (`ProbeWriter` makes it).
    probes : str or sequence of str, optional
        Which probes; all in the table by default. A table without the column ``probe`` holds the one that is named.
    by : str or sequence of str
        What to keep apart besides part and visit: "cell", "layer", "head".
    mapping : mapping of str to str, optional
        Name of the schema to column of the table, for those whose names differ.
    bootstrap : int
        Resamples; 0 for no intervals.
    seed : int
        Seed of the resampling.
    level : float
        Nominal coverage.

    Returns
    -------
    DataFrame
        Rows in the order of the probes; columns ``probe, part, visit, k, n``, those of ``by``, ``value, chance,
        chance_sd, lift, kappa, control, contrast, share_above, share_above_control`` (``_lo``, ``_hi`` where drawn),
        ``units, cells, documents, tokens, undefined, undefined_draws, draws``. ``attrs["order"]`` says per cell whether
        the cosines along the attention keep their order.

    Raises
    ------
    DataError
        If the table breaks its schema.
    UsageError
        For an unknown probe, column or option.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("routing", cell, doc, 8, 504, 2.0) for cell in "abcde" for doc in "123456"]
    >>> table = pd.DataFrame(rows, columns=["probe", "cell", "doc", "k", "n", "value"])
    >>> row = probe_report(table, bootstrap=100).iloc[0]
    >>> [round(float(row[name]), 3) for name in ("value", "chance", "lift")]
    [2.0, 0.127, 15.75]
    """
    kept_apart = (by,) if isinstance(by, str) else tuple(by)
    for name in kept_apart:
        if name not in BY:
            raise UsageError(f"--by {name}: cannot be kept apart; use {', '.join(BY)}")
    if bootstrap < 0:
        raise UsageError(f"bootstrap {bootstrap}: the number of resamples is 0 or more")
    if not 0 < level < 1:
        raise UsageError(f"level {level:g}: the nominal coverage is between 0 and 1, such as 0.95")
    import pandas as pd

    checked = check_table(table, mapping, (probes,) if isinstance(probes, str) else probes)
    keys = [*APART, *(name for name in BY if name in kept_apart)]
    lost = checked.undefined.groupby(keys, observed=True)["tokens"].sum()
    plans: dict[Any, Weights] = {}
    rows, few = [], _Few(resampled="cell" not in kept_apart)
    for key, group in sorted(checked.frame.groupby(keys, observed=True), key=lambda pair: _place(pair[0])):
        probe = PROBES[str(key[0])]
        cells = cell_sums(group, probe)
        few.see(cells)
        known = _weights(cells, bootstrap, seed, plans) if bootstrap and few.varied(cells) else None
        undefined = group["undefined"].sum() + lost.get(key, 0.0)
        rows.append(
            {
                **{name: _label(value) for name, value in zip(keys, key, strict=True)},
                **_summary(cells, probe, known, level),
                "chance_sd": finite_or_none(group["spread"].mean()),
                "kappa": None,
                "units": sum(cell.sums.shape[1] for cell in cells),
                "cells": len(cells),
                "documents": sum(len(cell.docs) for cell in cells),
                "tokens": int(group["tokens"].sum()),
                "undefined": int(undefined),
                "draws": bootstrap if known else 0,
            }
        )
        top = float(group["top"].iloc[0])
        if np.isfinite(top):
            rows[-1]["kappa"] = finite_or_none(
                (rows[-1]["value"] - rows[-1]["chance"]) / (top - rows[-1]["chance"])
            )
    order = _order(checked.frame)
    frame = pd.DataFrame(rows).astype({"k": "Int64", "n": "Int64"})
    frame.attrs = {
        "notes": [
            note.to_dict()
            for note in merge_notes(
                checked.notes,
                few.notes(),
                few_draws_note(bootstrap, level),
                _undefined_notes(rows),
                _order_notes(order),
            )
        ],
        "settings": {
            "by": list(kept_apart),
            "bootstrap": bootstrap,
            "seed": seed,
            "level": level,
            "interval": "percentile",
            "scaled": sorted({*checked.frame["scaled"][checked.frame["probe"] == "write_norm"]}),
        },
        "order": Carried(order),
    }
    return frame


def _weights(cells: list[CellSums], bootstrap: int, seed: int, plans: dict[Any, Weights]) -> Weights:
    """Return the draws of a group; groups of the same cells and documents have the same ones."""
    key = tuple((cell.cell, cell.docs) for cell in cells)
    if key not in plans:
        plans[key] = draw_weights(cells, bootstrap, seed)
    return plans[key]


def _summary(
    cells: list[CellSums], probe: Probe, known: Weights | None, level: float
) -> dict[str, float | None]:
    once = [np.ones((len(cell.docs), 1)) for cell in cells], np.ones((len(cells), 1))
    point = statistics(cells, *once, probe)
    drawn = statistics(cells, *known, probe) if known else {}
    row: dict[str, float | None] = {}
    undefined = 0
    for name in ("value", "chance", "lift", "control", "contrast", "share_above", "share_above_control"):
        row[name] = finite_or_none(point[name][0])
        if name in DRAWN:
            ends = None
            if drawn and row[name] is not None:
                lacking = int((~np.isfinite(drawn[name])).sum())
                undefined = max(undefined, lacking)
                ends = None if lacking else percentile_interval(drawn[name], level)
            row[f"{name}_lo"], row[f"{name}_hi"] = (
                (None, None) if ends is None else (float(ends[0]), float(ends[1]))
            )
    return row | {"undefined_draws": undefined}


def _place(key: Sequence[Any]) -> tuple[Any, ...]:
    """Order rows by probe, then along the attention, then by labels, with 9 before 10."""
    stages = [stage for names in STAGES for stage in names]
    probe, part, *rest = key
    parts = stages.index(part) if part in stages else len(stages)
    spelled = [re.split(r"(\d+)", str(label)) for label in (part, *rest)]
    # every second piece is a number, so that pieces of one kind are compared
    return (
        list(PROBES).index(probe),
        parts,
        [[int(piece) if i % 2 else piece for i, piece in enumerate(pieces)] for pieces in spelled],
    )


def _label(value: Any) -> Any:
    if isinstance(value, float):
        return None if value < 0 else int(value)
    return str(value)


class _Few:
    """Counts groups whose intervals rest on few units."""

    def __init__(self, *, resampled: bool) -> None:
        self.resampled = resampled
        self.cells = self.documents = self.groups = self.alone = 0

    def varied(self, cells: list[CellSums]) -> bool:
        """Whether there is anything to resample."""
        return len(cells) > 1 or len(cells[0].docs) > 1

    def see(self, cells: list[CellSums]) -> None:
        self.groups += 1
        self.alone += not self.varied(cells)
        self.cells += self.resampled and len(cells) < FEW
        self.documents += min(len(cell.docs) for cell in cells) < FEW

    def _therefore(self, count: int) -> str:
        if self.alone >= count:
            return "one document of one cell has no interval"
        return "their intervals are too narrow"

    def notes(self) -> tuple[Note, ...]:
        return tuple(
            warning(
                code,
                f"{count} of {self.groups} rows rest on fewer than {FEW} {what}{where}: {self._therefore(count)}",
                count,
            )
            for code, what, where, count in (
                ("few_probed_cells", "cells", "", self.cells),
                ("few_documents", "documents", " in some cell", self.documents),
            )
            if count
        )


def _order(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Say per cell and visit whether the cosines fall along the attention."""
    mine = frame[frame["probe"] == ATTENTION_COSINE.name]
    rows = []
    for (cell, visit), group in mine.groupby(["cell", "visit"], observed=True):
        total = (
            group.assign(total=group["value"] * group["tokens"])
            .groupby("part", observed=True)[["total", "tokens"]]
            .sum()
        )
        broken = broken_order({str(part): mean for part, mean in (total["total"] / total["tokens"]).items()})
        rows.append({"cell": cell, "visit": visit, "holds": not broken, "broken": broken})
    return rows


def _undefined_notes(rows: list[dict[str, Any]]) -> tuple[Note, ...]:
    lacking = [row for row in rows if row["undefined_draws"]]
    if not lacking:
        return ()
    most = max(row["undefined_draws"] for row in lacking)
    message = (
        f"{len(lacking)} of {len(rows)} rows: no document has a value or a control in up to {most} of "
        f"{lacking[0]['draws']} draws, so what rests on it has no interval"
    )
    return (warning("empty_draws", message, len(lacking)),)


def _order_notes(order: list[dict[str, Any]]) -> tuple[Note, ...]:
    broken = [row for row in order if not row["holds"]]
    if not broken:
        return ()
    first = broken[0]
    message = (
        f"the order Q, K >= input > V > PV, O is broken in {len(broken)} of {len(order)} cells "
        f"(first: {first['cell']}, {first['broken']})"
    )
    return (warning("broken_order", message, len(broken)),)
