"""What the comparison of laws says about a headline gain, in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smelt_scaling.analyses.diagnostics.findings import Finding
from smelt_scaling.analyses.diagnostics.gamma import RESOLVED
from smelt_scaling.analyses.diagnostics.law_candidates import STUDY
from smelt_scaling.analyses.diagnostics.law_errors import BETTER, TOO_FEW
from smelt_scaling.formatting import format_percent

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare_laws_findings"]

PART = "laws"
#: Five points, a quarter of the published interval at 1e21 FLOPs: a gain that moves by more between exponents that the
#: data cannot choose from depends on the choice.
MATERIAL = 0.05


def compare_laws_findings(frame: pd.DataFrame) -> list[Finding]:
    """Return one finding each on gamma, shared exponents, idle parameters, and other laws.

    Examples
    --------
    >>> from smelt_scaling import example_endpoints, fit
    >>> from smelt_scaling.analyses.diagnostics.law_comparison import compare_laws
    >>> frame = compare_laws(fit(example_endpoints(), bootstrap=0), replicates=39)
    >>> [(one.check, one.verdict) for one in compare_laws_findings(frame)][2]
    ('parameters that do nothing', 'unknown')
    """
    settings = frame.attrs["settings"]
    rows: dict[str, dict[str, Any]] = {str(row["question"]): row for _, row in frame.T.to_dict().items()}
    alpha = 1 - settings["level"]
    return [
        _gamma(frame.attrs["gamma"][0], settings),
        _exponents(rows["exponents"], alpha),
        _idle([rows["no_sparsity"], rows["one_exponent"]], alpha, settings["replicates"]),
        _laws(frame.attrs["laws"]),
    ]


def _finding(check: str, value: str, verdict: Any, remedy: str = "") -> Finding:
    return Finding(part=PART, check=check, value=value, verdict=verdict, remedy=remedy)


def _gamma(row: dict[str, Any], settings: dict[str, Any]) -> Finding:
    check = "is one frontier steeper"
    if row["difference"] is None:
        return _finding(check, "no gamma to compare", "unknown", row["reason"])
    value = f"gamma of {row['target']} {row['difference']:+.4f}"
    if row["difference_lo"] is None:
        return _finding(check, f"{value}, no interval", "unknown", f"fit with draws ({row['reason']})")
    value += f" [{row['difference_lo']:+.4f}, {row['difference_hi']:+.4f}], {row['verdict']}"
    if row["verdict"] == RESOLVED:
        return _finding(check, value, "fine")
    return _finding(
        check, value, "unknown", "call neither frontier steeper; more cells, over a wider range, would tell"
    )


def _exponents(row: dict[str, Any], alpha: float) -> Finding:
    check = "does each need exponents of its own"
    if row["p"] is None:
        return _finding(check, "not tested", "unknown", row["reason"])
    shown = f"p = {row['p']:.2g} that {row['hypothesis']}"
    if row["p_holm"] < alpha:
        return _finding(check, shown, "fine")
    if row["gain"] is None or row["gain_separate"] is None:
        return _finding(check, shown, "unknown", "show what follows with shared exponents beside the result")
    value = (
        f"{shown}; gain {format_percent(row['gain'])} if so, {format_percent(row['gain_separate'])} if not"
    )
    moved = abs(row["gain"] - row["gain_separate"]) > MATERIAL
    return _finding(
        check,
        value,
        "caution" if moved else "unknown",
        "the data do not choose: report the gain under shared exponents beside it",
    )


def _idle(rows: list[dict[str, Any]], alpha: float, replicates: int) -> Finding:
    check = "parameters that do nothing"
    tested = [row for row in rows if row["p"] is not None]
    if not tested:
        return _finding(
            check, "not tested", "unknown", "; ".join(dict.fromkeys(row["reason"] for row in rows))
        )
    value = ", ".join(f"{row['hypothesis']}: p = {row['p']:.2g}" for row in tested)
    idle = [row for row in tested if row["p_holm"] >= alpha]
    if not idle:
        return _finding(check, value, "fine")
    if all(row["p"] * (replicates + 1) < 1.5 for row in idle):  # nothing simulated comes near
        return _finding(check, value, "unknown", "simulate more data sets")
    names = " and ".join(row["hypothesis"] for row in idle)
    return _finding(
        check, value, "caution", f"the data allow {names}: fit the simpler law and compare the gain"
    )


def _laws(rows: list[dict[str, Any]]) -> Finding:
    check = "does another law predict sizes left out better"
    own = [row for row in rows if row["law"] == STUDY]
    if all(row["reason"] for row in own):
        return _finding(check, "not tried", "unknown", own[0]["reason"])
    better = list(dict.fromkeys(row["law"] for row in rows if row["verdict"] == BETTER))
    shown = next(row for row in own if not row["reason"])
    value = f"rms error {format_percent(shown['rms_error'], 2)} on {shown['sizes']} sizes left out"
    if better:
        return _finding(
            check,
            f"{value}; better: {', '.join(better)}",
            "caution",
            "report the gain under that law as well",
        )
    others = len({row["law"] for row in rows if not row["reason"]}) - 1
    if others and {row["verdict"] for row in rows if row["verdict"]} == {TOO_FEW}:
        told = f"{value}; too few cells for any of {others} others to be called better"
        return _finding(check, told, "unknown", "add cells: sign flips of them are all there is to test with")
    return _finding(check, f"{value}; none of {others} others better beyond noise", "fine")
