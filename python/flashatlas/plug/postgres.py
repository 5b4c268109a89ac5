"""Transactions of PostgreSQL, from several sessions at the same time."""

from __future__ import annotations

import glob
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flashatlas._core import DriveError
from flashatlas.plug.client import Client

SESSIONS = 4
ACCOUNTS = 50

SETTINGS = """
listen_addresses = ''
shared_buffers = 16MB
max_wal_size = 48MB
autovacuum_naptime = 2s
logging_collector = off
"""
"""Settings of the server.

The settings that make a commit durable keep their defaults: fsync, full_page_writes,
synchronous_commit.
"""

START_S = 120
"""Seconds within which a server must have recovered."""


class Postgres(Client):
    """Four sessions that insert numbered rows and move money between accounts."""

    name = "postgres"
    summary = "PostgreSQL: four sessions, each transaction a numbered row and a transfer"

    def missing(self) -> str | None:
        """Return why PostgreSQL cannot run here, or ``None``."""
        if not programs():
            return "PostgreSQL is not installed (Debian and Ubuntu: apt install postgresql)"
        if shutil.which("setpriv") is None:
            return "setpriv is not installed (Debian and Ubuntu: apt install util-linux)"
        return None

    def prepare(self, folder: Path) -> None:
        """Make a cluster, with its tables."""
        os.chmod(folder, 0o755)
        shutil.chown(folder, "postgres", "postgres")
        done = _as_postgres("initdb", "-D", _data(folder), "-A", "trust", "-U", "postgres")
        if done.returncode != 0:
            raise DriveError(f"initdb: {done.stderr.strip()}")
        with (_data(folder) / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(SETTINGS)
        tables = (
            "CREATE TABLE log(n bigint PRIMARY KEY, body text); "
            "CREATE TABLE account(id int PRIMARY KEY, balance bigint); "
            f"INSERT INTO account SELECT id, 0 FROM generate_series(0, {ACCOUNTS - 1}) id"
        )
        with _running(folder) as where:
            _ask(where, tables)

    def write(
        self, folder: Path, first: int, rng: random.Random, acknowledge: Callable[[int], None]
    ) -> None:
        """Commit transactions in four sessions until the drive no longer answers."""
        with suppress(DriveError), _running(folder) as where:
            draws = [random.Random(rng.random()) for _ in range(SESSIONS)]
            sessions = [
                threading.Thread(target=_session, args=(where, first + i, draw, acknowledge))
                for i, draw in enumerate(draws)
            ]
            for session in sessions:
                session.start()
            for session in sessions:
                session.join()

    def found(self, folder: Path) -> tuple[set[int], str]:
        """Return the rows after PostgreSQL's own recovery, and whether the sums hold."""
        try:
            with _running(folder) as where:
                rows = _ask(where, "SELECT n, md5(body) = md5(repeat(n::text, 40)) FROM log")
                counted = _ask(
                    where,
                    "SET enable_seqscan = off; SELECT count(*) FROM log WHERE n > 0; "
                    "SELECT count(*), sum(balance) FROM account",
                )
        except DriveError as error:
            return set(), f"PostgreSQL: {error}"
        there = {int(n) for n, whole in rows if whole == "t"}
        if [int(counted[-2][0]), len(there)] != [len(rows)] * 2:
            return there, f"{len(rows)} rows, {len(there)} whole, the index has {counted[-2][0]}"
        if counted[-1] != [str(ACCOUNTS), "0"]:
            return there, f"{counted[-1][0]} accounts with the sum {counted[-1][1]}"
        return there, ""


def programs() -> str:
    """Return the folder of the newest programs; empty if PostgreSQL is not installed."""
    folders = glob.glob("/usr/lib/postgresql/*/bin")
    return max(folders, key=lambda each: int(Path(each).parent.name), default="")


def _data(folder: Path) -> Path:
    return folder / "data"


def _command(program: str, *arguments: str | Path) -> list[str]:
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    return [*as_user, f"{programs()}/{program}", *map(str, arguments)]


def _as_postgres(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        _command(program, *arguments), capture_output=True, text=True, check=False, cwd="/"
    )


@contextmanager
def _running(folder: Path) -> Iterator[str]:
    """Yield the folder of the socket of a server that has recovered; stop or kill it at the end."""
    with tempfile.TemporaryDirectory(prefix="flashatlas-pg-") as where:
        shutil.chown(where, "postgres", "postgres")
        log = Path(where) / "log"
        with log.open("wb") as out:
            server = subprocess.Popen(
                _command("postgres", "-D", _data(folder), "-k", where),
                stdout=out,
                stderr=out,
                start_new_session=True,
                cwd="/",
            )
        try:
            end = time.monotonic() + START_S
            while _as_postgres("pg_isready", "-q", "-h", where).returncode != 0:
                if server.poll() is not None or time.monotonic() > end:
                    said = log.read_text(encoding="utf-8", errors="replace").strip()
                    raise DriveError(said.splitlines()[-1] if said else "PostgreSQL did not start")
                time.sleep(0.05)
            yield where
            server.send_signal(signal.SIGINT)  # a fast shutdown
            with suppress(subprocess.TimeoutExpired):
                server.wait(timeout=60)
        finally:
            # end everything that still holds the file system
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _psql(where: str) -> list[str]:
    return _command("psql", "-h", where, "-U", "postgres", "-XqtA", "-v", "ON_ERROR_STOP=1")


def _ask(where: str, text: str) -> list[list[str]]:
    """Return the rows of some statements."""
    done = subprocess.run(
        [*_psql(where), "-c", text], capture_output=True, text=True, check=False, cwd="/"
    )
    if done.returncode != 0:
        raise DriveError(done.stderr.strip() or "psql failed")
    return [line.split("|") for line in done.stdout.splitlines() if line]


def _session(
    where: str, number: int, draw: random.Random, acknowledge: Callable[[int], None]
) -> None:
    """Run the transactions of one session: psql's output after a COMMIT is an acknowledgement."""
    with subprocess.Popen(
        _psql(where),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd="/",
    ) as psql:
        assert psql.stdin is not None and psql.stdout is not None
        with suppress(BrokenPipeError):
            while True:
                # lock the accounts in ascending order, so that sessions cannot deadlock
                from_, to = sorted(draw.sample(range(ACCOUNTS), 2))
                amount = draw.randrange(-100, 100)
                psql.stdin.write(
                    f"BEGIN; INSERT INTO log VALUES({number}, repeat('{number}', 40)); "
                    f"UPDATE account SET balance = balance - {amount} WHERE id = {from_}; "
                    f"UPDATE account SET balance = balance + {amount} WHERE id = {to}; "
                    f"COMMIT;\n\\echo {number}\n"
                )
                psql.stdin.flush()
                if psql.stdout.readline().strip() != str(number):
                    break
                acknowledge(number)
                number += SESSIONS
        with suppress(BrokenPipeError):
            psql.stdin.close()
