"""Whole traces of the paper's workloads, if a user has them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flashatlas._core import InputError
from flashatlas.inputs.trace import Trace
from flashatlas.reproduce.workloads import Application

VOLUME = re.compile(r"(?:msr-cambridge\d?-)?([a-z]+\d?_\d+)\b")
"""A volume of MSR Cambridge: ``hm_0``, ``src1_2``."""


def whole_traces(
    folder: str | os.PathLike[str], entries: Sequence[dict[str, Any]]
) -> list[Application]:
    """Return the workloads of the paper whose whole traces are in a folder.

    Args:
        folder: The folder with SPC traces (``Financial1.spc.bz2``, ``WebSearch1.spc`` …) and
            volumes of MSR Cambridge (``hm_0.csv.gz`` …), with any ending.
        entries: Workloads of the paper: ``name``, and the beginning of a file's name (``file``);
            without ``file`` any volume of MSR Cambridge.

    Raises:
        InputError: The folder does not exist, holds none of the traces, or holds one of them twice.

    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"{root}: there is no such folder of whole traces (--whole)")
    found: dict[str, tuple[str, Path]] = {}
    for path in sorted(p for p in root.iterdir() if p.is_file()):
        for entry in entries:
            name = _name(entry, path.name.lower())
            if name is None:
                continue
            if name in found:
                raise InputError(
                    f"{path}: {name} is the same trace as {found[name][1].name}; keep one "
                    f"of the two in {root}"
                )
            found[name] = (entry["name"], path)
    if not found:
        wanted = ", ".join(str(entry.get("file", "hm_0, src1_2 …")) for entry in entries)
        raise InputError(f"{root}: no file is named like a trace of the paper ({wanted})")
    return [
        Application(name, {"trace": path, "like": like}, recorded=True)
        for name, (like, path) in found.items()
    ]


def _name(entry: dict[str, Any], file: str) -> str | None:
    """Return the name of a file's workload; ``None`` if the file is not the trace of an entry."""
    if "file" in entry:
        return f"{entry['name']}, whole" if file.startswith(entry["file"]) else None
    volume = VOLUME.match(file)
    return f"{entry['name']} {volume[1]}, whole" if volume else None


def character(trace: Trace) -> tuple[float, float, float, float]:
    """Return the numbers of table III for a workload.

    They are KiB per request, per cent of reads, and per cent of all requests that are sequential
    reads and sequential writes. A sequential request begins where the last read, or write, of the
    same device ended.
    """
    ends: dict[tuple[int, str], int] = {}
    sequential: Counter[str] = Counter()
    requests: Counter[str] = Counter()
    transferred = 0
    for batch in trace.batches():
        columns = (batch[name].to_pylist() for name in ("device", "op", "offset", "bytes"))
        for device, op, offset, length in zip(*columns, strict=True):
            if op not in ("read", "write"):
                continue
            requests[op] += 1
            transferred += length
            sequential[op] += ends.get((device, op)) == offset
            ends[device, op] = offset + length
    each = 100 / max(requests.total(), 1)
    return (
        transferred / 1024 * each / 100,
        requests["read"] * each,
        sequential["read"] * each,
        sequential["write"] * each,
    )
