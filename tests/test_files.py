"""Files as people have them: every kind is read right, or refused in one line that says what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import zipfile
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from smelt_scaling.endpoints import COLUMNS, Endpoints
from smelt_scaling.errors import SmeltScalingError
from smelt_scaling.ingest import read_endpoints
from smelt_scaling.ingest._separated import read_plain, read_separated

#: Two runs, as plain as they come; every readable file below holds them.
F, D, LOSS = [6e8, 1.25e9], [20_486_000_000, 215_605_043_200], [3.25, 2.5]
CSV = "arch,F,D,loss\n007,6e8,20486000000,3.25\nNaN,1.25e9,215605043200,2.5\n"
FRAME = pd.DataFrame({"arch": ["007", "NaN"], "F": F, "D": D, "loss": LOSS})
KINDS = {name: column.kind for name, column in COLUMNS.items()}


def read(folder: Path, data: bytes | str, **options: Any) -> Endpoints:
    path = folder / "runs.data"  # the name says nothing on purpose
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_endpoints(path, **options)


def check(endpoints: Endpoints, archs: tuple[str, ...] = ("007", "NaN")) -> dict[str, int]:
    """Compare with the two runs; return the notes."""
    assert endpoints.archs == tuple(sorted(archs))
    order = np.argsort(endpoints.F)
    assert endpoints.F[order].tolist() == F
    assert endpoints.D[order].tolist() == D
    assert endpoints.loss[order].tolist() == LOSS
    return {note.code: note.count for note in endpoints.notes}


def refusal(folder: Path, data: bytes | str, **options: Any) -> str:
    """Return what is said of a file that cannot be read: one line, without the file's name."""
    with pytest.raises(SmeltScalingError) as caught:
        read(folder, data, **options)
    text = str(caught.value)
    assert caught.value.exit_code == 3
    assert text.startswith(f"{folder / 'runs.data'}: ")
    assert "\n" not in text
    return text.removeprefix(f"{folder / 'runs.data'}: ")


