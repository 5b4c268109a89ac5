"""Results of runs: a record with tables, its files, and its digest."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from flashatlas._core import RUN_SCHEMA, InputError, is_file
from flashatlas.files import write_together
from flashatlas.record import Record
from flashatlas.results.columns import Column, Tables, as_made, update
from flashatlas.results.folders import (
    RECORD,
    TABLES,
    clear_comparison,
    clear_run,
    run_folders,
)
from flashatlas.results.paths import with_files, with_inputs
from flashatlas.results.renamed_keys import EARLIER_SCHEMA, JUDGED, are_notes, upgraded
from flashatlas.results.units import unit_of
from flashatlas.untrusted import json_file, keys_must_be, must_be, parquet_file

if TYPE_CHECKING:
    import pyarrow as pa

ESSENTIAL = ("drive.channels", "ftl.scheme", "layers")
"""Parameters that every record has."""


@dataclass(frozen=True)
class Result:
    """The record of one run; properties return its most important numbers.

    The schema of the record is ``flashatlas.run/2`` (``docs/FORMATS.md``).
    """

    record: dict[str, Any]
    label: str = ""
    tables: Mapping[str, pa.Table] = field(default_factory=dict, compare=False)
    """Arrow tables by name (:data:`TABLES`), without the tables that do not apply to the run."""
    command: str = field(default="", compare=False)
    """The command line of the run, if it was run from the command line."""
    options: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Arguments of :func:`flashatlas.run` that repeat the run; empty for a loaded result."""
    wall_s: float | None = field(default=None, compare=False)
    """Real time of the run in seconds; ``None`` if it was not saved."""
    jobs: Any = field(default=None, compare=False)
    """Statistics of each job of a fio job file (see ``docs/howto/run-a-fio-job.md``).

    ``None`` for other workloads.
    """

    @property
    def name(self) -> str:
        """The label, or the drive if there is no label."""
        return self.label or self.record["config"]["drive"]

    @property
    def waf(self) -> float | None:
        """Write amplification: bytes programmed, divided by bytes that the host wrote.

        ``None`` if the host wrote nothing.
        """
        return self.record.get("waf")

    @property
    def latency(self) -> dict[str, dict[str, float]]:
        """Latencies in nanoseconds by operation: ``result.latency["read"]["p99"]``.

        The result is empty for untimed runs.
        """
        return self.record.get("latency_ns", {})

    @property
    def iops(self) -> float | None:
        """Completed requests per second of simulated time; ``None`` for untimed runs."""
        return self.record.get("iops")

    @property
    def steady(self) -> bool | None:
        """``True`` if a longer run would have the same numbers; else ``steadiness`` has reasons.

        ``None`` for jobs in stages, which are not judged.
        """
        return self.record.get("steady")

    @property
    def worn_out(self) -> dict[str, int] | None:
        """The ``request`` at which the drive wore out, and its ``retired_blocks`` at that time.

        ``None`` if the drive did not wear out before the workload ended.
        """
        return self.record.get("worn_out")

    @property
    def violations(self) -> int:
        """Number of mapping units that did not hold the data last written to them.

        Any number but 0 is a bug of FlashAtlas.
        """
        return self.record["oracle"]["violations"]

    def to_arrow(self, table: str = "series") -> pa.Table:
        """Return one of the run's tables.

        The default table is ``series``: all counters over time.

        Args:
            table: ``series``, ``latency`` (histogram), ``wear`` (blocks by erases), ``resources``
                (busy shares of dies and channels) or ``blocks`` (every block over time).

        Raises:
            InputError: The run has no such table.

        """
        if table not in self.tables:
            has = ", ".join(self.tables) or "none"
            raise InputError(f"table `{table}` is not in this result (tables: {has})")
        return self.tables[table]

    def to_json(self) -> str:
        """Return the record as JSON text."""
        return json.dumps(self.record, indent=2)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``run.json`` and a Parquet file for each table into a folder.

        The result is the path of the record.

        All files are written completely before the first file appears, and the record appears last.
        Files of an earlier run are removed if this run does not replace them.
        """
        save_one(self, Path(folder))
        return Path(folder) / RECORD

    def files(self, folder: str | os.PathLike[str]) -> dict[str, bytes]:
        """Return the content of the files that :meth:`save` writes, by name, the record first."""
        import pyarrow.parquet as pq  # noqa: PLC0415

        record = with_paths(self.record, lambda file: _relative(file, Path(folder)))
        found = {RECORD: _json({**({"label": self.label} if self.label else {}), **record})}
        for name, table in self.tables.items():
            buffer = io.BytesIO()
            pq.write_table(self._described(table), buffer, compression="zstd")
            found[f"{name}.parquet"] = buffer.getvalue()
        if self.jobs is not None:
            found["jobs.json"] = _json(self.jobs)
        found["made.json"] = _json(self._made())
        return found

    def _described(self, table: pa.Table) -> pa.Table:
        """Return a table with the run's identity and the unit of each column in its metadata."""
        import pyarrow as pa  # noqa: PLC0415

        fields = [f.with_metadata({"unit": unit_of(f.name)}) for f in table.schema]
        run = {
            "flashatlas.run": self.name,
            "flashatlas.config_hash": self.record["config_hash"],
            "flashatlas.results_digest": self.record.get("results_digest", ""),
        }
        return table.cast(pa.schema(fields, metadata=run))

    def _repr_html_(self) -> str:
        from flashatlas.results.frame import frame_of  # noqa: PLC0415

        return frame_of([(self.label, self.record)])._repr_html_()

    def _made(self) -> dict[str, Any]:
        """Return facts about the run that may differ between equal runs."""
        made: dict[str, Any] = {"command": self.command} if self.command else {}
        if self.wall_s is not None:
            made["wall_s"] = self.wall_s
            made["requests_per_wall_s"] = self.record["trace"]["requests"] / max(self.wall_s, 1e-9)
        return made

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read a run that :meth:`save` wrote, from its folder or its ``run.json``.

        Raises:
            InputError: There is no record, its schema is unknown, or it is damaged.

        """
        inside = run_folders(Path(path))
        if len(inside) > 1:
            names = ", ".join(map(str, inside[:4])) + (" …" if len(inside) > 4 else "")
            raise InputError(f"{path}: the folder holds several runs: load one of {names}")
        record_path = inside[0] / RECORD if inside[0].is_dir() else inside[0]
        record = _whole_record(record_path)
        found = record["schema"]
        record = upgraded(record)
        lacking = [key for key in ESSENTIAL if key not in record["config"]["params"]]
        if lacking:
            raise InputError(
                f"{record_path}: the run record is incomplete: config.params.{lacking[0]} "
                "is missing"
            )
        keys_must_be(record, Record, record_path)
        tables = {}
        for name in TABLES:
            file = record_path.parent / f"{name}.parquet"
            if file.exists():
                tables[name] = parquet_file(file)
        made = _beside(record_path, "made.json") or {}
        must_be(made, Made, record_path.with_name("made.json"))
        if found == EARLIER_SCHEMA:
            made = {key: record.pop(key) for key in _MADE if key in record}
        else:
            record = with_paths(record, lambda file: _from_folder(file, record_path.parent))
        _LOADED.append(record_path.absolute())
        return cls(
            record,
            record.pop("label", ""),
            tables,
            made.get("command", ""),
            wall_s=made.get("wall_s"),
            jobs=_beside(record_path, "jobs.json"),
        )

    def __repr__(self) -> str:
        waf = "none" if self.waf is None else f"{self.waf:.3f}"
        return f"<Result {self.name}: WAF {waf}, {self.violations} violations>"


class Made(TypedDict, total=False):
    """Facts about a run that may differ between equal runs (``made.json``)."""

    command: str
    wall_s: float | None


_LOADED: deque[Path] = deque(maxlen=10_000)
"""The paths of the records that were read last."""

DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Exceptions that are raised when a value is missing or has another type."""


