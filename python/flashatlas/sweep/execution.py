"""Execution of a study's runs that are not yet in the store."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from flashatlas import parts
from flashatlas._core import InputError
from flashatlas.running import preconditions
from flashatlas.running.api import build
from flashatlas.sweep import clusters
from flashatlas.sweep.identity import Digests
from flashatlas.sweep.plan import Run
from flashatlas.sweep.rows import RowWriter
from flashatlas.sweep.store import Store

QUEUED = 2
"""Number of runs that a worker has at a time: the present one and the next one."""

SHARED_FROM_S = 1.0
"""Least seconds of preconditioning for which runs with equal drives share one drive."""

SILENCE_S = 0.25
"""Seconds that the study waits for news before it looks at the clock."""


class Watcher(Protocol):
    """An observer that is told about the progress of a study."""

    def told(self, worker: str, label: str, phase: str, requests: int, share: float | None) -> None:
        """Take note of a worker's progress in a run."""

    def ended(self, run: Run, failure: Mapping[str, Any] | None) -> None:
        """Take note that a run is done, or has failed."""

    def tick(self) -> None:
        """Take note that time has passed."""


@dataclass
class Done:
    """Counts of runs that were in the store before, were carried out, or failed."""

    there: int = 0
    """Number of runs that were in the store before."""
    carried_out: int = 0
    failed: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Failures by key of the run: new ones, and earlier ones that were not tried again."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Where:
    """The place of the runs: arguments of :func:`flashatlas.sweep.clusters.client`."""

    cluster: str = clusters.LOCAL
    jobs: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def due(
    planned: Iterable[Run], store: Store, *, retry_failed: bool = False
) -> tuple[list[Run], Done]:
    """Return the runs to carry out, and the state of the others."""
    done = Done()
    runs = []
    failed = store.failed_keys()
    for run in planned:
        if store.has(run.key):
            done.there += 1
        elif run.key in failed and not retry_failed:
            done.failed[run.key] = store.failure(run.key) or {}
        else:
            runs.append(run)
    return runs, done


def carry_out(
    runs: Sequence[Run],
    store: Store,
    done: Done,
    *,
    where: Where = Where(),
    keep: str = "tables",
    watcher: Watcher | None = None,
) -> Done:
    """Carry out runs, and keep each as soon as it is done.

    After an exception or an interruption, the finished runs are in the store.
    """
    if not runs:
        return done
    begun = time.monotonic()
    with crew(store, len(runs), where=where, keep=keep, watcher=watcher) as workers:
        try:
            workers.carry_out(runs, done)
        finally:
            done.seconds = time.monotonic() - begun
    return done


@contextmanager
def crew(
    store: Store, most: int, *, where: Where, keep: str, watcher: Watcher | None
) -> Iterator[Crew]:
    """Yield workers that carry out runs; ``most`` is the largest number of runs in progress."""
    with clusters.client(where.cluster, where.jobs, most, where.options) as cluster:
        workers = Crew(cluster, store, keep, watcher)
        try:
            yield workers
        finally:
            workers.close()


