"""Numbers in TensorProto messages (tensorflow/core/framework/tensor.proto), which some event files hold as scalars."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from smelt_scaling.ingest._wire import fields, signed, varints

__all__ = ["single"]

#: dtype -> NumPy's name of the bytes in tensor_content.
_DTYPES = {
    1: "<f4",
    2: "<f8",
    3: "<i4",
    4: "|u1",
    5: "<i2",
    6: "|i1",
    9: "<i8",
    14: "<u2",
    17: "<u2",
    19: "<f2",
    22: "<u4",
    23: "<u8",
}
_BFLOAT16, _HALF = 14, 19
#: Fields that hold values one by one: floats and doubles as their bytes, halves and integers as varints.
_FLOATS, _VARINTS = (5, 6), (7, 10, 13, 16, 17)


def single(tensor: bytes) -> float | None:
    r"""Return the number of a tensor of one; None for any other tensor.

    Values may stand in ``tensor_content`` or one by one; where there are none, they are zeros.

    Raises
    ------
    ValueError
        If the bytes are no such message.

    Examples
    --------
    >>> single(b"\x08\x01\x12\x00\x22\x04\x00\x00\xc0\x3f"), single(b"\x08\x0e\x12\x00\x6a\x02\x80\x7f")
    (1.5, 1.0)
    """
    dtype, elements, content, number = 0, 1, b"", None
    for place, data in fields(tensor):
        if place == 1:
            dtype = data
        elif place == 2:
            elements = prod(dict(fields(size)).get(1, 0) for kind, size in fields(data) if kind == 2)
        elif place == 4 or place in _FLOATS:
            content = content or data
        elif place in _VARINTS:
            number = data if isinstance(data, int) else varints(data)[0]
    if dtype not in _DTYPES or elements != 1:
        return None
    if number is not None and dtype not in (_HALF, _BFLOAT16):
        return float(signed(number))
    if number is not None:
        content = number.to_bytes(2, "little")
    return _number(content, dtype) if content else 0.0


def _number(content: bytes, dtype: int) -> float:
    value: Any = np.frombuffer(content, dtype=_DTYPES[dtype], count=1)
    if dtype == _BFLOAT16:
        value = (value.astype("<u4") << 16).view("<f4")
    return float(value[0])
