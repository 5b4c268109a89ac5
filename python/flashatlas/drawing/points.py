"""Points of a figure: means of runs, axes, and notes for the reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from flashatlas._core import InputError, about
from flashatlas.drawing.labels import check_names, distinct, short, title_of
from flashatlas.results import arrow
from flashatlas.results.frame import STEADY, Frame
from flashatlas.statistics.intervals import LEAST, PERCENTILE, REPLICATES, Estimate, estimates

SCALES = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")),
    "bytes": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "bytes")),
    "bytes/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "bytes/s")),
}
"""Units for numbers; the first unit in which the smallest value is at least 1 is used."""

NUMBERS = {
    "waf": "write amplification",
    "iops": "requests a second",
    "bandwidth_bytes_per_s": "throughput",
    "map.hit_ratio": "hits of the map cache",
    "memory_bytes.map": "map memory",
    "nand.erases": "erases",
}
"""Titles for numbers whose names are hard to read."""

PERCENTILE_AXIS = "percentile"
"""The horizontal axis of whole distributions; ``y`` is then ``latency_ns.OP``."""

DONE = "requests done"
"""The title of the axis :data:`PERCENTILE_AXIS`."""

SHARES_DONE = {
    "p50": "50 %",
    "p90": "90 %",
    "p99": "99 %",
    "p99_9": "99.9 %",
    "p99_99": "99.99 %",
    "max": "all",
}
"""Share of the requests that are done within each percentile of a record.

From 90 to 99.99 %, each step leaves a tenth of the requests that the step before left.
"""

WITHOUT = "–"
"""The word for a missing value."""


@dataclass(frozen=True)
class Asked:
    """The options of a figure."""

    x: str
    y: str
    by: str | None = None
    panel: str | None = None
    columns: int = 1
    """Width in columns of a printed page, 1 or 2."""
    kind: str = "line"
    height: int | None = None
    """Height of one panel, in points."""
    bars: str = "range"
    log: str | None = None
    """``x``, ``y``, ``xy`` or ``none``; with ``None``, axes of a wide range are logarithmic."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Titles for columns and values, by their names."""


@dataclass(frozen=True)
class Column:
    """A column of the runs in the form that a figure shows."""

    title: str
    words: list[Any]
    """The value of each run: a number in the unit of the title, or a word; ``None`` if missing."""
    order: list[Any]
    """Every value once: numbers in ascending order, words in the order of the runs, "–" last."""
    numeric: bool = False
    spellings: tuple[str, ...] = ()
    """The full and the short texts of the values; either can be given another title."""


@dataclass(frozen=True)
class Points:
    """The points that are drawn, with their axes and notes."""

    rows: list[dict[str, Any]]
    """The points: ``x``, ``y``, ``low``, ``high``, ``runs``, ``unsteady``, ``by``, ``panel``."""
    x: Column
    y: str
    """The title of the vertical axis."""
    by: Column | None
    panel: Column | None
    notes: list[str]
    """Sentences that are printed under the figure."""


def averaged(runs: Frame, asked: Asked) -> list[str]:
    """Return the factors that a figure does not show; its points are means over their values."""
    return [name for name in runs.factors if name not in (asked.x, asked.by, asked.panel)]


