"""Were two architectures given equal budgets? Their cells side by side, before any gain is believed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._json import finite_or_none
from smelt_scaling._schema import counted
from smelt_scaling.analyses.budget_pairs import QUANTITIES, RECOUNT, BudgetPairs, Quantity, Ratio, pairs_of
from smelt_scaling.analyses.frames import Carried
from smelt_scaling.analyses.pairing import pair_names
from smelt_scaling.analyses.recount import Recount, other_account, recount_of
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, UsageError, info, merge_notes, warning
from smelt_scaling.formatting import format_percent
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TOLERANCE", "Audit", "audit_fairness", "audit_of", "tolerances_of"]

Mask = NDArray[np.bool_]

#: The largest deviations among the twelve sparse pairs of the published SMELT grid: 3.9, 1.0 and 3.6 %.
TOLERANCE = {"flops": 0.04, "params": 0.01, "kv": 0.04}
#: A ratio this close to the tolerance is within it: 1.04 is no exact number in binary.
EDGE = 1e-9
#: Of a quantity whose law counts it, and of any other.
COUNTED = "each model is counted with its own FLOPs, so a gain stands"
UNCOUNTED = "a gain holds what that is worth: match them, or report both"


@dataclass(frozen=True, kw_only=True, eq=False)
class Audit:
    """The budgets of two architectures held against each other.

    Parameters
    ----------
    pairs : BudgetPairs
        Their cells.
    tolerance : mapping of str to float
        Of the quantities that have one, a fraction.
    rows : list of dict
        One per quantity; empty without pairs. See `audit_fairness`.
    notes : tuple of Note
        What is over tolerance, not audited, or counted in two ways.
    recount : Recount or None
        How the accounts of FLOPs differ.
    """

    pairs: BudgetPairs
    tolerance: Mapping[str, float]
    rows: Carried
    notes: tuple[Note, ...]
    recount: Recount | None


def tolerances_of(given: Mapping[str, float] | None) -> dict[str, float]:
    """Return the default tolerances with those given in their place.

    Raises
    ------
    UsageError
        For an unknown quantity, or one that is no fraction.

    Examples
    --------
    >>> tolerances_of({"kv": 0.1, "tokens": 0.01})
    {'flops': 0.04, 'params': 0.01, 'kv': 0.1, 'tokens': 0.01}
    """
    known = [quantity.name for quantity in QUANTITIES]
    for name, value in (given or {}).items():
        if name not in known:
            raise UsageError(f"tolerance {name!r} is unknown; choose from {', '.join(known)}")
        if not (np.isfinite(value) and value >= 0):
            raise UsageError(f"tolerance {name}={value:g}: a fraction of at least 0 is needed, such as 0.04")
    return {**TOLERANCE, **(given or {})}


def audit_fairness(
    source: Endpoints | Study,
    *,
    target: str | None = None,
    reference: str | None = None,
    tolerance: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Hold the budgets of two architectures against each other, cell by cell.

    Cells pair by their label (``cell``, or ``scale`` and sparsity tier). A model is the median over the rows of its
    cell; runs are compared at equal tokens, each with the nearest one within 5 %.

    Parameters
    ----------
    source : Endpoints or Study
        The table, or a study of it, whose law says how FLOPs are counted (of a table: F, or else N_act, N or C).
    target, reference : str, optional
        As for `ce_gain`.
    tolerance : mapping of str to float, optional
        Quantity -> largest deviation, a fraction, in place of ``flops=0.04, params=0.01, kv=0.04``: the largest ones
        of the published SMELT grid (3.9, 1.0 and 3.6 %). Other quantities have none unless named.

    Returns
    -------
    DataFrame
        One row per quantity and pair: ``target, reference, cell, quantity, column, target_value, reference_value``
        (of models), ``deviation`` (target / reference - 1; none where the reference has none of it), ``tolerance, within, spread``
        (largest over smallest value within the cell, less 1), ``horizons`` (compared at equal tokens). Quantities are
        ``flops`` (F), ``params`` (N_no_emb, else N), ``active`` (N_act), ``kv``, ``tokens`` (D), ``compute`` (C),
        ``speed`` (tokens_per_s), and ``recount``: FLOPs by the table's other account over those that the law counts.

        ``.attrs`` holds ``notes``, ``settings``, ``unpaired`` (cells of one architecture only) and ``fairness``, one
        row per quantity: ``pairs`` and ``unknown`` (with it, without it), ``unpaired``, ``lowest, highest, mean`` (of
        the logarithm) deviation, ``worst_cell, worst, tolerance, over`` (pairs), ``within, spread``; ``column`` is
        none where the table does not hold it, and then it is not audited.

    Raises
    ------
    UsageError
        If an architecture or a tolerance is invalid, or there is but one architecture, or no table.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints
    >>> frame = audit_fairness(example_endpoints(), target="smelt", reference="baseline")
    >>> for row in frame.attrs["fairness"][:4]:
    ...     print(row["quantity"], row["column"], row["pairs"], row["worst_cell"], row["worst"], row["within"])
    flops F 12 100M/97% 0.0390... True
    params N 12 1.6B/85% -0.0097... True
    active N_act 12 1.6B/85% -0.33... None
    kv None 0 None None None
    """
    import pandas as pd

    if not isinstance(source, Endpoints | Study):
        raise UsageError(
            "an audit of budgets needs the runs: give endpoints or a study, not published surfaces"
        )
    endpoints = source.endpoints if isinstance(source, Study) else source
    target, reference, notes = pair_names(endpoints.archs, target, reference)
    audit = audit_of(source, target, reference, tolerance)
    pairs = audit.pairs
    shown = [ratio for name, ratio in pairs.ratios.items() if name != "recount" or audit.recount]
    parts = [_pair_frame(pairs, ratio, audit.tolerance) for ratio in shown]
    frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=PAIR_COLUMNS)
    alone = [
        {"arch": arch, "cell": pairs.labels.names[code], "endpoints": rows}
        for arch, cells in pairs.alone.items()
        for code, rows in cells.items()
    ]
    if alone and len(pairs):
        some = ", ".join(f"{row['cell']} of {row['arch']}" for row in alone[:3]) + ", ..." * (len(alone) > 3)
        message = f"{counted(len(alone), 'cell')} of one architecture only ({some}): not audited"
        notes.append(warning("unmatched_cells", message, len(alone)))
    frame.attrs = {
        "notes": [note.to_dict() for note in merge_notes(notes, audit.notes)],
        "settings": {
            "target": target,
            "reference": reference,
            "unit": pairs.unit,
            "tolerance": audit.tolerance,
        },
        "fairness": audit.rows,
        "unpaired": Carried(alone),
    }
    return frame


