"""The table of downstream scores: one row per endpoint and metric, checked column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from smelt_scaling._plausible import plausible_notes
from smelt_scaling._schema import BITS_PER_BYTE, NATS, UNITS, counted, first_rows
from smelt_scaling._text import Text
from smelt_scaling._together import ONE_LOSS
from smelt_scaling.analyses.calibration.score_rules import (
    SCORE_COLUMNS,
    SCORE_UNITS,
    check_names,
    read_table_of_scores,
    repeat_problems,
    score_problems,
)
from smelt_scaling.endpoints import sparsity_tiers
from smelt_scaling.errors import DataError, Note, UsageError, merge_notes, warning

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Scores", "read_scores"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """Checked scores, row by row, sorted by metric, architecture, cell and horizon.

    Parameters
    ----------
    arch, metric, scale, cell, horizon, run : (n,) array of str
        Labels; blank where the table names none. Horizon is D, or the step, as text.
    loss, score, chance : (n,) array
        Score and chance as calibrated: a fraction, a number, or the logarithm of a perplexity; an unknown chance is
        NaN.
    units : mapping of str to str
        Metric -> unit of its score in the table.
    lower_better : frozenset of str
        Metrics of which less is better.
    unit : str
        What a cell is: cell, scale*tier, scale, run or row.
    scales : tuple of str
        Sizes, smallest first.
    measured_on : mapping of str to mapping
        Architecture -> tokenizers, evaluation sets and units of the loss that it names.
    source : str
        The table, first in each message.
    loss_unit : str
        "nats/token", or "bits/byte" of losses that were given so.
    notes : tuple of Note
        What was left out or interpreted.
    """

    arch: NDArray[np.str_]
    metric: NDArray[np.str_]
    scale: NDArray[np.str_]
    cell: NDArray[np.str_]
    horizon: NDArray[np.str_]
    run: NDArray[np.str_]
    loss: Array
    score: Array
    chance: Array
    units: Mapping[str, str]
    lower_better: frozenset[str]
    unit: str
    scales: tuple[str, ...]
    measured_on: Mapping[str, Mapping[str, tuple[str, ...]]]
    source: str
    loss_unit: str = NATS
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.loss)

    @property
    def archs(self) -> tuple[str, ...]:
        """Architectures, sorted."""
        return tuple(np.unique(self.arch).tolist())

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics, sorted."""
        return tuple(np.unique(self.metric).tolist())

    def select(self, rows: Mask | NDArray[np.intp]) -> Scores:
        """Return some of the rows, or all in another order."""
        columns = ("arch", "metric", "scale", "cell", "horizon", "run", "loss", "score", "chance")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        source: str = "<frame>",
        mapping: Mapping[str, str] | None = None,
        units: Mapping[str, str] | None = None,
        lower_better: Sequence[str] = (),
    ) -> Scores:
        """Check a table of scores.

        Parameters
        ----------
        frame : DataFrame
            Long: one row per endpoint and metric; the columns are `SCORE_COLUMNS`.
        source : str
            How to name the table in messages.
        mapping : mapping of str to str, optional
            Name of the schema to column: ``{"metric": "member", "score": "value"}``.
        units : mapping of str to str, optional
            Unit of the loss (key ``loss``: "nats", "bits", "ppl", "bpb"), of all scores (key ``score``), or of one
            metric's (its name): "fraction", "percent", "number" (on any scale) or "ppl" (a perplexity: its logarithm is
            calibrated, and less is better).
        lower_better : sequence of str
            Further metrics of which less is better, such as error rates.

        Raises
        ------
        UsageError
            For an unknown name or unit.
        DataError
            One line per broken rule.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = {"arch": ["a", "b"], "metric": "arc", "loss": [2.5, 2.4], "score": [41.0, 43.0], "cell": "x"}
        >>> scores = Scores.from_frame(pd.DataFrame(rows), units={"score": "percent"})
        >>> scores.score.tolist(), scores.unit
        ([0.41, 0.43], 'cell')
        """
        found, units = dict(mapping or {}), dict(units or {})
        check_names(found, units)
        table = read_table_of_scores(frame, source, found)
        if table.problems:
            raise DataError("\n".join(table.problems))
        columns, problems, notes = table.columns, table.problems, list(table.notes)
        missing = np.isnan(columns["score"])
        if missing.any():
            notes.append(
                warning(
                    "missing_scores",
                    f"{source}: column {table.names['score']}, {first_rows(missing)} without a score left out",
                    int(missing.sum()),
                )
            )
            columns = {name: values[~missing] for name, values in columns.items()}
        metric = columns["metric"].array()
        per_metric = {
            name: units.get(name, units.get("score", "fraction")) for name in np.unique(metric).tolist()
        }
        named = [name for name in (*units, *lower_better) if name not in ("score", "loss")]
        unknown = [name for name in named if name not in per_metric]
        if unknown:
            option = "--lower-better" if unknown[0] in lower_better else "--unit"
            raise UsageError(
                f"{source}: no metric {unknown[0]}, which {option} names; choose from {', '.join(list(per_metric)[:8])}"
                + (", ..." if len(per_metric) > 8 else "")
            )
        less = frozenset({*lower_better, *(n for n, unit in per_metric.items() if SCORE_UNITS[unit][1])})
        chance = columns.get("chance", np.full(len(metric), np.nan))
        problems += score_problems(metric, columns["score"], chance, per_metric, source, table.names)
        cell, unit = _cells(columns)
        horizon = _horizons(columns)
        run = columns["run"].array() if "run" in columns else np.full(len(metric), "")
        arch = columns["arch"].array()
        problems += repeat_problems(arch, metric, cell if unit != "row" else None, horizon, run, source)
        if problems:
            raise DataError("\n".join(problems))
        if unit == "row":
            message = (
                f"{source}: no column names the unit, so single rows count as cells; name it with --map cell="
            )
            notes.append(warning("row_resampling", f"{message}COLUMN", len(metric)))
        notes += _late_scores(columns, source)
        notes += plausible_notes({"loss": np.asarray(columns["loss"])}, source, units)
        scale = columns["scale"].array() if "scale" in columns else np.full(len(metric), "")
        changed = [_converted(metric, values, per_metric) for values in (columns["score"], chance)]
        scores = cls(
            arch=arch,
            metric=metric,
            scale=scale,
            cell=cell,
            horizon=horizon,
            run=run,
            loss=UNITS["loss"][units.get("loss", "nats")](columns["loss"]),
            score=changed[0],
            chance=changed[1],
            units=per_metric,
            lower_better=less,
            unit=unit,
            scales=_ordered_scales(scale, columns),
            measured_on={name: _conditions(columns, arch == name) for name in np.unique(arch).tolist()},
            source=source,
            loss_unit=BITS_PER_BYTE if units.get("loss") == "bpb" else NATS,
            notes=merge_notes(notes),
        )
        # so that sums are taken in one order, to the last bit
        return scores.select(np.lexsort((scores.score, scores.loss, run, horizon, cell, arch, metric)))


