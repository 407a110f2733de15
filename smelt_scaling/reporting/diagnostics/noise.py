"""The noise of a study for people: variance components, checks of the residuals, what pairs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_number
from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.document import Grid
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["noise_anatomy_grids"]

ARCH = Column(key="arch", header="arch")


def _number(key: str, header: str, digits: int = 2, **more: Any) -> Column:
    return Column(key=key, header=header, kind="number", digits=digits, **more)


COMPONENTS = (
    ARCH,
    Column(key="cells", header="labels", kind="printed"),
    _number("sd_between", "between"),
    _number("sd_within", "within"),
    Column(key="icc", header="shared", kind="percent", interval=True),
    Column(key="reason", header="why none", optional=True),
)
BESIDE = (
    ARCH,
    _number("sd_between_anova", "between"),
    _number("sd_within_anova", "within"),
    Column(key="icc_anova", header="shared", kind="percent"),
    _number("cells_p", "p, no cell effects"),
    _number("seed_sd", "sd of repeats", optional=True),
    _number("rmse", "RMSE", 3),
)
CHECKS = (
    ARCH,
    Column(key="horizons", header="neighbouring horizons", kind="printed"),
    _number("horizon_p", "p"),
    _number("skew", "skew"),
    _number("excess_kurtosis", "kurtosis"),
    _number("normality_p", "p, normal"),
    Column(key="linear_zone_share", header="beyond delta", kind="percent"),
    _number("resolution", "loss steps", optional=True),
)
SPREAD = (
    ARCH,
    Column(key="axis", header="along"),
    _number("sd_ratio", "sd, last/first"),
    _number("p_cell", "p by cells"),
    _number("p", "p, rows independent"),
)
PAIRS = (
    Column(key="pair", header="pair"),
    Column(key="cells", header="labels", kind="printed"),
    _number("cell_correlation", "cell effects", 2, interval=True),
    Column(key="rows", header="rows", kind="printed"),
    _number("row_correlation", "rows within cells", 2, interval=True),
)
ERRORS = (
    ARCH,
    Column(key="coefficient", header="coefficient"),
    _number("value", "value", 4),
    _number("se", "se"),
    Column(key="ends", header="t interval", kind="printed"),
    Column(key="bread", header="curvature"),
)


def noise_anatomy_grids(frame: pd.DataFrame) -> tuple[Grid, ...]:
    """Return the tables of `noise_anatomy`."""
    rows, attrs = plain_rows(frame), frame.attrs
    unit = rows[0]["unit"]
    shown = [row | {"reason": row["reason"] or None, "horizons": _horizons(row)} for row in rows]
    grids = [
        make_grid(
            shown,
            COMPONENTS,
            heading=f"Standard deviation of ln(loss) between and within {unit} labels, restricted likelihood; shared: "
            "of the variance",
        ),
        make_grid(
            shown, BESIDE, heading="The same by analysis of variance, and the scatter of repeated settings"
        ),
        make_grid(
            shown,
            CHECKS,
            heading="Residuals: correlation of neighbouring horizons (if independent), shape, share beyond delta",
        ),
    ]
    if attrs["tests"]:
        heading = "Does the spread of the residuals change? (Breusch-Pagan)"
        grids.append(make_grid(attrs["tests"], SPREAD, heading=heading))
    pairs = [row | {"pair": f"{row['first']}, {row['second']}"} for row in attrs["pairs"]]
    if pairs:
        grids.append(make_grid(pairs, PAIRS, heading="Correlation of two architectures' residuals"))
    errors = [
        row | {"ends": None if row["se"] is None else f"{_say(row['lo'])} to {_say(row['hi'])}"}
        for row in attrs["errors"]
    ]
    heading = "Linearised standard errors, rows of a label together (amplitudes: the term at the centre of the runs)"
    grids.append(make_grid(errors, ERRORS, heading=heading))
    return tuple(grids)


def _say(value: float) -> str:
    return format_number(value, 3)


def _horizons(row: dict[str, Any]) -> str | None:
    if row["horizon_correlation"] is None:
        return None
    return f"{row['horizon_correlation']:.2f} ({row['horizon_expected']:.2f})"
