"""Frames: tables with a row for each run, and a column for each setting and each number."""

from __future__ import annotations

import html
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from flashatlas._core import InputError, about, quantity
from flashatlas.names import hint
from flashatlas.results import arrow
from flashatlas.results.rows import ROWS
from flashatlas.results.units import unit_of

SHOWN = ("waf", "iops", "latency_ns.write.p99", "latency_ns.read.p99", "oracle.violations")
"""The numbers of a frame that a notebook shows in addition to the factors."""

FAILURE = "failure"
"""The column with the error of a failed run; it exists only if a run failed."""

STEADY = "steady"
"""The column that is true for steady runs; it does not exist for lookup studies."""

WORN_OUT = "worn_out.request"
"""The column with the request at which a run's drive wore out."""

LEFT_OUT = (
    "approximations",
    "build",
    "checkpoint",
    "random_streams",
    "series",
    "settling",
    "steadiness",
)
"""Parts of a record that hold no number of the run."""

SUMS = {
    "nand.erases": "erases",
    "memory_bytes.map": "map memory",
    "merges.log_blocks": "log blocks reclaimed",
    "merges.data_blocks": "data blocks merged",
}
"""Columns that are sums of numbers of a record, and the comparison row with the same sum."""

_SUMMED = {name: next(row.value for row in ROWS if row.name == of) for name, of in SUMS.items()}


@dataclass(frozen=True)
class Frame:
    """Runs as an Arrow table: see :func:`flashatlas.frame`.

    Any library that reads Arrow streams accepts a frame as a table: ``polars.DataFrame(runs)``,
    ``pyarrow.table(runs)``, DuckDB. An exception is ``polars.from_arrow``, which makes a single
    column of structs from a stream that is not a pyarrow table. Pass ``runs.table`` to it, or use
    :meth:`to_polars`.
    """

    table: pa.Table
    """A row for each run.

    The metadata of a field contain its ``role`` (``factor``, ``setting`` or ``number``) and its
    ``unit``.
    """
    asked: int | None = None
    """Number of runs of the study, done or not; ``None`` if the runs belong to no study."""

    @property
    def failures(self) -> int:
        """Number of rows whose run failed; these rows have settings, but no numbers."""
        if FAILURE not in self.table.column_names:
            return 0
        return len(self) - self.table[FAILURE].null_count

    def steady(self) -> list[bool]:
        """Return a boolean for each row, ``False`` if the run was not steady."""
        if STEADY not in self.table.column_names:
            return [True] * len(self)
        return [value is not False for value in self.column(STEADY)]

    @property
    def worn_out(self) -> int:
        """Number of runs whose drive wore out before the workload ended."""
        if WORN_OUT not in self.table.column_names:
            return 0
        return len(self) - self.table[WORN_OUT].null_count

    def said_of_worn_out(self) -> str:
        """Return a sentence that counts the runs whose drive wore out; empty if there are none."""
        if not self.worn_out:
            return ""
        total = len(self) - self.failures
        counted = f"{self.worn_out} of {total} runs"
        return f"Worn out: the drive of {counted} wore out; their numbers end there."

    def incomplete(self) -> str:
        """Return a text about missing runs of the study; empty if every run has results."""
        done = len(self) - self.failures
        if self.asked is None or done >= self.asked:
            return ""
        failed = f" ({self.failures} failed)" if self.failures else ""
        return f"{done} of {self.asked} runs are done{failed}"

    def must_be_whole(self, *, allowed: bool, with_failures: bool = False) -> None:
        """Refuse a study with missing runs, because readers would take it for the whole study.

        Args:
            allowed: ``True`` if the caller accepts missing runs.
            with_failures: ``True`` if the output shows failed runs with their errors.

        Raises:
            InputError: A run has no results.

        """
        missing = self.incomplete()
        if allowed or not missing or (with_failures and len(self) == self.asked):
            return
        raise about(
            "allow_incomplete",
            f"{missing}: readers would take these runs for the whole study; carry out the others "
            "(`flashatlas sweep`; `--retry-failed` repeats failed runs), or accept the missing "
            "runs with ‹allow_incomplete›",
        )

    @property
    def factors(self) -> list[str]:
        """Names of the options and parameters in which the runs differ."""
        return [field.name for field in self.table.schema if _role(field) == "factor"]

    @property
    def numbers(self) -> list[str]:
        """Names of the columns that are results."""
        return [field.name for field in self.table.schema if _role(field) == "number"]

    def unit(self, name: str) -> str:
        """Return the unit of a column; empty if it has none."""
        return (self.table.schema.field(name).metadata or {}).get(b"unit", b"").decode()

    def column(self, name: str) -> list[Any]:
        """Return the values of a column.

        Raises:
            InputError: The column does not exist; the message names the most similar column.

        """
        if name not in self.table.column_names:
            near = hint(name, self.table.column_names)
            raise InputError(
                f"`{name}` is not a column of these runs{near} (factors: "
                f"{', '.join(self.factors) or 'none'}; `flashatlas table` has all)"
            )
        return self.table[name].to_pylist()

    def rows(self) -> list[dict[str, Any]]:
        """Return every run as a dictionary; a missing value is ``None``."""
        return self.table.to_pylist()

    def to_pandas(self) -> Any:
        """Return a pandas data frame."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """Return a polars data frame; polars must be installed."""
        import polars  # noqa: PLC0415

        return polars.from_arrow(self.table)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.table.num_rows

    def _repr_html_(self) -> str:
        shown = [*self.factors, *(name for name in SHOWN if name in self.table.column_names)]
        if "label" in self.table.column_names:
            shown.insert(0, "label")
        head = "".join(f"<th>{html.escape(_titled(name, self.unit(name)))}</th>" for name in shown)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(_text(row[name]))}</td>" for name in shown)
            + "</tr>"
            for row in self.rows()
        )
        count = f"{len(self)} runs, {self.table.num_columns} columns"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{count}</p>"


def frame_of(runs: Sequence[tuple[str, Mapping[str, Any]]]) -> Frame:
    """Return runs as a frame, each given as its label and its record."""
    labels = [label for label, _ in runs]
    first = [("label", labels, "name")] if any(labels) else []
    return Frame(table_of([columns_of(record) for _, record in runs], first))


Columns = tuple[dict[str, Any], dict[str, Any]]
"""Settings and numbers of a run, by column."""


def columns_of(record: Mapping[str, Any]) -> Columns:
    """Return the settings and the numbers in the record of a run, by column."""
    return dict(_settings(record)), dict(_numbers(record))


def table_of(
    rows: Sequence[Columns],
    first: Sequence[tuple[str, Sequence[Any], str]] = (),
) -> pa.Table:
    """Return runs as an Arrow table that begins with the columns ``first`` (name, values, role)."""
    fields: list[pa.Field] = []
    columns: list[pa.Array] = []

    def add(name: str, values: Sequence[Any], role: str, unit: str = "") -> None:
        array = _array(values)
        fields.append(pa.field(name, array.type, metadata={"role": role, "unit": unit}))
        columns.append(array)

    for name, values, role in first:
        add(name, values, role, unit_of(name))
    settings, numbers = [row[0] for row in rows], [row[1] for row in rows]
    for name in _keys(settings):
        values = [one.get(name) for one in settings]
        # ignore runs without this parameter: they use other parts, whose choice is a factor itself
        compared = [v for v in values if v is not None] if "." in name else values
        differ = any(value != compared[0] for value in compared)
        times = any(_is_time(value) for value in values)
        if times:
            values = [None if v is None else quantity(v) / 1000 for v in values]
        unit = "ns" if times else unit_of(name)
        add(name, values, "factor" if differ else "setting", unit)
    given = {field.name for field in fields}
    for name in _keys(numbers):
        # a number may have the same name as a parameter
        shown = f"{name}.found" if name in given else name
        add(shown, [one.get(name) for one in numbers], "number", unit_of(name))
    return pa.table(columns, schema=pa.schema(fields))


def _settings(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the options and parameters of a run by column."""
    config = record["config"]
    yield "trace", record["trace"]["path"]
    for key, value in config.items():
        if key == "precondition" and isinstance(value, dict):
            yield key, ":".join(next(iter(value.items())))
        elif key not in ("params", "reading", "workload"):
            yield key, value
    yield from (config.get("reading") or {}).items()
    yield "seed", record["seed"]
    yield from config["params"].items()