def read_scores(
    path: pd.DataFrame | str | Path,
    *,
    mapping: Mapping[str, str] | None = None,
    units: Mapping[str, str] | None = None,
    lower_better: Sequence[str] = (),
) -> Scores:
    r"""Read a table of downstream scores from a file, from standard input for "-", or from a frame.

    Parameters
    ----------
    path : DataFrame, str or pathlib.Path
        A frame, or a file of any format that `read_endpoints` reads, such as the long table of
        ``smelt-scaling endpoints --long``.
    mapping, units, lower_better
        As `Scores.from_frame`.

    Raises
    ------
    IngestError
        If the file is no table.
    DataError, UsageError
        As `Scores.from_frame`.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "scores.csv"
    >>> _ = path.write_text("arch,cell,member,loss,value\na,x,arc,2.5,.41\nb,x,arc,2.4,.43\n")
    >>> read_scores(path, mapping={"metric": "member", "score": "value"}).metrics
    ('arc',)
    >>> folder.cleanup()
    """
    from smelt_scaling.ingest.tidy import read_table

    found = dict(mapping or {})
    if not isinstance(path, str | Path):
        return Scores.from_frame(path, source="table", mapping=found, units=units, lower_better=lower_better)
    kinds = {found.get(name, name): column.kind for name, column in SCORE_COLUMNS.items()}
    frame, notes = read_table(path, mapping=found, kinds=kinds)
    scores = Scores.from_frame(
        frame,
        source="<stdin>" if str(path) == "-" else str(path),
        mapping=found,
        units=units,
        lower_better=lower_better,
    )
    return replace(scores, notes=merge_notes(scores.notes, notes))


def _converted(metric: NDArray[np.str_], values: Array, units: Mapping[str, str]) -> Array:
    new = np.array(values)
    for name, unit in units.items():
        own = metric == name
        new[own] = SCORE_UNITS[unit][0](values[own])
    return new


def _cells(columns: Mapping[str, Text | Array]) -> tuple[NDArray[np.str_], str]:
    """Return the experimental unit of each row, and what it is."""

    def text(name: str) -> NDArray[np.str_] | None:
        values = columns.get(name)
        return values.array() if isinstance(values, Text) and values.present() != [""] else None

    cell, scale, run = text("cell"), text("scale"), text("run")
    if cell is not None and (cell != "").all():
        return cell, "cell"
    sparsity = columns.get("S")
    if scale is not None and isinstance(sparsity, np.ndarray) and not np.isnan(sparsity).any():
        tier = sparsity_tiers(sparsity).astype(str)
        return np.char.add(np.char.add(scale, "/tier "), tier), "scale*tier"
    if scale is not None:
        return scale, "scale"
    if run is not None:
        return run, "run"
    return np.array([f"row {i}" for i in range(len(columns["loss"]))]), "row"


def _horizons(columns: Mapping[str, Text | Array]) -> NDArray[np.str_]:
    """Write what pairs the endpoints of a cell: tokens to 6 digits, or the step."""
    for name in ("D", "step"):
        values = columns.get(name)
        if isinstance(values, np.ndarray) and not np.isnan(values).any():
            return np.array([f"{value:.6g}" for value in values.tolist()])
    return np.full(len(columns["loss"]), "")


def _late_scores(columns: Mapping[str, Text | Array], source: str) -> list[Note]:
    logged, step = columns.get("value_step"), columns.get("step")
    if not isinstance(logged, np.ndarray) or not isinstance(step, np.ndarray):
        return []
    early = int((logged < step).sum())
    message = (
        f"{source}: {counted(early, 'score')} logged before the step of the endpoint whose loss stands beside"
    )
    return [warning("early_scores", message, early)] if early else []


def _ordered_scales(scale: NDArray[np.str_], columns: Mapping[str, Text | Array]) -> tuple[str, ...]:
    """Return the scales by their size, or by falling loss where no column holds one."""
    size = next((columns[name] for name in ("F", "N") if name in columns), -np.asarray(columns["loss"]))
    names = [name for name in np.unique(scale).tolist() if name]
    return tuple(sorted(names, key=lambda name: float(np.nanmedian(np.asarray(size)[scale == name]))))


def _conditions(columns: Mapping[str, Text | Array], rows: Mask) -> dict[str, tuple[str, ...]]:
    named = {}
    for name in ONE_LOSS:
        values = columns.get(name)
        if isinstance(values, Text):
            present = tuple(value for value in values[rows].present() if value)
            if present:
                named[name] = present
    return named
