"""The whole diagnosis of one gain: every part run, its findings first, its tables behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from smelt_scaling.analyses.diagnostics.findings import Finding
from smelt_scaling.analyses.diagnostics.headline import headline_of
from smelt_scaling.analyses.frames import Carried, finish_frame, notes_of
from smelt_scaling.analyses.gain import ce_gain
from smelt_scaling.analyses.side import IntervalKind
from smelt_scaling.analyses.view import view_of
from smelt_scaling.errors import Note, SmeltScalingError, UsageError
from smelt_scaling.formatting import UNREACHABLE, format_interval, format_percent
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PARTS", "Part", "diagnose", "part_frame", "tables_of"]

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of a diagnosis.

    Parameters
    ----------
    run, findings : str
        ``module:function`` of this package: from a study to a frame, and from that to lines.
    says : str
        What it answers, in a few words.
    takes_interval : bool
        Whether it takes ``interval``; all take ``level`` but the fairness of budgets.
    """

    run: str
    findings: str
    says: str
    takes_level: bool = True
    takes_interval: bool = True


#: The parts, in the order in which a reader asks.
PARTS: dict[str, Part] = {
    "fairness": Part(
        run="fairness:budget_fairness",
        findings="fairness:budget_fairness_findings",
        says="whether the budgets were equal",
        takes_level=False,
        takes_interval=False,
    ),
    "sensitivity": Part(
        run="panel:sensitivity",
        findings="panel_findings:sensitivity_findings",
        says="how the gain moves with choices",
    ),
    "influence": Part(
        run="left_out:influence",
        findings="left_out_findings:influence_findings",
        says="what leaving things out does, and what the law predicts of them",
    ),
    "noise": Part(
        run="noise:noise_anatomy",
        findings="noise_findings:noise_anatomy_findings",
        says="how the noise looks",
        takes_interval=False,
    ),
    "identifiability": Part(
        run="identified:identifiability",
        findings="identified_findings:identifiability_findings",
        says="what the design identifies",
        takes_interval=False,
    ),
    "laws": Part(
        run="law_comparison:compare_laws",
        findings="law_findings:compare_laws_findings",
        says="what the architectures share, and which law predicts",
    ),
}


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(
        import_module(f"smelt_scaling.analyses.diagnostics.{module}"), function
    )
    return found


def diagnose(
    study: Study,
    *,
    target: str | None = None,
    reference: str | None = None,
    budget: float | None = None,
    sparsity: float | None = None,
    parts: Iterable[str] | None = None,
    level: float = 0.95,
    interval: IntervalKind = "percentile",
    progress: Callable[[str, int, int], None] | None = None,
) -> pd.DataFrame:
    """Ask of one gain what a hostile reader would.

    Parameters
    ----------
    study : Study
        Fitted architectures.
    target, reference, budget, sparsity : optional
        Which gain; see `headline_of`.
    parts : iterable of str, optional
        Some of `PARTS`; all by default.
    level, interval
        Of the interval of the gain, as for `ce_gain`.
    progress : callable, optional
        Called with (part, parts done, parts in all).

    Returns
    -------
    DataFrame
        One row per finding: ``part, check, value, verdict, remedy``. ``.attrs`` holds ``notes``, ``settings``, the
        gain itself as the only row of ``headline``, and ``parts``: name -> its ``rows``, ``settings``, further tables.

    Raises
    ------
    UsageError
        If an argument is invalid.
    FrontierError
        If there is no gain to diagnose: a fit is not certified, or identifies no frontier.
    """
    chosen = tuple(PARTS if parts is None else dict.fromkeys(parts))
    if unknown := [name for name in chosen if name not in PARTS]:
        raise UsageError(f"part {unknown[0]!r} is unknown; choose from {', '.join(PARTS)}")
    if not isinstance(study, Study):
        raise UsageError("a diagnosis fits again, so it needs the runs: give a study, not published surfaces")
    headline, notes = headline_of(study, target=target, reference=reference, budget=budget, sparsity=sparsity)
    asked = {
        "target": headline.target,
        "reference": headline.reference,
        "budget": headline.budget,
        "sparsity": headline.sparsity,
    }
    gain = ce_gain(
        study,
        headline.budget,
        target=headline.target,
        reference=headline.reference,
        sparsities=headline.sparsity,
        level=level,
        interval=interval,
    )
    found = [_gain_finding(gain, level)]
    tables: dict[str, dict[str, Any]] = {}
    told: list[Note] = [*notes, *notes_of(gain)]
    for done, name in enumerate(chosen):
        if progress is not None:
            progress(name, done, len(chosen))
        part = PARTS[name]
        more: dict[str, Any] = {"level": level} if part.takes_level else {}
        if part.takes_interval:
            more["interval"] = interval
        try:
            frame = _function(part.run)(study, **asked, **more)
        except SmeltScalingError as error:  # what this table cannot answer leaves the other parts standing
            line = Finding(
                part=name, check=part.says, value="not available", verdict="unknown", remedy=str(error)
            )
            found.append(line)
            continue
        found += _function(part.findings)(frame)
        told += notes_of(frame)
        tables[name] = tables_of(frame)
    if progress is not None:
        progress("", len(chosen), len(chosen))
    frame = finish_frame(
        [finding.to_dict() for finding in found],
        view_of(study),
        told,
        level=level,
        interval=interval,
        **asked,
        parts=list(chosen),
    )
    frame.attrs["headline"] = _rows(gain)
    frame.attrs["parts"] = tables
    return frame