def audit_of(
    source: Endpoints | Study,
    target: str,
    reference: str,
    tolerance: Mapping[str, float] | None = None,
    *,
    law_columns: Iterable[str] | None = None,
    flops_per_param: float = 6.0,
) -> Audit:
    """Audit two named architectures; ``law_columns`` say how FLOPs of a table are counted, a study knows it.

    Raises
    ------
    UsageError
        If a tolerance is invalid.
    """
    allowed = tolerances_of(tolerance)
    endpoints = source.endpoints if isinstance(source, Study) else source
    if isinstance(source, Study):
        law_columns, flops_per_param = source.law.columns, source.settings.flops_per_param
    elif law_columns is None:
        law_columns = (next(name for name in ("F", "N_act", "N", "C") if name in endpoints),)
    pairs = pairs_of(endpoints, target, reference, other_account(endpoints, law_columns, flops_per_param))
    recount = recount_of(pairs)
    told = [*QUANTITIES, RECOUNT] if recount else QUANTITIES
    rows = Carried(_summary(pairs, quantity, allowed) for quantity in told if len(pairs))
    counted_by_law = {"flops"} | ({"params"} if {"N"} & set(law_columns) else set())
    return Audit(
        pairs=pairs,
        tolerance=allowed,
        rows=rows,
        notes=tuple(_notes(pairs, rows, recount, counted_by_law)),
        recount=recount,
    )


PAIR_COLUMNS = (
    *("target", "reference", "cell", "quantity", "column", "target_value", "reference_value"),
    *("deviation", "tolerance", "within", "spread", "horizons"),
)


def _over(ratio: Ratio, tolerance: float | None) -> Mask:
    limit = np.inf if tolerance is None else tolerance + EDGE
    return np.asarray(np.abs(ratio.deviation) > limit)


