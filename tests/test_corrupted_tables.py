"""A good table, spoilt in every way a table can be: the right answer with a note, or one line per problem.

What a corruption may lead to is stated beside it and never computed by the code under test:

``same``
    The file holds the same endpoints, written otherwise: equal arrays, so equal gains.
``noted``
    The same endpoints, and a note that says what was interpreted.
``rows``
    Another table, and a legitimate one: rows, or columns that no endpoint needs, are not there. The gain is that of
    the remaining rows.
``refused``
    No endpoints: exit code 3 and one line per problem, one of which names the file, the column and, where a cell is
    to blame, its row. Leaving out the row of the cell is as good, if a note says so.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smelt_scaling import Endpoints, ce_gain, example_endpoints, fit, read_endpoints
from smelt_scaling.cli import run
from smelt_scaling.errors import SmeltScalingError

CLEAN = example_endpoints().to_frame()
NUMBERS = ["F", "S", "D", "loss", "N", "N_act"]
SPARSITIES = [0.846, 0.947, 0.969]
ROWS = st.integers(0, len(CLEAN) - 1)
QUIET = {note.code for note in Endpoints.from_frame(CLEAN).notes}

#: What a cell of a required column of positive numbers must never be taken for. "Huge" is beyond any run, and
#: "billions" is what remains of a number of tokens where the unit was left out.
BAD_CELLS: dict[str, Any] = {
    "text": "diverged",
    "unit nobody knows": "12 bn?",
    "percent": "12%",
    "not a number": float("nan"),
    "infinite": float("inf"),
    "beyond floats": "1e400",
    "negative": -1.5,
    "zero": 0.0,
    "empty": "",
    "a date": "2026-01-01",
    "a decimal comma": "2,75",
}


@dataclass(kw_only=True, repr=False)
class Sheet:
    """A table on its way into a file, with what must come of it."""

    columns: dict[str, list[Any]]
    order: list[str] = field(default_factory=lambda: list(CLEAN.columns))
    options: dict[str, dict[str, str]] = field(default_factory=lambda: {"mapping": {}, "units": {}})
    expect: str = "same"
    column: str = ""
    row: int | None = None
    kept: list[int] = field(default_factory=lambda: list(range(len(CLEAN))))
    absent: list[str] = field(default_factory=list)
    duplicated: str = ""
    story: list[str] = field(default_factory=list)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def __repr__(self) -> str:
        cell = "" if self.row is None else f"[{self.row}] = {self.columns[self.column][self.row]!r}"
        return f"<{', '.join(self.story)}: {self.column}{cell}, {self.options}, {self.expect}>"

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def argv(self) -> list[str]:
        flags = {"mapping": "--map", "units": "--unit"}
        return [
            part
            for kind, pairs in self.options.items()
            for name, value in pairs.items()
            for part in (flags[kind], f"{name}={value}")
        ]


def sheet() -> Sheet:
    return Sheet(columns={name: CLEAN[name].tolist() for name in CLEAN})


# ------------------------------------------------------------------ what may happen to the content


def no_change(draw: Any, s: Sheet) -> None:
    """A file that is only laid out differently."""


def bad_cell(draw: Any, s: Sheet) -> None:
    s.column = draw(st.sampled_from(["F", "D", "loss", "N"]))
    s.row = draw(ROWS)
    s.columns[s.column][s.row] = BAD_CELLS[draw(st.sampled_from(list(BAD_CELLS)))]
    s.expect = "refused"


def bad_sparsity(draw: Any, s: Sheet) -> None:
    s.column, s.row, s.expect = "S", draw(ROWS), "refused"
    s.columns["S"][s.row] = draw(st.sampled_from([1.0, 1.2, 95.0, -0.4, float("nan"), "sparse", 1e9]))


def missing_name(draw: Any, s: Sheet) -> None:
    s.column, s.row, s.expect = draw(st.sampled_from(["arch", "cell"])), draw(ROWS), "refused"
    s.columns[s.column][s.row] = draw(st.sampled_from(["", "  "]))


def billions_in_one_row(draw: Any, s: Sheet) -> None:
    s.column, s.row, s.expect = "D", draw(ROWS), "refused"
    s.columns["D"][s.row] /= 1e9


def billions(draw: Any, s: Sheet) -> None:
    name = draw(st.sampled_from(["D", "N", "F"]))
    s.columns[name] = [value / 1e9 for value in s.columns[name]]
    s.column, s.expect = name, "refused"


def percent(draw: Any, s: Sheet) -> None:
    s.columns["S"] = [100 * value for value in s.columns["S"]]
    s.column, s.expect = "S", "refused"


def dropped_column(draw: Any, s: Sheet) -> None:
    name = draw(st.sampled_from(["loss", "D", "F", "scale", "cell", "trunk", "run", "source", "N_act"]))
    s.order.remove(name)
    s.absent.append(name)
    s.column, s.expect = name, "refused" if name in ("loss", "D", "F") else "rows"
    if name == "D":
        s.column = ""  # losses of one run at no stated horizon contradict each other, and that is said first


def renamed_column(draw: Any, s: Sheet) -> None:
    name = draw(st.sampled_from(["loss", "D", "F"]))
    new = draw(st.sampled_from(["val/ce", "my column", "=x", "größe", "a,b;c"]))
    s.order[s.order.index(name)] = new
    s.columns[new] = s.columns[name]
    s.column, s.expect = name, "refused"
    if draw(st.booleans()):
        s.options["mapping"][name] = new
        s.expect = "same"
    elif name == "D":
        s.column = ""  # as for a dropped one


def column_twice(draw: Any, s: Sheet) -> None:
    s.duplicated = s.column = draw(st.sampled_from(["loss", "F", "arch"]))
    s.expect = "refused"


def other_units(draw: Any, s: Sheet) -> None:
    name, unit, places = draw(
        st.sampled_from([("D", "B", -9), ("N", "M", -6), ("F", "G", -9), ("S", "percent", 2)])
    )
    # digits moved as text: a product would round
    s.columns[name] = [shifted(value, places) for value in s.columns[name]]
    s.options["units"][name] = unit
    s.expect = "noted"


def for_people(draw: Any, s: Sheet) -> None:
    name, places, suffix = draw(
        st.sampled_from([("D", -9, "B"), ("N", -6, "M"), ("F", -9, " GFLOPs"), ("S", 2, "%")])
    )
    rows = draw(st.lists(ROWS, min_size=1, max_size=3, unique=True))
    for row in rows:
        s.columns[name][row] = f"{shifted(s.columns[name][row], places)}{suffix}"
    s.expect = "noted"


def thousands(draw: Any, s: Sheet) -> None:
    row = draw(ROWS)
    s.columns["D"][row] = f"{int(s.columns['D'][row]):,}"
    s.expect = "noted"


def blanks(draw: Any, s: Sheet) -> None:
    row = draw(ROWS)
    s.columns["arch"][row] = f"  {s.columns['arch'][row]} "
    s.expect = "noted"


def more_columns(draw: Any, s: Sheet) -> None:
    name = draw(st.sampled_from(["mood", "Loss", "loss ", "notes, by hand", "=SUM(A1)", "中文"]))
    if name.strip() == "loss":
        s.column, s.expect = "loss", "refused"
    else:
        s.expect = "noted"
    s.columns[name] = [draw(st.sampled_from(["x", "1", "NaN", 'say "no"']))] * s.rows
    s.order.append(name)


def fewer_rows(draw: Any, s: Sheet) -> None:
    out = set(draw(st.lists(ROWS, min_size=1, max_size=20, unique=True)))
    s.kept = [row for row in s.kept if row not in out]
    s.columns = {name: [values[row] for row in s.kept] for name, values in s.columns.items()}
    s.expect = "rows"


def row_twice(draw: Any, s: Sheet) -> None:
    row = draw(ROWS)
    for values in s.columns.values():
        values.append(values[row])
    s.expect = "noted"


CONTENT: list[Callable[[Any, Sheet], None]] = [
    no_change, bad_cell, bad_cell, bad_sparsity, missing_name, billions_in_one_row, billions, percent, dropped_column,
    renamed_column, column_twice, other_units, for_people, thousands, blanks, more_columns, fewer_rows, row_twice,
]  # fmt: skip


def shifted(value: float, places: int) -> str:
    from decimal import Decimal

    return str(Decimal(repr(value)).scaleb(places))


# ------------------------------------------------------------------ how it may be written


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def as_csv(draw: Any, s: Sheet) -> bytes:
    import csv

    separator = draw(st.sampled_from([",", ";", "\t"]))
    commas = separator == ";" and s.expect in ("same", "rows") and draw(st.booleans())
    sink = io.StringIO()
    writer = csv.writer(
        sink,
        delimiter=separator,
        quoting=draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])),
        lineterminator=draw(st.sampled_from(["\n", "\r\n"])),
    )
    twice = [s.duplicated] if s.duplicated else []
    if draw(st.booleans()):
        sink.write("# made by hand\n")
    writer.writerow(s.order + twice)
    for row in range(s.rows):
        cells = [text_of(s.columns[name][row]) for name in s.order + twice]
        if commas:
            names = {s.options["mapping"].get(name, name) for name in NUMBERS}
            cells = [
                cell.replace(".", ",") if name in names else cell
                for name, cell in zip(s.order, cells, strict=False)
            ]
        writer.writerow(cells)
    if draw(st.booleans()):
        sink.write("\n" + separator * (len(s.order) + len(twice) - 1) + "\n")
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le"]))
    return sink.getvalue().encode(encoding)


def as_lines(draw: Any, s: Sheet) -> bytes:
    rows = []
    for row in range(s.rows):
        record = {name: s.columns[name][row] for name in s.order}
        line = json.dumps(record, ensure_ascii=draw(st.booleans()) if row == 0 else True)
        if s.duplicated:
            line = line[:-1] + f", {json.dumps(s.duplicated)}: {json.dumps(record[s.duplicated])}}}"
        rows.append(line)
    if draw(st.booleans()):
        return "\n".join(rows).encode()
    return ('{"schema_version": 1, "rows": [' + ",".join(rows) + "]}").encode()


def as_parquet(draw: Any, s: Sheet) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays, names = [], []
    for name in s.order + ([s.duplicated] if s.duplicated else []):
        values = s.columns[name]
        if all(isinstance(value, float) for value in values):
            array = pa.array(values, pa.float64())
            kinds = ["float64", "text", "dictionary"]
            if all(np.isfinite(value) and value.is_integer() and abs(value) < 2**53 for value in values):
                kinds += ["int64", "decimal"]
            match draw(st.sampled_from(kinds)):
                case "text":
                    array = pa.array([repr(value) for value in values])
                case "dictionary":
                    array = array.dictionary_encode()
                case "int64":
                    array = pa.array([int(value) for value in values], pa.int64())
                case "decimal":
                    array = pa.array([int(value) for value in values]).cast(pa.decimal128(24, 2))
        else:
            array = pa.array([text_of(value) for value in values])
            if draw(st.booleans()):
                array = array.dictionary_encode()
        arrays.append(array)
        names.append(name)
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays, names=names), sink)
    return sink.getvalue()


@st.composite
def files(draw: Any) -> tuple[Sheet, bytes]:
    s = sheet()
    spoil = draw(st.sampled_from(CONTENT))
    spoil(draw, s)
    s.story.append(spoil.__name__)
    if draw(st.booleans()):  # the order of the rows says nothing
        order = draw(st.randoms(use_true_random=False)).sample(range(s.rows), s.rows)
        s.columns = {name: [values[row] for row in order] for name, values in s.columns.items()}
        s.row = None if s.row is None else order.index(s.row)
    if draw(st.booleans()):
        draw(st.randoms(use_true_random=False)).shuffle(s.order)
    write = draw(st.sampled_from([as_csv, as_csv, as_lines, as_parquet]))
    data = write(draw, s)
    s.story.append(write.__name__)
    if draw(st.integers(0, 3)) == 0:
        data = gzip.compress(data, 1)
    return s, data


# ------------------------------------------------------------------ what must come of it


@cache
def clean_gains() -> np.ndarray:
    return np.array(gains_of(Endpoints.from_frame(CLEAN)))


def gains_of(endpoints: Endpoints) -> list[float]:
    study = fit(endpoints, bootstrap=0)
    table = ce_gain(study, [1e20, 1e21], target="smelt", reference="baseline", sparsities=SPARSITIES)
    return [float(gain) for gain in table["gain"]]


#: Tables whose gains were computed already: equal digests are equal arrays.
KNOWN: set[str] = set()


def expected(s: Sheet, without: int | None = None) -> Endpoints:
    """Return the endpoints that the file holds, from the clean columns alone."""
    rows = [row for row in s.kept if row != without]
    columns = {name: CLEAN[name].to_numpy()[rows] for name in CLEAN if name not in s.absent}
    return Endpoints(columns=columns)


def spoken(argv: list[str]) -> tuple[int, str]:
    """Run a command; return its exit code and what it said."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = run(argv)
    return code, said.getvalue()


