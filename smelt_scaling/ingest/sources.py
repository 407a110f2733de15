"""Where logs come from: paths, globs, folders and URLs as a sorted list of files that can be opened."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from glob import glob, has_magic
from itertools import takewhile
from os.path import commonprefix
from pathlib import Path
from typing import IO, Any, cast

from smelt_scaling.errors import IngestError
from smelt_scaling.ingest._groups import together
from smelt_scaling.ingest._remote import is_remote, remote_files

__all__ = ["HEAD", "WANDB", "Source", "chunks", "find_sources", "sha256", "text_lines"]

#: Bytes that a reader may look at to recognise its format.
HEAD = 262144
#: How addresses of runs on a W&B server begin; the address itself is all that such a source holds.
WANDB = "wandb://"
#: What reading packed data raises when they are damaged or end early.
_BROKEN = (EOFError, OSError, lzma.LZMAError, zlib.error, ValueError)


@dataclass(frozen=True, kw_only=True)
class Source:
    """One file of logs.

    Parameters
    ----------
    path : str
        As shown in messages: a path or URL.
    name : str
        What to call a run that the log itself does not name: the path within the folder that was given, without
        its endings.
    size : int
        Bytes, as stored.
    opener : callable
        Opens the stored bytes.
    local : pathlib.Path, optional
        Where it lies, if it is a local file.
    progress : callable, optional
        Called with the number of stored bytes read since the last call.
    beside : tuple of Source
        Further files that make one log with this one and are read through it (see `parts`).
    """

    path: str
    name: str
    size: int
    opener: Callable[[], IO[bytes]] = field(repr=False)
    local: Path | None = None
    progress: Callable[[int], None] | None = field(default=None, repr=False)
    beside: tuple[Source, ...] = field(default=(), repr=False)

    @property
    def folder(self) -> str:
        """The folder's part of the path, with slashes."""
        return self.path.replace("\\", "/").rpartition("/")[0]

    def parts(self) -> list[Source]:
        """Return this file and those beside it, sorted by path."""
        others = (replace(part, progress=self.progress) for part in self.beside)
        return sorted([replace(self, beside=()), *others], key=lambda part: part.path)

    def open(self) -> IO[bytes]:
        """Open the file, unpacked (gzip, bzip2, xz, zstd by content).

        Raises
        ------
        IngestError
            If it cannot be opened.
        """
        try:
            raw: IO[bytes] = self.opener()
            if self.progress is not None:
                raw = cast(IO[bytes], io.BufferedReader(_Layer(raw, report=self.progress), 1 << 18))
            start = raw.read(6)
            raw.seek(0)
        except OSError as error:
            reason = error.strerror or str(error)
            raise IngestError(f"{self.path}: cannot be read: {reason}; check the file") from error
        unpack = next((unpack for mark, unpack in _PACKED.items() if start.startswith(mark)), None)
        if unpack is None:
            return raw
        return cast(IO[bytes], io.BufferedReader(_Layer(unpack(raw), beneath=raw), 1 << 18))

    def head(self) -> bytes:
        """Return the first bytes, unpacked; fewer where the packed data end early."""
        with self.open() as stream:
            try:
                return stream.read(HEAD)
            except _BROKEN as error:
                raise IngestError(
                    f"{self.path}: broken packed data ({error}); copy the file again"
                ) from error


def _unzstd(raw: IO[bytes]) -> IO[bytes]:
    import pyarrow as pa

    return cast(IO[bytes], pa.CompressedInputStream(raw, "zstd"))


#: First bytes of packed data -> what unpacks them.
_PACKED: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": _unzstd,
}


class _Layer(io.RawIOBase):
    """A stream that reports how much of it was read, or closes what it unpacks."""

    def __init__(
        self,
        stream: IO[bytes],
        *,
        report: Callable[[int], None] | None = None,
        beneath: IO[bytes] | None = None,
    ) -> None:
        self._stream, self._report, self._beneath = stream, report, beneath

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        if self._report is not None:
            self._report(len(data))
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        if self._beneath is not None:
            self._beneath.close()
        super().close()


