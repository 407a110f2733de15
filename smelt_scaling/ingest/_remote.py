"""Files behind URLs, through fsspec: objects of ``s3://`` and ``gs://``, files of ``https://`` and ``http://``.

fsspec and its drivers are extras; they are imported when a URL is named. Credentials and endpoints are what the drivers
find in their own settings and environment variables.
"""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from glob import has_magic
from pathlib import PurePosixPath
from typing import IO, Any, cast

from smelt_scaling.errors import IngestError

__all__ = ["RemoteFile", "is_remote", "remote_files"]

_INSTALL = {"gs": "gcsfs"}
_DEFAULT = "'smelt-scaling[s3]'"
#: Bytes a driver fetches at a time; their own default of 50 MB per file is a good part of all our memory.
BLOCK = 1 << 22


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """One file behind a URL.

    Parameters
    ----------
    url : str
        Its own address.
    relative : str
        Its path within the folder that was named, or its name where it was named itself.
    size : int
        Bytes; 0 where the server does not say.
    opener : callable
        Opens it; what comes back can seek.
    """

    url: str
    relative: str
    size: int
    opener: Callable[[], IO[bytes]]


def is_remote(path: str) -> bool:
    """Whether a path is a URL that is read here.

    Examples
    --------
    >>> [is_remote(path) for path in ("s3://bucket/runs", "https://host/log.csv", "runs/log.csv", "C:/runs")]
    [True, True, False, False]
    """
    return re.match(r"(s3|gs|https?)://", path) is not None


def remote_files(url: str) -> list[RemoteFile]:
    """List the files of a URL: itself, what a pattern matches, or all of a folder.

    Raises
    ------
    IngestError
        If the driver is missing, nothing is there, or it cannot be listed.
    """
    scheme = url.partition(":")[0]
    try:
        from fsspec.core import url_to_fs

        files, root = url_to_fs(url)
    except ImportError as error:
        raise IngestError(
            f"{url}: {scheme}:// needs a driver: pip install {_INSTALL.get(scheme, _DEFAULT)}"
        ) from error
    try:
        found = _listed(files, root, web=scheme.startswith("http"))
    except Exception as error:  # every driver has exceptions of its own
        raise IngestError(
            f"{url}: cannot be read: {_reason(error)}; check the address and the access to it"
        ) from error
    base = _folder(root) if set(found) == {root} or has_magic(root) else root.rstrip("/")
    listed = [
        RemoteFile(
            url=path if scheme.startswith("http") else f"{scheme}://{path}",
            relative=path.removeprefix(base).lstrip("/"),
            size=int(info.get("size") or 0),
            opener=lambda path=path: _opened(files, path),  # type: ignore[misc]
        )
        for path, info in found.items()
    ]
    listed = [
        file
        for file in listed
        if not any(part.startswith(".") for part in PurePosixPath(file.relative).parts)
    ]
    if not listed:
        raise IngestError(f"{url}: no file there; name a folder with logs, or the files")
    return listed


def _listed(files: Any, root: str, *, web: bool) -> dict[str, dict[str, Any]]:
    if web:  # a question mark is part of an address, and a server has no folders
        return {root: files.info(root)}
    if has_magic(root):
        found = files.glob(root, detail=True)
    elif files.isfile(root):
        return {root: files.info(root)}
    else:
        found = files.find(root, detail=True)
    return {path: info for path, info in found.items() if info["type"] == "file"}


def _folder(root: str) -> str:
    """Return the folder of a file, or of the first pattern in a path."""
    parts = root.partition("?")[0].split("/") if not has_magic(root) else root.split("/")
    first = next((i for i, part in enumerate(parts) if has_magic(part)), len(parts) - 1)
    return "/".join(parts[:first])


def _opened(files: Any, path: str) -> IO[bytes]:
    try:
        stream = files.open(path, "rb", block_size=BLOCK, cache_type="readahead")
        if not stream.seekable():  # a server that sends files only as a whole
            whole = cast(IO[bytes], tempfile.TemporaryFile())  # noqa: SIM115 - handed on
            with stream:
                shutil.copyfileobj(stream, whole)
            whole.seek(0)
            return whole
    except Exception as error:  # every driver has exceptions of its own
        raise OSError(_reason(error)) from error
    return cast(IO[bytes], io.BufferedReader(_Plain(stream), 1 << 18))


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200] or type(error).__name__


class _Plain(io.RawIOBase):
    """A driver's stream whose failures are an OSError, as of any file."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except Exception as error:  # every driver has exceptions of its own
            raise OSError(_reason(error)) from error
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()