def _pair_frame(pairs: BudgetPairs, ratio: Ratio, tolerance: Mapping[str, float]) -> pd.DataFrame:
    import pandas as pd

    allowed = tolerance.get(ratio.quantity.name)
    over, unknown = _over(ratio, allowed), np.isnan(ratio.deviation)
    whole = np.full(len(pairs), np.nan)
    return pd.DataFrame(
        {
            "target": pairs.target,
            "reference": pairs.reference,
            "cell": pairs.cells,
            "quantity": ratio.quantity.name,
            "column": ratio.column,
            "target_value": ratio.target,
            "reference_value": ratio.reference,
            "deviation": np.where(np.isfinite(ratio.deviation), ratio.deviation, np.nan),
            "tolerance": whole if allowed is None else np.full(len(pairs), allowed),
            "within": pd.Series(~over, dtype=object).mask(unknown | (allowed is None), None),
            "spread": np.where(np.isfinite(ratio.spread), ratio.spread, np.nan),
            "horizons": whole if ratio.horizons is None else ratio.horizons.astype(np.float64),
        },
        columns=list(PAIR_COLUMNS),
    )


def _summary(pairs: BudgetPairs, quantity: Quantity, tolerance: Mapping[str, float]) -> dict[str, Any]:
    """Return the row of one quantity over all pairs."""
    ratio, allowed = pairs.ratios.get(quantity.name), tolerance.get(quantity.name)
    row: dict[str, Any] = {
        "target": pairs.target,
        "reference": pairs.reference,
        "quantity": quantity.name,
        "column": None,
        "pairs": 0,
        "unknown": len(pairs),
        "unpaired": pairs.unpaired,
        **dict.fromkeys(("lowest", "highest", "mean", "worst_cell", "worst")),
        "tolerance": allowed,
        "over": 0,
        "within": None,
        "spread": None,
    }
    if ratio is None:
        return row
    known = ~np.isnan(ratio.deviation)
    row |= {"column": ratio.column, "pairs": int(known.sum()), "unknown": int((~known).sum())}
    if not known.any():
        return row
    deviation, over = ratio.deviation[known], int(_over(ratio, allowed).sum())
    worst = int(np.nanargmax(np.abs(ratio.deviation)))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = float(np.expm1(np.log1p(deviation).mean()))
    return row | {
        "lowest": finite_or_none(float(deviation.min())),
        "highest": finite_or_none(float(deviation.max())),
        "mean": finite_or_none(mean),
        "worst_cell": pairs.cells[worst],
        "worst": finite_or_none(float(ratio.deviation[worst])),
        "over": over,
        "within": None if allowed is None else not over,
        "spread": finite_or_none(float(np.nanmax(ratio.spread))),
    }


def _notes(
    pairs: BudgetPairs, rows: Iterable[Mapping[str, Any]], recount: Recount | None, by_law: set[str]
) -> list[Note]:
    both = f"{pairs.target} and {pairs.reference}"
    if not len(pairs):
        why = f"share no {pairs.unit} label" if pairs.unit else "have no column cell or scale to pair by"
        return [info("unaudited_budgets", f"{both} {why}: whether their budgets are equal is not known")]
    said = {quantity.name: quantity.said for quantity in QUANTITIES}
    notes = []
    for row in rows:
        if row["over"]:
            name = row["quantity"]
            worst = "from none" if row["worst"] is None else format_percent(row["worst"], sign=True)
            message = (
                f"{said[name]} of {both} differ by more than {100 * row['tolerance']:g} % in {row['over']} of "
                f"{counted(row['pairs'], 'pair')}, most in {row['worst_cell']} ({worst}); "
                f"{COUNTED if name in by_law else UNCOUNTED}"
            )
            notes.append(warning("unfair_budget", message, row["over"]))
    if recount is not None:
        message = (
            f"{recount.account} is {recount.target:.4g} for {pairs.target} and {recount.reference:.4g} for "
            f"{pairs.reference} ({counted(recount.pairs, 'pair')}): two accounts of FLOPs; "
            "gain_at_matched_flops is the gain by the other one"
        )
        notes.append(warning("recounted_flops", message, recount.pairs))
    return notes
