"""The tables of presets under fio's standard tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flashatlas.reproduce.drives import fills
from flashatlas.reproduce.drives.plan import Drives
from flashatlas.reproduce.drives.published import HELD_BACK, PREDICTED, Measured, Row, short
from flashatlas.reproduce.table import Listing

HEAD = ("test", "published", "ours", "ratio", "used", "verdict", "source")
"""Columns of the published numbers of a preset."""

VERDICTS = ("reproduced", "direction only", "contradicted", "by construction", "not reproducible")

SUMMARY = "Published numbers by verdict"

NONE = "–"


def listings(made: Drives) -> list[Listing]:
    """Return the tables for the terminal."""
    own = [
        Listing(drive.preset, drive.published["product"], HEAD, [cells(r) for r in rows])
        for drive in made.drives
        if (rows := made.of(drive.preset))
    ]
    filled = [(drive, run) for drive in made.drives if (run := made.fill(drive.preset))]
    return [
        summary(made),
        *own,
        *([fills.listing(filled, made.experiment)] if filled else []),
        fresh(made),
        steady(made),
    ]


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a published number."""
    ours = NONE if row.ours is None else number(row.ours, row.unit)
    ratio = NONE if row.ratio is None else f"{row.ratio:.2f}"
    published = number(row.published, row.unit)
    return (row.test, published, ours, ratio, row.used, row.verdict, short(row.source))


def number(value: float, unit: str) -> str:
    """Return a number with its unit."""
    shown = f"{value:,.1f}" if value < 100 and value != int(value) else f"{value:,.0f}"
    return f"{shown} {'µs' if unit == 'us' else unit}"


def summary(made: Drives) -> Listing:
    """Return the number of published numbers of each preset by verdict."""

    def counts(rows: Sequence[Row]) -> tuple[str, ...]:
        return tuple(str(sum(row.verdict == said for row in rows)) for said in VERDICTS)

    def within(rows: Sequence[Row]) -> str:
        own = [r for r in rows if r.used in (PREDICTED, HELD_BACK)]
        predicted = [r for r in own if r.verdict in VERDICTS]
        near = sum(row.verdict == "reproduced" for row in predicted)
        return f"{near} of {len(predicted)}"

    rows = [
        (drive.preset, within(own), *counts(own))
        for drive in made.drives
        for own in [made.of(drive.preset)]
    ]
    rows.append(("all", within(made.rows), *counts(made.rows)))
    share, order = made.experiment["within"], made.experiment["order"]
    note = (
        f"Predicted: numbers that no value of the preset was chosen by. Reproduced: within "
        f"{share:.0%}. Direction only: within a factor of {order:g}. By construction: within "
        f"{share:.0%}, and a value of the preset was chosen by it. Not reproducible: published for "
        "another capacity."
    )
    head = ("preset", "predicted and reproduced", *VERDICTS)
    return Listing(SUMMARY, "", head, rows, note)


def _unit(test: Mapping[str, Any]) -> str:
    return "MB/s" if test["what"].startswith("sequential") else "IOPS"


def _column(test: Mapping[str, Any], depth: int) -> str:
    kind = "".join(word[0] for word in test["what"].split("-"))
    size = f" {test['size']}" if "size" in test else ""
    return f"{kind}{size} {depth}, {_unit(test)}"


def _value(one: Measured) -> str:
    note = "" if one.test["state"] == "fresh" or one.result.steady else " (not steady)"
    return f"{one.number(_unit(one.test)):,.0f}{note}"


def _every(made: Drives, state: str, note: str) -> Listing:
    tests = [test for test in made.experiment["test"] if test["state"] == state]
    columns = [_column(test, depth) for test in tests for depth in test["depths"]]
    own = [one for one in made.tested if one.test in tests]
    rows = []
    for drive in made.drives:
        values = {_column(t.test, t.depth): _value(t) for t in own if t.preset == drive.preset}
        if values:
            rows.append((drive.preset, *(values.get(column, NONE) for column in columns)))
    return Listing(state.capitalize(), "", ("preset", *columns), rows, note)


def fresh(made: Drives) -> Listing:
    """Return the results of all fresh tests."""
    note = (
        "Sequential and random (s, r) reads and writes (r, w) with their depths: 128 KiB and 4 "
        "KiB. Reads: after a fill, behind the SLC cache. Writes: of a blank drive."
    )
    return _every(made, "fresh", note)


def steady(made: Drives) -> Listing:
    """Return the results of all steady tests."""
    note = "As above, in the steady state of uniform random writes, without an SLC cache."
    return _every(made, "steady", note)
