"""A check of histories: could the operations of many clients on a block have run one by one?

A history is linearizable if each operation can be given an instant between its begin and its end,
so that every read returns the value written last. If no value is written twice, this is decided
by zones (Gibbons and Korach, Testing Shared Memories, SIAM Journal on Computing 26, 1997, section
4). A value's zone lasts from the first end to the last begin of the operations on the value.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple


class Operation(NamedTuple):
    """An operation of a client on one block."""

    write: bool
    value: int
    """The written or read value; 0 is the value that the block held before the history."""
    begin: int
    end: int


def wrong(history: Iterable[Operation]) -> str:
    """Return the reason why a history of one block is not linearizable; empty if it is."""
    values: dict[int, list[Operation]] = defaultdict(list)
    values[0].append(Operation(True, 0, -1, -1))
    for operation in history:
        values[operation.value].append(operation)
    forward, backward = [], []
    for value, operations in values.items():
        writes = [each for each in operations if each.write]
        if len(writes) != 1:
            return f"{value} was written {len(writes)} times"
        if any(each.end < writes[0].begin for each in operations):
            return f"{value} was read before it was written"
        first_end = min(each.end for each in operations)
        last_begin = max(each.begin for each in operations)
        if first_end < last_begin:
            forward.append((first_end, last_begin, value))
        else:
            backward.append((last_begin, first_end, value))
    forward.sort()
    for (_, end, value), (begin, _, other) in itertools.pairwise(forward):
        if begin < end:
            return f"{value} and {other} must each have been there before the other"
    for begin, end, value in backward:
        for from_, to, other in forward:
            if from_ < begin and end < to:
                return f"{other} was read after {value} had taken its place"
    return ""
