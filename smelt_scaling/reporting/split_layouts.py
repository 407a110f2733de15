"""What gains on parts of an evaluation show to people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import UNREACHABLE, format_percent, format_quantity
from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.document import Document, Grid
from smelt_scaling.reporting.layouts import SUPPORT_FOOTNOTE
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SPLIT_LAYOUTS"]

Rows = Sequence[Mapping[str, Any]]

SAVED = Column(
    key="gain", header="compute saved", kind="percent", interval=True, unreachable=True, marked=True
)
BESIDE = (
    Column(key="common_gain", header="as trained", kind="percent", redundant=True),
    Column(key="difference", header="less the whole", kind="percent", interval=True),
)
DOMAINS = (
    Column(key="domain", header="domain"),
    Column(key="sources", header="n", kind="printed"),
    SAVED,
    *BESIDE,
)
GROUPS = (
    Column(key="group", header="group"),
    Column(key="sources", header="n", kind="printed"),
    Column(key="span", header="reference loss", kind="printed"),
    SAVED,
    *BESIDE,
)
PAIRS = (
    Column(key="one", header="one"),
    Column(key="other", header="other"),
    Column(key="difference", header="saves more by", kind="percent", interval=True),
    Column(key="ahead_share", header="ahead in", kind="percent", optional=True),
)
ORDER = (
    Column(key="part", header="part"),
    Column(key="highest_share", header="first in", kind="percent"),
    Column(key="lowest_share", header="last in", kind="percent"),
)
SHARING = (
    Column(key="arch", header="arch"),
    Column(key="domain", header="domain"),
    Column(key="error_shared", header="shared", kind="number", digits=3),
    Column(key="error_own", header="its own", kind="number", digits=3),
    Column(key="better", header="own better", kind="printed"),
    Column(key="p_value_holm", header="P (Holm)", kind="number", digits=2),
)


def domains_document(frame: pd.DataFrame) -> Document:
    """Describe gains by domain, with paired differences of one point and the test of shared exponents below."""
    rows = plain_rows(frame)
    sharing = [
        {**row, "better": f"{row['labels_own_better']} of {row['labels']}"} for row in frame.attrs["sharing"]
    ]
    heading = "Mean |ln error| of cells left out, with the exponents of the whole and its own"
    grids = [*_by_point(rows, DOMAINS), *_pairs(frame, rows, "domain")]
    grids += [make_grid(sharing, SHARING, heading=heading)] if sharing else []
    return _document(frame, rows, "on each domain", grids)


def sources_document(frame: pd.DataFrame) -> Document:
    """Describe gains by group of sources, with the contrasts of one point below."""
    rows = [{**row, "span": f"{row['loss_low']:.3f} to {row['loss_high']:.3f}"} for row in plain_rows(frame)]
    settings = frame.attrs["settings"]
    when = {"last": "at the longest horizons", "all": "over all endpoints"}[settings["sort_at"]]
    halves = (
        "sorted on half of the cells and fitted on the other, both ways" if settings["split_sample"] else ""
    )
    said = [
        f"Sources sorted by their loss for {settings['reference']} {when}{'; ' if halves else ''}{halves}."
    ]
    return _document(
        frame, rows, "on groups of sources", [*_by_point(rows, GROUPS), *_pairs(frame, rows, "group")], said
    )


def _document(
    frame: pd.DataFrame, rows: Rows, where: str, grids: Sequence[Grid], said: Sequence[str] = ()
) -> Document:
    settings = frame.attrs["settings"]
    target, reference = settings["target"], settings["reference"]
    forced = rows[0].get("forced")
    mark = f"FORCED, NOT COMPARABLE ({forced} differs): " if forced else ""
    drawn = any(row["gain_lo"] is not None or row["hi_unreachable"] for row in rows)
    kind = f"{100 * settings['level']:g} % {settings['interval']} intervals"
    sampled = "cells and of sources" if settings.get("sources_resampled") else "cells"
    weighed = {"equal": "each alike", "tokens": "by their evaluated tokens"}[settings["aggregate"]]
    footnotes = [SUPPORT_FOOTNOTE] if any(row["extrapolated"] for row in rows) else []
    if any(row["unreachable"] or row["hi_unreachable"] for row in rows):
        footnotes.append(f"{UNREACHABLE}: at no finite compute does {reference} reach that loss of {target}.")
    shares = " Ahead, first, last in: shares of draws." if _ordered(rows) else ""
    return Document(
        title=f"{mark}Compute saved by {target} relative to {reference} {where}",
        caption=(
            *said,
            f"{kind}: sampling of {sampled} under this law only; law {settings['law']}."
            if drawn
            else f"Point estimates, no intervals; law {settings['law']}.",
            f"Exponents of the whole evaluation; n sources count {weighed}. As trained: allocated for the "
            f"whole.{shares}",
        ),
        grids=tuple(grids),
        footnotes=tuple(footnotes),
    )


def _points(rows: Rows) -> dict[tuple[Any, Any], list[Mapping[str, Any]]]:
    points: dict[tuple[Any, Any], list[Mapping[str, Any]]] = {}
    for row in rows:
        points.setdefault((row["budget"], row["sparsity"]), []).append(row)
    return points


def _by_point(rows: Rows, columns: Sequence[Column]) -> list[Grid]:
    grids = []
    for (budget, sparsity), chosen in _points(rows).items():
        at = "" if sparsity is None else f", S = {sparsity:.3g}"
        whole = chosen[0]["whole_gain"]
        said = UNREACHABLE if whole is None else format_percent(whole)
        heading = f"Budget {format_quantity(budget)}{at}; on the whole: {said}"
        grids.append(make_grid(chosen, columns, heading=heading))
    return grids


def _ordered(rows: Rows) -> bool:
    """Whether there is one point with several parts whose order was drawn."""
    return len(_points(rows)) == 1 and len(rows) > 1 and any(row["highest_share"] is not None for row in rows)


def _pairs(frame: pd.DataFrame, rows: Rows, part: str) -> list[Grid]:
    """Return paired differences and the order of the parts where there is but one point; JSON holds those of all."""
    if len(_points(rows)) > 1 or len(rows) < 2:
        return []
    pairs = make_grid(frame.attrs["pairs"], PAIRS, heading="Paired differences")
    if not _ordered(rows):
        return [pairs]
    order = [{**row, "part": row[part], "support": []} for row in rows]
    return [
        pairs,
        make_grid(order, (replace(ORDER[0], header=part), *ORDER[1:]), heading="Place in the order"),
    ]


#: Command -> how its frame is shown to people.
SPLIT_LAYOUTS: dict[str, Callable[[Any], Document]] = {
    "domains": domains_document,
    "sources": sources_document,
}