def tables_of(frame: pd.DataFrame) -> dict[str, Any]:
    """Return everything a part found as plain values: ``rows``, ``settings`` and its further tables."""
    further = {str(key): value for key, value in frame.attrs.items() if isinstance(value, Carried)}
    return {"rows": _rows(frame), "settings": frame.attrs["settings"], **further}


def part_frame(diagnosis: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the frame of one part of a diagnosis.

    Raises
    ------
    UsageError
        If it is not there.
    """
    import pandas as pd

    parts = diagnosis.attrs["parts"]
    if name not in parts:
        raise UsageError(f"part {name!r} is not in this diagnosis; it holds {', '.join(parts) or 'none'}")
    held = dict(parts[name])
    frame = pd.DataFrame(held.pop("rows"))
    frame.attrs = {
        "notes": [],
        **{key: value if key == "settings" else Carried(value) for key, value in held.items()},
    }
    return frame


def _gain_finding(gain: pd.DataFrame, level: float) -> Finding:
    """Return the gain with its interval: the sampling of cells under this law alone."""
    (row,) = gain.to_dict(orient="records")
    point = UNREACHABLE if row["unreachable"] else format_percent(row["gain"])
    lo, hi = row["gain_lo"], row["gain_hi"]
    if lo is None and hi is None and not row["hi_unreachable"]:
        return Finding(
            part="gain",
            check="gain, no interval",
            value=point,
            verdict="unknown",
            remedy="fit again with --bootstrap, or --interval jackknife-t",
        )
    ends = format_interval(lo, hi, lo_unreachable=lo is None, hi_unreachable=row["hi_unreachable"])
    resolved = (lo is not None and lo > 0) or (hi is not None and hi < 0)
    return Finding(
        part="gain",
        check=f"gain, {100 * level:g} % interval of the sampling of cells",
        value=f"{point} {ends}" + (", outside the runs" if row["extrapolated"] else ""),
        verdict="fine" if resolved and not row["extrapolated"] else "caution",
        remedy="; ".join(
            said
            for said, applies in (
                (
                    "not distinguishable from none; smelt-scaling plan says which runs would tell",
                    not resolved,
                ),
                (
                    "ask for a budget and a sparsity that the runs cover, or mark the gain extrapolated",
                    row["extrapolated"],
                ),
            )
            if applies
        ),
    )


def _rows(frame: pd.DataFrame) -> Carried:
    return Carried({str(key): value for key, value in row.items()} for row in frame.to_dict(orient="records"))