def _damage(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """Return :data:`DAMAGE`, the errors of Arrow if it was imported, and the given ones."""
    arrow: Any = sys.modules.get("pyarrow")
    of_arrow = () if arrow is None else (arrow.ArrowException,)
    return (*DAMAGE, *of_arrow, *more)


@contextmanager
def changed_records_are_bad_input() -> Iterator[None]:
    """Turn an error inside the block into an input error if a record was changed after its run.

    The types in a record are checked when the record is read. Parts without a declared type, and
    the columns of tables, cause errors only when they are used. The digest then shows whether
    somebody changed the record. If no record was changed, the error is a bug and is raised
    unchanged.

    Raises:
        InputError: A changed record was read; the error names it.

    """
    _LOADED.clear()
    try:
        yield
    except _damage() as error:
        record = next((path for path in dict.fromkeys(_LOADED) if not _is_whole(path)), None)
        if record is None:
            raise
        raise InputError(
            f"{record}: damaged: the file cannot be used as a run record ({type(error).__name__}: "
            f"{error}); use an unchanged record of `flashatlas run --out`"
        ) from error


def _is_whole(path: Path) -> bool:
    """Return ``True`` if the record in a file was not changed after it was written."""
    try:
        result = Result.load(path)
    except _damage(InputError):
        return False
    return is_as_written(result)


def is_as_written(result: Result) -> bool:
    """Return ``True`` if the digest of a record matches its content and its tables."""
    try:
        tables = {name: as_made(table) for name, table in result.tables.items()}
        now = digest_of(result.record, tables, result.jobs)
    except _damage(InputError):  # a result without a digest cannot have been written
        return False
    return result.record.get("results_digest") == now


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _whole_record(path: Path) -> dict[str, Any]:
    """Return the record in a file, unchanged.

    Raises:
        InputError: There is no record, its schema is unknown, or it is damaged.

    """
    try:
        record = json_file(path, "a run record")
    except FileNotFoundError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    found = record.get("schema") if isinstance(record, dict) else None
    if found not in (RUN_SCHEMA, EARLIER_SCHEMA):
        raise InputError(f"{path}: the schema is {found!r} instead of {RUN_SCHEMA!r}")
    missing = [key for key in ("config", "trace", "oracle", "approximations") if key not in record]
    if missing:
        raise InputError(f"{path}: the run record is incomplete: it lacks {', '.join(missing)}")
    wrong = [key for key in ("config", "trace", "oracle") if not isinstance(record[key], dict)]
    if not wrong and not isinstance(record["oracle"].get("violations"), int):
        wrong = ["oracle.violations"]
    if not wrong and not isinstance(record["config"].get("params"), dict):
        wrong = ["config.params"]
    if not are_notes(record["approximations"]):
        wrong.append("approximations")
    for key in JUDGED:
        judged = record.get(key, {"reasons": []})
        if not (isinstance(judged, dict) and are_notes(judged.get("reasons", []))):
            wrong.append(f"{key}.reasons")
    if wrong:
        raise InputError(f"{path}: damaged: {', '.join(wrong)} has the wrong type")
    return record


_NO_RESULT = frozenset(
    {
        "build",
        "version",
        "label",
        "approximations",
        "checkpoint",
        "config_hash",
        "results_digest",
        "random_streams",
        "sweep",
    }
)
"""Parts of a record that are not results: another build, other paths or another form of the drive
may change them."""

_NO_JOB_RESULT = ("file", "warnings")
"""Parts of the statistics of jobs that are not results."""


def results_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a record that must be equal when the run is repeated.

    Sentences are left out, among them the reasons why a run is not steady; the rounds behind these
    reasons are kept.
    """
    found = {key: value for key, value in record.items() if key not in _NO_RESULT}
    for key in JUDGED:
        if key in found:
            found[key] = {k: v for k, v in found[key].items() if k != "reasons"}
    found = with_paths(found, lambda _: "")
    if "digest" in found["trace"] and not is_file(record["trace"]["path"]):
        # a trace from standard input or a table may come from a file the next time
        found["trace"] = with_inputs(found["trace"], lambda _: "")
    return found


def jobs_without_texts(jobs: Any) -> Any:
    """Return the statistics of jobs without the job file's path and the warnings about it."""
    return None if jobs is None else {k: v for k, v in jobs.items() if k not in _NO_JOB_RESULT}


def digest_of(record: Mapping[str, Any], tables: Mapping[str, pa.Table], jobs: Any) -> str:
    """Return ``sha256:`` and the digest of a run's results.

    The digest covers the record, the tables and the statistics of jobs, without sentences.
    """
    found = [results_of(record), jobs_without_texts(jobs)]
    digest = hashlib.sha256(json.dumps(found, sort_keys=True).encode())
    update(digest, tables)
    return f"sha256:{digest.hexdigest()}"


_MADE = ("command", "wall_s", "requests_per_wall_s")
"""Keys of an earlier record that are now saved in a separate file."""


def with_paths(record: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return a record with the paths of its input files changed by ``change``.

    The input files are the trace or job file, the files that the job file names, and the
    precondition.
    """
    trace, config = dict(record["trace"]), dict(record["config"])
    if "digest" in trace and is_file(trace["path"]):
        trace = with_inputs(trace, change)
    if "named" in trace:
        trace["named"] = [{**file, "path": change(file["path"])} for file in trace["named"]]
    if isinstance(begin := config.get("precondition"), dict):
        config["precondition"] = {
            kind: with_files(file, change) if kind == "trace" else change(file)
            for kind, file in begin.items()
        }
    return {**record, "trace": trace, "config": config}


def _relative(file: str, folder: Path) -> str:
    """Return a path relative to a folder."""
    return Path(os.path.relpath(file, folder)).as_posix()


def _from_folder(file: str, folder: Path) -> str:
    """Return a path relative to the working directory from a path relative to ``folder``."""
    return str(Path(os.path.normpath(folder / file)))


def _beside(record_path: Path, name: str) -> Any:
    """Return the content of a JSON file beside a record; ``None`` if there is no such file."""
    try:
        return json_file(record_path.with_name(name), f"the file {name} of `flashatlas run`")
    except FileNotFoundError:
        return None


def save_one(result: Result, folder: Path) -> int:
    """Save a run in a folder in place of earlier results.

    The result is the number of removed runs of an earlier comparison.

    Raises:
        InputError: The run cannot be written; the earlier results were not changed.

    """
    files = result.files(folder)

    def clear() -> int:
        removed = clear_comparison(folder)
        # remove the old record: without one, the folder holds no run until the new record appears
        clear_run(folder, keep=frozenset(files) - {RECORD})
        return removed

    return write_together(((folder / name, content) for name, content in files.items()), clear)


def result_of(
    outcome: tuple[str, list[tuple[str, list[Column]]], str | None],
    label: str = "",
    wall_s: float | None = None,
) -> Result:
    """Return the output of the core as a result."""
    text, columns, job_text = outcome
    record, tables = json.loads(text), Tables(columns)
    jobs = None if job_text is None else json.loads(job_text)
    record["results_digest"] = digest_of(record, tables, jobs)
    return Result(record, label, tables, wall_s=wall_s, jobs=jobs)
