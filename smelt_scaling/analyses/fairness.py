"""Were two architectures given equal budgets? Their cells side by side, before any gain is believed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from smelt_scaling._schema import counted
from smelt_scaling.accounting.match import Tolerance
from smelt_scaling.analyses.budget_pairs import QUANTITIES, RECOUNT, BudgetPairs, pairs_of
from smelt_scaling.analyses.fairness_rows import PAIR_COLUMNS, fairness_notes, pair_frame, summary_row
from smelt_scaling.analyses.frames import Carried
from smelt_scaling.analyses.pairing import pair_names
from smelt_scaling.analyses.recount import Recount, other_account, recount_of
from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import Note, UsageError, merge_notes, warning
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TOLERANCE", "Audit", "audit_fairness", "audit_of", "tolerances_of"]

#: Those of a search for equal budgets: the largest deviations of the published SMELT grid, 3.9, 1.0 and 3.6 %.
TOLERANCE: dict[str, float] = asdict(Tolerance())
#: What a law is in -> the quantities that it counts for each model.
BY_LAW = {
    "F": ("flops", "compute"),
    "N": ("params",),
    "N_act": ("active",),
    "D": ("tokens",),
    "C": ("flops", "compute"),
}


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
    by_law : tuple of str
        Quantities that the law counts for each model.
    """

    pairs: BudgetPairs
    tolerance: Mapping[str, float]
    rows: Carried
    notes: tuple[Note, ...]
    recount: Recount | None
    by_law: tuple[str, ...]


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
        if not 0 <= value < 1:
            percent = f"; {value:g} percent is {value / 100:g}" if 1 <= value < 100 else ""
            raise UsageError(
                f"tolerance {name}={value:g}: a fraction in [0, 1) is needed, such as 0.04{percent}"
            )
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
        (of models), ``deviation`` (target / reference - 1; none where the reference has none of it), ``tolerance,
        within, spread`` (largest over smallest value within the cell, less 1), ``horizons`` (compared at equal tokens).
        Quantities are ``flops`` (F), ``params`` (N_no_emb, else N), ``active`` (N_act), ``kv``, ``tokens`` (D),
        ``compute`` (C), ``speed`` (tokens_per_s), and ``recount``: FLOPs by the table's other account over those that
        the law counts.

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
    parts = [pair_frame(pairs, ratio, audit.tolerance) for ratio in shown]
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
    rows = Carried(summary_row(pairs, quantity, allowed) for quantity in told if len(pairs))
    by_law = tuple(name for column in law_columns for name in BY_LAW.get(column, ()))
    return Audit(
        pairs=pairs,
        tolerance=allowed,
        rows=rows,
        notes=tuple(fairness_notes(pairs, rows, recount, by_law)),
        recount=recount,
        by_law=by_law,
    )
