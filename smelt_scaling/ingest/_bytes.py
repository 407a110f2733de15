"""The bytes of a file: read whole, unpacked, named by their first bytes, decoded."""

from __future__ import annotations

import codecs
import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from smelt_scaling.errors import IngestError

__all__ = ["decode", "read_bytes"]

_READ = "tables are read from CSV, JSON, JSON lines, Parquet and Feather"

#: How files begin that hold no table of these kinds: what to call them and how to get a table out of them.
_OTHERS: tuple[tuple[bytes, str, str], ...] = (
    (b"\xd0\xcf\x11\xe0", "an Excel workbook", "save the sheet as CSV UTF-8"),
    (b"\x80\x02", "a pickle", "pickles run code and are not opened; write it again with df.to_parquet"),
    (b"\x80\x03", "a pickle", "pickles run code and are not opened; write it again with df.to_parquet"),
    (b"\x80\x04", "a pickle", "pickles run code and are not opened; write it again with df.to_parquet"),
    (b"\x80\x05", "a pickle", "pickles run code and are not opened; write it again with df.to_parquet"),
    (b"\x93NUMPY", "a NumPy array", "it has no column names; write a table with df.to_csv"),
    (b"\x89HDF", "an HDF5 file", "write the table again with df.to_parquet"),
    (b"SQLite format 3", "an SQLite database", "export the query's result as CSV"),
    (b"ORC", "an ORC file", "write the table again as Parquet"),
    (b"FEA1", "a Feather file of version 1", "write it again with df.to_feather"),
    (b"Obj\x01", "an Avro file", "write the table again as Parquet"),
    (b"%PDF", "a PDF document", "copy its table into a CSV file"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file", "fetch the file with: git lfs pull"),
)

#: Order matters: the mark of UTF-32 begins with that of UTF-16.
_MARKS: tuple[tuple[bytes, str, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF8, "utf-8-sig", "UTF-8"),
)


def read_bytes(path: str | Path, source: str) -> bytes:
    """Read a file, or standard input for "-", and unpack it.

    Parameters
    ----------
    path : str or pathlib.Path
        The file.
    source : str
        How to name it in messages.

    Returns
    -------
    bytes
        Not empty, and of no format known to hold no table.

    Raises
    ------
    IngestError
        If there is no such file, it cannot be unpacked, or it is something else.
    """
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except FileNotFoundError:
        raise IngestError(f"{source}: no such file; check the path") from None
    except IsADirectoryError:
        raise IngestError(f"{source}: a folder: a table is one file; name the file in it") from None
    except (OSError, ValueError) as error:  # a path with a NUL in it is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise IngestError(f"{source}: cannot be read: {reason}; check the file") from error
    data = _unpack(data, source)
    if not data[:4096].strip() and not data.strip():
        raise IngestError(
            f"{source}: empty: a table needs a header and rows; check the command that wrote it"
        )
    _refuse_others(data, source)
    return data


def _unpack(data: bytes, source: str) -> bytes:
    """Unpack gzip, zstd, bzip2, xz, or a zip archive with one file in it."""
    if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _unzip(data, source)
    for magic, name, unpack in _PACKERS:
        if data.startswith(magic):
            try:
                return unpack(data)
            except Exception as error:  # each packer has exceptions of its own
                reason = str(error).splitlines()[0] if str(error) else "cut off"
                raise IngestError(f"{source}: broken {name} data ({reason}); copy the file again") from error
    return data


def _gunzip(data: bytes) -> bytes:
    import gzip

    return gzip.decompress(data)


def _unzstd(data: bytes) -> bytes:
    import pyarrow as pa

    with pa.input_stream(io.BytesIO(data), compression="zstd") as stream:
        unpacked: bytes = stream.read()
    return unpacked


def _bunzip(data: bytes) -> bytes:
    import bz2

    return bz2.decompress(data)


def _unxz(data: bytes) -> bytes:
    import lzma

    return lzma.decompress(data)


_PACKERS: tuple[tuple[bytes, str, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", "gzip", _gunzip),
    (b"\x28\xb5\x2f\xfd", "zstd", _unzstd),
    (b"BZh", "bzip2", _bunzip),
    (b"\xfd7zXZ\x00", "xz", _unxz),
)


def _unzip(data: bytes, source: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [
                name
                for name in archive.namelist()
                if not name.endswith("/") and not name.startswith("__MACOSX/")
            ]
            if any(name.startswith("xl/") or name in ("content.xml", "mimetype") for name in names):
                raise IngestError(
                    f"{source}: an Excel workbook or other spreadsheet: {_READ}; save the sheet as CSV UTF-8"
                )
            if any(name.endswith(("/data.pkl", ".npy")) for name in names):
                raise IngestError(
                    f"{source}: arrays or a checkpoint, not a table: {_READ}; write one with df.to_csv"
                )
            if len(names) != 1:
                held = ", ".join(sorted(names)[:4]) + (", ..." if len(names) > 4 else "")
                raise IngestError(
                    f"{source}: a zip archive of {len(names)} files ({held[:120]}): a table is one file; "
                    "unpack it and name the file"
                )
            return archive.read(names[0])
    except (zipfile.BadZipFile, EOFError, RuntimeError, NotImplementedError, OSError) as error:
        # RuntimeError: the archive has a password
        raise IngestError(
            f"{source}: a zip archive or Excel workbook that cannot be unpacked ({error}); "
            "unpack it and name the table in it"
        ) from error


def _refuse_others(data: bytes, source: str) -> None:
    for magic, what, remedy in _OTHERS:
        if data.startswith(magic):
            raise IngestError(f"{source}: {what}: {_READ}; {remedy}")
    if data[257:262] == b"ustar":
        raise IngestError(f"{source}: a tar archive: a table is one file; unpack it and name the file")
    head = data[:512].removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if head == b"<":
        raise IngestError(
            f"{source}: a web page or XML document, not a table (a log-in or error page?); "
            f"{_READ}; download the file itself"
        )


def decode(data: bytes, source: str) -> str:
    """Decode text by its byte order mark; without one it is UTF-8, or UTF-16 if every other byte is zero.

    Raises
    ------
    IngestError
        If it is no such text; names the line.
    """
    encoding, name = next(
        ((encoding, name) for mark, encoding, name in _MARKS if data.startswith(mark)),
        _unmarked(data),
    )
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].decode(encoding, "replace").count("\n") + 1
        shown = data[error.start : error.start + 1].hex().upper()
        raise IngestError(
            f"{source}: line {line} is not {name} text (byte {shown}): save the file as UTF-8"
        ) from error
    if "\0" in text:
        raise IngestError(f"{source}: binary data of an unknown format: {_READ}; export the table as one")
    if not text.strip():
        raise IngestError(
            f"{source}: empty: a table needs a header and rows; check the command that wrote it"
        )
    return text


def _unmarked(data: bytes) -> tuple[str, str]:
    head = data[:256]
    if len(head) >= 8 and not any(head[1::2]) and all(head[0::2]):
        return "utf-16-le", "UTF-16"
    if len(head) >= 8 and not any(head[0::2]) and all(head[1::2]):
        return "utf-16-be", "UTF-16"
    return "utf-8", "UTF-8"
