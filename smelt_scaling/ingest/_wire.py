"""The wire format of protocol buffers, by hand: a message is a list of numbered fields.

Source: https://protobuf.dev/programming-guides/encoding. Only what event files need: no groups, no schema.
"""

from __future__ import annotations

from typing import Any

__all__ = ["fields", "signed", "varints"]


def fields(data: bytes) -> list[tuple[int, Any]]:
    r"""Return (number, value) of every field, in order: an int for a varint, the bytes of anything else.

    Raises
    ------
    ValueError
        If the bytes are no message.

    Examples
    --------
    >>> fields(b"\x08\x96\x01\x12\x02hi\x1d\x00\x00\x80\x3f")
    [(1, 150), (2, b'hi'), (3, b'\x00\x00\x80?')]
    """
    found: list[tuple[int, Any]] = []
    at, end = 0, len(data)
    try:
        while at < end:
            key = data[at]
            at += 1
            if key > 127:
                key, at = _varint(data, at - 1)
            kind = key & 7
            if kind == 0 or kind == 2:
                value = data[at]
                at += 1
                if value > 127:
                    value, at = _varint(data, at - 1)
                if kind == 0:
                    found.append((key >> 3, value))
                    continue
                size = value
            elif kind == 1:
                size = 8
            elif kind == 5:
                size = 4
            else:
                raise ValueError(f"wire type {kind}")
            found.append((key >> 3, data[at : at + size]))
            at += size
    except IndexError:
        at = end + 1
    if at > end:
        raise ValueError("a field is cut off")
    return found


def varints(data: bytes) -> list[int]:
    r"""Return the numbers of a packed field.

    Examples
    --------
    >>> varints(b"\x01\x96\x01")
    [1, 150]
    """
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value)
    return found


def signed(value: int) -> int:
    """Return a varint as the 64-bit integer that it stands for.

    Examples
    --------
    >>> signed(150), signed(2**64 - 1)
    (150, -1)
    """
    return value - (1 << 64) if value >> 63 else value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for byte in data[at : at + 10]:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at + shift // 7
    raise ValueError("a number is cut off")
