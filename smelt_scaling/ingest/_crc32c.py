"""CRC-32C (Castagnoli), of many short messages or one long one at once.

A CRC is linear over GF(2): with initial value 0, the CRC of a message is the XOR of what its halves give, the left one
advanced by as many zero bytes as the right one is long. So a batch of messages is folded in halves, all messages at
once, and zeros in front of a message change nothing. Polynomial 0x1EDC6F41, reflected; RFC 3720, appendix B.4 has the
test vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["crc32c", "masked"]

Words = NDArray[np.uint32]

_POLYNOMIAL = np.uint32(0x82F63B78)
#: Four bytes that take the register from 0 to all ones, which is where a CRC-32C starts.
_START = bytes.fromhex("54641f64")
#: Bytes folded at once, so that the work stays in the fastest cache.
_CACHED = 1 << 16


def crc32c(messages: Sequence[bytes]) -> Words:
    """Return the CRC-32C of each message.

    Parameters
    ----------
    messages : sequence of bytes
        Of any lengths.

    Returns
    -------
    (n,) array of uint32
        Their CRCs.

    Examples
    --------
    >>> [hex(crc) for crc in crc32c([b"123456789", bytes(32), b""])]
    ['0xe3069283', '0x8a9136aa', '0x0']
    """
    lengths = np.array([len(message) for message in messages], dtype=np.int64) + len(_START)
    levels = np.ceil(np.log2(lengths)).astype(int)
    found = np.zeros(len(messages), dtype=np.uint32)
    for level in np.unique(levels).tolist():
        width, alike = 1 << level, np.flatnonzero(levels == level)
        together = max(1, _CACHED // width)
        for first in range(0, len(alike), together):
            some = alike[first : first + together]
            padded = b"".join([(_START + messages[i]).rjust(width, b"\0") for i in some])
            found[some] = ~_folded(padded, level)
    return found


def masked(crc: Words) -> Words:
    """Return CRCs as TFRecord files store them: rotated right by 15 bits, plus a constant.

    Examples
    --------
    >>> hex(masked(crc32c([b"123456789"]))[0])
    '0xc78ab0e5'
    """
    rotated: Words = (crc >> np.uint32(15)) | (crc << np.uint32(17))
    return rotated + np.uint32(0xA282EAD8)


def _folded(padded: bytes, levels: int) -> Words:
    """Return the register, from 0, after each block of ``2**levels`` bytes."""
    crc = _pairs().take(np.frombuffer(padded, dtype="<u2"), mode="clip")  # "clip" is what makes `take` fast
    for level in range(1, levels):
        crc = _advance(level, crc[0::2]) ^ crc[1::2]
    return crc


def _advance(level: int, crc: Words) -> Words:
    """Return what ``2**level`` zero bytes make of a register."""
    parts = np.ascontiguousarray(crc, dtype="<u4").view(np.uint8)
    a, b, c, d = (table.take(parts[i::4], mode="clip") for i, table in enumerate(_zeros(level)))
    advanced: Words = a ^ b ^ c ^ d
    return advanced


@cache
def _table() -> Words:
    """Register after each single byte, from 0."""
    crc: Words = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = (crc >> np.uint32(1)) ^ _POLYNOMIAL * (crc & np.uint32(1))
    return crc


@cache
def _pairs() -> Words:
    """Register after each two bytes, from 0; by their number, the first byte being its low one."""
    second, first = np.divmod(np.arange(1 << 16, dtype=np.uint32), np.uint32(256))
    crc = _table()[first]
    after: Words = _table()[(crc & np.uint32(255)) ^ second] ^ (crc >> np.uint32(8))
    return after


@cache
def _zeros(level: int) -> Words:
    """Return, per byte of a register, what ``2**level`` zero bytes make of it: (4, 256)."""
    if level:
        half = _zeros(level - 1)
        return _advance(level - 1, half.ravel()).reshape(half.shape)
    register = np.arange(256, dtype=np.uint32) << (8 * np.arange(4, dtype=np.uint32)[:, None])
    after: Words = _table()[register & np.uint32(255)] ^ (register >> np.uint32(8))
    return after
