"""Where logs come from: names of files, packed files, and URLs on servers of the loopback."""

from __future__ import annotations

import bz2
import gzip
import http.server
import lzma
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest.events import Block
from smelt_scaling.ingest.keys import Keys
from smelt_scaling.ingest.readers import READERS
from smelt_scaling.ingest.sources import Source, find_sources

CSV = "step,eval/loss\n" + "".join(f"{step},{9 - step / 1000}\n" for step in range(1000))


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Folder with one log in three forms, and files that are no logs."""
    folder = tmp_path / "logs"
    (folder / "deep").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "a.csv").write_text(CSV)
    (folder / "plain.csv").write_text(CSV)
    (folder / "deep" / "packed.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    steps = list(range(1000))
    table = pa.table({"step": steps, "eval/loss": [9 - step / 1000 for step in steps]})
    pq.write_table(table, folder / "deep" / "table.parquet")
    return folder


def steps_of(source: Source) -> int:
    """Read a log as an analysis would; returns the last step."""
    head = source.head()
    [reader] = [reader for reader in READERS.values() if reader.sniff(head, source.path)]
    blocks = [event for event in reader.read(source, Keys()) if isinstance(event, Block)]
    assert {block.run for block in blocks} == {source.name}
    assert sum(len(block.step) for block in blocks) == 1000
    return int(blocks[-1].step[-1])


def names(*paths: str | Path) -> list[str]:
    return [source.name for source in find_sources(list(paths))]


def test_runs_are_named_by_their_paths_within_what_was_named(logs: Path) -> None:
    assert names(logs) == ["deep/packed", "deep/table", "plain"]
    assert names(logs / "plain.csv") == ["plain"]
    assert names(f"{logs}/*/*.gz") == ["deep/packed"]
    assert names(f"{logs}/**/*.csv*") == ["deep/packed", "plain"]
    assert names(logs, logs / "plain.csv") == names(logs)  # each file once
    assert [steps_of(source) for source in find_sources([logs])] == [999, 999, 999]


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for run in ("lr=0.1", "lr=0.2"):
        (tmp_path / "sweep" / run).mkdir(parents=True)
        (tmp_path / "sweep" / run / "main.log").write_text("s:1 tel:3.0\n")
    files = sorted((tmp_path / "sweep").rglob("*.log"))
    assert names(*files) == ["lr=0.1/main", "lr=0.2/main"]
    assert names(f"{tmp_path}/sweep/*/main.log") == ["lr=0.1/main", "lr=0.2/main"]
    assert names(files[0]) == ["main"]


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zstd])
def test_packed_files_are_read_and_closed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(pack(CSV.encode()))
    [source] = find_sources([path])
    read: list[int] = []
    with replace(source, progress=read.append).open() as stream:
        assert stream.read() == CSV.encode()
    assert sum(read) >= source.size
    assert steps_of(source) == 999
    if pack is not bytes:
        path.write_bytes(pack(CSV.encode())[:-30])
        with pytest.raises(IngestError, match=r"log\.csv: broken (packed data|table) \(.*\); copy"):
            steps_of(source)


@pytest.mark.parametrize("path", ["nowhere", "nowhere/*.csv"])
def test_nothing_there_is_one_line(tmp_path: Path, path: str) -> None:
    with pytest.raises(IngestError, match=r"nowhere.*: no (such file or folder|file there); "):
        find_sources([tmp_path / path])


@pytest.mark.parametrize(
    ("url", "package"), [("s3://bucket/runs", r"'smelt-scaling\[s3\]'"), ("gs://bucket/runs", "gcsfs")]
)
def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch, url: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(IngestError, match=rf"^{url}: .*:// needs a driver: pip install {package}$"):
        find_sources([url])


@pytest.fixture
def web(logs: Path) -> Iterator[str]:
    """Address of a server of the folder, which like many sends files only as a whole."""
    pytest.importorskip("aiohttp", reason="needs the extra [s3]")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(logs))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.oracle
def test_files_of_a_web_server(web: str, logs: Path) -> None:
    urls = [f"{web}/{path}" for path in ("deep/packed.csv.gz", "deep/table.parquet", "plain.csv?download=1")]
    sources = find_sources(urls)
    assert [source.path for source in sources] == urls
    assert [source.name for source in sources] == ["packed", "table", "plain"]
    assert sources[2].size == (logs / "plain.csv").stat().st_size
    assert [steps_of(source) for source in sources] == [999, 999, 999]
    with pytest.raises(
        IngestError, match=rf"^{web}/nothing\.csv: cannot be read: .*; check the address and the access"
    ):
        find_sources([f"{web}/nothing.csv"])


@pytest.fixture
def bucket(logs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a bucket with the folder's files, on a server of the loopback."""
    moto = pytest.importorskip("moto.server", reason="needs the extra [oracle]")
    import boto3
    import s3fs

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    s3fs.S3FileSystem.clear_instance_cache()
    client = boto3.client("s3")
    client.create_bucket(Bucket="runs")
    for file in logs.rglob("*.*"):
        if file.is_file():
            client.upload_file(str(file), "runs", f"sweep/{file.relative_to(logs).as_posix()}")
    yield "s3://runs"
    client.close()
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.oracle
def test_objects_of_a_bucket(bucket: str, logs: Path) -> None:
    sources = find_sources([f"{bucket}/sweep"])
    assert [source.path for source in sources] == [
        f"{bucket}/sweep/{path}" for path in ("deep/packed.csv.gz", "deep/table.parquet", "plain.csv")
    ]
    assert [source.name for source in sources] == ["deep/packed", "deep/table", "plain"]
    local = find_sources([logs])
    assert [source.size for source in sources] == [source.size for source in local]
    assert [steps_of(source) for source in sources] == [999, 999, 999]
    assert names(f"{bucket}/sweep/") == names(f"{bucket}/sweep")
    assert names(f"{bucket}/sweep/*/*.parquet") == ["deep/table"]
    assert names(f"{bucket}/sweep/plain.csv") == ["plain"]
    for missing in ("sweep/nothing.csv", "nowhere", "sweep/*.log"):
        with pytest.raises(
            IngestError, match=r"^s3://runs/\S+: (no file there; name a folder|cannot be read: )"
        ):
            find_sources([f"{bucket}/{missing}"])
    with pytest.raises(
        IngestError, match=r"^s3://other/sweep: cannot be read: .*; check the address and the access"
    ):
        find_sources(["s3://other/sweep"])


@pytest.mark.oracle
def test_progress_counts_stored_bytes(bucket: str) -> None:
    [source] = find_sources([f"{bucket}/sweep/plain.csv"])
    read: list[int] = []
    with replace(source, progress=read.append).open() as stream:
        assert stream.read() == CSV.encode()
    assert sum(read) >= source.size