def _numbers(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the numbers and booleans of a record by path."""
    inside = {key: value for key, value in record.items() if key not in (*LEFT_OUT, "config")}
    inside.pop("seed", None)
    yield from leaves("", inside)
    for name, value in _SUMMED.items():
        if (found := value(inside)) is not None:
            yield name, found


def leaves(path: str, node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the numbers and booleans of nested tables, by dotted path."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from leaves(f"{path}.{key}" if path else key, value)
    elif isinstance(node, (bool, int, float)):
        yield path, node


def _keys(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys of all rows, in the order in which they first appear."""
    return list(dict.fromkeys(key for row in rows for key in row))


def _is_time(value: Any) -> bool:
    """Return ``True`` if a parameter is a time with its unit."""
    if not isinstance(value, str) or not value[:1].isdigit() or not value.endswith("s"):
        return False
    return value.rstrip("npums").isdigit()


def _array(values: Sequence[Any]) -> pa.Array:
    """Return the values of a column as an array; numbers beside texts become texts."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1 and not kinds <= {int, float}:
        return arrow.column([None if value is None else _text(value) for value in values])
    # pyarrow does not choose an unsigned type by itself
    wide = kinds == {int} and any(not -(2**63) <= v < 2**63 for v in values if v is not None)
    return arrow.column(values, pa.uint64() if wide else None)


def _role(field: pa.Field) -> str:
    return (field.metadata or {}).get(b"role", b"").decode()


def _titled(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def must_be_table(name: str) -> None:
    """Refuse a file name that :func:`as_file` would refuse later.

    Raises:
        InputError: The name does not end in ``.csv``, ``.jsonl`` or ``.parquet``.

    """
    if not name.endswith((".csv", ".jsonl", ".parquet")):
        raise InputError(f"{name}: the name of a table ends in .csv, .jsonl or .parquet")


def as_file(table: pa.Table, name: str) -> bytes:
    """Return a table as CSV, lines of JSON or Parquet, depending on the ending of ``name``.

    Raises:
        InputError: The name has another ending.

    """
    must_be_table(name)
    buffer = io.BytesIO()
    if name.endswith(".csv"):
        pyarrow.csv.write_csv(table, buffer)
    elif name.endswith(".jsonl"):
        buffer.write("".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode())
    else:
        pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()
