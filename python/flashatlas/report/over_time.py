"""The section over time: throughput, latency, flash, areas of the log, load."""

from __future__ import annotations

from flashatlas.report.chart import Absent, Chart, Section
from flashatlas.report.html import text
from flashatlas.report.latency import OPS
from flashatlas.report.palette import Runs
from flashatlas.report.series import (
    Axis,
    Panel,
    Track,
    column_of,
    figure,
    rates_of,
    tracks_of,
)
from flashatlas.results.rows import log_areas
from flashatlas.results.units import duration


def section(runs: Runs) -> Section:
    """Return the section over time."""
    made = Section("time", "Over time", parts=[] if runs.single else [runs.key()])
    tracks, at = tracks_of(runs)
    if not tracks:
        made.parts = [Absent("Over time", "no run has a time series.")]
        return made
    shown = {track.run for track in tracks}
    missing = [name for i, name in enumerate(runs.names) if i not in shown]
    made.lead = _lead(tracks, at, missing)
    if at.timed:
        made.parts += [_throughput(runs, tracks, at), *_latency(runs, tracks, at)]
    else:
        made.parts.append(Absent("Throughput and latency over time", "the runs were untimed."))
    made.parts += [_flash(runs, tracks, at), *_areas(runs, tracks, at), _load(runs, tracks, at)]
    return made


def _lead(tracks: list[Track], at: Axis, missing: list[str]) -> str:
    widths = sorted({t.width[0] for t in tracks})
    lengths = ", ".join(duration(w) if at.timed else f"{w:,} requests" for w in widths[:4])
    left_out = (
        f" Not shown, for lack of a series{' with times' if at.timed else ''}: "
        f"{text(', '.join(missing))}."
    )
    clock = "Time is simulated, from the start of measuring."
    clock = clock if at.timed else "By number of request."
    more = " and more" if len(widths) > 4 else ""
    return (
        f"Intervals of {lengths}{more}. A peak is never left out, and tooltips have exact values. "
        f"{clock}{left_out if missing else ''}"
    )


def _throughput(runs: Runs, tracks: list[Track], at: Axis) -> Chart | Absent:
    panels = [
        Panel("iops", "Requests a second", "short", rates_of(tracks, "requests", OPS)),
        Panel(
            "bandwidth",
            "Bandwidth, reads and writes",
            "rate",
            rates_of(tracks, "bytes", ("read", "write")),
        ),
    ]
    return figure(
        runs, tracks, at, "throughput", "Throughput", panels, "Completed in each interval."
    )


def _latency(runs: Runs, tracks: list[Track], at: Axis) -> list[Chart | Absent]:
    """Return the chart of median, 99 % and maximum latency; for several runs, only the 99 %."""
    lines = (
        {"p50_ns": "median", "p99_ns": "99 %", "max_ns": "maximum"}
        if runs.single
        else {"p99_ns": ""}
    )
    panels = [
        Panel(
            f"latency_{op}",
            f"{op.capitalize()} latency" + ("" if runs.single else ", 99th percentile"),
            "duration",
            {
                (t.run, line): t.column(f"{op}_{column}")
                for t in tracks
                for column, line in lines.items()
                if t.has(f"{op}_{column}")
            },
            log=True,
        )
        for op in OPS
    ]
    lead = (
        "Latencies of the requests completed in each interval, on a logarithmic scale. Lines join "
        "intervals that have requests."
    )
    return [figure(runs, tracks, at, "latency-time", "Latency over time", panels, lead)]


def _flash(runs: Runs, tracks: list[Track], at: Axis) -> Chart | Absent:
    panels = [
        Panel(
            "waf",
            "Write amplification of the interval",
            "ratio",
            column_of(tracks, "waf"),
            peaks=True,
        ),
        Panel("free", "Free blocks", "short", column_of(tracks, "free_blocks"), height=80),
        Panel(
            "dirty",
            "Units in the write cache",
            "short",
            column_of(tracks, "cache_dirty_units"),
            height=80,
            optional=True,
        ),
    ]
    misses = {
        (t.run, ""): [
            m / (h + m) if h + m else None
            for h, m in zip(t.column("map_hits"), t.column("map_misses"), strict=True)
        ]
        for t in tracks
        if t.has("map_misses") and t.has("map_hits") and any(t.column("map_misses"))
    }
    panels.append(
        Panel("misses", "Map lookups that missed", "share", misses, height=80, optional=True)
    )
    return figure(runs, tracks, at, "flash-time", "Write amplification and space over time", panels)


def _areas(runs: Runs, tracks: list[Track], at: Axis) -> list[Chart | Absent]:
    """Return the chart of the log's areas, valid share and size; nothing if no run has a log."""
    areas = dict.fromkeys(area for t in tracks for area in log_areas(t.table.column_names))
    panels = [
        panel
        for area in areas
        for panel in (
            Panel(
                f"valid_{area}",
                f"Valid pages, {area} area",
                "share",
                column_of(tracks, f"area_{area}_utilisation"),
            ),
            Panel(
                f"blocks_{area}",
                f"Blocks, {area} area",
                "short",
                column_of(tracks, f"area_{area}_blocks"),
                height=60,
            ),
        )
    ]
    lead = "Share of all pages of an area's blocks, programmed or not, at the end of each interval."
    return [figure(runs, tracks, at, "areas", "Areas of the log", panels, lead)] if panels else []


def _load(runs: Runs, tracks: list[Track], at: Axis) -> Chart | Absent:
    panels = [
        Panel(
            "flight",
            "Commands in the drive, mean",
            "short",
            column_of(tracks, "in_flight_mean"),
            height=80,
        ),
        Panel("die", "Dies busy", "share", column_of(tracks, "die_busy"), height=80),
        Panel("channel", "Channels busy", "share", column_of(tracks, "channel_busy"), height=80),
    ]
    if not at.timed:
        return Absent("Load over time", "the runs were untimed.")
    return figure(runs, tracks, at, "load-time", "Load over time", panels)
