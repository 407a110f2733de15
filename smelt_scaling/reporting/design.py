"""A design report for people: what was read, what the design identifies, which runs there are, what FLOPs count."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from smelt_scaling.errors import NOTE_CODES, UsageError
from smelt_scaling.formatting import format_number, format_quantity, format_thousands
from smelt_scaling.reporting.columns import Column, make_grid
from smelt_scaling.reporting.design_map import map_grids
from smelt_scaling.reporting.document import Cell, Document, Grid
from smelt_scaling.reporting.fairness import fairness_grids
from smelt_scaling.reporting.raw import plain_rows

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["design_document"]

Rows = list[dict[str, Any]]

_UNITS = {
    "F": "FLOPs/token",
    "D": "tokens",
    "S": "",
    "C": "FLOPs",
    "TPP": "tokens per dense parameter",
}

_INTAKE = (
    Column(key="what", header=""),
    Column(key="rows", header="rows", kind="printed"),
    Column(key="meaning", header=""),
)
_COLUMNS = (
    Column(key="name", header="column"),
    Column(key="from", header="read from"),
    Column(key="in", header="unit"),
    Column(key="meaning", header="what it is"),
)
_FLOPS = (
    Column(key="ratio", header="ratio"),
    Column(key="rows", header="rows", kind="printed"),
    Column(key="of", header="arch", optional=True),
    Column(key="median", header="median", kind="number", digits=3),
    Column(key="range", header="range"),
    Column(key="meaning", header="what it says"),
)


def design_document(frame: pd.DataFrame, part: str | None = None) -> Document:
    """Describe a design report.

    Parameters
    ----------
    frame : DataFrame
        What `design_report` returned.
    part : str, optional
        Only one of its tables: "design", or a key of ``attrs``.

    Raises
    ------
    UsageError
        For an unknown part.
    """
    settings = frame.attrs["settings"]
    parts: dict[str, Callable[[], Iterable[Grid]]] = {
        "intake": lambda: [_intake_grid(frame.attrs["intake"])],
        "columns": lambda: [_columns_grid(frame.attrs["columns"])],
        "flops": lambda: (
            [_flops_grid(frame.attrs["flops"], list(frame["arch"]))] if frame.attrs["flops"] else []
        ),
        "fairness": lambda: fairness_grids(frame.attrs["fairness"]),
        "tiers": lambda: [_tiers_grid(frame.attrs["tiers"])] if frame.attrs["tiers"] else [],
        "map": lambda: map_grids(frame.attrs["map"], settings["map"]),
        "design": lambda: [_design_grid(frame)],
    }
    if part is not None and part not in parts:
        raise UsageError(f"part {part!r} is unknown; choose from {', '.join(parts)}")
    tiers = ", ".join(format_number(s, 3) for s in settings["sparsities"])
    caption = [f"Law {settings['law']}: {settings['formula']}."]
    if tiers:
        caption.append(f"Gains will be compared at S = {tiers}, the median of each tier over cells.")
    return Document(
        title=f"Design of {settings['source']}",
        caption=tuple(caption),
        grids=tuple(grid for name, make in parts.items() if part in (None, name) for grid in make()),
        footnotes=_remedies(plain_rows(frame)) if part in (None, "design") else (),
    )


def _intake_grid(rows: Rows) -> Grid:
    told = [
        {
            "what": row["step"] if row["code"] is None else f"left out, {row['code']}",
            "rows": format_thousands(row["rows"]),
            "meaning": "" if row["code"] is None else _why(row["code"]),
        }
        for row in rows
    ]
    return make_grid(told, _INTAKE, heading="Rows")


def _why(code: str) -> str:
    return NOTE_CODES[code].meaning if code in NOTE_CODES else "Rows were dropped by a selection in Python."


def _columns_grid(rows: Rows) -> Grid:
    plain = [row["name"] for row in rows if not row["schema_unit"] and row["column"] == row["name"]]
    told = [
        {
            **row,
            "from": "(none)" if row["column"] is None else row["column"],
            "in": f"{row['unit']} (--unit)" if row["unit_declared"] else row["schema_unit"],
        }
        for row in rows
        if row["name"] not in plain
    ]
    heading = f"Columns, beside {', '.join(plain)} under their own names" if plain else "Columns"
    return make_grid(told, _COLUMNS, heading=heading)


def _tiers_grid(rows: Rows) -> Grid:
    """Return a line per tier, a column per architecture."""
    tiers: dict[int, Rows] = {}
    for row in rows:
        tiers.setdefault(row["tier"], []).append(row)
    archs = list(dict.fromkeys(row["arch"] for row in rows))
    lines = [
        (
            _range(first["S_lo"], first["S_hi"]),
            format_number(first["S_median"], 3),
            *(_in_labels(row["endpoints"], row["cells"]) for row in own),
        )
        for own in tiers.values()
        for first in own[:1]
    ]
    return Grid(
        heading="Sparsity tiers, pooled over architectures: endpoints and resampling labels",
        headers=("S", "gains at S", *archs),
        numeric=(False, True, *(False for _ in archs)),
        rows=tuple(tuple(Cell(point=text) for text in line) for line in lines),
        side_by_side=True,
    )


def _in_labels(endpoints: int, labels: int) -> str:
    said = f"{format_thousands(endpoints)} in {format_thousands(labels)} label{'s' * (labels != 1)}"
    return said if endpoints else "none"


def _flops_grid(rows: Rows, archs: Sequence[str]) -> Grid:
    told = [
        {
            **row,
            "rows": format_thousands(row["rows"]),
            "range": _range(row["lo"], row["hi"]),
            "of": None if row["archs"] == archs else ", ".join(row["archs"]),
        }
        for row in rows
    ]
    some = any(row["of"] for row in told)
    told = [{**row, "of": row["of"] or ("all" if some else None)} for row in told]
    return make_grid(told, _FLOPS, heading="FLOPs against tokens and parameters")


def _range(low: float, high: float) -> str:
    ends = format_number(low, 3), format_number(high, 3)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _design_grid(frame: pd.DataFrame) -> Grid:
    """Return a line per quantity, a column per architecture."""
    report, settings = plain_rows(frame), frame.attrs["settings"]
    rows: list[tuple[Cell, ...]] = []

    def line(name: str, texts: list[str]) -> None:
        rows.append((Cell(point=name), *(Cell(point=text) for text in texts)))

    line("endpoints", [format_thousands(row["endpoints"]) for row in report])
    line(f"{settings['unit']} labels", [format_thousands(row["cells"]) for row in report])
    for key, name in (
        ("scales", "scales"),
        ("tiers", "sparsity tiers"),
        ("horizons", "horizons (distinct D)"),
    ):
        if any(row[key] is not None for row in report):
            line(name, [format_thousands(row[key]) for row in report])
    for key in sorted(map(str, frame.columns)):
        if key.startswith("levels_"):
            line(f"levels that identify {key.removeprefix('levels_')}", [str(row[key]) for row in report])
    for name, unit in _UNITS.items():
        if f"{name}_lo" in frame.columns:
            write = format_quantity if name in ("F", "D", "C") else lambda x: format_number(x, 3)
            window = [f"{write(row[f'{name}_lo'])} to {write(row[f'{name}_hi'])}" for row in report]
            line(f"{name} ({unit})" if unit else name, window)
    line("parameters to fit", [str(row["parameters"]) for row in report])
    line("not identified", [", ".join(row["unidentified"]) or "none" for row in report])
    line("condition number", [_condition(row["condition"]) for row in report])
    line("verdict", [row["verdict"] for row in report])
    if any(row["unidentified"] for row in report):
        line("condition without those", [_condition(row["condition_fitted"]) for row in report])
    return Grid(
        heading="What the design can identify (condition number: about 50 is good, 1000 is poor)",
        headers=("", *(row["arch"] for row in report)),
        numeric=(False, *(False for _ in report)),
        rows=tuple(rows),
        side_by_side=True,
    )


def _condition(value: float | None) -> str:
    return "infinite" if value is None else format_quantity(value, 2)


def _remedies(report: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Say what would mend a design, once for all architectures that need it."""
    who: dict[str, list[str]] = {}
    for row in report:
        for remedy in row["remedies"]:
            who.setdefault(remedy, []).append(row["arch"])
    return tuple(f"{', '.join(archs)}: {remedy}." for remedy, archs in who.items())