def is_refusal(error: str, s: Sheet, path: Path) -> None:
    lines = error.splitlines()
    for line in lines:
        assert line.startswith(f"{path}: "), line
        assert len(line) - len(str(path)) <= 300, line
        assert not re.search(r"\b(Traceback|KeyError|TypeError|ValueError|dtype|NoneType)\b", line), line
    named = [line for line in lines if re.search(rf"\b{re.escape(s.column)}\b", line)]
    assert named, error
    if s.row is not None:
        assert any(f"(first: {s.row + 1})" in line for line in named), error


def outcome(s: Sheet, data: bytes, folder: Path) -> str:
    path = folder / "runs"
    path.write_bytes(data)
    code, said = spoken(["check", str(path), *s.argv])
    assert "Traceback" not in said
    endpoints, error = None, None
    try:
        endpoints = read_endpoints(path, **s.options)
    except SmeltScalingError as caught:
        error = caught
    if endpoints is not None and not {"F", "D"} <= set(endpoints.columns):  # legal, but not for this law
        with pytest.raises(SmeltScalingError) as refused:
            fit(endpoints, bootstrap=0)
        error = refused.value
    if error is not None or endpoints is None:
        assert error is not None
        assert s.expect == "refused", error
        assert code == error.exit_code == 3
        is_refusal(str(error), s, path)
        assert said.count("error: ") == len(said.splitlines()) == len(str(error).splitlines())
        return "refused"
    assert code == 0, said
    spoke = {note.code for note in endpoints.notes} - QUIET
    if s.expect == "refused":
        assert s.row is not None, "taken as it is"
        assert spoke, "left out without a word"
        original = [row for row in s.kept if CLEAN["run"][row] not in set(endpoints["run"])]
        assert len(original) == 1, "a spoilt cell was read as a number"
        right = expected(s, without=original[0])
    else:
        right = expected(s)
        assert s.expect != "noted" or spoke, "converted without a word"
    assert endpoints.digest == right.digest
    if s.expect in ("same", "noted") and endpoints.digest not in KNOWN:
        np.testing.assert_allclose(gains_of(endpoints), clean_gains(), rtol=1e-9)
        KNOWN.add(endpoints.digest)
    return "left out" if s.expect == "refused" else "read"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corrupted")


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(file=files())
def test_a_spoilt_table_is_read_right_or_refused(file: tuple[Sheet, bytes], folder: Path) -> None:
    outcome(*file, folder)


