"""Small plots in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

BARS = " ▁▂▃▄▅▆▇█"


def spark(values: Sequence[float], width: int = 64) -> str:
    """Return a line of bars for the largest values of groups; the tallest is the largest of all."""
    if not values:
        return ""
    step = -(-len(values) // width)
    groups = [max(values[i : i + step]) for i in range(0, len(values), step)]
    most = max(groups)
    if most <= 0:
        return BARS[0] * len(groups)
    # every positive value is visible: its bar has at least the lowest height
    return "".join(
        BARS[0] if value <= 0 else BARS[max(round(value / most * 8), 1)] for value in groups
    )


def bar(share: float, width: int = 32) -> str:
    """Return a bar for a share, in eighths of a character."""
    eighths = round(share * width * 8)
    full, rest = divmod(max(eighths, 1 if share > 0 else 0), 8)
    return "█" * full + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]
