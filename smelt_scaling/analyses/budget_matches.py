"""Models that cost what a reference costs, for one loop or a whole family of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smelt_scaling.accounting import Lengths, Loop, get_convention
from smelt_scaling.accounting.budgets import budgets_of
from smelt_scaling.accounting.match import Matches, Search, Tolerance, find_matches, middle_span
from smelt_scaling.accounting.toml_files import to_toml
from smelt_scaling.analyses.budget_ledger import SEQUENCE_LENGTH
from smelt_scaling.analyses.frames import Carried
from smelt_scaling.analyses.models import NamedModel, long_documents, open_model
from smelt_scaling.errors import Note, UsageError, info, merge_notes, warning
from smelt_scaling.formatting import format_percent

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["match_budgets", "parse_span"]


def parse_span(text: str, layers: int) -> tuple[int, int] | None:
    """Return first and last layer of a span, from 0; None for no layer.

    Parameters
    ----------
    text : str
        ``middle:0.5`` (a share of the layers), ``middle:6`` (so many layers), or ``3-8`` (counted from 0, both
        included).
    layers : int
        Of the model.

    Examples
    --------
    >>> parse_span("middle:0.5", 12), parse_span("middle:6", 12), parse_span("3-8", 12), parse_span("middle:0", 12)
    ((3, 8), (3, 8), (3, 8), None)
    """
    wrong = UsageError(f"span {text!r}: write middle:0.5, middle:6, or 3-8 (layers are 0 to {layers - 1})")
    place, _, size = text.partition(":")
    try:
        if place == "middle":
            share = float(size)
            if share == 0:
                return None
            if share < 1 or "." in size:
                return middle_span(layers, share)
            if share > layers:
                raise wrong
            return middle_span(layers, share / layers)
        first, last = (int(part) for part in text.split("-"))
    except ValueError:
        raise wrong from None
    if not 0 <= first <= last < layers:
        raise wrong
    return first, last


def match_budgets(
    reference: str | NamedModel,
    *,
    loops: Sequence[int] = (2,),
    spans: Iterable[str] = ("middle:0.5",),
    layers: int | None = None,
    tolerance: Tolerance | None = None,
    search: Search | None = None,
    convention: str = "smelt",
    documents: Lengths | None = None,
    seq_len: int | None = None,
    top: int = 5,
    pareto: bool = False,
) -> pd.DataFrame:
    """Find shapes that cost what a reference costs in FLOPs per token, parameters and key-value cache.

    Parameters
    ----------
    reference : str or NamedModel
        See `open_model`.
    loops : sequence of int
        How often the span runs; 1 matches without a loop.
    spans : iterable of str
        Spans that loop, each as `parse_span` takes it; every loop is combined with every span.
    layers : int, optional
        Physical layers of the match; as many as the reference by default.
    tolerance, search : optional
        How close, and what can be built.
    convention : str
        How FLOPs are counted.
    documents : Lengths, optional
        Documents of training; those of the source by default, else one sequence.
    seq_len : int, optional
        Tokens of a sequence, for conventions that count sequences; 4096 by default.
    top : int
        Shapes to show of every loop and span, the best first.
    pareto : bool
        Show undominated shapes only.

    Returns
    -------
    DataFrame
        One row per shape: ``loops, first, last, executed_layers, rank, hidden, heads, kv_heads, head_dim, experts,
        width``, the relative deviations ``flops, params, kv`` and the ``worst``, ``pareto, F, N, N_act, kv_elements``
        and ``toml``, the whole model. Ranks go by the worst deviation, then the second, then the third. ``.attrs``
        holds ``notes``, ``settings`` and ``searches``: per loop and span how many shapes were counted, how many are
        within tolerance, the floor of the cache that heads of the search allow, and the nearest shape.

    Raises
    ------
    DataError, UsageError
        As `open_model` and `find_matches` do.

    Examples
    --------
    >>> frame = match_budgets("smelt:baseline/200M/95%", search=Search(head_dim_multiple=4), top=1)
    >>> frame[["hidden", "heads", "kv_heads", "head_dim", "experts", "width"]].values.tolist()
    [[832, 10, 2, 84, 264, 488]]
    """
    import pandas as pd

    one = reference if isinstance(reference, NamedModel) else open_model(reference)
    if top < 1:
        raise UsageError(f"top {top}: must be 1 or more")
    if min(loops) < 1:
        raise UsageError(f"loops {min(loops)}: must be 1 or more; 1 is no loop")
    seen = documents or one.lengths
    notes: list[Note] = list(one.notes)
    if get_convention(convention).over != "documents" or seen is None:
        seen = Lengths.of(seq_len or SEQUENCE_LENGTH)
        if seq_len is None:
            notes.append(
                info(
                    "sequence_length",
                    f"sequences of {SEQUENCE_LENGTH} tokens are assumed; state them with --seq-len",
                )
            )
    else:
        notes += long_documents(seen, seq_len or SEQUENCE_LENGTH)
    seen = Lengths.of(seen.mean)
    depth = one.config.layers if layers is None else layers
    rows, searches = [], []
    for times, span in dict.fromkeys(
        (times, parse_span(text, depth) if times > 1 else None) for text in spans for times in loops
    ):
        loop = None if span is None or times == 1 else Loop(first=span[0], last=span[1], times=times)
        found = find_matches(
            one.config,
            loop=loop,
            layers=layers,
            tolerance=tolerance,
            search=search,
            convention=convention,
            lengths=seen,
        )
        label = _label(loop)
        if not len(found):
            notes.append(_none(found, label, (tolerance or Tolerance()).kv))
        searches.append(_search_row(found, loop, depth))
        rows += _rows(found, loop, convention, seen, top=top, pareto=pareto)
    frame = pd.DataFrame(rows, columns=None if rows else _COLUMNS)
    for name in ("first", "last", "experts"):  # whole numbers or None, which pandas would make floats
        frame[name] = pd.Series([row[name] for row in rows], dtype=object)
    goal = budgets_of(one.config, convention, seen)
    allowed = tolerance or Tolerance()
    frame.attrs = {
        "notes": [note.to_dict() for note in merge_notes(notes)],
        "settings": {
            "reference": one.name,
            "convention": convention,
            "document_mean": seen.mean,
            "F": goal.flops,
            "N": goal.parameters,
            "kv_elements": goal.cached,
            "tolerance": {"flops": allowed.flops, "params": allowed.params, "kv": allowed.kv},
            "search": {name: _plain(value) for name, value in vars(search or Search()).items()},
            "top": top,
            "pareto": pareto,
        },
        "searches": Carried(searches),
    }
    return frame


_COLUMNS = (
    *("loops", "first", "last", "executed_layers", "rank", "hidden", "heads", "kv_heads", "head_dim"),
    *(
        "experts",
        "width",
        "flops",
        "params",
        "kv",
        "worst",
        "pareto",
        "F",
        "N",
        "N_act",
        "kv_elements",
        "toml",
    ),
)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _label(loop: Loop | None) -> str:
    return "no loop" if loop is None else f"layers {loop.first} to {loop.last} run {loop.times} times"


def _none(found: Matches, label: str, allowed: float) -> Note:
    """Say that nothing is within tolerance, and what the nearest shape misses by."""
    if found.nearest is None:
        what = (
            "no head geometry of the search meets the key-value cache, the closest is off by "
            f"{format_percent(found.kv_floor, 2)}: widen --tolerance kv, or allow a smaller --head-dim-multiple"
            if found.kv_floor > allowed
            else "no number of experts or hidden width of the search can be built: allow smaller multiples"
        )
        return warning("no_match", f"{label}: {what}")
    flops, params, kv = (format_percent(value, 2, sign=True) for value in found.nearest)
    return warning(
        "no_match",
        f"{label}: none of {found.searched:,} shapes is within tolerance; the nearest is off by {flops} in FLOPs, "
        f"{params} in parameters, {kv} in cache",
    )


def _search_row(found: Matches, loop: Loop | None, layers: int) -> dict[str, Any]:
    return {
        **_loop_cells(loop, layers),
        "searched": found.searched,
        "within": len(found),
        "undominated": int(found.pareto.sum()),
        "kv_floor": found.kv_floor,
        "nearest": None if found.nearest is None else list(found.nearest),
    }


def _loop_cells(loop: Loop | None, layers: int) -> dict[str, Any]:
    extra = 0 if loop is None else loop.span * (loop.times - 1)
    return {
        "loops": 1 if loop is None else loop.times,
        "first": None if loop is None else loop.first,
        "last": None if loop is None else loop.last,
        "executed_layers": layers + extra,
    }


def _rows(
    found: Matches, loop: Loop | None, convention: str, seen: Lengths, *, top: int, pareto: bool
) -> list[dict[str, Any]]:
    chosen = [row for row in range(len(found)) if found.pareto[row] or not pareto][:top]
    rows = []
    for row in chosen:
        config = found.shapes.config(row)
        own = budgets_of(config, convention, seen)
        experts = config.experts
        rows.append(
            {
                **_loop_cells(loop, config.layers),
                "rank": row + 1,
                "hidden": config.hidden,
                "heads": config.heads,
                "kv_heads": config.kv_heads,
                "head_dim": config.head_dim,
                "experts": None if experts is None else experts.count,
                "width": config.d_ff if experts is None else experts.width,
                "flops": float(found.flops[row]),
                "params": float(found.params[row]),
                "kv": float(found.kv[row]),
                "worst": float(abs(found.deviations[row]).max()),
                "pareto": bool(found.pareto[row]),
                "F": own.flops,
                "N": own.parameters,
                "N_act": own.active,
                "kv_elements": own.cached,
                "toml": to_toml(replace(config, name=f"match of {found.reference.name}")),
            }
        )
    return rows
