"""Work of a worker: one run, from its specification into the store."""

from __future__ import annotations

import functools
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import get_worker

from flashatlas import FlashAtlasError, _core, parts
from flashatlas.files import whole_file
from flashatlas.results.result import Result
from flashatlas.running.api import build, carried_out_from
from flashatlas.sweep import lookups
from flashatlas.sweep.lookups import LookupResult
from flashatlas.sweep.rows import Row, row_of
from flashatlas.sweep.store import Store

TOPIC = "flashatlas"
"""The topic under which workers report their progress."""

SAY_EVERY_S = 0.5


@dataclass(frozen=True)
class Task:
    """A run to be carried out."""

    root: str
    """The folder of the store."""
    key: str
    label: str
    spec: Mapping[str, Any]
    identity: Mapping[str, Any]
    keep: str
    checkpoint: str | None = None
    """The checkpoint of the drive's initial state, if runs share one."""


@dataclass(frozen=True)
class Answer:
    """The outcome of a task."""

    row: Row | None = None
    failure: Mapping[str, Any] | None = None


def carry_out(task: Task, sources: str, plugins: tuple[str, ...]) -> Answer:
    """Carry out a run, and keep its result or its failure."""
    store = Store(Path(task.root))
    try:
        _ready(sources, plugins)
        result: Result | LookupResult
        if store.has(task.key):
            result = lookups.load(store, task.key)
        else:
            if lookups.LOOKUP in task.identity:
                result = lookups.carried_out(task.spec, _teller(task.label))
            else:
                result = carried_out_from(task.spec, task.checkpoint, _teller(task.label))
            store.put(task.key, result, task.identity, task.keep)
    except FlashAtlasError as error:
        failure = failure_of(type(error).__name__, str(error), task.label)
        store.fail(task.key, failure)
        return Answer(failure=failure)
    return Answer(row=row_of(task.key, result))


def failure_of(kind: str, why: str, label: str) -> dict[str, Any]:
    """Return a failure as the store keeps it."""
    where = socket.gethostname()
    return {"kind": kind, "error": why, "label": label, "host": where, "when": time.time()}


def make_checkpoint(
    path: str, spec: Mapping[str, Any], label: str, sources: str, plugins: tuple[str, ...]
) -> str | None:
    """Precondition a drive for several runs; return the error, or ``None``."""
    try:
        _ready(sources, plugins)
        with whole_file(Path(path)) as temporary:
            _core.save_checkpoint(json.dumps(spec), str(temporary), _teller(label))
    except FlashAtlasError as error:
        return f"{type(error).__name__}: {error}"
    return None


@functools.cache
def _ready(sources: str, plugins: tuple[str, ...]) -> None:
    """Check that this process has the build and the parts of the study.

    Raises:
        InputError: This is another build, or a part cannot be loaded.

    """
    own = build()["sources"]
    if own != sources:
        raise _core.InputError(
            f"the worker on {socket.gethostname()} runs another build of FlashAtlas ({own}) than "
            f"this study ({sources}): install the same build there"
        )
    for plugin in plugins:
        parts.load(plugin)


def _teller(label: str) -> Any:
    """Return a progress function that tells the scheduler."""
    try:
        worker = get_worker()
    except ValueError:
        return None
    last = 0.0

    def tell(phase: str, requests: int, share: float | None) -> None:
        nonlocal last
        if (now := time.monotonic()) - last > SAY_EVERY_S:
            last = now
            worker.log_event(TOPIC, (worker.name, label, phase, requests, share))

    return tell
