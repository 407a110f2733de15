"""How tests of shared laws, and laws compared on sizes left out, are shown to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_number, format_percent
from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.document import Grid
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare_laws_grids"]

TESTS = (
    Column(key="hypothesis", header="hypothesis"),
    Column(key="constraints", header="saves", kind="printed"),
    Column(key="p_text", header="p", kind="printed"),
    Column(key="p_holm", header="p (Holm)", kind="number", digits=2),
    Column(key="gain", header="gain", kind="percent"),
    Column(key="naive", header="naive p (its size)", kind="printed", redundant=True),
    Column(key="why", header="no p because", optional=True),
)
GAMMA = (
    Column(key="gamma_target", header="target", kind="number"),
    Column(key="gamma_reference", header="reference", kind="number"),
    Column(key="difference", header="difference", kind="number", digits=2, interval=True),
    Column(key="z", header="z", kind="number", digits=2, optional=True),
    Column(key="verdict", header=""),
    Column(key="why", header="because", optional=True),
)
NOISE = (
    Column(key="arch", header="arch"),
    Column(key="run", header="of runs", kind="printed"),
    Column(key="cell", header="of cells", kind="printed"),
    Column(key="cell_share", header="share of cells", kind="percent"),
    Column(key="pair_correlation", header="correlation of cells", kind="number", digits=2),
)
LAWS = (
    Column(key="law", header="law"),
    Column(key="parameters", header="par.", kind="printed"),
    Column(key="bias", header="mean", kind="printed"),
    Column(key="rms", header="rms", kind="printed"),
    Column(key="against", header="p (Holm)", kind="printed", absent=""),
    Column(key="verdict", header=""),
    Column(key="why", header="not tried", optional=True),
)


def compare_laws_grids(frame: pd.DataFrame) -> tuple[Grid, ...]:
    """Describe the tests, the difference of gamma, the noise behind the tests, and laws by their errors.

    Parameters
    ----------
    frame : DataFrame
        What `compare_laws` returned.
    """
    rows, settings, attrs = plain_rows(frame), frame.attrs["settings"], frame.attrs
    separate = next((row["gain_separate"] for row in rows if row["gain_separate"] is not None), None)
    beside = "" if separate is None else f"; gain {format_percent(separate)} without any"
    sizes = [row["chi2_size"] for row in rows if row["chi2_size"] is not None]
    naive = "; naive: chi-square, and how often it rejects at 5 % what is true" if sizes else ""
    grids = [
        make_grid(
            [_test(row) for row in rows],
            TESTS,
            heading=f"What {settings['target']} and {settings['reference']} share: p by {settings['replicates']} "
            f"simulated data sets each{beside}{naive}",
        ),
        make_grid(
            [_why(row) for row in attrs["gamma"]],
            GAMMA,
            heading=f"Exponent gamma of the frontiers, {100 * settings['level']:g} % interval from paired draws",
        ),
    ]
    if attrs["noise"]:
        unit = "relative" if attrs["noise"][0]["relative"] else settings["loss_unit"]
        heading = f"Standard deviations behind the tests ({unit}), by {settings['unit']}"
        grids.append(make_grid([_noise(row) for row in attrs["noise"]], NOISE, heading=heading))
    for scheme in dict.fromkeys(row["scheme"] for row in attrs["laws"]):
        mine = [row for row in attrs["laws"] if row["scheme"] == scheme]
        shown = next((row for row in mine if row["cells"]), None)
        over = "" if shown is None else f": {shown['cells']} cells of {shown['sizes']} sizes"
        heading = f"Error of predicted losses, {scheme}{over}"
        grids.append(make_grid([_law(row) for row in mine], LAWS, heading=heading))
    return tuple(grids)


def _why(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"why": row["reason"] or None}


def _test(row: dict[str, Any]) -> dict[str, Any]:
    p = row["p"] is not None
    size = "" if row["chi2_size"] is None else f" ({format_percent(row['chi2_size'], 0)})"
    return _why(row) | {
        "p_text": f"{row['p']:.3f} ± {row['p_error']:.3f}" if p else None,
        "naive": f"{format_number(row['p_chi2'], 2)}{size}" if p else None,
    }


def _noise(row: dict[str, Any]) -> dict[str, Any]:
    def shown(value: float | None) -> str | None:
        if value is None:
            return None
        return format_percent(value, 2) if row["relative"] else format_number(value, 3)

    return row | {"run": shown(row["run_sd"]), "cell": shown(row["cell_sd"])}


def _law(row: dict[str, Any]) -> dict[str, Any]:
    known = row["rms_error"] is not None
    return _why(row) | {
        "bias": format_percent(row["mean_error"], 2, sign=True) if known else None,
        "rms": format_percent(row["rms_error"], 2) if known else None,
        "against": None if row["p_holm"] is None else format_number(row["p_holm"], 2),
    }
