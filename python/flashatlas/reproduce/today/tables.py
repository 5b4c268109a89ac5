"""The tables of the papers' maps on the drives of their time and of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flashatlas.reproduce.table import Listing
from flashatlas.reproduce.today.plan import TODAY, Gain, Today

SUMMARY = "Gains then and now"


def listings(made: Today) -> list[Listing]:
    """Return the tables for the terminal: the gains, then a table for each comparison."""
    return [summary(made), *(compared(made, c) for c in comparisons(made))]


def comparisons(made: Today) -> list[Mapping[str, Any]]:
    """Return the comparisons that were run, in order."""
    found: list[Mapping[str, Any]] = []
    for gain in made.gains:
        if gain.case.comparison not in found:
            found.append(gain.case.comparison)
    return found


def of(made: Today, comparison: Mapping[str, Any]) -> list[Gain]:
    """Return the gains of a comparison."""
    return [gain for gain in made.gains if gain.case.comparison is comparison]


def times(gain: float) -> str:
    """Return a gain as text."""
    return f"{gain:.2f}x"


def summary(made: Today) -> Listing:
    """Return each gain on a drive of today beside the gain on the paper's drive."""
    rows = [
        (
            gain.case.paper,
            gain.case.maps,
            times(made.then(gain).gain),
            gain.case.name,
            times(gain.gain),
            made.verdict(gain),
        )
        for gain in made.gains
        if gain.case.era == TODAY
    ]
    shares = made.experiment["verdicts"]["shares"]
    limits = ", ".join(f"{word} from {least:g} on" for word, least in shares.items())
    note = (
        "Verdicts by the share of a gain, which is what it is above 1, over what the gain then is "
        f"above 1: {limits}, a loss below."
    )
    head = ("paper", "maps", "gain then", "drive of today", "gain now", "verdict")
    return Listing(SUMMARY, "", head, rows, note)


def value(number: float) -> str:
    """Return a measured number as text."""
    return f"{number:,.0f}" if number >= 100 else f"{number:,.2f}"


def compared(made: Today, comparison: Mapping[str, Any]) -> Listing:
    """Return the gains of one comparison with the number that decides them."""
    gains = of(made, comparison)
    decides = str(comparison["decides"])
    head = ("drive", "era", decides, "before", "after", "gain", "steady", "verdict")
    steady = {None: "–", True: "yes", False: "no"}
    rows = [
        (
            gain.case.name,
            gain.case.era,
            gain.decides,
            value(gain.values[0]),
            value(gain.values[1]),
            times(gain.gain),
            steady[gain.steady],
            made.verdict(gain) or "–",
        )
        for gain in gains
    ]
    published = f", published: {comparison['published']}" if "published" in comparison else ""
    return Listing(
        f"{comparison['paper']}: {comparison['before']} → {comparison['after']}",
        f"{gains[0].unit}{published}",
        head,
        rows,
        str(comparison["mechanism"]),
    )