def zipped(members: dict[str, bytes | str]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sink.getvalue()


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def parquet(**columns: Any) -> bytes:
    """Write the two runs as Parquet, with some columns replaced by Arrow arrays."""
    sink = io.BytesIO()
    plain = {name: pa.array(FRAME[name].tolist()) for name in FRAME}
    pq.write_table(pa.table(plain | columns), sink)
    return sink.getvalue()


# ------------------------------------------------------------------ encodings

ENCODINGS: dict[str, bytes] = {
    "utf-8 with a mark": b"\xef\xbb\xbf" + CSV.encode(),
    "utf-16 little-endian": b"\xff\xfe" + CSV.encode("utf-16-le"),
    "utf-16 big-endian": b"\xfe\xff" + CSV.encode("utf-16-be"),
    "utf-16 little-endian without a mark": CSV.encode("utf-16-le"),
    "utf-16 big-endian without a mark": CSV.encode("utf-16-be"),
    "utf-32": CSV.encode("utf-32"),
    "excel's unicode text": CSV.replace(",", "\t").replace("\n", "\r\n").encode("utf-16"),
    "json with a mark": b"\xef\xbb\xbf" + FRAME.to_json(orient="records").encode(),
    "json in utf-16": FRAME.to_json(orient="records").encode("utf-16"),
}


@pytest.mark.parametrize("data", ENCODINGS.values(), ids=ENCODINGS)
def test_case_37_encodings(tmp_path: Path, data: bytes) -> None:
    assert not check(read(tmp_path, data))


@pytest.mark.parametrize("extra", ["", '"quoted",1,1,1\n'])
def test_case_37_bytes_that_are_no_utf_8_name_their_line(tmp_path: Path, extra: str) -> None:
    data = (CSV + "caf\xe9,6e8,1e10,3\n" + extra).encode("latin-1")
    assert refusal(tmp_path, data) == "line 4 is not UTF-8 text (byte E9): save the file as UTF-8"


def test_utf_16_cut_off_in_the_middle_of_a_letter(tmp_path: Path) -> None:
    assert "line 4 is not UTF-16 text" in refusal(tmp_path, CSV.encode("utf-16") + b"x")


# ------------------------------------------------------------------ separated text

LAYOUTS: dict[str, str] = {
    "semicolons": CSV.replace(",", ";"),
    "tabs": CSV.replace(",", "\t"),
    "excel names the separator": "sep=;\n" + CSV.replace(",", ";"),
    "windows line ends": CSV.replace("\n", "\r\n"),
    "old macintosh line ends": CSV.replace("\n", "\r"),
    "no line end at the end": CSV.rstrip("\n"),
    "blank lines": "\n\n" + CSV.replace("\n", "\n\n") + "\n \n\n",
    "lines of separators, as spreadsheets leave them": CSV + ",,,\n,,,\n",
    "comments": "# runs of November\n" + CSV.replace("007", "# not annealed, yet\n007") + "# the end\n",
    "quotes everywhere": "".join(
        ",".join(f'"{cell}"' for cell in line.split(",")) + "\n" for line in CSV.splitlines()
    ),
    "blanks around cells": CSV.replace(",", " , "),
    "separators at the end of lines": CSV.replace("\n", ",\n"),
    "other columns": "arch,F,D,loss,mood\n007,6e8,20486000000,3.25,\nNaN,1.25e9,215605043200,2.5,ok\n",
    "another order of columns and rows": "loss,D,F,arch\n2.5,215605043200,1.25e9,NaN\n3.25,20486000000,6e8,007\n",
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_case_37_layouts(tmp_path: Path, text: str) -> None:
    check(read(tmp_path, text))


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_the_fast_and_the_careful_reader_agree(text: str) -> None:
    fast = read_plain(text.encode(), "runs", KINDS)
    if fast is None:
        return
    careful, _ = read_separated(text, "runs", set(KINDS))
    assert list(fast.columns) == list(careful.columns)
    for name in fast:
        typed = careful[name].astype(float) if fast[name].dtype == np.float64 else careful[name]
        assert fast[name].tolist() == typed.tolist()


def test_plain_tables_take_the_fast_reader() -> None:
    plain = [CSV, LAYOUTS["tabs"], LAYOUTS["semicolons"], LAYOUTS["windows line ends"], "\ufeff" + CSV]
    for text in plain:
        frame = read_plain(text.encode(), "runs", KINDS)
        assert frame is not None
        assert frame["loss"].dtype == np.float64
        assert frame["arch"].tolist() == ["007", "NaN"]


def test_case_37_decimal_commas(tmp_path: Path) -> None:
    text = "arch;F;D;loss\n007;6e8;20486000000;3,25\nNaN;1,25e9;215605043200;2,5\n"
    assert check(read(tmp_path, text)) == {"decimal_comma": 3}


def test_case_37_decimal_commas_beside_points(tmp_path: Path) -> None:
    text = "arch;F;D;loss\n007;6e8;20486000000;3,25\nNaN;1.25e9;215605043200;2,5\n"
    assert refusal(tmp_path, text) == (
        "column F, 1 row (first: 2) with a decimal point beside 2 numbers with a decimal comma: use one of them"
    )


def test_quoted_cells_hold_separators_quotes_and_line_ends(tmp_path: Path) -> None:
    text = 'arch,F,D,loss\n"a, ""b""\nc",6e8,20486000000,3.25\n"x;y",1.25e9,215605043200,2.5\n'
    check(read(tmp_path, text), ('a, "b"\nc', "x;y"))


@pytest.mark.parametrize("sign", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_only_line_ends_end_lines(tmp_path: Path, sign: str) -> None:
    """Names may hold what Unicode counts as line separators; JSON may hold it unescaped."""
    check(read(tmp_path, CSV.replace("NaN", f"x{sign}y")), ("007", f"x{sign}y"))
    check(read(tmp_path, CSV.replace("NaN", f'"x{sign}y"')), ("007", f"x{sign}y"))
    if sign in "\x85\u2028":
        lines = FRAME.to_json(orient="records", lines=True, force_ascii=False).replace('"NaN"', f'"x{sign}y"')
        check(read(tmp_path, lines), ("007", f"x{sign}y"))


@pytest.mark.parametrize(
    ("row", "cells"), [("x,6e8,1e10", 3), ("x,6e8,1e10,3,4", 5), ("x", 1), ("x,1,000,2,3", 5)]
)
def test_ragged_rows_name_their_line(tmp_path: Path, row: str, cells: int) -> None:
    assert refusal(tmp_path, CSV + row + "\n") == (
        f"line 4 has {cells} cells, the header 4: mend the line or quote cells that contain the separator"
    )


def test_a_row_behind_a_hash_is_neither_kept_nor_dropped(tmp_path: Path) -> None:
    said = refusal(tmp_path, CSV.replace("NaN", "#NaN"))
    assert said.startswith("line 3 starts with # and has as many cells as the header: quote the first cell")
    check(read(tmp_path, CSV.replace("NaN", '"#NaN"')), ("007", "#NaN"))


def test_a_header_behind_a_hash(tmp_path: Path) -> None:
    said = refusal(tmp_path, "# " + CSV)
    assert said == "the header is a comment (#arch,F,D,loss): remove the # before it"


def test_columns_that_appear_twice(tmp_path: Path) -> None:
    text = "arch,F,D,loss,loss\na,6e8,1e10,3.25,3.5\n"
    assert refusal(tmp_path, text) == "columns that appear twice: loss; rename or drop one of each"
    record = '{"arch": "a", "F": 6e8, "D": 1e10, "loss": 3.25, "loss": 3.5}'
    assert "has the key loss twice" in refusal(tmp_path, record + "\n" + record)
    assert "has the key loss twice" in refusal(tmp_path, f"[{record}]")


@pytest.mark.parametrize("form", ["[{}]", "{}"])
def test_half_of_a_character_is_refused(tmp_path: Path, form: str) -> None:
    """JSON may escape half of a surrogate pair, which no file, no table and no screen can hold."""
    record = '{"arch": "a\\ud83d", "F": 6e8, "D": 1e10, "loss": 2.5}'
    assert r"text holds '\ud83d', half of a character" in refusal(tmp_path, form.replace("{}", record))
    whole = record.replace("ud83d", r"ud83d\ude00")
    path = tmp_path / "whole.json"
    path.write_text(f"[{whole}]")
    assert read_endpoints(path).archs == ("a\U0001f600",)


@pytest.mark.parametrize("text", [FRAME.to_csv(), FRAME.to_csv(sep=";"), FRAME.to_csv(sep="\t")])
def test_an_unnamed_index_is_ignored_with_a_note(tmp_path: Path, text: str) -> None:
    endpoints = read(tmp_path, text)
    assert check(endpoints) == {"ignored_columns": 1}
    assert "unnamed 1" in endpoints.notes[0].message


def test_an_index_that_came_back_as_a_column(tmp_path: Path) -> None:
    once = pd.read_csv(io.StringIO(FRAME.to_csv()), dtype={"arch": str}, keep_default_na=False)
    assert check(read(tmp_path, once.to_parquet())) == {"ignored_columns": 1}  # "Unnamed: 0"


EMPTY: dict[str, tuple[bytes | str, str]] = {
    "nothing": ("", "empty: a table needs a header and rows"),
    "blanks": (" \n\n\t\n", "empty: a table needs a header and rows"),
    "a mark": (b"\xef\xbb\xbf", "empty: a table needs a header and rows"),
    "utf-16 blanks": ("\n\n".encode("utf-16"), "empty: a table needs a header and rows"),
    "gzip of nothing": (gzip.compress(b""), "empty: a table needs a header and rows"),
    "comments": ("# a\n# b\n", "only comments: a table needs a header and rows"),
    "header": ("arch,F,D,loss\n", "no rows"),
    "header, quoted": ('"arch",F,D,loss\n', "no rows"),
    "no records": ("[]", "no rows"),
    "no rows": ('{"schema_version": 1, "rows": []}', "no rows"),
    "parquet": (FRAME.iloc[:0].to_parquet(), "no rows"),
}


@pytest.mark.parametrize(("data", "says"), EMPTY.values(), ids=EMPTY)
def test_tables_without_rows(tmp_path: Path, data: bytes | str, says: str) -> None:
    assert says in refusal(tmp_path, data)


# ------------------------------------------------------------------ packed, and no table at all

PACKED: dict[str, bytes] = {
    "gzip": gzip.compress(CSV.encode()),
    "zstd": zstd(CSV.encode()),
    "bzip2": bz2.compress(CSV.encode()),
    "xz": lzma.compress(CSV.encode()),
    "zip": zipped({"runs.csv": CSV}),
    "zip from a macintosh": zipped({"runs.csv": CSV, "__MACOSX/._runs.csv": b"\0\1"}),
    "parquet in gzip": gzip.compress(FRAME.to_parquet()),
    "json lines in zstd": zstd(FRAME.to_json(orient="records", lines=True).encode()),
}


@pytest.mark.parametrize("data", PACKED.values(), ids=PACKED)
def test_packed_files(tmp_path: Path, data: bytes) -> None:
    assert not check(read(tmp_path, data))


OTHERS: dict[str, tuple[bytes | str, str]] = {
    "xlsx": (
        zipped({"[Content_Types].xml": "<a/>", "xl/workbook.xml": "<a/>", "xl/sheet1.xml": "<a/>"}),
        "an Excel workbook or other spreadsheet",
    ),
    "ods": (zipped({"mimetype": "a", "content.xml": "<a/>"}), "save the sheet as CSV UTF-8"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "an Excel workbook"),
    "zip of two": (zipped({"a.csv": CSV, "b.csv": CSV}), "a zip archive of 2 files (a.csv, b.csv)"),
    "zip of none": (zipped({}), "zip archive"),
    "checkpoint": (zipped({"model/data.pkl": b"a", "model/version": b"3"}), "arrays or a checkpoint"),
    "html": ("<!DOCTYPE html>\n<html><body>Log in</body></html>\n", "a web page or XML document"),
    "html after blanks": ("\n  <html>\n", "a web page or XML document"),
    "pickle": (pickle.dumps({"loss": [1]}), "pickles run code and are not opened"),
    "npy": (b"\x93NUMPY\x01\x00", "a NumPy array"),
    "feather, version 1": (b"FEA1\0\0\0\0", "a Feather file of version 1: "),
    "hdf5": (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    "sqlite": (b"SQLite format 3\0", "an SQLite database"),
    "lfs": ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
    "tar": (b"runs.csv".ljust(257, b"\0") + b"ustar" + bytes(250), "a tar archive"),
    "bytes": (b"\x00\x01\x02\x03,\n", "binary data of an unknown format"),
    "cut gzip": (gzip.compress(CSV.encode())[:-9], "broken gzip data"),
    "cut zstd": (zstd(CSV.encode())[:-9], "broken zstd data"),
    "cut bzip2": (bz2.compress(CSV.encode())[:-9], "broken bzip2 data"),
    "cut xz": (lzma.compress(CSV.encode())[:-9], "broken xz data"),
    "cut zip": (zipped({"runs.csv": CSV})[:-9], "cannot be unpacked"),
    "cut parquet": (FRAME.to_parquet()[:-9], "broken Parquet or Arrow file"),
    "prose": ("The loss was 3.25.\nThen it fell.\n", "line 1 is no header"),
    "aligned columns": ("arch F D loss\na 6e8 1e10 3\n", "must be separated by commas, semicolons or tabs"),
}


@pytest.mark.parametrize(("data", "says"), OTHERS.values(), ids=OTHERS)
def test_files_that_hold_no_readable_table(tmp_path: Path, data: bytes | str, says: str) -> None:
    assert says in refusal(tmp_path, data)


# ------------------------------------------------------------------ Parquet, Feather, Arrow: types

BIG = 10_000_000_000_000_000_000  # above 2**63
TYPES: dict[str, dict[str, Any]] = {
    "int64": {"D": pa.array(D, pa.int64())},
    "int64 with a null-free mask": {"D": pa.array(np.array(D), mask=np.array([False, False]))},
    "uint64": {"D": pa.array(D, pa.uint64())},
    "decimal128": {"loss": pa.array([Decimal("3.25"), Decimal("2.50")], pa.decimal128(10, 2))},
    "float32 loss": {"loss": pa.array(LOSS, pa.float32())},  # both are exact in binary
    "dictionary of text": {"arch": pa.array(["007", "NaN"]).dictionary_encode()},
    "dictionary of numbers": {"loss": pa.array(LOSS).dictionary_encode()},
    "large text": {"arch": pa.array(["007", "NaN"], pa.large_string())},
    "bytes as text": {"arch": pa.array([b"007", b"NaN"])},
    "numbers as text": {"loss": pa.array(["3.25", "2.5"]), "D": pa.array([str(d) for d in D])},
    "whole numbers as floats": {"D": pa.array([float(d) for d in D])},
    "an unread timestamp": {"created": pa.array([datetime(2026, 1, 1), None])},
    "an unread list": {"history": pa.array([[1.0, 2.0], None])},
    "an unread column of nulls": {"nothing": pa.nulls(2)},
}  # fmt: skip


@pytest.mark.parametrize("columns", TYPES.values(), ids=TYPES)
def test_case_47_types_that_hold_the_numbers(tmp_path: Path, columns: dict[str, Any]) -> None:
    check(read(tmp_path, parquet(**columns)))


def test_case_47_integers_beyond_int64(tmp_path: Path) -> None:
    """Budgets overflow 64-bit products: they are floats before anything is multiplied."""
    budgets = pa.array([BIG, BIG + 2048], pa.uint64())
    endpoints = read(tmp_path, parquet(C=budgets, F=pa.array([5e8, 5e8]), D=pa.array([2e10, 2e10])))
    assert endpoints.C.tolist() == [1e19, 1e19 + 2048]


def test_case_47_float16_names_its_end(tmp_path: Path) -> None:
    said = refusal(tmp_path, parquet(F=pa.array(np.array([np.inf, np.inf], np.float16))))  # what 1e9 became
    assert "float16 ends at 65504; write the column as float64" in said


def test_case_47_nullable_integers(tmp_path: Path) -> None:
    frame = FRAME.astype({"D": "Int64", "loss": "Float64", "arch": "string"})
    check(read(tmp_path, frame.to_parquet()))
    holed = frame.assign(D=pd.array([D[0], None], dtype="Int64"))
    assert "column D, 1 row (first: 2) missing" in refusal(tmp_path, holed.to_parquet())


@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime(2026, 1, 1)] * 2),
        pa.array([datetime(2026, 1, 1).date()] * 2),
        pa.array([timedelta(seconds=3)] * 2),
        pa.array([[3.25], [2.5]]),
        pa.array([{"value": 3.25}, {"value": 2.5}]),
        pa.array([True, True]),
    ],
    ids=lambda column: str(column.type),
)
def test_types_that_are_no_numbers(tmp_path: Path, column: Any) -> None:
    said = refusal(tmp_path, parquet(loss=column))
    assert said.startswith(
        f"column loss is of type {str(column.type).replace('item', 'element')}: each of its cells must be a number; "
    )


