"""Traces: options of reading them, statistics, requests, and conversion to other formats."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashatlas import _core
from flashatlas.files import whole_file
from flashatlas.foreign import trace_name
from flashatlas.results.columns import table_of

if TYPE_CHECKING:
    import pyarrow as pa

Progress = Callable[[str, int, float | None], None]
"""A function of the phase, the number of requests so far, and the share done (0 to 1) if known."""

COMPRESSIONS = {".gz": "gz", ".bz2": "bz2", ".xz": "xz", ".zst": "zst"}

SUFFIXES = {
    ".fatr": "atlas",
    ".csv": "csv",
    ".spc": "spc",
    ".iolog": "iolog",
    ".load": "blkreplay",
    ".mqsim": "mqsim",
}
"""The format in which a file is written, by the ending of its name."""


@dataclass(frozen=True)
class Trace:
    """A trace file, and the options of reading it.

    >>> Trace("hm_0.csv.gz", drop_duplicates="5ms").info()["requests"]  # doctest: +SKIP

    Args:
        path: The file: plain or compressed (gz, bz2, xz, zst) text, Parquet or Arrow. The value
            ``-`` is standard input, ``merge:FILE,key=value;FILE`` reads several files as one trace,
            and ``mqsim:workload.xml`` is the trace of an MQSim workload. A table in memory is
            accepted as well: an Arrow table, or an object that exports Arrow (polars, DuckDB).
        format: The format of the file, if its content does not show it; ``flashatlas formats``
            lists all formats. Any delimited text can be read, for example with
            ``"columns:time=0:us,op=1,offset=2:bytes,size=3:sectors"``.
        device_map: Treatment of several devices: ``separate`` (keep their address spaces apart; the
            default), ``collapse`` (put all devices into one address space), or ``select:N`` (read
            only device N).
        drop_duplicates: Drop a record that repeats the previous one of its device within this time,
            such as ``"5ms"``.
        time_gap_max: Shorten pauses to at most this time, such as ``"1s"``, and ignore steps of the
            clock that go back by more than this time.
        assume_op: Operation of all requests if the trace names no operations: ``read``, ``write``
            or ``trim``.
        skip_bad: The number of bad records to skip and count; the next bad record is an error. Or a
            comma-separated list of kinds of records that are always skipped: ``zero-length``,
            ``too-long``, ``too-far``.
        shift: Number of sectors added to every address.

    """

    path: str | os.PathLike[str] | pa.Table
    format: str | None = None
    device_map: str | None = None
    drop_duplicates: str | None = None
    time_gap_max: str | None = None
    assume_op: str | None = None
    skip_bad: int | str = 0
    shift: int = 0

    def __post_init__(self) -> None:
        """Convert a table to an Arrow table, and a name ``mqsim:FILE`` to the name of its trace."""
        if not isinstance(self.path, str | os.PathLike):
            from flashatlas.inputs.table_traces import held  # noqa: PLC0415

            object.__setattr__(self, "path", held(self.path))
        elif isinstance(path := os.fspath(self.path), str):
            object.__setattr__(self, "path", trace_name(path))

    @property
    def name(self) -> str:
        """The path, or the name of the table in memory."""
        if isinstance(self.path, str | os.PathLike):
            return os.fspath(self.path)
        from flashatlas.inputs.table_traces import name_of  # noqa: PLC0415

        return name_of(self.path)

    @property
    def _is_table(self) -> bool:
        """``True`` for a Parquet file, an Arrow file or a table in memory."""
        files = _core.trace_files(self.name)
        there = not _core.is_file(self.name) or all(Path(file).is_file() for file in files)
        return there and len(files) == 1 and _core.is_table(files[0])

    @property
    def options(self) -> dict[str, Any]:
        """The options of reading, in the form that the core expects."""
        given = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name != "path"
        }
        if (given["format"] or "").startswith("columns:") and self._is_table:
            from flashatlas.inputs.table_traces import of_text  # noqa: PLC0415

            given["format"] = of_text(given["format"])
        return given

    def info(self, progress: Progress | None = None) -> dict[str, Any]:
        """Read the whole trace and return its statistics.

        The statistics are requests, bytes, footprint, overwrites, sequentiality and burstiness.

        The keys are described in ``docs/FORMATS.md``. Times are in seconds, sizes in bytes, shares
        from 0 to 1.
        """
        return json.loads(_core.trace_info(self.name, json.dumps(self.options), progress))

    def reuse(
        self, page: str = "4KiB", entries: int = 1024, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Return statistics of how the trace reuses addresses; no drive is simulated.

        The result contains the miss ratios of LRU caches of map pages and of map entries for each
        cache size, the intervals between two writes of a page, and the skew of writes. The miss
        ratios are exact for traces of at most 262,144 units; for larger traces they come from a
        sample (SHARDS).

        The keys are described in ``docs/FORMATS.md``.

        Args:
            page: Size of the page that one map entry maps.
            entries: Number of entries in a map page.
            progress: Called now and then.

        """
        size = _core.quantity(page)
        options = json.dumps(self.options)
        return json.loads(_core.trace_reuse(self.name, options, size, entries, progress))

    def convert(
        self,
        to: str | os.PathLike[str],
        *,
        format: str | None = None,
        lossy: bool = False,
        start: str | None = None,
        end: str | None = None,
        skip: int = 0,
        count: int | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Write the trace, or a part of it, in another format.

        The file appears complete, or not at all.

        Args:
            to: The file to write; if its name ends in ``.gz``, ``.bz2``, ``.xz`` or ``.zst``, it is
                compressed.
            format: The format of this file; by default it follows from the ending of the name
                (``.fatr`` is the project's own, compact format).
            lossy: Drop or round data that the format cannot hold, and count the losses; by default
                such data is an error.
            start: Leave out requests before this time, such as ``"10s"``, counted from the first
                request.
            end: Leave out requests at this time or later.
            skip: Number of remaining requests to leave out.
            count: Number of remaining requests to write.
            progress: Called now and then.

        Returns:
            Counts of things that were written (``records``, ``bytes``), lost (``times_rounded``,
            ``trims_dropped`` …) and left out (``account``).

        """
        target = Path(to)
        if target.exists() and Path(self.name).exists() and target.samefile(self.name):
            raise _core.InputError(
                f"{target}: this is the trace that is read; write to another file"
            )
        compression = COMPRESSIONS.get(target.suffix, "none")
        name = format or _format_of(target.with_suffix("") if compression != "none" else target)
        part = {"from": start, "to": end, "skip": skip, "count": count}
        with whole_file(target) as temporary:
            written = _core.trace_convert(
                self.name,
                json.dumps(self.options),
                str(temporary),
                name,
                compression,
                lossy,
                json.dumps(part),
                progress,
            )
        return json.loads(written)

    def batches(self, rows: int = 65_536) -> Iterator[pa.Table]:
        """Yield the requests in tables of ``rows`` rows; the last table may have fewer.

        The columns are ``time_ps`` (counted from the first request), ``op``, ``offset``, ``bytes``,
        ``fua`` (0 or 1) and ``device``.
        """
        reader = _core.TraceReader(self.name, json.dumps(self.options))
        while (batch := reader.next_batch(rows)) is not None:
            yield table_of(batch[1])

    def to_arrow(self, limit: int | None = None) -> pa.Table:
        """Return all requests, or the first ``limit``, as one table.

        Its columns are the columns of :meth:`batches`.
        """
        import pyarrow as pa  # noqa: PLC0415

        found: list[pa.Table] = []
        left = limit
        for batch in self.batches():
            found.append(batch if left is None else batch.slice(0, left))
            if left is not None:
                left -= found[-1].num_rows
                if left <= 0:
                    break
        return pa.concat_tables(found)


def _format_of(path: Path) -> str:
    if path.suffix not in SUFFIXES:
        known = ", ".join(f"{suffix} ({name})" for suffix, name in SUFFIXES.items())
        raise _core.InputError(
            f"{path}: no format is named: end the name with one of {known}, or name the "
            "format (`format`; on the command line --to-format)"
        )
    return SUFFIXES[path.suffix]
