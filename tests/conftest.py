"""Fixtures and helpers that the tests share."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import drawn
import pytest

os.environ |= {"NO_COLOR": "1", "COLUMNS": "110"}

from flashatlas import parts
from flashatlas.cli import main

pytest_plugins = ["browser"]

ROOT = Path(__file__).resolve().parent.parent

ONE_IN = int(os.environ.get("FLASHATLAS_PROOFS") or 20)
"""One in this number of random cases is tried; with 1 (``make test-full``) all are."""


LONG = 8
"""One in this number of the tests that are marked `long` is taken."""


def pytest_configure(config):
    # `make test` runs pytest in the background of a shell, whose processes ignore the signal: the
    # programs that tests start and interrupt would inherit this
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "long: takes some seconds; each commit draws some")


def pytest_collection_modifyitems(items):
    """Leave out the long tests that are not drawn, and say so."""
    marked = [item for item in items if item.get_closest_marker("long")]
    taken = {*drawn.sample(marked, LONG)}
    for item in marked:
        if item not in taken and not drawn.touched(item.path.stem.removeprefix("test_")):
            item.add_marker(pytest.mark.skip(reason=drawn.LEFT))


def pytest_terminal_summary(terminalreporter):
    """Print the number of tests left to other commits, and the number skipped by other reason."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    )
    left = reasons.pop(drawn.LEFT, 0)
    if left:
        terminalreporter.write_line(
            f"{left} not drawn: other commits run them, FLASHATLAS_PROOFS=1 all (tests/drawn.py)"
        )
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped here: {reason}")


class Finished(NamedTuple):
    """The output and the exit code of a command."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module", autouse=True)
def only_its_own_parts():
    """Remove the parts that a file of tests added: all files share a process."""
    with parts.temporary():
        yield


@pytest.fixture(scope="session")
def dask_cluster():
    """Yield the address of a running Dask cluster, whose only worker is a thread."""
    distributed = pytest.importorskip("distributed", reason="the extra [study] is not installed")
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Run the command line in an empty folder, in this process: a new process takes half a second.

    A test that needs another process (for signals or pipes) starts one itself.
    """

    def call(*arguments: str) -> Finished:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        monkeypatch.setattr(sys, "argv", ["flashatlas", *arguments])
        monkeypatch.chdir(tmp_path)
        code = 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as end:
                code = end.code or 0
        for stream in (out, err):
            stream.flush()
        return Finished(code, *(s.buffer.getvalue().decode() for s in (out, err)))

    return call


@pytest.fixture
def trace(tmp_path) -> Path:
    """Return a trace of four writes in the format of MSR Cambridge."""
    path = tmp_path / "four.csv"
    path.write_text("".join(f"{1000 * i},host,0,Write,{4096 * i},4096,0\n" for i in range(4)))
    return path


def matches(shown: list[str], printed: list[str]) -> bool:
    """Return `True` if the printed lines are the shown ones; dots stand for any lines."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and matches(shown[1:], printed[1:])
