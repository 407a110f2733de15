"""Predicted loss of runs that were not made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from smelt_scaling._json import finite_or_none
from smelt_scaling.analyses.frames import finish_frame
from smelt_scaling.analyses.new_run import new_run_noise
from smelt_scaling.analyses.remarks import table_notes
from smelt_scaling.analyses.rounding import moved_by_rounding, rounding_note
from smelt_scaling.analyses.side import SAMPLED
from smelt_scaling.analyses.support import outside
from smelt_scaling.analyses.view import IntervalKind, Side, View, ends, view_of
from smelt_scaling.engine.design import LEVEL_WIDTH
from smelt_scaling.errors import FrontierError, Note, UsageError
from smelt_scaling.laws import AdditiveLaw
from smelt_scaling.papers import Paper
from smelt_scaling.study import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["predict"]

Array = NDArray[np.float64]


def predict(
    study: Study | Paper,
    points: Mapping[str, ArrayLike],
    *,
    archs: str | Sequence[str] | None = None,
    level: float = 0.95,
    interval: IntervalKind = "percentile",
    new_run: bool = False,
) -> pd.DataFrame:
    """Tabulate the loss each surface predicts at given columns.

    The interval ``loss_lo, loss_hi`` is that of the surface (the mean of runs like these). That of one new run is
    wider: it has a cell effect and run noise of its own, one of each drawn with every draw of the surface from the
    variance components of the residuals. In 240 simulated worlds each of the example's baseline, with none to .8 of
    the noise between cells, the former contained a new run in 34 to 93 % and the latter in 95 to 99 %, nominal 95 %.

    Parameters
    ----------
    study : Study or Paper
        Fitted or published surfaces.
    points : mapping of column to array-like
        The law's columns, such as ``{"F": 1e9, "D": 2e11, "S": 0.947}``; they broadcast.
    archs : str or sequence of str, optional
        Architectures; all by default.
    level, interval
        As in `ce_gain`.
    new_run : bool
        Add ``loss_run_lo, loss_run_hi``, the interval of one new run in a cell of its own.

    Returns
    -------
    DataFrame
        One row per architecture and point: ``arch``, the law's columns, ``loss, loss_lo, loss_hi``, with ``new_run``
        ``loss_run_lo, loss_run_hi``, then ``extrapolated, support, draws``.

    Raises
    ------
    UsageError
        If a column of the law is missing or one it does not hold is given, or ``interval`` is not of a sample while a
        new run is asked for.
    FrontierError
        If a new run is asked for and there are no draws.

    Examples
    --------
    >>> from smelt_scaling.papers import load_paper
    >>> table = predict(load_paper("smelt"), {"F": 1e10, "D": 1e11, "S": 0.947})
    >>> table["loss"].round(4).tolist()
    [1.7268, 1.7154]
    """
    view = view_of(study)
    sides = view.chosen(archs)
    view.require_certified(sides, "prediction")
    columns = _columns(view.law, points)
    noise = _noise(study, view, sides, interval) if new_run else {}
    rows: list[dict[str, Any]] = []
    for side in sides:
        _check_identified(view.law, side, columns)
        if "S" in columns:
            view.sparsity_grid(columns["S"], (side,))
        replicates = side.replicates(interval)
        loss = side.surface.loss(**columns)
        drawn = None if replicates is None else replicates.surface.loss(**columns)
        found = ends(loss, drawn, interval, level)
        run = None
        if side.arch in noise and drawn is not None:
            run = ends(loss, drawn * np.exp(noise[side.arch][0])[:, None], interval, level)
        for j in range(len(loss)):
            at = {name: float(array[j]) for name, array in columns.items()}
            support = outside(side.window, arch=side.arch, **_coordinates(at, view.flops_per_param))
            rows.append(
                {
                    "arch": side.arch,
                    **at,
                    "loss": float(loss[j]),
                    "loss_lo": None if found is None else finite_or_none(found[0][j]),
                    "loss_hi": None if found is None else finite_or_none(found[1][j]),
                    **(
                        {
                            "loss_run_lo": None if run is None else finite_or_none(run[0][j]),
                            "loss_run_hi": None if run is None else finite_or_none(run[1][j]),
                        }
                        if new_run
                        else {}
                    ),
                    "extrapolated": bool(support) if side.window else None,
                    "support": support,
                    "draws": 0 if replicates is None else len(replicates),
                }
            )
    notes = table_notes(view, rows, sides, interval, given="loss_lo")
    moved = [moved_by_rounding([side], lambda surface: surface.loss(**columns)) for side in sides]
    printed = [change for change in moved if change is not None]
    if printed:
        largest = f"{float(np.max(printed)):.2g} {view.loss_unit}"
        notes += rounding_note([("the loss", largest)], len(rows))
    notes += [note for _, own in noise.values() for note in own]
    return finish_frame(rows, view, notes, level=level, interval=interval, new_run=new_run)


def _noise(
    study: Study | Paper, view: View, sides: Sequence[Side], kind: IntervalKind
) -> dict[str, tuple[Array, list[Note]]]:
    """Return the deviations of ln(loss) of one new run, one per draw of the surface, and what is to be said of them."""
    if kind not in SAMPLED:
        raise UsageError(
            f"--new-run with --interval {kind}: a new run is drawn with every draw of the surface; choose from "
            f"{', '.join(SAMPLED)}"
        )
    if not isinstance(study, Study) or any(side.replicates(kind) is None for side in sides):
        raise FrontierError(
            f"no interval of a new run, because there are no draws ({view.why_none(kind)}); fit runs with --bootstrap "
            "2000, or leave --new-run out"
        )
    found: dict[str, tuple[Array, list[Note]]] = {}
    for side in sides:
        noise, notes = new_run_noise(study, side.arch)
        draws = side.replicates(kind)
        count = 0 if draws is None else len(draws)
        found[side.arch] = noise.draw(count, study.bootstrap.seed, study.archs.index(side.arch)), notes
    return found


def _columns(law: AdditiveLaw, points: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Return the law's columns as flat arrays of one length, checked."""
    wrong = [
        *(f"{name} is missing" for name in law.columns if name not in points),
        *(f"{name} is not in the law" for name in points if name not in law.columns),
    ]
    if wrong:
        raise UsageError(f"law {law.name}: a prediction needs {', '.join(law.columns)}; {', '.join(wrong)}")
    arrays = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(points[n], dtype=np.float64)) for n in law.columns)
    )
    columns = dict(zip(law.columns, (array.ravel() for array in arrays), strict=True))
    for name, values in columns.items():
        legal = values < 1 if name == "S" else values > 0
        if not len(values):
            raise UsageError(f"column {name}: no point to predict at; give at least one value")
        if not np.all(good := np.isfinite(values) & legal):
            rule = "a fraction below 1, such as 0.95" if name == "S" else "positive and finite, such as 1e10"
            raise UsageError(f"column {name}: {values[~good][0]:g} must be {rule}")
    return columns


