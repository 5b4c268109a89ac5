"""Findings about a drive, each with its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SCHEMA = "flashatlas.probe.drive/1"


@dataclass(frozen=True)
class Finding:
    """A quantity of a drive: a value with a confidence, or the reason why it cannot be told."""

    name: str
    value: float | str | None
    """The value, or ``None`` if the measurement cannot tell."""
    unit: str
    """The unit: ``bytes``, ``ns``, ``ratio``, or empty for counts and words."""
    evidence: str
    """A sentence with the numbers that the value rests on, or the reason why there is none."""
    confidence: float = 0.0
    """From 0 (nothing is known) to 1; without a value, 0."""
    curve: list[tuple[float, float]] = field(default_factory=list)
    """The measured points that the value was read from."""
    axes: tuple[str, str] = ("", "")
    """Names of the two coordinates of a point."""

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "confidence": round(self.confidence, 3),
            "evidence": self.evidence,
            "axes": list(self.axes),
            "curve": [list(point) for point in self.curve],
        }


def cannot_tell(name: str, unit: str, why: str, **more: Any) -> Finding:
    """Return a finding without a value."""
    return Finding(name, None, unit, why, **more)
