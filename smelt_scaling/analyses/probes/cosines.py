"""Directions: what two visits write, and what happens to them along the attention of one layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling.analyses.probes.arrays import Row, cosine, mean_row, pair_of
from smelt_scaling.analyses.probes.declaration import Columns, Probe, constant
from smelt_scaling.errors import UsageError

__all__ = [
    "ATTENTION_COSINE",
    "STAGES",
    "WRITE_COSINE",
    "attention_cosine_rows",
    "broken_order",
    "write_cosine_rows",
]

Array = NDArray[np.float64]

#: The order in which cosines are expected to fall: queries and keys at least as alike as the input, values less, ...
STAGES: tuple[tuple[str, ...], ...] = (("Q", "K"), ("input",), ("V",), ("PV", "O"))


def _sd(columns: Columns) -> Array:
    return 1.0 / np.sqrt(columns["width"])


def _cosine_probe(**own: Any) -> Probe:
    return Probe(
        unit="cosine",
        low=-1.0,
        high=1.0,
        slack=0.01,
        chance=constant(0.0),
        chance_words="0, with standard deviation 1/√width: random directions",
        spread=_sd,
        **own,
    )


WRITE_COSINE = _cosine_probe(
    name="write_cosine",
    quantity="cosine of what the visits of one layer write",
    control="the first visit of the layer with the second visits of the other layers",
)
ATTENTION_COSINE = _cosine_probe(
    name="attention_cosine",
    quantity="cosine of the visits at each stage of attention",
    control="the cosine of the inputs of that attention",
)


def write_cosine_rows(
    first: ArrayLike, second: ArrayLike, *, part: str, layers: Sequence[Any] | None = None
) -> list[Row]:
    """Measure one document at all looped layers at once.

    Parameters
    ----------
    first, second : array (L, T, H)
        What each visit of each layer adds to the residual stream.
    part : str
        Which component writes.
    layers : sequence, optional
        Names of the layers; 0 to L - 1 by default.

    Returns
    -------
    list of dict
        Two rows per layer: ``part`` as it is, and "<part>, centred", with the mean vector of the document subtracted
        (directions that all tokens share make any two writes alike). Means of cosines, not cosines of means.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((3, 500, 64))
    >>> rows = write_cosine_rows(x, x, part="moe")
    >>> len(rows), round(rows[0]["value"], 6), abs(rows[0]["control"]) < 0.01
    (6, 1.0, True)
    """
    a, b = pair_of("write_cosine", first, second, 3)
    names = range(len(a)) if layers is None else layers
    rows = []
    for label, (x, y) in {
        part: (a, b),
        f"{part}, centred": (a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)),
    }.items():
        for i, layer in enumerate(names):
            others = [cosine(x[i], y[j]) for j in range(len(y)) if j != i]
            control = np.mean(others, axis=0) if others else np.full(x.shape[1], np.nan)
            same = cosine(x[i], y[i])
            rows.append(
                mean_row(same, control=control, part=label, visit="1-2", layer=layer, width=x.shape[2])
            )
    return rows


def attention_cosine_rows(first: Mapping[str, ArrayLike], second: Mapping[str, ArrayLike]) -> list[Row]:
    """Measure one document at one layer.

    Parameters
    ----------
    first, second : mapping of str to array (T, H) or (T, heads, d)
        Stage -> its vectors at each visit; "input" is needed, then any of "Q", "K", "V", "PV", "O". Keys and values
        shared by a group of heads are passed once per group.

    Returns
    -------
    list of dict
        A row per stage, and per head (or group) of those that have them; ``control`` is the cosine of the inputs over
        the same tokens.

    Raises
    ------
    UsageError
        If there is no input, a stage is in one visit only, or keys or values are repeated for the heads of a group.

    Examples
    --------
    >>> x = np.eye(3)
    >>> rows = attention_cosine_rows({"input": x, "V": x}, {"input": x, "V": -x})
    >>> [(row["part"], row["value"], row.get("control")) for row in rows]
    [('input', 1.0, None), ('V', -1.0, 1.0)]
    """
    if "input" not in first or set(first) != set(second):
        raise UsageError(
            f"attention_cosine: stages {', '.join(first)} and {', '.join(second)}; both visits need the same stages, "
            "and one of them is input"
        )
    source = cosine(*pair_of("attention_cosine input", first["input"], second["input"], 2))
    rows = []
    for stage in first:
        a, b = pair_of(
            f"attention_cosine {stage}", first[stage], second[stage], max(2, np.ndim(first[stage]))
        )
        more: dict[str, Any] = {"part": stage, "visit": "1-2", "width": a.shape[-1]}
        if stage != "input":
            more["control"] = source
        if a.ndim == 2:
            rows.append(mean_row(cosine(a, b), **more))
            continue
        equal = _repeated(a) if stage in ("K", "V") else ""
        if equal:
            raise UsageError(
                f"attention_cosine {stage}: heads {equal} are equal; keys and values belong to a group of heads, so "
                "pass each group once"
            )
        rows += [mean_row(cosine(a[:, h], b[:, h]), head=h, **more) for h in range(a.shape[1])]
    return rows


def _repeated(heads: Array) -> str:
    """Name two heads of (T, heads, d) that are equal everywhere; empty if there are none."""
    pairs = ((i, j) for j in range(heads.shape[1]) for i in range(j))
    same = (
        f"{i} and {j}"
        for i, j in pairs
        if len(heads)
        and np.array_equal(heads[0, i], heads[0, j])
        and np.array_equal(heads[:, i], heads[:, j])
    )
    return next(same, "")


def broken_order(values: Mapping[str, float]) -> str:
    """Say where the cosines of one cell leave the order of `STAGES`; empty if they keep it.

    Examples
    --------
    >>> broken_order({"input": 0.9, "Q": 0.92, "V": 0.7, "O": 0.6})
    ''
    >>> broken_order({"input": 0.9, "Q": 0.92, "V": 0.7, "O": 0.75})
    'O above V'
    """
    present = [[name for name in names if name in values] for names in STAGES]
    levels = [names for names in present if names]
    broken = [
        f"{low} above {high}" if values[low] > values[high] else f"{low} equal to {high}"
        for upper, lower in zip(levels, levels[1:], strict=False)
        for high in upper
        for low in lower
        # queries and keys may be as alike as their input, and no stage below as alike as the one above
        if values[low] > values[high] or (values[low] == values[high] and low != "input")
    ]
    return ", ".join(broken)
