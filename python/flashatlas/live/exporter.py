"""An HTTP server of a drive's state: a page, metrics for Prometheus, and JSON."""

from __future__ import annotations

import functools
import ipaddress
import json
import re
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files

from prometheus_client import exposition
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector, CollectorRegistry

from flashatlas._core import InputError
from flashatlas.live import OPS, Seen, address
from flashatlas.report.palette import CAUSES

BUCKETS_NS = [m * 10**e for e in range(3, 10) for m in (1, 2, 5)] + [10**10]
"""Upper edges of the buckets of latencies: 1 us to 10 s."""

PAGES = {
    "/": ("live/live.html", "text/html; charset=utf-8"),
    "/live.js": ("live/live.js", "text/javascript"),
    "/report.css": ("report/assets/report.css", "text/css"),
}


PATIENCE_S = 10
"""Seconds within which a client must send its request."""

EVERYWHERE = "0.0.0.0"
"""The address that stands for every address of this machine."""

OPEN = (
    "metrics: {} can be read by everybody who reaches this machine, without a password; 127.0.0.1 "
    "can be read only from this machine"
)
"""The message if other machines can read the state."""


class _Drive(Collector):
    """The metrics of a drive at the time of a request."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    def collect(self) -> Iterator[Metric]:
        seen, record = self.seen, self.seen.record
        about = {"drive": seen.found["drive"], "settings": " ".join(seen.found["set"])}
        yield InfoMetricFamily("flashatlas_drive", "The drive that is served.", value=about)
        requests = CounterMetricFamily(
            "flashatlas_requests", "Commands of the host.", labels=["op"]
        )
        moved = CounterMetricFamily("flashatlas_bytes", "Bytes of those commands.", labels=["op"])
        for op in OPS:
            requests.add_metric([op], seen.requests(op))
            if op != "flush":
                moved.add_metric([op], seen.moved(op))
        yield requests
        yield moved
        yield self._latency()
        flash = CounterMetricFamily(
            "flashatlas_flash_operations",
            "Page reads, page programs and block erases, by cause.",
            labels=["kind", "cause"],
        )
        for kind, key in (("read", "reads"), ("program", "programs"), ("erase", "erases")):
            for cause, count in record["nand"][key].items():
                flash.add_metric([kind, cause], count)
        yield flash
        if "waf" in record:
            yield GaugeMetricFamily(
                "flashatlas_write_amplification",
                "Bytes programmed for each byte that the host wrote, since serving began.",
                value=record["waf"],
            )
        blocks = GaugeMetricFamily("flashatlas_blocks", "Blocks by use.", labels=["role"])
        for role, count in record["blocks"].items():
            blocks.add_metric([role], count)
        yield blocks
        for_block = GaugeMetricFamily(
            "flashatlas_block_erases", "Erases of a block.", labels=["statistic"]
        )
        for statistic in ("min", "mean", "max"):
            for_block.add_metric([statistic], record["wear"][statistic])
        yield for_block
        merges = CounterMetricFamily(
            "flashatlas_merges", "Log blocks reclaimed, by class.", labels=["kind"]
        )
        for kind, count in record.get("merges", {}).get("log_blocks", {}).items():
            merges.add_metric([kind], count)
        yield merges
        lookups = CounterMetricFamily(
            "flashatlas_map_lookups", "Lookups in the map.", labels=["result"]
        )
        for result, key in (("hit", "hits"), ("miss", "misses")):
            if key in record.get("map", {}):
                lookups.add_metric([result], record["map"][key])
        yield lookups
        yield GaugeMetricFamily(
            "flashatlas_commands_in_flight", "Commands in the drive.", value=seen.found["in_flight"]
        )
        for name, key, what in (
            ("serving", "serving_ns", "Time since serving began."),
            ("simulated", "simulated_ns", "Time that passed in the drive."),
        ):
            yield CounterMetricFamily(
                f"flashatlas_{name}_seconds", what, value=seen.found[key] / 1e9
            )

    def _latency(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(
            "flashatlas_latency_seconds",
            "Simulated time from a command to its completion.",
            labels=["op"],
        )
        for op in OPS:
            bins = self.seen.latencies(op)
            if not bins:
                continue
            below = [
                (str(edge / 1e9), sum(n for at, n in bins.items() if at <= edge))
                for edge in BUCKETS_NS
            ]
            of = self.seen.record["latency_ns"][op]
            buckets = [*below, ("+Inf", sum(bins.values()))]
            family.add_metric([op], buckets, of["mean"] * of["count"] / 1e9)
        return family


def prometheus(seen: Seen, accept: str = "") -> tuple[bytes, str]:
    """Return the metrics in a format that the client accepts, and the type of this content."""
    registry = CollectorRegistry()
    registry.register(_Drive(seen))
    encode, kind = exposition.choose_encoder(accept)
    return encode(registry), kind


def is_loopback(host: str) -> bool:
    """Return ``True`` if only this machine can reach an address."""
    return ipaddress.ip_address(host).is_loopback


def name_of(header: str) -> str:
    """Return the name in a ``Host`` header, without a port or a final dot."""
    name = header.strip().lower()
    bare = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::\d*)?", name)
    return (bare[1] if bare else "").rstrip(".")


@functools.cache
def names_of_machine() -> set[str]:
    """Return the names of this machine, with and without its domain; this may take seconds."""
    return {socket.gethostname().lower(), socket.getfqdn().lower()}


def own_names(given: str, here: str) -> set[str]:
    """Return the names that a client may write into its ``Host`` header.

    Args:
        given: The host in the address of the server.
        here: The address of this machine that the client has connected to.

    """
    names = {given.lower(), here}
    if is_loopback(here):
        names.add("localhost")
    if given == EVERYWHERE:
        names |= names_of_machine()
    return names


class Exporter:
    """An HTTP server of a drive's state."""

    def __init__(self, at: str, seen: Callable[[], bytes]) -> None:
        """Begin to answer at ``HOST:PORT``.

        Args:
            at: The address.
            seen: Function that returns the JSON of the present state; it raises ``OSError`` if no
                drive is served.

        Raises:
            InputError: The address cannot be used.

        """
        host, port = address(at)

        class Answers(BaseHTTPRequestHandler):
            """One request."""

            timeout = PATIENCE_S

            def do_GET(self) -> None:
                """Answer with a page, with metrics or with JSON."""
                # A foreign page could let its own name resolve to this address (DNS rebinding), and
                # read the state through a browser that can reach this server.
                here = self.connection.getsockname()[0]
                asked = self.headers.get_all("Host") or []
                if len(asked) != 1 or name_of(asked[0]) not in own_names(host, here):
                    self.send_error(
                        421, f"the request names another host; this host is {host}:{port}"
                    )
                    return
                where = self.path.partition("?")[0]
                try:
                    if where in PAGES:
                        name, kind = PAGES[where]
                        said = (files("flashatlas") / name).read_bytes()
                    elif where == "/causes.json":
                        said, kind = json.dumps(CAUSES).encode(), "application/json"
                    elif where == "/live.json":
                        said, kind = seen(), "application/json"
                    elif where == "/metrics":
                        accept = self.headers.get("Accept", "")
                        said, kind = prometheus(Seen.parse(seen()), accept)
                    else:
                        self.send_error(404, "there are /, /metrics and /live.json")
                        return
                except OSError:
                    self.send_error(503, "the drive is not served yet, or is no longer served")
                    return
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(said)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing: the terminal belongs to the server."""

        try:
            self._server = ThreadingHTTPServer((host, port), Answers)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"metrics: {host}:{port}: {why}") from None
        if not is_loopback(str(self._server.server_address[0])):
            warnings.warn(OPEN.format(f"{host}:{port}"), stacklevel=2)
        self.url = f"http://{host}:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
