"""What the analyses of lengths, shots and ablations show to people, as declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from smelt_scaling._schema import counted
from smelt_scaling.analyses.ratio_sets import RatioSet
from smelt_scaling.formatting import format_number
from smelt_scaling.reporting.columns import MARK, Column, make_grid
from smelt_scaling.reporting.document import Document
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MEASURED_LAYOUTS"]

RATIOS = (
    Column(key="contrast", header="contrast"),
    Column(key="ratio", header="long/short", kind="number", digits=3),
    Column(key="ratio_words", header="interval", optional=True),
    Column(key="long", header="long", kind="number", digits=3),
    Column(key="short", header="short", kind="number", digits=3),
    Column(key="cells", header="cells", kind="printed"),
    Column(key="documents", header="documents", kind="printed", optional=True),
)

BUCKETS = (
    Column(key="bucket", header="tokens up to", kind="printed"),
    Column(key="loss_drop", header="loss drop", kind="number", digits=3, interval=True),
    Column(key="relative", header="over the mean", kind="number", digits=3),
    Column(key="relative_words", header="interval", optional=True),
    Column(key="share_of_loss", header="of the loss", kind="percent", redundant=True),
)

COMPARISONS = (
    Column(key="pair", header="contrasts"),
    Column(key="ratio_of_ratios", header="ratio of long/short", kind="number", digits=3, interval=True),
)

GAPS = (
    Column(key="k", header="k", kind="printed"),
    Column(key="reference_score", header="reference", kind="percent"),
    Column(key="target_score", header="target", kind="percent"),
    Column(key="gap", header="gap, points", kind="number", digits=3, interval=True),
    Column(key="item_se", header="item se", kind="number", digits=2, optional=True),
)

CHANGES = (
    Column(key="quantity", header="quantity"),
    Column(key="meaning", header="meaning"),
    Column(key="change", header="points", kind="number", digits=3, interval=True),
)

LEVELS = (
    Column(key="level", header="level"),
    Column(key="value", header="value", kind="number", digits=5),
    Column(key="runs", header="runs", kind="printed", redundant=True),
    Column(key="delta", header="difference", kind="number", digits=3, interval=True),
    Column(key="delta_in_noise", header="in sd", kind="number", digits=3, optional=True),
    Column(
        key="multiplier", header="worth", kind="multiplier", unreachable=True, optional=True, redundant=True
    ),
    Column(key="gain", header="compute saved", kind="percent", unreachable=True, optional=True, marked=True),
    Column(key="best_share", header="best in", kind="percent", optional=True),
    Column(key="flops_ratio", header="FLOPs", kind="multiplier", optional=True),
)

TESTS = (
    Column(key="level", header="level"),
    Column(key="against", header="against"),
    Column(key="difference", header="difference", kind="number", digits=3, interval=True),
    Column(key="p_adjusted", header="adjusted P", kind="number", digits=2),
)

SUMMARY = (
    Column(key="what", header="comparison"),
    Column(key="noise_words", header="sd of a run"),
    Column(key="least_difference", header="least detectable", kind="number", digits=3),
    Column(key="best_words", header="best"),
)


def lengths_document(frame: pd.DataFrame) -> Document:
    """Describe gains by document length: the ratio of each contrast, then its buckets."""
    settings = frame.attrs["settings"]
    rows = [_worded(row, "relative") for row in plain_rows(frame)]
    ratios = [_worded(row, "ratio") for row in frame.attrs["ratios"]]
    pairs = [
        {**row, "pair": f"{row['contrast']} / {row['other']}"} for row in frame.attrs.get("comparisons", ())
    ]
    grids = [make_grid(ratios, RATIOS)]
    for name, of_contrast in _by(rows, "contrast"):
        grids.append(make_grid(of_contrast, BUCKETS, heading=name))
    if pairs:
        grids.append(make_grid(pairs, COMPARISONS, heading="Contrasts compared"))
    level = f"{100 * settings['level']:g} %"
    compared = any(pair["ratio_of_ratios_lo"] is not None for pair in pairs)
    return Document(
        title="Loss improvement on long documents over that on short ones",
        caption=(
            f"Long is above {settings['split']:g} tokens. Loss drop (long, short): reference minus target in "
            "nats/token, each cell counting once; over the mean of all buckets.",
            f"{level} intervals: Fieller of {settings['unit']} means"
            + (f"; of contrasts compared, draws of {settings['unit']}s." if compared else ".")
            if any(row["ratio_set"] != "none" for row in ratios)
            else "Point estimates, no intervals.",
        ),
        grids=tuple(grids),
    )


def shots_document(frame: pd.DataFrame) -> Document:
    """Describe gaps by number of examples, each metric with what changes between them."""
    settings = frame.attrs["settings"]
    rows = [_in_points(row, "gap", "item_se") for row in plain_rows(frame)]
    changes = [_in_points(row, "change") for row in frame.attrs["changes"]]
    grids = []
    of_metric = dict(_by(changes, "metric"))
    for name, found in _by(rows, "metric"):
        grids.append(make_grid(found, GAPS, heading=f"{name}: {_rest_on(found[0])}"))
        if name in of_metric:
            grids.append(make_grid(of_metric[name], CHANGES))
    given = any(row["gap_lo"] is not None for row in rows)
    *others, last = settings["resampled"]
    drawn = (
        f"{100 * settings['level']:g} % percentile intervals of {settings['bootstrap']} draws of {', '.join(others)} "
        f"and {last}."
    )
    return Document(
        title=f"Score of {settings['target']} minus {settings['reference']} by number of examples k",
        caption=(
            drawn if given else "Point estimates, no intervals.",
            "Gaps and item se (of the gap from items alone, unpaired) in percentage points; the same tasks at every k.",
        ),
        grids=tuple(grids),
    )


def ablations_document(frame: pd.DataFrame) -> Document:
    """Describe an ablation: each comparison, what is known of it, and the tests of repeated runs."""
    settings = frame.attrs["settings"]
    rows = [{**row, "what": _what(row)} for row in plain_rows(frame)]
    summary = [{**row, **_verdict(row)} for row in frame.attrs["summary"]]
    grids = [make_grid(found, LEVELS, heading=name) for name, found in _by(rows, "what")]
    grids.append(make_grid(summary, SUMMARY, heading="What the noise of a run allows to say"))
    for key, title in (
        ("dunnett", "Dunnett: all against one"),
        ("tukey", "Tukey: two by two"),
    ):
        tests = [{**row, "what": _what(row)} for row in frame.attrs.get(key, ())]
        grids += [make_grid(found, TESTS, heading=f"{title}; {name}") for name, found in _by(tests, "what")]
    known = any(row["best_share"] is not None for row in rows)
    level = f"{100 * settings['level']:g} %"
    worth = (
        f"Compute saved, and what it is worth as a multiplier: of {settings['frontier']} for the same loss, on its "
        f"frontier; law {settings['law']}."
    )
    footnotes = []
    if any(row["extrapolated"] for row in rows):
        footnotes.append(
            f"{MARK} extrapolated: the budget at which {settings['frontier']} reaches the loss lies outside its runs, "
            "by the factor shown."
        )
    return Document(
        title=f"Levels compared with {settings['against'] or 'the first of each'}",
        caption=(
            *([f"{level} intervals hold the noise of runs alone, each by itself."] if known else []),
            *([worth] if settings["frontier"] else []),
            *(
                [
                    "Best in: share of repeats in which the level would come out best, were runs to scatter by that sd."
                ]
                if known
                else []
            ),
        ),
        grids=tuple(grids),
        footnotes=tuple(footnotes),
    )


def _by(rows: Iterable[Mapping[str, Any]], key: str) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Group rows by a column, in order."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row[key]), []).append(row)
    return list(found.items())


def _worded(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    words = RatioSet(kind=row[f"{name}_set"], lo=row[f"{name}_lo"], hi=row[f"{name}_hi"]).words()
    return {**row, f"{name}_words": words or None}


def _in_points(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return a row with some columns and their ends in percentage points."""
    keys = [f"{name}{end}" for name in names for end in ("", "_lo", "_hi")]
    return {**row, **{key: round(100 * row[key], 9) for key in keys if row.get(key) is not None}}


def _rest_on(row: Mapping[str, Any]) -> str:
    """Write what the scores of a metric rest on, which is the same at every k."""
    items = "items unknown" if row["n_items"] is None else counted(row["n_items"], "item")
    return f"{counted(row['tasks'], 'task')}, {counted(row['cells'], 'cell')}, {items}"


def _what(row: Mapping[str, Any]) -> str:
    return ", ".join(str(row[key]) for key in ("factor", "group", "metric") if row[key])


def _verdict(row: Mapping[str, Any]) -> dict[str, str]:
    if row["noise"] is None:
        return {"what": _what(row), "noise_words": "not known", "best_words": "not to be said"}
    noise = f"{format_number(row['noise'], 3)} ({row['noise_source']})"
    best = row["best"] or f"one of {', '.join(row['may_be_best'])}"
    return {"what": _what(row), "noise_words": noise, "best_words": best}


#: Command -> how its frame is shown to people.
MEASURED_LAYOUTS: dict[str, Callable[[Any], Document]] = {
    "lengths": lengths_document,
    "shots": shots_document,
    "ablations": ablations_document,
}