def test_a_nested_name(tmp_path: Path) -> None:
    said = refusal(tmp_path, parquet(arch=pa.array([["a"], ["b"]])))
    assert "each of its cells must be text" in said


def test_columns_twice_in_parquet(tmp_path: Path) -> None:
    sink = io.BytesIO()
    columns = [pa.array(FRAME[name].tolist()) for name in FRAME]
    pq.write_table(pa.table([*columns, columns[-1]], names=[*FRAME, "loss"]), sink)
    assert refusal(tmp_path, sink.getvalue()).startswith("columns that appear twice: loss")


def test_feather_and_streams(tmp_path: Path) -> None:
    for compression in ("zstd", "lz4", "uncompressed"):
        FRAME.to_feather(tmp_path / "runs.feather", compression=compression)
        check(read_endpoints(tmp_path / "runs.feather"))
    table = pa.Table.from_pandas(FRAME)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=1):  # dictionaries differ from batch to batch
            writer.write_batch(batch)
    check(read(tmp_path, sink.getvalue()))


# ------------------------------------------------------------------ JSON

RECORDS = json.loads(FRAME.to_json(orient="records"))
TWO_MORE = "\n" + 2 * '{"loss": 3.25, "F": 6e8, "D": 1e10}\n'
JSONS: dict[str, str] = {
    "records": json.dumps(RECORDS),
    "records, indented": json.dumps(RECORDS, indent=2),
    "lines": "\n".join(json.dumps(record) for record in RECORDS),
    "lines, with blank ones": "\n\n" + "\n\n".join(json.dumps(record) for record in RECORDS) + "\n\n",
    "rows of our own": json.dumps({"schema_version": 1, "command": "example", "rows": RECORDS, "notes": []}),
    "columns": json.dumps(FRAME.to_dict(orient="list")),
    **{f"pandas, {way}": FRAME.to_json(orient=way) for way in ("columns", "index", "split", "table")},
    "nested values beside": json.dumps([{**record, "config": {"lr": [1, 2]}} for record in RECORDS]),
}