def _check_identified(law: AdditiveLaw, side: Side, columns: Mapping[str, Array]) -> None:
    """Refuse what the design was constant in: a dropped term anywhere, an unfitted exponent away from its level."""
    hidden = [name for name in side.unidentified if name in law.amplitudes]
    for term in law.parsed.terms:
        for power in term.powers:
            if power.exponent not in side.unidentified or power.feature.names == ("S",):
                continue
            value = power.feature.log(columns)
            low, high = sorted(
                float(
                    power.feature.log(
                        {name: np.asarray(side.window[name][end]) for name in power.feature.names}
                    )
                )
                for end in (0, 1)
            )
            if np.any((value < low - LEVEL_WIDTH) | (value > high + LEVEL_WIDTH)):
                hidden.append(str(power.exponent))
    if hidden:
        names = ", ".join(hidden)
        raise FrontierError(
            f"{side.arch}: no prediction, because {names} not identified ({side.unidentified[hidden[0]]})"
        )


def _coordinates(values: Mapping[str, float], flops_per_param: float) -> dict[str, float | None]:
    size = values.get("F", values.get("N", values.get("N_act")))
    flops = size if "F" in values or size is None else size * flops_per_param
    tokens = values.get("D")
    both = flops is not None and tokens is not None
    return {
        "F": flops,
        "D": tokens,
        "C": flops * tokens if flops is not None and tokens is not None else values.get("C"),
        "S": values.get("S"),
        "TPP": tokens * flops_per_param / flops
        if both and flops is not None and tokens is not None
        else None,
    }
