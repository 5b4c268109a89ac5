"""The space of a calibration: the parameters that may change, each with its values in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flashatlas._core import InputError, quantity
from flashatlas.results import units
from flashatlas.results.units import unit_of
from flashatlas.sweep.axes import Axis, axis

FORM = "KEY=FROM..TO, KEY=FROM..TO:lin or KEY=A,B,…"

TRIALS = 400
"""The largest number of drives that are tried, by default."""

FACTOR = 1.01
"""Ratio of neighbouring values in a range."""

STEPS = 101
"""Number of values in a range with equal distances."""

FINE = 16
"""The least number of values of a parameter that counts as continuous."""

Point = tuple[int, ...]
"""A configuration: for each parameter the index of its value."""


@dataclass(frozen=True)
class Parameter:
    """A key of the drive, with the values that it may have."""

    axis: Axis
    is_ordered: bool
    """``True`` if the values are ascending numbers, times or sizes."""

    @property
    def key(self) -> str:
        """The key of the drive."""
        return self.axis.name

    @property
    def values(self) -> tuple[Any, ...]:
        """The values, in their order."""
        return self.axis.values

    @property
    def is_fine(self) -> bool:
        """``True`` if differences between its values tell slopes."""
        return self.is_ordered and len(self.values) >= FINE

    def nearest(self, value: Any) -> int:
        """Return the index of the value next to this one; the first index for unknown names."""
        if not self.is_ordered:
            return self.values.index(value) if value in self.values else 0
        numbers = [number_of(one) for one in self.values]
        wanted = number_of(value)
        return min(range(len(numbers)), key=lambda n: abs(numbers[n] - wanted))

    def word(self, index: float) -> str:
        """Return a value for people; between two values for an index between them."""
        if not self.is_ordered:
            return str(self.values[round(index)])
        low = min(max(int(index), 0), len(self.values) - 1)
        high = min(low + 1, len(self.values) - 1)
        a, b = number_of(self.values[low]), number_of(self.values[high])
        return word(self.key, self.values[low], a + (b - a) * (index - low))


def number_of(value: Any) -> float:
    """Return a value as a number: picoseconds, bytes, or itself.

    Raises:
        InputError: The value is a name.

    """
    if isinstance(value, str):
        return float(quantity(value))
    if isinstance(value, bool):
        raise InputError(f"{value} is not a number")
    return float(value)


def word(key: str, value: Any, number: float) -> str:
    """Return a number of a key for people, as a time if ``value`` is a time."""
    if isinstance(value, str):
        return units.duration(number / 1000)
    unit = unit_of(key)
    if key.endswith("_rate"):  # `unit_of` knows the shares of the link by a part of this name
        return units.speed(number)
    if unit == "bytes":
        return units.size(number)
    return f"{number:,.4g}" if isinstance(value, float) else f"{number:,.0f}"


def parameters(given: Sequence[str]) -> list[Parameter]:
    """Return the parameters of a calibration from their texts.

    Raises:
        InputError: A text has another form, a range is empty, or a key is given twice.

    """
    found: list[Parameter] = []
    for text in given:
        key, equals, values = (part.strip() for part in text.partition("="))
        if not equals or not key or not values:
            raise InputError(f"--vary `{text}`: write {FORM}")
        if any(one.key == key for one in found):
            raise InputError(f"--vary `{text}`: {key} is given twice")
        try:
            found.append(_parameter(key, values))
        except InputError as error:
            raise InputError(f"--vary {error}") from error
    if not found:
        raise InputError(f"there is no parameter to find: give --vary {FORM}")
    return found


def _parameter(key: str, text: str) -> Parameter:
    if ".." in text:
        ends, _, scale = text.partition(":")
        if scale not in ("", "lin"):
            raise InputError(f"{key}: `{scale}` is not a scale of a range; write {FORM}")
        first, _, last = ends.partition("..")
        table: dict[str, Any] = {"from": _value(first), "to": _value(last)}
        more: Mapping[str, Any] = (
            {"steps": STEPS, "scale": "lin"} if scale else {"factor": FACTOR, "scale": "log"}
        )
        try:
            made = axis(key, {**table, **more})
        except InputError as error:
            begins_at_0 = "logarithmic" in str(error)
            more_said = f"; write {key}={ends}:lin for equal steps" if begins_at_0 else ""
            raise InputError(f"{error}{more_said}") from error
    else:
        made = axis(key, [_value(one) for one in text.split(",")])
    if len(made.values) < 2:
        raise InputError(f"{key}: a single value leaves nothing to find; use --set")
    return Parameter(made, _is_ordered(made.values))


def _value(text: str) -> Any:
    """Return a value as a number if it is one, else as text."""
    text = text.strip()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text)


def _is_ordered(values: Sequence[Any]) -> bool:
    try:
        numbers = [number_of(value) for value in values]
    except InputError:
        return False
    return numbers == sorted(numbers)


def clipped(space: Sequence[Parameter], point: Sequence[float]) -> Point:
    """Return the configuration next to a point between configurations."""
    return tuple(
        min(max(round(at), 0), len(one.values) - 1) for one, at in zip(space, point, strict=True)
    )