@pytest.mark.parametrize("text", JSONS.values(), ids=JSONS)
def test_json_layouts(tmp_path: Path, text: str) -> None:
    check(read(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"loss": 3.25, "F": 6e8, "D": 1e10}\n{"loss": 3, "D": 1e10}', "column F, 1 row (first: 2) missing"),
        ('{"loss": 3, "F": 6e8, "D": 1e10}\n{"loss": 3, "F"', "line 2: broken JSON"),
        ('[{"loss": 3, "F": 6e8, "D": 1e10},', "broken JSON"),
        ('{"loss": {"ce": 3}, "F": 6e8}', "column loss, 1 row (first: 1) with an object: a cell is a number"),
        (
            '{"loss": [3], "F": 6e8}' + TWO_MORE,
            "column loss, 1 row (first: 1) with a list: a cell is a number",
        ),
        ('{"loss": true, "F": 6e8}', "column loss, 1 row (first: 1) with true or false: a cell is a number"),
        (
            '{"loss": 3, "F": 6e8, "arch": ["a"]}' + TWO_MORE,
            "column arch, 1 row (first: 1) with a list: a cell is text",
        ),
        ("[[1, 2], [3, 4]]", "record 1 is a list: rows must be objects with column names"),
        ('["a"]', "record 1 is text"),
        ('{"loss": {"0": 3}, "F": {"1": 6e8}}', "columns whose rows have different names"),
        ('{"columns": ["loss", "F"], "data": [[3]]}', "record 1 does not have the 2 values"),
        ("[" * 100_000, "JSON nested too deeply"),
    ],
)
def test_json_that_is_refused(tmp_path: Path, text: str, says: str) -> None:
    assert says in refusal(tmp_path, text)


