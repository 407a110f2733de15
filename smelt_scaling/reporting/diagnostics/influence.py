"""What leaving things out does, for people: parts, the rollout, and the endpoints that stand out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_percent
from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.diagnostics.sensitivity import points_text
from smelt_scaling.reporting.document import Grid
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["influence_grids"]

#: Kind of part -> heading of its grid.
PARTS = {
    "cell": "Each cell left out",
    "size": "Each size left out",
    "horizon": "Each horizon left out",
    "sparsity": "Each sparsity tier left out",
}
#: Endpoints that are shown though none stands out, and the most cells and endpoints that are; csv and json have all.
AT_LEAST, AT_MOST = 3, 20

ERRORS = (
    Column(key="mean", header="mean error there", kind="printed"),
    Column(key="rms", header="rms", kind="printed"),
    Column(key="ratio", header="rms there / in fit", kind="number", digits=3),
)
LEFT_OUT = (
    Column(key="part", header="without"),
    Column(key="rows", header="rows", kind="printed"),
    Column(key="gain", header="compute saved", kind="percent", optional=True),
    Column(key="points", header="change", kind="printed", optional=True),
    *ERRORS,
)
ROLLOUT = (
    Column(key="stop", header="sizes up to"),
    Column(key="predicted", header="predict"),
    Column(key="mean", header="mean error", kind="printed"),
    Column(key="ratio", header="rms there / in fit", kind="number", digits=3),
    Column(key="budget", header="at budget", kind="quantity", optional=True),
    Column(key="gain_predicted", header="gain foretold", kind="percent", optional=True),
    Column(key="gain_fitted", header="with all", kind="percent", optional=True),
)
ROWS = (
    Column(key="arch", header="arch"),
    Column(key="endpoint", header="endpoint"),
    Column(key="loss", header="loss", kind="number"),
    Column(key="fitted", header="fitted", kind="number"),
    Column(key="distance", header="sd off", kind="number", digits=2),
    Column(key="dffits", header="DFFITS", kind="number", digits=2),
    Column(key="points", header="change of gain without it", kind="printed", optional=True),
    Column(key="flag", header="", absent="", redundant=True),
)


def influence_grids(frame: pd.DataFrame) -> tuple[Grid, ...]:
    """Return the grids of what `influence` returned; each architecture alone is in csv and json.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> from smelt_scaling.analyses.diagnostics import influence
    >>> grids = influence_grids(influence(fit(example_endpoints(), bootstrap=0)))
    >>> [grid.heading.partition(",")[0] for grid in grids[1:5]]
    ['Each size left out', 'Each horizon left out', 'Each sparsity tier left out', 'Stopping at a size']
    """
    rows = [_shown(row) for row in plain_rows(frame)]
    both = any(row["arch"] == "both" for row in rows)
    grids = []
    for by, heading in PARTS.items():
        own = [row for row in rows if row["by"] == by and (row["arch"] == "both" or not both)]
        if own:
            heading += ", of both architectures" if both else ""
            if len(own) > AT_MOST:
                heading += f": the {AT_MOST} of {len(own)} that matter most"
                most = sorted(own, key=_weight)[-AT_MOST:]
                own = [row for row in own if row in most]
            grids.append(_explained(make_grid(own, LEFT_OUT, heading=heading), own))
    steps = [_shown(row) for row in frame.attrs["rollout"] if row["arch"] == "both" or not both]
    if steps:
        heading = "Stopping at a size, and predicting the next"
        grids.append(_explained(make_grid(steps, ROLLOUT, heading=heading), steps))
    singles = [_shown(row) for row in frame.attrs["row_influence"]]
    flagged = [row for row in singles if row["flag"]]
    heading = f"Endpoints that stand out: {len(flagged)} of {len(singles)}"
    if not flagged:
        heading += f"; the {min(AT_LEAST, len(singles))} that move the fit most"
    elif len(flagged) > AT_MOST:
        heading += f"; the first {AT_MOST}"
    grids.append(make_grid(flagged[:AT_MOST] or singles[:AT_LEAST], ROWS, heading=heading))
    return tuple(grids)


def _weight(row: dict[str, Any]) -> float:
    """Return how much a part matters: what it does to the gain, or how far off it is predicted."""
    size = row["change"] if row["change"] is not None else row["mean_error"]
    return abs(float(size or 0.0))


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    mean, rms = row.get("mean_error"), row.get("rms_error")
    return row | {
        "points": points_text(row.get("change")),
        "mean": None if mean is None else format_percent(mean, 2, sign=True),
        "rms": None if rms is None else format_percent(rms, 2),
    }


def _explained(grid: Grid, rows: list[dict[str, Any]]) -> Grid:
    return replace(
        grid, remarks=tuple(row["reason"] or "" for row in rows), remark_header="why there is none"
    )