class Crew:
    """The workers of a cluster, and their present runs."""

    def __init__(
        self, cluster: clusters.Reached, store: Store, keep: str, watcher: Watcher | None
    ) -> None:
        from flashatlas.sweep import worker  # noqa: PLC0415  (needs Dask)

        self._work = worker
        self._cluster, self._client, self._memory = cluster, cluster.client, cluster.memory
        self._store, self._keep, self._watcher = store, keep, watcher
        self._sources = build()["sources"]
        self._plugins = tuple(str(path.absolute()) for path in parts.files())
        self._news: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._flying: dict[str, Any] = {}
        self._taken = 0
        self._slots, self._slots_until = 0, 0.0
        self._rows = RowWriter(store)
        self._client.subscribe_topic(worker.TOPIC, lambda event: self._news.put(("told", event)))

    def carry_out(self, runs: Sequence[Run], done: Done) -> None:
        """Carry out runs, and keep each as soon as it is done."""
        _can_be_sent(runs)
        checkpoints = self._checkpoints(runs)
        waiting = deque(runs)
        by_key = {run.key: run for run in runs}
        while waiting or self._flying:
            while waiting and self._has_room(waiting[0]):
                run = waiting.popleft()
                self._submit(run.key, run.cost.bytes, self._work.carry_out,
                             self._task(run, checkpoints.get(run.key)))  # fmt: skip
            for key, future in self._landed(by_key):
                run = by_key[key]
                self._taken -= run.cost.bytes
                failure = self._settled(run, future, done)
                if self._watcher:
                    self._watcher.ended(run, failure)
        self._rows.flush()

    def close(self) -> None:
        """Keep the rows of finished runs, and stop the others."""
        self._rows.flush()
        self._client.unsubscribe_topic(self._work.TOPIC)
        if self._flying:
            self._client.cancel(list(self._flying.values()), force=True)

    def _task(self, run: Run, checkpoint: str | None) -> Any:
        return self._work.Task(str(self._store.root.absolute()), run.key, run.label, run.spec,
                               run.identity, self._keep, checkpoint)  # fmt: skip

    def _submit(self, key: str, memory: int, work: Any, *arguments: Any) -> None:
        future = self._client.submit(
            work,
            *arguments,
            self._sources,
            self._plugins,
            key=f"{key}-{time.time_ns()}",
            pure=False,
        )
        self._flying[key] = future
        self._taken += memory
        future.add_done_callback(lambda done: self._news.put(("landed", (key, done))))

    def _has_room(self, run: Run) -> bool:
        """Return ``True`` if a worker and memory are free for a run; a single run always fits."""
        if not self._flying:
            return True
        if self._memory is not None and self._taken + run.cost.bytes > self._memory:
            return False
        if time.monotonic() > self._slots_until:
            self._slots_until = time.monotonic() + 2
            self._slots = QUEUED * max(sum(self._client.nthreads().values()), 1)
        return len(self._flying) < self._slots

    def _landed(self, known: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        """Return the tasks that have ended; wait at most :data:`SILENCE_S` for the first news."""
        found = []
        try:
            kind, what = self._news.get(timeout=SILENCE_S)
            while True:
                if kind == "landed" and what[0] in known and what[0] in self._flying:
                    del self._flying[what[0]]
                    found.append(what)
                elif kind == "told" and self._watcher:
                    self._watcher.told(*what[1])
                kind, what = self._news.get_nowait()
        except queue.Empty:
            pass
        if self._watcher:
            self._watcher.tick()
        if self._cluster.is_gone():
            raise InputError("the cluster is gone; the finished runs are in the store: continue "
                             "with the same command")  # fmt: skip
        return found

    def _settled(self, run: Run, future: Any, done: Done) -> Mapping[str, Any] | None:
        """Record the end of a run, and return its failure if it failed."""
        try:
            answer = future.result()
        except Exception as error:  # the run failed: a worker was killed, or a disk is full
            failure = self._work.failure_of(type(error).__name__, _said(error), run.label)
            self._store.fail(run.key, failure)
        else:
            if answer.row is not None:
                self._rows.add(answer.row)
                done.carried_out += 1
                return None
            failure = answer.failure
        done.failed[run.key] = failure
        return failure  # type: ignore[no-any-return]

    def _checkpoints(self, runs: Sequence[Run]) -> dict[str, str]:
        """Make the drives that several runs share, and return the checkpoint of each run."""
        found: dict[str, str] = {}
        making: dict[str, tuple[Run, str, list[Run]]] = {}
        for what, users in preconditions.shared([run.spec for run in runs], alone(runs)):
            first = runs[users[0]]
            first_of = {part: first.identity[part] for part in ("files", "sources")}
            key = Digests.key({"drive": what, **first_of})
            path = self._store.checkpoint(key)
            found |= {runs[at].key: str(path.absolute()) for at in users}
            if not path.is_file():
                making[key] = (first, str(path.absolute()), [runs[at] for at in users])
        for key, (first, file, _) in making.items():
            self._submit(key, first.cost.bytes, self._work.make_checkpoint, file, first.spec,
                         f"precondition of {first.label}")  # fmt: skip
        while self._flying:
            for key, future in self._landed(making):
                first, _, users_of = making[key]
                self._taken -= first.cost.bytes
                why = future.result() if future.status == "finished" else future.status
                if why is not None:  # each run preconditions its own drive
                    for run in users_of:
                        found.pop(run.key, None)
        return found


def alone(runs: Sequence[Run]) -> set[int]:
    """Return the numbers of runs that precondition their drives themselves."""
    return {
        at
        for at, run in enumerate(runs)
        if not run.keeps_checkpoints or (run.cost.seconds or SHARED_FROM_S) < SHARED_FROM_S
    }


def _can_be_sent(runs: Sequence[Run]) -> None:
    """Refuse runs with parts that the workers cannot load: workers are other processes."""
    for run in runs:
        for part in parts.of_program(run.identity["parts"]):
            raise InputError(
                f"{part['kind']} `{part['name']}` (run `{run.label}`): the program added it "
                "(parts.add), and workers are other processes: write it into a file, and load the "
                "file (parts.load, --plugin)"
            )


def _said(error: Exception) -> str:
    """Return the error of a worker, in one line."""
    if type(error).__name__ == "KilledWorker":
        return (
            "every worker that began the run was killed, as happens if memory runs out: give the "
            "workers more memory, or carry out fewer runs at the same time"
        )
    return " ".join(str(error).split()) or type(error).__name__
