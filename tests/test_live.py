"""The views of a served drive: rates, Prometheus' text, the terminal, the page."""

from __future__ import annotations

import io
import json
import shutil
import socket
import time
import urllib.error
import urllib.request
import warnings

import pytest
from flashatlas import InputError, PowerLost
from flashatlas.live import Between, Seen, address, look
from flashatlas.live.exporter import Exporter, own_names, prometheus
from flashatlas.live.terminal import screen
from flashatlas.results.notes import alarms
from flashatlas.serving.serve import serve
from nbd import FLUSH, READ, WRITE, Client
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

needs_nbdkit = pytest.mark.skipif(
    shutil.which("nbdkit") is None, reason="nbdkit is not installed (make system-tests)"
)

UNIT = 2048
"""Bytes of a mapping unit, and of a page, of the drive `tiny`."""


def seen(seconds: float, writes: int, programs: dict[str, int], latencies: dict[int, int]) -> Seen:
    """Return the counters of a drive with pages of 4 KiB, which the host writes one by one."""
    host = {"reads": 0, "writes": writes, "trims": 0, "flushes": 0}
    host |= {"read_bytes": 0, "write_bytes": 4096 * writes, "trim_bytes": 0}
    record = {
        "host": host,
        "nand": {"reads": {}, "programs": programs, "erases": {"gc": 3}},
        "waf": sum(programs.values()) / writes,
        "latency_ns": {"write": {"count": writes, "mean": 2500.0}},
        "blocks": {"free": 5, "open": 2},
        "wear": {"min": 1, "mean": 1.5, "max": 2},
        "map": {"hits": 70, "misses": 30},
    }
    columns = {"op": ["write"] * len(latencies), "latency_ns": [*latencies]}
    columns["count"] = [*latencies.values()]
    table = {"name": "latency", "columns": [{"name": n, "values": v} for n, v in columns.items()]}
    return Seen(
        {
            "schema": "flashatlas.live/1",
            "drive": "tiny",
            "set": ["a=1"],
            "serving_ns": int(seconds * 1e9),
            "simulated_ns": 7_000_000_000,
            "in_flight": 2,
            "record": record,
            "tables": [table],
        }
    )


BEFORE = seen(10, 100, {"host": 100, "gc": 20}, {1000: 60, 4000: 40})
AFTER = seen(12, 300, {"host": 300, "gc": 120, "map": 50}, {1000: 70, 4000: 225, 90_000: 5})