def points(runs: Frame, asked: Asked) -> Points:
    """Return the points of a figure.

    Args:
        runs: The runs.
        asked: The options of the figure.

    Raises:
        InputError: A column does not exist or is not a number, the runs of an interval differ not
            only in their seeds, or a title is given for a name that the figure does not show.

    """
    whole, runs = runs, with_percentiles(runs, asked)
    rows_a_run = max(1, len(runs) // max(len(whole), 1))
    ys = _numbers(runs, asked.y)
    factor, unit = scale(ys, runs.unit(asked.y))
    x = _column(runs, asked.x, asked, to_scale=asked.kind != "bar")
    by, panel = (
        None if name is None else _column(runs, name, asked) for name in (asked.by, asked.panel)
    )
    columns = [name for name in (asked.x, asked.y, asked.by, asked.panel) if name]
    told = [one for one in (x, by, panel) if one]
    check_names(asked.names, [*columns, *(text for one in told for text in one.spellings)])
    steady = runs.steady()
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row, value in enumerate(ys):
        if value is not None and x.words[row] is not None:
            key = (x.words[row], *(one.words[row] if one else "" for one in (by, panel)))
            groups.setdefault(key, []).append(row)
    made = _estimates([[ys[row] / factor for row in rows] for rows in groups.values()], runs, asked)
    drawn = []
    for (key, own), one in zip(groups.items(), made, strict=True):
        low, high = one.ends
        unsteady = sum(not steady[row] for row in own)
        point = {"x": key[0], "y": one.mean, "low": low, "high": high, "runs": len(own)}
        point |= {"by": key[1]} if by else {}
        point |= {"panel": key[2]} if panel else {}
        drawn.append(point | {"unsteady": unsteady})
    notes = [
        *_of_bars(made, asked),
        *_of_the_unsteady(
            sum(one["unsteady"] for one in drawn) // rows_a_run,
            sum(one["runs"] for one in drawn) // rows_a_run,
        ),
        *filter(None, [runs.said_of_worn_out()]),
        *_left_out(whole, runs, asked, ys, x),
    ]
    return Points(drawn, x, _number_title(asked, unit), by, panel, notes)


def with_percentiles(runs: Frame, asked: Asked) -> Frame:
    """Return a row for each run and percentile if ``x`` is ``percentile``, else the runs unchanged.

    The percentiles are equally spaced, so that the tail is visible: from 99 to 99.9 % is as far as
    from 90 to 99 %.

    Raises:
        InputError: ``y`` is not a latency with percentiles.

    """
    if asked.x != PERCENTILE_AXIS:
        return runs
    found = [key for key in SHARES_DONE if f"{asked.y}.{key}" in runs.numbers]
    if not found:
        operations = {name.rsplit(".", 1)[0] for name in runs.numbers if PERCENTILE.search(name)}
        latencies = sorted(name for name in operations if name.startswith("latency_ns."))
        raise about(
            "y",
            f"`{asked.y}` has no percentiles to be drawn over `{PERCENTILE_AXIS}` (there are "
            f"{', '.join(latencies) or 'none'})",
        )
    kept = [name for name in runs.table.column_names if name not in runs.numbers or name == STEADY]
    own = pa.field(PERCENTILE_AXIS, pa.string(), metadata={"role": "setting"})
    number = pa.field(asked.y, pa.float64(), metadata={"role": "number", "unit": "ns"})
    parts = [
        runs.table.select(kept)
        .append_column(own, arrow.column([SHARES_DONE[key]] * len(runs), pa.string()))
        .append_column(
            number,
            arrow.column(
                [None if one is None else float(one) for one in runs.column(f"{asked.y}.{key}")],
                pa.float64(),
            ),
        )
        for key in found
    ]
    return replace(runs, table=pa.concat_tables(parts))


def _numbers(runs: Frame, name: str) -> list[Any]:
    values = runs.column(name)
    if any(not isinstance(value, (int, float)) for value in values if value is not None):
        raise InputError(f"`{name}` is not a number; a figure's height needs one")
    if all(value is None for value in values):
        raise InputError(f"`{name}`: no run has this number")
    return values


def _estimates(groups: Sequence[list[float]], runs: Frame, asked: Asked) -> list[Estimate]:
    """Return the mean of each point's runs, with its interval if one is asked for."""
    if asked.bars != "interval":
        return estimates(groups, least=max(map(len, groups)) + 1)
    others = [name for name in averaged(runs, asked) if name != REPLICATES]
    if others:
        raise InputError(
            "bars: an interval is over seeds, and the runs of a point differ in "
            f"{', '.join(others)} as well: name them for x, by or panel, or draw the range"
        )
    statistic = asked.x == PERCENTILE_AXIS or PERCENTILE.search(asked.y)
    return estimates(groups, percentile=bool(statistic))


def _of_bars(made: Sequence[Estimate], asked: Asked) -> list[str]:
    """Return the notes that explain marks and bars, and count the runs."""
    counts = sorted({one.count for one in made})
    if counts == [1]:
        return []
    of = f"Mean of {counts[0]}" + (f" to {counts[-1]}" if len(counts) > 1 else "") + " runs"
    few = [one.count for one in made if 1 < one.count < LEAST]
    if asked.bars == "range":
        return [f"{of}; bars from the least to the largest."]
    if counts[-1] < LEAST:
        return [f"{of}; bars from the least to the largest: an interval needs {LEAST} runs."]
    where = f", where {min(few)} to {LEAST - 1} runs: from least to largest" if few else ""
    return [f"{of}; bars: interval of 95 % of the mean{where}."]


def _of_the_unsteady(count: int, total: int) -> list[str]:
    if not count:
        return []
    were = "was" if count == 1 else "were"
    return [
        f"Hollow: {count} of {total} runs {were} not steady, and would give other numbers if they "
        "were longer."
    ]


def _left_out(whole: Frame, runs: Frame, asked: Asked, ys: Sequence[Any], x: Column) -> list[str]:
    """Return the notes about runs of the study that the figure does not show."""
    missing = whole.incomplete()
    said = [f"Incomplete: {missing}."] if missing else []
    with_number = [row for row, value in enumerate(ys) if value is not None]
    lacking = {
        asked.y: len(runs) - runs.failures - len(with_number),
        asked.x: sum(x.words[row] is None for row in with_number),
    }
    for name, count in lacking.items():
        if of_runs := count * len(whole) // max(len(runs), 1):
            have = "has" if of_runs == 1 else "have"
            said.append(f"Not drawn: {of_runs} of {len(whole)} runs {have} no {name}.")
    return said


def scale(values: Sequence[Any], unit: str) -> tuple[float, str]:
    """Return a larger unit in which the values are short, and the divisor that converts to it."""
    sizes = [abs(value) for value in values if value]
    for factor, name in SCALES.get(unit, ()):
        if sizes and min(sizes) >= factor:
            return factor, name
    return 1, unit


def words(runs: Frame, name: str) -> dict[Any, str]:
    """Return a short and different word for each value of a column, in order.

    Numbers are in ascending order, with their unit; texts are in the order of the runs. Missing
    values are left out.
    """
    known = [value for value in dict.fromkeys(runs.column(name)) if value is not None]
    if _are_numbers(known):
        ordered = sorted(known)
        factor, unit = scale(ordered, runs.unit(name))
        return distinct(ordered, [f"{_digits(value / factor)} {unit}".strip() for value in ordered])
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in known]
    brief = short(texts)
    found = distinct(known, [brief[text] for text in texts])
    truths = all(isinstance(value, bool) for value in known)
    return {value: found[value] for value in sorted(known)} if truths else found