class Fixed:
    """Draws that are decided beforehand: the cell to spoil and with what."""

    def __init__(self, *values: Any) -> None:
        self.values = list(values)

    def __call__(self, strategy: Any) -> Any:
        return self.values.pop(0)


@pytest.mark.parametrize("column", ["F", "D", "loss", "N"])
@pytest.mark.parametrize("kind", BAD_CELLS)
def test_every_bad_cell_in_every_column(column: str, kind: str, folder: Path) -> None:
    """The same as above with nothing left to chance, in the format that every tool writes."""
    s = sheet()
    bad_cell(Fixed(column, 100, kind), s)
    lines = [",".join(s.order)]
    for row in range(s.rows):
        lines.append(",".join(f'"{text_of(s.columns[name][row])}"' for name in s.order))
    assert outcome(s, "\n".join(lines).encode(), folder) in ("refused", "left out")


def test_equal_tables_have_equal_gains(folder: Path) -> None:
    """Equal digests are equal gains, here computed anew from rows in another order and from other formats."""
    reference = clean_gains()
    shuffled = CLEAN.sample(frac=1, random_state=7)
    writers = {
        "csv": lambda frame, path: frame.to_csv(path, index=False),
        "parquet": lambda frame, path: frame.to_parquet(path),
        "jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True, double_precision=15),
        "feather": lambda frame, path: frame.reset_index(drop=True).to_feather(path),
    }
    for name, write in writers.items():
        path = folder / f"runs.{name}"
        write(shuffled, path)
        np.testing.assert_allclose(gains_of(read_endpoints(path)), reference, rtol=1e-9)


