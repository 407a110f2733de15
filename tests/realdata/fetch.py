"""Download the public data that the tests on real data read, and turn it into the tables they expect.

    python tests/realdata/fetch.py FOLDER
    SMELT_TEST_DATA=FOLDER pytest -m realdata

Every raw file comes from a public repository at a pinned commit and must have the SHA-256 in ``manifest.json``; so must
the content of every table made from them. Raw files are kept under FOLDER/raw, so a second run downloads only what is
missing. Needs NumPy, pandas and pyarrow.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from convert import CONVERSIONS  # noqa: E402
from rawfiles import read_csv  # noqa: E402

HOST = "https://raw.githubusercontent.com"
BLOCK = 1 << 16
TIMEOUT = 60  # seconds without a byte


class FetchError(Exception):
    """A file that cannot be had, or is not the one that was pinned; one line."""


def main(arguments: list[str] | None = None) -> int:
    """Make all tables; return 1 if one is missing, with a line on standard error for each reason."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the tables go; made if it is not there")
    parser.add_argument(
        "--from",
        dest="local",
        type=Path,
        metavar="RAW",
        help="read raw files from RAW/OWNER/REPOSITORY/PATH instead of downloading them",
    )
    parser.add_argument("--host", default=HOST, help="download from this address instead of %(default)s")
    options = parser.parse_args(arguments)
    manifest = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
    return fetch(options.folder, manifest, local=options.local, host=options.host)


def fetch(folder: Path, manifest: dict[str, Any], *, local: Path | None = None, host: str = HOST) -> int:
    """Do the work of ``main``."""
    missing = 0
    for repository, source in manifest.items():
        raw, failed = {}, 0
        for path, sha256 in source["files"].items():
            try:
                place = (local or folder / "raw") / repository / path
                if local is None:
                    url = f"{host}/{repository}/{source['commit']}/{urllib.parse.quote(path)}"
                    download(url, place, sha256)
                raw[path] = checked(place, sha256)
            except FetchError as error:
                print(error, file=sys.stderr)
                failed += 1
        tables = source["tables"]
        if failed:
            print(
                f"not available: {', '.join(tables)} ({failed} of {len(source['files'])} raw files of {repository})"
            )
            missing += len(tables)
            continue
        try:
            made = CONVERSIONS[repository](raw)
        except Exception as error:  # whatever goes wrong in one set must not keep the others from being made
            reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            print(f"not available: {', '.join(tables)} (conversion of {repository} failed: {reason})")
            missing += len(tables)
            continue
        for name, sha256 in tables.items():
            try:
                write(made[name], folder / name, sha256)
                print(f"{folder / name}: {len(made[name])} rows")
            except FetchError as error:
                print(error, file=sys.stderr)
                print(f"not available: {name} (not the table that was pinned)")
                missing += 1
    if missing:
        print(f"{missing} tables were not made; tests that read them fail unless an earlier run made them")
        return 1
    print(f"all tables made; run the tests with SMELT_TEST_DATA={folder}")
    return 0


def download(url: str, place: Path, sha256: str) -> None:
    """Stream a URL into a file, unless the file is there already with the right content."""
    if place.is_file() and hashlib.sha256(place.read_bytes()).hexdigest() == sha256:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(place.name + ".part")
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer, part.open("wb") as file:
            while block := answer.read(BLOCK):
                digest.update(block)
                file.write(block)
    except (urllib.error.URLError, HTTPException, OSError) as error:
        part.unlink(missing_ok=True)
        reason = " ".join(str(getattr(error, "reason", None) or error).split())
        code = f"HTTP {error.code}: " if isinstance(error, urllib.error.HTTPError) else ""
        raise FetchError(
            f"{url}: cannot download ({code}{reason}); check the network and run again"
        ) from error
    if digest.hexdigest() != sha256:
        part.unlink()
        raise FetchError(
            f"{url}: SHA-256 is {digest.hexdigest()}, not the pinned {sha256}; the download was damaged or "
            "the file was changed: run again"
        )
    os.replace(part, place)


def checked(place: Path, sha256: str) -> bytes:
    """Return the content of a raw file, which must be the pinned one."""
    if not place.is_file():
        raise FetchError(f"{place}: no such file; leave out --from to download it")
    data = place.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise FetchError(
            f"{place}: SHA-256 is {found}, not the pinned {sha256}; get the file at the pinned commit"
        )
    return data


def write(table: pd.DataFrame, place: Path, sha256: str) -> None:
    """Write a table as CSV or Parquet; what is read back from the file must have the pinned digest."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(place.name + ".part")
    if place.suffix == ".parquet":
        table.to_parquet(part, index=False)
    else:
        table.to_csv(part, index=False, lineterminator="\n")
    found = table_digest(read(part, place.suffix))
    if found != sha256:
        part.unlink()
        raise FetchError(f"{place}: the table's digest is {found}, not the pinned {sha256}; not written")
    os.replace(part, place)


def read(place: Path, suffix: str) -> pd.DataFrame:
    """Read a table back as it was written."""
    return pd.read_parquet(place) if suffix == ".parquet" else read_csv(place.read_bytes())


def table_digest(table: pd.DataFrame) -> str:
    """Return a SHA-256 of column names and cells, in their order; numbers count to 12 significant digits.

    Twelve digits leave room for the last bit of a logarithm or of a decimal parser, and for nothing else.
    """
    digest = hashlib.sha256()
    for name in table:
        cells = [cell_text(cell) for cell in table[name]]
        digest.update("\n".join([name, *cells, ""]).encode())
    return digest.hexdigest()


def cell_text(cell: Any) -> str:
    if isinstance(cell, (bool, np.bool_, str)):
        return str(cell)
    return "" if math.isnan(cell) else f"{float(cell):.12g}"


if __name__ == "__main__":
    raise SystemExit(main())
