"""How budgets of models are shown to people: a ledger, matched shapes, a planned grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.formatting import format_number, format_percent, format_quantity
from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.document import Document
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["flops_document", "grid_document", "match_document"]

Rows = Sequence[Mapping[str, Any]]

SUMMARY = (Column(key="what", header=""), Column(key="value", header="", kind="printed"))
LEDGER = (
    Column(key="term", header="term"),
    Column(key="parameters", header="parameters", kind="size"),
    Column(key="active", header="active", kind="size"),
    Column(key="training_flops", header="FLOPs/token", kind="quantity"),
    Column(key="flops_share", header="share", kind="percent"),
    Column(key="kv_elements", header="KV elements", kind="printed", redundant=True),
)
TOTALS = (
    Column(key="counted", header="parameters"),
    Column(key="stored", header="stored", kind="printed"),
    Column(key="used", header="active", kind="printed"),
)
CONVENTIONS = (
    Column(key="convention", header="convention"),
    Column(key="F", header="FLOPs/token", kind="quantity"),
    Column(key="F_packed", header="as packed", kind="quantity", absent=""),
    Column(key="over_6n", header="/ 6N", kind="number", digits=4),
    Column(key="includes", header="counts"),
)
CACHE = (
    Column(key="dtype", header="cache in"),
    Column(key="bytes_per_token", header="bytes/token", kind="printed"),
)
RATIOS = (
    Column(key="budget", header="budget"),
    Column(key="model", header="model", kind="quantity"),
    Column(key="reference", header="reference", kind="quantity"),
    Column(key="ratio", header="ratio", kind="number", digits=4),
    Column(key="deviation", header="deviation", kind="printed"),
)
#: A budget whose name leaves its unit open: the cache is also given in bytes, which depend on its type.
_IN_UNITS = {"KV cache": "KV cache, elements per token"}
SHAPES = (
    Column(key="rank", header="#", kind="printed"),
    Column(key="hidden", header="hidden", kind="printed"),
    Column(key="heads_words", header="heads", kind="printed"),
    Column(key="kv_heads", header="kv", kind="printed"),
    Column(key="experts", header="experts", kind="printed", optional=True),
    Column(key="width", header="d_ff", kind="printed"),
    Column(key="flops", header="FLOPs", kind="printed"),
    Column(key="params", header="params", kind="printed"),
    Column(key="kv", header="KV", kind="printed"),
    Column(key="mark", header=""),
)
WINDOW = (
    Column(key="arch", header="arch"),
    Column(key="cells", header="cells", kind="printed"),
    Column(key="endpoints", header="endpoints", kind="printed"),
    Column(key="F", header="F, FLOPs/token", kind="printed"),
    Column(key="D", header="D, tokens", kind="printed"),
    Column(key="C", header="C, FLOPs", kind="printed"),
    Column(key="flops", header="to train", kind="quantity"),
)


def flops_document(frame: pd.DataFrame) -> Document:
    """Describe a ledger: the budgets, the terms, the counts of parameters, the conventions, the cache."""
    settings, (summary,) = frame.attrs["settings"], frame.attrs["summary"]
    facts = [
        {"what": "FLOPs per token, F", "value": format_quantity(summary["F"], 4)},
        {"what": "parameters, N", "value": format_quantity(summary["N"], 4, suffix=True)},
        {"what": "active parameters, N_act", "value": format_quantity(summary["N_act"], 4, suffix=True)},
        {"what": "F / 6 N_act", "value": format_number(summary["F_over_6N"], 4)},
        {"what": "KV cache, bytes per token in bf16", "value": f"{summary['kv_bytes']:,.0f}"},
    ]
    if summary["S"] is not None:
        facts.append({"what": f"S against {summary['control']}", "value": format_percent(summary["S"], 2)})
    rows = [
        row for row in plain_rows(frame) if row["parameters"] or row["training_flops"] or row["kv_elements"]
    ]
    totals = [
        {**row, "stored": f"{row['parameters']:,}", "used": f"{row['active']:,}"}
        for row in frame.attrs["totals"]
    ]
    cache = [{**row, "bytes_per_token": f"{row['bytes_per_token']:,.0f}"} for row in frame.attrs["cache"]]
    grids = [
        make_grid(facts, SUMMARY),
        make_grid(rows, LEDGER, heading=f"Ledger, convention {settings['convention']}"),
    ]
    if ratios := frame.attrs["ratios"]:
        told = [
            {
                **row,
                "budget": _IN_UNITS.get(row["budget"], row["budget"]),
                "deviation": format_percent(row["deviation"], 2, sign=True),
            }
            for row in ratios
        ]
        grids.insert(1, make_grid(told, RATIOS, heading=f"Against {settings['compare']}"))
    layers = f"{settings['layers']} layers"
    if settings["executed_layers"] != settings["layers"]:
        layers += f", {settings['executed_layers']} executed"
    return Document(
        title=f"Budgets of {settings['model']}",
        caption=(
            f"{layers}. Training FLOPs per token; {settings['convention']}: {settings['includes']}.",
            _documents(settings),
            "N and N_act without embedding and head; what a looped layer stores counts once, what it computes and "
            "caches at every visit.",
        ),
        grids=(
            *grids,
            make_grid(totals, TOTALS, heading="Parameters by what is counted"),
            make_grid(frame.attrs["conventions"], CONVENTIONS, heading="FLOPs per token by convention"),
            make_grid(cache, CACHE, heading="Key-value cache"),
        ),
    )


def _documents(settings: Mapping[str, Any]) -> str:
    """Say what a token attends to."""
    mean, effective = settings["document_mean"], settings["document_effective"]
    sequence = f"Sequences of {settings['seq_len']} tokens"
    if mean == settings["seq_len"] == effective:
        return f"{sequence}, one document each."
    if mean == effective:
        return f"{sequence}; documents of {mean:g} tokens."
    return (
        f"{sequence}; documents of {mean:.4g} tokens on average, {effective:.4g} around a token, which is what "
        "attention under a mask of documents costs (as packed)."
    )


def match_document(frame: pd.DataFrame) -> Document:
    """Describe matched shapes, a table per loop and span."""
    settings = frame.attrs["settings"]
    rows = plain_rows(frame)
    grids, empty = [], []
    for found in frame.attrs["searches"]:
        key = tuple(found[name] for name in ("loops", "first", "last"))
        own = [
            {
                **row,
                "heads_words": f"{row['heads']} x {row['head_dim']}",
                **{name: format_percent(row[name], 2, sign=True) for name in ("flops", "params", "kv")},
                "mark": "*" if row["pareto"] else "",
            }
            for row in rows
            if tuple(row[name] for name in ("loops", "first", "last")) == key
        ]
        if own:
            grids.append(make_grid(own, SHAPES, heading=_heading(found)))
        else:
            empty.append(f"{_heading(found)}.")
    allowed = settings["tolerance"]
    return Document(
        title=f"Shapes that cost what {settings['reference']} costs",
        caption=(
            f"Reference: {format_quantity(settings['F'], 4)} training FLOPs per token ({settings['convention']}), "
            f"{format_quantity(settings['N'], 4, suffix=True)} parameters without embeddings, "
            f"{settings['kv_elements']:,} cached elements per token.",
            f"Deviations from it, within {_limit(allowed['flops'])} in FLOPs, {_limit(allowed['params'])} in "
            f"parameters and {_limit(allowed['kv'])} in KV cache; ranked by the worst, then the "
            "second, then the third.",
            f"Multiples: {_multiples(settings['search'])}.",
            *empty,
        ),
        grids=tuple(grids),
        footnotes=("* no other shape is as close in all three and closer in one.",) if grids else (),
    )


def _limit(tolerance: float) -> str:
    """Write a tolerance with all its digits: 0.01 % is not 0.0 %."""
    return f"{100 * tolerance:g} %"


def _multiples(search: Mapping[str, Any]) -> str:
    names = {
        "head_dim_multiple": "head",
        "hidden_multiple": "hidden",
        "ffn_multiple": "d_ff",
        "expert_multiple": "experts",
    }
    return ", ".join(f"{word} {search[key]}" for key, word in names.items())


def _heading(found: Mapping[str, Any]) -> str:
    if found["loops"] == 1:
        what = f"No loop, {found['executed_layers']} layers"
    else:
        what = (
            f"Layers {found['first']} to {found['last']} run {found['loops']} times, "
            f"{found['executed_layers']} executed"
        )
    return (
        f"{what}: {found['within']:,} of {found['searched']:,} shapes within tolerance, cache no closer than "
        f"{format_percent(found['kv_floor'], 2)}"
    )


def grid_document(frame: pd.DataFrame) -> Document:
    """Describe the endpoints of a planned study by architecture."""
    settings = frame.attrs["settings"]
    schedule = settings["schedule"]
    rows = [
        {
            **row,
            **{
                name: f"{format_quantity(row[f'{name}_lo'], suffix=name == 'D')} to "
                f"{format_quantity(row[f'{name}_hi'], suffix=name == 'D')}"
                for name in "FDC"
            },
        }
        for row in frame.attrs["windows"]
    ]
    kind = "a trunk with branches" if schedule["kind"] == "wsd" else "runs of their own"
    return Document(
        title=f"Endpoints of {settings['source']}",
        caption=(
            f"{len(frame)} endpoints, {kind} after {', '.join(f'{step:,}' for step in schedule['steps'])} steps of "
            f"{format_quantity(schedule['sequences'] * schedule['sequence_length'], suffix=True)} tokens, decays of "
            f"{format_quantity(schedule['branch_tokens'], suffix=True)}.",
            f"FLOPs per token as {settings['convention']} counts them, documents of {settings['document_mean']:g} "
            "tokens. To train: all of an architecture, a trunk once.",
        ),
        grids=(make_grid(rows, WINDOW),),
    )
