"""Reading tidy tables: formats by content, text kept as written, one-line errors."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from smelt_scaling.endpoints import Endpoints
from smelt_scaling.errors import IngestError
from smelt_scaling.ingest import read_endpoints
from smelt_scaling.ingest.tidy import read_table

FRAME = pd.DataFrame(
    {
        "arch": ["NaN", "007", "None", "SMELT ×2 中文"],
        "scale": ["1.6", "100M", "a;b", 'say "1,5"'],
        "F": [6e8, 6.5e8, 1.25e9, 1e10],
        "S": [0.0, 0.86, 0.947, 0.9],
        "D": [10**10, 20_486_000_000, 10**11, 10**12],
        "loss": [3.0, 2.75, 2.5, 2.125],
    }
)
REFERENCE = Endpoints.from_frame(FRAME).digest
CSV = FRAME.to_csv(index=False)


def write(folder: Path, data: bytes | str) -> Path:
    path = folder / "runs.anything"  # the name says nothing on purpose
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def arrow(kind: str) -> bytes:
    table = pa.Table.from_pandas(FRAME)
    sink = io.BytesIO()
    make = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}[kind]
    with make(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def decimal_commas() -> str:
    frame = FRAME.astype({"D": float})
    return frame.to_csv(index=False, sep=";", decimal=",")


FORMATS: dict[str, bytes | str] = {
    "csv": CSV,
    "tsv": FRAME.to_csv(index=False, sep="\t"),
    "semicolons": FRAME.to_csv(index=False, sep=";"),
    "decimal commas": decimal_commas(),
    "crlf": CSV.replace("\n", "\r\n"),
    "bom": b"\xef\xbb\xbf" + CSV.encode(),
    "utf-16": CSV.encode("utf-16"),
    "comments and blank lines": "# made by hand\n\n" + CSV.replace("007,", "\n# half\n007,") + "\n\n",
    "trailing separators": "".join(line + ",\n" for line in CSV.splitlines()),
    "gzip": gzip.compress(CSV.encode()),
    "json records": FRAME.to_json(orient="records"),
    "json columns": json.dumps(FRAME.to_dict(orient="list")),
    "json rows": json.dumps({"schema_version": 1, "rows": FRAME.to_dict(orient="records")}),
    "json lines": FRAME.to_json(orient="records", lines=True),
    "json lines, gzip": gzip.compress(FRAME.to_json(orient="records", lines=True).encode()),
    "parquet": FRAME.to_parquet(),
    "parquet with an index": FRAME.set_index("arch").to_parquet(),
    "parquet with categories": FRAME.astype({"arch": "category", "scale": "category"}).to_parquet(),
    "arrow file": arrow("file"),
    "arrow stream": arrow("stream"),
}


@pytest.mark.parametrize("data", FORMATS.values(), ids=FORMATS.keys())
def test_every_format_is_the_same_table(tmp_path: Path, data: bytes | str) -> None:
    assert read_endpoints(write(tmp_path, data)).digest == REFERENCE


def test_feather(tmp_path: Path) -> None:
    FRAME.to_feather(tmp_path / "runs.feather")
    assert read_endpoints(tmp_path / "runs.feather").digest == REFERENCE


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FRAME.to_parquet())))
    endpoints = read_endpoints("-")
    assert endpoints.digest == REFERENCE
    assert endpoints.source == "<stdin>"


def test_mapping_units_and_rule_are_handed_on(tmp_path: Path) -> None:
    path = write(tmp_path, "model;params;tokens;ppl\nx;0,1;20,5;7\n")
    mapping = {"arch": "model", "N": "params", "D": "tokens", "loss": "ppl"}
    endpoints = read_endpoints(path, mapping=mapping, units={"N": "B", "D": "B", "loss": "ppl"}, flops="6N")
    assert endpoints.F.tolist() == [6e8]
    assert endpoints.D.tolist() == [2.05e10]
    notes = {note.code: note.count for note in endpoints.notes}
    assert notes["decimal_comma"] == 2


@pytest.mark.parametrize(
    ("losses", "tokens", "expected"),
    [
        (["2,10", "2,05"], ["10000000000", "20000000000"], ([2.10, 2.05], [1e10, 2e10])),
        (["2,100", "2,050"], ["1e10", "2e10"], ([2.1, 2.05], [1e10, 2e10])),
        (
            ["2,10", "2,05"],
            ["10000000000,5", "20.000.000.000,5"],
            ([2.10, 2.05], [10000000000.5, 20000000000.5]),
        ),
        (["2.10", "2.05"], ["10,000,000,000", "20,000,000,000"], ([2.10, 2.05], [1e10, 2e10])),
        (["2.10", "2.05"], ["215,605", "315,605"], ([2.10, 2.05], [215605, 315605])),
    ],
)
def test_commas_in_numbers(
    tmp_path: Path, losses: list[str], tokens: list[str], expected: tuple[list[float], list[float]]
) -> None:
    lines = [f"a;{row};6e8;{d};{loss}" for row, (d, loss) in enumerate(zip(tokens, losses, strict=True))]
    endpoints = read_endpoints(write(tmp_path, "arch;run;F;D;loss\n" + "\n".join(lines)))
    order = endpoints["run"].argsort()
    assert endpoints.loss[order].tolist() == expected[0]
    assert endpoints.D[order].tolist() == expected[1]


def test_text_columns_keep_their_commas(tmp_path: Path) -> None:
    endpoints = read_endpoints(write(tmp_path, "arch;scale;F;loss\na;1,6;6e8;2,5\n"))
    assert endpoints["scale"].tolist() == ["1,6"]


def test_integers_beyond_64_bits(tmp_path: Path) -> None:
    path = write(tmp_path, '{"arch": "a", "C": 2150000000000000000000, "loss": 2.0, "seed": 1}\n')
    endpoints = read_endpoints(path)
    assert endpoints.C.tolist() == [2.15e21]
    assert endpoints["seed"].tolist() == ["1"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty"),
        ("# only\n# comments\n", "only comments"),
        ("arch F D loss\na 1 2 3\n", "line 1 is no header ('arch F D loss'): columns must be separated"),
        ("arch,F,loss\na,6e8\n", "line 2 has 2 cells, the header 3"),
        (
            '# c\narch,F,loss\na,6e8,2.5\n\n"b,6e8,2.5\n',
            "line 5: quotes that do not match (unexpected end of data)",
        ),
        (
            "arch;F;loss\na;6e8;2,5\nb;6.5e8;2.5\n",
            "column loss, 1 row (first: 1) with a decimal comma beside 2 numbers with a decimal point: use one of them",
        ),
        ("arch,F,loss\né,6e8,2.5\n".encode("latin-1"), "line 2 is not UTF-8 text"),
        (b"\x00\x01\x02\x03,", "binary data"),
        (b"PK\x03\x04rest", "Excel workbook"),
        (b"PAR1 and no more", "broken Parquet or Arrow file"),
        (gzip.compress(b"a,b", mtime=0)[:-6], "broken gzip data"),
        ('[{"arch": "a"', "line 1, column 14: broken JSON"),
        ('{"arch": "a"}\n{"arch": \n', "line 2: broken JSON"),
        ("[1, 2]", "record 1 is a number: rows must be objects"),
        ('{"arch": ["a", "b"], "F": [1]}', "columns of unequal length"),
        ("[]", "no rows"),
    ],
)
def test_unreadable_files_say_where_and_what_to_do(tmp_path: Path, data: bytes | str, message: str) -> None:
    path = write(tmp_path, data)
    with pytest.raises(IngestError) as caught:
        read_endpoints(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert message in text
    assert "\n" not in text


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(IngestError, match="no such file"):
        read_endpoints(tmp_path / "nothing.csv")
    with pytest.raises(IngestError, match="a folder"):
        read_endpoints(tmp_path)


def test_the_table_as_it_stands(tmp_path: Path) -> None:
    frame, notes = read_table(write(tmp_path, "a,b\n001,\n"))
    assert frame.to_dict(orient="list") == {"a": ["001"], "b": [""]}
    assert notes == ()


# ---------------------------------------------------------------------- real tables

# rows, architectures and the unit of each public table, counted in the files themselves with pandas
REAL = {
    "chinchilla_epoch.csv": ({"run": "run_id"}, 245, 1, "run"),
    "datablations.csv": ({"run": "run_id"}, 289, 1, "run"),
    "gadre_endpoints.csv": ({"arch": "train_dataset", "loss": "loss_c4_val", "run": "run_id"}, 104, 3, "run"),
    "gadre_losses_long.parquet": ({"arch": "train_dataset", "run": "run_id"}, 832, 3, "run"),
    "gemstones_hot_100bplus_477.parquet": ({"run": "run_id"}, 3850, 1, "run"),
    "gemstones_slim_chinchilla.csv": ({}, 28, 1, "row"),
    "isoflop_llama_3.csv": ({"run": "run_id"}, 266, 2, "run"),
    "misfitting_dense_checkpoints.parquet": ({"arch": "model"}, 4850, 11, "row"),  # 4852, two of them twice
    "misfitting_dense_endpoints.csv": ({"run": "run_id", "lr": "peak_lr"}, 261, 1, "run"),
    "routed_lm_endpoints.csv": (
        {"arch": "router_type", "loss": "loss_validation", "scale": "model_size_label", "N_act": "N_active"},
        223,
        4,
        "scale*tier",
    ),
    "xlstm_tokenparam.csv": ({"run": "run_id"}, 66, 2, "run"),
}


@pytest.mark.parametrize("name", REAL)
def test_public_tables(real_data: Path, name: str) -> None:
    mapping, rows, archs, unit = REAL[name]
    endpoints = read_endpoints(real_data / "sets" / name, mapping=mapping)
    assert (len(endpoints), len(endpoints.archs), endpoints.cells()[1]) == (rows, archs, unit)
    assert read_endpoints(real_data / "sets" / name, mapping=mapping).digest == endpoints.digest


def test_rows_without_a_loss_are_left_out_and_counted(real_data: Path) -> None:
    """8 of 5576 checkpoints have no validation loss (counted in the file with pandas)."""
    endpoints = read_endpoints(
        real_data / "sets" / "routed_lm_curves.parquet",
        mapping={"arch": "router_type", "loss": "loss_validation"},
    )
    notes = {note.code: note.count for note in endpoints.notes}
    assert notes["nonfinite"] == 8
    assert len(endpoints) + notes.get("duplicate_rows", 0) == 5576 - 8


def test_public_tables_without_a_size_are_refused(real_data: Path) -> None:
    from smelt_scaling.errors import DataError

    with pytest.raises(DataError, match="no column F, N or C"):
        read_endpoints(real_data / "sets" / "misfitting_moe_runs.csv", mapping={"loss": "loss_c4"})