@pytest.mark.parametrize("loss", ["NaN", "Infinity", "-Infinity", "1e400", "null"])
def test_case_4_losses_that_are_no_numbers(tmp_path: Path, loss: str) -> None:
    """Tokens beyond strict JSON are understood, and such rows are no endpoints."""
    endpoints = read(tmp_path, f'{{"loss": {loss}, "F": 6e8, "D": 4e10}}' + TWO_MORE)
    assert len(endpoints) < 3
    assert "nonfinite" in {note.code for note in endpoints.notes}


# ------------------------------------------------------------------ names and numbers

NAMES = ["SMELT x2 中文", "a/b c", "=cmd()", "NaN", "None", "null", "007", "1e5", "true", "-", "é", "🧪 x"]


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_case_38_names_stay_text(tmp_path: Path, form: str) -> None:
    frame = pd.DataFrame({"arch": NAMES, "F": 6e8, "D": 1e10, "loss": np.linspace(3, 4, len(NAMES))})
    data = {
        "csv": lambda: frame.to_csv(index=False),
        "parquet": frame.to_parquet,
        "jsonl": lambda: frame.to_json(orient="records", lines=True),
    }[form]()
    assert read(tmp_path, data).archs == tuple(sorted(NAMES))


def test_case_38_blanks_around_names(tmp_path: Path) -> None:
    assert check(read(tmp_path, CSV.replace("007", " 007 "))) == {"trimmed_text": 1}


