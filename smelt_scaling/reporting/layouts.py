"""What each analysis shows to people: title, caption, columns and footnotes, as declarations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import ABSENT, UNREACHABLE, format_interval, format_quantity
from smelt_scaling.reporting.columns import MARK, Column, make_grid
from smelt_scaling.reporting.document import Document
from smelt_scaling.reporting.fairness import fairness_document, fairness_sentences
from smelt_scaling.reporting.probes import probe_document
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LAYOUTS"]

Rows = Sequence[Mapping[str, Any]]

SPARSITY = Column(key="sparsity", header="S", kind="number", digits=3, optional=True)

GAIN = (
    Column(key="budget", header="budget", kind="quantity", marked=True),
    SPARSITY,
    Column(key="gain", header="compute saved", kind="percent", interval=True, unreachable=True),
    Column(
        key="gain_at_matched_flops", header="by the other FLOPs", kind="percent", interval=True, optional=True
    ),
    Column(key="multiplier", header="multiplier", kind="multiplier", unreachable=True, redundant=True),
    Column(
        key="time_multiplier",
        header="wall-clock",
        kind="multiplier",
        interval=True,
        unreachable=True,
        optional=True,
    ),
    Column(key="reference_budget", header="same loss costs", kind="quantity", unreachable=True),
    Column(key="loss", header="loss", kind="number"),
)

TOGETHER = Column(
    key="gain_together", header="all rows at once", kind="percent", interval=True, redundant=True, absent=""
)

CHOICES = Column(key="other_choices", header="other choices", kind="printed", optional=True)

TURNOVER = (
    SPARSITY,
    Column(key="peak_at", header="peak at", kind="printed", absent="none"),
    Column(key="peak_gain", header="peak saving", kind="percent", absent="none"),
    Column(key="zero_at", header="zero at"),
    Column(key="lost_from", header=f"{UNREACHABLE} from", kind="printed", optional=True, absent="none"),
)

ALLOCATION = (
    Column(key="arch", header="arch"),
    Column(key="budget", header="budget", kind="quantity", marked=True),
    SPARSITY,
    Column(key="flops_per_token", header="F*", kind="quantity"),
    Column(key="tokens", header="D*", kind="size"),
    Column(key="dense_params", header="N*", kind="size", redundant=True),
    Column(key="tokens_per_param", header="D*/N*", kind="number", digits=3, interval=True),
    Column(key="loss", header="loss", kind="number"),
)

REPRODUCTION = (
    Column(key="row", header="row"),
    Column(key="quantity", header="quantity"),
    Column(key="published", header="published", kind="printed"),
    Column(key="recomputed", header="recomputed", kind="printed"),
    Column(key="allowed", header="allowed ±", kind="printed"),
    Column(key="verdict", header="agrees"),
)

_FACTORS = (
    "lies outside the runs of the named architecture, by the factor shown, in "
    "F (FLOPs per token), D (tokens), C (budget), S (as 1 - S) or TPP (tokens per dense parameter)."
)
SUPPORT_FOOTNOTE = f"{MARK} extrapolated: the optimum {_FACTORS}"
POINT_FOOTNOTE = f"{MARK} extrapolated: the requested point {_FACTORS}"


def gain_document(frame: pd.DataFrame) -> Document:
    """Describe a table of gains, with its peaks and zero crossings below."""
    rows = plain_rows(frame)
    target, reference = rows[0]["target"], rows[0]["reference"]
    heading, turned = _turning_rows(frame)
    turning = make_grid(turned, TURNOVER, heading=heading)
    footnotes = _support_footnote(rows)
    if not footnotes and any(MARK in str(value) for item in turned for value in item.values()):
        footnotes.append(f"{MARK} extrapolated: a budget outside the runs.")
    lost = any(row["unreachable"] or row["hi_unreachable"] for row in rows)
    if lost or any(item["unreachable_from"] for item in turned):
        footnotes.append(
            f"{UNREACHABLE}: at no finite compute does {reference} reach that loss of {target}, because its "
            "irreducible loss is higher."
        )
    forced = rows[0].get("forced")
    together = len(rows) > 1 and any(row.get("gain_together_lo") is not None for row in rows)
    columns = (*GAIN[:3], *([TOGETHER] if together else []), CHOICES, *GAIN[3:])
    rows = [row | {"other_choices": _choice_range(row)} for row in rows]
    mark = f"FORCED, NOT COMPARABLE ({forced} differs): " if forced else ""
    return Document(
        title=f"{mark}Compute saved by {target} relative to {reference} at equal loss",
        caption=(
            _interval_sentence(
                frame, any(row["gain_lo"] is not None or row["hi_unreachable"] for row in rows)
            ),
            f"Budgets of {target} and what the same loss costs {reference} in training FLOPs; loss in "
            f"{_loss_unit(frame)}.",
            *_precision_sentence(rows),
            *_choices_sentence(frame),
            *(
                [f"Wall-clock is the time {reference} takes for that loss over the time of {target}."]
                if any(row.get("time_multiplier") is not None for row in rows)
                else []
            ),
            *fairness_sentences(frame.attrs.get("fairness", ())),
        ),
        grids=(make_grid(rows, columns), turning) if turning.rows else (make_grid(rows, columns),),
        footnotes=tuple(footnotes),
    )


def _precision_sentence(rows: Rows) -> list[str]:
    """Say how far other draws would move the ends."""
    errors = [row.get(f"gain_{end}_error") for row in rows for end in ("lo", "hi")]
    known = [error for error in errors if error is not None]
    return [f"Monte-Carlo error of an end: up to {100 * max(known):.1f} points."] if known else []


def _choice_range(row: Mapping[str, Any]) -> str | None:
    """Write the range of a gain over other choices of the estimator; None where it was not asked for."""
    if "sensitivity_lo" not in row:
        return None
    lo, hi = row["sensitivity_lo"], row["sensitivity_hi"]
    return format_interval(lo, hi, lo_unreachable=lo is None, hi_unreachable=hi is None)


def _choices_sentence(frame: pd.DataFrame) -> list[str]:
    """Say what the range over other choices holds."""
    tried = frame.attrs.get("settings", {}).get("sensitivity_choices")
    if tried is None:
        return []
    return [
        f"Other choices: range of the point estimate over {tried} further fits with other Huber thresholds, residuals, "
        "weights or counts of FLOPs."
    ]


def _turning_rows(frame: pd.DataFrame) -> tuple[str, list[dict[str, Any]]]:
    """Return the heading and the rows of the table of peaks, each budget outside the runs of both marked.

    ``frame.attrs["window"]`` holds the budgets that the runs of both cover; None if they are not known.
    """
    heading = "Where the saving peaks and where it changes sign"
    window = frame.attrs.get("window")
    if window is not None:
        low, high = window
        cover = f"the runs cover C from {format_quantity(low)} to {format_quantity(high)}"
        heading += f"; {cover}" if low <= high else "; the runs of the two have no budget in common"
    elif "window" in frame.attrs:
        heading += "; which budgets the runs cover is not known"

    def shown(budget: float) -> str:
        beyond = window is not None and not window[0] <= budget <= window[1]
        return f"{format_quantity(budget)} {MARK}" if beyond else format_quantity(budget)

    rows = []
    for item in frame.attrs.get("turnover", ()):
        peak, lost = item["peak_budget"], item["unreachable_from"]
        rows.append(
            {
                **item,
                "peak_at": None if peak is None else shown(peak),
                "zero_at": ", ".join(map(shown, item["zero_crossings"])) or "none",
                "lost_from": None if lost is None else shown(lost),
            }
        )
    return heading, rows


def allocation_document(frame: pd.DataFrame) -> Document:
    """Describe a table of compute-optimal allocations."""
    rows = plain_rows(frame)
    drawn = any(row["tokens_per_param_lo"] is not None for row in rows)
    ratio = f"{frame.attrs.get('settings', {}).get('flops_per_param', 6.0):g}"
    columns = [
        column if ratio == "6" else Column(**{**vars(column), "header": column.header.replace("6", ratio)})
        for column in ALLOCATION
    ]
    return Document(
        title="Compute-optimal model size, tokens and loss",
        caption=(
            _interval_sentence(frame, drawn),
            f"F* in training FLOPs per token, D* in tokens, N* = F*/{ratio} the dense parameters of equal compute; "
            f"loss in {_loss_unit(frame)}.",
            *(["Intervals of every quantity are in csv and json."] if drawn else []),
        ),
        grids=(make_grid(rows, columns),),
        footnotes=tuple(_support_footnote(rows)),
    )


def prediction_document(frame: pd.DataFrame) -> Document:
    """Describe a table of predicted losses; the columns are those of the law."""
    rows = plain_rows(frame)
    shown = {"F": "quantity", "D": "size", "N": "size", "N_act": "size", "C": "quantity"}
    columns = [Column(key="arch", header="arch", marked=True)]
    for name in map(str, frame.columns):
        if name == "arch":
            continue
        if name == "loss":
            break
        columns.append(Column(key=name, header=name, kind=shown.get(name, "number"), digits=3))  # type: ignore[arg-type]
    columns.append(Column(key="loss", header="loss", kind="number", interval=True))
    drawn = any(row["loss_lo"] is not None for row in rows)
    meaning = "Intervals are those of the surface, the mean of runs like these, not of a single new run."
    if any(row.get("loss_run_lo") is not None for row in rows):
        rows = [row | {"run": _between(row["loss_run_lo"], row["loss_run_hi"])} for row in rows]
        columns.append(Column(key="run", header="one new run", kind="printed"))
        meaning = (
            "Beside the loss the interval of the surface, the mean of runs like these; the last column is that of one "
            "new run, with a cell effect and run noise of its own."
        )
    return Document(
        title=f"Predicted loss in {_loss_unit(frame)}",
        caption=(
            _interval_sentence(frame, drawn),
            meaning if drawn else "The loss is that of the surface, the mean of runs like these.",
        ),
        grids=(make_grid(rows, columns),),
        footnotes=tuple(_support_footnote(rows, POINT_FOOTNOTE)),
    )


def _between(lo: float, hi: float) -> str:
    return format_interval(lo, hi, "number", digits=4)


def reproduction_document(frame: pd.DataFrame) -> Document:
    """Describe published numbers beside recomputed ones, one grid per published table.

    What nothing recomputes is counted and left to the notes; CSV and JSON list it.
    """
    every = plain_rows(frame)
    rows = [
        {
            **row,
            "recomputed": _as_printed(row["recomputed"], row["published"], 6),
            "allowed": _as_printed(row["allowed"], row["published"], 2),
            "verdict": "yes" if row["agrees"] else "NO",
        }
        for row in every
        if row["agrees"] is not None
    ]
    differing = sum(row["verdict"] == "NO" for row in rows)
    by_table: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_table.setdefault(row["table"], []).append(row)
    return Document(
        title=f"Published and recomputed numbers: {len(rows) - differing} agree, {differing} differ",
        caption=(
            f"{len(every) - len(rows)} further printed numbers do not follow from other printed numbers.",
            "Allowed is what the rounding of the printed digits, of the number and of its inputs, explains.",
        ),
        grids=tuple(
            make_grid(chosen, REPRODUCTION, heading=_heading(name, chosen[0]["section"]))
            for name, chosen in by_table.items()
        ),
    )


def _heading(table: str, section: str) -> str:
    return table if section == table else f"{table}: {section}"


def _as_printed(value: float | None, published: Any, digits: int) -> str:
    """Write a number in the unit of the printed one."""
    text = str(published)
    if value is None:
        return ABSENT
    if text.endswith("%"):
        decimals = len(text.removesuffix("%").partition(".")[2]) + 2
        return f"{100 * value:.{decimals}f}%"
    if text.endswith(("K", "M", "B", "T")):
        return format_quantity(value, digits, suffix=True)
    return re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.{digits}g}")


def _support_footnote(rows: Rows, footnote: str = SUPPORT_FOOTNOTE) -> list[str]:
    return [footnote] if any(row["extrapolated"] for row in rows) else []


def _loss_unit(frame: pd.DataFrame) -> str:
    return str(frame.attrs.get("settings", {}).get("loss_unit", "nats/token"))


def _interval_sentence(frame: pd.DataFrame, drawn: bool) -> str:
    settings = frame.attrs.get("settings", {})
    law = settings.get("law", "")
    if not drawn:
        return f"Point estimates, no intervals; law {law}."
    kind = f"{100 * settings['level']:g} % {settings['interval']} intervals"
    return f"{kind}: sampling of cells under this law only; law {law}."


#: Command -> how its frame is shown to people.
LAYOUTS: dict[str, Callable[[Any], Document]] = {
    "ce-gain": gain_document,
    "allocate": allocation_document,
    "predict": prediction_document,
    "reproduce": reproduction_document,
    "probes": probe_document,
    "fairness": fairness_document,
}
