"""Studies of the lookup engine as runs: they need no drive, and a store keeps them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from flashatlas import _core
from flashatlas.results.folders import RECORD
from flashatlas.results.frame import Columns, leaves
from flashatlas.results.result import Made, Result
from flashatlas.running import lookups
from flashatlas.running.cost import Cost
from flashatlas.sweep.identity import Digests
from flashatlas.sweep.plan import Run, requests_of
from flashatlas.sweep.store import Store
from flashatlas.untrusted import json_file, must_be

LOOKUP = "lookup"
"""The part of an identity that only these studies have."""

BYTES, BYTES_A_REQUEST = 32 << 20, 100
"""Memory of a study in bytes: the paper's tables, and the data kept for each request.

Measured: 15 MiB with a thousand requests, 101 MiB with a million.
"""

BYTES_OF_A_TRACE = 16
"""Least bytes of a compressed trace for each request, so that no estimate of memory is too low."""


class Kept(TypedDict):
    """The part of a lookup study's record that is read again."""

    config: dict[str, Any]
    source: Any
    address: Any
    unit_sectors: int
    seed: int


@dataclass(frozen=True)
class LookupResult:
    """The record of a study of the lookup engine (``flashatlas.lookup/1``)."""

    record: dict[str, Any]
    wall_s: float | None = None

    def files(self, _: Path) -> dict[str, bytes]:
        """Return the files that a store keeps."""
        return {
            "made.json": json.dumps({"wall_s": self.wall_s}).encode(),
            RECORD: json.dumps(self.record, indent=2).encode(),
        }

    @property
    def columns(self) -> Columns:
        """The row of the study: settings and numbers, by column."""
        record = dict(self.record)
        settings = {**record.pop("config"), "source": json.dumps(record.pop("source"))}
        settings |= {key: record.pop(key) for key in ("address", "unit_sectors", "seed")}
        return settings, dict(leaves("", record))


def run_of(axes: Mapping[str, Any], arguments: Mapping[str, Any], digests: Digests) -> Run:
    """Return a study as a run of a plan, checked.

    Args:
        axes: The study's values of the plan's axes.
        arguments: Arguments of :func:`flashatlas.lookup`.
        digests: Digests of files.

    Raises:
        InputError: A setting is bad, or a trace does not exist.

    """
    spec = lookups.specification(**arguments)
    planned = json.loads(_core.lookup_planned(json.dumps(spec)))
    source = "trace" if planned["files"] else spec["source"]
    asked = {**spec, "set": planned["config"], "source": source}
    identity = {
        LOOKUP: asked,
        "files": [digests.of(path) for path in planned["files"]],
        "parts": [],
        "sources": digests.sources,
    }
    return Run(
        axes=axes,
        spec=spec,
        identity=identity,
        key=digests.key(identity),
        label=" ".join(map(str, axes.values())),
        cost=Cost(0, BYTES + BYTES_A_REQUEST * _requests(spec), None),
        keeps_checkpoints=False,
    )


def _requests(spec: Mapping[str, Any]) -> int:
    """Return the largest possible number of requests."""
    source = spec["source"]
    for kind, count in (("sets", "lookups"), ("files", "files")):
        if kind in source:
            return int(source[kind][count])
    found = requests_of({"workload": source.get("workload"), "limit": spec.get("limit")})
    if found is not None:
        return found
    path = source.get("trace", "")
    files = _core.trace_files(path) if _core.is_file(path) else []
    return sum(Path(file).stat().st_size for file in files) // BYTES_OF_A_TRACE


def carried_out(spec: Mapping[str, Any], progress: _core.Progress | None) -> LookupResult:
    """Carry out a study."""
    begin = time.perf_counter()
    record = lookups.carried_out(spec, progress)
    return LookupResult(record, time.perf_counter() - begin)


def load(store: Store, key: str) -> Result | LookupResult:
    """Return a run of a store, with a drive or of the lookup engine.

    Raises:
        InputError: The run is not in the store, or not whole.

    """
    entry = store.entry(key)
    if entry is None or LOOKUP not in entry["identity"]:
        return store.load(key)
    record, made = (
        json_file(store.folder(key) / name, "a record of `flashatlas lookup`")
        for name in (RECORD, "made.json")
    )
    must_be(record, Kept, store.folder(key) / RECORD)
    must_be(made, Made, store.folder(key) / "made.json")
    return LookupResult(record, made.get("wall_s"))