def test_short_floats_are_widened_as_they_are(folder: Path) -> None:
    """32-bit floats hold other numbers, and those are read: the gain moves by what the rounding moves it."""
    short = CLEAN.assign(**{name: CLEAN[name].astype(np.float32) for name in NUMBERS})
    short.to_parquet(folder / "short.parquet")
    wide = short.astype(dict.fromkeys(NUMBERS, np.float64))
    read = read_endpoints(folder / "short.parquet")
    assert read.digest == Endpoints.from_frame(wide).digest
    # losses move by 2**-25 relative, gains by less than 100 times that over exponents of .05 and up
    np.testing.assert_allclose(gains_of(read), clean_gains(), atol=1e-5)


@pytest.mark.parametrize("dtype", ["category", "string", "object"])
def test_dtypes_of_frames(dtype: str) -> None:
    frame = CLEAN.astype(str if dtype == "string" else dtype)
    assert Endpoints.from_frame(frame).digest == Endpoints.from_frame(CLEAN).digest


def test_nullable_dtypes_of_frames() -> None:
    frame = CLEAN.convert_dtypes()
    assert any(isinstance(kind, pd.api.extensions.ExtensionDtype) for kind in frame.dtypes)
    assert Endpoints.from_frame(frame).digest == Endpoints.from_frame(CLEAN).digest
