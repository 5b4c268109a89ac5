"""What a run found out: a record, and tables beside it."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flashatlas._core import RUN_SCHEMA, InputError
from flashatlas.files import write_whole
from flashatlas.renamed_keys import upgraded

TABLES = ("series", "latency", "wear", "resources", "blocks")
"""The tables that a run may have; their columns are described in ``docs/FORMATS.md``."""


@dataclass(frozen=True)
class Result:
    """The record of one run, with its most wanted parts.

    Its schema is ``flashatlas.run/1`` (``docs/FORMATS.md``).
    """

    record: dict[str, Any]
    label: str = ""
    tables: dict[str, pa.Table] = field(default_factory=dict, compare=False)
    """Arrow tables by name (:data:`TABLES`); one that does not apply to the run is absent."""
    command: str = field(default="", compare=False)
    """What was typed to run it, where it was run from the command line."""
    options: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Arguments of :func:`flashatlas.run` that run it again; empty where it was loaded."""

    jobs: Any = field(default=None, compare=False)
    """Statistics of each job of a fio job file (see ``docs/howto/run-a-fio-job.md``).

    ``None`` for other workloads.
    """

    @property
    def name(self) -> str:
        """The label, or the drive where there is none."""
        return self.label or self.record["config"]["drive"]

    @property
    def waf(self) -> float | None:
        """Write amplification: bytes programmed over bytes that the host wrote.

        ``None`` when it wrote nothing.
        """
        return self.record.get("waf")

    @property
    def latency(self) -> dict[str, dict[str, float]]:
        """Latencies in nanoseconds by operation: ``result.latency["read"]["p99"]``.

        Empty for untimed runs.
        """
        return self.record.get("latency_ns", {})

    @property
    def iops(self) -> float | None:
        """Completed requests for each second of simulated time; ``None`` for untimed runs."""
        return self.record.get("iops")

    @property
    def violations(self) -> int:
        """Mapping units that did not hold what was last written to them.

        Anything but 0 is a bug of FlashAtlas.
        """
        return self.record["oracle"]["violations"]

    def to_arrow(self, table: str = "series") -> pa.Table:
        """One of the run's tables.

        ``series`` (everything counted, over time) unless another is named.

        Args:
            table: ``series``, ``latency`` (histogram), ``wear`` (blocks by erases), ``resources``
                (busy shares of dies and channels) or ``blocks`` (every block over time).

        Raises:
            InputError: The run has no such table.

        """
        if table not in self.tables:
            has = ", ".join(self.tables) or "none"
            raise InputError(f"table `{table}` is not in this result (it has: {has})")
        return self.tables[table]

    def to_json(self) -> str:
        """The record as JSON text."""
        return json.dumps(self.record, indent=2)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``run.json`` and a Parquet file for each table into a folder.

        Returns the path of the record.

        Each file appears whole or not at all, the record last. What an earlier run left there that
        this one has not is removed.
        """
        kept = {f"{name}.parquet" for name in self.tables}
        kept |= set() if self.jobs is None else {"jobs.json"}
        for file in _FILES - kept if Path(folder).is_dir() else ():
            (Path(folder) / file).unlink(missing_ok=True)
        for name, table in self.tables.items():
            buffer = io.BytesIO()
            pq.write_table(table, buffer, compression="zstd")
            write_whole(Path(folder) / f"{name}.parquet", buffer.getvalue())
        if self.jobs is not None:
            write_whole(Path(folder) / "jobs.json", json.dumps(self.jobs, indent=2) + "\n")
        path = Path(folder) / "run.json"
        own = {"label": self.label, "command": self.command}
        named = {**{key: text for key, text in own.items() if text}, **self.record}
        write_whole(path, json.dumps(named, indent=2) + "\n")
        return path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read what :meth:`save` wrote: a folder, or its ``run.json``.

        Raises:
            InputError: There is no record, or it is of another schema or damaged.

        """
        record_path = Path(path) / "run.json" if Path(path).is_dir() else Path(path)
        try:
            record = json.loads(record_path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{record_path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise InputError(
                f"{record_path}: not a run record: not UTF-8 at byte {error.start}"
            ) from error
        except json.JSONDecodeError as error:
            raise InputError(
                f"{record_path}:{error.lineno}:{error.colno}: not a run record: {error.msg}"
            ) from error
        found = record.get("schema") if isinstance(record, dict) else None
        if found != RUN_SCHEMA:
            raise InputError(f"{record_path}: schema is {found!r}, expected {RUN_SCHEMA!r}")
        missing = [
            key for key in ("config", "trace", "oracle", "approximations") if key not in record
        ]
        if missing:
            raise InputError(f"{record_path}: not a whole run record: {', '.join(missing)} missing")
        wrong = [key for key in ("config", "trace", "oracle") if not isinstance(record[key], dict)]
        if wrong or not isinstance(record["oracle"].get("violations"), int):
            raise InputError(
                f"{record_path}: damaged: {', '.join(wrong) or 'oracle.violations'} is not what it "
                "should be"
            )
        record = upgraded(record)
        tables = {}
        for name in TABLES:
            file = record_path.parent / f"{name}.parquet"
            if file.exists():
                try:
                    tables[name] = pq.read_table(file)
                except (pa.ArrowException, OSError) as error:
                    raise InputError(f"{file}: not a readable Parquet file: {error}") from error
        label, command = record.pop("label", ""), record.pop("command", "")
        jobs = _jobs_beside(record_path)
        return cls(record, label, tables, command, jobs=jobs)

    def __repr__(self) -> str:
        waf = "none" if self.waf is None else f"{self.waf:.3f}"
        return f"<Result {self.name}: WAF {waf}, {self.violations} violations>"


def _jobs_beside(record_path: Path) -> Any:
    """Statistics of the jobs of a run, from beside its record; ``None`` where there are none."""
    file = record_path.parent / "jobs.json"
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: not the statistics of jobs: {error}") from error


_FILES = frozenset({"run.json", "jobs.json", *(f"{name}.parquet" for name in TABLES)})
"""What a run may leave in its folder."""


def save_all(results: Sequence[Result], folder: Path) -> int:
    """Save results in folders ``01``, ``02`` and so on inside a folder, in place of earlier ones.

    Returns how many runs of an earlier time were removed, because there are fewer now.
    """
    removed = 0
    earlier = [p for p in folder.glob("*") if p.name.isdigit() and (p / "run.json").is_file()]
    for stale in (p for p in earlier if int(p.name) > len(results)):
        for file in _FILES:
            (stale / file).unlink(missing_ok=True)
        removed += 1
        if not any(stale.iterdir()):
            stale.rmdir()
    for number, result in enumerate(results, 1):
        result.save(folder / f"{number:02d}")
    return removed


def result_of(
    outcome: tuple[str, list[tuple[str, list[tuple[str, str, bytes, list[str]]]]], str | None],
    label: str = "",
) -> Result:
    """What the core returns, as a result."""
    record, tables, jobs = outcome
    return Result(
        json.loads(record),
        label,
        tables_of(tables),
        jobs=None if jobs is None else json.loads(jobs),
    )


def tables_of(
    raw: list[tuple[str, list[tuple[str, str, bytes, list[str]]]]],
) -> dict[str, pa.Table]:
    """The tables of the core as Arrow tables; the buffers are not copied."""
    return {
        name: pa.table({c: _array(kind, data, words) for c, kind, data, words in columns})
        for name, columns in raw
    }


def _array(kind: str, data: bytes, words: list[str]) -> pa.Array:
    buffer = pa.py_buffer(data)
    if kind == "int64":
        return pa.Array.from_buffers(pa.int64(), len(data) // 8, [None, buffer])
    if kind == "float64":
        values = pa.Array.from_buffers(pa.float64(), len(data) // 8, [None, buffer])
        return pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
    codes = pa.Array.from_buffers(pa.uint8(), len(data), [None, buffer])
    return pa.DictionaryArray.from_arrays(codes, pa.array(words))
