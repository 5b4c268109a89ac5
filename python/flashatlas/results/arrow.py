"""Arrow values made of buffers.

``pa.array`` and ``pa.scalar`` import pandas, if it is installed, to check for pandas objects. The
import takes a third of a second, and most commands need pandas for nothing else.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

from flashatlas.results.bits import bits

_CODES = {
    pa.int64(): "q",
    pa.uint64(): "Q",
    pa.float64(): "d",
    pa.uint16(): "H",
    pa.uint8(): "B",
}
"""Arrow types of fixed width, each with its code in :mod:`array`."""


def column(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Return values as an Arrow array; ``None`` becomes null.

    Args:
        values: Numbers, booleans or texts.
        kind: The type of all values; by default the type that ``pa.array`` chooses.

    """
    kind = _kind(values) if kind is None else kind
    if kind not in _CODES and kind not in (pa.bool_(), pa.string()):
        return pa.array(values, kind)
    if kind == pa.float64() and any(isinstance(v, int) and abs(v) > 2**53 for v in values):
        return pa.array(values, kind)  # pa.array refuses integers that a float would round
    missing = sum(value is None for value in values)
    valid = _bits(value is not None for value in values) if missing else None
    if kind == pa.string():
        content = [(value or "").encode() for value in values]
        ends = array("i", accumulate(map(len, content), initial=0))
        data = [pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(content))]
    elif kind == pa.bool_():
        data = [_bits(bool(value) for value in values)]
    else:
        numbers = array(_CODES[kind], (0 if value is None else value for value in values))
        data = [pa.py_buffer(numbers.tobytes())]
    return pa.Array.from_buffers(kind, len(values), [valid, *data], null_count=missing)


def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return one value as an Arrow scalar, made as :func:`column` makes its values."""
    return column([value], kind)[0]


def _kind(values: Sequence[Any]) -> pa.DataType | None:
    """Return the type of values that are all numbers, all booleans or all texts."""
    found = {type(value) for value in values if value is not None}
    if found == {int, float}:
        return pa.float64()
    kinds = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    return kinds.get(found.pop()) if len(found) == 1 else None


def _bits(values: Iterable[bool]) -> pa.Buffer:
    return pa.py_buffer(bits(values) or b"\0")
