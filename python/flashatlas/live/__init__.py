"""The state of a drive while it is served.

With ``serve(metrics="127.0.0.1:9464")``, this address serves the state as a page, as metrics for
Prometheus and as JSON. ``flashatlas top`` shows the JSON in a terminal. A client cannot change the
drive there.
"""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from flashatlas._core import InputError
from flashatlas.fio_json import percentile
from flashatlas.untrusted import json_of, must_be

OPS = ("read", "write", "trim", "flush")
"""Commands of a host, in the order in which they are shown."""

KEYS = {"read": "reads", "write": "writes", "trim": "trims", "flush": "flushes"}
"""The counts of these commands in ``host`` of a record."""

PORT = 9464
"""The default port of ``top``; it is OpenTelemetry's default port of Prometheus exporters."""


LARGEST = 64 << 20
"""The largest number of bytes that are read from an answer."""

EXPECTED = "the state of a served drive (flashatlas.live/1)"


class Column(TypedDict):
    """A column of a table."""

    name: str
    values: list[Any]


class Table(TypedDict):
    """A table."""

    name: str
    columns: list[Column]


class Latency(TypedDict):
    """Latencies of one operation, in nanoseconds."""

    count: int
    mean: float


class Flash(TypedDict):
    """Operations of the flash by cause."""

    reads: dict[str, int]
    programs: dict[str, int]
    erases: dict[str, int]


class Wear(TypedDict):
    """Erases of blocks."""

    min: int
    mean: float
    max: int


class Merges(TypedDict, total=False):
    """Log blocks reclaimed, by class."""

    log_blocks: dict[str, int]


class Sometimes(TypedDict, total=False):
    """Keys of a run record that are shown if they exist."""

    waf: float
    latency_ns: dict[str, Latency]
    merges: Merges


class Host(TypedDict):
    """Commands of the host."""

    reads: int
    writes: int
    trims: int
    flushes: int


class LiveRecord(Sometimes):
    """Keys of a run record that are shown."""

    host: Host
    nand: Flash
    blocks: dict[str, int]
    wear: Wear


class Found(TypedDict):
    """The answer of a server about its drive (``docs/FORMATS.md``)."""

    schema: str
    drive: str
    set: list[str]
    serving_ns: int
    simulated_ns: int
    in_flight: int
    record: LiveRecord
    tables: list[Table]


@dataclass(frozen=True)
class Seen:
    """The state of a drive at some moment since serving began (``docs/FORMATS.md``)."""

    found: dict[str, Any]

    @classmethod
    def parse(cls, text: str | bytes, place: str = "live.json") -> Seen:
        """Return the state of a drive from a JSON text.

        Args:
            text: The text.
            place: The source of the text, for messages.

        Raises:
            InputError: The text is not JSON, or not the state of a served drive.

        """
        said = text.decode(errors="replace") if isinstance(text, bytes) else text
        found = json_of(said, place, EXPECTED)
        schema = str(found.get("schema")) if isinstance(found, dict) else ""
        if not schema.startswith("flashatlas.live/"):
            raise InputError(f"{place}: the answer does not come from a served drive")
        must_be(found, Found, place)
        return cls(found)

    @property
    def record(self) -> dict[str, Any]:
        """The keys of a run record that exist while the drive is served."""
        return self.found["record"]

    @property
    def seconds(self) -> float:
        """Seconds since serving began."""
        return self.found["serving_ns"] / 1e9

    def table(self, name: str) -> dict[str, list[Any]]:
        """Return the columns of a table; empty if there is none."""
        for table in self.found["tables"]:
            if table["name"] == name:
                return {column["name"]: column["values"] for column in table["columns"]}
        return {}

    @property
    def notes(self) -> list[str]:
        """Notes that make numbers doubtful, each with its advice."""
        return [f"{note['text']} ({note['advice']})" for note in self.found.get("notes", ())]

    def requests(self, op: str) -> int:
        """Return the number of commands of an operation so far."""
        return self.record["host"][KEYS[op]]

    def moved(self, op: str) -> int:
        """Return the bytes read, written or trimmed so far."""
        return self.record["host"].get(f"{op}_bytes", 0)

    def programs(self) -> dict[str, int]:
        """Return the pages programmed so far, by cause."""
        return self.record["nand"]["programs"]

    def latencies(self, op: str) -> dict[int, int]:
        """Return the number of commands in each bin of latency, by upper edge in nanoseconds."""
        table = self.table("latency")
        rows = zip(
            table.get("op", []), table.get("latency_ns", []), table.get("count", []), strict=True
        )
        return {edge: count for of, edge, count in rows if of == op}


@dataclass(frozen=True)
class Between:
    """The changes of a drive between two moments."""

    before: Seen
    after: Seen

    @property
    def seconds(self) -> float:
        """Seconds between the two moments."""
        return max(self.after.seconds - self.before.seconds, 1e-9)

    def rate(self, op: str) -> float:
        """Return the number of commands of an operation per second."""
        return (self.after.requests(op) - self.before.requests(op)) / self.seconds

    def bandwidth(self, op: str) -> float:
        """Return the bytes read, written or trimmed per second."""
        return (self.after.moved(op) - self.before.moved(op)) / self.seconds

    def percentile(self, op: str, share: float) -> float | None:
        """Return the simulated nanoseconds within which a share of the commands completed."""
        before = self.before.latencies(op)
        bins = {
            edge: count - before.get(edge, 0) for edge, count in self.after.latencies(op).items()
        }
        # leave out bins to which no command was added between the two moments
        held = sorted((edge, count) for edge, count in bins.items() if count)
        return float(percentile(held, sum(bins.values()), 100 * share)) if held else None

    def amplification(self) -> dict[str, float]:
        """Return pages programmed per page that the host wrote, by cause; empty without writes."""
        written = self.after.moved("write") - self.before.moved("write")
        all_written, waf = self.after.moved("write"), self.after.record.get("waf")
        if not written or not waf:
            return {}
        page = waf * all_written / sum(self.after.programs().values())
        earlier = self.before.programs()
        return {
            cause: (count - earlier.get(cause, 0)) * page / written
            for cause, count in self.after.programs().items()
            if count > earlier.get(cause, 0)
        }


def address(text: str) -> tuple[str, int]:
    """Return the host and the port of ``HOST:PORT``, ``:PORT`` or a URL of these.

    Raises:
        InputError: The text has another form.

    """
    bare = text.removeprefix("http://").rstrip("/")
    host, colon, port = bare.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise InputError(f"{text} is not an address; give HOST:PORT, such as 127.0.0.1:{PORT}")
    return host or "127.0.0.1", int(port)


def look(at: str) -> Seen:
    """Ask a server with ``--metrics`` for the state of its drive.

    Raises:
        InputError: Nothing answers at this address, or the answer is not the state of a drive.

    """
    host, port = address(at)
    url = f"http://{host}:{port}/live.json"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return Seen.parse(answer.read(LARGEST), url)
    except urllib.error.HTTPError as error:
        raise InputError(f"{url}: {error.reason}") from None
    except OSError as error:
        why = getattr(error, "reason", error)
        raise InputError(
            f"{url}: {why}; `flashatlas serve --metrics {host}:{port}` must answer there"
        ) from None
    except http.client.HTTPException as error:
        raise InputError(f"{url}: {type(error).__name__}; the answer must be {EXPECTED}") from None
