"""Records in blocks of 32 KiB, as the log of LevelDB has them, and W&B's files.

Source: https://github.com/google/leveldb/blob/main/doc/log_format.md; W&B has zlib's CRC-32 of type and data in place
of a masked CRC-32C (core/pkg/leveldb/record.go there). A record is one chunk, or a first, middle ones and a last one,
and no chunk crosses a block. After a damaged chunk, reading goes on with the next one in its block whose CRC holds,
where LevelDB goes on with the next block.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from smelt_scaling.ingest._tfrecord import Lost

__all__ = ["BLOCK", "blocked_records"]

#: Bytes per block.
BLOCK = 32768
_HEADER = 7  # CRC (4), length (2), type (1)
_DAMAGED, _FULL, _FIRST, _LAST = 0, 1, 2, 4


def blocked_records(blocks: Iterable[bytes], lost: Lost, *, skip: int = 0) -> Iterator[bytes]:
    """Yield the data of every whole record, in order; count in ``lost`` what could not be read.

    Parameters
    ----------
    blocks : iterable of bytes
        The file in pieces of `BLOCK` bytes; the last may be shorter.
    lost : Lost
        ``gaps`` counts damaged places, ``bytes`` what could not be read.
    skip : int
        Bytes at the beginning of the file that are no chunk.
    """
    begun: bytes | None = None  # what there is so far of a record in several chunks
    for number, block in enumerate(blocks):
        for kind, data in _chunks(block, 0 if number else skip, lost):
            if kind in (_DAMAGED, _FULL, _FIRST) and begun is not None:
                lost.gaps += kind != _DAMAGED
                lost.bytes += len(begun)
                begun = None
            if kind == _FULL:
                yield data
            elif kind == _FIRST:
                begun = data
            elif begun is None:
                lost.bytes += len(data)
            elif kind == _LAST:
                yield begun + data
                begun = None
            else:
                begun += data
    if begun is not None:
        lost.torn = True
        lost.bytes += len(begun)


def _chunks(block: bytes, at: int, lost: Lost) -> Iterator[tuple[int, bytes]]:
    """Yield type and data of the chunks of a block."""
    while len(block) - at >= _HEADER:
        end = _end(block, at)
        if _intact(block, at, end):
            yield block[at + 6], block[at + _HEADER : end]
        else:
            following = _following(block, at)
            if end > len(block) == following < BLOCK:
                break
            end = following
            lost.gaps += 1
            lost.bytes += end - at
            yield _DAMAGED, b""
        at = end
    if at < len(block) < BLOCK:
        lost.torn = True
        lost.bytes += len(block) - at


def _following(block: bytes, at: int) -> int:
    """Return where the next chunk begins whose CRC holds; the end of the block if there is none."""
    places = range(at + 1, len(block) - _HEADER + 1)
    kinds = range(_FULL, _LAST + 1)
    return next(
        (to for to in places if block[to + 6] in kinds and _intact(block, to, _end(block, to))), len(block)
    )


def _end(block: bytes, at: int) -> int:
    return at + _HEADER + int.from_bytes(block[at + 4 : at + 6], "little")


def _intact(block: bytes, at: int, end: int) -> bool:
    return end <= len(block) and zlib.crc32(block[at + 6 : end]) == int.from_bytes(
        block[at : at + 4], "little"
    )