HUMAN = {
    "215,605,043,200": ("D", '"215,605,043,200"'),
    "215605.0432M": ("D", "215605.0432M"),
    "215.6050432B": ("D", "215.6050432B"),
    "1.25 GFLOPs": ("F", "1.25 GFLOPs"),
    "1250M": ("F", "1250M"),
}


@pytest.mark.parametrize(("column", "cell"), HUMAN.values(), ids=HUMAN)
def test_case_13_numbers_for_people_are_read_with_a_note(tmp_path: Path, column: str, cell: str) -> None:
    old = {"D": "215605043200", "F": "1.25e9"}[column]
    assert check(read(tmp_path, CSV.replace(old, cell))) == {"parsed_numbers": 1}


@pytest.mark.parametrize("cell", ["2.15605043200e11", "+215605043200", "215605043200.0", " 215605043200 "])
def test_case_13_plain_numbers_need_no_note(tmp_path: Path, cell: str) -> None:
    assert not check(read(tmp_path, CSV.replace("215605043200", cell)))


def test_case_13_percent(tmp_path: Path) -> None:
    text = "arch,F,S,D,loss\na,6e8,94.7%,1e10,3.25\nb,6e8,0.86,1e10,3\n"
    endpoints = read(tmp_path, text)
    assert endpoints.S.tolist() == [0.947, 0.86]
    assert [note.code for note in endpoints.notes] == ["parsed_numbers"]


@pytest.mark.parametrize(
    ("old", "cell"),
    [
        ("215605043200", "215 bn?"),
        ("215605043200", "1.2.3"),
        ("215605043200", "215 605 043 200"),
        ("215605043200", "2.1e+"),
        ("2.5", "12%"),
        ("2.5", "\u22121.5"),
        ("2.5", "2.5?"),
        ("2.5", "2.5 nats"),
        ("2.5", "#DIV/0!"),
        ("2.5", "0x1p1"),
        ("2.5", '"2,5"'),
        ("2.5", "diverged"),
    ],
)
def test_case_13_other_numbers_are_refused_with_their_row(tmp_path: Path, old: str, cell: str) -> None:
    said = refusal(tmp_path, CSV.replace(old, cell))
    shown = cell.strip('"')
    column = "loss" if old == "2.5" else "D"
    assert said.startswith(f"column {column}, 1 row (first: 2) not a number ({shown!r}): use ")
