"""Files of TFRecords: length, its CRC, data, their CRC; both CRCs are checked.

Source: tensorflow/core/lib/io/record_writer.h. A record whose data are damaged costs itself only, since its length is
confirmed. Where a length is damaged, TensorBoard stops; here the next record is looked for, and taken where the CRCs of
its length and of its data both hold, which chance brings about once in 2**64.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from smelt_scaling.ingest._crc32c import crc32c, masked

__all__ = ["Lost", "records"]

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
#: Where a record of an event file may begin: a length below 2**32, and data that begin with a wall time.
_MAY_BEGIN = re.compile(rb"(?=.{4}\0\0\0\0.{4}\t)", re.DOTALL)


@dataclass(kw_only=True)
class Lost:
    """What `records` could not read so far.

    Parameters
    ----------
    records : int
        Records whose data do not agree with their CRC.
    gaps : int
        Places where the length of a record does not agree with its CRC: what follows is lost up to the next record
        that is certain.
    bytes : int
        Bytes of both.
    torn : bool
        Whether the file ends within a record.
    """

    records: int = 0
    gaps: int = 0
    bytes: int = 0
    torn: bool = False


def records(chunks: Iterable[bytes], lost: Lost) -> Iterator[bytes]:
    """Yield the data of every whole record of a file, in order; count in ``lost`` what could not be read."""
    data, searching = b"", False
    for chunk in chunks:
        data += chunk
        while True:
            if searching:
                begin, found = _next_certain(data)
                lost.bytes += begin
                data = data[begin:]
                if not found:
                    break
            whole, end, searching = _framed(data, lost)
            yield from whole
            data = data[end:]
            if not searching:
                break
            lost.gaps += 1
    if searching:
        lost.bytes += len(data)
    else:
        lost.torn = bool(data)


def _framed(data: bytes, lost: Lost) -> tuple[list[bytes], int, bool]:
    """Return the whole records, where they end, and whether what follows is damaged (or else not there yet)."""
    places, at, size = [], 0, len(data)
    while at + 12 <= size:  # lengths are believed here, and checked together below
        places.append(at)
        at += 16 + _LENGTH.unpack_from(data, at)[0]
    lengths = _confirmed(data, places)
    good = len(places) if lengths.all() else int(np.argmin(lengths))
    damaged = good < len(places)
    ends = [*places[1:], at][:good]
    if ends and ends[-1] > size:  # its end is not there yet
        good -= 1
    bodies = [data[first + 12 : last - 4] for first, last in zip(places[:good], ends, strict=False)]
    stored = np.array([_CRC.unpack_from(data, last - 4)[0] for last in ends[:good]], dtype=np.uint32)
    intact = masked(crc32c(bodies)) == stored
    if not intact.all():
        lost.records += int(np.sum(~intact))
        lost.bytes += sum(16 + len(body) for body, ok in zip(bodies, intact, strict=True) if not ok)
        bodies = [body for body, ok in zip(bodies, intact, strict=True) if ok]
    return bodies, places[good] if good < len(places) else at, damaged


def _next_certain(data: bytes) -> tuple[int, bool]:
    """Return where the next certain record begins, or might; and whether it is all there."""
    places = [match.start() for match in _MAY_BEGIN.finditer(data)]
    for at in (at for at, confirmed in zip(places, _confirmed(data, places), strict=True) if confirmed):
        end = at + 16 + _LENGTH.unpack_from(data, at)[0]
        if end > len(data):
            return at, False
        if masked(crc32c([data[at + 12 : end - 4]]))[0] == _CRC.unpack_from(data, end - 4)[0]:
            return at, True
    return max(0, len(data) - 12), False


def _confirmed(data: bytes, places: list[int]) -> NDArray[np.bool_]:
    """Whether the lengths at these places agree with their CRCs."""
    stored = np.array([_CRC.unpack_from(data, at + 8)[0] for at in places], dtype=np.uint32)
    same: NDArray[np.bool_] = masked(crc32c([data[at : at + 8] for at in places])) == stored
    return same