def test_what_happened_between_two_looks_by_hand():
    between = Between(BEFORE, AFTER)
    assert between.rate("write") == 100 and between.bandwidth("write") == 409_600
    assert between.rate("read") == 0
    # of 200 commands 10 took a microsecond, 185 four, 5 ninety
    assert between.percentile("write", 0.05) == 1000
    assert between.percentile("write", 0.5) == 4000
    assert between.percentile("write", 0.975) == 4000
    assert between.percentile("write", 0.99) == 90_000
    assert between.percentile("read", 0.5) is None
    assert between.amplification() == pytest.approx({"host": 1.0, "gc": 0.5, "map": 0.25})
    assert Between(AFTER, AFTER).amplification() == {}


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Return values by name and labels, as a scraper reads them."""
    return {
        (sample.name, *(f"{k}={v}" for k, v in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_text_by_hand():
    text, kind = prometheus(AFTER)
    assert kind.startswith("text/plain")
    found = samples(text.decode())
    assert found["flashatlas_requests_total", "op=write"] == 300
    assert found["flashatlas_bytes_total", "op=write"] == 300 * 4096
    assert found["flashatlas_flash_operations_total", "cause=gc", "kind=program"] == 120
    assert found["flashatlas_flash_operations_total", "cause=gc", "kind=erase"] == 3
    assert found["flashatlas_map_lookups_total", "result=hit"] == 70
    assert found["flashatlas_map_lookups_total", "result=miss"] == 30
    assert found["flashatlas_write_amplification",] == pytest.approx(470 / 300)
    assert found["flashatlas_blocks", "role=free"] == 5
    assert found["flashatlas_drive_info", "drive=tiny", "settings=a=1"] == 1
    assert found["flashatlas_serving_seconds_total",] == 12
    bucket = "flashatlas_latency_seconds_bucket"
    below = {1e-6: 70, 2e-6: 70, 5e-6: 295, 5e-5: 295, 1e-4: 300}
    for edge, count in below.items():
        assert found[bucket, f"le={edge}", "op=write"] == count, edge
    assert found[bucket, "le=+Inf", "op=write"] == 300
    assert found["flashatlas_latency_seconds_sum", "op=write"] == pytest.approx(300 * 2.5e-6)


@pytest.mark.parametrize("text", ["9464", "here:", "1.2.3.4:70000", ""])
def test_an_address_that_is_none_is_an_error(text):
    with pytest.raises(InputError, match=r"give HOST:PORT, such as 127\.0\.0\.1:9464"):
        address(text)


def test_addresses():
    assert address(":80") == ("127.0.0.1", 80)
    assert address("http://localhost:9/") == ("localhost", 9)


def answered(exporter: Exporter, *headers: str) -> int:
    """Return the status of a request that has only these headers."""
    port = int(exporter.url.rstrip("/").rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=5) as asking:
        lines = ["GET /live.json HTTP/1.1", *headers, "", ""]
        asking.sendall("\r\n".join(lines).encode())
        return int(asking.makefile("rb").readline().split()[1])


@pytest.mark.parametrize("at", ["127.0.0.1:0", "localhost:0"])
def test_a_page_of_somebody_else_reads_nothing(at):
    """DNS rebinding: the name of a page resolves to 127.0.0.1, and the browser sends this name."""
    exporter = Exporter(at, lambda: b"{}")
    try:
        for own in ("127.0.0.1", "127.0.0.1:9464", "localhost", "LOCALHOST:80", "localhost."):
            assert answered(exporter, f"Host: {own}") == 200, own
        others = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:9464",
                  "evil.example:80@127.0.0.1", "192.0.2.1", "[::1]", "")  # fmt: skip
        for other in others:
            assert answered(exporter, f"Host: {other}") == 421, other
        assert answered(exporter) == 421, "every browser sends Host"
        assert answered(exporter, "Host: localhost", "Host: evil.example") == 421
    finally:
        exporter.close()


def test_an_address_that_others_reach_is_said():
    with pytest.warns(UserWarning, match="0.0.0.0:0 can be read by everybody who"):
        exporter = Exporter("0.0.0.0:0", lambda: b"{}")
    try:
        assert answered(exporter, f"Host: {socket.gethostname()}:1") == 200
        assert answered(exporter, "Host: 127.0.0.1") == 200, "the address of the connection"
        assert answered(exporter, "Host: evil.example") == 421
    finally:
        exporter.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Exporter("127.0.0.1:0", lambda: b"{}").close()


def test_names_of_a_server_that_has_another_address(monkeypatch):
    """The server is reached at 192.0.2.7; a name of this address counts as its own."""
    assert own_names("flash", "192.0.2.7") == {"flash", "192.0.2.7"}
    assert own_names("192.0.2.7", "192.0.2.7") == {"192.0.2.7"}
    monkeypatch.setattr("flashatlas.live.exporter.names_of_machine", lambda: {"flash"})
    assert own_names("0.0.0.0", "192.0.2.7") == {"0.0.0.0", "192.0.2.7", "flash"}
    assert own_names("0.0.0.0", "127.0.0.1") == {"0.0.0.0", "127.0.0.1", "flash", "localhost"}


@pytest.mark.parametrize("at", ["a..b:1", "x" * 70 + ":1"])
def test_a_host_that_is_no_name(at):
    with pytest.raises(InputError, match="metrics: "):
        Exporter(at, lambda: b"{}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "does not come from a served drive"),
        ("[" * 100_000, "damaged: the content is nested too deeply"),
        ('{"schema": "flashatlas.live/1"}', "drive is missing"),
        ("<html>", "damaged: Expecting value"),
    ],
)
def test_an_answer_that_is_none(cli, text, said):
    """The server that `top` asks may be any other program."""
    exporter = Exporter("127.0.0.1:0", text.encode)
    try:
        done = cli("top", exporter.url)
    finally:
        exporter.close()
    assert done.returncode == 2 and said in done.stderr


def test_an_answer_with_other_values(cli):
    """Each key of the answer is used, so a missing or changed key is found."""
    whole = AFTER.found | {"record": AFTER.record}
    assert Seen.parse(json.dumps(whole)).requests("write") == 300
    for key in ("drive", "set", "serving_ns", "in_flight", "record", "tables"):
        for broken in ({k: v for k, v in whole.items() if k != key}, whole | {key: None}):
            with pytest.raises(InputError, match=f"damaged: {key} is "):
                Seen.parse(json.dumps(broken))


def fetch(url: str, **options) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, **options)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.reason


def used(drive, writes: int) -> None:
    """Write units one by one, read them, and flush twice; wait until the counters show it."""
    client = Client(drive.uri)
    for number in range(writes):
        assert client.ask(WRITE, UNIT * number, data=bytes([number + 1]) * UNIT)[0] == 0
        assert client.ask(READ, UNIT * number, UNIT)[0] == 0
    for _ in range(2):
        assert client.ask(FLUSH)[0] == 0
    client.close()
    end = time.monotonic() + 20
    while look(drive.metrics_url).requests("flush") < 2 and time.monotonic() < end:
        time.sleep(0.1)


@needs_nbdkit
def test_a_served_drive_says_what_its_clients_did(cli):
    with serve("tiny", set=["ftl.scheme=fast"], metrics="127.0.0.1:0") as drive:
        used(drive, 40)
        found = look(drive.metrics_url)
        counts = {op: found.requests(op) for op in ("read", "write", "trim", "flush")}
        assert counts == {"read": 40, "write": 40, "trim": 0, "flush": 2}
        assert found.moved("write") == 40 * UNIT == found.found["record"]["host"]["read_bytes"]
        assert sum(found.latencies("write").values()) == 40
        assert found.programs() == {"cache_evict": 40}
        blocks = found.table("blocks")
        assert sum(blocks["blocks"]) == 128 == sum(found.record["blocks"].values())
        # each unit is a page, eight to a block, and all are valid
        assert 8 * sum(blocks["valid"]) == pytest.approx(40)
        status, text = fetch(f"{drive.metrics_url}metrics")
        assert (status, samples(text)["flashatlas_requests_total", "op=read"]) == (200, 40)
        assert fetch(f"{drive.metrics_url}other") == (404, "there are /, /metrics and /live.json")
        assert fetch(f"{drive.metrics_url}live.json", method="POST", data=b"{}")[0] == 501
        with pytest.raises(InputError, match=r"metrics: 127\.0\.0\.1:\d+: .*in use"):
            serve("tiny", metrics=drive.metrics_url)
        done = cli("top", drive.metrics_url, "--count", "1", "--every", "0.1")
        assert done.returncode == 0
        lines = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line}
        assert lines["read"][-1] == lines["write"][-1] == "40" and lines["WAF"][1] == "1.000"
        url = drive.metrics_url
    with pytest.raises(InputError, match=r"flashatlas serve --metrics"):
        look(url)
    assert drive.result.record["host"]["writes"] == 40
    done = cli("top", url)
    assert done.returncode == 2 and "live.json" in done.stderr


@needs_nbdkit
def test_after_a_power_failure_there_is_nothing_to_see(tmp_path):
    drive = serve("tiny", image=tmp_path / "i", cut_after=3, metrics="127.0.0.1:0")
    client = Client(drive.uri)
    with pytest.raises(OSError):
        for number in range(600):
            client.ask(WRITE, UNIT * number, data=b"x" * UNIT)
    drive.wait()
    assert fetch(f"{drive.metrics_url}live.json")[0] == 503
    with pytest.raises(PowerLost):
        drive.stop()


DOUBT = {
    "code": "replies-late",
    "text": "replies went out later: 2307 us at p99, beside 102 us",
    "values": {"p99": 2307},
    "advice": "Take latencies from the record",
}


def test_the_terminal_says_first_what_makes_latencies_of_clients_doubtful():
    late = Seen({**AFTER.found, "notes": [DOUBT]})
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(screen(BEFORE, late, 120))
    lines = console.export_text().splitlines()
    assert lines[1] == f"{DOUBT['text']} ({DOUBT['advice']})"
    # a server of an earlier version sends no notes
    assert AFTER.notes == []


@needs_nbdkit
def test_a_server_whose_replies_are_late_says_so_wherever_it_is_looked_at(cli, browser):
    """The drive answers in some microseconds: no clock wakes a thread that precisely."""
    fast = {"timing.t_read": "1us", "timing.t_program": "1us", "cache.mode": "write-through"}
    with serve("tiny", set=fast, time="real", metrics="127.0.0.1:0") as drive:
        used(drive, 40)
        (note,) = look(drive.metrics_url).found["notes"]
        assert note["code"] == "replies-late"
        shown = cli("top", drive.metrics_url, "--count", "1", "--every", "0.1").stdout
        assert "replies went out later than the drive completed" in " ".join(shown.split())
        page = browser.new_page()
        page.goto(drive.metrics_url)
        page.wait_for_function("!document.getElementById('notes').hidden")
        assert "--time 10" in page.locator("#notes").inner_text()
        page.close()
    codes = [note["code"] for note in drive.result.record["approximations"]]
    assert "replies-late" in codes
    (alarm,) = alarms([drive.result])
    assert "Use the latencies of the record" in alarm


@needs_nbdkit
def test_the_page_draws_the_drive(browser):
    page = browser.new_page()
    # text that is drawn on a canvas is no text of the page
    page.add_init_script(
        "window.written = new Set(); const fill = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {"
        "window.written.add(text); return fill.call(this, text, ...place); };"
    )
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    with serve("tiny", set=["ftl.scheme=fast"], metrics="127.0.0.1:0") as drive:
        used(drive, 40)
        page.goto(drive.metrics_url)
        page.wait_for_function("document.querySelectorAll('#commands tbody tr').length === 4")
        rows = page.locator("#commands tbody tr").all_inner_texts()
        assert [row.split()[0] for row in rows] == ["read", "write", "trim", "flush"]
        assert [row.split()[-1] for row in rows] == ["40", "40", "0", "2"]
        assert "1.000 (write cache 1.000)" in page.locator("#flash").inner_text()
        written = set(page.evaluate("[...window.written]"))
        assert {"now", "30 s ago", "60 s ago", "90 s ago", "0"} <= written, "the axis across"
        ends = page.evaluate("[0.7, 1, 3, 20, 21, 700].map(roundUp)")
        assert ends == [1, 1, 5, 20, 50, 1000]
        assert any(int(text.replace(",", "")) >= 1 for text in written if text[-1].isdigit())
        colours = page.evaluate(
            """() => { const c = document.getElementById("blocks"), p = c.getContext("2d");
              const all = p.getImageData(0, 0, c.width, c.height).data, found = new Set();
              for (let i = 0; i < all.length; i += 4) found.add(all.slice(i, i + 3).join());
              return found.size; }"""
        )
        assert colours >= 3, "free blocks, used ones and the lines between them"
        assert wrong == []
    page.wait_for_function("document.getElementById('state').textContent.includes('any more')")
    page.close()