def _digits(value: float) -> str:
    """Return a number with at most six digits; a whole number below 1e15 has all its digits."""
    return f"{value:.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:g}"


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in values)


def _column(runs: Frame, name: str, asked: Asked, *, to_scale: bool = False) -> Column:
    """Return a column in the form that is shown; if ``to_scale``, numbers stay numbers."""
    values, title = runs.column(name), title_of(name, {PERCENTILE_AXIS: DONE} | {**asked.names})
    found = words(runs, name)
    if to_scale and _are_numbers(list(found)):
        factor, unit = scale(list(found), runs.unit(name))
        scaled = [None if value is None else value / factor for value in values]
        order = [value / factor for value in found]
        return Column(with_unit(title, unit), scaled, order, numeric=True)
    spellings = tuple(text for value, word in found.items() for text in (str(value), word))
    called = {v: asked.names.get(str(v)) or asked.names.get(w, w) for v, w in found.items()}
    if len(set(called.values())) < len(called):
        raise about("names", f"two values of `{name}` get the same title")
    order = [called[value] for value in found]
    if name != asked.x and None in values:
        order.append(WITHOUT)
    absent = None if name == asked.x else WITHOUT
    given = [absent if value is None else called[value] for value in values]
    return Column(title, given, order, spellings=spellings)


def with_unit(title: str, unit: str) -> str:
    """Return a title with its unit; the titles of ratios and rates already say it."""
    return f"{title} ({unit})" if unit and unit not in ("ratio", "1/s") else title


def _number_title(asked: Asked, unit: str) -> str:
    """Return the title of a number's axis."""
    name = asked.y
    if name in asked.names:
        return with_unit(asked.names[name], unit)
    if name.startswith("latency_ns."):
        _, op, *what = name.split(".", 2)
        which = f", {what[0].replace('_', '.')}" if what else ""
        return with_unit(f"{op} latency{which}", unit)
    return with_unit(NUMBERS.get(name, name), unit)
