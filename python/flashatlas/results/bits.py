"""Validity bits of a column in the format of Arrow; a bit is 1 if its value exists."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable


def bits(values: Iterable[bool]) -> bytes:
    """Return a bit for each value; the first value is the lowest bit of the first byte."""
    text = "".join("1" if value else "0" for value in values)
    return int(text[::-1] or "0", 2).to_bytes(-(-len(text) // 8), "little")


def numbers_there(data: bytes) -> bytes:
    """Return a bit for each number: 0 for a missing number (NaN in the core)."""
    numbers = array("d", data)
    if any(map(operator.ne, numbers, numbers)):  # NaN differs from itself
        return bits(number == number for number in numbers)  # noqa: PLR0124
    return bits(True for _ in numbers)
