"""What may be fitted together: losses of one tokenizer, evaluation set, domain and source, at endpoints only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._canonical import arch_slices
from smelt_scaling._groups import group_rows
from smelt_scaling._schema import BITS_PER_BYTE, NATS, counted

__all__ = ["apart", "measured_on", "problems_together"]

Columns = Mapping[str, Any]

#: Columns of which one surface knows one value: a loss per token means nothing across them.
ONE_LOSS = {
    "tokenizer": "tokenizers",
    "eval_set": "evaluation sets",
    "domain": "domains",
    "loss_unit": "units of the loss",
}
#: More horizons of one run than anybody decays separately: checkpoints of a curve.
MOST_HORIZONS = 20
#: The same for design points of tables that name no runs, where a ladder may be longer.
MOST_UNNAMED = 100
#: Rows that exports of sampled histories return, and how far from 500 they may be.
SAMPLED = ((490, 530), (1000, 1000), (10000, 10000))


def measured_on(columns: Columns) -> dict[str, tuple[str, ...]]:
    """Return the tokenizers, evaluation sets, domains and loss units that the rows name, sorted; blanks say nothing.

    Examples
    --------
    >>> from smelt_scaling._text import Text
    >>> measured_on({"tokenizer": Text.of(["gpt2", "", "gpt2"])})
    {'tokenizer': ('gpt2',)}
    """
    named = {name: columns[name].present() for name in ONE_LOSS if name in columns}
    return {name: tuple(v for v in values if v) for name, values in named.items() if any(values)}


def apart(one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return in what the losses of two architectures differ, so that they cannot be compared.

    A loss per token depends on the tokenizer; bits per byte do not.

    Parameters
    ----------
    one, other : mapping
        What `measured_on` returns of each.

    Examples
    --------
    >>> apart({"tokenizer": ("gpt2",)}, {"tokenizer": ("llama3",)})
    ['tokenizer']
    >>> per_byte = {"loss_unit": ("bits/byte",)}
    >>> apart({"tokenizer": ("gpt2",), **per_byte}, {"tokenizer": ("llama3",), **per_byte})
    []
    """
    units = [named.get("loss_unit", (NATS,)) for named in (one, other)]
    if units[0] != units[1]:
        return ["loss_unit"]
    ignored = {"tokenizer"} if units[0] == (BITS_PER_BYTE,) else set()
    return [name for name in sorted((one.keys() & other.keys()) - ignored) if one[name] != other[name]]


def problems_together(columns: Columns, source: str) -> list[str]:
    """Return one line per reason why the rows of an architecture are no set of endpoints of one law.

    Parameters
    ----------
    columns : mapping of str to (n,) array or Text
        Schema columns in canonical order.
    source : str
        The file, first in each line.
    """
    problems: list[str] = []
    for arch, rows in arch_slices(columns).items():
        own = {name: values[rows] for name, values in columns.items()}
        for name, values in measured_on(own).items():
            if len(values) > 1:
                shown = ", ".join(values[:3]) + (", ..." if len(values) > 3 else "")
                problems.append(
                    f"{source}: column {name}, {len(values)} {ONE_LOSS[name]} of {arch} ({shown}): their losses "
                    f"are not comparable; keep the rows of one {name} and fit again"
                )
        if not problems:
            problems += _stacked_sources(own, arch, source)
            problems += _trajectories(own, arch, source)
    return problems


def _stacked_sources(own: Columns, arch: str, source: str) -> list[str]:
    """Find the same run under several sources: evaluations that were stacked, no further runs."""
    names = own["source"].present() if "source" in own else []
    if len(names) < 2:
        return []
    keys = [
        name for name in ("run", "scale", "cell", "trunk", "seed", "F", "S", "D", "N", "C") if name in own
    ]
    if group_rows(own, keys).sizes().min() < len(names):
        return []
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return [
        f"{source}: column source, {len(names)} sources of {arch} ({shown}) hold the same runs: each run would count "
        f"{len(names)} times; keep the rows of one source and fit again"
    ]


def _trajectories(own: Columns, arch: str, source: str) -> list[str]:
    """Find curves given as endpoints: more horizons of one run than decays."""
    if "phase" in own or "D" not in own:
        return []
    unit = next((name for name in ("run", "trunk") if name in own), None)
    keys = (
        [unit]
        if unit
        else [name for name in ("scale", "cell", "F", "S", "N", "N_act", "seed") if name in own]
    )
    if not keys:
        return []
    points = group_rows(own, keys)
    point = points.number()
    horizons = np.bincount(point[group_rows(own, ["D"], points).firsts()])
    long = horizons > (MOST_HORIZONS if unit else MOST_UNNAMED)
    if not long.any():
        return []
    worst = int(horizons.argmax())
    first = point == worst
    what = f"{unit} {own[unit][first][0]}" if unit else f"one setting ({', '.join(keys)})"
    sampled, many = _sampled(own, first), int(long.sum())
    return [
        f"{source}: {counted(many, unit or 'setting')} of {arch} with more than "
        f"{MOST_HORIZONS if unit else MOST_UNNAMED} horizons ({what}: {int(horizons[worst])}{sampled}): curves, no "
        "endpoints; select one endpoint per run and horizon first (smelt-scaling endpoints)"
    ]


def _sampled(own: Columns, rows: NDArray[np.bool_]) -> str:
    """Say so when the rows of a run look like an export that returns a sample of the history."""
    count = int(rows.sum())
    if not any(low <= count <= high for low, high in SAMPLED):
        return ""
    axis = "step" if "step" in own and not np.isnan(own["step"][rows]).any() else "D"
    gaps = np.diff(np.sort(own[axis][rows]))
    if len(gaps) and gaps.max() - gaps.min() > 1e-6 * gaps.max():
        return f", {count} rows at uneven {axis}: a sampled history, which may lack the last row; export all of it"
    return ""
