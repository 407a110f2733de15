"""Coefficients that somebody typed from a paper: a small table, checked cell by cell, read with the digits typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from smelt_scaling.errors import DataError, Note, UsageError, info
from smelt_scaling.ingest.tidy import read_table
from smelt_scaling.laws import LAWS, AdditiveLaw, get_law
from smelt_scaling.papers.bundled import NATS, PAPERS, Paper, load_paper, surface_of
from smelt_scaling.papers.tables import Table, parse_number

__all__ = ["read_published"]

Rows = Sequence[Mapping[str, str]]

#: Columns of which a fitted range may be stated, as ``F_lo`` and ``F_hi``.
RANGES = ("F", "S", "D", "N", "N_act", "C", "TPP")
#: Columns a table may hold beside the coefficients: text, one number for the whole table, ends of ranges.
TEXTS = ("arch", "law", "form", "loss_unit")
SHARED = ("S", "flops_per_param")
KNOWN = (*TEXTS, *SHARED, *(f"{name}_{end}" for name in RANGES for end in ("lo", "hi")))
#: What a text column may say; the first is meant where it is blank.
WORDS = {"form": ("natural", "log"), "loss_unit": (NATS, "bits/byte")}


def read_published(source: str | Path) -> Paper:
    r"""Read published coefficients: of a paper that is shipped, or of a table typed from any other.

    The table has one row per architecture: ``arch``, a column per coefficient, and where needed ``law`` (a name or a
    formula; by default the named law whose coefficients the columns are), ``form`` (log where floor and amplitudes are
    natural logarithms), ``loss_unit`` (nats/token or bits/byte), ``S`` (at which the architectures are compared),
    ``flops_per_param`` (6) and ranges of the fitted runs, ``F_lo, F_hi, ..., C_lo, C_hi``. Write coefficients as they
    are printed: the last digit says how far each is rounded, and every result says what that rounding moves. Numbers
    of JSON and Parquet have lost their trailing zeros, so they count as rounded more coarsely.

    Parameters
    ----------
    source : str or pathlib.Path
        A key of `PAPERS`, or a file that `read_endpoints` could read; "-" is standard input.

    Returns
    -------
    Paper
        As `load_paper` returns it, for every analysis.

    Raises
    ------
    UsageError
        If it is neither the name of a paper nor a file.
    IngestError
        If the file cannot be read as a table.
    DataError
        With one line per problem: unknown or missing columns, cells that are no numbers, coefficients out of range,
        several laws, an architecture twice.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "typed.csv"
    >>> _ = path.write_text("arch,E,A,alpha\nours,1.6,88.32,0.0941\n")
    >>> paper = read_published(path)
    >>> paper.surfaces["ours"].law.name, paper.surfaces["ours"].coefficients["A"]
    ('power-c', 88.32)
    >>> folder.cleanup()
    """
    name = str(source)
    if name in PAPERS:
        return load_paper(name)
    if name != "-" and not Path(name).exists():
        raise UsageError(
            f"published set {name!r}: neither a paper that is shipped ({', '.join(PAPERS)}) nor a file; "
            "name one of them, or a table of coefficients"
        )
    if Path(name).is_dir():
        raise UsageError(
            f"published set {name!r}: a folder; name the table in it, or read a saved study with --study"
        )
    rows, notes = _rows(name)
    problems: list[str] = []

    def problem(what: str) -> None:
        problems.append(f"{name}: {what}")

    _check_texts(rows, problem)
    law = _law(rows, problem)
    if law is not None:
        _check_columns(rows, law, problem)
        _check_coefficients(rows, law, problem)
    windows = {row["arch"]: window for row, window in zip(rows, _windows(rows, problem), strict=True)}
    shared = {key: _one_value(rows, key, problem) for key in (*SHARED, "loss_unit")}
    if problems or law is None:
        raise DataError("\n".join(problems))
    table = Table(
        name="coefficients",
        title=f"coefficients of {name}",
        source=name,
        section="coefficients",
        precision="printed",
        columns=tuple(rows[0]),
        rows=tuple(tuple(row.values()) for row in rows),
        metadata=MappingProxyType({"law": law.name}),
    )
    ratio = parse_number(shared["flops_per_param"] or "6")
    sizes = {"N", "N_act"} & set(law.columns)
    if sizes and "F" not in law.columns:
        rule = f"F = {ratio:g} {sizes.pop()}, C = F D (column flops_per_param)"
        notes = (*notes, info("flops_per_param", f"law {law.name} is in parameters: {rule}"))
    return Paper(
        name=name,
        title=table.title,
        source=name,
        surfaces=MappingProxyType({row["arch"]: surface_of(law, row) for row in rows}),
        tables=MappingProxyType({table.name: table}),
        windows=MappingProxyType(windows),
        sparsities=np.array([parse_number(shared["S"])]) if shared["S"] else None,
        flops_per_param=ratio,
        loss_unit=shared["loss_unit"] or NATS,
        notes=notes,
    )


def _rows(name: str) -> tuple[list[dict[str, str]], tuple[Note, ...]]:
    """Return the cells as text, with the digits as they were typed wherever the format keeps them."""
    frame, notes = read_table(name, kinds=dict.fromkeys(TEXTS, "text"))
    header = [str(column).strip() for column in frame.columns]
    twice = sorted({column for column in header if header.count(column) > 1})
    if twice:
        raise DataError(f"{name}: columns that appear twice: {', '.join(twice)}; drop one of each")
    if not len(frame):
        raise DataError(f"{name}: no rows: a table of coefficients has one per architecture; check the file")
    if "loss" in header:
        raise DataError(
            f"{name}: column loss: a table of runs, no coefficients; fit it with smelt-scaling fit and read the study"
        )
    if "arch" not in header:
        raise DataError(
            f"{name}: no column arch: a table of coefficients has one row per architecture, such as "
            f"arch,E,A,K,a,b,c; {'call the column model arch' if 'model' in header else 'add the column'}"
        )
    cells = [[_text(value) for value in frame.iloc[:, i].tolist()] for i in range(len(header))]
    return [dict(zip(header, row, strict=True)) for row in zip(*cells, strict=True)], notes


def _text(value: Any) -> str:
    """Write a cell as text; of a binary number the shortest digits, without trailing zeros that nobody typed."""
    if isinstance(value, str):
        return value.strip()
    if value is None or value != value or type(value).__name__ == "NAType":  # NaN is not itself  # noqa: PLR0124
        return ""
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return f"{Decimal(str(value)).normalize()}"
    return str(value)


def _where(rows: Rows, bad: Iterable[bool]) -> str:
    """Say which architectures are concerned, by name and row."""
    found = [
        f"{row['arch'] or 'no name'} (row {i})"
        for i, (row, b) in enumerate(zip(rows, bad, strict=True), 1)
        if b
    ]
    return ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")


def _check_texts(rows: Rows, problem: Callable[[str], None]) -> None:
    archs = [row["arch"] for row in rows]
    unnamed = [not arch for arch in archs]
    if any(unnamed):
        problem(f"column arch, {_where(rows, unnamed)}: an architecture needs a name; fill it in")
    twice = [bool(arch) and arch in archs[:i] for i, arch in enumerate(archs)]
    if any(twice):
        problem(
            f"column arch, {_where(rows, twice)} is there before: one row per architecture; rename or drop it"
        )
    for name, words in WORDS.items():
        wrong = [row.get(name, "") not in ("", *words) for row in rows]
        if any(wrong):
            problem(f"column {name}, {_where(rows, wrong)}: it says {' or '.join(words)}; correct it")


def _law(rows: Rows, problem: Callable[[str], None]) -> AdditiveLaw | None:
    """Return the one law of all rows: the one named, or the named law that the columns fit best."""
    coefficients = set(rows[0]) - set(KNOWN)

    def score(law: AdditiveLaw) -> int:
        shared = len(coefficients & set(law.parameters))
        return 2 * shared - len(law.parameters) if shared else 0

    # a blank means what another row says, and where none says anything the law that the columns fit best
    said = next((row["law"] for row in rows if row.get("law")), max(LAWS.values(), key=score))
    laws: dict[str, tuple[AdditiveLaw, int]] = {}
    for number, row in enumerate(rows, start=1):
        try:
            law = get_law(row.get("law") or said)
        except UsageError as error:
            problem(f"column law, row {number}: {error}")
            return None
        laws.setdefault(law.formula, (law, number))
    if len(laws) > 1:
        shown = "; ".join(f"{law.name} in row {number}" for law, number in laws.values())
        problem(
            f"column law: {len(laws)} laws ({shown}): results compare surfaces of one law; split the table"
        )
        return None
    return next(iter(laws.values()))[0]


def _check_columns(rows: Rows, law: AdditiveLaw, problem: Callable[[str], None]) -> None:
    own = ", ".join(law.parameters)
    unknown = [name for name in rows[0] if name not in (*KNOWN, *law.parameters)]
    missing = [name for name in law.parameters if name not in rows[0]]
    if unknown:
        problem(
            f"column {', '.join(unknown)}: no coefficient of law {law.name} ({own}) and none of arch, law, form, "
            "loss_unit, S, flops_per_param or a range such as C_lo; rename or drop it"
        )
    if missing:
        problem(
            f"no column {', '.join(missing)}: law {law.name} has {own}; add it, or name the law in a column law"
        )


def _check_coefficients(rows: Rows, law: AdditiveLaw, problem: Callable[[str], None]) -> None:
    positive = {*law.amplitudes, *law.decays}
    for name in (name for name in law.parameters if name in rows[0]):
        logged = name in (law.floor, *law.amplitudes)
        values = _numbers(rows, name, problem, needed=True)
        if values is None:
            continue
        rule = "> 0" if name in positive else ">= 0" if name == law.floor else "finite"
        bad = []
        for row, value in zip(rows, values, strict=True):
            with np.errstate(over="ignore"):
                natural = float(np.exp(value)) if logged and row.get("form") == "log" else value
            low = natural <= 0 if name in positive else natural < 0 if name == law.floor else False
            bad.append(low or not np.isfinite(natural))
        if any(bad):
            shown = rows[bad.index(True)][name]
            sign = "; the minus is in the law" if name in law.decays and shown.startswith("-") else ""
            must = rule if rule == "finite" else f"{rule} and finite"
            problem(f"column {name}, {_where(rows, bad)} is {shown}: it must be {must}{sign}; correct it")


def _numbers(
    rows: Rows, name: str, problem: Callable[[str], None], *, needed: bool = False
) -> list[float] | None:
    """Return a column as numbers, NaN where blank; None after a problem."""
    blank = [not row.get(name, "") for row in rows]
    if needed and any(blank):
        problem(
            f"column {name}, {_where(rows, blank)} missing: every row needs it; fill it in or drop the row"
        )
        return None
    values, bad = [], []
    for row in rows:
        text = row.get(name, "")
        try:
            values.append(parse_number(text) if text else float("nan"))
            bad.append(not text.isascii())
        except ValueError:
            bad.append(True)
    if any(bad):
        shown = rows[bad.index(True)][name]
        mend = "use a decimal point, and nothing between thousands" if "," in shown else "correct it"
        problem(
            f"column {name}, {_where(rows, bad)} is {shown[:40]!r}: no number such as 0.3703, 1.366e3 or "
            f"94.7%; {mend}"
        )
        return None
    return values


def _windows(rows: Rows, problem: Callable[[str], None]) -> list[dict[str, tuple[float, float]]]:
    windows: list[dict[str, tuple[float, float]]] = [{} for _ in rows]
    for name in RANGES:
        low, high = (_numbers(rows, f"{name}_{end}", problem) for end in ("lo", "hi"))
        if low is None or high is None:
            continue
        top = 1.0 if name == "S" else float("inf")
        wrong = []
        for window, one, other in zip(windows, low, high, strict=True):
            stated = one == one or other == other
            inside = 0 <= one <= other < top if name == "S" else 0 < one <= other < top
            wrong.append(stated and not inside)
            if stated and inside:
                window[name] = (one, other)
        if any(wrong):
            legal = "in [0, 1)" if name == "S" else "> 0 and finite"
            problem(
                f"columns {name}_lo, {name}_hi, {_where(rows, wrong)}: a range is two numbers {legal}, the lower "
                "first; correct them, or leave both blank"
            )
    return windows


def _one_value(rows: Rows, name: str, problem: Callable[[str], None]) -> str:
    """Return what all rows say of the whole table, blanks aside."""
    cells = [row.get(name, "") for row in rows]
    said: dict[object, str] = {}
    if name == "loss_unit":
        said = {cell: cell for cell in cells if cell}
        said |= {NATS: NATS} if said and not all(cells) else {}
    elif (values := _numbers(rows, name, problem)) is not None:
        stated = [(value, cell) for value, cell in zip(values, cells, strict=True) if cell]
        said = {value: cell for value, cell in stated}  # noqa: C416  # .947 and 0.947 are one value
        legal = [
            not cell or (0 <= value < 1 if name == "S" else 0 < value < float("inf"))
            for value, cell in zip(values, cells, strict=True)
        ]
        if not all(legal):
            rule = "a fraction in [0, 1), such as 0.947 or 94.7%" if name == "S" else "> 0 and finite"
            problem(
                f"column {name}, {_where(rows, [not fine for fine in legal])}: it must be {rule}; correct it"
            )
    if len(said) > 1:
        shown = " and ".join([*list(said.values())[:3], *(["others"] if len(said) > 3 else [])])
        problem(f"column {name} says {shown}: it holds for the whole table; write one value")
    return next(iter(said.values()), "")
