"""Axes of a study: lists, ranges, variants, and zipped axes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flashatlas._core import InputError, quantity
from flashatlas.names import hint
from flashatlas.sweep.condition import Condition

RANGE = ("from", "to", "steps", "step", "factor", "scale")
"""Keys of a range."""

AXIS = ("values", "variants", "when", *RANGE)
"""Keys of an axis that is a table."""

VALUES_MAX = 1_000_000
"""The largest number of values in a range."""


@dataclass(frozen=True)
class Axis:
    """One axis: its name, and its values in their order."""

    name: str
    """A key of the drive, an option of a run, ``drive``, or the name of variants."""
    values: tuple[Any, ...]
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings and options of each value by key, if the values are names."""
    when: Condition | None = None
    """Condition under which the axis applies; if it fails, there is one run without the axis."""

    def given(self, value: Any) -> Mapping[str, Any]:
        """Return the settings and options of a value."""
        return self.variants[value] if self.variants else {self.name: value}


def flat(
    table: Mapping[str, Any], above: str = "", ends: Collection[str] = AXIS
) -> Iterator[tuple[str, Any]]:
    """Yield values of nested tables by dotted key; a table with a key of ``ends`` is a value."""
    for key, value in table.items():
        name = f"{above}.{key}" if above else key
        if isinstance(value, Mapping) and not any(own in ends for own in value):
            yield from flat(value, name, ends)
        else:
            yield name, value


def settings_of(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of nested tables by dotted key."""
    return dict(flat(table, ends=()))


def axis(name: str, given: Any) -> Axis:
    """Return an axis from its definition in a study.

    Raises:
        InputError: The axis has no values, has a value twice, or is not an axis at all.

    """
    if isinstance(given, Mapping):
        return _of_table(name, given)
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(
            f"{name}: {given!r} is not an axis: write a list of values, or a table such as "
            '{ from = "8KiB", to = "128KiB", factor = 2 }'
        )
    return Axis(name, _distinct(name, given))


def _of_table(name: str, given: Mapping[str, Any]) -> Axis:
    for key in given:
        if key not in AXIS:
            raise InputError(f"{name}: `{key}` is not a key of an axis{hint(key, AXIS)} "
                             f"(allowed: {', '.join(AXIS)})")  # fmt: skip
    kinds = [key for key in ("values", "variants", "from") if key in given]
    if len(kinds) != 1:
        raise InputError(f"{name}: give exactly one of values, variants and from … to")
    text = given.get("when")
    when = None if text is None else Condition(text, f"{name}: when")
    if kinds == ["values"]:
        found = axis(name, given["values"])
        return Axis(name, found.values, {}, when)
    if kinds == ["variants"]:
        variants = given["variants"]
        if not isinstance(variants, Mapping) or not variants:
            raise InputError(f"{name}: variants are tables of settings, each with a name")
        for variant, table in variants.items():
            if not isinstance(table, Mapping):
                raise InputError(f"{name}.variants.{variant}: {table!r} is not a table of settings")
        tables = {one: settings_of(table) for one, table in variants.items()}
        return Axis(name, tuple(tables), tables, when)
    return Axis(name, _distinct(name, _range(name, given)), {}, when)


def _distinct(name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    if not values:
        raise InputError(f"{name}: the axis has no values, so the study would have no runs")
    for value in values:
        if not isinstance(value, (str, int, float, bool)):
            raise InputError(f"{name}: {value!r} is not a text, a number or a boolean")
        if sum(1 for other in values if type(other) is type(value) and other == value) > 1:
            raise InputError(f"{name}: {value!r} is given twice")
    return tuple(values)


def _range(name: str, given: Mapping[str, Any]) -> list[Any]:
    """Return the values of a range, both ends included."""
    if "to" not in given:
        raise InputError(f"{name}: a range needs both ends: from and to")
    ways = [key for key in ("steps", "step", "factor") if key in given]
    if len(ways) > 1:
        raise InputError(f"{name}: {' and '.join(ways)} are given: give only one of them")
    scale = given.get("scale", "log" if "factor" in given else "lin")
    if scale not in ("lin", "log"):
        raise InputError(f"{name}: scale `{scale}` is not known (allowed: lin, log)")
    first, last, unit = _ends(name, given)
    if last < first:
        raise InputError(f"{name}: the range from {given['from']} to {given['to']} is empty")
    if scale == "log" and first <= 0:
        raise InputError(f"{name}: a logarithmic range must begin above 0, not at {given['from']}")
    values = _values(name, given, first, last, scale, unit)
    if unit == "time":
        return [f"{round(value)}ps" for value in values]
    whole = unit == "size" or (isinstance(given["from"], int) and isinstance(given["to"], int))
    if whole and unit != "size" and "steps" not in given and "factor" not in given:
        whole = float(given.get("step", 1)).is_integer()
    return list(dict.fromkeys(round(v) if whole else float(f"{v:.12g}") for v in values))


def _ends(name: str, given: Mapping[str, Any]) -> tuple[float, float, str]:
    """Return both ends as numbers, and their kind: plain, a size or a time."""
    ends = given["from"], given["to"]
    if all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in ends):
        return float(ends[0]), float(ends[1]), ""
    if not all(isinstance(end, str) for end in ends):
        raise InputError(f"{name}: from {ends[0]!r} to {ends[1]!r}: write two "
                         "numbers, or both with a unit")  # fmt: skip
    try:
        first, last = (quantity(end) for end in ends)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    times = [end.rstrip().endswith("s") for end in ends]
    if times[0] != times[1]:
        raise InputError(f"{name}: from {ends[0]} to {ends[1]}: one is a time, the other a size")
    return first, last, "time" if times[0] else "size"


def _values(
    name: str, given: Mapping[str, Any], first: float, last: float, scale: str, unit: str
) -> list[float]:
    step = given.get("steps", given.get("factor", given.get("step", 1 if not unit else None)))
    if isinstance(step, str):
        step = quantity(step)
    if not isinstance(step, (int, float)) or isinstance(step, bool):
        raise InputError(f"{name}: a range of sizes or times needs the number of values "
                         "(steps), the distance (step) or the ratio (factor)")  # fmt: skip
    if "steps" in given:
        if not isinstance(step, int) or not 2 <= step <= VALUES_MAX:
            raise InputError(f"{name}: steps is {step}; give 2 to {VALUES_MAX}")
        shares = [i / (step - 1) for i in range(step)]
        if scale == "log":
            return [first * (last / first) ** share for share in shares]
        return [first + (last - first) * share for share in shares]
    if "factor" in given:
        if step <= 1:
            raise InputError(f"{name}: factor is {step}; give more than 1")
        count = int(math.log(last / first) / math.log(step) + 1e-9) + 1
    else:
        if scale == "log":
            raise InputError(f"{name}: a logarithmic range needs steps or a factor, not a step")
        if step <= 0:
            raise InputError(f"{name}: step is {step}; give more than 0")
        count = int((last - first) / step + 1e-9) + 1
    if count > VALUES_MAX:
        raise InputError(f"{name}: the axis has {count} values; give at most {VALUES_MAX}")
    if "factor" in given:
        return [first * step**i for i in range(count)]
    return [first + step * i for i in range(count)]