def find_sources(paths: Sequence[str | Path]) -> list[Source]:
    """List the files of paths, globs, folders (searched through) and URLs; sorted, those of one log as one source.

    Parameters
    ----------
    paths : sequence of str or pathlib.Path
        Local, or ``s3://``, ``gs://``, ``https://`` (see the extra ``[s3]``), or ``wandb://`` addresses.

    Raises
    ------
    IngestError
        If a path or pattern matches nothing.
    """
    found: dict[str, Source] = {}
    for path in map(str, paths):
        for source in _at(path):
            found.setdefault(source.path, source)
    return together(_told_apart([found[path] for path in sorted(found)]))


def _at(path: str) -> Iterator[Source]:
    if path.startswith(WANDB):
        name, held = path.removeprefix(WANDB).strip("/"), path.encode()
        yield Source(path=path, name=name, size=len(held), opener=lambda: io.BytesIO(held))
    else:
        yield from _from_url(path) if is_remote(path) else _local(path)


def _local(path: str) -> Iterator[Source]:
    place = Path(path)
    if place.is_dir():
        files = [file for file in place.rglob("*") if file.is_file() and not _hidden(file.relative_to(place))]
        root = place
    elif place.is_file():
        files, root = [place], place.parent
    elif has_magic(path):
        files = [Path(file) for file in glob(path, recursive=True) if Path(file).is_file()]
        root = Path(*takewhile(lambda part: not has_magic(part), place.parts))
    else:
        raise IngestError(f"{path}: no such file or folder; check the path")
    if not files:
        raise IngestError(f"{path}: no file there; name a folder with logs, or the files")
    for file in files:
        yield Source(
            path=str(file),
            name=_bare(file.relative_to(root).as_posix()),
            size=file.stat().st_size,
            opener=lambda file=file: file.open("rb"),  # type: ignore[misc]
            local=file,
        )


def _from_url(url: str) -> Iterator[Source]:
    for file in remote_files(url):
        yield Source(path=file.url, name=_bare(file.relative), size=file.size, opener=file.opener)


def _bare(name: str) -> str:
    """Return a path without its endings; a decimal is none.

    Examples
    --------
    >>> [_bare(name) for name in ("a/log.csv", "log.jsonl.gz", "lr=0.1", "lr=0.1.log", "log.csv?version=2")]
    ['a/log', 'log', 'lr=0.1', 'lr=0.1', 'log']
    """
    return re.sub(r"(?<=[^/])(\.[A-Za-z]\w*)?(\.(gz|bz2|xz|zst))?(\?[^/]*)?$", "", name)


def _told_apart(sources: list[Source]) -> list[Source]:
    """Name files of one name by their folders as well: the shell passes ``*/main.log`` as single files."""
    same: dict[str, list[str]] = {}
    for source in sources:
        same.setdefault(source.name, []).append(source.path)
    return [
        replace(source, name=_bare(source.path[len(_common(same[source.name])) :]))
        if len(same[source.name]) > 1
        else source
        for source in sources
    ]


def _common(paths: list[str]) -> str:
    """Return the folder that paths share, with its last slash."""
    shared = commonprefix(paths)
    return shared[: max(shared.rfind("/"), shared.rfind(os.sep)) + 1]


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def sha256(path: str) -> str | None:
    """Return the sha256 of a local file as stored, None for anything else."""
    if not Path(path).is_file():
        return None
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def chunks(source: Source, size: int = 1 << 20) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked, in pieces of one size; the last may be shorter.

    Raises
    ------
    IngestError
        If packed data are damaged or end early.
    """
    with source.open() as stream:
        try:
            while chunk := stream.read(size):
                yield chunk
        except _BROKEN as error:
            raise IngestError(f"{source.path}: broken packed data ({error}); copy the file again") from error


def text_lines(source: Source) -> Iterator[tuple[int, str, bool]]:
    r"""Yield (line number from 1, text without its end, whole); the last line of a file without an end is not whole.

    Bytes that are no UTF-8 are replaced, so that one damaged line costs no more than itself.
    """
    with source.open() as stream:
        try:
            for number, line in enumerate(stream, 1):
                yield number, line.decode("utf-8", "replace").rstrip("\r\n"), line.endswith(b"\n")
        except _BROKEN as error:
            raise IngestError(f"{source.path}: broken packed data ({error}); copy the file again") from error
