"""Duration of a study as a range, estimated from its runs' sizes or from runs that are done."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from flashatlas import _core
from flashatlas.running import preconditions
from flashatlas.running.cost import Span, factor_of_map
from flashatlas.sweep.execution import alone
from flashatlas.sweep.plan import Run, requests_of
from flashatlas.sweep.store import Store

REQUEST_S = {True: Span(1e-6, 12e-6), False: Span(0.5e-6, 8e-6)}
"""Core seconds of a request that moves one unit, timed and untimed, with the map in DRAM.

Measured with 40,000 random requests, filled and steady, on four presets: 1.3 to 8.3 us timed, 0.55
to 3.5 us untimed.
"""

UNITS_A_REQUEST = 4
"""Units of a larger request that take at most as long as a request of one unit.

Measured with requests of 64 KiB: 26 us timed.
"""

RUN_S = Span(0.03, 0.2)
"""Core seconds of a run besides its requests: starting on a worker, writing, making its row."""

CHECK_S = Span(10e-9, 40e-9)
"""Core seconds of the final check for each mapping unit of the drive."""

PASSES = Span(6, 26)
"""Number of times that a workload is played until it is steady."""

START_S = Span(2, 7)
"""Seconds to start the workers, and to end them."""

SIDE_BY_SIDE = 2.0
"""The largest factor by which runs that share memory and its caches slow each other down."""

WIDER = 1.25
"""Factor by which measured bounds are widened, because the time of one run varies, too."""


@dataclass(frozen=True)
class Estimate:
    """The time that the remaining runs of a study take."""

    core: Span | None
    """Seconds of one core; ``None`` if no run is of known length."""
    elapsed: Span | None
    """Seconds from begin to end with the requested workers."""
    unknown: int
    """Number of runs of unknown length. The estimate leaves them out."""
    measured: int
    """Number of finished runs behind the estimate; with 0, it is based on sizes and counts."""


def of_run(run: Run) -> Span | None:
    """Return the core seconds of a run; ``None`` if the length of its workload is unknown.

    Preconditioning is included, even if the run shares it with others.
    """
    played = _played(run)
    return None if played is None or run.cost.time is None else played + run.cost.time


def _played(run: Run) -> Span | None:
    """Return the core seconds of a run whose drive is preconditioned."""
    requests = requests_of(run.spec)
    if requests is None or "config" not in run.identity:
        return None
    found = re.search(r"[:,]size=([^,]+)", run.spec.get("workload") or "")
    unit = run.cost.unit_bytes
    try:
        size = _core.quantity(found[1]) if found else unit
    except _core.InputError:  # several sizes
        size = unit
    more = max(size / unit / UNITS_A_REQUEST, 1.0)
    played = REQUEST_S[run.spec["mode"] != "untimed"].times(requests, requests * more)
    played = played.by(factor_of_map(run.identity["config"]["params"].get("map.store", "")))
    if run.spec["until"] == "steady":
        played = played.by(PASSES)
    check = CHECK_S.times(0 if run.spec["precondition"] == "none" else run.cost.logical_units)
    return RUN_S + played + check


def estimated(
    runs: Sequence[Run], store: Store | None, jobs: int | None = None, load: float = 0.0
) -> tuple[dict[str, Span], Estimate]:
    """Estimate the runs of a study that are not in the store.

    Measured times of the study's finished runs replace the general bounds.

    Args:
        runs: All runs.
        store: The store with the finished runs.
        jobs: Number of workers; ``None`` if it is unknown.
        load: Number of other processes that want a core of this machine.

    Returns:
        The core seconds of each run by key, and of all together.

    """
    due = [run for run in runs if store is None or not store.has(run.key)]
    keys = {run.key for run in due}
    there = [run for run in runs if run.key not in keys]
    ratios, unknown = _measured(there, store)
    found: dict[str, Span] = {}
    for run in due:
        time = of_run(run)
        if time is None:
            time = unknown
        elif ratios is not None:
            time = ratios.times(time.middle)
        if time is not None:
            found[run.key] = time
    if not found:
        return found, Estimate(None, None, len(due), 0)
    core = sum(found.values(), Span(0, 0))
    if ratios is None:
        core = Span(core.least - _saved(due), core.most)
    measured = len(there) if ratios is not None or unknown is not None else 0
    elapsed = None if jobs is None else _elapsed(core, found, jobs, load, measured > 0)
    return found, Estimate(core, elapsed, len(due) - len(found), measured)


def _elapsed(core: Span, runs: dict[str, Span], jobs: int, load: float, measured: bool) -> Span:
    """Return the elapsed seconds, which are at least the seconds of the longest run."""
    workers = min(jobs, len(runs))
    longest = Span(*(max(getattr(run, end) for run in runs.values()) for end in ("least", "most")))
    # processes for each core, other people's and ours
    busy = max((load + workers) / (os.cpu_count() or 1), 1.0)
    slower = 1.0 if measured else busy * (SIDE_BY_SIDE if workers > 1 else 1.0)
    least = max(core.least / workers, longest.least)
    most = max(core.most / workers, longest.most) * slower
    return START_S.times(1, busy) + Span(least, most)


def _measured(there: Sequence[Run], store: Store | None) -> tuple[Span | None, Span | None]:
    """Return the ratio of finished runs to their estimates, and the times of the others.

    The first span is a ratio to the middle of the estimate, for runs of known length. The second is
    in seconds, for runs whose length only their trace determines.
    """
    ratios, seconds = [], []
    for run in there:
        took = store.seconds(run.key) if store is not None else None
        if took is None:
            continue
        time = of_run(run)
        if time is None:
            seconds.append(took)
        else:
            ratios.append((took + RUN_S.least) / time.middle)

    def span(values: list[float]) -> Span | None:
        return Span(min(values) / WIDER, max(values) * WIDER) if values else None

    return span(ratios), span(seconds)


def _saved(due: Sequence[Run]) -> float:
    """Return the least time that runs save by sharing a preconditioned drive."""
    groups = preconditions.shared([run.spec for run in due], alone(due))
    saved = 0.0
    for _, users in groups:
        time = due[users[0]].cost.time
        saved += (len(users) - 1) * (time.least if time else 0.0)
    return saved
